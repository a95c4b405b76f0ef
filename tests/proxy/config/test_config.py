"""The configuration: what it takes, and the sentence for what it does not."""

import re
import socket
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from proxy.cli import main
from proxy.config.address import Address, address, start_error
from proxy.config.backend_list import BackendEntry
from proxy.config.config import Config, load
from proxy.config.endpoints import Listener, ListenerTls, Transport, UpstreamSection, UpstreamTls
from proxy.config.errors import ConfigError
from proxy.config.types import WORDS


def written(folder: Path, text: str) -> Path:
    path = folder / "starpruner.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_the_defaults_hold() -> None:
    assert load(None) == Config()


def test_a_file_and_overrides_are_read_the_later_ones_winning(tmp_path: Path) -> None:
    path = written(tmp_path, '[proxy]\nbackend = "spark:10000"\n[rewrite]\nenabled = true\nkey_rows_max = 7\n')
    config = load(path, ("rewrite.enabled=false", "rewrite.key_query_deadline_s=2.5", "rewrite.key_rows_max=8"))
    assert config.proxy.backend == "spark:10000"
    assert config.rewrite.enabled is False
    assert config.rewrite.key_query_deadline_s == 2.5
    assert config.rewrite.key_rows_max == 8


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[rewrite]\nenable = true", "rewrite.enable: there is no such key; rewrite.enabled is the nearest"),
        ("[rewriting]\n", "rewriting: there is no such section; rewrite is the nearest"),
        ('[rewrite]\nenabled = "yes"', "rewrite.enabled: Expected `bool`, got `str`"),
        (
            '[catalog]\nstore = "hbase"',
            'catalog.store is "hbase" and catalog.store_gateway is empty, expected HOST:PORT',
        ),
        (
            '[catalog]\nstore_gateway = "hbase"',
            "catalog.store_gateway: Expected HOST:PORT, such as",
        ),
        ('[history]\npath = "/a"\nshared_path = "/a"', "history.shared_path is history.path; expected a path of"),
        ('[catalog]\nstore_gateway = "hbase:99999"', "hbase:99999: the port is 99999, expected 0 to 65535"),
        ("[rewrite]\nkey_rows_max = 0", "rewrite.key_rows_max: Expected `int` >= 1"),
        ('[proxy]\nlisten = "nowhere"', "proxy.listen: Expected HOST:PORT, such as 0.0.0.0:10000"),
        (
            '[[listener]]\nlisten = "host:1"\ntls_key = "k.pem"',
            "listener host:1: tls_certificate and tls_key go together, one of them is missing",
        ),
        (
            '[[listener]]\nlisten = "host:1"\ntls_client_ca = "ca.pem"',
            "listener host:1: tls_client_ca needs tls_certificate and tls_key beside it",
        ),
        ('[[listener]]\nlisten = "host:1"\ntransport = "udp"', "listener[0].transport: Invalid enum value 'udp'"),
        ('[backend]\ntls_ca = "ca.pem"', "backend: tls_ca, tls_server_name and tls_certificate need tls = true"),
        (
            '[backend]\ntls = true\ntls_key = "k.pem"',
            "backend: tls_certificate and tls_key go together, one of them is missing",
        ),
        (
            '[[listener]]\nlisten = "host:1"\nhttp_path = "cli"',
            "listener[0].http_path: Expected a path that begins",
        ),
        ('[backend]\nhttp_path = "/a?b"', "backend.http_path: Expected a path that begins"),
        ("[http]\nkeep_alive_s = 0", "http.keep_alive_s: Expected `float` > 0"),
        ('[proxy]\nlisten = ""', "proxy.listen is empty and there is no [[listener]]: nobody could connect"),
        ('[proxy]\nlisten = "host:99999"', "host:99999: the port is 99999, expected 0 to 65535"),
        ('[proxy]\nbackends = ["spark"]', "proxy.backends: spark: expected [dns:]HOST:PORT[ weight=N]"),
        ('[proxy]\nbackends = ["a:1", "dns:a:1"]', "proxy.backends: an address is named twice"),
        ('[proxy]\nbackends = ["dns:a:70000"]', "a:70000: the port is 70000"),
        ('[files]\nindex = "files"', "files.index: Expected `database.table` or"),
        ('[files]\nindex = "a.b.c.d"', "files.index: Expected `database.table` or"),
        ("[files]\nfiles_max = 0", "files.files_max: Expected `int` >= 1"),
        ("[rewrite\n", "is not TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_a_sentence_that_names_it(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(written(tmp_path, text))
    assert sentence in str(refused.value)


def test_clients_connect_where_proxy_listen_and_each_listener_say(tmp_path: Path) -> None:
    text = '[[listener]]\nlisten = "host:10002"\ntransport = "nosasl"\ntls_certificate = "c"\ntls_key = "k"\n'
    found = load(written(tmp_path, text)).listeners()
    assert found == (
        Listener(Address("127.0.0.1", 10001)),
        Listener(Address("host", 10002), Transport.NOSASL, ListenerTls(Path("c"), Path("k"))),
    )


def test_each_side_has_a_path_of_its_own_over_http(tmp_path: Path) -> None:
    text = """
        [[listener]]
        listen = "host:10002"
        transport = "http"
        http_path = "/sql/here"
        [backend]
        transport = "http"
    """
    config = load(written(tmp_path, text))
    assert config.listeners()[1].path == "/sql/here"
    assert config.backend.to_upstream().path == "/cliservice"


def transports(folder: Path, listener: str, backend: str) -> Config:
    """A configuration with one listener that speaks this, before a backend that speaks that."""
    text = f'[proxy]\nlisten = ""\n[[listener]]\nlisten = "host:1"\ntransport = "{listener}"\n'
    return load(written(folder, f'{text}[backend]\ntransport = "{backend}"\n'))


@pytest.mark.parametrize("backend", ["sasl", "nosasl", "http"])
def test_a_listener_speaks_what_the_backend_speaks_or_http(tmp_path: Path, backend: str) -> None:
    for listener in (backend, "http"):
        transports(tmp_path, listener, backend).expect_one_transport()


RULE = 'a listener speaks what the backend speaks, or "http"'


@pytest.mark.parametrize(
    ("listener", "backend"), [("sasl", "nosasl"), ("nosasl", "sasl"), ("sasl", "http"), ("nosasl", "http")]
)
def test_a_listener_that_speaks_another_transport_is_refused_with_both_keys(
    tmp_path: Path, listener: str, backend: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        transports(tmp_path, listener, backend).expect_one_transport()
    keys = f'listener host:1: transport is "{listener}" and backend.transport is "{backend}"'
    assert str(refused.value) == f"{keys}: {RULE}. Set both to the same"


@pytest.mark.parametrize("backend", ["nosasl", "http"])
def test_proxy_listen_speaks_sasl_and_is_refused_before_another_backend(backend: str) -> None:
    config = load(None, (f"backend.transport={backend}",))
    with pytest.raises(ConfigError) as refused:
        config.expect_one_transport()
    keys = f'proxy.listen is 127.0.0.1:10001, which speaks "sasl", and backend.transport is "{backend}"'
    advice = f'Set proxy.listen = "" and add a [[listener]] with transport = "{backend}"'
    assert str(refused.value) == f"{keys}: {RULE}. {advice}"


def test_a_check_of_the_settings_ends_without_serving(tmp_path: Path) -> None:
    path = written(tmp_path, '[proxy]\nlisten = "127.0.0.1:1"\n')
    checked = CliRunner().invoke(main, ["serve", "--check", "--config", str(path)])
    assert (checked.exit_code, checked.output) == (0, "starpruner: the settings are valid\n")


def test_the_proxy_does_not_start_where_transports_disagree() -> None:
    started = CliRunner().invoke(main, ["serve", "--set", "backend.transport=http", "--listen", "127.0.0.1:0"])
    assert started.exit_code == 1
    assert RULE in started.output


@pytest.mark.parametrize("index", ["", "starpruner.file_index", "lake.starpruner.file-index"])
def test_the_file_index_is_named_with_its_database(index: str) -> None:
    assert load(None, (f"files.index={index}",)).files.index == index


def test_without_proxy_listen_the_listeners_stand_alone(tmp_path: Path) -> None:
    text = '[proxy]\nlisten = ""\n[[listener]]\nlisten = "host:10002"\n'
    assert load(written(tmp_path, text)).listeners() == (Listener(Address("host", 10002)),)


def test_the_backend_speaks_what_its_section_says() -> None:
    upstream = load(
        None, ("backend.tls=true", "backend.transport=nosasl", "backend.tls_ca=ca")
    ).backend.to_upstream()
    assert upstream == UpstreamSection(Transport.NOSASL, UpstreamTls(Path("ca")))


def test_whom_a_login_may_act_for_is_a_list_of_names() -> None:
    assert load(None, ('proxy_users.hue=["anna", "*"]',)).proxy_users == {"hue": ("anna", "*")}


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("rewrite.enabled", "--set rewrite.enabled: expected section.key=value"),
        ("enabled=false", "--set enabled=false: expected section.key=value"),
        ("rewrite.enabled=perhaps", "--set: rewrite.enabled: Expected `bool`"),
        ("rewrite.key_rows_max=many", "--set: rewrite.key_rows_max: Expected `int`"),
        ("rewrite.nothing=1", "--set: rewrite.nothing: there is no such key"),
    ],
)
def test_a_wrong_override_is_refused_with_a_sentence_that_names_it(override: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(None, (override,))
    assert sentence in str(refused.value)


def test_secrets_are_a_second_file_over_the_first(tmp_path: Path) -> None:
    path = written(tmp_path, '[health]\nuser = "probe"\npassword = "known"\n')
    secrets = tmp_path / "secrets.toml"
    secrets.write_text('[health]\npassword = "hidden"\n[zookeeper]\npassword = "too"\n', encoding="utf-8")
    config = load(path, ("zookeeper.password=set",), secrets=secrets)
    assert (config.health.user, config.health.password, config.zookeeper.password) == ("probe", "hidden", "set")


def test_all_faults_are_told_at_once_and_no_value_that_may_be_a_secret(tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(
        '[rewrite]\nmetastor = "hms"\nmode = "rewrit"\n[admin]\nusers = { ann = "open sesame" }\n[proxi]\nx = 1\n',
        encoding="utf-8",
    )
    with pytest.raises(ConfigError) as refused:
        load(path)
    assert str(refused.value).splitlines() == [
        f"{path}: ",
        "  rewrite.metastor: there is no such key; rewrite.metastore is the nearest",
        "  rewrite.mode: Invalid enum value 'rewrit', expected 'rewrite' or 'shadow'",
        "  admin.users[...]: Expected a line as `starpruner hash-password` prints it",
        "  proxi: there is no such section; proxy is the nearest",
    ]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            OSError(98, "error while attempting to bind on address ('::1', 80, 0, 0): in use"),
            "cannot listen on [::1]:80",
        ),
        (OSError(2, "No such file or directory", "/tls.pem"), "[Errno 2] No such file or directory: '/tls.pem'"),
        (ConfigError("proxy.backends: none"), "proxy.backends: none"),
    ],
)
def test_the_error_of_a_start_names_the_address_as_the_settings_write_it(error: Exception, expected: str) -> None:
    assert start_error(error).startswith(expected)


