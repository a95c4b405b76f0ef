"""Calls of the proxy's own, and the operation that they open on the backend: nobody else closes it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from proxy.wire.hs2.calls import (
    CANCEL_OPERATION,
    CLOSE_OPERATION,
    EXECUTE_STATEMENT,
    OperationHandle,
    encode_operation_call,
)
from proxy.wire.hs2.replies import OperationReply, decode_operation_reply, expect_reply, open_reply
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError

# Replies that carry no rows: a status with an error's stack trace stays far below this.
CONTROL_REPLY_BYTES_MAX: Final = 1024 * 1024


@dataclass(frozen=True)
class Call:
    """A call to send. Its reply comes back as bytes, or as None if longer than `reply_bytes_max`."""

    name: str
    seqid: int
    message: bytes = field(repr=False)
    reply_bytes_max: int


Reply: TypeAlias = bytes | None


class InternalOperation:
    """The operation of our calls on a connection, at most one. It is told of each call and of each reply."""

    def __init__(self) -> None:
        # True if the backend has not yet named the operation of a statement of ours.
        self.is_awaited = False
        # True if the closing calls have been made, and the backend still has to read them.
        self.is_being_ended = False
        self._handle: OperationHandle | None = None

    @property
    def is_open(self) -> bool:
        """True if the backend has named an operation of ours that is not closed."""
        return self._handle is not None

    def call_sent(self, call: Call) -> None:
        """A call of ours has been sent."""
        if call.name == EXECUTE_STATEMENT:
            self.is_awaited = True
        elif call.name == CLOSE_OPERATION:
            self._handle = None

    def reply_came(self, name: str, seqid: int, raw: Reply) -> None:
        """The reply to a call of ours has come."""
        if name == EXECUTE_STATEMENT:
            self.is_awaited = False
            reply = read_operation(raw, seqid)
            self._handle = None if reply is None else reply.operation

    def closing_calls(self) -> tuple[Call, ...]:
        """The calls that end it, where it is known."""
        if self._handle is None:
            return ()
        handle, self._handle = self._handle, None
        self.is_being_ended = True
        return operation_closing_calls(handle)


def operation_closing_calls(operation: OperationHandle) -> tuple[Call, ...]:
    """The calls that end an operation. Closing it cancels it too, but not on every server."""
    return tuple(
        Call(name, 1, encode_operation_call(name, 1, operation), CONTROL_REPLY_BYTES_MAX)
        for name in (CANCEL_OPERATION, CLOSE_OPERATION)
    )


def read_operation(raw: Reply, seqid: int) -> OperationReply | None:
    """The reply to an ExecuteStatement of ours, or None where it cannot be read."""
    if raw is None:
        return None
    try:
        return decode_operation_reply(open_reply(raw, expect_reply(raw, EXECUTE_STATEMENT, seqid)))
    except (RemoteProtocolError, IncompleteError):
        return None
