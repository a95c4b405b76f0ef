"""Real clients and a real server that speak SASL or do without, over TLS or without."""

import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
import thrift_sasl
import trustme
from pyhive import hive
from pyhive.exc import OperationalError
from pyhive.sasl_compat import PureSASLClient
from support.beeline_clients import run_beeline
from support.cheap_spark import QUICK_JAVA
from support.profile import DEEP
from thrift.transport import TSocket, TTransport

from demo.hive import Endpoint, run
from demo.java import Java
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ServerOptions, ThriftServer, thrift_server

ROWS = 50_000
BIG = f"SELECT id, cast(id AS string) AS s, repeat('x', 200) AS r FROM range({ROWS})"
SCRIPT = "SELECT current_user() AS who;\nSELECT id, concat('row ', id) AS label FROM range(3);\n"
PASSWORD = "changeit"  # noqa: S105 - of a store that the test makes

# What each port speaks, as the ready line has it, in the order of the listeners.
SPOKEN = ("sasl", "sasl over TLS", "sasl over TLS, with client certificates")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates as files: ca.pem, server.pem, server.key, client.pem, and trust.p12 for Java."""
    folder, authority = tmp_path_factory.mktemp("certificates"), trustme.CA()
    server, client = authority.issue_cert("localhost", "127.0.0.1"), authority.issue_cert("somebody@example.org")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    server.cert_chain_pems[0].write_to_path(folder / "server.pem")
    server.private_key_pem.write_to_path(folder / "server.key")
    client.private_key_and_cert_chain_pem.write_to_path(folder / "client.pem")
    return folder


@contextmanager
def listening(
    backend: Endpoint, folder: Path, section: str = "", transport: str = "sasl"
) -> Iterator[dict[str, Endpoint]]:
    """A proxy with a listener of each kind before a server with this section, by what it speaks."""
    tls = f'tls_certificate = "{folder}/server.pem"\ntls_key = "{folder}/server.key"\n'
    head = f'[[listener]]\nlisten = "127.0.0.1:0"\ntransport = "{transport}"\n'
    tables = ("", tls, f'{tls}tls_client_ca = "{folder}/ca.pem"\n')
    config = folder / "starpruner.toml"
    config.write_text(section + "".join(head + table for table in tables))
    with proxy_process(backend, folder / "proxy", port=None, options=("--config", str(config))) as proxy:
        spoken = (each.replace("sasl", transport, 1) for each in SPOKEN)
        yield dict(zip(spoken, (proxy.endpoint, *_others(proxy)), strict=True))


def _others(proxy: ProxyProcess) -> list[Endpoint]:
    (line,) = re.findall(r"also on (.*)", proxy.child.log.read_text())
    return [Endpoint.parse(text) for text in re.findall(r"(127\.0\.0\.1:\d+) \(", line)]


@pytest.fixture(scope="module")
def in_front_of_sasl(spark: ThriftServer, folder: Path) -> Iterator[dict[str, Endpoint]]:
    with listening(spark.endpoint, folder) as endpoints:
        yield endpoints


def connect(
    endpoint: Endpoint, spoken: str, folder: Path, *, configuration: dict[str, str] | None = None
) -> hive.Connection:
    """PyHive as `anna`, who shows a certificate where one is asked for."""
    sock = TSocket.TSocket(endpoint.host, endpoint.port)
    if "TLS" in spoken:
        tls = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        if "certificates" in spoken:
            tls.load_cert_chain(folder / "client.pem")
        raw = socket.create_connection((endpoint.host, endpoint.port))
        sock.setHandle(tls.wrap_socket(raw, server_hostname="localhost"))
    if spoken.startswith("nosasl"):
        transport = TTransport.TBufferedTransport(sock)
    else:
        transport = thrift_sasl.TSaslClientTransport(
            lambda: PureSASLClient(endpoint.host, username="anna", password="x"),  # noqa: S106 - nobody's
            "PLAIN",
            sock,
        )
    if "TLS" in spoken:
        # Its socket is open already; PyHive opens what it is given.
        sock.open = lambda: None
    return hive.connect(thrift_transport=transport, username="anna", configuration=configuration)


@pytest.mark.parametrize("spoken", SPOKEN)
def test_pyhive_gets_the_same_rows_whatever_it_speaks(
    in_front_of_sasl: dict[str, Endpoint], folder: Path, spoken: str
) -> None:
    with closing(connect(in_front_of_sasl[spoken], spoken, folder)) as connection:
        assert run(connection, "SELECT current_user()") == [("anna",)]
        rows = run(connection, BIG)
    assert rows == [(number, str(number), "x" * 200) for number in range(ROWS)]


def test_who_may_not_act_for_another_hears_so(in_front_of_sasl: dict[str, Endpoint], folder: Path) -> None:
    wanted = {"hive.server2.proxy.user": "eve"}
    with pytest.raises(OperationalError, match="user 'anna' may not act for user 'eve'"):
        connect(in_front_of_sasl["sasl"], "sasl", folder, configuration=wanted)


def test_beeline_over_tls_prints_what_it_prints_directly(
    in_front_of_sasl: dict[str, Endpoint], folder: Path, java: Java
) -> None:
    options = f";ssl=true;sslTrustStore={trust_store(folder, java)};trustStorePassword={PASSWORD}"
    done = run_beeline(java, in_front_of_sasl["sasl over TLS"], SCRIPT, folder, url_options=options)
    assert done.stdout.split()[2:] == "id label 0 row 0 1 row 1 2 row 2".split(), done.stderr


def trust_store(folder: Path, java: Java) -> Path:
    store = folder / "trust.p12"
    if not store.exists():
        keytool(
            java, "-importcert", "-noprompt", "-alias", "ca", "-file", f"{folder}/ca.pem", "-keystore", str(store)
        )
    return store


def keytool(java: Java, *words: str) -> None:
    command = [str(java.path.parent / "keytool"), *words, "-storetype", "PKCS12", "-storepass", PASSWORD]
    subprocess.run(command, check=True, capture_output=True)


# --- servers that speak something else: one more start of Spark each


@pytest.fixture(scope="module")
def other_server(
    request: pytest.FixtureRequest, java: Java, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Endpoint]]:
    """A proxy in front of a server without SASL, or of one that speaks TLS."""
    if not DEEP:
        pytest.skip("starts a Spark server of its own: STARPRUNER_DEEP=1 runs it")
    with ExitStack() as stack:
        if request.param == "nosasl":
            conf = {"spark.hadoop.hive.server2.authentication": "NOSASL"}
            section, transport = '[backend]\ntransport = "nosasl"\n', "nosasl"
        else:
            conf, transport = _server_tls(java, folder), "sasl"
            section = f'[backend]\ntls = true\ntls_ca = "{folder}/spark.pem"\ntls_server_name = "localhost"\n'
        settings = ServerOptions(tmp_path_factory.mktemp("spark"), cores=2, java_options=QUICK_JAVA, conf=conf)
        server = stack.enter_context(thrift_server(settings, java, lambda _: None, answers=Endpoint.listens))
        yield stack.enter_context(listening(server.endpoint, folder, section, transport))


def _server_tls(java: Java, folder: Path) -> dict[str, str]:
    store, pem = folder / "spark.p12", folder / "spark.pem"
    keytool(
        java,
        *("-genkeypair", "-alias", "spark", "-keyalg", "RSA", "-keystore", str(store)),
        *("-dname", "CN=localhost", "-ext", "san=dns:localhost"),
    )
    keytool(java, "-exportcert", "-rfc", "-alias", "spark", "-keystore", str(store), "-file", str(pem))
    return {
        "spark.hadoop.hive.server2.use.SSL": "true",
        "spark.hadoop.hive.server2.keystore.path": str(store),
        "spark.hadoop.hive.server2.keystore.password": PASSWORD,
    }


@pytest.mark.parametrize("other_server", ["nosasl", "tls"], indirect=True)
def test_clients_reach_a_server_without_sasl_and_one_over_tls(
    other_server: dict[str, Endpoint], folder: Path, java: Java
) -> None:
    trust = f";ssl=true;sslTrustStore={trust_store(folder, java)};trustStorePassword={PASSWORD}"
    for spoken, endpoint in other_server.items():
        with closing(connect(endpoint, spoken, folder)) as connection:
            assert run(connection, "SELECT current_user()") == [("anna",)], spoken
            assert run(connection, BIG) == [(number, str(number), "x" * 200) for number in range(ROWS)], spoken
            with pytest.raises(OperationalError, match="no_such_table"):
                run(connection, "SELECT * FROM no_such_table")
        if "certificates" in spoken:
            continue
        options = f"{';auth=noSasl' if spoken.startswith('nosasl') else ''}{trust if 'TLS' in spoken else ''}"
        done = run_beeline(java, endpoint, SCRIPT, folder, url_options=options)
        assert done.stdout.split()[2:] == "id label 0 row 0 1 row 1 2 row 2".split(), (spoken, done.stderr)
