"""The statements that went to the backend, until their ends have been reported.

A handle works from any connection, so the connections of a process share these records.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from proxy.operations.dispatch import Dispatch, Outcome, OutcomeKind
from proxy.operations.events import StatementEnded
from proxy.operations.key_check import KeyCheck
from proxy.operations.operation_aliases import LocalOperationAliases, OperationAliases
from proxy.operations.statement_state import (
    ANSWER_UNKNOWN,
    ENDED,
    ENDS_WITH_ROWS,
    FALLING_BACK,
    FOLLOWING,
    JUDGED,
    KEPT_FROM_CLIENT,
    MAY_FALL_BACK,
    RUNNING,
    UNSETTLED,
    StatementState,
)
from proxy.wire.hs2.calls import (
    OperationHandle,
    OperationId,
    SessionHandle,
    decode_operation_of_call,
    operation_id_of,
    replace_operation,
)
from proxy.wire.hs2.handles import public_id_of
from proxy.wire.thrift.errors import LocalProtocolError
from proxy.wire.thrift.messages import Message

# Spark Thrift Server takes 500 connections. Four open statements on each of them is more than clients have.
TRACKED_STATEMENTS_MAX: Final = 2_000
# The original call is kept until the rewritten statement has ended, so that it can be made then. No larger call is
# kept: TRACKED_STATEMENTS_MAX of them take half a gigabyte, the most that is kept at once if there is as much
# memory. A call that no program wrote takes a few KB.
KEPT_CALL_BYTES_MAX: Final = 256 * 1024
KEPT_CALLS_BYTES_MAX: Final = TRACKED_STATEMENTS_MAX * KEPT_CALL_BYTES_MAX
# The first line or two of an error say what it is; the plan and the stack trace that follow may be of any length.
MESSAGE_CHARS_MAX: Final = 2_000


@dataclass(frozen=True)
class _FirstRun:
    """The end of the rewritten run of a statement that fell back."""

    seconds: float
    # The failure's message; None where it was overtaken.
    message: str | None = field(repr=False)


@dataclass(eq=False)
class TrackedStatement:
    """One statement on its way. Methods that learn of its end return the event that reports it, once."""

    dispatch: Dispatch
    session: SessionHandle = field(repr=False)
    sent_at: float
    run_async: bool
    # The client's call, where another text was sent in its place and the original may be run if that fails, or be
    # decided about again. It is dropped as soon as it can no longer be needed.
    original_call: Message | None
    # The original was sent, although the dispatch has another text.
    original_instead: bool = False
    # Another text was sent in the place of the original, and its answer has to be judged.
    is_rewritten: bool = False
    # The operation on the backend: of a statement that fell back, the second one.
    operation: OperationHandle | None = field(default=None, repr=False)
    state: StatementState = field(init=False)
    # The client cancelled or closed it, maybe on another connection, or nothing more will be heard of it.
    is_stopped: bool = False
    # The client closed it, or its session. An operation that it gets later, by falling back, belongs to nobody.
    is_closed: bool = False
    # The administrator who cancels it, set before the cancel is sent: a failure after that causes no second run.
    cancelled_by: str = ""
    # The end of the rewritten run, once the statement falls back.
    _first_run: _FirstRun | None = None
    # The seconds until it finished, if it awaits its first rows.
    _finished_s: float = 0.0

    def __post_init__(self) -> None:
        self.state = StatementState.SENT if self.is_rewritten else StatementState.ORIGINAL_SENT

    # --- questions

    @property
    def is_judged(self) -> bool:
        """True if replies about it are kept back until `proxy.operations.fallback_policy` has judged them."""
        return self.state in JUDGED

    @property
    def is_unsettled(self) -> bool:
        """True if its answer must not be let out without a look."""
        return self.state in UNSETTLED

    @property
    def is_falling_back(self) -> bool:
        """True if the original is being sent, and has no operation yet."""
        return self.state in FALLING_BACK

    @property
    def is_withheld(self) -> bool:
        """True if nothing of what its operation has is let out: its answer was overtaken."""
        return self.state in KEPT_FROM_CLIENT

    @property
    def has_fallen_back(self) -> bool:
        """True if the original may have been run."""
        return self._first_run is not None

    @property
    def pending_check(self) -> KeyCheck | None:
        """The check on which it depends whether the client is told of its operation; None without one."""
        return self.dispatch.check if self.state is StatementState.SENT and not self.is_stopped else None

    @property
    def ends_with_rows(self) -> bool:
        """True if its first rows tell its end: Spark may compute them as they are fetched, and fail then."""
        return self.state in ENDS_WITH_ROWS

    @property
    def is_over(self) -> bool:
        """True if its end has been reported. The answer of one that was stopped may still come, and is judged."""
        return self.is_stopped or self.state in ENDED

    @property
    def is_running(self) -> bool:
        """True if the backend runs it as an operation, and the client has been told of no end."""
        return self.operation is not None and self.state in RUNNING and not self.is_over

    @property
    def may_run_original(self) -> bool:
        """True if the original is kept, and no limit refuses it."""
        return self.original_call is not None and self.dispatch.original_refusal is None

    def may_fall_back(self, failure: str | None, now: float, within_s: float) -> bool:
        """True if the original may be run now in the place of this run, for a failure or, without one, a change.

        As long as the client knows nothing of the answer, the statement may as well have been analysed only now.
        Afterwards its text has to mean the same as before: another statement may have changed names and settings.
        """
        if self.state not in MAY_FALL_BACK or self.cancelled_by or not self.may_run_original:
            return False
        if failure is not None and now - self.sent_at > within_s and not self.is_out_of_date(failure):
            return False
        if failure is not None and self.dispatch.is_own_fault(failure):
            return False
        write = self.dispatch.write
        if write is not None:
            # A write's success is never taken back. Once it is over, a change of the session may have gone on.
            is_open = self.state in ANSWER_UNKNOWN and not write.is_over
            return failure is not None and is_open and self.dispatch.premises.is_session_unchanged()
        return self.state is StatementState.SENT or self.dispatch.premises.is_session_unchanged()

    def is_out_of_date(self, message: str) -> bool:
        """True if a failure's message is that of the check in the statement: its keys had changed."""
        fall_back_on = self.dispatch.fall_back_on
        return not self.has_fallen_back and fall_back_on != "" and fall_back_on in message

    def is_overtaken(self) -> bool:
        """True if the answer that is there now may be one that Spark could never have given."""
        if self.state not in ANSWER_UNKNOWN or self.dispatch.write is not None:
            return self.is_withheld
        premises = self.dispatch.premises
        is_same_session = self.state is StatementState.COLUMNS_SHOWN or premises.is_session_unchanged()
        return not (is_same_session and premises.are_tables_unchanged())

    def operation_shown(self, operation: OperationHandle) -> None:
        """The backend runs it as this operation. Its log gets the id by which Spark's UI shows the operation."""
        spark_id = public_id_of(operation)
        if spark_id is not None:
            self.dispatch.on_operation(spark_id)

    # --- replies about it that reach the client

    def columns_shown(self) -> None:
        """The client has been told the columns of its answer."""
        if self.state is StatementState.SENT:
            self._enter(StatementState.COLUMNS_SHOWN)

    def finished(self, now: float) -> list[StatementEnded]:
        """The backend said that it finished, and the client may know."""
        if self.state in ANSWER_UNKNOWN and not self.is_stopped:
            self._finished_s = now - self.sent_at
            self._enter(StatementState.FINISHED_AWAITING_ROWS)
        if self.state is StatementState.FINISHED_AWAITING_ROWS:
            return []
        return self._settled(self._good_end, now - self.sent_at)

    def rows_came(self, now: float) -> list[StatementEnded]:
        """Its first rows have come. If it fails from here on, the client has seen a part of its answer."""
        is_finished = self.state is StatementState.FINISHED_AWAITING_ROWS
        return self._settled(self._good_end, self._finished_s if is_finished else now - self.sent_at)

    def failed(self, now: float, message: str) -> list[StatementEnded]:
        """It failed, and the client is told so."""
        kind = OutcomeKind.FAILED if self._first_run is None else OutcomeKind.FAILED_TWICE
        return self._settled(kind, now - self.sent_at, message)

    def ended_without_answer(self, now: float) -> list[StatementEnded]:
        """The backend said that it was cancelled, closed or timed out: it never has rows."""
        ended = self.stopped(now)
        if self.state in ANSWER_UNKNOWN:
            self._enter(StatementState.OVER)
        return ended

    def stopped(self, now: float) -> list[StatementEnded]:
        """The client cancels or closes it, or nothing more will be heard of it."""
        if self.state is StatementState.FINISHED_AWAITING_ROWS:
            ended = self._report(OutcomeKind.FINISHED, self._finished_s)
        else:
            is_within_call = self.operation is None and not self.run_async
            ended = self._report(OutcomeKind.LOST if is_within_call else OutcomeKind.UNKNOWN, now - self.sent_at)
        self.is_stopped, self.original_call = True, None
        if not (self.state in ENDED or self.is_unsettled or self.is_falling_back):
            self._enter(StatementState.OVER)
        return ended

    # --- fallback

    def fall_back(self, now: float, failure: str | None) -> Message:
        """It failed with that message, or was overtaken, and falls back. Returns the original's call."""
        call = self.original_call
        if call is None:
            raise LocalProtocolError(f"a statement that is {self.state.value} has no original to fall back to")
        if failure is not None and self.is_out_of_date(failure):
            # The words may stand far behind in the server's message.
            failure = self.dispatch.fall_back_on
        states = StatementState
        self._enter(states.FALLING_BACK_OVERTAKEN if failure is None else states.FALLING_BACK_FAILED)
        self._first_run = _FirstRun(now - self.sent_at, failure and failure[:MESSAGE_CHARS_MAX])
        self.writes_as(None)
        return call

    def decided_again(self, now: float) -> list[StatementEnded]:
        """It is decided about again: its remembered keys could not be confirmed. Nobody knows of its operation."""
        ended = self._report(OutcomeKind.DECIDED_AGAIN, now - self.sent_at)
        self._enter(StatementState.OVER)
        return ended

    def sent_again(self, operation: OperationHandle | None) -> None:
        """The original has this operation; None where it runs within its call."""
        self._enter(StatementState.SENT_AGAIN)
        self.operation = operation
        self.writes_as(operation)
        if self.is_stopped:
            self._enter(StatementState.OVER)

    def fallback_ended(self, kind: OutcomeKind) -> list[StatementEnded]:
        """The original could not be run, or not be followed to its end: the client is told of a failure."""
        ended = self._report(kind, 0.0)
        is_writing = self.dispatch.write is not None and kind is not OutcomeKind.FAILED_TWICE
        if self.state is StatementState.FALLING_BACK_OVERTAKEN or (is_writing and self.is_falling_back):
            # The original of one that writes may have been run.
            self._enter(StatementState.WITHHELD)
        elif self.state not in ENDED:
            self._enter(StatementState.OVER)
        return ended

    def fallback_abandoned(self, now: float) -> list[StatementEnded]:
        """The connection that would have sent the original has ended."""
        return self.stopped(now) + self.fallback_ended(OutcomeKind.UNKNOWN)

    def answer_withheld(self, now: float) -> list[StatementEnded]:
        """Its answer was overtaken and nothing can replace it: the client is told so, and again when it asks."""
        if self.state is StatementState.WITHHELD:
            return []
        ended = self._report(OutcomeKind.FAILED, now - self.sent_at)
        self._enter(StatementState.WITHHELD)
        return ended

    # --- inside

    @property
    def _good_end(self) -> OutcomeKind:
        if self._first_run is None:
            return OutcomeKind.FINISHED
        return OutcomeKind.OVERTAKEN if self._first_run.message is None else OutcomeKind.RECOVERED

    def _settled(self, kind: OutcomeKind, seconds: float, message: str = "") -> list[StatementEnded]:
        """The client knows its end. A reply about the first run of a statement that falls back tells none."""
        if self.is_falling_back or self.state in ENDED:
            return []
        ended = self._report(kind, seconds, message)
        self._enter(StatementState.OVER)
        return ended

    def _report(self, kind: OutcomeKind, seconds: float, message: str = "") -> list[StatementEnded]:
        if self.is_over:
            return []
        if self.cancelled_by and kind in {OutcomeKind.FAILED, OutcomeKind.FAILED_TWICE}:
            # The cancel caused the failure, which says nothing about the rewrite.
            kind, message = OutcomeKind.UNKNOWN, ""
        first, fallback_s = self._first_run, None
        if first is None:
            first = _FirstRun(seconds, message[:MESSAGE_CHARS_MAX])
        elif seconds > first.seconds:
            fallback_s = seconds - first.seconds
        is_unread = kind is OutcomeKind.FAILED and self.dispatch.is_unread(message)
        outcome = Outcome(kind, first.seconds, first.message or "", self.original_instead, fallback_s, is_unread)
        if kind is OutcomeKind.UNKNOWN:
            outcome = replace(outcome, cancelled_by=self.cancelled_by)
        return [StatementEnded(self.dispatch, outcome)]

    def writes_as(self, operation: OperationHandle | None) -> None:
        """Tell those who wait for the end of a write which operation runs it; None if there is none yet."""
        if self.dispatch.write is not None:
            self.dispatch.write.operation = operation

    def _enter(self, state: StatementState) -> None:
        if state not in FOLLOWING[self.state]:
            raise LocalProtocolError(f"a statement cannot go from {self.state.value!r} to {state.value!r}")
        self.state = state
        if state not in MAY_FALL_BACK:
            self.original_call = None


