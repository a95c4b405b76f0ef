"""The statements that went to the backend, until their ends have been told.

A handle works from any connection, so the connections of a process share these records.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from proxy.operations.dispatch import Dispatch, Outcome, OutcomeKind
from proxy.operations.events import StatementEnded
from proxy.operations.operation_aliases import LocalOperationAliases, OperationAliases
from proxy.wire.hs2.calls import (
    OperationHandle,
    OperationId,
    SessionHandle,
    decode_operation_of_call,
    operation_id_of,
    replace_operation,
)
from proxy.wire.thrift.messages import Message

# Spark Thrift Server takes 500 connections. Four open statements on each of them is more than clients have.
TRACKED_STATEMENTS_MAX: Final = 2_000
# A call is kept until the rewritten statement has ended, so that it can be made again. No larger one is: with
# EXECUTIONS_MAX of them this is half a gigabyte, and one that was not written by a program takes a few KB.
KEPT_CALL_BYTES_MAX: Final = 256 * 1024
# The first line or two of an error say what it is; the plan and the stack trace that follow may be of any length.
MESSAGE_CHARS_MAX: Final = 2_000


@dataclass(frozen=True)
class _FirstRun:
    """How the first run of a statement ended."""

    seconds: float
    # The failure's message; None where it was overtaken.
    message: str | None = field(repr=False)


@dataclass(eq=False)
class TrackedStatement:
    """One statement on its way. Methods that learn of its end return the commands that tell it, once."""

    dispatch: Dispatch
    session: SessionHandle = field(repr=False)
    sent_at: float
    run_async: bool
    # The client's call as it came, while what was sent in its place may fail and be run again.
    original_call: Message | None
    # The operation on the backend: of a statement that was run again, the second one.
    operation: OperationHandle | None = field(default=None, repr=False)
    # The end of the first run, once there is a second.
    _first: _FirstRun | None = None
    # When it finished, where its first rows may still bring an error.
    _finished_s: float | None = None
    is_falling_back: bool = False
    # Whether its premises are still to be looked at: it is rewritten, and the client knows of no answer yet.
    is_unsettled: bool = False
    # The client knows its columns: it was analysed in the session state for which it was rewritten.
    has_shown_columns: bool = False
    # It was overtaken: nothing of what its operation has is let out.
    is_withheld: bool = False
    # Somebody cancelled or closed it, maybe on another connection.
    is_stopped: bool = False
    # Somebody closed it, or its session. An operation that it gets after that, run again, is nobody's.
    is_closed: bool = False
    is_over: bool = False

    @property
    def may_fail_yet(self) -> bool:
        """Whether a failure that shows now could still be kept from the client."""
        return self.original_call is not None

    @property
    def is_judged(self) -> bool:
        """Whether replies about it are kept back until `proxy.operations.fallback_policy` has judged them."""
        return self.may_fail_yet or self.is_falling_back or self.is_unsettled or self.is_withheld

    @property
    def ends_with_rows(self) -> bool:
        """Whether its first rows tell its end: Spark may compute them as they are fetched, and fail then."""
        return not self.is_over and (self._first is not None or self._finished_s is not None)

    def may_fall_back(self, now: float, message: str, within_s: float) -> bool:
        """Whether a failure with this message, seen now, is kept from the client, and the statement run again."""
        return self.may_run_original() and (now - self.sent_at <= within_s or self.is_out_of_date(message))

    def may_run_original(self) -> bool:
        """Whether the statement as it came may be run now in the place of this run.

        As long as the client knows nothing of the answer, the statement may as well have been analysed only now.
        Afterwards it has to mean what it meant: another statement may have changed names and settings.
        """
        if not self.may_fail_yet:
            return False
        may_start_late = self._finished_s is None and not self.has_shown_columns
        return may_start_late or self.dispatch.premises.is_session_unchanged()

    def is_out_of_date(self, message: str) -> bool:
        """Whether a failure's message is that of the check in the statement: its keys had changed."""
        fall_back_on = self.dispatch.fall_back_on
        return self._first is None and fall_back_on != "" and fall_back_on in message

    def is_overtaken(self) -> bool:
        """Whether the answer that is there now may be one that Spark could never have given."""
        if self.is_withheld or not self.is_unsettled:
            return self.is_withheld
        premises = self.dispatch.premises
        is_same_session = self.has_shown_columns or premises.is_session_unchanged()
        return not (is_same_session and premises.are_tables_unchanged())

    def finished(self, now: float) -> list[StatementEnded]:
        """The backend said that it finished, and the client may know."""
        self.is_unsettled = False
        if not self.may_fail_yet:
            return self._over(self._good_end, now - self.sent_at)
        if self._finished_s is None:
            self._finished_s = now - self.sent_at
        return []

    def rows_came(self, now: float) -> list[StatementEnded]:
        """Its first rows are there: what fails from here on, the client has seen some of."""
        self.is_unsettled = False
        return self._over(self._good_end, now - self.sent_at if self._finished_s is None else self._finished_s)

    def failed(self, now: float, message: str) -> list[StatementEnded]:
        """It failed, and the client is told so."""
        self.is_unsettled = False
        return self._over(
            OutcomeKind.FAILED if self._first is None else OutcomeKind.FAILED_TWICE, now - self.sent_at, message
        )

    def gone(self, now: float) -> list[StatementEnded]:
        """Nothing more will be heard of it."""
        self.is_stopped = True
        if self._finished_s is not None and self._first is None:
            return self._over(OutcomeKind.FINISHED, self._finished_s)
        is_within_call = self.operation is None and not self.run_async
        return self._over(OutcomeKind.LOST if is_within_call else OutcomeKind.UNKNOWN, now - self.sent_at)

    def rerun(self, now: float, failure: str | None) -> Message:
        """It failed with that message, or was overtaken, and is run again. Returns the call to make."""
        assert self.original_call is not None  # noqa: S101 - `may_run_original` has just said so
        call, self.original_call = self.original_call, None
        if failure is not None and self.is_out_of_date(failure):
            # It may stand far behind in what the server says.
            failure = self.dispatch.fall_back_on
        self._first = _FirstRun(now - self.sent_at, failure and failure[:MESSAGE_CHARS_MAX])
        self._finished_s = None
        self.is_unsettled = False
        return call

    def succeeded_by(self, operation: OperationHandle | None) -> None:
        """The second run has this operation; None where it runs within its call."""
        self.operation, self.is_falling_back, self.is_withheld = operation, False, False

    @property
    def _good_end(self) -> OutcomeKind:
        if self._first is None:
            return OutcomeKind.FINISHED
        return OutcomeKind.OVERTAKEN if self._first.message is None else OutcomeKind.RECOVERED

    def fallback_failed(self) -> list[StatementEnded]:
        """It could not be run again: the client is told of the first failure."""
        return self._over(OutcomeKind.FAILED, 0.0)

    def _over(self, end: OutcomeKind, seconds: float, message: str = "") -> list[StatementEnded]:
        if self.is_over:
            return []
        self.is_over = True
        self.original_call = None
        told = self._first or _FirstRun(seconds, message[:MESSAGE_CHARS_MAX])
        return [StatementEnded(self.dispatch, Outcome(end, told.seconds, told.message or ""))]


