"""What the calls and replies that pass by tell: sessions, open operations, finished statuses."""

from __future__ import annotations

from typing import Final

from proxy.commands import Command, FilterRefused, SessionClosed, SessionOpened
from proxy.finished import FinishedStatuses
from proxy.metastore import FILTER_REFUSED
from proxy.wire.follow import ReplyEnd
from proxy.wire.hs2 import (
    CANCEL_OPERATION,
    CLOSE_OPERATION,
    CLOSE_SESSION,
    EXECUTE_STATEMENT,
    OPEN_SESSION,
    OperationState,
    decode_session_of_call,
)
from proxy.wire.messages import Message
from proxy.wire.replies import decode_operation_reply, decode_session_reply, decode_state_reply, open_reply
from proxy.wire.thrift import Header, Reader

_MAY_END_AN_OPERATION: Final = frozenset({EXECUTE_STATEMENT, CANCEL_OPERATION, CLOSE_OPERATION, CLOSE_SESSION})


class Observer:
    """Keeps what one connection's traffic says, and reports what others need to know as commands."""

    def __init__(self) -> None:
        self.finished = FinishedStatuses()
        self.open_operations = 0
        # Whether the statement that was executed last went on with another text.
        self.rewritten = False

    def note_call(self, message: Message) -> list[Command]:
        """The client makes a call."""
        name = message.header.name
        if name in _MAY_END_AN_OPERATION:
            self.finished.forget()
        if name == CLOSE_OPERATION:
            self.open_operations = max(0, self.open_operations - 1)
        if name == CLOSE_SESSION:
            session = decode_session_of_call(message)
            return [] if session is None else [SessionClosed(session)]
        return []

    def note_reply(self, end: ReplyEnd, raw: bytes, header: Header) -> list[Command]:
        """A watched reply has passed. Raises RemoteProtocolError or IncompleteError if it cannot be read."""
        reader = open_reply(raw, header)
        if header.name == OPEN_SESSION:
            return _opened(reader)
        if header.name == EXECUTE_STATEMENT:
            status = decode_operation_reply(reader).status
            self.open_operations += status.ok
            return [] if status.ok else self._failed(status.message)
        if end.call.key is None:
            return []
        reply = decode_state_reply(reader)
        if reply.state is OperationState.ERROR:
            return self._failed(reply.message)
        # A call sent since may be one that ends the operation.
        if reply.state is OperationState.FINISHED and not end.calls_since:
            self.finished.remember(end.call.key, raw, header)
        return []

    def _failed(self, message: str | None) -> list[Command]:
        """The statement has failed. What comes after it is another one, so this is said once."""
        refused = self.rewritten and FILTER_REFUSED in (message or "")
        self.rewritten = self.rewritten and not refused
        return [FilterRefused()] if refused else []


def _opened(reader: Reader) -> list[Command]:
    reply = decode_session_reply(reader)
    if not reply.status.ok or reply.session is None:
        return []
    return [SessionOpened(reply.session, reply.protocol_version)]
