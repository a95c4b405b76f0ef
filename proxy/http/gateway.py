"""The gateway of clients over HTTP: carries their calls to backends, and has their statements decided."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final

from proxy.access.handle_access import HandleAccess
from proxy.access.impersonation import Impersonation, ProxyUsers, SessionRefusal
from proxy.backends.backend import Backend
from proxy.frontend.context import ServerContext
from proxy.frontend.graceful_close import GRACEFUL_CLOSE_S
from proxy.frontend.memory_gate import MemoryGate
from proxy.frontend.own_session import Access
from proxy.frontend.rewrite_service import Caller, tell_outcome
from proxy.http.exchange import CallerRecords, Exchange, Steps
from proxy.http.exchange_driver import ExchangeDriver, ExchangeReply
from proxy.http.routing import Routes
from proxy.http.upstream_protocol import CallClient, Upstream, Upstreams
from proxy.operations.dispatch import Dispatch
from proxy.operations.events import Event, SessionClosed, SessionOpened, StatementEnded, StatementPassed
from proxy.operations.fallback_policy import FallbackPolicy
from proxy.operations.held_statement import HeldStatement, hold
from proxy.operations.key_check import KeyCheck
from proxy.operations.session_port import SessionOpening
from proxy.operations.tracked_statements import TrackedStatement
from proxy.statements.statement_class import StatementClass
from proxy.upstream.errors import UnsentError
from proxy.upstream.own_calls import InternalCalls
from proxy.upstream.reply import ask
from proxy.wire.hs2.calls import OPEN_SESSION, SessionHandle
from proxy.wire.hs2.open_session import PROXY_USER, encode_open_session_refusal
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.messages import Message

log = logging.getLogger(__name__)

# Over HTTP nobody notices a client that left without closing its session. Past this many the least recently used
# one is forgotten: its statements go on as originals from then on. The server keeps sessions for a week.
SESSIONS_MAX: Final = 2_000
# Clients whose records are kept: nobody notices those that have left.
CALLERS_MAX: Final = 500

_NAME: Final = "a call over HTTP"


class Gateway:
    """The calls of all clients over HTTP of a process."""

    def __init__(self, context: ServerContext, upstreams: Upstreams) -> None:
        self._context = context
        within_s = context.config.rewrite.rerun_within_s
        self._policy = FallbackPolicy(context.tracked_statements, _now, within_s)
        self._impersonation = Impersonation(
            ProxyUsers(context.config.proxy_users),
            names_user=upstreams.names_user,
            acts_for_login=context.dialer.upstream.acts_for_clients,
        )
        self._routes = Routes(context.backends, context.handles)
        # By the backend, and by the identity of the client there.
        self._records: OrderedDict[tuple[str, str, frozenset[str]], CallerRecords] = OrderedDict()
        self._sessions: OrderedDict[SessionHandle, Backend] = OrderedDict()
        self._counts_sessions = upstreams.has_lasting_sessions
        self.last_activity = -math.inf
        # Operations of ours that are being closed after their clients have left.
        self._graceful_closes: set[asyncio.Task[None]] = set()
        # Statements that fall back, whose clients may have left.
        self._fallbacks: set[asyncio.Task[ExchangeReply]] = set()

    @property
    def memory(self) -> MemoryGate:
        """The gate that lets long calls in."""
        return self._context.memory

    def login_refused(self) -> None:
        """Count a client that was not let in."""
        self._context.backends.login_refused()

    @property
    def open_operation_count(self) -> int:
        """The number of statements that have been executed and are not closed yet."""
        return sum(records.open_operation_count for records in self._records.values())

    @property
    def session_count(self) -> int:
        """The number of sessions that clients have opened and not closed."""
        return len(self._sessions)

    async def carry(
        self, message: Message, client: CallClient, host: str, on_sending: Callable[[], None]
    ) -> ExchangeReply:
        """Make a call of a client on this host, on the first backend that can be reached. Raises BackendError.

        `on_sending` is called each time that the call is sent to a backend.
        """
        route = self._routes.of(message, client.marks)
        while (backend := route.next()) is not None:
            try:
                return await self._carry(message, client.at(backend), host, on_sending)
            except UnsentError as error:
                route.failed(backend, str(error))
        raise UnsentError(route.reason)

    async def _carry(
        self, message: Message, upstream: Upstream, host: str, on_sending: Callable[[], None]
    ) -> ExchangeReply:
        records = self._records_of(upstream)
        remembered = records.reply_to(message.raw)
        if remembered is not None:
            return ExchangeReply(remembered, None)
        self.last_activity = _now()
        note = partial(self._note, upstream, host)
        exchange = Exchange(records, self._policy, note)
        replacement = _admitted(records, message)
        if replacement is not None:
            on_sending()
            log.warning("%s: %s names what belongs to another user", _NAME, message.header.name)
            return await self._drive(exchange.pass_unread(replacement), upstream)
        held = hold(message)
        if held is None:
            on_sending()
            return await self._pass_on(message, exchange, upstream)
        return await self._execute(held, partial(Exchange, records, self._policy, note), upstream, on_sending)

    async def _execute(
        self,
        held: HeldStatement,
        new_exchange: Callable[[], Exchange],
        upstream: Upstream,
        on_sending: Callable[[], None],
    ) -> ExchangeReply:
        """Execute a statement as decided, and once more if its remembered keys were not confirmed."""
        session, request_bytes_max = held.call.session, self._context.config.proxy.request_bytes_max
        unconfirmed: KeyCheck | None = None
        while True:
            decided = await self._decide(session, held.statement, upstream, unconfirmed)
            dispatch = held.checked(decided, request_bytes_max)
            if dispatch.refusal is not None:
                tell_outcome(dispatch, dispatch.refused, _NAME)
                return ExchangeReply(held.refused(dispatch.refusal), None)
            sent, tracked = held.dispatched(dispatch, request_bytes_max, self._context.tracked_statements, _now())
            self._run_beside(dispatch, tracked, upstream)
            exchange = new_exchange()
            on_sending()
            answer = await self._drive(exchange.execute(sent, tracked), upstream)
            unconfirmed = exchange.unconfirmed
            if unconfirmed is None:
                return answer
            answer.drop()

    async def _pass_on(self, message: Message, exchange: Exchange, upstream: Upstream) -> ExchangeReply:
        if message.header.name == OPEN_SESSION:
            admitted = self._impersonation.check_open_session(message, upstream.login)
            if isinstance(admitted, SessionRefusal):
                log.warning("%s: no session is opened: %s", _NAME, admitted.sentence)
                return ExchangeReply(encode_open_session_refusal(message.header.seqid, admitted.sentence), None)
            message = admitted
        return await self._drive(exchange.pass_on(message), upstream)

    async def _drive(self, steps: Steps, upstream: Upstream) -> ExchangeReply:
        """Make the calls. A fallback is driven to its end, also where its client has left.

        The session outlives the connection. If the fallback ended, nobody would close the operation of the second
        run, and a client that asks again would get the answer of the first one.
        """
        driving = ExchangeDriver(steps, upstream)
        first = driving.next_step()
        assert first is not None  # noqa: S101 - every call of a client comes to one of ours at least
        await driving.make(first)
        again = driving.next_step()
        return driving.answered if again is None else await self._to_the_end(driving.rest(again))

    async def _to_the_end(self, calls: Coroutine[Any, Any, ExchangeReply]) -> ExchangeReply:
        running = asyncio.get_running_loop().create_task(calls)
        self._fallbacks.add(running)
        running.add_done_callback(self._fallbacks.discard)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            running.add_done_callback(_drop_answer)
            raise

    def forget(self, sessions: Iterable[SessionHandle], *, have_ended: bool = True) -> None:
        """Forget sessions that have ended, or that go on and are too many."""
        gone = list(sessions)
        for session in gone:
            backend = self._sessions.pop(session, None)
            if backend is not None and self._counts_sessions:
                backend.sessions -= 1
        self._tell(self._context.tracked_statements.sessions_ended(gone, _now()))
        self._context.beside_runner.sessions_closed(gone)
        self._context.key_checks.sessions_closed(gone)
        self._context.sessions.closed(gone, are_forgotten=not have_ended)

    async def close(self) -> None:
        """Wait a moment for operations that are being closed and for fallbacks, then cancel the fallbacks."""
        last = {*self._graceful_closes, *self._fallbacks}
        if last:
            await asyncio.wait(last, timeout=GRACEFUL_CLOSE_S)
        for running in self._fallbacks:
            running.cancel()

    # --- statements

    async def _decide(
        self, handle: SessionHandle, text: str, upstream: Upstream, unconfirmed: KeyCheck | None
    ) -> Dispatch:
        statement = StatementClass(text)
        rewrite_service = self._context.rewrite_service
        if handle in self._sessions:
            self._sessions.move_to_end(handle)
        if upstream.owner is None:
            return await rewrite_service.forward_unchanged(handle, statement)
        dispatch = rewrite_service.decide_now(handle, statement, _NAME)
        if dispatch is not None:
            return dispatch
        own = InternalCalls(partial(ask, upstream))
        keys = self._context.key_checks.terms(unconfirmed, upstream.backend.member.address, upstream.credentials)
        try:
            caller = Caller(_NAME, own.ask, self._access(upstream))
            return await rewrite_service.decide(handle, statement, caller, keys)
        finally:
            if own.has_unfinished:
                self._close_gracefully(own)

    def _run_beside(self, dispatch: Dispatch, tracked: TrackedStatement, upstream: Upstream) -> None:
        """Run queries in the session, beside the statement."""
        check = tracked.pending_check
        if dispatch.beside is None and check is None:
            return
        credentials, lease = upstream.credentials, self._context.backends.lease_for_proxy(upstream.backend)
        if check is not None:
            if lease is None:
                self._context.key_checks.ask_first_at(upstream.backend.member.address, credentials)
            self._context.key_checks.start(tracked.session, credentials, check, lease)
        if dispatch.beside is not None and credentials is not None and lease is not None:
            _ = self._context.beside_runner.start(tracked.session, credentials, dispatch.beside, lease)
        if lease is not None:
            lease.release()

    def _access(self, upstream: Upstream) -> Access | None:
        credentials, backends = upstream.credentials, self._context.backends
        if credentials is None:
            return None
        return Access(credentials, partial(backends.lease_for_proxy, upstream.backend))

    def _close_gracefully(self, own: InternalCalls) -> None:
        task = asyncio.get_running_loop().create_task(own.close_operation(GRACEFUL_CLOSE_S))
        self._graceful_closes.add(task)
        task.add_done_callback(self._graceful_closes.discard)

    # --- notes

    def _note(self, upstream: Upstream, host: str, events: list[Event]) -> None:
        for event in events:
            match event:
                case SessionOpened(session, version, configuration, user):
                    self._opened(session, upstream)
                    opening = _opening(configuration, user, upstream, host)
                    self._context.sessions.opened(session, version, opening, self._access(upstream))
                case SessionClosed(session):
                    upstream.closed(session)
                    self.forget([session])
                case StatementEnded():
                    self._tell([event])
                case StatementPassed(session, statement):
                    self._context.rewrite_service.note_forwarded(session, statement, _NAME)

    def _opened(self, session: SessionHandle, upstream: Upstream) -> None:
        upstream.opened(session)
        if len(self._sessions) >= SESSIONS_MAX:
            self.forget([next(iter(self._sessions))], have_ended=False)
        if session not in self._sessions and self._counts_sessions:
            upstream.backend.sessions += 1
        self._sessions[session] = upstream.backend

    def _tell(self, ended: list[StatementEnded]) -> None:
        for one in ended:
            tell_outcome(one.dispatch, one.outcome, _NAME)

    def _records_of(self, upstream: Upstream) -> CallerRecords:
        # The digest alone is not enough: beside a cookie, credentials may name another user than the server uses.
        name = (upstream.backend.member.name, upstream.name, upstream.names)
        records = self._records.get(name)
        if records is None:
            if len(self._records) >= CALLERS_MAX:
                self._records.popitem(last=False)
            records = self._records[name] = CallerRecords(
                self._context.tracked_statements, self._handle_access(upstream), _now
            )
        self._records.move_to_end(name)
        return records

    def _handle_access(self, upstream: Upstream) -> HandleAccess:
        """The handle access of a client. Several names count as one user; a client without a name may use any."""
        context = self._context
        passes_unknown = context.config.proxy.unknown_handles == "pass"
        handle_access = HandleAccess(context.handles, upstream.backend.member.name, passes_unknown=passes_unknown)
        if upstream.names:
            handle_access.user_logged_in("\0".join(sorted(upstream.names)).encode())
        return handle_access


def _admitted(records: CallerRecords, message: Message) -> Message | None:
    """See HandleAccess.replacement_for. Raises RemoteProtocolError."""
    try:
        return records.handle_access.replacement_for(message) if records.handle_access.has_login else None
    except IncompleteError:
        raise RemoteProtocolError("a message ends inside one of its fields") from None


def _now() -> float:
    """The clock of the event loop, as connections use it: they share the tracked statements."""
    return asyncio.get_running_loop().time()


def _opening(
    configuration: Mapping[str, str] | None, user: str | None, upstream: Upstream, host: str
) -> SessionOpening | None:
    if configuration is None or upstream.owner is None:
        return None
    # A server that asks for no login uses the name in the call. Lessons of one backend hold for that one alone.
    owner = "\0".join((upstream.backend.member.name, upstream.owner, user or ""))
    user_name, backend = configuration.get(PROXY_USER, upstream.login or ""), upstream.backend.member.name
    who = f"{upstream.who}\0{user_name}" if upstream.who else ""
    return SessionOpening(configuration, owner, user_name, host, backend, upstream.own_login, user or "", who)


def _drop_answer(running: asyncio.Task[ExchangeReply]) -> None:
    """Drop the reply of a fallback whose client has left."""
    if not running.cancelled() and running.exception() is None:
        running.result().drop()