def test_a_port_that_cannot_be_listened_on_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for workers in ("1", "2"):
            options = ("--backend", "localhost:1", "--admin", "127.0.0.1:0", "--set", f"proxy.workers={workers}")
            ended = CliRunner().invoke(main, ["serve", "--listen", f"127.0.0.1:{port}", *options])
            assert (
                ended.output.splitlines()[-1]
                == f"Error: cannot listen on 127.0.0.1:{port}: Address already in use"
            )


def test_each_pattern_has_words() -> None:
    """Nobody reads a regular expression to find out what is wrong with an address."""
    assert "regex" not in "".join(WORDS.values())
    schema = msgspec.json.encode(msgspec.json.schema(Config)).decode()
    patterns = {
        msgspec.json.decode(f'"{text}"') for text in re.findall(r'"pattern":"((?:[^"\\\\]|\\\\.)*)"', schema)
    }
    assert patterns == WORDS.keys()


def test_wrong_secrets_are_refused_with_the_name_of_their_file(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.toml"
    secrets.write_text('[health]\npass = "hidden"\n', encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"secrets\.toml: health\.pass: there is no such key; health\.password is the nearest"
    ):
        load(None, secrets=secrets)


def test_keys_are_held_to_one_another_across_both_files(tmp_path: Path) -> None:
    path = written(tmp_path, "[backend]\ntls = true\n")
    secrets = tmp_path / "secrets.toml"
    secrets.write_text('[backend]\ntls_certificate = "c"\ntls_key = "k"\n', encoding="utf-8")
    assert load(path, secrets=secrets).backend.to_upstream().tls == UpstreamTls(
        certificate=Path("c"), key=Path("k")
    )


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.toml: cannot be read: No such file"):
        load(tmp_path / "nothing.toml")


def test_backends_are_the_list_or_else_the_one() -> None:
    assert load(None).backend_entries() == (BackendEntry(Address("127.0.0.1", 10_000)),)
    config = load(None, ('proxy.backends=["dns:spark:10000 weight=3", "[::1]:2"]',))
    assert config.backend_entries() == (
        BackendEntry(Address("spark", 10_000), 3, is_looked_up=True),
        BackendEntry(Address("::1", 2)),
    )


def test_a_password_for_probes_is_not_printed() -> None:
    assert "hidden" not in repr(load(None, ("health.user=probe", "health.password=hidden")))


def test_an_ipv6_address_stands_in_brackets() -> None:
    assert address("[::1]:10001") == Address("::1", 10001)


def test_a_list_is_set_as_toml_has_it() -> None:
    overrides = ('rewrite.tables_off=["shop.sales", "logs.*"]',)
    assert load(None, overrides).rewrite.tables_off == ("shop.sales", "logs.*")
    with pytest.raises(ConfigError, match="is not a list as TOML has it"):
        load(None, ("rewrite.tables_off=[shop]",))
    with pytest.raises(ConfigError, match=r"rewrite\.tables_off"):
        load(None, ('rewrite.tables_off=["a.b.c.d"]',))
