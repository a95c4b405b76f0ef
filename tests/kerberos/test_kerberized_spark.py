"""The steps of docs/kerberos.md, followed as they are written, and real clients before a real kerberized Spark.

Starpruner is at `localhost` and Spark at 127.0.0.1: two names of one machine, as the page has two machines.
"""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from drivers import hive_4_driver
from kerberos_realm import Realm, running_realm
from support.cheap_spark import QUICK_COMPILER
from support.kdc import REALM, require_kerberos
from support.kerberized_spark import Beeline, Service, kerberized_spark
from support.ldap_directory import BASE, missing_directory_parts
from support.maven import ClientMissingError, is_required
from support.metrics_of_proxy import rewritten_count
from support.profile import only_deep
from support.proxies import patient

from demo.hive import Endpoint, free_port
from demo.java import Java
from demo.proxy_process import ProxyProcess, proxy_process, starpruner_command
from demo.thrift_server import ThriftServer
from proxy.wire.sasl import plain_start

require_kerberos()


PAGE = (Path(__file__).parents[2] / "docs" / "kerberos.md").read_text(encoding="utf-8")
ANSWERS = Path(__file__).with_name("Answers.java")
QOPS = ("auth", "auth-int", "auth-conf")
OVER_HTTP = ";transportMode=http;httpPath=cliservice"

TABLES = """
CREATE DATABASE small_star;
CREATE TABLE small_star.days USING parquet AS SELECT * FROM VALUES
  ('d1', 'Sunday'), ('d2', 'Monday'), ('d3', 'Sunday'), ('d4', 'Tuesday') AS t(ds, weekday);
CREATE TABLE small_star.visits USING parquet PARTITIONED BY (ds) AS
  SELECT id, id * 1.5BD AS amount, concat('d', 1 + id % 8) AS ds FROM range(0, 64, 1, 1);
"""
STAR_JOIN = """SELECT v.*, current_user() FROM small_star.visits v JOIN small_star.days d ON v.ds = d.ds
WHERE d.weekday = 'Sunday' ORDER BY v.id"""
SCRIPT = f"""
{STAR_JOIN};
SELECT id, repeat('x', 100) FROM range(5000);
SELECT * FROM no_such_table;
SELECT 'the end';
"""
ROWS = [
    (number, f"{number * 1.5:.1f}", f"d{1 + number % 8}", "anna") for number in range(64) if number % 8 in (0, 2)
]


