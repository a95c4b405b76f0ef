import pytest
from support.relay_dialogue import (
    ACCEPTED,
    LOGIN,
    OUR_CALL,
    SESSION,
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

from proxy.operations.dispatch import Dispatch
from proxy.operations.events import SessionClosed, SessionOpened, StatementPassed
from proxy.operations.internal_call import Call
from proxy.relay.client_buffer import WAITING_BYTES_MAX
from proxy.relay.commands import (
    BackendReply,
    Close,
    ConnectBackend,
    LoginRefused,
    PauseClient,
    ResumeClient,
    SendBackend,
    StatementHeld,
    TurnedTransparent,
)
from proxy.relay.phases import Phase
from proxy.wire.hs2.calls import OperationState
from proxy.wire.reply_stream import PENDING_CALLS_MAX
from proxy.wire.sasl import SaslStatus, encode_sasl
from proxy.wire.thrift.errors import LocalProtocolError
from proxy.wire.thrift.frames import frame

FINISHED = OperationState.FINISHED
RUNNING = OperationState.RUNNING


@pytest.fixture
def dialogue() -> Dialogue:
    """One with a session."""
    return Dialogue().open_session()


def connected() -> Dialogue:
    """One whose login is on its way to the backend."""
    dialogue = Dialogue()
    dialogue.client(LOGIN)
    dialogue.carry_out(dialogue.relay.backend_connected())
    return dialogue


# --- the negotiation


def test_the_backend_is_connected_once_the_client_has_said_who_it_is() -> None:
    dialogue = Dialogue()
    assert dialogue.client(LOGIN[:10]) == []
    assert dialogue.client(LOGIN[10:-1]) == []
    assert dialogue.client(LOGIN[-1:]) == [ConnectBackend()]
    assert dialogue.backend_got() == b""
    dialogue.carry_out(dialogue.relay.backend_connected())
    assert dialogue.backend_got() == LOGIN


def test_calls_sent_before_the_server_accepts_wait_for_it() -> None:
    dialogue = Dialogue()
    dialogue.client(LOGIN + open_session())
    dialogue.carry_out(dialogue.relay.backend_connected())
    assert dialogue.backend_got() == LOGIN
    dialogue.backend(ACCEPTED)
    assert dialogue.backend_got() == open_session()


def test_a_challenge_is_passed_on_and_answered() -> None:
    dialogue = connected()
    challenge, answer = encode_sasl(SaslStatus.OK, b"more"), encode_sasl(SaslStatus.OK, b"this")
    dialogue.backend(challenge)
    dialogue.client(answer)
    assert dialogue.client_got() == challenge
    assert dialogue.backend_got() == LOGIN + answer


def test_a_refusal_by_the_backend_reaches_the_client_verbatim() -> None:
    dialogue = connected()
    refused = encode_sasl(SaslStatus.BAD, b"no such user")
    assert dialogue.backend(refused) == [LoginRefused()]
    assert dialogue.client_got() == refused


def test_garbage_instead_of_sasl_is_answered_with_a_sentence() -> None:
    dialogue = Dialogue()
    (close,) = dialogue.client(b"GET / HTTP/1.1\r\n\r\n")
    assert isinstance(close, Close)
    assert dialogue.client_got().startswith(b"\x04")
    assert "first byte of 0x47" in close.reason
    assert dialogue.client(b"more") == []


def test_a_backend_that_is_down_is_named_to_the_client() -> None:
    dialogue = Dialogue()
    dialogue.client(LOGIN)
    (close,) = dialogue.carry_out(dialogue.relay.backend_failed("Connection refused"))
    sentence = "Starpruner cannot reach the backend backend:10000: Connection refused"
    assert close == Close(sentence)
    assert dialogue.client_got() == encode_sasl(SaslStatus.ERROR, sentence.encode())


def test_what_becomes_of_a_backend_connection_says_nothing_once_the_client_was_refused() -> None:
    dialogue = Dialogue()
    dialogue.client(LOGIN)
    dialogue.relay.close("the client closed")
    assert dialogue.relay.backend_failed("no") == []
    assert dialogue.relay.backend_connected() == []


def test_a_mechanism_other_than_plain_is_relayed_blindly() -> None:
    dialogue = Dialogue()
    start = encode_sasl(SaslStatus.START, b"GSSAPI")
    dialogue.client(start + b"ticket")
    (turned,) = dialogue.carry_out(dialogue.relay.backend_connected())
    assert isinstance(turned, TurnedTransparent)
    dialogue.client(b"anything")
    dialogue.backend(b"at all")
    assert dialogue.backend_got() == start + b"ticketanything"
    assert dialogue.client_got() == b"at all"


# --- calls and replies


def test_calls_and_replies_pass_verbatim_in_order(dialogue: Dialogue) -> None:
    dialogue.client(fetch(5) + fetch(6))
    assert dialogue.backend_got() == fetch(5) + fetch(6)
    answers = reply("FetchResults", 5) + reply("FetchResults", 6)
    dialogue.backend(answers)
    assert dialogue.client_got() == answers
    assert not dialogue.relay.awaits_replies


def test_sessions_are_announced_when_they_open_and_close() -> None:
    dialogue = Dialogue().log_in()
    assert dialogue.client(open_session()) == []
    assert dialogue.backend(session_opened(version=5)) == [SessionOpened(SESSION, 5, {}, "user")]
    assert dialogue.client(close_session()) == [SessionClosed(SESSION)]


def test_the_credentials_of_a_client_are_kept_for_as_long_as_it_stays() -> None:
    dialogue = Dialogue()
    assert dialogue.relay.credentials is None
    assert dialogue.log_in().relay.credentials == b"\0user\0password"


def test_a_session_that_was_refused_is_not_announced() -> None:
    dialogue = Dialogue().log_in()
    dialogue.client(open_session())
    assert dialogue.backend(reply("OpenSession", status=3)) == []


def test_a_malformed_message_closes_the_connection(dialogue: Dialogue) -> None:
    (close,) = dialogue.client(frame(b"not thrift at all"))
    assert isinstance(close, Close)
    assert "expected a strict binary Thrift message" in close.reason
    assert dialogue.backend_got() == b""


def test_a_frame_past_the_limit_closes_the_connection_before_its_body_comes() -> None:
    dialogue = Dialogue(request_bytes_max=100).log_in()
    (close,) = dialogue.client(b"\x7f\xff\xff\xff")
    assert isinstance(close, Close)
    assert "announces 2147483647 bytes, at most 100" in close.reason


@pytest.mark.parametrize("last", [fetch(), execute("SELECT 1")], ids=["a call", "a statement"])
def test_a_client_that_never_waits_for_replies_is_closed(dialogue: Dialogue, last: bytes) -> None:
    for _ in range(PENDING_CALLS_MAX):
        assert dialogue.client(fetch()) == []
    (close,) = dialogue.client(last)
    assert isinstance(close, Close)


# --- held statements


def test_a_statement_is_held_until_it_is_released_as_the_original(dialogue: Dialogue) -> None:
    assert dialogue.client(execute("SELECT 1")) == [StatementHeld(SESSION, "SELECT 1")]
    assert dialogue.backend_got() == b""
    dialogue.carry_out(dialogue.relay.release())
    assert dialogue.backend_got() == execute("SELECT 1")


def test_another_text_replaces_the_statement_and_nothing_else(dialogue: Dialogue) -> None:
    dialogue.client(execute("SELECT 'é'"))
    dialogue.carry_out(dialogue.relay.release(Dispatch("SELECT '∑', 2")))
    assert dialogue.backend_got() == execute("SELECT '∑', 2")


def test_a_text_past_the_request_limit_is_not_sent() -> None:
    dialogue = Dialogue(request_bytes_max=500).open_session()
    dialogue.client(execute("SELECT 1"))
    dialogue.carry_out(dialogue.relay.release(Dispatch("x" * 500)))
    assert dialogue.backend_got() == execute("SELECT 1")


def test_a_reply_to_us_that_is_too_long_is_dropped_and_said_to_be(dialogue: Dialogue) -> None:
    dialogue.client(execute("SELECT 1"))
    call = Call(OUR_CALL.name, OUR_CALL.seqid, OUR_CALL.message, reply_bytes_max=3)
    dialogue.carry_out(dialogue.relay.ask(call))
    assert dialogue.backend(reply("GetInfo", 77)) == [BackendReply(None)]
    assert dialogue.client_got() == b""


def test_earlier_replies_still_reach_the_client_while_a_statement_is_held(dialogue: Dialogue) -> None:
    dialogue.client(fetch(2) + execute("SELECT 1", 3))
    dialogue.carry_out(dialogue.relay.ask(OUR_CALL))
    ours = reply("GetInfo", 77)
    assert dialogue.backend(reply("FetchResults", 2) + ours) == [BackendReply(ours[4:])]
    assert dialogue.client_got() == reply("FetchResults", 2)


def test_calls_behind_a_held_statement_wait_for_it(dialogue: Dialogue) -> None:
    dialogue.client(execute("SELECT 1", 2) + fetch(3))
    assert dialogue.client(execute("SELECT 2", 4)) == []
    held = dialogue.carry_out(dialogue.relay.release())
    assert held == [StatementHeld(SESSION, "SELECT 2")]
    assert dialogue.backend_got() == execute("SELECT 1", 2) + fetch(3)


def test_a_client_that_keeps_sending_behind_a_held_statement_is_paused(dialogue: Dialogue) -> None:
    dialogue.client(execute("SELECT 1", 2))
    assert dialogue.client(fetch() * (WAITING_BYTES_MAX // len(fetch()) + 1)) == [PauseClient()]
    assert dialogue.client(fetch()) == [], "paused once, not again and again"
    assert dialogue.carry_out(dialogue.relay.release())[0] == ResumeClient()


@pytest.mark.parametrize("phase", ["negotiating", "open"])
def test_nothing_can_be_asked_or_released_while_nothing_is_held(phase: str) -> None:
    dialogue = Dialogue() if phase == "negotiating" else Dialogue().open_session()
    with pytest.raises(LocalProtocolError, match=f"phase {phase}"):
        dialogue.relay.ask(OUR_CALL)
    with pytest.raises(LocalProtocolError, match=f"phase {phase}"):
        dialogue.relay.release()


# --- the status of finished operations


def with_finished_status() -> Dialogue:
    dialogue = Dialogue().open_session()
    dialogue.client(get_status(5))
    dialogue.backend(status_is(FINISHED, 5))
    dialogue.client_got()
    dialogue.backend_got()
    return dialogue


def test_a_running_status_is_asked_for_again(dialogue: Dialogue) -> None:
    dialogue.client(get_status(5))
    dialogue.backend(status_is(RUNNING, 5))
    dialogue.backend_got()
    dialogue.client(get_status(6))
    assert dialogue.backend_got() == get_status(6)


def test_an_answer_of_ours_never_overtakes_a_reply() -> None:
    dialogue = with_finished_status()
    dialogue.client(fetch(6) + get_status(7))
    assert dialogue.backend_got() == fetch(6) + get_status(7)
    assert dialogue.client_got() == b""


@pytest.mark.parametrize("call", ["CancelOperation", "CloseOperation", "CloseSession", "ExecuteStatement"])
def test_a_finished_status_is_forgotten_when_the_operation_may_have_ended(call: str) -> None:
    dialogue = with_finished_status()
    if call == "ExecuteStatement":
        dialogue.client(execute("SELECT 1", 6))
        dialogue.carry_out(dialogue.relay.release())
    else:
        dialogue.client(close_session(6) if call == "CloseSession" else operation_call(call, 6))
    dialogue.backend(reply(call, 6))
    dialogue.backend_got()
    dialogue.client(get_status(7))
    assert dialogue.backend_got() == get_status(7)


def test_a_status_overtaken_by_a_close_is_not_remembered(dialogue: Dialogue) -> None:
    dialogue.client(get_status(5) + operation_call("CloseOperation", 6))
    dialogue.backend(status_is(FINISHED, 5) + reply("CloseOperation", 6))
    dialogue.backend_got()
    dialogue.client(get_status(7))
    assert dialogue.backend_got() == get_status(7)


def test_statements_count_as_in_flight_until_they_are_closed(dialogue: Dialogue) -> None:
    dialogue.client(execute("SELECT 1", 2))
    dialogue.carry_out(dialogue.relay.release())
    dialogue.backend(executed(2))
    assert dialogue.relay.has_open_operations
    dialogue.client(operation_call("CloseOperation", 3))
    assert not dialogue.relay.has_open_operations


# --- a reply stream that is not what the calls explain


def test_a_watched_reply_to_another_call_turns_the_connection_transparent_and_loses_no_byte(
    dialogue: Dialogue,
) -> None:
    dialogue.client(get_status(5) + fetch(6)[:7])
    stream = reply("GetInfo", 5) + b"\0\0"
    (turned,) = dialogue.backend(stream)
    assert isinstance(turned, TurnedTransparent)
    assert dialogue.client_got() == stream
    dialogue.client(fetch(6)[7:])
    assert dialogue.backend_got() == get_status(5) + fetch(6)


def test_a_statement_that_nobody_is_asked_about_is_told_of_before_it_goes_on(dialogue: Dialogue) -> None:
    broken = execute("INSERT INTO d VALUES ('?')", 5).replace(b"?", b"\xff")
    (passed,) = dialogue.relay.client_data(broken)[:1]
    assert passed == StatementPassed(SESSION, "INSERT INTO d VALUES ('\ufffd')")
    dialogue = Dialogue().open_session()
    dialogue.backend(frame(b"surprise"))
    write = execute("INSERT INTO d VALUES (1)", 5)
    assert dialogue.relay.client_data(write) == [
        StatementPassed(SESSION, "INSERT INTO d VALUES (1)"),
        SendBackend(write),
    ]


def test_a_held_statement_goes_on_as_the_original_when_the_connection_turns_transparent(
    dialogue: Dialogue,
) -> None:
    dialogue.client(execute("SELECT 1", 5) + fetch(6))
    (passed, turned) = dialogue.backend(frame(b"surprise"))
    assert passed == StatementPassed(SESSION, "SELECT 1")
    assert isinstance(turned, TurnedTransparent)
    assert dialogue.backend_got() == execute("SELECT 1", 5) + fetch(6)


def test_a_broken_reply_to_a_call_of_ours_closes_the_connection(dialogue: Dialogue) -> None:
    dialogue.client(execute("SELECT 1"))
    dialogue.carry_out(dialogue.relay.ask(OUR_CALL))
    (close,) = dialogue.backend(reply("FetchResults", 77))
    assert isinstance(close, Close)
    assert "a query of the proxy's own" in close.reason
    assert dialogue.client_got() == b""
    assert dialogue.relay.phase is Phase.CLOSED


def test_an_exception_reply_to_a_watched_call_is_just_passed_on(dialogue: Dialogue) -> None:
    dialogue.client(get_status(5))
    raw = bytearray(status_is(FINISHED, 5))
    raw[7] = 3  # the message's type: EXCEPTION
    assert dialogue.backend(bytes(raw)) == []
    assert dialogue.client_got() == bytes(raw)
    assert dialogue.relay.phase is Phase.OPEN
