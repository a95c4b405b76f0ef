"""One call of a client over HTTP and its reply, beside other calls about the same statement."""

from collections.abc import Callable

import pytest
from support.relay_dialogue import (
    AGAIN,
    SESSION,
    execute,
    execute_and_wait,
    executed,
    fetch,
    get_status,
    metadata_is,
    operation_call,
    reply,
    status_is,
)

from proxy.access.handle_access import HandleAccess
from proxy.access.handle_owners import LocalHandleOwners
from proxy.http.exchange import CallerRecords, Exchange, Step, Steps
from proxy.operations.dispatch import Dispatch, Outcome, OutcomeKind, Premises
from proxy.operations.events import StatementEnded, StatementPassed
from proxy.operations.fallback_policy import FallbackPolicy, refusal
from proxy.operations.internal_call import Call
from proxy.operations.operation_aliases import LocalOperationAliases
from proxy.operations.tracked_statements import TrackedStatement, TrackedStatements
from proxy.relay.commands import Command
from proxy.wire.hs2.calls import OperationState, encode_failure, encode_still_running
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import read_header
from proxy.wire.thrift.types import MessageType
from proxy.wire.thrift.writer import Writer

FINISHED, RUNNING, ERROR = OperationState.FINISHED, OperationState.RUNNING, OperationState.ERROR
NOT_YET = "Expected state FINISHED, but found RUNNING"


def message(framed: bytes) -> Message:
    return Message(read_header(framed[4:]), framed[4:])


def call_of(step: Step) -> Call:
    assert isinstance(step, Call)
    return step


class Talk:
    """One call on its way: what it sends next, or what the client gets."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.answer: bytes | None = None
        self.is_over = False
        self.sends = call_of(next(steps)).message

    def hears(self, framed: bytes | None) -> "Talk":
        """The backend replies; None is a reply too long to be read."""
        try:
            self.sends = call_of(self.steps.send(None if framed is None else framed[4:])).message
        except StopIteration as end:
            self.answer, self.is_over, self.sends = end.value, True, b""
        return self


class Stage:
    """Whatever one client calls, about one rewritten statement."""

    def __init__(self, tracked_statements: TrackedStatements) -> None:
        self.told: list[Command] = []
        self.tracked_statements = tracked_statements
        self.is_session_unchanged = True
        handle_access = HandleAccess(LocalHandleOwners(), "backend:10000", passes_unknown=True)
        memory = CallerRecords(tracked_statements, handle_access, lambda: 11.0)
        policy = FallbackPolicy(tracked_statements, lambda: 11.0, 5.0)
        self.exchange = Exchange(memory, policy, self.told.extend)

    @property
    def outcomes(self) -> list[Outcome]:
        return [command.outcome for command in self.told if isinstance(command, StatementEnded)]

    def tracked(self, original: bytes, *, run_async: bool) -> TrackedStatement:
        dispatch = Dispatch("SELECT 2", may_fall_back=True, premises=Premises(lambda: self.is_session_unchanged))
        return TrackedStatement(dispatch, SESSION, 10.0, run_async, message(original))

    def executes(self) -> "Stage":
        tracked = self.tracked(execute("SELECT 1", 5), run_async=True)
        talk = Talk(self.exchange.execute(message(execute("SELECT 2", 5)), tracked))
        assert talk.hears(executed(5)).answer == executed(5)[4:]
        return self

    def asks(self, call: bytes) -> Talk:
        talk = Talk(self.exchange.pass_on(message(call)))
        assert talk.sends == call[4:]
        return talk

    def runs_again(self, talk: Talk, shown: bytes) -> None:
        """A reply shows that the first run is of no use; by its end there is a second one, which runs."""
        assert talk.hears(shown).sends == execute("SELECT 1", 5)[4:]
        assert talk.hears(executed(5, AGAIN)).sends == operation_call("CloseOperation", 1)[4:]
        assert talk.hears(reply("CloseOperation", 1)).sends == get_status(6, AGAIN)[4:]
        assert talk.hears(status_is(RUNNING, 6)).answer == status_is(RUNNING, 6)[4:]


@pytest.fixture
def stage() -> Stage:
    return Stage(TrackedStatements())


BESIDE = [
    (get_status(7), status_is(FINISHED, 7), encode_still_running(7)),
    (get_status(7), status_is(ERROR, 7, "ours"), encode_still_running(7)),
    (fetch(7), reply("FetchResults", 7), encode_failure("FetchResults", 7, NOT_YET)),
    (
        operation_call("GetResultSetMetadata", 7),
        metadata_is("k", "int", 7),
        encode_failure("GetResultSetMetadata", 7, NOT_YET),
    ),
]


@pytest.mark.parametrize(("call", "first_run", "answer"), BESIDE, ids=["finished", "failed", "rows", "columns"])
@pytest.mark.parametrize(
    "shown", [status_is(FINISHED, 6), status_is(ERROR, 6, "ours")], ids=["overtaken", "failed before"]
)
def test_what_a_call_beside_hears_of_the_first_run_reaches_nobody_once_there_is_a_second(
    stage: Stage, shown: bytes, call: bytes, first_run: bytes, answer: bytes
) -> None:
    stage.executes()
    one, beside = stage.asks(get_status(6)), stage.asks(call)
    stage.is_session_unchanged = False
    stage.runs_again(one, shown)
    assert beside.hears(first_run).answer == answer
    assert stage.outcomes == []
    # What is asked from now on is about the second run.
    last = Talk(stage.exchange.pass_on(message(get_status(8))))
    assert last.sends == get_status(8, AGAIN)[4:]
    assert last.hears(status_is(FINISHED, 8)).answer == status_is(FINISHED, 8)[4:]
    assert len(stage.outcomes) == 1


def test_rows_of_the_first_run_too_long_to_be_read_are_refused_once_there_is_a_second(stage: Stage) -> None:
    stage.executes()
    one, rows = stage.asks(get_status(6)), stage.asks(fetch(7))
    stage.runs_again(one, status_is(ERROR, 6, "ours"))
    assert rows.hears(None).answer == refusal(message(fetch(7)).header)
    assert stage.outcomes == []


def test_an_unreadable_reply_reaches_nobody_where_it_may_be_an_overtaken_answer(stage: Stage) -> None:
    stage.executes()
    rows = stage.asks(fetch(7))
    stage.is_session_unchanged = False
    assert rows.hears(reply("FetchResults", 8)).answer == refusal(message(fetch(7)).header)
    assert stage.outcomes == []


def test_an_answer_that_is_refused_is_the_statements_end() -> None:
    stage = Stage(TrackedStatements(aliases=LocalOperationAliases(0))).executes()
    asks = stage.asks(get_status(6))
    stage.is_session_unchanged = False
    assert asks.hears(status_is(FINISHED, 6)).answer == refusal(message(get_status(6)).header)
    assert [outcome.kind for outcome in stage.outcomes] == [OutcomeKind.FAILED]


@pytest.mark.parametrize(
    ("call", "run_async", "end"),
    [(execute, True, OutcomeKind.UNKNOWN), (execute_and_wait, False, OutcomeKind.LOST)],
)
def test_a_client_that_leaves_before_it_knows_of_an_operation_ends_its_statement(
    stage: Stage, call: Callable[[str, int], bytes], end: OutcomeKind, *, run_async: bool
) -> None:
    tracked = stage.tracked(call("SELECT 1", 5), run_async=run_async)
    talk = Talk(stage.exchange.execute(message(call("SELECT 2", 5)), tracked))
    talk.steps.close()
    assert [outcome.kind for outcome in stage.outcomes] == [end]


def known(stage: Stage) -> bool:
    """Whether anything is known of the statement's operation."""
    return stage.tracked_statements.resolve(message(get_status(9)))[1] is not None


