"""Connections whose sides speak SASL or do without, and may differ."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from relay_dialogue import (
    ACCEPTED,
    AGAIN,
    LOGIN,
    OPERATION,
    Dialogue,
    close_session,
    execute,
    executed,
    fetch,
    get_status,
    open_session,
    operation_call,
    reply,
    session_opened,
    status_is,
)

from proxy.config.endpoints import Transport, Upstream
from proxy.operations.dispatch import Dispatch
from proxy.operations.events import SessionOpened
from proxy.operations.internal_call import Call
from proxy.relay.commands import Close, Command, ConnectBackend, StatementHeld, TurnedTransparent
from proxy.relay.connection_profile import ConnectionProfile
from proxy.relay.phases import Phase
from proxy.wire.hs2.calls import OperationState, encode_open_session, encode_operation_call, encode_refusal
from proxy.wire.sasl import SaslStatus, encode_sasl, plain_start, refusal
from proxy.wire.thrift.frames import FrameReader, frame

SASL, NOSASL = Transport.SASL, Transport.NOSASL
CONFIGURED = Upstream(user="proxy", password="secret")  # noqa: S106 - nobody's
ALL_SIDES = [
    ConnectionProfile("backend:10000", client, replace(CONFIGURED, transport=backend))
    for client in (SASL, NOSASL)
    for backend in (SASL, NOSASL)
]
FROM_CLIENT = [open_session(1), execute("SELECT 1", 2), get_status(3), fetch(4), close_session(5)]
FROM_BACKEND = [
    session_opened(1),
    executed(2),
    status_is(OperationState.RUNNING, 3),
    reply("FetchResults", 4),
    reply("CloseSession", 5),
]

every_pair = pytest.mark.parametrize(
    "sides", ALL_SIDES, ids=lambda sides: f"{sides.client.value}-{sides.upstream.transport.value}"
)
cuts = st.lists(st.integers(min_value=0, max_value=10_000), max_size=30)


def written(transport: Transport, messages: Iterable[bytes]) -> bytes:
    """Messages, which come in frames, as a side that speaks this writes them."""
    return b"".join(message if transport is SASL else message[4:] for message in messages)


def chunked(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(stream) + 1) for cut in cuts})
    return [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True)]


def in_one_frame(stream: bytes) -> bytes:
    """What the frames of a stream hold, in one."""
    frames = FrameReader(frame_bytes_max=10_000)
    frames.feed(stream)
    return frame(b"".join(iter(frames.next_frame, None)))


def logged_in(sides: ConnectionProfile) -> Dialogue:
    """A dialogue past the opening, whatever that is."""
    dialogue = Dialogue(sides=sides)
    first = LOGIN if sides.client is SASL else b"\x80"
    assert dialogue.client(first) == [ConnectBackend()]
    dialogue.carry_out(dialogue.relay.backend_connected())
    if sides.upstream.transport is SASL:
        dialogue.backend(ACCEPTED)
    assert dialogue.client_got() == (ACCEPTED if sides.client is SASL else b"")
    dialogue.backend_got()
    return dialogue


def call(dialogue: Dialogue, sides: ConnectionProfile, *messages: bytes) -> list[Command]:
    """The client's calls; `logged_in` has sent the first byte of one without frames."""
    stream = written(sides.client, messages)
    if sides.client is NOSASL and messages[0] == open_session(1):
        stream = stream[1:]
    return dialogue.client(stream)


def in_session(sides: ConnectionProfile) -> Dialogue:
    dialogue = logged_in(sides)
    call(dialogue, sides, open_session(1))
    dialogue.backend(written(sides.upstream.transport, [session_opened(1)]))
    dialogue.client_got()
    dialogue.backend_got()
    return dialogue


def release_all(dialogue: Dialogue, commands: list[Command]) -> None:
    while any(isinstance(command, StatementHeld) for command in commands):
        commands = dialogue.carry_out(dialogue.relay.release(Dispatch("SELECT 2", may_fall_back=True)))


