"""Who may act for whom, and how the call that asks for it is read."""

import struct

import pytest
from support.relay_dialogue import Dialogue, get_status, session_opened

from proxy.access.impersonation import ProxyUsers
from proxy.config.endpoints import Transport
from proxy.operations.events import SessionOpened
from proxy.relay.commands import Close, SessionRefused
from proxy.relay.connection_profile import ConnectionProfile
from proxy.wire.hs2.calls import encode_open_session
from proxy.wire.hs2.open_session import encode_open_session_refusal, proxy_user_of, user_of, with_user
from proxy.wire.hs2.replies import decode_session_reply, open_reply
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import read_header
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

PROXY_USER = "hive.server2.proxy.user"
RULES = ProxyUsers({"hue": ("anna", "bob"), "admin": ("*",), "*": ("guest",)})


def wants(user: str, seqid: int = 1) -> bytes:
    return encode_open_session(seqid, "user", "password", {"use:database": "x", PROXY_USER: user})


def message(raw: bytes) -> Message:
    return Message(read_header(raw), raw)


def request(writer: Writer) -> bytes:
    return Writer().header("OpenSession", MessageType.CALL, 1).to_bytes() + writer.stop().to_bytes()


@pytest.mark.parametrize(
    ("login", "wanted", "allowed"),
    [
        ("hue", "anna", True),
        ("hue", "eve", False),
        ("hue", "hue", True),
        ("Hue", "anna", False),
        ("hue", "*", False),
        ("admin", "anybody", True),
        ("anna", "bob", False),
        ("anna", "guest", True),
        (None, "anna", False),
        (None, "guest", True),
        ("hue", "", False),
    ],
)
def test_a_login_acts_for_whom_the_rules_name(login: str | None, wanted: str, *, allowed: bool) -> None:
    assert (RULES.refusal(login, wanted) is None) is allowed


def test_a_name_of_any_length_makes_a_short_refusal() -> None:
    refusal = RULES.refusal("hue", "x" * 1_000_000)
    assert refusal is not None
    assert len(refusal) < 300


def test_without_rules_nobody_acts_for_others() -> None:
    dialogue = Dialogue().log_in()
    (refused,) = dialogue.client(frame(wants("anna", seqid=9)))
    assert isinstance(refused, SessionRefused)
    assert dialogue.backend_got() == b""
    got = dialogue.client_got()[4:]
    header = read_header(got)
    assert (header.name, header.seqid) == ("OpenSession", 9)
    reply = decode_session_reply(open_reply(got, header))
    assert reply.session is None
    assert reply.status.code == 3
    assert reply.status.message == refused.reason
    assert "user 'user' may not act for user 'anna'" in refused.reason


def test_who_was_refused_may_open_a_session_of_his_own() -> None:
    dialogue = Dialogue().log_in()
    dialogue.client(frame(wants("anna")))
    dialogue.client_got()
    own = frame(encode_open_session(2, "user", "password", {}))
    dialogue.client(own)
    assert dialogue.backend_got() == own
    (opened,) = dialogue.backend(session_opened(2))
    assert isinstance(opened, SessionOpened)


def test_who_is_allowed_gets_through_byte_for_byte() -> None:
    dialogue = Dialogue(
        sides=ConnectionProfile("backend:10000", proxy_users=ProxyUsers({"user": ("anna",)}))
    ).log_in()
    dialogue.client(frame(wants("anna")))
    assert dialogue.backend_got() == frame(wants("anna"))


def test_who_does_not_wait_for_replies_is_refused_by_the_end_of_his_connection() -> None:
    dialogue = Dialogue().open_session()
    (closed,) = dialogue.client(get_status(2) + frame(wants("anna", seqid=3)))
    assert isinstance(closed, Close)
    assert dialogue.backend_got() == get_status(2)
    assert dialogue.client_got() == b""