def test_a_client_that_leaves_during_a_second_run_ends_its_statement(stage: Stage) -> None:
    stage.executes()
    talk, beside = stage.asks(get_status(6)), stage.asks(get_status(7))
    talk.hears(status_is(ERROR, 6, "ours"))
    talk.steps.close()
    assert [outcome.kind for outcome in stage.outcomes] == [OutcomeKind.UNKNOWN]
    assert not known(stage)
    # The first run is all that there is.
    assert beside.hears(status_is(ERROR, 7, "ours")).answer == status_is(ERROR, 7, "ours")[4:]


def test_a_second_run_that_does_not_begin_leaves_the_first_failure(stage: Stage) -> None:
    stage.executes()
    talk = stage.asks(get_status(6)).hears(status_is(ERROR, 6, "ours"))
    refused = reply("ExecuteStatement", 5, status=3, message="theirs")
    assert talk.hears(refused).answer == status_is(ERROR, 6, "ours")[4:]
    assert stage.outcomes == [Outcome(OutcomeKind.FAILED, 1.0, "ours")]
    assert not known(stage)


def test_an_exception_in_place_of_rows_ends_the_statement(stage: Stage) -> None:
    stage.executes()
    exception = frame(Writer().header("FetchResults", MessageType.EXCEPTION, 7).stop().to_bytes())
    assert stage.asks(fetch(7)).hears(exception).answer == exception[4:]
    assert [outcome.kind for outcome in stage.outcomes] == [OutcomeKind.FINISHED]
    assert not known(stage)


def test_a_statement_that_is_passed_on_is_told_of_before_it_goes(stage: Stage) -> None:
    stage.asks(execute("USE other", 5))
    assert [type(command) for command in stage.told] == [StatementPassed]