@every_pair
@given(client_cuts=cuts, cuts=cuts)
def test_the_same_messages_go_on_whatever_both_sides_speak_and_in_any_chunks(
    sides: ConnectionProfile, client_cuts: list[int], cuts: list[int]
) -> None:
    dialogue = logged_in(sides)
    stream = written(sides.client, FROM_CLIENT)
    for chunk in chunked(stream[1:] if sides.client is NOSASL else stream, client_cuts):
        release_all(dialogue, dialogue.client(chunk))
    for chunk in chunked(written(sides.upstream.transport, FROM_BACKEND), cuts):
        dialogue.backend(chunk)
    sent = [execute("SELECT 2", 2) if call == execute("SELECT 1", 2) else call for call in FROM_CLIENT]
    assert dialogue.backend_got() == written(sides.upstream.transport, sent)
    got, expected = dialogue.client_got(), written(sides.client, FROM_BACKEND)
    if (sides.client, sides.upstream.transport) == (SASL, NOSASL):
        # Where the frames end is up to the chunks.
        got, expected = in_one_frame(got), in_one_frame(expected)
    assert got == expected


@every_pair
def test_a_query_of_our_own_stays_between_us_and_the_backend(sides: ConnectionProfile) -> None:
    dialogue = in_session(sides)
    call(dialogue, sides, execute("SELECT 1", 2))
    own = Call("GetInfo", 77, encode_operation_call("GetInfo", 77, OPERATION), reply_bytes_max=1000)
    dialogue.carry_out(dialogue.relay.ask(own))
    assert dialogue.backend_got() == written(sides.upstream.transport, [frame(own.message)])
    dialogue.backend(written(sides.upstream.transport, [reply("GetInfo", 77)]))
    assert dialogue.client_got() == b""
    assert dialogue.relay.phase is Phase.HELD


@every_pair
def test_a_failed_statement_is_run_again_and_the_client_sees_the_second_run(sides: ConnectionProfile) -> None:
    dialogue, backend = in_session(sides), sides.upstream.transport
    release_all(dialogue, call(dialogue, sides, execute("SELECT 1", 2)))

    def answered(*replies: bytes) -> bytes:
        dialogue.backend(written(backend, replies))
        return dialogue.backend_got()

    answered(executed(2))
    call(dialogue, sides, get_status(3))
    dialogue.backend_got()
    assert answered(status_is(OperationState.ERROR, 3, "it failed")) == written(backend, [execute("SELECT 1", 2)])
    assert answered(executed(2, AGAIN)) == written(backend, [operation_call("CloseOperation")])
    assert answered(reply("CloseOperation")) == written(backend, [get_status(3, AGAIN)])
    answered(status_is(OperationState.RUNNING, 3))
    seen = [executed(2), status_is(OperationState.RUNNING, 3)]
    assert dialogue.client_got() == written(sides.client, seen)


@every_pair
def test_a_finished_status_is_answered_without_the_backend(sides: ConnectionProfile) -> None:
    dialogue = in_session(sides)
    call(dialogue, sides, get_status(3))
    dialogue.backend(written(sides.upstream.transport, [status_is(OperationState.FINISHED, 3)]))
    dialogue.backend_got()
    dialogue.client_got()
    call(dialogue, sides, get_status(4))
    assert dialogue.backend_got() == b""
    assert dialogue.client_got() == written(sides.client, [status_is(OperationState.FINISHED, 4)])


@every_pair
def test_a_backend_that_answers_no_call_is_left_alone_only_where_its_bytes_mean_something_to_the_client(
    sides: ConnectionProfile,
) -> None:
    dialogue = in_session(sides)
    surprise = written(sides.upstream.transport, [reply("Surprise")])
    (outcome,) = dialogue.backend(surprise)
    if sides.framing.is_same:
        assert isinstance(outcome, TurnedTransparent)
        assert dialogue.client_got() == surprise
    else:
        assert isinstance(outcome, Close)
        assert dialogue.client_got() == b""


