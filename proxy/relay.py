"""The state machine of one client connection and its one backend connection. No I/O: bytes in, commands out.

From the backend, bytes pass as they come. From the client, whole messages are looked at: an ExecuteStatement
is held until `release` says which text goes on, and meanwhile `ask` sends calls of the proxy's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from proxy.commands import (
    BackendReply,
    Close,
    Command,
    PauseClient,
    ResumeClient,
    SendBackend,
    SendClient,
    StatementHeld,
    TurnedTransparent,
)
from proxy.finished import key_of
from proxy.negotiation import Negotiation, Turn
from proxy.observer import Observer
from proxy.operation import Call
from proxy.wire import hs2
from proxy.wire.errors import IncompleteError, LocalProtocolError, RemoteProtocolError
from proxy.wire.follow import Forward, Handling, Lost, PendingCall, ReplyEnd, ReplyFollower
from proxy.wire.frames import frame
from proxy.wire.hs2 import StatementCall, decode_statement_call, replace_statement
from proxy.wire.kinds import MessageType
from proxy.wire.messages import Message, MessageReader
from proxy.wire.replies import expect_reply

# Spark Thrift Server itself cuts a connection whose message is longer, so no larger one can be answered.
REQUEST_BYTES_MAX: Final = 100 * 1024 * 1024
# A client waits for a reply before it sends its next call. What comes while nothing can be handled is kept up
# to here (and one read more); reading on until then is how we notice that the client has left.
WAITING_BYTES_MAX: Final = 64 * 1024
# Replies that are read are small: handles, a state, an error with its stack trace.
WATCHED_REPLY_BYTES_MAX: Final = 1024 * 1024


class Phase(Enum):
    """Where a connection stands."""

    NEGOTIATING = "negotiating"
    OPEN = "open"
    HELD = "held"
    TRANSPARENT = "transparent"
    CLOSED = "closed"


_FOLLOWING: Final[Mapping[Phase, frozenset[Phase]]] = {
    Phase.NEGOTIATING: frozenset({Phase.OPEN, Phase.TRANSPARENT, Phase.CLOSED}),
    Phase.OPEN: frozenset({Phase.HELD, Phase.TRANSPARENT, Phase.CLOSED}),
    Phase.HELD: frozenset({Phase.OPEN, Phase.TRANSPARENT, Phase.CLOSED}),
    Phase.TRANSPARENT: frozenset({Phase.CLOSED}),
    Phase.CLOSED: frozenset(),
}


@dataclass(frozen=True)
class _Held:
    message: Message
    call: StatementCall


class Relay:
    """Every method returns the commands that the shell has to carry out, in order."""

    def __init__(self, backend_name: str, request_bytes_max: int = REQUEST_BYTES_MAX) -> None:
        self.phase = Phase.NEGOTIATING
        self._request_bytes_max = request_bytes_max
        self._negotiation = Negotiation(backend_name)
        self._messages = MessageReader(request_bytes_max)
        self._replies = ReplyFollower()
        self._observer = Observer()
        self._held: _Held | None = None
        self._held_back_bytes = 0
        self._client_paused = False
        self._commands: list[Command] = []

    @property
    def has_open_operations(self) -> bool:
        """Whether the client has executed statements that it has not closed yet."""
        return self._observer.open_operations > 0

    @property
    def awaits_replies(self) -> bool:
        """Whether a call is under way, the client's or our own, or a statement held."""
        return self.phase is Phase.HELD or self._replies.pending_count > 0

    def remembered(self, data: bytes) -> bytes | None:
        """The fast path: the reply to a status call that can be answered here, where nothing is on its way."""
        # With a call outstanding, an answer of ours would overtake its reply.
        if self.phase is not Phase.OPEN or self._replies.pending_count or not self._messages.is_between_messages:
            return None
        return self._observer.finished.answer(data)

    def client_data(self, data: bytes) -> list[Command]:
        """The client sent bytes."""
        if self.phase is Phase.TRANSPARENT:
            return [SendBackend(data)]
        if self.phase is Phase.NEGOTIATING:
            self._negotiated(self._negotiation.client_data(data))
            self._pause_past(self._negotiation.waiting_bytes)
        elif self.phase is Phase.HELD:
            self._messages.feed(data)
            self._held_back_bytes += len(data)
            self._pause_past(self._held_back_bytes)
        elif self.phase is Phase.OPEN:
            answer = self.remembered(data)
            if answer is not None:
                return [SendClient(answer)]
            self._messages.feed(data)
            self._handle_messages()
        return self._take_commands()

    def backend_connected(self) -> list[Command]:
        """The connection that ConnectBackend asked for is open."""
        self._negotiated(self._negotiation.backend_connected())
        return self._take_commands()

    def backend_failed(self, reason: str) -> list[Command]:
        """The connection that ConnectBackend asked for could not be opened."""
        self._negotiated(self._negotiation.backend_failed(reason))
        return self._take_commands()

    def backend_passes(self, count: int) -> bool:
        """The fast path: whether the backend's next `count` bytes may go to the client without a look."""
        return self.phase is Phase.TRANSPARENT or self._replies.passes(count)

    def backend_data(self, data: bytes) -> list[Command]:
        """The backend sent bytes."""
        if self.phase is Phase.NEGOTIATING:
            self._negotiated(self._negotiation.backend_data(data))
        elif self.phase is not Phase.CLOSED:
            self._follow(data)
        return self._take_commands()

    def ask(self, call: Call) -> list[Command]:
        """Send a call of our own while a statement is held; its reply comes as BackendReply."""
        if self.phase is not Phase.HELD:
            raise LocalProtocolError(f"{call.name} of our own in phase {self.phase.value}, expected held")
        self._replies.expect(PendingCall(Handling.OURS, call.name, call.seqid, call.reply_bytes_max))
        return [SendBackend(frame(call.message))]

    def release(self, statement: str | None = None) -> list[Command]:
        """Let the held statement go on: with another text, or the very bytes that came."""
        held = self._held
        if held is None:
            raise LocalProtocolError(f"nothing is held in phase {self.phase.value}")
        self._held = None
        self._enter(Phase.OPEN)
        raw = self._raw_with(held, statement)
        self._observer.rewritten = raw is not held.message.raw
        self._send_watched(held.message, raw)
        self._resume()
        self._handle_messages()
        return self._take_commands()

    def close(self, reason: str) -> list[Command]:
        """One side has gone, or the shell wants the end."""
        self._close(reason)
        return self._take_commands()

    # --- the client's messages

    def _handle_messages(self) -> None:
        try:
            while self.phase is Phase.OPEN and (message := self._messages.next_message()) is not None:
                self._handle(message)
        except RemoteProtocolError as error:
            self._close(f"client: {error}")
        except IncompleteError:
            self._close("client: a message ends inside one of its fields")

    def _handle(self, message: Message) -> None:
        self._commands += self._observer.note_call(message)
        match message.header.name:
            case hs2.EXECUTE_STATEMENT:
                self._hold(message)
            case hs2.GET_OPERATION_STATUS:
                self._send_watched(message, message.raw, key_of(message))
            case hs2.OPEN_SESSION:
                self._send_watched(message, message.raw)
            case _:
                self._send(message)

    def _hold(self, message: Message) -> None:
        call = decode_statement_call(message)
        if call is None or call.statement is None:
            self._send_watched(message, message.raw)
            return
        self._held = _Held(message, call)
        self._held_back_bytes = 0
        self._enter(Phase.HELD)
        self._commands.append(StatementHeld(call.session, call.statement))

    def _send(self, message: Message) -> None:
        header = message.header
        if header.type is MessageType.CALL:
            self._replies.expect(PendingCall(Handling.RELAY, header.name, header.seqid))
        self._commands.append(SendBackend(frame(message.raw)))

    def _send_watched(self, message: Message, raw: bytes, key: bytes | None = None) -> None:
        header = message.header
        call = PendingCall(Handling.WATCH, header.name, header.seqid, WATCHED_REPLY_BYTES_MAX, key)
        self._replies.expect(call)
        self._commands.append(SendBackend(frame(raw)))

    def _raw_with(self, held: _Held, statement: str | None) -> bytes:
        if statement is None or statement == held.call.statement:
            return held.message.raw
        raw = replace_statement(held.message.raw, held.call.span, statement)
        return raw if len(raw) <= self._request_bytes_max else held.message.raw

    # --- the backend's replies

    def _follow(self, data: bytes) -> None:
        for event in self._replies.feed(data):
            match event:
                case Forward(passing):
                    self._commands.append(SendClient(passing))
                case ReplyEnd():
                    self._read_reply(event)
                case Lost(reason):
                    self._lose(reason)
        if self.phase is Phase.TRANSPARENT:
            self._send_client(self._replies.give_up())

    def _read_reply(self, end: ReplyEnd) -> None:
        ours = end.call.handling is Handling.OURS
        try:
            header = None if end.raw is None else expect_reply(end.raw, end.call.name, end.call.seqid)
            if ours:
                self._commands.append(BackendReply(end.raw))
            elif end.raw is not None and header is not None and header.type is MessageType.REPLY:
                self._commands += self._observer.note_reply(end, end.raw, header)
        except RemoteProtocolError as error:
            self._lose(str(error), ours=ours)
        except IncompleteError:
            self._lose(f"the reply to {end.call.name} ends too early", ours=ours)

    def _lose(self, reason: str, *, ours: bool = False) -> None:
        """The reply stream is not what we expect: leave this connection alone from here on."""
        if ours or self._replies.awaits_ours():
            # A reply of ours may be anywhere in what follows: the client must never see one.
            self._close(f"backend, while a query of the proxy's own was under way: {reason}")
            return
        if self.phase is Phase.TRANSPARENT:
            return
        if self._held is not None:
            self._commands.append(SendBackend(frame(self._held.message.raw)))
            self._held = None
        self._turn_transparent(self._messages.leftover(), reason)

    def _send_client(self, data: bytes) -> None:
        if data:
            self._commands.append(SendClient(data))

    # --- phases

    def _negotiated(self, commands: list[Command]) -> None:
        self._commands += commands
        match self._negotiation.turn:
            case Turn.REFUSED:
                self._enter(Phase.CLOSED)
            case Turn.BLIND:
                self._turn_transparent(self._negotiation.client_leftover(), "the negotiation is not PLAIN")
                self._send_client(self._negotiation.backend_leftover())
            case Turn.FRAMES:
                self._enter(Phase.OPEN)
                self._resume()
                self._messages.feed(self._negotiation.client_leftover())
                self._handle_messages()
                self._follow(self._negotiation.backend_leftover())

    def _turn_transparent(self, client_leftover: bytes, reason: str) -> None:
        self._enter(Phase.TRANSPARENT)
        self._commands.append(TurnedTransparent(reason))
        if client_leftover:
            self._commands.append(SendBackend(client_leftover))
        self._resume()

    def _pause_past(self, waiting_bytes: int) -> None:
        if waiting_bytes > WAITING_BYTES_MAX and not self._client_paused:
            self._client_paused = True
            self._commands.append(PauseClient())

    def _resume(self) -> None:
        if self._client_paused:
            self._client_paused = False
            self._commands.append(ResumeClient())

    def _close(self, reason: str) -> None:
        if self.phase is not Phase.CLOSED:
            self._held = None
            self._enter(Phase.CLOSED)
            self._commands.append(Close(reason))

    def _enter(self, phase: Phase) -> None:
        if phase not in _FOLLOWING[self.phase]:
            raise LocalProtocolError(f"a connection cannot go from {self.phase.value} to {phase.value}")
        self.phase = phase

    def _take_commands(self) -> list[Command]:
        commands, self._commands = self._commands, []
        return commands
