"""What the calls and replies that pass by tell: sessions, open operations, finished statuses, statements' ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from proxy.access.handle_access import CATALOG_CALLS, HandleAccess
from proxy.access.handle_owners import HandleKind
from proxy.operations.events import Event, SessionClosed, SessionOpened
from proxy.operations.status_cache import StatusCache, key_of
from proxy.operations.tracked_statements import TrackedStatement, TrackedStatements
from proxy.wire.framing import FRAMED, Framing
from proxy.wire.hs2 import calls as hs2_calls
from proxy.wire.hs2.calls import (
    CANCEL_OPERATION,
    CLOSE_OPERATION,
    CLOSE_SESSION,
    EXECUTE_STATEMENT,
    FETCH_RESULTS,
    GET_OPERATION_STATUS,
    GET_RESULT_SET_METADATA,
    OperationHandle,
    OperationState,
    decode_configuration,
    decode_session_of_call,
)
from proxy.wire.hs2.open_session import user_of
from proxy.wire.hs2.replies import (
    decode_operation_reply,
    decode_session_reply,
    decode_state_reply,
    decode_status_only,
    open_reply,
)
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import Header, Reader

# An operation in one of these never has rows.
_WITHOUT_ANSWER: Final = frozenset({OperationState.CANCELED, OperationState.CLOSED, OperationState.TIMEDOUT})

_MAY_END_AN_OPERATION: Final = frozenset({EXECUTE_STATEMENT, CANCEL_OPERATION, CLOSE_OPERATION, CLOSE_SESSION})


@dataclass(frozen=True)
class TrackedCall:
    """A call of the client whose reply is read."""

    # As the client made it. None for a statement: it may be long, and runs long.
    message: Message | None
    # The statement that it is about, and which run of it.
    tracked: TrackedStatement | None = None
    operation: OperationHandle | None = field(default=None, repr=False)

    @property
    def is_superseded(self) -> bool:
        """Whether the statement is being run again by now, or has been, and the reply is about the first run."""
        tracked = self.tracked
        return tracked is not None and (tracked.is_falling_back or tracked.operation != self.operation)


class ReplyTracker:
    """Keeps what one connection's traffic says, and reports what others need to know as events."""

    def __init__(
        self,
        tracked_statements: TrackedStatements,
        handle_access: HandleAccess,
        clock: Callable[[], float],
        framing: Framing = FRAMED,
    ) -> None:
        self._handle_access = handle_access
        self.finished = StatusCache(framing)
        self.open_operations = 0
        self._tracked_statements = tracked_statements
        self._clock = clock

    def note_call(self, message: Message, tracked: TrackedStatement | None) -> list[Event]:
        """The client makes a call, about that statement if it is known."""
        name = message.header.name
        if name in _MAY_END_AN_OPERATION:
            self.finished.forget()
        if name in (CLOSE_SESSION, CLOSE_OPERATION):
            self._handle_access.handle_closed(message)
        if name == CLOSE_SESSION:
            return self._session_closed(message)
        if name not in (CANCEL_OPERATION, CLOSE_OPERATION):
            return []
        if name == CLOSE_OPERATION:
            self.open_operations = max(0, self.open_operations - 1)
            self._tracked_statements.closed(message)
        return [] if tracked is None else [*tracked.gone(self._clock())]

    def note_reply(self, tracked_call: TrackedCall, raw: bytes, header: Header, calls_since: int) -> list[Event]:
        """A watched reply has passed. Raises RemoteProtocolError or IncompleteError if it cannot be read."""
        reader = open_reply(raw, header)
        if header.name in CATALOG_CALLS:
            return self._executed(reader, None)
        match header.name:
            case hs2_calls.OPEN_SESSION:
                return self._opened(reader, tracked_call.message)
            case hs2_calls.EXECUTE_STATEMENT:
                return self._executed(reader, tracked_call.tracked)
            case hs2_calls.FETCH_RESULTS:
                return self._fetched(reader, tracked_call.tracked)
            case hs2_calls.GET_OPERATION_STATUS:
                return self._told_state(reader, tracked_call, raw, header, calls_since)
        return []

    def _told_state(
        self, reader: Reader, tracked_call: TrackedCall, raw: bytes, header: Header, calls_since: int
    ) -> list[Event]:
        reply = decode_state_reply(reader)
        # A call sent since may be one that ends the operation.
        if reply.state is OperationState.FINISHED and not calls_since and tracked_call.message is not None:
            self.finished.remember(key_of(tracked_call.message), raw, header)
        if tracked_call.tracked is None or tracked_call.is_superseded:
            return []
        return self._in_state(tracked_call.tracked, reply.state, reply.message or "")

    def note_unread(self, tracked_call: TrackedCall, name: str) -> list[Event]:
        """The reply to a watched call is too long to be read, is an exception, or will not be seen."""
        tracked = tracked_call.tracked
        if tracked is None or name in (GET_OPERATION_STATUS, GET_RESULT_SET_METADATA):
            return []
        if name == FETCH_RESULTS:
            self._tracked_statements.drop(tracked)
            return [*tracked.rows_came(self._clock())]
        return [*tracked.gone(self._clock())]

    def note_refused(self, tracked: TrackedStatement) -> list[Event]:
        """The answer of a statement was dropped, and the client has been told so."""
        return [*tracked.failed(self._clock(), "")]

    def _opened(self, reader: Reader, call: Message | None) -> list[Event]:
        reply = decode_session_reply(reader)
        if not reply.status.ok or reply.session is None:
            return []
        self._handle_access.handle_opened(HandleKind.SESSION, reply.session)
        if call is None:
            return [SessionOpened(reply.session, reply.protocol_version, None)]
        return [SessionOpened(reply.session, reply.protocol_version, decode_configuration(call), user_of(call))]

    def _executed(self, reader: Reader, tracked: TrackedStatement | None) -> list[Event]:
        reply = decode_operation_reply(reader)
        self.open_operations += reply.status.ok
        if reply.status.ok and reply.operation is not None:
            self._handle_access.handle_opened(HandleKind.OPERATION, reply.operation)
        if tracked is None:
            return []
        now = self._clock()
        if not reply.status.ok:
            return [*tracked.failed(now, reply.status.message or "")]
        told: list[Event] = [] if tracked.run_async else [*tracked.finished(now)]
        if tracked.is_over:
            return told
        if reply.operation is None:
            return [*tracked.gone(now)]
        return [*told, *self._tracked_statements.opened(tracked, reply.operation, now)]

    def _fetched(self, reader: Reader, tracked: TrackedStatement | None) -> list[Event]:
        if tracked is None:
            return []
        now, status = self._clock(), decode_status_only(reader)
        if not (status.ok or tracked.ends_with_rows):
            # Asked for too early.
            return []
        told = tracked.rows_came(now) if status.ok else tracked.failed(now, status.message or "")
        self._tracked_statements.drop(tracked)
        return [*told]

    def _in_state(self, tracked: TrackedStatement, state: OperationState | None, message: str) -> list[Event]:
        now = self._clock()
        told: list[Event] = []
        if state is OperationState.FINISHED:
            told += tracked.finished(now)
        elif state is OperationState.ERROR:
            told += tracked.failed(now, message)
        elif state in _WITHOUT_ANSWER:
            tracked.is_unsettled = False
            told += tracked.gone(now)
        if tracked.is_over:
            self._tracked_statements.drop(tracked)
        return told

    def _session_closed(self, message: Message) -> list[Event]:
        session = decode_session_of_call(message)
        if session is None:
            return []
        return [SessionClosed(session), *self._tracked_statements.sessions_ended([session], self._clock())]
