"""A refused statement is answered by the proxy, in its turn, and never sent."""

from support.relay_dialogue import OPERATION, Dialogue, close_session, execute, get_status, status_is

from proxy.operations.dispatch import Dispatch, OutcomeKind, Refusal
from proxy.operations.events import StatementEnded
from proxy.relay.phases import Phase
from proxy.wire.hs2.calls import OperationState, encode_failure
from proxy.wire.thrift.frames import frame

REFUSED = Dispatch("SELECT 1", refusal=Refusal("no", "42ZSL"))
ANSWER = frame(encode_failure("ExecuteStatement", 3, "no", "42ZSL"))


def ready(request_bytes_max: int = 10_000) -> Dialogue:
    dialogue = Dialogue(request_bytes_max=request_bytes_max).open_session()
    dialogue.client_got(), dialogue.backend_got()
    return dialogue


def test_the_client_gets_an_error_and_the_backend_nothing() -> None:
    dialogue = ready()
    dialogue.client(execute("SELECT 1", 3))
    ended = [c for c in dialogue.carry_out(dialogue.relay.release(REFUSED)) if isinstance(c, StatementEnded)]
    assert [one.outcome.kind for one in ended] == [OutcomeKind.REFUSED]
    assert (dialogue.client_got(), dialogue.backend_got()) == (ANSWER, b"")
    dialogue.client(get_status(4))
    assert dialogue.backend_got() == get_status(4)


def test_a_text_past_the_request_limit_is_refused_where_the_original_is() -> None:
    dialogue = ready(request_bytes_max=500)
    dialogue.client(execute("SELECT 1", 3))
    dispatch = Dispatch("x" * 500, may_fall_back=True, original_refusal=Refusal("no", "42ZSL"))
    ended = [c for c in dialogue.carry_out(dialogue.relay.release(dispatch)) if isinstance(c, StatementEnded)]
    assert [one.outcome.kind for one in ended] == [OutcomeKind.REFUSED]
    assert (dialogue.client_got(), dialogue.backend_got()) == (ANSWER, b"")


def test_the_error_stays_behind_the_replies_that_the_client_waits_for_and_before_those_of_later_calls() -> None:
    dialogue = ready()
    dialogue.client(get_status(2) + execute("SELECT 1", 3) + get_status(4))
    dialogue.carry_out(dialogue.relay.release(REFUSED))
    assert (dialogue.client_got(), dialogue.backend_got()) == (b"", get_status(2))
    dialogue.backend(status_is(OperationState.RUNNING, 2))
    assert dialogue.client_got() == status_is(OperationState.RUNNING, 2) + ANSWER
    assert dialogue.backend_got() == get_status(4, OPERATION)


def test_a_refused_statement_is_not_sent_where_the_replies_before_it_cannot_be_read() -> None:
    dialogue = ready()
    dialogue.client(get_status(2) + execute("SELECT 1", 3) + close_session(4))
    dialogue.carry_out(dialogue.relay.release(REFUSED))
    dialogue.backend_got()
    dialogue.backend(frame(b"no reply"))
    assert dialogue.relay.phase is Phase.CLOSED
    assert dialogue.backend_got() == b""