class TrackedStatements:
    """The statements of a process that have an operation on the backend, and the aliases of operations."""

    def __init__(
        self,
        tracked_statements_max: int = TRACKED_STATEMENTS_MAX,
        aliases: OperationAliases | None = None,
        *,
        kept_bytes_max: int = KEPT_CALLS_BYTES_MAX,
    ) -> None:
        """Keep at most so many bytes of original calls."""
        self._kept_bytes_max = kept_bytes_max
        self._tracked_statements_max = tracked_statements_max
        self._by_operation: dict[OperationId, TrackedStatement] = {}
        self._aliases = LocalOperationAliases() if aliases is None else aliases

    def operation_opened(
        self, tracked: TrackedStatement, operation: OperationHandle, now: float
    ) -> list[StatementEnded]:
        """The backend has made an operation of it. If there are too many, the oldest one is given up."""
        identifier = operation_id_of(operation)
        if identifier is None:
            return tracked.stopped(now)
        is_full = len(self._by_operation) >= self._tracked_statements_max
        given_up = self._give_up_oldest(now) if is_full else []
        tracked.operation = operation
        tracked.writes_as(operation)
        self._by_operation[identifier] = tracked
        return given_up

    def _give_up_oldest(self, now: float) -> list[StatementEnded]:
        """Give up one that is not rewritten, or of which the client knows the answer."""
        for identifier, tracked in self._by_operation.items():
            if not tracked.is_unsettled:
                del self._by_operation[identifier]
                return tracked.stopped(now)
        return []

    def has_room_for_a_rewrite(self, original_call: Message) -> bool:
        """True if one more statement can be tracked until its premises have been checked, and its call kept.

        No more than half of the records may be of such statements, which are never given up.
        """
        half = self._tracked_statements_max // 2
        is_tracked = len(self._by_operation) < half or self._unsettled_count < half
        call_bytes = len(original_call.raw)
        # As a rule the bytes need not be counted.
        is_kept = (len(self._by_operation) + 1) * KEPT_CALL_BYTES_MAX <= self._kept_bytes_max
        return is_tracked and (is_kept or self._kept_bytes + call_bytes <= self._kept_bytes_max)

    @property
    def _kept_bytes(self) -> int:
        calls = (tracked.original_call for tracked in self._by_operation.values())
        return sum(len(call.raw) for call in calls if call is not None)

    @property
    def has_unsettled(self) -> bool:
        """True if the answer of some statement must not be let out without a look."""
        return self._unsettled_count > 0

    @property
    def _unsettled_count(self) -> int:
        return sum(tracked.is_unsettled for tracked in self._by_operation.values())

    def resolve(self, message: Message) -> tuple[Message, TrackedStatement | None]:
        """The call to make in a call's place, and the statement that it is about if it is tracked."""
        if not self._by_operation and self._aliases.is_empty:
            return message, None
        found = decode_operation_of_call(message)
        if found is None:
            return message, None
        identifier, span = found
        actual = self._aliases.operation_of(identifier)
        if actual is None:
            return message, self._by_operation.get(identifier)
        return replace_operation(message, span, actual), self._by_operation.get(actual)

    def running(self) -> dict[str, TrackedStatement]:
        """Those that the backend runs, by the ids of the statements."""
        return {one.dispatch.statement_id: one for one in self._by_operation.values() if one.is_running}

    @property
    def has_room_for_fallback(self) -> bool:
        """True if one more operation may be given an alias."""
        return self._aliases.has_room

    def sent_again(self, tracked: TrackedStatement, operation: OperationHandle) -> bool:
        """The original has this operation, and the first one is its alias; False where there is no room."""
        alias = None if tracked.operation is None else operation_id_of(tracked.operation)
        identifier = operation_id_of(operation)
        if alias is None or identifier is None or not self._aliases.add(alias, identifier, tracked.session):
            return False
        tracked.sent_again(operation)
        if self._by_operation.pop(alias, None) is not None:
            self._by_operation[identifier] = tracked
        return True

    def operation_closed(self, message: Message) -> None:
        """A client closes the operation that its call names: its records end here."""
        found = decode_operation_of_call(message)
        if found is not None:
            actual = self._aliases.alias_closed(found[0])
            tracked = self._by_operation.pop(found[0] if actual is None else actual, None)
            if tracked is not None:
                tracked.is_closed = True

    def statement_ended(self, tracked: TrackedStatement) -> None:
        """Its end has been reported. An alias stays: the client still names the operation that it knows.

        The record stays too if the operation may have an answer that must not be let out.
        """
        if tracked.is_unsettled:
            return
        identifier = None if tracked.operation is None else operation_id_of(tracked.operation)
        if identifier is not None and self._by_operation.get(identifier) is tracked:
            del self._by_operation[identifier]

    def sessions_ended(self, sessions: Iterable[SessionHandle], now: float) -> list[StatementEnded]:
        """The backend ends the operations of a session with it."""
        ended_sessions = frozenset(sessions)
        if not ended_sessions:
            return []
        ended = []
        for identifier in [i for i, one in self._by_operation.items() if one.session in ended_sessions]:
            tracked = self._by_operation.pop(identifier)
            tracked.is_closed = True
            ended += tracked.stopped(now)
        self._aliases.sessions_ended(ended_sessions)
        return ended
