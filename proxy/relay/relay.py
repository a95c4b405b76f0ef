"""The state machine of one client connection and its one backend connection. No I/O: bytes in, commands out.

From the backend, bytes pass as they come. From the client, whole messages are looked at: an ExecuteStatement
is held until `release` says which text goes on, and meanwhile `ask` sends calls of the proxy's own. If that
text fails, the original is run (`proxy.operations.fallback`), and the client sees that answer alone. A statement
that was rewritten by remembered keys is held again if they turn out to have changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from proxy.access.handle_access import HandleAccess
from proxy.access.impersonation import SessionRefusal
from proxy.kerberos.client_login import LoginStep
from proxy.kerberos.delegation import name_of_owner
from proxy.kerberos.errors import KerberosError
from proxy.operations.dispatch import Dispatch
from proxy.operations.events import StatementEnded
from proxy.operations.fallback import DecideAgain
from proxy.operations.fallback_policy import FALLBACK_WITHIN_S
from proxy.operations.held_statement import HeldStatement, hold, statements_passed
from proxy.operations.internal_call import Call, InternalOperation
from proxy.operations.key_check import KeyCheck
from proxy.operations.tracked_statements import TrackedStatements
from proxy.relay.client_buffer import ClientBuffer
from proxy.relay.commands import (
    CallRefused,
    Close,
    Command,
    ConnectBackend,
    MoveBackend,
    SendBackend,
    SendClient,
    SessionRefused,
    StatementHeld,
    TurnedTransparent,
)
from proxy.relay.connection_profile import ConnectionProfile, refused
from proxy.relay.handshake import HandshakeStep
from proxy.relay.pending_calls import PendingCalls
from proxy.relay.phases import FOLLOWING, Phase
from proxy.relay.sasl_termination import SaslTermination
from proxy.wire.hs2 import calls as hs2_calls
from proxy.wire.hs2.open_session import encode_open_session_refusal
from proxy.wire.reply_stream import Forward, Handling, ReplyEnd, ReplyTooLong, SyncLost
from proxy.wire.thrift.errors import (
    IncompleteError,
    LocalProtocolError,
    MessageTooLongError,
    RemoteProtocolError,
)
from proxy.wire.thrift.messages import Message

# In these phases the client's messages are handled as they come.
_TAKING: Final = frozenset({Phase.OPEN, Phase.TRANSPARENT})
# The SQLSTATE by which pools of connections know that a connection is lost, as hive-jdbc gives it.
_CONNECTION_LOST: Final = "08S01"
# In these phases the client waits for a reply, even if the backend has been asked nothing.
_BUSY: Final = frozenset({Phase.HELD, Phase.WITHHOLDING, Phase.MOVING})


class Relay:
    """Every method returns the commands that the shell has to carry out, in order."""

    def __init__(  # noqa: PLR0913 - whom a connection has to do with, and its limits
        self,
        sides: ConnectionProfile,
        tracked_statements: TrackedStatements,
        clock: Callable[[], float],
        *,
        handle_access: HandleAccess,
        request_bytes_max: int,
        fall_back_within_s: float = FALLBACK_WITHIN_S,
    ) -> None:
        self.phase = Phase.NEGOTIATING
        self._request_bytes_max = request_bytes_max
        self._tracked_statements = tracked_statements
        self._transport = sides.transport
        self._framing = sides.framing
        self._handshake = sides.opening()
        self._has_backend_answered = False
        self._impersonation = sides.admission
        self._client_buffer = ClientBuffer(self._framing.reader(request_bytes_max))
        self._handle_access = handle_access
        self._calls = PendingCalls(tracked_statements, handle_access, clock, fall_back_within_s, self._framing)
        self._held: HeldStatement | None = None
        # The reply that refuses the held statement, while replies to earlier calls are awaited.
        self._refusal: bytes | None = None
        # The call that waits for another backend; and True if this one may have a session that ends with us.
        self._moving: Message | None = None
        self._has_opened = False
        self._commands: list[Command] = []

    @property
    def credentials(self) -> bytes | None:
        """The client's PLAIN response, for another connection in its name. A secret."""
        return self._handshake.credentials

    @property
    def has_open_operations(self) -> bool:
        """True if the client has executed statements that it has not closed yet."""
        return self._calls.reply_tracker.open_operations > 0

    @property
    def awaits_replies(self) -> bool:
        """True if a call is under way, the client's or our own, or a statement held."""
        return self.phase in _BUSY or self._calls.replies.pending_count > 0

    @property
    def awaits_login(self) -> bool:
        """True if the backend has been sent a login and has not answered it."""
        return self.phase is Phase.NEGOTIATING and self._handshake.turn is HandshakeStep.SERVER

    @property
    def awaits_connection(self) -> bool:
        """True if the client waits for the connection to a backend, and can read why there is none."""
        return self.phase is Phase.NEGOTIATING and self._handshake.turn is HandshakeStep.CONNECTING

    @property
    def may_await_replies(self) -> bool:
        """True if a call is under way, or nobody can tell."""
        return self.phase is Phase.TRANSPARENT or self.awaits_replies

    @property
    def is_within_request(self) -> bool:
        """True if the client has begun a message that could be handled if it were whole."""
        return self.phase is Phase.OPEN and not self._client_buffer.is_between_messages

    @property
    def waiting_bytes(self) -> int:
        """Bytes of the client's that are not on their way: unfinished calls, and those that wait to be handled."""
        waiting = self._moving if self._held is None else self._held.message
        return self._client_buffer.waiting_bytes + (0 if waiting is None else len(waiting.raw))

    @property
    def unfinished_bytes(self) -> int:
        """Bytes of a call that waits for more of its bytes, and for nothing else."""
        return self._client_buffer.waiting_bytes if self.takes_calls else 0

    @property
    def takes_calls(self) -> bool:
        """True if calls of the client are handled as they come."""
        return self.phase in _TAKING

    @property
    def own_operation(self) -> InternalOperation:
        """The operation that a query of ours has on the backend."""
        return self._calls.own

    def known_status(self, data: bytes) -> bytes | None:
        """The fast path: the reply to a status call that can be answered here, if no call is under way."""
        is_free = self.phase is Phase.OPEN and self._client_buffer.is_between_messages
        return self._calls.remembered_status(data) if is_free else None

    def client_data(self, data: bytes) -> list[Command]:
        """The client sent bytes."""
        if self.phase is Phase.TRANSPARENT:
            self._pass_on(data)
        elif self.phase is Phase.NEGOTIATING:
            self._handshake_advanced(self._handshake.client_data(data))
            self._commands += self._client_buffer.pause_past(self._handshake.waiting_bytes)
        elif self.phase in (Phase.HELD, Phase.WITHHOLDING, Phase.MOVING):
            self._commands += self._client_buffer.keep(data)
        elif self.phase is Phase.OPEN:
            answer = self.known_status(data)
            if answer is not None:
                return [SendClient(answer)]
            self._client_buffer.feed(data)
            self._handle_messages()
        return self._take_commands()

    def login_stepped(self, result: LoginStep | KerberosError) -> list[Command]:
        """The step that StepLogin asked for has ended, with an error if the client is not let in."""
        if self.phase is Phase.CLOSED:
            return []
        if not isinstance(self._handshake, SaslTermination):
            raise LocalProtocolError("no login is taken here")
        self._handshake_advanced(self._handshake.login_stepped(result))
        return self._take_commands()

    def backend_connected(self) -> list[Command]:
        """The connection that ConnectBackend asked for is open."""
        if self.phase is Phase.CLOSED:
            return []
        self._handshake_advanced(self._handshake.backend_connected())
        return self._take_commands()

    def backend_failed(self, reason: str) -> list[Command]:
        """The connection that ConnectBackend asked for could not be opened."""
        if self.phase is Phase.CLOSED:
            return []
        self._handshake_advanced(self._handshake.backend_failed(reason))
        return self._take_commands()

    def moved(self) -> list[Command]:
        """The other backend has let the client in, or the client stays with this one: the call goes on."""
        if self.phase is Phase.MOVING:
            self._enter(Phase.OPEN)
            self._resume(self._take_moving())
        return self._take_commands()

    def backend_passes(self, count: int) -> bool:
        """The fast path: whether the backend's next `count` bytes may go to the client without a look."""
        return self.phase is Phase.TRANSPARENT or self._calls.replies.try_pass(count)

    def backend_data(self, data: bytes) -> list[Command]:
        """The backend sent bytes. After the close, they may still name the operation of ours to end."""
        self._has_backend_answered = True
        if self.phase is Phase.NEGOTIATING:
            self._handshake_advanced(self._handshake.backend_data(data))
        else:
            self._follow(data)
        return self._take_commands()

    def ask(self, call: Call) -> list[Command]:
        """Send a call of our own while a statement is held; its reply comes as BackendReply."""
        if self.phase is not Phase.HELD:
            raise LocalProtocolError(f"{call.name} of our own in phase {self.phase.value}, expected held")
        return [self._calls.ask(call)]

    def release(self, dispatch: Dispatch | None = None) -> list[Command]:
        """Let the held statement go on as was decided, or as the original. Its end comes as StatementEnded."""
        held = self._held
        if held is None:
            raise LocalProtocolError(f"nothing is held in phase {self.phase.value}")
        if dispatch is not None:
            dispatch = held.checked(dispatch, self._request_bytes_max)
        if dispatch is not None and dispatch.refusal is not None:
            self._refusal = held.refused(dispatch.refusal)
            self._commands.append(StatementEnded(dispatch, dispatch.refused))
            self._refuse()
            return self._take_commands()
        self._held = None
        self._enter(Phase.OPEN)
        self._commands += self._calls.release(held, dispatch, self._request_bytes_max)
        if self._calls.awaits_unconfirmed:
            # The reply to a later call would come while this statement's reply is kept back. The backend would not
            # begin such a call any sooner.
            self._enter(Phase.WITHHOLDING)
        else:
            self._resume()
        return self._take_commands()

    def _refuse(self) -> None:
        """Answer a refused statement, behind the replies that its client waits for first."""
        if self._refusal is None or self._calls.replies.pending_count:
            return
        self._send_client(self._framing.to_wire(self._refusal))
        self._refusal = self._held = None
        self._enter(Phase.OPEN)
        self._resume()

    def check_settled(self, check: KeyCheck) -> list[Command]:
        """The check that AwaitCheck named has ended."""
        try:
            self._commands += self._calls.check_settled(check)
        except (RemoteProtocolError, IncompleteError) as error:
            self._close(f"backend: {error}")
        self._fallback_may_be_over()
        return self._take_commands()

    def backend_lost(self, backend: str) -> list[Command]:
        """The backend of that address has closed the connection. If it had sent nothing, the client is told so.

        Spark closes connections without a byte while all its worker threads are taken. Once the backend has
        answered, its close ends the client's connection, as without the proxy.
        """
        if self._has_backend_answered:
            return self.close(f"the backend {backend} closed")
        return self.close_with_error(
            f"the backend {backend} closed the connection before it answered: if that goes on, all of its threads "
            "may be taken (hive.server2.thrift.max.worker.threads)"
        )

    @property
    def may_log_in_elsewhere(self) -> bool:
        """True if the backend has been sent a login alone, all of it, and no byte of its own has come."""
        return self.awaits_login and not self._has_backend_answered

    def log_in_elsewhere(self) -> list[Command]:
        """The backend has closed the connection without a byte, and another one is to be sent the same login."""
        if not self.may_log_in_elsewhere:
            raise LocalProtocolError(f"no login to send again in phase {self.phase.value}")
        self._handshake.turn = HandshakeStep.CONNECTING
        return [ConnectBackend()]

    def close(self, reason: str) -> list[Command]:
        """One side has gone, or the shell wants the end."""
        self._close(reason)
        return self._take_commands()

    def close_with_error(self, sentence: str) -> list[Command]:
        """Answer the calls under way, or a login, by the error of a lost connection, and close."""
        if self.awaits_login and not self._has_backend_answered:
            # If the backend had answered, the client would take this refusal for the answer to something else.
            self._send_client(refused(self._transport, sentence))
        self._answer_by_error(sentence)
        self._close(sentence)
        return self._take_commands()

    def _answer_by_error(self, sentence: str) -> None:
        if self.phase in (Phase.NEGOTIATING, Phase.TRANSPARENT, Phase.CLOSED):
            return
        calls = self._calls.calls_to_answer()
        answered = [(call.name, call.seqid) for call in calls]
        waiting = self._moving if self._held is None else self._held.message
        if waiting is not None:
            answered.append((waiting.header.name, waiting.header.seqid))
        elif self._calls.replies.pending_count == len(calls) and (begun := self._client_buffer.begun_header()):
            # Its client waits for a reply as soon as it has written the rest.
            answered.append((begun.name, begun.seqid))
        for name, seqid in answered:
            failure = hs2_calls.encode_failure(name, seqid, sentence, _CONNECTION_LOST)
            self._send_client(self._framing.to_wire(failure))

    # --- the client's messages

    def _pass_on(self, data: bytes) -> None:
        """Send the client's bytes on, without following replies. Other users' handles stay out of reach."""
        if not self._handle_access.has_login:
            self._commands.append(SendBackend(data))
            return
        self._client_buffer.feed(data)
        self._handle_messages()

    def _resume(self, first: Message | None = None) -> None:
        """Read from the client again, and handle what it has sent meanwhile."""
        self._commands += self._client_buffer.resume()
        self._handle_messages(first)

    def _handle_messages(self, first: Message | None = None) -> None:
        try:
            if first is not None:
                self._make(first)
            while self.phase in _TAKING and (message := self._client_buffer.next_message()) is not None:
                self._handle(message)
        except MessageTooLongError as too_long:
            self._answer_by_error(
                f"Starpruner refuses the call: {too_long} (proxy.request_bytes_max, memory_bytes_max)"
            )
            self._close(f"client: {too_long}")
        except RemoteProtocolError as error:
            self._close(f"client: {error}")
        except IncompleteError:
            self._close("client: a message ends inside one of its fields")

    def _handle(self, message: Message) -> None:
        replacement = self._handle_access.replacement_for(message)
        if replacement is not None:
            self._commands.append(CallRefused(message.header.name))
        if self.phase is Phase.TRANSPARENT:
            self._forward(replacement or message)
        elif replacement is not None:
            self._commands.append(self._calls.relay(replacement))
        elif (backend := self._elsewhere(message)) is not None:
            self._moving = message
            self._enter(Phase.MOVING)
            self._commands.append(MoveBackend(backend))
        else:
            self._make(message)

    def _elsewhere(self, message: Message) -> str | None:
        """The backend to move to for a call: with a session of its own, or a reply to come, the client stays."""
        stays = self._has_opened or self._calls.replies.pending_count
        return None if stays else self._handle_access.other_backend_of(message)

    def _make(self, message: Message) -> None:
        """Make a call that the client may make, on the backend as it is."""
        name = message.header.name
        if self.phase is Phase.TRANSPARENT:
            self._forward(message)
        elif name == hs2_calls.EXECUTE_STATEMENT:
            self._commands += self._calls.reply_tracker.note_call(message, None)
            self._hold(message)
        elif name == hs2_calls.OPEN_SESSION:
            self._open_session(message)
        else:
            self._commands += self._calls.make(message)

    def _forward(self, message: Message) -> None:
        """Send a call on while replies are not followed. A session that may not be opened is refused here too."""
        if message.header.name == hs2_calls.OPEN_SESSION:
            admitted = self._impersonation.check_open_session(message, self._handshake.login)
            if isinstance(admitted, SessionRefusal):
                self._close(f"client: {admitted.sentence}")
                return
            message = admitted
        elif message.header.name == hs2_calls.EXECUTE_STATEMENT:
            self._commands += statements_passed(message)
        self._commands.append(SendBackend(self._framing.to_wire(message.raw)))

    def _open_session(self, message: Message) -> None:
        admitted = self._impersonation.check_open_session(message, self._handshake.login)
        if not isinstance(admitted, SessionRefusal):
            self._has_opened = True
            self._commands.append(self._calls.watch(admitted))
        elif self._calls.replies.pending_count:
            # An answer of ours would overtake the reply that the client waits for first.
            self._close(f"client: {admitted.sentence}")
        else:
            answer = encode_open_session_refusal(message.header.seqid, admitted.sentence)
            self._commands += [SendClient(self._framing.to_wire(answer)), SessionRefused(admitted.sentence)]

    def _hold(self, message: Message) -> None:
        held = hold(message)
        if held is None:
            self._commands += [*statements_passed(message), self._calls.execute(message, None)]
            return
        # The room is checked now: at the release nobody could take the error, and the client would wait for ever.
        self._calls.replies.expect_room()
        self._held = held
        self._enter(Phase.HELD)
        self._commands.append(StatementHeld(held.call.session, held.statement))

    # --- the backend's replies

    def _follow(self, data: bytes) -> None:
        for event in self._calls.replies.feed(data):
            match event:
                case Forward(data=forwarded):
                    self._send_client(forwarded)
                case ReplyEnd():
                    self._read_reply(event)
                    self._refuse()
                case ReplyTooLong():
                    if not self._calls.may_pass_overlong():
                        self._close("the backend's reply has rows that must not be let out")
                case SyncLost(reason):
                    self._lose(reason)
        if self.phase is Phase.TRANSPARENT:
            self._send_client(self._calls.replies.stop_following())

    def _read_reply(self, end: ReplyEnd) -> None:
        ours = end.call.handling is Handling.OURS
        try:
            if ours:
                self._read_own(end)
            elif self.phase is Phase.TRANSPARENT:
                self._send_client(self._calls.unforwarded(end))
            elif self.phase is not Phase.CLOSED:
                self._read_clients(end)
        except (RemoteProtocolError, IncompleteError) as error:
            if not self._has_unsettled:
                self._send_client(self._calls.unforwarded(end))
            self._lose(str(error) or f"the reply to {end.call.name} ends too early", ours=ours)

    def _read_own(self, end: ReplyEnd) -> None:
        commands = self._calls.read_own(end)
        if self.phase is Phase.CLOSED:
            self._commands += self._calls.closing_calls()
            return
        self._commands += commands
        self._fallback_may_be_over()

    def _read_clients(self, end: ReplyEnd) -> None:
        # All that the client has sent behind the call assumes that the reply to the call comes next.
        is_last = self.phase in (Phase.OPEN, Phase.WITHHOLDING) and not end.calls_since
        self._commands += self._calls.read_clients(end, is_last=is_last)
        if self._calls.is_falling_back:
            if self.phase is not Phase.WITHHOLDING:
                self._enter(Phase.WITHHOLDING)
        elif (again := self._calls.take_to_decide_again()) is not None:
            self._hold_again(again)
        else:
            self._fallback_may_be_over()

    def _fallback_may_be_over(self) -> None:
        is_busy = self._calls.is_falling_back or self._calls.awaits_unconfirmed
        if self.phase is not Phase.WITHHOLDING or is_busy:
            return
        again = self._calls.take_to_decide_again()
        if again is not None:
            self._hold_again(again)
        else:
            self._enter(Phase.OPEN)
            self._resume()

    def _hold_again(self, again: DecideAgain) -> None:
        """Hold a statement whose remembered keys were not confirmed, as if it came now."""
        held = hold(again.call)
        assert held is not None  # noqa: S101 - it was held before
        self._calls.replies.expect_room()
        self._held = held
        self._enter(Phase.HELD)
        self._commands.append(StatementHeld(held.call.session, held.statement, again.check))

    @property
    def _has_unsettled(self) -> bool:
        """True if some answer must not be let out without a look: a known one, or one that is awaited here."""
        return self._tracked_statements.has_unsettled or self._calls.has_unsettled

    def _lose(self, reason: str, *, ours: bool = False) -> None:
        """The reply stream is not as expected: follow it no longer, and pass its bytes unread or close."""
        if ours or self._calls.replies.awaits_own_reply():
            # A reply of ours may be anywhere in what follows: the client must never see one.
            self._close(f"backend, while a query of the proxy's own was under way: {reason}")
            return
        if self.phase in (Phase.TRANSPARENT, Phase.CLOSED):
            return
        if self._has_unsettled or self._refusal is not None:
            # The stream's bytes may hold an answer that is still to be judged.
            self._close(f"backend: {reason}")
            return
        if self._held is not None:
            self._forward(self._held.message)
            self._held = None
        self._turn_transparent(b"", reason)
        self._handle_messages(self._take_moving())

    def _send_client(self, data: bytes | memoryview) -> None:
        if data and self.phase is not Phase.CLOSED:
            self._commands.append(SendClient(data))

    # --- phases

    def _handshake_advanced(self, commands: list[Command]) -> None:
        self._commands += commands
        match self._handshake.turn:
            case HandshakeStep.REFUSED:
                self._enter(Phase.CLOSED)
            case HandshakeStep.BLIND:
                reason = self._handshake.blind_reason
                self._turn_transparent(self._handshake.client_leftover(), reason, by_login=True)
                self._send_client(self._handshake.backend_leftover())
            case HandshakeStep.FRAMES:
                self._enter(Phase.OPEN)
                self._handle_access.user_logged_in(name_of_owner(self._handshake.credentials or b""))
                self._commands += self._client_buffer.resume()
                self._client_buffer.feed(self._handshake.client_leftover())
                self._handle_messages()
                self._follow(self._handshake.backend_leftover())

    def _turn_transparent(self, client_leftover: bytes, reason: str, *, by_login: bool = False) -> None:
        self._enter(Phase.TRANSPARENT)
        self._commands += self._calls.stop_reading()
        self._commands.append(TurnedTransparent(reason, by_login))
        if client_leftover:
            self._commands.append(SendBackend(client_leftover))
        self._commands += self._client_buffer.resume()

    def _close(self, reason: str) -> None:
        if self.phase is not Phase.CLOSED:
            self._held = self._moving = self._refusal = None
            self._enter(Phase.CLOSED)
            self._commands += self._calls.stop_reading()
            self._commands += self._calls.closing_calls()
            self._commands.append(Close(reason))

    def _enter(self, phase: Phase) -> None:
        if phase not in FOLLOWING[self.phase]:
            raise LocalProtocolError(f"a connection cannot go from {self.phase.value} to {phase.value}")
        self.phase = phase

    def _take_moving(self) -> Message | None:
        message, self._moving = self._moving, None
        return message

    def _take_commands(self) -> list[Command]:
        commands, self._commands = self._commands, []
        return commands
