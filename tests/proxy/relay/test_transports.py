"""Connections whose sides speak SASL or do without."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.relay_dialogue import (
    ACCEPTED,
    AGAIN,
    LOGIN,
    OUR_CALL,
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
from test_relay import connected

from proxy.config.endpoints import Transport
from proxy.operations.dispatch import Dispatch
from proxy.operations.events import SessionOpened
from proxy.operations.internal_call import Call
from proxy.relay.commands import BackendReply, Close, Command, ConnectBackend, StatementHeld, TurnedTransparent
from proxy.relay.connection_profile import ConnectionProfile
from proxy.relay.phases import Phase
from proxy.wire.hs2.calls import OperationState, encode_failure, encode_refusal
from proxy.wire.sasl import PLAIN, SaslStatus, encode_sasl, refusal
from proxy.wire.thrift.errors import LocalProtocolError
from proxy.wire.thrift.frames import frame

SASL, NOSASL = Transport.SASL, Transport.NOSASL
FROM_CLIENT = [open_session(1), execute("SELECT 1", 2), get_status(3), fetch(4), close_session(5)]
FROM_BACKEND = [
    session_opened(1),
    executed(2),
    status_is(OperationState.RUNNING, 3),
    reply("FetchResults", 4),
    reply("CloseSession", 5),
]

either = pytest.mark.parametrize("transport", [SASL, NOSASL], ids=["sasl", "nosasl"])
cuts = st.lists(st.integers(min_value=0, max_value=10_000), max_size=30)


def written(transport: Transport, messages: Iterable[bytes]) -> bytes:
    """Messages, which come in frames, as a side that speaks this writes them."""
    return b"".join(message if transport is SASL else message[4:] for message in messages)


def chunked(stream: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({cut % (len(stream) + 1) for cut in cuts})
    return [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True)]


def unopened(transport: Transport) -> Dialogue:
    return Dialogue(sides=ConnectionProfile("backend:10000", transport))


def logged_in(transport: Transport) -> Dialogue:
    """A dialogue past the opening, whatever that is."""
    dialogue = unopened(transport)
    assert dialogue.client(LOGIN if transport is SASL else b"\x80") == [ConnectBackend()]
    dialogue.carry_out(dialogue.relay.backend_connected())
    if transport is SASL:
        dialogue.backend(ACCEPTED)
    assert dialogue.client_got() == (ACCEPTED if transport is SASL else b"")
    dialogue.backend_got()
    return dialogue


def call(dialogue: Dialogue, transport: Transport, *messages: bytes) -> list[Command]:
    """The client's calls; `logged_in` has sent the first byte of one without frames."""
    stream = written(transport, messages)
    if transport is NOSASL and messages[0] == open_session(1):
        stream = stream[1:]
    return dialogue.client(stream)


def in_session(transport: Transport) -> Dialogue:
    dialogue = logged_in(transport)
    call(dialogue, transport, open_session(1))
    dialogue.backend(written(transport, [session_opened(1)]))
    dialogue.client_got()
    dialogue.backend_got()
    return dialogue


def release_all(dialogue: Dialogue, commands: list[Command]) -> None:
    while any(isinstance(command, StatementHeld) for command in commands):
        commands = dialogue.carry_out(dialogue.relay.release(Dispatch("SELECT 2", may_fall_back=True)))


@either
@given(client_cuts=cuts, cuts=cuts)
def test_the_same_messages_go_on_whatever_is_spoken_and_in_any_chunks(
    transport: Transport, client_cuts: list[int], cuts: list[int]
) -> None:
    dialogue, stream = unopened(transport), written(transport, FROM_CLIENT)
    login, accepted = (LOGIN, ACCEPTED) if transport is SASL else (b"", b"")
    for chunk in chunked(login or stream[:1], client_cuts):
        dialogue.client(chunk)
    dialogue.carry_out(dialogue.relay.backend_connected())
    for chunk in chunked(accepted, cuts):
        dialogue.backend(chunk)
    for chunk in chunked(stream if login else stream[1:], client_cuts):
        release_all(dialogue, dialogue.client(chunk))
    for chunk in chunked(written(transport, FROM_BACKEND), cuts):
        dialogue.backend(chunk)
    sent = [execute("SELECT 2", 2) if call == execute("SELECT 1", 2) else call for call in FROM_CLIENT]
    assert dialogue.backend_got() == login + written(transport, sent)
    assert dialogue.client_got() == accepted + written(transport, FROM_BACKEND)


