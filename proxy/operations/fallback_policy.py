"""Judges the backend's replies about rewritten statements, before any of them reaches the client.

A rewritten statement falls back where it has failed, and where its premises no longer hold by the time its answer
is there: then the statement is run as it came, and the client sees that answer alone. Binary connections
(`proxy.relay.pending_calls`) and HTTP (`proxy.http.exchange`) share these rules; the calls are made by
`proxy.operations.fallback`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from proxy.operations.internal_call import CONTROL_REPLY_BYTES_MAX, Call
from proxy.operations.tracked_statements import TrackedStatement, TrackedStatements
from proxy.wire.hs2.calls import (
    CLOSE_OPERATION,
    EXECUTE_STATEMENT,
    GET_OPERATION_STATUS,
    GET_RESULT_SET_METADATA,
    OperationHandle,
    OperationState,
    encode_failure,
    encode_operation_call,
    encode_still_running,
)
from proxy.wire.hs2.replies import decode_operation_reply, decode_state_reply, decode_status_only, open_reply
from proxy.wire.hs2.result_set import ColumnType, UnreadableError, decode_metadata_reply
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import Header, Reader

# SQLSTATE 40001, serialization failure: clients that retry a statement do so on it.
_SERIALIZATION_FAILURE: Final = "40001"
_NOT_RUN_AGAIN: Final = (
    "Starpruner dropped the answer of this statement: its session, or a table that it reads, was changed while it"
    " ran, and it could not be run again here. Run it again, or SET starpruner.enabled=false before it."
)
# Spark's own words for rows that are asked for too early.
_NOT_FINISHED: Final = "Expected state FINISHED, but found RUNNING"

# Spark answers so for a statement that it has not analysed yet, and for one without columns.
_PLACEHOLDER: Final = (ColumnType("Result", "string"),)


@dataclass(frozen=True)
class SubstituteReply:
    """The client gets this reply instead of the backend's."""

    reply: bytes = field(repr=False)
    # An operation that has to be closed, because the client will never know its handle.
    orphan: OperationHandle | None = field(default=None, repr=False)


@dataclass(frozen=True)
class FallbackNeeded:
    """A statement is to be run as it came. Its client knows nothing of the first run's end yet."""

    tracked: TrackedStatement
    # The failure's message; None where the first run was overtaken.
    failure: str | None = field(repr=False)
    # The client's call whose reply shows the end; None where that is the statement's own.
    call: Message | None
    # The reply for the client where the statement cannot be run again after all.
    refusal: bytes = field(repr=False)
    # See SubstituteReply.
    orphan: OperationHandle | None = field(default=None, repr=False)


# None lets the backend's reply pass to the client.
Judgement: TypeAlias = SubstituteReply | FallbackNeeded | None


@dataclass(frozen=True)
class JudgedReply:
    """A reply about a statement."""

    raw: bytes = field(repr=False)
    header: Header
    # The client's call that it answers; None where that is the statement's own.
    call: Message | None
    # Whether it is about the first run of a statement that is being run again, or has been.
    is_superseded: bool
    # Whether the client has sent nothing behind its call: what it sends behind counts on the first run.
    is_last: bool


@dataclass(frozen=True)
class FallbackPolicy:
    """When a rewritten statement is run as it came."""

    tracked_statements: TrackedStatements
    clock: Callable[[], float]
    # A failure that shows later than this is left to the client: see `proxy.relay.relay.FALLBACK_WITHIN_S`.
    within_s: float

    def judge(self, tracked: TrackedStatement, reply: JudgedReply) -> Judgement:
        """Judge a reply about the statement. Raises RemoteProtocolError or IncompleteError if it is unreadable."""
        shown = _shown(reply, tracked)
        if shown is None:
            return None
        if reply.is_superseded:
            return SubstituteReply(_of_superseded(reply.header))
        if shown.failure is not None:
            return self._failed(tracked, reply, shown.failure)
        if tracked.is_overtaken():
            return self._overtaken(tracked, reply, shown.orphan)
        tracked.has_shown_columns |= shown.has_columns
        return None

    def _failed(self, tracked: TrackedStatement, reply: JudgedReply, message: str) -> Judgement:
        may_fall_back = tracked.may_fall_back(self.clock(), message, self.within_s)
        if may_fall_back and self._may_run_original(tracked, reply):
            return FallbackNeeded(tracked, message, reply.call, reply.raw)
        if tracked.is_withheld or tracked.is_out_of_date(message):
            return SubstituteReply(refusal(reply.header))
        return None

    def _overtaken(
        self, tracked: TrackedStatement, reply: JudgedReply, orphan: OperationHandle | None
    ) -> Judgement:
        tracked.is_withheld = True
        refused = refusal(reply.header)
        if self._may_run_original(tracked, reply):
            return FallbackNeeded(tracked, None, reply.call, refused, orphan)
        return SubstituteReply(refused, orphan)

    def _may_run_original(self, tracked: TrackedStatement, reply: JudgedReply) -> bool:
        return reply.is_last and tracked.may_run_original() and self.tracked_statements.has_room_for_fallback()


def close_orphan(orphan: OperationHandle) -> Call:
    """The call that closes an operation of which the client will never know."""
    return Call(CLOSE_OPERATION, 1, encode_operation_call(CLOSE_OPERATION, 1, orphan), CONTROL_REPLY_BYTES_MAX)


@dataclass(frozen=True)
class _Shown:
    """Something of a statement that the client may not have known before: a failure, or else an answer."""

    failure: str | None = None
    has_columns: bool = False
    orphan: OperationHandle | None = None


def _shown(reply: JudgedReply, tracked: TrackedStatement) -> _Shown | None:
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
    """The columns of an answer: once they are told, the statement has been analysed."""
    try:
        reply = decode_metadata_reply(reader)
    except UnreadableError:
        return None
    return _Shown(has_columns=True) if reply.status.ok and reply.columns != _PLACEHOLDER else None


def _of_superseded(header: Header) -> bytes:
    """The reply about an operation that is being run again: it is still running."""
    if header.name == GET_OPERATION_STATUS:
        return encode_still_running(header.seqid)
    return encode_failure(header.name, header.seqid, _NOT_FINISHED)


def refusal(header: Header) -> bytes:
    """The reply to a call for an answer that was dropped and that no second run could replace."""
    return encode_failure(header.name, header.seqid, _NOT_RUN_AGAIN, _SERIALIZATION_FAILURE)