@every_pair
def test_the_last_words_to_a_query_of_ours_are_written_as_the_backend_reads_them(sides: ConnectionProfile) -> None:
    dialogue = in_session(sides)
    call(dialogue, sides, execute("SELECT 1", 2))
    own = Call("ExecuteStatement", 7, execute("SELECT k", 7)[4:], reply_bytes_max=1000)
    dialogue.carry_out(dialogue.relay.ask(own))
    dialogue.backend_got()
    dialogue.carry_out(dialogue.relay.close("the client closed"))
    dialogue.backend(written(sides.upstream.transport, [executed(7)]))
    ended = [operation_call("CancelOperation"), operation_call("CloseOperation")]
    assert dialogue.backend_got() == written(sides.upstream.transport, ended)


# --- openings


def test_a_client_without_sasl_opens_nothing_before_it_speaks() -> None:
    dialogue = Dialogue(sides=ConnectionProfile("backend:10000", NOSASL, Upstream(NOSASL)))
    assert dialogue.client(open_session()[4:]) == [ConnectBackend()]
    dialogue.carry_out(dialogue.relay.backend_connected())
    assert dialogue.backend_got() == open_session()[4:]


def test_a_client_without_sasl_is_logged_in_by_the_configured_name() -> None:
    dialogue = Dialogue(sides=ConnectionProfile("backend:10000", NOSASL, CONFIGURED))
    dialogue.client(open_session()[4:])
    dialogue.carry_out(dialogue.relay.backend_connected())
    assert dialogue.backend_got() == plain_start("proxy", "secret")
    dialogue.backend(ACCEPTED)
    assert dialogue.backend_got() == open_session()


@pytest.mark.parametrize(
    "answer",
    [encode_sasl(SaslStatus.BAD, b"no"), encode_sasl(SaslStatus.OK, b"more?"), b"HTTP/1.1 400 Bad Request\r\n"],
    ids=["refused", "another step", "no SASL"],
)
def test_a_backend_that_refuses_the_configured_login_is_told_to_the_client(answer: bytes) -> None:
    dialogue = Dialogue(sides=ConnectionProfile("backend:10000", NOSASL, CONFIGURED))
    dialogue.client(open_session()[4:])
    dialogue.carry_out(dialogue.relay.backend_connected())
    (closed,) = dialogue.backend(answer)
    assert isinstance(closed, Close)
    assert "the backend backend:10000" in closed.reason
    assert "secret" not in closed.reason
    assert dialogue.client_got() == encode_refusal(closed.reason)


def test_a_backend_that_is_gone_is_told_to_a_client_without_sasl() -> None:
    dialogue = Dialogue(sides=ConnectionProfile("backend:10000", NOSASL, CONFIGURED))
    dialogue.client(open_session()[4:])
    (closed,) = dialogue.carry_out(dialogue.relay.backend_failed("no route"))
    assert closed == Close("Starpruner cannot reach the backend backend:10000: no route")
    assert dialogue.client_got() == encode_refusal(closed.reason)


@pytest.mark.parametrize(
    ("first", "hint"), [(LOGIN, "got 0x01, as SASL has it"), (b"\x16\x03\x01", "got 0x16, as TLS has it")]
)
def test_who_speaks_something_else_on_a_port_without_sasl_is_told_so(first: bytes, hint: str) -> None:
    dialogue = Dialogue(sides=ConnectionProfile("backend:10000", NOSASL, CONFIGURED))
    (closed,) = dialogue.client(first)
    assert isinstance(closed, Close)
    assert closed.reason.endswith(hint)
    assert dialogue.client_got() == refusal(closed.reason)


@pytest.mark.parametrize(
    ("first", "hint"), [(open_session()[4:], "as NOSASL has it"), (b"\x16\x03\x01", "as TLS has it")]
)
def test_who_speaks_something_else_on_a_port_with_sasl_is_told_so(first: bytes, hint: str) -> None:
    (closed,) = Dialogue().client(first)
    assert isinstance(closed, Close)
    assert closed.reason.endswith(hint)


