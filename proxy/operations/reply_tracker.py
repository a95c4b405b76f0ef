"""Tracks sessions, operations and statements' ends by the calls and replies of one client that pass by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from proxy.access.handle_access import CATALOG_CALLS, HandleAccess
from proxy.access.handle_owners import HandleKind
from proxy.operations.events import Event, SessionClosed, SessionOpened
from proxy.operations.status_cache import StatusCache, key_of_status_call
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
    asks_for_rows,
    decode_configuration,
    decode_session_of_call,
    has_result_set_of_call,
)
from proxy.wire.hs2.open_session import expects_fetch_size, user_of, with_fetch_size
from proxy.wire.hs2.replies import (
    decode_operation_reply,
    decode_session_reply,
    decode_state_reply,
    decode_status_only,
    open_reply,
    with_has_result_set,
)
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import Header, Reader

# Calls about an operation whose replies may tell of its answer.
ASKING_CALLS: Final = frozenset({GET_OPERATION_STATUS, GET_RESULT_SET_METADATA, FETCH_RESULTS})

# Replies that are read are small: handles, a state, an error with its stack trace. But Spark says the text of a
# statement three times in an error, and a text that may fall back is up to 256 KB long and 128 KB more once
# rewritten.
WATCHED_REPLY_BYTES_MAX: Final = 2 * 1024 * 1024

# An operation in one of these never has rows.
_WITHOUT_ANSWER: Final = frozenset({OperationState.CANCELED, OperationState.CLOSED, OperationState.TIMEDOUT})

_MAY_END_AN_OPERATION: Final = frozenset({EXECUTE_STATEMENT, CANCEL_OPERATION, CLOSE_OPERATION, CLOSE_SESSION})


@dataclass(frozen=True)
class TrackedCall:
    """A call of the client whose reply is read."""

    # As the client made it. None for a statement: it may be long, and runs long.
    message: Message | None
    # The statement that it is about, and the operation of that run.
    tracked: TrackedStatement | None = None
    operation: OperationHandle | None = field(default=None, repr=False)
    # True if the reply is kept back until it has been judged. No statement becomes judged while its reply is
    # awaited.
    is_judged: bool = False
    # True if the client needs more in the reply than the backend says.
    is_completed: bool = False

    @property
    def is_kept_back(self) -> bool:
        """True if the client gets the reply only after it has been read."""
        return self.is_judged or self.is_completed

    @property
    def is_superseded(self) -> bool:
        """True if the statement falls back by now, or has fallen back, and the reply is about the first run."""
        tracked = self.tracked
        return tracked is not None and (tracked.is_falling_back or tracked.operation != self.operation)


def call_to_watch(message: Message) -> TrackedCall:
    """A call that is about no statement, and whose reply is read."""
    is_opening = message.header.name == hs2_calls.OPEN_SESSION
    return TrackedCall(message, is_completed=is_opening and expects_fetch_size(message))


def call_of_statement(tracked: TrackedStatement | None) -> TrackedCall:
    """The call that executes a statement."""
    return TrackedCall(None, tracked, is_judged=tracked is not None and tracked.is_judged)


def call_about_statement(message: Message, tracked: TrackedStatement | None) -> TrackedCall | None:
    """A call for an operation's state, columns or rows; None where nobody has to read the reply."""
    is_judged = tracked is not None and tracked.is_judged
    match message.header.name:
        case name if name == FETCH_RESULTS:
            tells_end = is_judged or (tracked is not None and tracked.ends_with_rows)
            is_read = tells_end and asks_for_rows(message)
        case name if name == GET_RESULT_SET_METADATA:
            is_read = is_judged
        case _:
            is_read = True
    if not is_read:
        return None
    return TrackedCall(message, tracked, None if tracked is None else tracked.operation, is_judged)


@dataclass(frozen=True)
class TrackedReply:
    """The reply to such a call, whole."""

    call: TrackedCall
    raw: bytes = field(repr=False)
    header: Header
    # Calls of the client since that may have ended an operation.
    calls_since: int
    # True if the client has sent nothing behind its call: all that it sends behind assumes the first run.
    is_last: bool

    def for_client(self) -> bytes:
        """The reply as the client gets it if it passes. Raises RemoteProtocolError or IncompleteError."""
        return with_fetch_size(self.raw, self.header) if self.call.is_completed else self.raw


