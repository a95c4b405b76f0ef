"""One script, played over a binary connection and over HTTP: both come to the same.

The backend gets the same calls, the client the same replies, and the statements have the same outcomes. What these
are where a statement fails or is overtaken, test_fallback.py and tests/proxy/relay/test_overtaken.py say for both.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parser_errors import parser_error
from support.relay_dialogue import (
    AGAIN,
    OPERATION,
    THIRD,
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
from support.statement_play import Commands, HttpSides, Sides

from proxy.operations.dispatch import Dispatch, Outcome, OutcomeKind, Premises
from proxy.operations.events import StatementEnded
from proxy.operations.fallback_policy import FALLBACK_WITHIN_S
from proxy.operations.key_check import CheckVerdict, KeyCheck
from proxy.operations.operation_aliases import LocalOperationAliases
from proxy.operations.tracked_statements import TrackedStatements
from proxy.relay.commands import AwaitCheck, StartCheck, StatementHeld
from proxy.statements.parse_failures import parse_failure_of
from proxy.wire.hs2.calls import OperationHandle, OperationState
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.messages import FramedMessageReader
from proxy.wire.thrift.reader import read_header
from proxy.wire.thrift.types import MessageType
from proxy.wire.thrift.writer import Writer

# A reply of the backend, for the seqid of its call.
Reply = Callable[[int], bytes]
SECOND_ROWS = b"rows of the original"
CHECK_FAILED = "the keys have changed"
TYPO = "SELEC 1"


async def nothing_asked() -> CheckVerdict:
    return CheckVerdict.HELD


@dataclass
class World:
    """All that both plays of a script share by value: time, premises, and the replies of the backend."""

    replies: Iterator[Reply]
    aliases_max: int = 10
    now: float = 10.0
    # What is sent for the statement.
    text: str = "SELECT 2"
    is_session_unchanged: bool = True
    are_tables_unchanged: bool = True
    # The end of the check of the statement's keys, where it has one; and whether it ends before the reply.
    verdict: CheckVerdict | None = None
    is_check_quick: bool = False
    # Happens while the check is awaited.
    meanwhile: Callable[["World"], None] = lambda _: None
    outcomes: list[Outcome] = field(default_factory=list)
    calls: list[bytes] = field(default_factory=list)
    tracked_statements: TrackedStatements = field(init=False)

    def __post_init__(self) -> None:
        self.tracked_statements = TrackedStatements(aliases=LocalOperationAliases(self.aliases_max))

    @property
    def dispatch(self) -> Dispatch:
        """As it is decided at first: by remembered keys where these are to be checked."""
        check = None if self.verdict is None else KeyCheck(nothing_asked, 0.0, 5.0)
        return replace(self.decided_again, text=self.text, is_unread=parse_failure_of(self.text), check=check)

    @property
    def decided_again(self) -> Dispatch:
        """As it is decided by keys of now."""
        premises = Premises(lambda: self.is_session_unchanged, lambda: self.are_tables_unchanged)
        return Dispatch("SELECT 3", True, CHECK_FAILED, premises, on_outcome=self.outcomes.append)  # noqa: FBT003

    def check_started(self, check: KeyCheck) -> None:
        if self.is_check_quick:
            self.end_check(check)

    def end_check(self, check: KeyCheck) -> None:
        assert self.verdict is not None
        self.meanwhile(self)
        check.settle(self.verdict)

    def reply_to(self, call: bytes) -> bytes:
        """The backend's reply, without its frame."""
        self.calls.append(call)
        return next(self.replies)(read_header(call).seqid)[4:]


class Client:
    """One that waits for each reply."""

    def __init__(self, world: World, sides: Sides) -> None:
        self._world, self._sides = world, sides
        self._sides.now = world.now

    def call(self, body: bytes) -> bytes:
        """The client calls, and gets this reply."""
        self._sides.now = self._world.now
        self._obey(self._sides.client(frame(body)))
        sent = FramedMessageReader(1 << 20)
        sent.feed(self._sides.backend_got())
        while (message := sent.next_message()) is not None:
            self._obey(self._sides.backend(frame(self._world.reply_to(message.raw))))
            sent.feed(self._sides.backend_got())
        got = self._sides.client_got()
        assert got[:4] == len(got[4:]).to_bytes(4), "one reply for one call"
        return got[4:]

    def _obey(self, commands: Commands) -> None:
        world, sides = self._world, self._sides
        for command in commands:
            match command:
                case StatementHeld(unconfirmed=None):
                    self._obey(sides.release(world.dispatch))
                case StatementHeld():
                    self._obey(sides.release(world.decided_again))
                case StartCheck(_, check):
                    world.check_started(check)
                case AwaitCheck(check):
                    world.end_check(check)
                    self._obey(sides.check_settled(check))
                case StatementEnded(dispatch, outcome):
                    dispatch.on_outcome(outcome)