def test_for_a_backend_without_sasl_the_negotiation_is_answered_once_it_is_there() -> None:
    dialogue = Dialogue(sides=ConnectionProfile("backend:10000", SASL, Upstream(NOSASL)))
    assert dialogue.client(LOGIN) == [ConnectBackend()]
    assert dialogue.client_got() == b""
    dialogue.carry_out(dialogue.relay.backend_connected())
    assert (dialogue.backend_got(), dialogue.client_got()) == (b"", ACCEPTED)


@pytest.mark.parametrize(
    ("login", "complaint"),
    [
        (encode_sasl(SaslStatus.START, b"GSSAPI"), "expected the mechanism PLAIN, got GSSAPI"),
        (encode_sasl(SaslStatus.START, b"\n\n"), "got an unknown mechanism"),
        (encode_sasl(SaslStatus.OK, b"PLAIN"), "expected a SASL START message, got OK"),
    ],
)
def test_a_login_that_a_backend_without_sasl_has_no_use_for_is_refused(login: bytes, complaint: str) -> None:
    dialogue = Dialogue(sides=ConnectionProfile("backend:10000", SASL, Upstream(NOSASL)))
    (closed,) = dialogue.client(login)
    assert isinstance(closed, Close)
    assert closed.reason.endswith(complaint)
    assert dialogue.client_got() == encode_sasl(SaslStatus.BAD, closed.reason.encode())


def test_a_response_that_names_nobody_is_refused() -> None:
    dialogue = Dialogue(sides=ConnectionProfile("backend:10000", SASL, Upstream(NOSASL)))
    dialogue.client(encode_sasl(SaslStatus.START, b"PLAIN"))
    (closed,) = dialogue.client(encode_sasl(SaslStatus.COMPLETE, b"\0\0pw"))
    assert isinstance(closed, Close)
    assert dialogue.client_got().startswith(b"\3")


def test_a_backend_without_sasl_that_speaks_first_is_not_believed() -> None:
    dialogue = Dialogue(sides=ConnectionProfile("backend:10000", SASL, Upstream(NOSASL)))
    dialogue.client(encode_sasl(SaslStatus.START, b"PLAIN"))
    dialogue.carry_out(dialogue.relay.backend_connected())
    (closed,) = dialogue.backend(b"220 mail.example.org\r\n")
    assert isinstance(closed, Close)


@pytest.mark.parametrize("named", ["", "root"])
def test_a_backend_without_sasl_hears_who_has_logged_in_and_not_whom_the_call_names(named: str) -> None:
    dialogue = logged_in(ConnectionProfile("backend:10000", SASL, Upstream(NOSASL)))
    dialogue.client(frame(encode_open_session(1, named, "", {"use:database": "x"})))
    assert dialogue.backend_got() == encode_open_session(1, "user", "", {"use:database": "x"})


def test_a_session_without_a_login_belongs_to_whom_the_call_names() -> None:
    sides = ConnectionProfile("backend:10000", NOSASL, Upstream(NOSASL))
    dialogue = logged_in(sides)
    call(dialogue, sides, open_session(1))
    (opened,) = dialogue.backend(session_opened(1)[4:])
    assert isinstance(opened, SessionOpened)
    assert opened.user == "user"
    assert dialogue.relay.credentials == b""


def test_another_mechanism_is_named_where_it_is_passed_on_unread() -> None:
    dialogue = Dialogue()
    dialogue.client(encode_sasl(SaslStatus.START, b"GSSAPI"))
    (transparent,) = dialogue.carry_out(dialogue.relay.backend_connected())
    assert isinstance(transparent, TurnedTransparent)
    assert transparent.by_login
    assert transparent.reason.startswith("the login is by GSSAPI, not by PLAIN")