@either
def test_queries_of_our_own_run_while_a_statement_is_held_and_stay_unseen(transport: Transport) -> None:
    dialogue = in_session(transport)
    call(dialogue, transport, execute("SELECT 1", 2))
    dialogue.carry_out(dialogue.relay.ask(OUR_CALL))
    assert dialogue.backend_got() == written(transport, [frame(OUR_CALL.message)])
    ours = reply("GetInfo", 77)
    assert dialogue.backend(written(transport, [ours])) == [BackendReply(ours[4:])]
    assert dialogue.relay.phase is Phase.HELD
    dialogue.carry_out(dialogue.relay.release())
    dialogue.backend(written(transport, [executed(2)]))
    assert dialogue.client_got() == written(transport, [executed(2)])


@either
def test_a_failed_statement_falls_back_and_the_client_sees_the_second_run(transport: Transport) -> None:
    dialogue = in_session(transport)
    release_all(dialogue, call(dialogue, transport, execute("SELECT 1", 2)))

    def answered(*replies: bytes) -> bytes:
        dialogue.backend(written(transport, replies))
        return dialogue.backend_got()

    answered(executed(2))
    call(dialogue, transport, get_status(3))
    dialogue.backend_got()
    assert answered(status_is(OperationState.ERROR, 3, "it failed")) == written(
        transport, [execute("SELECT 1", 2)]
    )
    assert answered(executed(2, AGAIN)) == written(transport, [operation_call("CloseOperation")])
    assert answered(reply("CloseOperation")) == written(transport, [get_status(3, AGAIN)])
    answered(status_is(OperationState.RUNNING, 3))
    seen = [executed(2), status_is(OperationState.RUNNING, 3)]
    assert dialogue.client_got() == written(transport, seen)


@either
def test_a_finished_status_is_answered_without_the_backend(transport: Transport) -> None:
    dialogue = in_session(transport)
    call(dialogue, transport, get_status(3))
    dialogue.backend(written(transport, [status_is(OperationState.FINISHED, 3)]))
    dialogue.backend_got()
    dialogue.client_got()
    call(dialogue, transport, get_status(4))
    assert dialogue.backend_got() == b""
    assert dialogue.client_got() == written(transport, [status_is(OperationState.FINISHED, 4)])


@either
def test_a_backend_that_answers_no_call_is_left_alone_and_so_is_what_follows(transport: Transport) -> None:
    dialogue = in_session(transport)
    surprise = written(transport, [reply("Surprise")])
    (outcome,) = dialogue.backend(surprise)
    assert isinstance(outcome, TurnedTransparent)
    assert dialogue.client_got() == surprise
    call(dialogue, transport, execute("SELECT 1", 5))
    assert dialogue.backend_got() == written(transport, [execute("SELECT 1", 5)]), "it is not held any more"


@either
def test_the_last_words_to_a_query_of_ours_are_written_as_the_backend_reads_them(transport: Transport) -> None:
    dialogue = in_session(transport)
    call(dialogue, transport, execute("SELECT 1", 2))
    own = Call("ExecuteStatement", 7, execute("SELECT k", 7)[4:], reply_bytes_max=1000)
    dialogue.carry_out(dialogue.relay.ask(own))
    dialogue.backend_got()
    dialogue.carry_out(dialogue.relay.close("the client closed"))
    dialogue.backend(written(transport, [executed(7)]))
    ended = [operation_call("CancelOperation"), operation_call("CloseOperation")]
    assert dialogue.backend_got() == written(transport, ended)


# --- openings


def test_a_client_without_sasl_opens_nothing_before_it_speaks() -> None:
    dialogue = unopened(NOSASL)
    assert dialogue.client(open_session()[4:]) == [ConnectBackend()]
    dialogue.carry_out(dialogue.relay.backend_connected())
    assert dialogue.backend_got() == open_session()[4:]


def test_a_backend_that_is_gone_is_told_to_a_client_without_sasl() -> None:
    dialogue = unopened(NOSASL)
    dialogue.client(open_session()[4:])
    (closed,) = dialogue.carry_out(dialogue.relay.backend_failed("no route"))
    assert closed == Close("Starpruner cannot reach the backend backend:10000: no route")
    assert dialogue.client_got() == encode_refusal(closed.reason)


def test_a_backend_that_closes_without_a_byte_is_told_to_a_client_that_logs_in() -> None:
    dialogue = connected()
    (closed,) = dialogue.carry_out(dialogue.relay.backend_lost("backend:10000"))
    assert isinstance(closed, Close)
    assert closed.reason.startswith("the backend backend:10000 closed the connection before it answered")
    assert dialogue.client_got() == refusal(closed.reason)