def over_binary(world: World) -> Client:
    sides = Sides(tracked_statements=world.tracked_statements)
    sides.open_session()
    return Client(world, sides)


def over_http(world: World) -> Client:
    return Client(world, HttpSides(world.tracked_statements))


TRANSPORTS = (over_binary, over_http)


# A script: the client's calls in frames, and in between what happens to the world.
Step = bytes | Callable[[World], None]


@dataclass(frozen=True)
class Seen:
    calls: list[bytes]
    replies: list[bytes]
    outcomes: list[Outcome]


def play(transport: Callable[[World], Client], steps: list[Step], replies: list[Reply], **given: Any) -> Seen:
    world = World(iter(replies), **given)
    client, got = transport(world), []
    for step in steps:
        if isinstance(step, bytes):
            got.append(client.call(step[4:]))
        else:
            step(world)
    return Seen(world.calls, got, world.outcomes)


def play_both(steps: list[Step], replies: list[Reply], **given: Any) -> Seen:
    """Play the script twice. Returns what was seen both times."""
    binary, http = (play(transport, steps, replies, **given) for transport in TRANSPORTS)
    assert http == binary
    return binary


# --- scripts by name


def session_changes(world: World) -> None:
    world.is_session_unchanged = False


def tables_change(world: World) -> None:
    world.are_tables_unchanged = False


def time_passes(world: World) -> None:
    world.now += FALLBACK_WITHIN_S + 1


def gives(operation: OperationHandle) -> Reply:
    return lambda seqid: executed(seqid, operation)


def state(state: OperationState, message: str | None = None) -> Reply:
    return lambda seqid: status_is(state, seqid, message)


def refuses(name: str, message: str) -> Reply:
    return lambda seqid: reply(name, seqid, status=3, message=message)


def rows(data: bytes) -> Reply:
    return lambda seqid: reply("FetchResults", seqid, Writer().binary(9, data))


def columns(name: str, type_name: str = "int") -> Reply:
    return lambda seqid: metadata_is(name, type_name, seqid)


def throws(name: str) -> Reply:
    return lambda seqid: frame(Writer().header(name, MessageType.EXCEPTION, seqid).stop().to_bytes())


def closed(seqid: int) -> bytes:
    return reply("CloseOperation", seqid)


def cancelled(seqid: int) -> bytes:
    return reply("CancelOperation", seqid)


FINISHED, RUNNING, ERROR = (
    state(OperationState.FINISHED),
    state(OperationState.RUNNING),
    state(OperationState.ERROR, "ours"),
)
ASYNC, SYNC = execute("SELECT 1", 2), execute_and_wait("SELECT 1", 2)


@pytest.mark.parametrize(
    ("message", "did_nothing"),
    [(parser_error(TYPO), True), (parser_error("SELEC 2"), False), ("it failed", False)],
)
@pytest.mark.parametrize(
    ("call", "replies"),
    [
        (execute, lambda message: [gives(OPERATION), state(OperationState.ERROR, message)]),
        (execute_and_wait, lambda message: [refuses("ExecuteStatement", message)]),
    ],
    ids=["in the background", "within its call"],
)
def test_a_statement_that_the_parser_refused_is_known_to_have_done_nothing_over_both(
    call: Callable[[str, int], bytes], replies: Callable[[str], list[Reply]], message: str, *, did_nothing: bool
) -> None:
    answers = replies(message)
    steps: list[Step] = [call(TYPO, 2), get_status(3)]
    seen = play_both(steps[: len(answers)], answers, text=TYPO)
    assert [outcome.did_nothing for outcome in seen.outcomes] == [did_nothing]


