"""Runs a statement again as the client wrote it, after what was sent in its place has failed or was overtaken.

A generator of calls that is sent their replies, as in `proxy.operations.run_query`. The client waits for the
reply to the call that showed the failure, and sees that one reply only.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Final, TypeAlias

from proxy.operations.events import StatementEnded
from proxy.operations.internal_call import CONTROL_REPLY_BYTES_MAX, Call, Reply, read_operation
from proxy.operations.tracked_statements import TrackedStatement, TrackedStatements
from proxy.wire.hs2.calls import (
    CANCEL_OPERATION,
    CLOSE_OPERATION,
    EXECUTE_STATEMENT,
    FETCH_RESULTS,
    GET_OPERATION_STATUS,
    GET_RESULT_SET_METADATA,
    OperationHandle,
    OperationState,
    encode_failure,
    encode_operation_call,
)
from proxy.wire.hs2.replies import StateReply, Status, decode_state_reply, expect_reply, open_reply
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.messages import Message

# Replies come in the order of the calls, so one number does for all of them.
_SEQID: Final = 1

WAITING: Final = frozenset({OperationState.INITIALIZED, OperationState.PENDING, OperationState.RUNNING})

# The calls that are answered from the whole answer. Asked too early for the columns, Spark makes up some, and says
# the same for ever.
_NEED_THE_END: Final = frozenset({FETCH_RESULTS, GET_RESULT_SET_METADATA})

# The reply for the client, or None where its call is to be made again and names the new operation by then.
Answer: TypeAlias = bytes | None


class FallbackRun:
    """A rerun on its way, while the client waits for the reply to `call`."""

    def __init__(
        self, tracked: TrackedStatement, call: Message, failure: bytes, steps: Generator[Call, Reply, Answer]
    ) -> None:
        self.tracked = tracked
        self.call = call
        self.answer: Answer = None
        self._failure = failure
        self._steps = steps
        tracked.is_falling_back = True

    def advance(self, reply: Reply) -> Call | None:
        """The next call to make; None once `answer` says what the client gets."""
        try:
            # None starts a generator; its type knows no way to say so.
            return self._steps.send(reply)
        except StopIteration as end:
            self.answer = end.value
            self.tracked.is_falling_back = False
            return None

    def told(self, now: float) -> list[StatementEnded]:
        """How the statement ended, where the client is given an answer that says it failed."""
        if self.answer is self._failure:
            return self.tracked.fallback_failed()
        return self.tracked.failed(now, "")


def run_original(
    tracked_statements: TrackedStatements,
    tracked: TrackedStatement,
    original_call: Message,
    failed: Message,
    failure: bytes,
) -> Generator[Call, Reply, Answer]:
    """Run it again. `failed` is the call whose reply showed the first run's end.

    `failure` is what it is answered where the statement cannot be run again.
    """
    first = tracked.operation
    raw = yield Call(EXECUTE_STATEMENT, original_call.header.seqid, original_call.raw, CONTROL_REPLY_BYTES_MAX)
    reply = read_operation(raw, original_call.header.seqid)
    needs_end = failed.header.name in _NEED_THE_END
    if needs_end and reply is not None and not reply.status.ok:
        return _failure(failed, reply.status)
    if first is None or reply is None or reply.operation is None:
        return failure
    if tracked.is_closed:
        yield _call(CLOSE_OPERATION, reply.operation)
        return None
    if not tracked_statements.succeed(tracked, reply.operation):
        yield _call(CLOSE_OPERATION, reply.operation)
        return failure
    # Only now: somebody who cancels it from another connection meanwhile finds an operation that exists.
    yield _call(CLOSE_OPERATION, first)
    if tracked.is_stopped:
        yield _call(CANCEL_OPERATION, reply.operation)
    if not needs_end:
        return None
    return (yield from _until_finished(reply.operation, failed, failure))


def _until_finished(operation: OperationHandle, failed: Message, failure: bytes) -> Generator[Call, Reply, Answer]:
    """The client asked for rows or columns, which may only be asked for once there are any."""
    while True:
        raw = yield _call(GET_OPERATION_STATUS, operation)
        reply = _read_state(raw)
        if reply is None or reply.state is None:
            return failure
        if reply.state is OperationState.ERROR:
            return _failure(failed, reply)
        if reply.state not in WAITING:
            # It has rows; or it was cancelled or timed out, of which the server has words for that call alone.
            return None


def _failure(failed: Message, told: Status | StateReply) -> bytes:
    header = failed.header
    return encode_failure(header.name, header.seqid, told.message or "", told.sql_state, told.error_code)


def _call(name: str, operation: OperationHandle) -> Call:
    return Call(name, _SEQID, encode_operation_call(name, _SEQID, operation), CONTROL_REPLY_BYTES_MAX)


def _read_state(raw: Reply) -> StateReply | None:
    if raw is None:
        return None
    try:
        return decode_state_reply(open_reply(raw, expect_reply(raw, GET_OPERATION_STATUS, _SEQID)))
    except (RemoteProtocolError, IncompleteError):
        return None
