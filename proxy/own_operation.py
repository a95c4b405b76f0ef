"""The operation that a query of the proxy's own has on the backend: nobody but us would ever close it."""

from __future__ import annotations

from proxy.operation import CONTROL_REPLY_BYTES_MAX, Call, Reply
from proxy.reruns import read_operation
from proxy.wire.hs2.calls import (
    CANCEL_OPERATION,
    CLOSE_OPERATION,
    EXECUTE_STATEMENT,
    OperationHandle,
    encode_operation_call,
)


class OwnOperation:
    """There is at most one on a connection. Told of each call of ours and of each reply to one."""

    def __init__(self) -> None:
        # Whether the backend is still to say which operation a statement of ours is.
        self.is_awaited = False
        # Whether the last words have been said: the backend is to read them.
        self.is_being_ended = False
        self._handle: OperationHandle | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is one that the backend has named."""
        return self._handle is not None

    def asked(self, call: Call) -> None:
        """A call of ours has been sent."""
        if call.name == EXECUTE_STATEMENT:
            self.is_awaited = True
        elif call.name == CLOSE_OPERATION:
            self._handle = None

    def answered(self, name: str, seqid: int, raw: Reply) -> None:
        """The reply to a call of ours has come."""
        if name == EXECUTE_STATEMENT:
            self.is_awaited = False
            reply = read_operation(raw, seqid)
            self._handle = None if reply is None else reply.operation

    def last_words(self) -> tuple[Call, ...]:
        """What ends it, where it is known. To close it cancels it too, but not on every server."""
        if self._handle is None:
            return ()
        handle, self._handle = self._handle, None
        self.is_being_ended = True
        return tuple(
            Call(name, 1, encode_operation_call(name, 1, handle), CONTROL_REPLY_BYTES_MAX)
            for name in (CANCEL_OPERATION, CLOSE_OPERATION)
        )
