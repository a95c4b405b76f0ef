"""Judges the backend's replies about rewritten statements, before any of them reaches the client.

A rewritten statement falls back where it has failed, and where its premises no longer hold by the time its answer
is there: then the original is run, and the client sees that answer alone. The policy only says what is to be done
with a reply; `proxy.operations.fallback` does it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from proxy.config.rewriting import RewriteSection
from proxy.operations.reply_tracker import TrackedReply
from proxy.operations.tracked_statements import TrackedStatement, TrackedStatements
from proxy.wire.hs2.calls import (
    EXECUTE_STATEMENT,
    GET_OPERATION_STATUS,
    GET_RESULT_SET_METADATA,
    OperationHandle,
    OperationState,
    encode_failure,
    encode_still_running,
)
from proxy.wire.hs2.replies import decode_operation_reply, decode_state_reply, decode_status_only, open_reply
from proxy.wire.hs2.result_set import ColumnType, UnreadableError, decode_metadata_reply
from proxy.wire.thrift.reader import Header, Reader

# A failure that the rewrite causes shows while Spark plans or begins to read. A later one is hardly ours. It has
# cost the user a while already, and to do all of that again would double the wait for the error.
FALLBACK_WITHIN_S: Final = RewriteSection().rerun_within_s

# SQLSTATE 40001, serialization failure: clients that retry a statement do so on it.
_SERIALIZATION_FAILURE: Final = "40001"
_NOT_RUN_AGAIN: Final = (
    "Starpruner dropped the answer of this statement: its session, or a table that it reads, was changed while it"
    " ran, and it could not be run again here. Run it again, or SET starpruner.enabled=false before it."
)
_NOTHING_WRITTEN: Final = (
    "Starpruner sent this statement with keys that were out of date: it failed before it had written a row, and"
    " could not be run again here. Run it again."
)
_END_UNKNOWN: Final = (
    "Starpruner ran this statement a second time, as it came, and does not know how that ended: see whether its"
    " table has been written before you run it again."
)
# Spark's own words for rows that are asked for too early.
_NOT_FINISHED: Final = "Expected state FINISHED, but found RUNNING"

# Spark answers with these for a statement that it has not analysed yet, and for one without columns.
_PLACEHOLDER: Final = (ColumnType("Result", "string"),)


@dataclass(frozen=True)
class Pass:
    """The backend's reply goes to the client."""

    # True if it tells the client the columns of the answer.
    shows_columns: bool = False


@dataclass(frozen=True)
class Substitute:
    """The client gets this reply instead of the backend's."""

    reply: bytes = field(repr=False)


@dataclass(frozen=True)
class Withhold:
    """The answer was overtaken and nothing can replace it: the client gets this refusal instead."""

    refusal: bytes = field(repr=False)
    # An operation that has to be closed, because the client will never know its handle.
    orphan: OperationHandle | None = field(default=None, repr=False)


@dataclass(frozen=True)
class FallBack:
    """The original is to be run. The client knows nothing of the first run's end yet."""

    # The failure's message; None where the first run was overtaken.
    failure: str | None = field(repr=False)
    # The reply for the client where the original cannot be run after all.
    refusal: bytes = field(repr=False)
    # See Withhold.
    orphan: OperationHandle | None = field(default=None, repr=False)


Judgement: TypeAlias = Pass | Substitute | Withhold | FallBack


