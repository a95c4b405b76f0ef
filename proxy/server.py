"""The proxy as a server, which accepts clients, owns their connections, drains and closes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Final

from proxy.backends.pool import BackendPool
from proxy.config.address import Address, address
from proxy.config.backend_list import PoolMember
from proxy.config.config import Config
from proxy.config.endpoints import Listener, Transport
from proxy.config.memory_shares import AMPLE, MemoryShares
from proxy.frontend.background_runner import BackgroundRunner, RunnerSettings
from proxy.frontend.connection import Connection
from proxy.frontend.context import ServerContext
from proxy.frontend.key_checks import KeyChecks
from proxy.frontend.memory_gate import SENTENCE, MemoryGate
from proxy.frontend.own_sessions import OwnSessions
from proxy.frontend.process_scope import ProcessScope
from proxy.frontend.rewrite_service import RewriteService, tell_outcome
from proxy.frontend.session_registry import SessionRegistry
from proxy.frontend.statement_canceller import StatementCanceller
from proxy.http.listeners import Listeners
from proxy.net.newcomers import Newcomers
from proxy.net.own_host import own_host
from proxy.net.reply_room import ReplyRoom
from proxy.net.tls import Certificates
from proxy.net.tls_listener import Accepted, TlsServer
from proxy.operations.session_port import SessionOpening, SessionPort
from proxy.operations.tracked_statements import TrackedStatements
from proxy.stopping import StopRequests
from proxy.upstream.dialer import Dialer
from proxy.upstream.fair_threads import BESIDE, FairThreads
from proxy.upstream.query_driver import Slots

log = logging.getLogger(__name__)

# Checks of remembered keys at once, for each key query that may run at once: most of them log in or wait.
_CHECKS_PER_SLOT: Final = 4

# While draining: the time between two checks, and the time for which an open but unused result counts as in
# flight. A client that reads on fetches its next batch sooner; one that forgot to close never does.
DRAIN_LOOK_S: Final = 0.05
DRAIN_UNUSED_S: Final = 2.0
# The time between two checks whether sessions that other processes opened have ended there. Until then their
# writes count as running.
SWEEP_S: Final = 10.0
# Parsing is pure Python and holds the interpreter's lock: more threads would only take turns. An owner has one of
# them at most, and so have runs beside statements, and answers that are decoded (`proxy.upstream.fair_threads`).
REWRITE_THREADS: Final = 3

_STOPPING: Final = "Starpruner is stopping; connect again, and run the statement again"

_WHO_IS_READ: Final = (
    "Statements of clients that log in by PLAIN or not at all are rewritten; without a section [kerberos] "
    "connections that log in by Kerberos or a delegation token pass through unread"
)
_WHO_LOGS_IN: Final = "Clients log in to Starpruner itself ([kerberos])"


class Proxy:
    """Relays HiveServer2 connections, each to one backend, and passes their statements to the rewrite service."""

    def __init__(
        self,
        config: Config,
        open_session: Callable[[SessionOpening], SessionPort],
        backends: BackendPool | None = None,
        *,
        process: ProcessScope | None = None,
        memory: MemoryShares = AMPLE,
    ) -> None:
        """`open_session` gets the client's OpenSession. Without `backends`, proxy.backend is the only one.

        `process` is the state that workers share, `memory` the memory that this process may use. Raises
        ConfigError if a TLS file cannot be used.
        """
        self.connections_max = config.proxy.connections_max
        self._connections: set[Connection] = set()
        self.memory = MemoryGate(memory.statement_bytes, lambda: self._connections)
        self._listeners = config.listeners()
        self._process = process = process or ProcessScope()
        self._certificates = {
            listener: Certificates.of_listener(f"listener {listener.address}", listener.tls, time.monotonic)
            for listener in self._listeners
            if listener.tls is not None
        }
        # Taken by the proxy's own queries that need one, for any statement: see Query.needs_slot.
        slots_count = config.rewrite.key_queries_at_once_max
        self.slots = Slots(slots_count)
        self.reply_room = ReplyRoom(memory.reply_bytes)
        dialer = Dialer(config.upstream(), config.proxy.connect_timeout_s, self.reply_room)
        sessions = SessionRegistry(open_session, process.handles)
        threads = FairThreads.started(REWRITE_THREADS)
        beside = threads.of(BESIDE)
        backends = backends or BackendPool([PoolMember(address(config.proxy.backend))], time.monotonic)
        self.own_sessions = OwnSessions(dialer, time.monotonic, self.slots)
        backends.make_room = self.own_sessions.give_way
        self._context = ServerContext(
            config,
            sessions,
            TrackedStatements(aliases=process.aliases, kept_bytes_max=memory.fallback_bytes),
            threads,
            process.handles,
            RewriteService(sessions, threads, self.slots, self.own_sessions),
            BackgroundRunner(
                RunnerSettings("a run beside a statement", dialer, at_once_max=config.shadow.at_once_max),
                beside,
                own_sessions=self.own_sessions,
            ),
            KeyChecks(
                BackgroundRunner(
                    RunnerSettings(
                        "a check of remembered keys", dialer, at_once_max=_CHECKS_PER_SLOT * slots_count
                    ),
                    beside,
                    self.slots,
                    self.own_sessions,
                ),
                time.monotonic,
            ),
            self.own_sessions,
            dialer,
            backends,
            self.memory,
            {listener: config.client_logins(listener, own_host()) for listener in self._listeners},
            {listener: Newcomers(time.monotonic) for listener in self._listeners},
        )
        self.canceller = StatementCanceller(self._context.tracked_statements, sessions.access_of, dialer)
        self._http = Listeners(self._context)
        self._accepted = 0
        self._servers: list[asyncio.Server | TlsServer] = []
        # HTTP clients may open a connection for every call, so these listen until the end of the drain.
        self._listening_while_draining: set[asyncio.Server | TlsServer] = set()
        self._sweep_timer: asyncio.TimerHandle | None = None

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return self.ports[0]

    @property
    def ports(self) -> tuple[int, ...]:
        """The listening ports, one for each listener."""
        if not self._servers:
            raise RuntimeError("the proxy is not listening; await start() first")
        return tuple(server.sockets[0].getsockname()[1] for server in self._servers)

    @property
    def connection_count(self) -> int:
        """The number of connected clients."""
        return len(self._connections) + self._http.connection_count

    @property
    def certificate_ends(self) -> list[tuple[str, float]]:
        """The address of each listener that speaks TLS, and the time at which its certificate ends."""
        return [
            (str(listener.address), certificates.end)
            for listener, certificates in self._certificates.items()
            if certificates.end is not None
        ]

    @property
    def closing_connection_count(self) -> int:
        """The number of backend connections that stay open while the proxy's own query on them is cancelled."""
        return len(self._context.graceful_closes)

    async def start(self) -> None:
        """Listen. Raises OSError if an address is not available."""
        for listener in filter(self._serves, self._listeners):
            self._servers.append(await self._listen(listener))
            if listener.transport is Transport.HTTP:
                self._listening_while_draining.add(self._servers[-1])
            log.info("listening on %s for %s", Address(listener.address.host, self.ports[-1]), listener.spoken)
        who_is_read = _WHO_LOGS_IN if self._context.config.kerberos.takes_logins else _WHO_IS_READ
        log.info("the backend is %s. %s", self._context.backends.display_name, who_is_read)
        self._sweep_timer = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep_again)

    def drop_sessions_ended_elsewhere(self) -> None:
        """Drop the state of sessions that other processes opened and that have ended there."""
        ended = self._context.sessions.ended_elsewhere()
        for event in self._context.tracked_statements.sessions_ended(ended, asyncio.get_running_loop().time()):
            tell_outcome(event.dispatch, event.outcome, "a session of another process")

    async def drain(self, seconds: float, stop: StopRequests) -> None:
        """Accept no more clients, and wait up to `seconds` for sessions, or for statements alone, to end."""
        self._stop_listening(except_for=self._listening_while_draining)
        self._http.drain()
        loop = asyncio.get_running_loop()
        began = loop.time()
        awaited = "sessions" if stop.waits_for_sessions else "statements in flight"
        log.info("draining: %s may go on for at most %g s", awaited, seconds)
        while self._is_awaited(stop) and loop.time() < began + seconds and not stop.at_once.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.at_once.wait(), DRAIN_LOOK_S)
        sessions, statements = self._count_sessions(), self._count_in_flight()
        level = logging.WARNING if statements else logging.INFO
        end = "drained after %.1f s: %d sessions are ended, with %d statements in flight"
        log.log(level, end, loop.time() - began, sessions, statements)

    async def close(self, *, at_once: bool = False) -> None:
        """Close every connection and the listening socket; `at_once` leaves queries of ours to the backend."""
        self._stop_listening()
        self.memory.close()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for connection in list(self._connections):
            connection.close_with_error(_STOPPING)
        await self._http.close()
        await self._context.beside_runner.close()
        await self._context.key_checks.close()
        await self.own_sessions.close()
        self._context.threads.shutdown()
        # One turn of the event loop, so that it sends the ends of streams before it stops.
        await asyncio.sleep(0)
        # Each of them closes by itself after GRACEFUL_CLOSE_S.
        while self._context.graceful_closes and not at_once:  # noqa: ASYNC110 - once, at the very end
            await asyncio.sleep(DRAIN_LOOK_S)

    def _is_awaited(self, stop: StopRequests) -> bool:
        """True if sessions or statements are left that the drain waits for."""
        return bool(self._count_in_flight() or (stop.waits_for_sessions and self._count_sessions()))

    def _count_sessions(self) -> int:
        """The number of connections whose sessions end with them, and of such sessions over HTTP."""
        return sum(connection.has_session for connection in self._connections) + self._http.bound_session_count

    def _count_in_flight(self) -> int:
        """The number of connections with a statement in flight, and of calls over HTTP."""
        since = asyncio.get_running_loop().time() - DRAIN_UNUSED_S
        busy = sum(not connection.is_quiet(since) for connection in self._connections)
        return busy + self._http.count_in_flight(since)

    def _serves(self, listener: Listener) -> bool:
        """True if this process serves the listener. One worker takes HTTP, to see all calls of each session."""
        return self._process.is_first or listener.transport is not Transport.HTTP

    async def _listen(self, listener: Listener) -> asyncio.Server | TlsServer:
        where, certificates = listener.address, self._certificates.get(listener)
        over_http = listener.transport is Transport.HTTP
        accept = await self._http.accepting(listener) if over_http else partial(self._accept, listener)
        if certificates is not None:
            return TlsServer(where, certificates, accept, shares_port=self._process.shares_ports)
        loop = asyncio.get_running_loop()
        shares_port = self._process.shares_ports or None
        return await loop.create_server(lambda: accept()[0], where.host, where.port, reuse_port=shares_port)

    def _accept(self, listener: Listener) -> Accepted:
        self._accepted += 1
        refusal = self._refusal()
        connection = Connection(self._accepted, listener, self._context, self._connection_ended)
        self._connections.add(connection)
        self._process.count_connections(len(self._connections))
        return connection.client_side(refusal), connection.close

    def _refusal(self) -> str | None:
        """The sentence that refuses a new connection; None where there is room for it."""
        limit = self.connections_max
        is_full = len(self._connections) + self._process.connections_elsewhere() >= limit
        if is_full and not self._end_silent():
            limits = "connections_max, or as many as its memory has room for"
            return f"Starpruner serves {limit} connections already ({limits}); try again later"
        return SENTENCE if self.memory.is_full() else None

    def _end_silent(self) -> bool:
        """Make room: end a client that has connected and sends no login. False if there is none."""
        shaking = (server.handshakes for server in self._servers if isinstance(server, TlsServer))
        return any(newcomers.end_silent() for newcomers in (*self._context.newcomers.values(), *shaking))

    def reload_certificates(self) -> None:
        """Read the TLS files again, for new connections."""
        for certificates in self._certificates.values():
            certificates.reload()
        self._context.dialer.reload_certificates()

    def _connection_ended(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._process.count_connections(len(self._connections))

    def _sweep_again(self) -> None:
        self.drop_sessions_ended_elsewhere()
        self._sweep_timer = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep_again)

    def _stop_listening(self, except_for: Collection[asyncio.Server | TlsServer] = ()) -> None:
        for server in self._servers:
            if server not in except_for:
                server.close()
