"""What the calls and replies that pass by tell: sessions, open operations, finished statuses."""

from __future__ import annotations

from typing import Final

from proxy.commands import Command, SessionClosed, SessionOpened
from proxy.finished import FinishedStatuses
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
            self.open_operations += decode_operation_reply(reader).status.ok
        elif end.call.key is not None and _says_finished(reader) and not end.calls_since:
            # A call sent since may be one that ends the operation.
            self.finished.remember(end.call.key, raw, header)
        return []


def _says_finished(reader: Reader) -> bool:
    return decode_state_reply(reader).state is OperationState.FINISHED


def _opened(reader: Reader) -> list[Command]:
    reply = decode_session_reply(reader)
    if not reply.status.ok or reply.session is None:
        return []
    return [SessionOpened(reply.session, reply.protocol_version)]
