"""Tickets belong to the principal that logged in, whatever its short name is. Without a KDC."""

from dataclasses import dataclass

import pytest

from proxy.config.kerberos import KerberosSection
from proxy.kerberos import client_logins
from proxy.kerberos.client_login import GssapiLogin
from proxy.kerberos.context import Unwrapped
from proxy.kerberos.delegation import ClientTickets, DelegatedCredentials, login_of, name_of_owner
from proxy.kerberos.errors import KerberosError
from proxy.kerberos.name_rules import NameRules
from proxy.kerberos.principals import parse_principal
from proxy.kerberos.protection import Protection, encode_offer
from proxy.upstream.http_headers import CallerHeaders
from proxy.wire.sasl import plain_response, plain_user

ACTING = parse_principal("starpruner/localhost@REALM")
ANNA, BOB = parse_principal("anna@REALM"), parse_principal("bob@REALM")


@dataclass
class Forwarded:
    """Credentials of python-gssapi, as far as the login looks at them."""

    name: str


class AnnasContext:
    """The context of a server in which anna has logged in with one token."""

    can_check_integrity = can_encrypt = knows_peer = is_complete = True
    initiator = "anna@REALM"

    def __init__(self, forwarded: str) -> None:
        self.delegated = Forwarded(forwarded)

    def step(self, token: bytes) -> bytes:
        del token
        return b""

    def wrap(self, data: bytes, *, encrypts: bool) -> bytes:
        del encrypts
        return data

    def unwrap(self, token: bytes) -> Unwrapped:
        return Unwrapped(token, was_encrypted=False)

    def data_bytes_max(self, token_bytes_max: int, *, encrypts: bool) -> int:
        del encrypts
        return token_bytes_max


def logged_in(forwarded: str) -> bytes:
    login = GssapiLogin(
        lambda: AnnasContext(forwarded), {Protection.AUTH}, NameRules(["DEFAULT"], "REALM"), 1_000, ACTING
    )
    _ = login.step(b"a token")
    # The one protection, and no length of tokens, as RFC 4752 has them without a layer.
    found = login.step(bytes([encode_offer({Protection.AUTH})[0], 0, 0, 0]))
    credentials: bytes = found.credentials  # type: ignore[union-attr]
    return credentials


def test_a_client_acts_by_its_own_tickets_alone() -> None:
    assert plain_user(logged_in("anna@REALM")) == "anna"
    with pytest.raises(KerberosError, match="anna@REALM has forwarded tickets of bob@REALM"):
        _ = logged_in("bob@REALM")


def test_over_http_too(monkeypatch: pytest.MonkeyPatch) -> None:
    section = KerberosSection(
        principal=str(ACTING), keytab="/dev/null", backend_principal="hive/spark@REALM", act_by="delegation"
    )
    logins = section.client_logins("localhost", 1_000)
    assert logins is not None
    monkeypatch.setattr(client_logins, "acceptor_context", lambda *_, **__: AnnasContext("bob@REALM"))
    with pytest.raises(KerberosError, match="anna@REALM has forwarded tickets of bob@REALM"):
        _ = logins.credentials_with_ticket(b"a token")
    monkeypatch.setattr(client_logins, "acceptor_context", lambda *_, **__: AnnasContext("anna@REALM"))
    credentials, _ = logins.credentials_with_ticket(b"a token")
    assert name_of_owner(credentials) == b"anna@REALM"


def test_requests_are_owned_by_the_principal_and_by_no_header() -> None:
    annas, bobs = (
        DelegatedCredentials.with_tickets("shared", ClientTickets(client, ACTING, None)) for client in (ANNA, BOB)
    )
    basic = ("Authorization", "Basic YW5uYTphbm5h")
    cookie = ("Cookie", "hive.server2.auth=cu=anna&rn=1&s=x=")
    callers = [
        CallerHeaders.from_request("", headers, bobs) for headers in ([], [basic], [cookie], [basic, cookie])
    ]
    owner = callers[0].owner_digest(b"key")
    for caller in callers:
        assert caller.login == "shared"
        assert caller.claimed_users == {"bob@REALM"}
        assert caller.credentials is bobs
        assert caller.owner_digest(b"key") == caller.owner_digest_without_cookie(b"key") == owner
        assert "bob" not in repr(caller)
    assert CallerHeaders.from_request("", [], annas).owner_digest(b"key") != owner
    # A word of a header is not a login.
    assert CallerHeaders.from_request("", [("", bobs.decode())]).owner_digest(b"key") != owner


def test_two_principals_of_one_short_name_share_nothing() -> None:
    annas, bobs = (
        DelegatedCredentials.with_tickets("shared", ClientTickets(client, ACTING, None)) for client in (ANNA, BOB)
    )
    assert plain_user(annas) == plain_user(bobs) == "shared"
    assert annas != bobs
    assert name_of_owner(annas) != name_of_owner(bobs)
    assert (login_of(annas), login_of(bobs)) == ("anna@REALM", "bob@REALM")


def test_a_login_is_named_by_no_other_name_than_its_own() -> None:
    assert login_of(plain_response("anna", "a"), "bob") == "anna"
    assert login_of(b"", "bob") == "bob", "the backend asks for no login"
    assert login_of(b"\0\xff\0x", "bob") == "", "it is no text"


def test_without_tickets_handles_belong_to_the_name() -> None:
    assert name_of_owner(plain_response("anna", "a")) == name_of_owner(plain_response("anna", "b")) == b"anna"