def test_what_the_parser_says_of_a_rewritten_text_is_not_said_of_the_original() -> None:
    refused = [gives(OPERATION), state(OperationState.ERROR, parser_error("SELECT 2"))]
    theirs = [gives(AGAIN), closed, state(OperationState.ERROR, parser_error("SELECT 1"))]
    seen = play_both([ASYNC, get_status(3)], [*refused, *theirs])
    assert [(one.kind, one.did_nothing) for one in seen.outcomes] == [(OutcomeKind.FAILED_TWICE, False)]


# --- remembered keys that are checked while the statement runs


def last_calls(operation: OperationHandle) -> list[Step]:
    """The calls of a client that was told of this operation."""
    return [get_status(7, operation), fetch(8, operation), operation_call("CloseOperation", 9, operation)]


FIRST, SECOND = last_calls(OPERATION), last_calls(AGAIN)
RUNS, RUNS_AGAIN = gives(OPERATION), gives(AGAIN)
ENDS_WELL: list[Reply] = [FINISHED, rows(SECOND_ROWS), closed]
# The client never hears of the first operation.
GIVEN_UP: list[Reply] = [RUNS, cancelled, closed, RUNS_AGAIN]
ONCE, TWICE = [OutcomeKind.FINISHED], [OutcomeKind.DECIDED_AGAIN, OutcomeKind.FINISHED]
OVERTAKEN, RECOVERED = [OutcomeKind.OVERTAKEN], [OutcomeKind.RECOVERED]
HELD, CHANGED = {"verdict": CheckVerdict.HELD}, {"verdict": CheckVerdict.CHANGED}
NOT_ASKED, UNANSWERED = {"verdict": CheckVerdict.NOT_ASKED}, {"verdict": CheckVerdict.UNANSWERED}
QUICK = {"is_check_quick": True}
SESSION_CHANGES, TABLES_CHANGE = HELD | {"meanwhile": session_changes}, HELD | {"meanwhile": tables_change}
ERROR_AGAIN: list[Reply] = [ERROR, gives(THIRD), closed, RUNNING]

CHECKED: dict[str, tuple[list[Step], list[Reply], dict[str, Any], list[OutcomeKind]]] = {
    "the keys are as remembered": ([ASYNC, *FIRST], [RUNS, *ENDS_WELL], HELD, ONCE),
    "the keys are known before the reply is": ([ASYNC, *FIRST], [RUNS, *ENDS_WELL], HELD | QUICK, ONCE),
    "there are other keys": ([ASYNC, *SECOND], [*GIVEN_UP, *ENDS_WELL], CHANGED, TWICE),
    "other keys are known before the reply is": (
        [ASYNC, *SECOND],
        [*GIVEN_UP, *ENDS_WELL],
        CHANGED | QUICK,
        TWICE,
    ),
    "the session cannot be asked beside it": ([ASYNC, *SECOND], [*GIVEN_UP, *ENDS_WELL], NOT_ASKED | QUICK, TWICE),
    "a question is not answered in time": ([ASYNC, *SECOND], [*GIVEN_UP, *ENDS_WELL], UNANSWERED, OVERTAKEN),
    "it runs within its call": ([SYNC, *SECOND[1:]], [*GIVEN_UP, *ENDS_WELL[1:]], CHANGED, TWICE),
    "it runs within its call, as remembered": ([SYNC, *FIRST[1:]], [RUNS, *ENDS_WELL[1:]], HELD, ONCE),
    "the rewritten statement fails": (
        [ASYNC, *SECOND],
        [refuses("ExecuteStatement", "ours"), RUNS_AGAIN, *ENDS_WELL],
        CHANGED,
        RECOVERED,
    ),
    "it fails once it is known to be right": (
        [ASYNC, get_status(3), *FIRST],
        [RUNS, ERROR, RUNS_AGAIN, closed, RUNNING, *ENDS_WELL],
        HELD,
        RECOVERED,
    ),
    "it fails with the keys of now": (
        [ASYNC, get_status(3, AGAIN), *SECOND],
        [*GIVEN_UP, *ERROR_AGAIN, *ENDS_WELL],
        CHANGED,
        [OutcomeKind.DECIDED_AGAIN, OutcomeKind.RECOVERED],
    ),
    "its session changes while it is checked": (
        [ASYNC, *FIRST],
        [RUNS, FINISHED, RUNS_AGAIN, closed, *ENDS_WELL],
        SESSION_CHANGES,
        OVERTAKEN,
    ),
    "its tables change while it is checked within its call": (
        [SYNC, *FIRST[1:]],
        [RUNS, closed, RUNS_AGAIN, *ENDS_WELL[1:]],
        TABLES_CHANGE,
        OVERTAKEN,
    ),
}


