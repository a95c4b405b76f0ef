"""The section [kerberos]: each combination that cannot work is refused at start, with a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from proxy.config.config import load
from proxy.config.errors import ConfigError
from proxy.kerberos.principals import parse_principal

OURS = {"principal": "starpruner/_HOST@EXAMPLE.COM", "keytab": "/etc/starpruner.keytab"}
LISTENER = '[[listener]]\nlisten = "127.0.0.1:1"\nkerberos_principal = "{}"\n'
BACKEND = {"backend_principal": "hive/_HOST@EXAMPLE.COM"}


def written(path: Path, keys: dict[str, Any], more: str = "") -> Path:
    lines = (f"{key} = {json.dumps(value)}" for key, value in keys.items())
    path.write_text("[kerberos]\n" + "\n".join(lines) + f"\n{more}", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("keys", "more", "sentence"),
    [
        ({"principal": OURS["principal"]}, "", "kerberos.keytab is missing"),
        ({"keytab": "/etc/k"}, "", "keytab would do nothing: principal or backend_principal is missing"),
        ({"http_principal": "HTTP/h@R", "qop": ["auth-conf"]}, "", "http_principal, qop would do nothing"),
        ({"plain": "kdc"}, "", "plain would do nothing"),
        ({"auth_to_local": ["RULE:[1:$1]"]}, "", "auth_to_local would do nothing"),
        ({"backend_qop": "auth-conf"}, "", "backend_qop would do nothing"),
        (BACKEND | {"keytab": "/etc/k"}, "", "kerberos.own_principal is missing"),
        (BACKEND | {"keytab": "/etc/k", "own_principal": "s/h@R"}, "", "nobody could log in"),
        (OURS | {"plain": "backend"}, "", "kerberos.plain"),
        (OURS | {"act_by": "delegation"}, "", "needs kerberos.backend_principal"),
        (OURS | {"auth_to_local": ["RULE:x"]}, "", "'RULE:x' is neither DEFAULT nor RULE"),
        (OURS | {"principal": "starpruner"}, "", "'starpruner' is not a principal"),
        (OURS | {"backend_principal": "hive"}, "", "'hive' is not a principal"),
        (OURS | {"qop": []}, "", "kerberos.qop"),
        (OURS | {"qop": ["auth-all"]}, "", "kerberos.qop"),
        (OURS, LISTENER.format("nobody"), "'nobody' is not a principal"),
        ({}, LISTENER.format("a/b@R"), r"kerberos_principal needs the section \[kerberos\]"),
        (OURS, '[backend]\ntransport = "http"\n', 'backend.transport is "http"'),
        (OURS | BACKEND, '[backend]\ntransport = "nosasl"\n', 'backend.transport is "nosasl"'),
        (
            OURS | BACKEND | {"backend_qop": "auth-conf"},
            '[backend]\ntransport = "http"\n',
            "backend_qop would do nothing",
        ),
        (
            OURS | BACKEND,
            '[backend]\ntransport = "http"\n',
            "over HTTP a ticket protects neither statements nor rows",
        ),
        (OURS | BACKEND | {"cleartext_http": True}, "", "cleartext_http would do nothing"),
        (
            OURS | BACKEND | {"cleartext_http": True},
            '[backend]\ntransport = "http"\ntls = true\n',
            "cleartext_http would do nothing",
        ),
        ({"cleartext_http": True}, "", "cleartext_http would do nothing"),
    ],
)
def test_a_section_that_cannot_work_is_refused(
    tmp_path: Path, keys: dict[str, Any], more: str, sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load(written(tmp_path / "starpruner.toml", keys, more))


@pytest.mark.parametrize(("keys", "more"), [({"cleartext_http": True}, ""), ({}, "tls = true\n")])
def test_a_backend_over_http_has_tls_or_a_network_that_is_trusted(
    tmp_path: Path, keys: dict[str, Any], more: str
) -> None:
    section = written(
        tmp_path / "starpruner.toml", OURS | BACKEND | keys, f'[backend]\ntransport = "http"\n{more}'
    )
    assert load(section).upstream().kerberos is not None


def test_without_the_section_logins_pass() -> None:
    config = load(None)
    assert config.kerberos.client_logins("host", 1024) is None
    assert config.upstream().kerberos is None


def test_our_name_on_this_host_is_for_clients_and_for_backends(tmp_path: Path) -> None:
    config = load(written(tmp_path / "starpruner.toml", OURS | BACKEND))
    logins, backend = config.kerberos.client_logins("This.Host", 1024), config.upstream().kerberos
    assert logins is not None
    assert logins.service is not None
    assert str(logins.service.principal) == "starpruner/this.host@EXAMPLE.COM"
    assert backend is not None
    assert str(backend.own.at_host("This.Host").principal) == "starpruner/this.host@EXAMPLE.COM"
    assert str(backend.principal.at_host("spark-1")) == "hive/spark-1@EXAMPLE.COM"


def test_a_listener_may_have_a_principal_of_its_own(tmp_path: Path) -> None:
    path = written(tmp_path / "starpruner.toml", OURS, LISTENER.format("hive/balancer@OTHER.COM"))
    config = load(path)
    first, second = (config.client_logins(listener, "here") for listener in config.listeners())
    assert first is not None
    assert second is not None
    assert str(first.service and first.service.principal) == "starpruner/here@EXAMPLE.COM"
    assert str(second.service and second.service.principal) == "hive/balancer@OTHER.COM"
    # The realm whose names DEFAULT cuts stays.
    assert second.rules.short_name(parse_principal("anna@EXAMPLE.COM")) == "anna"


def test_clients_with_passwords_alone_need_no_principal_of_ours_for_them(tmp_path: Path) -> None:
    keys = BACKEND | {"plain": "kdc", "own_principal": "s/h@R", "keytab": "/etc/k"}
    logins = load(written(tmp_path / "starpruner.toml", keys)).kerberos.client_logins("host", 1024)
    assert logins is not None
    assert logins.service is None
    assert logins.http_service is None