def block(name: str) -> str:
    found = re.search(rf"^<!-- guide: {name} -->\n```\w+\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def here(text: str, directory: Path, ports: dict[str, Endpoint]) -> str:
    """A block of the page for this machine."""
    changes = {
        "/etc/starpruner": str(directory),
        "spark.example.com:10000": str(ports.get("spark", "")),
        "0.0.0.0:10001": "127.0.0.1:0",
        "proxy.example.com:10001": f"localhost:{ports['proxy'].port}" if "proxy" in ports else "",
        "proxy.example.com": "localhost",
        "EXAMPLE.COM": REALM,
    }
    for before, after in changes.items():
        text = text.replace(before, after)
    return text


def shell(commands: str, environment: dict[str, str], said: str = "") -> str:
    done = subprocess.run(
        ["/bin/sh", "-exc", commands],
        env=environment,
        input=said,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def annas_rows(said: str) -> list[tuple[str, ...]]:
    """The rows of the star join in a client's answer."""
    return [tuple(line.split("\t")) for line in said.splitlines() if line.endswith("\tanna")]


@dataclass(frozen=True)
class World:
    """A realm, a server in it, and what its clients have."""

    realm: Realm
    directory: Path
    spark: ThriftServer
    beeline: Beeline

    @property
    def direct_url(self) -> str:
        return f"jdbc:hive2://{self.spark.endpoint}/default;principal={Realm.BACKEND}"


def world_with(qop: str, directory: Path, java: Java, stack: ExitStack, *, over_http: bool = False) -> World:
    """The page's machines up to the start of Starpruner."""
    realm = stack.enter_context(running_realm(directory / "realm"))
    properties = ET.fromstring(f"<configuration>{here(block('core-site'), directory, {})}</configuration>")  # noqa: S314
    # Java knows the client's address, not its name.
    core_site = {
        str(each.findtext("name")): str(each.findtext("value")).replace("localhost", "127.0.0.1")
        for each in properties
    }
    service = Service(Realm.BACKEND, realm.backend_keytab, qop, over_http)
    server = kerberized_spark(directory / "spark", java, realm.kdc, service, core_site)
    beeline = Beeline.installed(java, realm.kdc, directory / "clients")
    world = World(realm, directory, stack.enter_context(server), beeline)
    environment = world.beeline.environment_of("anna")
    # The service key of the other tests is one of the page's two.
    shell(here(block("keys"), directory, {}).replace("addprinc -randkey starp", "getprinc starp"), environment)
    if not over_http:
        make_tables(world, f"{world.direct_url};saslQop={qop}")
    return world


def make_tables(world: World, url: str) -> None:
    made = world.beeline.run("anna", url, TABLES)
    # Its exit code says nothing with --force.
    assert "Error" not in made.stderr, made.stderr


def starpruner(world: World, *more: str, listener: str = "", port: int | None = 0) -> Any:
    """The page's Starpruner, started."""
    written = here(block("starpruner.toml"), world.directory, {"spark": world.spark.endpoint})
    path = world.directory / "starpruner.toml"
    path.write_text(f"{written}\n{listener}", encoding="utf-8")
    options = ("--config", str(path), *patient(*more))
    return proxy_process(None, world.directory / "proxy", port=port, options=options)


@pytest.fixture(scope="module")
def world(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ExitStack() as stack:
        yield world_with("auth-conf", tmp_path_factory.mktemp("kerberized"), java, stack)


@pytest.fixture(scope="module")
def proxy(world: World) -> Iterator[ProxyProcess]:
    with starpruner(world) as running:
        yield running


def url_of(proxy: ProxyProcess, qop: str = "auth") -> str:
    principal = f"hive/localhost@{REALM}"
    return f"jdbc:hive2://localhost:{proxy.endpoint.port}/default;principal={principal};saslQop={qop}"


def test_the_page_is_followed_to_its_end(world: World, proxy: ProxyProcess) -> None:
    anna = world.beeline.environment_of("anna")
    ours = world.directory / "clients" / "bin" / "starpruner"
    ours.write_text(f'#!/bin/sh\nexec {sys.executable} {" ".join(map(repr, starpruner_command()[1:]))} "$@"\n')
    ours.chmod(0o755)
    keys = shell(here(block("check"), world.directory, {}), anna)
    assert f"hive/localhost@{REALM}" in keys
    assert f"starpruner/localhost@{REALM}" in keys
    said = shell(here(block("client"), world.directory, {"proxy": proxy.endpoint}), anna, "secret-of-anna\n")
    assert re.findall(r"^\| (\w+) +\|$", said, re.MULTILINE) == ["anna", "anna"]


@pytest.mark.parametrize("qop", QOPS)
def test_beeline_gets_a_narrowed_star_join_as_directly(world: World, proxy: ProxyProcess, qop: str) -> None:
    before = rewritten_count(proxy)
    proxied = world.beeline.run("anna", url_of(proxy, qop), SCRIPT)
    assert rewritten_count(proxy) == before + 1, proxied.stderr
    direct = world.beeline.run("anna", f"{world.direct_url};saslQop=auth-conf", SCRIPT)
    assert proxied.stdout == direct.stdout
    assert proxied.stdout.rstrip().endswith("the end"), proxied.stderr
    assert len(re.findall(r"^\d+\tx{100}$", proxied.stdout, re.MULTILINE)) == 5000
    assert "TABLE_OR_VIEW_NOT_FOUND" in proxied.stderr


@pytest.mark.parametrize("qop", QOPS)
def test_the_driver_of_hive_4_gets_it_too(world: World, proxy: ProxyProcess, java: Java, qop: str) -> None:
    try:
        driver = hive_4_driver()
    except ClientMissingError as error:
        if is_required():
            raise
        pytest.skip(str(error))
    options = [f"-Djava.security.krb5.conf={world.realm.kdc.config}", QUICK_COMPILER]
    class_path = f"{driver.class_path}:{world.beeline.home / 'conf'}"
    before = rewritten_count(proxy)
    done = subprocess.run(
        [str(java.path), *options, "-cp", class_path, str(ANSWERS), url_of(proxy, qop), STAR_JOIN],
        env=world.beeline.environment_of("anna"),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert rewritten_count(proxy) == before + 1, done.stderr
    assert annas_rows(done.stdout) == [(str(number), *others) for number, *others in ROWS]


@pytest.fixture
def annas(world: World) -> Iterator[pytest.MonkeyPatch]:
    """This process has anna's tickets."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5CCNAME", world.realm.ccache("anna"))
        yield patch


@pytest.mark.usefixtures("annas")
@pytest.mark.parametrize("client", ["pyhive", "impyla"])
def test_python_clients_get_a_narrowed_star_join(world: World, client: str) -> None:
    pytest.importorskip("kerberos", reason="needs the package kerberos for pure-sasl")
    # pure-sasl's adapters can speak auth alone.
    with (
        starpruner(world, 'kerberos.qop=["auth"]') as proxy,
        closing(connected(client, proxy.endpoint)) as session,
    ):
        before = rewritten_count(proxy)
        with closing(session.cursor()) as cursor:
            cursor.execute(STAR_JOIN)
            found = [(row[0], f"{row[1]:.1f}", *row[2:]) for row in cursor.fetchall()]
        assert found == ROWS
        assert rewritten_count(proxy) == before + 1


def connected(client: str, endpoint: Endpoint) -> Any:
    if client == "pyhive":
        from pyhive import hive  # noqa: PLC0415 - both clients bring a module of that name

        return hive.Connection(host="localhost", port=endpoint.port, auth="KERBEROS", kerberos_service_name="hive")
    from impala import dbapi  # noqa: PLC0415 - as above

    return dbapi.connect(
        host="localhost", port=endpoint.port, auth_mechanism="GSSAPI", kerberos_service_name="hive"
    )


def test_a_password_is_checked_by_the_kdc(world: World) -> None:
    from pyhive import hive  # noqa: PLC0415 - as above

    with starpruner(world, "kerberos.plain=kdc") as proxy:
        login: dict[str, Any] = {
            "host": "localhost",
            "port": proxy.endpoint.port,
            "username": "anna",
            "auth": "LDAP",
        }
        annas = hive.Connection(**login, password="secret-of-anna")  # noqa: S106 - a test's
        with closing(annas), closing(annas.cursor()) as cursor:
            cursor.execute("SELECT current_user()")
            assert cursor.fetchall() == [("anna",)]
        # PyHive would leave its socket open.
        with socket.create_connection((proxy.endpoint.host, proxy.endpoint.port), 60) as client:
            client.sendall(plain_start("anna", "wrong"))
            assert b"the login by Kerberos failed" in client.recv(1000)


def test_the_server_asks_its_own_rules_for_whom_we_act(world: World) -> None:
    """A principal that hadoop.proxyuser does not name acts for nobody."""
    other = world.directory / "other.keytab"
    realm, service = world.realm, f"other/localhost@{REALM}"
    realm.kdc.add_service("other/localhost", other)
    with starpruner(world, f"kerberos.principal={service}", f"kerberos.own_principal={service}",
                    f"kerberos.keytab={other}") as proxy:  # fmt: skip
        url = url_of(proxy).replace("principal=hive/", "principal=other/")
        done = world.beeline.run("anna", url, "SELECT 1;\n")
    assert "Failed to validate proxy privilege of other for anna" in done.stderr


def test_a_session_by_delegation_is_the_clients_own(world: World) -> None:
    """The page's setting and entry. The server lets the principal that acts act for nobody by hadoop.proxyuser."""
    if reason := missing_directory_parts():
        pytest.skip(reason)
    kdc = world.realm.kdc
    assert kdc.ldap is not None
    setting = re.sub(r'[\s"]', "", block("delegation"))
    port = free_port()
    listener = f'[[listener]]\nlisten = "127.0.0.1:{port}"\ntransport = "http"\n'
    with starpruner(world, f"kerberos.{setting}", listener=listener) as proxy:
        refused = world.beeline.run("anna", url_of(proxy), "SELECT 1;\n")
        assert f"the KDC has to let hive/localhost@{REALM} delegate to {Realm.BACKEND}" in refused.stderr
        allowed = block("krbAllowedToDelegateTo").replace("spark.example.com", "127.0.0.1")
        kdc.ldap.change("ldapmodify", here(allowed.replace("dc=example,dc=com", BASE), world.directory, {}))
        before = rewritten_count(proxy)
        done = world.beeline.run("anna", url_of(proxy, "auth-conf"), f"{STAR_JOIN};\n")
        assert rewritten_count(proxy) == before + 1, done.stderr
        over_http = url_of(proxy).replace(str(proxy.endpoint.port), str(port)).replace(";saslQop=auth", OVER_HTTP)
        by_spnego = world.beeline.run("anna", over_http, f"{STAR_JOIN};\n")
        assert rewritten_count(proxy) == before + 2, by_spnego.stderr
    assert "s4u-client=anna@" in (kdc.directory / "kdc.log").read_text()
    for said in (done.stdout, by_spnego.stdout):
        assert annas_rows(said) == [(str(number), *others) for number, *others in ROWS]


def test_beeline_gets_it_over_http_by_spnego_too(world: World) -> None:
    port = free_port()
    listener = f'[[listener]]\nlisten = "127.0.0.1:{port}"\ntransport = "http"\n'
    with starpruner(world, listener=listener) as proxy:
        url = url_of(proxy).replace(str(proxy.endpoint.port), str(port))
        url = url.replace(";saslQop=auth", OVER_HTTP)
        before = rewritten_count(proxy)
        done = world.beeline.run("anna", url, f"{STAR_JOIN};\n")
        assert rewritten_count(proxy) == before + 1, done.stderr
    assert [line.split("\t")[0] for line in done.stdout.split("\n") if line.endswith("\tanna")] == [
        str(row[0]) for row in ROWS
    ]


@only_deep("starts a Spark server of its own")
@pytest.mark.parametrize("qop", ["auth", "auth-int"])
def test_a_server_with_another_protection(qop: str, java: Java, tmp_path: Path) -> None:
    with ExitStack() as stack:
        world = world_with(qop, tmp_path, java, stack)
        proxy = stack.enter_context(starpruner(world, f"kerberos.backend_qop={qop}"))
        for client_qop in QOPS:
            before = rewritten_count(proxy)
            proxied = world.beeline.run("anna", url_of(proxy, client_qop), SCRIPT)
            assert rewritten_count(proxy) == before + 1, proxied.stderr
            direct = world.beeline.run("anna", f"{world.direct_url};saslQop={qop}", SCRIPT)
            assert proxied.stdout == direct.stdout


@only_deep("starts a Spark server of its own")
def test_a_server_over_http(java: Java, tmp_path: Path) -> None:
    listener = '[[listener]]\nlisten = "127.0.0.1:0"\ntransport = "http"\n[backend]\ntransport = "http"\n'
    listener += f'tls = true\ntls_ca = "{tmp_path}/spark/spark.pem"\n'
    settings = ("kerberos.backend_qop=auth", "proxy.listen=")
    with ExitStack() as stack:
        world = world_with("auth", tmp_path, java, stack, over_http=True)
        proxy = stack.enter_context(starpruner(world, *settings, listener=listener, port=None))
        # Directly Spark 4.3 refuses the header of every hive-jdbc: "Illegal base64 character 3a" is its colon.
        url = url_of(proxy).replace(";saslQop=auth", OVER_HTTP)
        make_tables(world, url)
        before = rewritten_count(proxy)
        proxied = world.beeline.run("anna", url, SCRIPT)
        assert rewritten_count(proxy) == before + 1, proxied.stderr
        assert annas_rows(proxied.stdout) == [(str(number), *others) for number, *others in ROWS]
        assert len(re.findall(r"^\d+\tx{100}$", proxied.stdout, re.MULTILINE)) == 5000
        assert proxied.stdout.rstrip().endswith("the end"), proxied.stderr
        if missing_directory_parts():
            return
        kdc = world.realm.kdc
        kdc.let_delegate("hive/localhost", Realm.BACKEND.partition("@")[0])
        more = ("kerberos.act_by=delegation",)
        delegating = stack.enter_context(starpruner(world, *settings, *more, listener=listener, port=None))
        url = url_of(delegating).replace(";saslQop=auth", OVER_HTTP)
        done = world.beeline.run("anna", url, SCRIPT)
        assert annas_rows(done.stdout) == annas_rows(proxied.stdout), done.stderr
        # The KDC is asked for each ticket: once for the session, and then the server's cookie does. Without it 29
        # times.
        assert 1 <= (kdc.directory / "kdc.log").read_text().count("s4u-client=anna@") <= 3
