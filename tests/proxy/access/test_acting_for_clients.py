"""Sessions on a backend where the proxy logs in as itself: each says for whom it is."""

import pytest

from proxy.access.impersonation import Impersonation, ProxyUsers, SessionRefusal
from proxy.wire.hs2.calls import encode_open_session
from proxy.wire.hs2.open_session import PROXY_USER, proxy_user_of
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import read_header
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

RULES = Impersonation(ProxyUsers({"hue": ("bob",), "root": ("*",)}), acts_for_login=True)


def message(raw: bytes) -> Message:
    return Message(read_header(raw), raw)


def opening(settings: dict[str, str]) -> Message:
    return message(encode_open_session(1, "anybody", "password", settings))


@pytest.mark.parametrize("settings", [{}, {"a": "b"}, {"use:database": "shop", "x": ""}])
def test_the_login_is_added_behind_the_clients_settings(settings: dict[str, str]) -> None:
    admitted = RULES.check_open_session(opening(settings), "anna")
    assert isinstance(admitted, Message)
    assert admitted.raw == opening({**settings, PROXY_USER: "anna"}).raw


def test_an_allowed_other_user_stays_as_the_client_said() -> None:
    assert RULES.check_open_session(opening({PROXY_USER: "bob"}), "hue") == opening({PROXY_USER: "bob"})


@pytest.mark.parametrize(("login", "wanted"), [("anna", "bob"), ("hue", "carl"), ("anna", ""), ("anna", "Anna")])
def test_another_user_is_refused(login: str, wanted: str) -> None:
    assert isinstance(RULES.check_open_session(opening({PROXY_USER: wanted}), login), SessionRefusal)


def test_the_empty_user_of_an_administrator_is_the_login() -> None:
    # The server would take the session for the proxy's own.
    admitted = RULES.check_open_session(opening({PROXY_USER: ""}), "root")
    assert isinstance(admitted, Message)
    assert proxy_user_of(admitted) == "root"


@pytest.mark.parametrize("login", [None, ""])
def test_a_client_without_a_name_has_no_session(login: str | None) -> None:
    assert isinstance(RULES.check_open_session(opening({}), login), SessionRefusal)


def test_a_call_without_settings_gets_them() -> None:
    raw = Writer().header("OpenSession", MessageType.CALL, 1).struct(1).i32(1, 9).stop().stop().to_bytes()
    admitted = RULES.check_open_session(message(raw), "anna")
    assert isinstance(admitted, Message)
    assert proxy_user_of(admitted) == "anna"


def test_a_call_that_can_be_read_in_two_ways_is_an_error() -> None:
    settings = bytes([Kind.STRING, Kind.I32]) + (1).to_bytes(4) + (1).to_bytes(4) + b"a" + bytes(4)
    body = Writer().header("OpenSession", MessageType.CALL, 1).struct(1).raw(4, Kind.MAP, settings)
    with pytest.raises(RemoteProtocolError):
        RULES.check_open_session(message(body.stop().stop().to_bytes()), "anna")
    with pytest.raises(RemoteProtocolError, match="no request"):
        RULES.check_open_session(
            message(Writer().header("OpenSession", MessageType.CALL, 1).stop().to_bytes()), "a"
        )
