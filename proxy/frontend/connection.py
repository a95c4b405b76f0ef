"""The asyncio shell around one relay: two sockets, and one task for slow commands. It decides nothing."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b

from proxy.access.handle_access import HandleAccess
from proxy.access.impersonation import ProxyUsers
from proxy.config.endpoints import Listener
from proxy.config.memory_shares import COPIES
from proxy.frontend.backend_socket import CLOSED_SILENTLY, BackendSocket
from proxy.frontend.context import OWNER_BYTES, ServerContext
from proxy.frontend.own_session import Access
from proxy.frontend.rewrite_service import Caller, tell_outcome
from proxy.frontend.watchdog import Watchdog
from proxy.kerberos.client_login import LoginStep
from proxy.kerberos.delegation import login_of
from proxy.kerberos.errors import KerberosError
from proxy.kerberos.security_layer import SecurityLayer
from proxy.net.login_threads import password_check_in_thread, step_in_thread, step_within_s
from proxy.net.newcomers import address_group
from proxy.net.protected_transport import ProtectedTransport
from proxy.net.sockets import SocketCallbacks, linger, peer_host, peer_name, prepare
from proxy.net.timeouts import Activity
from proxy.operations.dispatch import Dispatch, Outcome, OutcomeKind
from proxy.operations.events import SessionClosed, SessionOpened, StatementEnded, StatementPassed
from proxy.operations.internal_call import Call, Reply
from proxy.operations.key_check import KeyCheck
from proxy.operations.session_port import SessionOpening
from proxy.relay.commands import (
    AwaitCheck,
    BackendReply,
    CallRefused,
    Close,
    Command,
    ConnectBackend,
    LoginRefused,
    MoveBackend,
    PauseClient,
    ProtectClient,
    ResumeClient,
    SendBackend,
    SendClient,
    SessionRefused,
    StartCheck,
    StatementHeld,
    StepLogin,
    TurnedTransparent,
)
from proxy.relay.connection_profile import ConnectionProfile, refused
from proxy.relay.phases import Phase
from proxy.relay.relay import Relay
from proxy.statements.statement_class import StatementClass
from proxy.wire.hs2.calls import SessionHandle
from proxy.wire.hs2.handles import handle_id_of
from proxy.wire.hs2.open_session import PROXY_USER
from proxy.wire.sasl import plain_user

log = logging.getLogger(__name__)


class Connection:
    """One client, its backend, and the relay between them. Ends exactly once, through `_end`."""

    def __init__(
        self, number: int, listener: Listener, context: ServerContext, on_end: Callable[[Connection], None]
    ) -> None:
        self._name = f"connection {number}"
        self._listener = listener
        self._context = context
        self._settings = settings = context.config.proxy
        self._sessions = context.sessions
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        passes_unknown = settings.unknown_handles == "pass"
        self._handle_access = HandleAccess(
            context.handles, context.backends.display_name, passes_unknown=passes_unknown
        )
        self._relay = Relay(
            ConnectionProfile(
                context.backends.display_name,
                listener.transport,
                ProxyUsers(context.config.proxy_users),
                context.client_logins.get(listener),
                acts_for_clients=context.dialer.upstream.acts_for_clients,
            ),
            context.tracked_statements,
            self._loop.time,
            handle_access=self._handle_access,
            request_bytes_max=settings.request_bytes_max,
            fall_back_within_s=context.config.rewrite.rerun_within_s,
        )
        self._opened_here: set[SessionHandle] = set()
        self._client: asyncio.Transport | None = None
        self._newcomers = context.newcomers[listener]
        # The client's address group, by which the listener's newcomers are counted.
        self.address = ""
        self._backend = BackendSocket(self._name, context, self._handle_access, self._backend_side)
        # One at a time: a login step, connecting or switching the backend, or deciding about the held statement.
        self._task: asyncio.Task[None] | None = None
        self._reply: asyncio.Future[Reply] | None = None
        self._watchdog = Watchdog(settings, self._activity, self.close)
        self._client_pauses: set[str] = set()
        self._started = self.last_activity = self._loop.time()
        self._from_client_bytes = self._from_backend_bytes = 0
        self._statements_held = self._statements_rewritten = 0
        self._ended = False

    # --- called by the server

    def is_quiet(self, since: float) -> bool:
        """True if no statement is in flight. One that stays open unused since then counts as done."""
        if self._relay.awaits_replies:
            return False
        return not self._relay.has_open_operations or self.last_activity < since

    @property
    def has_session(self) -> bool:
        """True if the client may have a session that ends with the connection."""
        return bool(self._opened_here) or self._relay.phase is Phase.TRANSPARENT

    def close(self, reason: str) -> None:
        """End the connection from our side."""
        self._execute(self._relay.close(reason))

    def close_with_error(self, sentence: str) -> None:
        """End the connection from our side, and answer calls that wait for a reply by an error."""
        self._execute(self._relay.close_with_error(sentence))

    def end_waiting(self, reason: str) -> None:
        """End a connection whose client has sent no login so far."""
        self.close(reason)

    # --- called by the memory gate

    @property
    def held_bytes(self) -> int:
        """The memory that calls of the client take. Replies have bounds of their own: back pressure, and room."""
        backend = self._backend.transport
        unsent = 0 if backend is None else backend.get_write_buffer_size()
        return COPIES * (self._relay.waiting_bytes + self._wrapped_bytes) + unsent

    @property
    def unfinished_bytes(self) -> int:
        """The bytes of the client's call that has begun to come, wrapped ones included."""
        return self._relay.unfinished_bytes + (self._wrapped_bytes if self._relay.takes_calls else 0)

    @property
    def _wrapped_bytes(self) -> int:
        """The client's bytes that wait to be unwrapped, or were unwrapped a moment ago."""
        return self._client.unread_bytes if isinstance(self._client, ProtectedTransport) else 0

    def pause_for_memory(self, *, on: bool) -> None:
        """Stop reading the client, or go on. The client gets its replies in any case."""
        # A connection that has ended is still read, so that its last bytes reach the client (`linger`).
        if not self._ended:
            self._pause_client("memory", on=on)

    # --- the client's socket

    def client_side(self, refusal: str | None = None) -> SocketCallbacks:
        """The callbacks of the client's socket; `refusal` says why the client cannot be served."""
        connected = partial(self._client_connected, refusal)
        return SocketCallbacks(connected, self._client_data, self._client_lost, self._client_writable)

    def _client_connected(self, refusal: str | None, transport: asyncio.Transport) -> None:
        if self._ended:
            # Closed during its handshake.
            transport.abort()
            return
        self._client = transport
        prepare(transport, self._settings)
        log.info("%s: opened from %s", self._name, peer_name(transport))
        if refusal is not None:
            transport.write(refused(self._listener.transport, refusal))
            self.close(f"refused: {refusal}")
            return
        if self._context.memory.is_paused:
            self._client_pauses.add("memory")
        if self._client_pauses:
            # The memory gate may have paused the client already, during its TLS handshake.
            transport.pause_reading()
        self.address = address_group(peer_host(transport))
        self._newcomers.add(self)
        self._watchdog.start(self._check_handshake)

    def _client_data(self, data: bytes) -> None:
        self.last_activity = self._loop.time()
        self._from_client_bytes += len(data)
        answer = self._relay.known_status(data)
        if answer is not None and self._client is not None:
            self._client.write(answer)
        else:
            self._execute(self._relay.client_data(data))
            self._context.memory.bytes_came(COPIES * len(data))

    def _client_lost(self) -> None:
        self._end("the client closed")

    def _client_writable(self, writable: bool) -> None:  # noqa: FBT001 - asyncio tells by two callbacks
        # This alone bounds the replies that the proxy makes itself.
        self._pause_client("client", on=not writable)
        self._backend.pause_reading(on=not writable)

    # --- the backend's socket

    def _backend_side(self) -> SocketCallbacks:
        # BackendSocket takes the transport over once it is open.
        return SocketCallbacks(lambda _: None, self._backend_data, self._backend_lost, self._backend_writable)

    def _backend_data(self, data: bytes) -> None:
        self.last_activity = self._loop.time()
        self._from_backend_bytes += len(data)
        if self._relay.backend_passes(len(data)) and self._client is not None:
            self._client.write(data)
            return
        # The first bytes always come here.
        self._backend.answered()
        self._execute(self._relay.backend_data(data))

    def _backend_lost(self) -> None:
        if self._backend.lease is None:
            return
        address = str(self._backend.lease.address)
        if (lack_of_room := self._backend.lack_of_room) is not None:
            self.close_with_error(lack_of_room)
            return
        if not self._relay.may_log_in_elsewhere:
            # A backend that has answered anything was judged by its answer.
            self._backend.lease.backend_failed(CLOSED_SILENTLY)
        elif self._backend.find_another():
            log.info("%s: the backend %s closed the connection unanswered; trying another", self._name, address)
            self._pause_client("backend", on=False)
            self._execute(self._relay.log_in_elsewhere())
            return
        self._execute(self._relay.backend_lost(address))

    def _backend_writable(self, writable: bool) -> None:  # noqa: FBT001 - asyncio tells by two callbacks
        self._pause_client("backend", on=not writable)

    # --- commands

    def _execute(self, commands: list[Command]) -> None:
        """Carry commands out. One may bring further ones, which then follow those already there."""
        queue = deque(commands)
        while queue:
            queue.extend(self._carry_out(queue.popleft()))

    def _carry_out(self, command: Command) -> list[Command]:
        match command:
            case SendClient(data):
                self._write(self._client, data)
            case SendBackend(data):
                self._write(self._backend.transport, data)
            case ProtectClient(layer):
                self._protect_client(layer)
            case StatementHeld(session, statement, unconfirmed):
                return self._offer(session, statement, unconfirmed)
            case StartCheck(session, check):
                lease = self._backend.lease
                self._context.key_checks.start(session, self._relay.credentials, check, lease)
            case AwaitCheck(check):
                check.call_when_settled(partial(self._await_turn, check))
            case StatementPassed(session, statement):
                self._context.rewrite_service.note_forwarded(session, statement, self._name)
            case LoginRefused():
                self._context.backends.login_refused()
            case Close(reason):
                self._end(reason)
            case _:
                self._take_note(command)
        return []

    def _take_note(self, command: Command) -> None:
        match command:
            case BackendReply(raw):
                if self._reply is not None and not self._reply.done():
                    self._reply.set_result(raw)
            case SessionOpened(session, version, configuration, user):
                self._opened_here.add(session)
                self._sessions.opened(session, version, self._opening(configuration, user), self._access)
            case SessionClosed(session):
                self._opened_here.discard(session)
                self._context.beside_runner.sessions_closed([session])
                self._context.key_checks.sessions_closed([session])
                self._sessions.closed([session])
            case SessionRefused() | CallRefused():
                log.warning("%s: %s", self._name, command)
            case ConnectBackend() | MoveBackend() | StepLogin():
                # By now the client's login has come.
                self._newcomers.discard(self)
                self._task = self._loop.create_task(self._carry_on(command))
            case PauseClient() | ResumeClient():
                self._pause_client("relay", on=isinstance(command, PauseClient))
            case StatementEnded(dispatch, outcome):
                tell_outcome(dispatch, outcome, self._name)
            case TurnedTransparent(reason, by_login):
                self._turned_transparent(reason, by_login=by_login)

    def _turned_transparent(self, reason: str, *, by_login: bool) -> None:
        host = "" if self._client is None else peer_host(self._client)
        is_news = not by_login or self._context.blind_clients.is_first_mention(host)
        level = logging.WARNING if is_news else logging.DEBUG
        log.log(level, "%s, from %s: nothing is rewritten any more: %s", self._name, host, reason)
        if not by_login:
            # The task of a statement. An unreadable login shows while a task connects the backend, which goes on.
            self._cancel_task()

    def _write(self, transport: asyncio.Transport | None, data: bytes | memoryview) -> None:
        if transport is not None and not transport.is_closing():
            transport.write(data)

    def _protect_client(self, layer: SecurityLayer) -> None:
        if self._client is not None:
            # Wrapped bytes count as the call that they become.
            self._client = ProtectedTransport(
                self._client, layer, lambda count: self._context.memory.bytes_came(COPIES * count)
            )
            self._client.set_write_buffer_limits(high=self._settings.write_buffer_bytes_max)

    def _pause_client(self, reason: str, *, on: bool) -> None:
        was_paused = bool(self._client_pauses)
        (self._client_pauses.add if on else self._client_pauses.discard)(reason)
        if self._client is None or self._client.is_closing() or was_paused == bool(self._client_pauses):
            return
        if self._client_pauses:
            self._client.pause_reading()
        else:
            self._client.resume_reading()

    # --- tasks

    async def _carry_on(self, command: ConnectBackend | MoveBackend | StepLogin) -> None:
        match command:
            case ConnectBackend():
                await self._connect()
            case MoveBackend(name):
                await self._move(name)
            case StepLogin():
                await self._step_login(command)

    async def _step_login(self, command: StepLogin) -> None:
        result: LoginStep | KerberosError
        run = password_check_in_thread if command.checks_password else step_in_thread
        try:
            result = await run(command.step, step_within_s(self._settings.handshake_timeout_s))
        except KerberosError as error:
            log.warning("%s: the login failed: %r", self._name, str(error))
            self._context.backends.login_refused()
            result = error
        except Exception as error:  # noqa: BLE001 - a client must not wait for an answer that never comes
            # The type alone: the words could have a part of a password or a token.
            log.error("%s: the login failed by a fault of the proxy: %s", self._name, type(error).__name__)  # noqa: TRY400
            result = KerberosError(type(error).__name__)
        self._execute(self._relay.login_stepped(result))

    async def _connect(self) -> None:
        if self._context.client_logins.get(self._listener) is None:
            failure = await self._backend.connect(self._relay.credentials)
        else:
            credentials = self._relay.credentials or b""
            failure = await self._backend.log_in(credentials)
            if failure is None:
                log.info("%s: the client has logged in as %r", self._name, plain_user(credentials))
        relay = self._relay
        self._execute(relay.backend_connected() if failure is None else relay.backend_failed(failure))

    async def _move(self, name: str) -> None:
        """Switch to another backend. If that fails, the current one answers that it does not know the handle."""
        if await self._backend.switch_to(name, self._relay.credentials or b""):
            self._pause_client("backend", on=False)
            if "client" in self._client_pauses:
                self._backend.pause_reading(on=True)
        self._execute(self._relay.moved())

    def _await_turn(self, check: KeyCheck) -> None:
        """Go on in a later iteration of the loop: the check may have ended while commands are carried out."""
        _ = self._loop.call_soon(self._check_settled, check)

    def _check_settled(self, check: KeyCheck) -> None:
        self._execute(self._relay.check_settled(check))

    def _offer(self, handle: SessionHandle, text: str, unconfirmed: KeyCheck | None) -> list[Command]:
        self._statements_held += 1
        statement = StatementClass(text)
        dispatch = self._context.rewrite_service.decide_now(handle, statement, self._name)
        if dispatch is not None:
            self._run_beside(dispatch, handle)
            return self._relay.release(dispatch)
        self._task = self._loop.create_task(self._decide(handle, statement, unconfirmed))
        return []

    async def _decide(
        self, handle: SessionHandle, statement: StatementClass, unconfirmed: KeyCheck | None
    ) -> None:
        lease = self._backend.lease
        keys = self._context.key_checks.terms(
            unconfirmed, None if lease is None else lease.address, self._relay.credentials
        )
        caller = Caller(self._name, self._ask, self._access)
        dispatch = await self._context.rewrite_service.decide(handle, statement, caller, keys)
        self._statements_rewritten += dispatch.text != statement.text and dispatch.refusal is None
        if self._relay.phase is Phase.HELD:
            self._execute(self._relay.release(dispatch))
            self._run_beside(dispatch, handle)
        else:
            tell_outcome(dispatch, Outcome(OutcomeKind.NOT_SENT, 0.0), self._name)

    @property
    def _access(self) -> Access | None:
        lease, credentials = self._backend.lease, self._relay.credentials
        return None if lease is None or credentials is None else Access(credentials, lease.lease_for_proxy)

    def _run_beside(self, dispatch: Dispatch, handle: SessionHandle) -> None:
        credentials = self._relay.credentials
        if dispatch.beside is not None and credentials is not None and self._backend.lease is not None:
            _ = self._context.beside_runner.start(handle, credentials, dispatch.beside, self._backend.lease)

    def _opening(self, configuration: Mapping[str, str] | None, user: str | None) -> SessionOpening | None:
        credentials = self._relay.credentials
        if configuration is None or credentials is None or self._backend.lease is None:
            return None
        # A server that asks for no login uses the name in the call. Lessons of one backend hold for that one
        # alone.
        opener = b"\0".join((str(self._backend.lease.address).encode(), credentials, (user or "").encode()))
        owner = blake2b(opener, key=self._context.owner_key, digest_size=OWNER_BYTES).hexdigest()
        login = login_of(credentials, user or "")
        user_name = configuration.get(PROXY_USER, plain_user(credentials) or user or "")
        who = f"{login}\0{user_name}" if login else ""
        client = "" if self._client is None else peer_host(self._client)
        backend = str(self._backend.lease.address)
        return SessionOpening(configuration, owner, user_name, client, backend, login, user or "", who)

    async def _ask(self, call: Call) -> Reply:
        self._reply = self._loop.create_future()
        self._execute(self._relay.ask(call))
        return await self._reply

    def _check_handshake(self) -> None:
        if self._relay.phase is Phase.NEGOTIATING:
            within = f"within {self._settings.handshake_timeout_s:g} s"
            if self._relay.awaits_login and self._backend.lease is not None:
                self._backend.lease.backend_failed(f"no answer to a login {within}")
                self.close_with_error(f"the backend {self._backend.lease.address} did not answer a login {within}")
            elif self._relay.awaits_connection:
                reason = self._backend.time_is_up(f"no answer {within}")
                self._execute(self._relay.backend_failed(reason))
            self.close(f"no completed negotiation {within}")

    def _activity(self) -> Activity:
        return Activity(
            last_activity=self.last_activity,
            awaits_replies=self._relay.may_await_replies,
            from_client_bytes=self._from_client_bytes,
            # While the proxy does not read the client, the client cannot complete its message.
            is_within_request=self._relay.is_within_request and not self._client_pauses,
            unread_bytes=0 if self._client is None else self._client.get_write_buffer_size(),
        )

    # --- the end

    def _cancel_task(self) -> None:
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    def _end(self, reason: str) -> None:
        if self._ended:
            return
        self._ended = True
        self._execute(self._relay.close(reason))
        self._execute([*self._context.tracked_statements.sessions_ended(self._opened_here, self._loop.time())])
        self._cancel_task()
        self._newcomers.discard(self)
        self._watchdog.cancel()
        self._backend.leave(self._relay)
        self._context.beside_runner.sessions_closed(self._opened_here)
        self._context.key_checks.sessions_closed(self._opened_here)
        self._sessions.closed(self._opened_here)
        self._context.handles.handles_closed(filter(None, map(handle_id_of, self._opened_here)))
        if self._client is not None and not self._client.is_closing():
            for reason_to_pause in tuple(self._client_pauses):
                self._pause_client(reason_to_pause, on=False)
            linger(self._client)
        log.info(
            "%s: ended after %.3f s: %s; %d bytes from the client, %d from the backend, "
            "%d statements examined, %d rewritten",
            *(self._name, self._loop.time() - self._started, reason),
            *(self._from_client_bytes, self._from_backend_bytes),
            *(self._statements_held, self._statements_rewritten),
        )
        self._on_end(self)