def test_without_a_login_the_name_in_the_call_counts() -> None:
    rules = ProxyUsers({"user": ("anna",), "root": ("eve",)})
    sides = ConnectionProfile("backend:10000", Transport.NOSASL, rules)
    for wanted, passes in (("anna", True), ("eve", False)):
        dialogue = Dialogue(sides=sides)
        dialogue.client(wants(wanted))
        dialogue.carry_out(dialogue.relay.backend_connected())
        assert (dialogue.backend_got() == wants(wanted)) is passes


# --- what the server would read otherwise


def settings(*pairs: tuple[str, str]) -> bytes:
    texts = [text.encode() for pair in pairs for text in pair]
    body = b"".join(struct.pack(">i", len(text)) + text for text in texts)
    return struct.pack(">BBi", Kind.STRING, Kind.STRING, len(pairs)) + body


def test_of_a_setting_that_is_said_twice_the_last_counts_as_it_does_to_the_server() -> None:
    twice = Writer().raw(4, Kind.MAP, settings((PROXY_USER, "user"), (PROXY_USER, "anna"))).stop()
    assert proxy_user_of(message(request(Writer().raw(1, Kind.STRUCT, twice.to_bytes())))) == "anna"


def test_however_many_settings_there_are_all_are_looked_at() -> None:
    many = settings(*((f"set:hivevar:{n}", "x") for n in range(1000)), (PROXY_USER, "anna"))
    writer = Writer().raw(4, Kind.MAP, many).stop()
    dialogue = Dialogue(request_bytes_max=100_000).log_in()
    (refused,) = dialogue.client(frame(request(Writer().raw(1, Kind.STRUCT, writer.to_bytes()))))
    assert isinstance(refused, SessionRefused)


EMPTY = Writer().raw(4, Kind.MAP, settings()).stop().to_bytes()
HIDDEN = Writer().raw(4, Kind.MAP, settings((PROXY_USER, "anna"))).stop().to_bytes()


@pytest.mark.parametrize(
    "raw",
    [
        request(Writer().raw(1, Kind.STRUCT, EMPTY).raw(1, Kind.STRUCT, HIDDEN)),
        request(Writer().raw(1, Kind.STRUCT, EMPTY[:-1] + HIDDEN)),
        # The server reads strings whatever the map says that it holds: here, one of eight bytes each.
        request(Writer().raw(1, Kind.STRUCT, b"\x0d\0\4\x0a\x0a\0\0\0\1" + b"\0\0\0\4abcd" * 2 + b"\0")),
    ],
    ids=["two requests", "two maps", "a map that is no map of strings"],
)
def test_a_call_that_the_server_would_read_otherwise_ends_the_connection(raw: bytes) -> None:
    dialogue = Dialogue().log_in()
    (closed,) = dialogue.client(frame(raw))
    assert isinstance(closed, Close)
    assert dialogue.backend_got() == b""


# --- the bytes


def test_a_user_is_put_in_the_place_of_another_or_added() -> None:
    configuration = {"a": "b"}
    for name in ("root", ""):
        call = message(encode_open_session(1, name, "pw", configuration))
        assert with_user(call, "anna").raw == encode_open_session(1, "anna", "pw", configuration)
    nameless = message(request(Writer().raw(1, Kind.STRUCT, EMPTY)))
    named = with_user(nameless, "anna")
    assert user_of(nameless) is None
    assert user_of(named) == "anna"
    assert len(named.raw) == len(nameless.raw) + 3 + 4 + len("anna")


def test_a_call_without_a_request_stays_as_it_is() -> None:
    call = message(request(Writer()))
    assert with_user(call, "anna") is call
    assert (user_of(call), proxy_user_of(call)) == (None, None)


def test_a_refusal_is_a_reply_that_opens_no_session() -> None:
    raw = encode_open_session_refusal(7, "no")
    reply = decode_session_reply(open_reply(raw, read_header(raw)))
    assert (reply.status.code, reply.status.message, reply.status.sql_state) == (3, "no", "08S01")
    assert reply.session is None