class ReplyTracker:
    """Keeps the state that one connection's traffic shows, and reports it to others as events."""

    def __init__(
        self,
        tracked_statements: TrackedStatements,
        handle_access: HandleAccess,
        clock: Callable[[], float],
        framing: Framing = FRAMED,
    ) -> None:
        self._handle_access = handle_access
        self.status_cache = StatusCache(framing)
        self.open_operations = 0
        self._tracked_statements = tracked_statements
        self._clock = clock

    def note_call(self, message: Message, tracked: TrackedStatement | None) -> list[Event]:
        """The client makes a call, about that statement if it is tracked."""
        name = message.header.name
        if name in _MAY_END_AN_OPERATION:
            self.status_cache.clear()
        if name in (CLOSE_SESSION, CLOSE_OPERATION):
            self._handle_access.handle_closed(message)
        if name == CLOSE_SESSION:
            return self._session_closed(message)
        if name not in (CANCEL_OPERATION, CLOSE_OPERATION):
            return []
        if name == CLOSE_OPERATION:
            self.open_operations = max(0, self.open_operations - 1)
            self._tracked_statements.operation_closed(message)
        return [] if tracked is None else [*tracked.stopped(self._clock())]

    def note_reply(self, reply: TrackedReply) -> list[Event]:
        """A reply goes to the client. Raises RemoteProtocolError or IncompleteError if it cannot be read."""
        call, name, reader = reply.call, reply.header.name, open_reply(reply.raw, reply.header)
        if name in CATALOG_CALLS:
            return self._operation_opened(reader, None)
        match name:
            case hs2_calls.OPEN_SESSION:
                return self._session_opened(reader, call.message)
            case hs2_calls.EXECUTE_STATEMENT:
                return self._operation_opened(reader, call.tracked)
            case hs2_calls.FETCH_RESULTS:
                return self._rows_fetched(reader, call.tracked)
            case hs2_calls.GET_OPERATION_STATUS:
                return self._state_shown(reader, reply)
        return []

    def note_unread_reply(self, call: TrackedCall, name: str) -> list[Event]:
        """The reply to a call is too long to be read, is an exception, or will not be seen."""
        tracked = call.tracked
        if tracked is None or name in (GET_OPERATION_STATUS, GET_RESULT_SET_METADATA):
            return []
        if name != FETCH_RESULTS:
            return [*tracked.stopped(self._clock())]
        if call.is_superseded:
            return []
        ended = tracked.rows_came(self._clock())
        self._tracked_statements.statement_ended(tracked)
        return [*ended]

    def _session_opened(self, reader: Reader, call: Message | None) -> list[Event]:
        reply = decode_session_reply(reader)
        if not reply.status.ok or reply.session is None:
            return []
        self._handle_access.handle_opened(HandleKind.SESSION, reply.session)
        if call is None:
            return [SessionOpened(reply.session, reply.protocol_version, None)]
        return [SessionOpened(reply.session, reply.protocol_version, decode_configuration(call), user_of(call))]

    def _operation_opened(self, reader: Reader, tracked: TrackedStatement | None) -> list[Event]:
        reply = decode_operation_reply(reader)
        self.open_operations += reply.status.ok
        if reply.status.ok and reply.operation is not None:
            self._handle_access.handle_opened(HandleKind.OPERATION, reply.operation)
        if tracked is None:
            return []
        now = self._clock()
        if not reply.status.ok:
            return [*tracked.failed(now, reply.status.message or "")]
        if reply.operation is not None:
            tracked.operation_shown(reply.operation)
        ended: list[Event] = [] if tracked.run_async else [*tracked.finished(now)]
        if tracked.is_over:
            return ended
        if reply.operation is None:
            return [*tracked.stopped(now)]
        return [*ended, *self._tracked_statements.operation_opened(tracked, reply.operation, now)]

    def _rows_fetched(self, reader: Reader, tracked: TrackedStatement | None) -> list[Event]:
        if tracked is None:
            return []
        now, status = self._clock(), decode_status_only(reader)
        if not (status.ok or tracked.ends_with_rows):
            # The rows were asked for too early.
            return []
        ended = tracked.rows_came(now) if status.ok else tracked.failed(now, status.message or "")
        self._tracked_statements.statement_ended(tracked)
        return [*ended]

    def _state_shown(self, reader: Reader, reply: TrackedReply) -> list[Event]:
        call, shown = reply.call, decode_state_reply(reader)
        # A call sent since may be one that ends the operation.
        if shown.state is OperationState.FINISHED and not reply.calls_since and call.message is not None:
            self._remember_status(call.message, reply)
        if call.tracked is None or call.is_superseded:
            return []
        return self._state_entered(call.tracked, shown.state, shown.message or "")

    def _remember_status(self, call: Message, reply: TrackedReply) -> None:
        """Remember the status of an operation that has finished, and what its handle says of a result set.

        Spark's statuses do not say it, though its handles do. hive-jdbc 4.0 asks for the status once per row until
        one says that there is a result set, and `executeAsync` of every hive-jdbc until one says whether there is.
        """
        raw, has_result_set = reply.raw, has_result_set_of_call(call)
        if has_result_set is not None:
            raw = with_has_result_set(raw, reply.header, has_result_set)
        self.status_cache.remember_status(key_of_status_call(call), raw, reply.header)

    def _state_entered(self, tracked: TrackedStatement, state: OperationState | None, message: str) -> list[Event]:
        now = self._clock()
        ended: list[Event] = []
        if state is OperationState.FINISHED:
            ended += tracked.finished(now)
        elif state is OperationState.ERROR:
            ended += tracked.failed(now, message)
        elif state in _WITHOUT_ANSWER:
            ended += tracked.ended_without_answer(now)
        if tracked.is_over:
            self._tracked_statements.statement_ended(tracked)
        return ended

    def _session_closed(self, message: Message) -> list[Event]:
        session = decode_session_of_call(message)
        if session is None:
            return []
        return [SessionClosed(session), *self._tracked_statements.sessions_ended([session], self._clock())]