@dataclass(frozen=True)
class FallbackPolicy:
    """When a rewritten statement falls back."""

    tracked_statements: TrackedStatements
    clock: Callable[[], float]
    # A failure that shows later than this after the statement was sent is left to the client.
    within_s: float = FALLBACK_WITHIN_S

    def judge(self, tracked: TrackedStatement, reply: TrackedReply) -> Judgement:
        """Judge a reply about the statement. Raises RemoteProtocolError or IncompleteError if it is unreadable."""
        shown = _shown(reply, tracked)
        if shown is None:
            return Pass()
        if reply.call.is_superseded:
            return Substitute(_of_superseded(reply.header))
        if shown.failure is not None:
            return self._judge_failure(tracked, reply, shown.failure)
        if not tracked.is_overtaken():
            return Pass(shown.has_columns)
        refused = refusal(reply.header, tracked)
        if self._may_fall_back(tracked, reply, None):
            return FallBack(None, refused, shown.orphan)
        return Withhold(refused, shown.orphan)

    def _judge_failure(self, tracked: TrackedStatement, reply: TrackedReply, message: str) -> Judgement:
        if self._may_fall_back(tracked, reply, message):
            return FallBack(message, reply.raw if tracked.dispatch.write is None else _end_unknown(reply.header))
        if tracked.is_withheld or tracked.is_out_of_date(message):
            return Substitute(refusal(reply.header, tracked))
        return Pass()

    def _may_fall_back(self, tracked: TrackedStatement, reply: TrackedReply, failure: str | None) -> bool:
        has_room = self.tracked_statements.has_room_for_fallback
        return reply.is_last and has_room and tracked.may_fall_back(failure, self.clock(), self.within_s)


@dataclass(frozen=True)
class _Shown:
    """Something of a statement that the client may not have known before: a failure, or else an answer."""

    failure: str | None = None
    has_columns: bool = False
    orphan: OperationHandle | None = None


def _shown(reply: TrackedReply, tracked: TrackedStatement) -> _Shown | None:
    """The news that a reply has of a statement's answer; None without any."""
    reader = open_reply(reply.raw, reply.header)
    match reply.header.name:
        case name if name == EXECUTE_STATEMENT:
            return _shown_by_execute(reader, tracked)
        case name if name == GET_OPERATION_STATUS:
            return _shown_by_status(reader)
        case name if name == GET_RESULT_SET_METADATA:
            return _shown_by_columns(reader)
    status = decode_status_only(reader)
    if status.ok:
        return _Shown()
    # Rows that are asked for too early are refused, and the statement goes on.
    return _Shown(status.all_words) if tracked.ends_with_rows or tracked.is_withheld else None


def _shown_by_execute(reader: Reader, tracked: TrackedStatement) -> _Shown | None:
    executed = decode_operation_reply(reader)
    if not executed.status.ok:
        return _Shown(executed.status.all_words)
    return None if tracked.run_async else _Shown(orphan=executed.operation)


def _shown_by_status(reader: Reader) -> _Shown | None:
    reply = decode_state_reply(reader)
    if reply.state is OperationState.ERROR:
        return _Shown(reply.message or "")
    return _Shown() if reply.state is OperationState.FINISHED else None


def _shown_by_columns(reader: Reader) -> _Shown | None:
    """The columns of an answer: once they are known, the statement has been analysed."""
    try:
        reply = decode_metadata_reply(reader)
    except UnreadableError:
        return None
    return _Shown(has_columns=True) if reply.status.ok and reply.columns != _PLACEHOLDER else None


def _of_superseded(header: Header) -> bytes:
    """The reply about the first operation of a statement that falls back: it is still running."""
    if header.name == GET_OPERATION_STATUS:
        return encode_still_running(header.seqid)
    return encode_failure(header.name, header.seqid, _NOT_FINISHED)


def refusal(header: Header, tracked: TrackedStatement | None) -> bytes:
    """The reply to a call for an answer that was dropped and that no second run could replace."""
    if tracked is None or tracked.dispatch.write is None:
        return encode_failure(header.name, header.seqid, _NOT_RUN_AGAIN, _SERIALIZATION_FAILURE)
    if tracked.has_fallen_back:
        return _end_unknown(header)
    return encode_failure(header.name, header.seqid, _NOTHING_WRITTEN, _SERIALIZATION_FAILURE)


def _end_unknown(header: Header) -> bytes:
    """The reply to a call for the outcome of a statement that writes, of which nobody knows the end."""
    return encode_failure(header.name, header.seqid, _END_UNKNOWN)