class TrackedStatements:
    """The executions of a process that have an operation on the backend, and what stands for what."""

    def __init__(
        self, tracked_statements_max: int = TRACKED_STATEMENTS_MAX, aliases: OperationAliases | None = None
    ) -> None:
        self._executions_max = tracked_statements_max
        self._open: dict[OperationId, TrackedStatement] = {}
        self._aliases = LocalOperationAliases() if aliases is None else aliases

    def opened(self, tracked: TrackedStatement, operation: OperationHandle, now: float) -> list[StatementEnded]:
        """The backend has made an operation of it. Where there are too many, the oldest one is given up."""
        identifier = operation_id_of(operation)
        if identifier is None:
            return tracked.gone(now)
        given_up = self._give_up_oldest(now) if len(self._open) >= self._executions_max else []
        tracked.operation = operation
        if tracked.dispatch.write is not None:
            tracked.dispatch.write.operation = operation
        self._open[identifier] = tracked
        return given_up

    def _give_up_oldest(self, now: float) -> list[StatementEnded]:
        """Forget one that is not rewritten, or of which the client knows the answer."""
        for identifier, tracked in self._open.items():
            if not (tracked.is_unsettled or tracked.is_withheld):
                del self._open[identifier]
                return tracked.gone(now)
        return []

    @property
    def has_room_for_a_rewrite(self) -> bool:
        """Whether one more statement can be watched until its premises have been looked at.

        No more than half of the records may be of such statements, which are never given up.
        """
        return len(self._open) < self._executions_max // 2 or self._unsettled_count < self._executions_max // 2

    @property
    def has_unsettled(self) -> bool:
        """Whether the answer of some statement must not be let out without a look."""
        return self._unsettled_count > 0

    @property
    def _unsettled_count(self) -> int:
        return sum(tracked.is_unsettled or tracked.is_withheld for tracked in self._open.values())

    def resolve(self, message: Message) -> tuple[Message, TrackedStatement | None]:
        """The call to make in a call's place, and the execution that it is about if there is one."""
        if not self._open and self._aliases.is_empty:
            return message, None
        found = decode_operation_of_call(message)
        if found is None:
            return message, None
        identifier, span = found
        successor = self._aliases.of(identifier)
        if successor is None:
            return message, self._open.get(identifier)
        return replace_operation(message, span, successor), self._open.get(successor)

    def has_room_for_fallback(self) -> bool:
        """Whether one more operation may be given a successor."""
        return self._aliases.has_room

    def succeed(self, tracked: TrackedStatement, operation: OperationHandle) -> bool:
        """The statement has been run again: the new operation stands for the old one wherever that is named."""
        old = None if tracked.operation is None else operation_id_of(tracked.operation)
        new = operation_id_of(operation)
        if old is None or new is None or not self._aliases.add(old, new, tracked.session):
            return False
        tracked.succeeded_by(operation)
        if self._open.pop(old, None) is not None:
            self._open[new] = tracked
        return True

    def closed(self, message: Message) -> None:
        """A client closes the operation that its call names: its records end here."""
        found = decode_operation_of_call(message)
        if found is not None:
            successor = self._aliases.drop(found[0])
            tracked = self._open.pop(found[0] if successor is None else successor, None)
            if tracked is not None:
                tracked.is_closed = True

    def drop(self, tracked: TrackedStatement) -> None:
        """Its end has been told. A successor stays: the client still names the operation that it knows.

        So does one that is withheld, until it is closed: its operation has an answer.
        """
        if tracked.is_withheld:
            return
        identifier = None if tracked.operation is None else operation_id_of(tracked.operation)
        if identifier is not None and self._open.get(identifier) is tracked:
            del self._open[identifier]

    def sessions_ended(self, sessions: Iterable[SessionHandle], now: float) -> list[StatementEnded]:
        """The backend ends the operations of a session with it."""
        ended = frozenset(sessions)
        if not ended:
            return []
        told = []
        for identifier in [i for i, tracked in self._open.items() if tracked.session in ended]:
            tracked = self._open.pop(identifier)
            tracked.is_closed = True
            told += tracked.gone(now)
        self._aliases.sessions_ended(ended)
        return told