def test_a_login_that_was_not_answered_may_be_sent_to_another_backend() -> None:
    dialogue = connected()
    # A client may send its first call without waiting.
    dialogue.client(open_session())
    assert dialogue.relay.may_log_in_elsewhere
    assert dialogue.relay.log_in_elsewhere() == [ConnectBackend()]
    dialogue.carry_out(dialogue.relay.backend_connected())
    assert dialogue.backend_got() == LOGIN * 2
    dialogue.backend(ACCEPTED)
    assert dialogue.backend_got() == open_session()
    assert dialogue.client_got() == ACCEPTED


@pytest.mark.parametrize("status", [SaslStatus.START, SaslStatus.BAD, SaslStatus.ERROR])
def test_a_login_that_a_server_would_drop_without_a_word_goes_to_none(status: SaslStatus) -> None:
    dialogue = unopened(SASL)
    (closed,) = dialogue.client(encode_sasl(SaslStatus.START, PLAIN) + encode_sasl(status, b"\0ann\0secret"))
    assert isinstance(closed, Close)
    assert closed.reason.endswith(f"expected a SASL response, got {status.name}")
    assert dialogue.client_got() == refusal(closed.reason)


@pytest.mark.parametrize("heard", [ACCEPTED[:1], ACCEPTED], ids=["a byte", "its answer"])
def test_a_login_of_which_the_backend_has_said_anything_stays_with_it(heard: bytes) -> None:
    dialogue = connected()
    dialogue.backend(heard)
    assert not dialogue.relay.may_log_in_elsewhere


def test_what_is_no_login_goes_to_no_other_backend() -> None:
    unsent = unopened(SASL)
    unsent.client(LOGIN)
    without_sasl = logged_in(NOSASL)
    call(without_sasl, NOSASL, open_session(1))
    by_kerberos = unopened(SASL)
    by_kerberos.client(encode_sasl(SaslStatus.START, b"GSSAPI"))
    by_kerberos.carry_out(by_kerberos.relay.backend_connected())
    for dialogue in (unsent, without_sasl, by_kerberos):
        assert not dialogue.relay.may_log_in_elsewhere
        with pytest.raises(LocalProtocolError):
            dialogue.relay.log_in_elsewhere()


def test_a_backend_that_closes_without_a_byte_is_told_to_a_client_without_sasl() -> None:
    dialogue = logged_in(NOSASL)
    call(dialogue, NOSASL, open_session(1))
    (closed,) = dialogue.carry_out(dialogue.relay.backend_lost("backend:10000"))
    assert isinstance(closed, Close)
    assert dialogue.client_got() == encode_failure("OpenSession", 1, closed.reason, "08S01")


def test_a_client_whose_login_is_under_way_is_told_why_the_proxy_ends_it() -> None:
    dialogue = connected()
    assert dialogue.carry_out(dialogue.relay.close_with_error("no answer")) == [Close("no answer")]
    assert dialogue.client_got() == refusal("no answer")


@pytest.mark.parametrize("said", [SaslStatus.BAD, SaslStatus.OK], ids=["a refusal", "a challenge"])
def test_nothing_is_said_behind_a_word_of_the_backends_own(said: SaslStatus) -> None:
    dialogue = connected()
    dialogue.backend(encode_sasl(said, b"its words"))
    assert dialogue.carry_out(dialogue.relay.backend_lost("backend:10000")) == [
        Close("the backend backend:10000 closed")
    ]
    assert dialogue.client_got() == encode_sasl(said, b"its words")


def test_a_backend_that_closes_later_closes_the_client() -> None:
    dialogue = logged_in(SASL)
    call(dialogue, SASL, open_session(1))
    (closed,) = dialogue.carry_out(dialogue.relay.backend_lost("backend:10000"))
    assert closed == Close("the backend backend:10000 closed")
    assert dialogue.client_got() == b""


@pytest.mark.parametrize(
    ("first", "hint"), [(LOGIN, "got 0x01, as SASL has it"), (b"\x16\x03\x01", "got 0x16, as TLS has it")]
)
def test_who_speaks_something_else_on_a_port_without_sasl_is_told_so(first: bytes, hint: str) -> None:
    dialogue = unopened(NOSASL)
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


def test_a_session_without_a_login_belongs_to_whom_the_call_names() -> None:
    dialogue = logged_in(NOSASL)
    call(dialogue, NOSASL, open_session(1))
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