@pytest.mark.parametrize("name", CHECKED)
def test_the_client_hears_of_no_operation_before_its_keys_are_confirmed(name: str) -> None:
    steps, replies, given, kinds = CHECKED[name]
    seen = play_both(steps, replies, **given)
    assert len(seen.calls) == len(replies)
    assert [outcome.kind for outcome in seen.outcomes] == kinds
    assert sum(SECOND_ROWS in got for got in seen.replies) == 1
    is_first_run = OutcomeKind.FINISHED in kinds and OutcomeKind.DECIDED_AGAIN not in kinds
    assert (b"SELECT 3" in b"".join(seen.calls)) == (OutcomeKind.DECIDED_AGAIN in kinds)
    assert is_first_run or bytes(OPERATION) not in seen.replies[0] or given["verdict"] is CheckVerdict.HELD


def test_an_unconfirmed_reply_that_is_no_success_is_not_passed_on() -> None:
    seen = play_both([ASYNC], [throws("ExecuteStatement")], verdict=CheckVerdict.CHANGED)
    assert bytes(OPERATION) not in seen.replies[0]
    assert b"Starpruner dropped the answer" in seen.replies[0]


# --- scripts by chance

_OPERATIONS = (OPERATION, AGAIN, THIRD)
_STEPS: st.SearchStrategy[Step] = st.one_of(
    st.sampled_from([get_status, fetch]).flatmap(
        lambda call: st.sampled_from([call(5, operation) for operation in _OPERATIONS])
    ),
    st.sampled_from(
        [
            operation_call(name, 5, operation)
            for name in ("GetResultSetMetadata", "CancelOperation", "CloseOperation")
            for operation in _OPERATIONS
        ]
    ),
    st.sampled_from([ASYNC, SYNC, session_changes, tables_change, time_passes]),
)


def _replies_to(name: str, operation: OperationHandle) -> list[Reply]:
    """Replies that a backend may give to a call of that name."""
    match name:
        case "ExecuteStatement":
            return [gives(operation), gives(operation), refuses(name, "no"), lambda seqid: reply(name, seqid)]
        case "GetOperationStatus":
            failed = [state(OperationState.ERROR, message) for message in ("no", CHECK_FAILED)]
            return [FINISHED, RUNNING, *failed, state(OperationState.CANCELED), throws(name)]
        case "FetchResults":
            return [rows(b"rows"), refuses(name, "no"), refuses(name, CHECK_FAILED), throws(name)]
        case "GetResultSetMetadata":
            return [columns("k"), columns("Result", "string"), refuses(name, "no"), throws(name)]
    return [lambda seqid: reply(name, seqid), refuses(name, "no")]


@given(st.lists(_STEPS, max_size=12), st.lists(st.integers(min_value=0, max_value=11), max_size=40), st.booleans())
def test_any_script_comes_to_the_same_over_both_transports(
    steps: list[Step],
    chances: list[int],
    has_room: bool,  # noqa: FBT001 - drawn by chance
) -> None:
    """Without calls sent behind one another: only a binary client can do that."""
    seen = []
    for transport in TRANSPORTS:
        world = _WorldByChance(iter(()), 10 if has_room else 0)
        world.chances, client, got = list(chances), transport(world), []
        for step in [ASYNC, *steps]:
            if isinstance(step, bytes):
                got.append(client.call(step[4:]))
            else:
                step(world)
        seen.append(Seen(world.calls, got, world.outcomes))
    assert seen[0] == seen[1]


class _WorldByChance(World):
    """A backend that says anything. Operations are named in turn, the way a server names them."""

    chances: list[int]
    executed: int = 0

    def reply_to(self, call: bytes) -> bytes:
        self.calls.append(call)
        header = read_header(call)
        replies = _replies_to(header.name, _OPERATIONS[self.executed % len(_OPERATIONS)])
        self.executed += header.name == "ExecuteStatement"
        chance = self.chances.pop(0) if self.chances else 0
        return replies[chance % len(replies)](header.seqid)[4:]
