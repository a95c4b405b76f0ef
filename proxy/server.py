"""The proxy as a server: accepts clients, owns their connections, drains and closes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from proxy.backends.pool import BackendPool
from proxy.config.address import Address
from proxy.config.backend_list import Member
from proxy.config.endpoints import Listener, Transport
from proxy.frontend.connection import Connection
from proxy.frontend.context import ServerContext
from proxy.frontend.process_scope import ProcessScope
from proxy.frontend.rewrite_service import RewriteService, tell_outcome
from proxy.frontend.session_registry import SessionRegistry
from proxy.frontend.settings import ServerSettings
from proxy.frontend.shadow_runner import ShadowRunner, ShadowRunnerSettings
from proxy.http.listeners import Listeners
from proxy.net.tls import Certificates
from proxy.net.tls_listener import Accepted, TlsServer
from proxy.operations.session_port import SessionOpening, SessionPort
from proxy.operations.tracked_statements import TrackedStatements
from proxy.upstream.dialer import Dialer

log = logging.getLogger(__name__)

# While draining: how often to look, and for how long an open but unused result counts as in flight. A client
# that reads on comes back for its next batch sooner than this; one that forgot to close would never.
DRAIN_LOOK_S: Final = 0.05
DRAIN_UNUSED_S: Final = 2.0
# How often to look whether sessions that other processes opened have ended there. Until then what they wrote
# counts as being written.
SWEEP_S: Final = 10.0

_WHO_IS_READ: Final = (
    "Statements of clients that log in by PLAIN or not at all are rewritten; Kerberos and delegation tokens are "
    "not supported yet: such connections pass through unread"
)


class Proxy:
    """Relays HiveServer2 connections, each to one backend, and offers their statements for rewriting."""

    def __init__(
        self,
        settings: ServerSettings,
        open_session: Callable[[SessionOpening], SessionPort],
        backends: BackendPool | None = None,
        *,
        process: ProcessScope | None = None,
    ) -> None:
        """`open_session` is told how the client opened its session. Without `backends`, the settings name one.

        `process` is what workers have in common.
        """
        self._settings = settings
        self._process = process = process or ProcessScope()
        # Raises ConfigError where a file of theirs cannot be used.
        self._certificates = {
            listener: Certificates.of_listener(f"listener {listener.address}", listener.tls, time.monotonic)
            for listener in settings.listeners
            if listener.tls is not None
        }
        # Held by the queries of ours that need one, whoever asks: see Query.needs_slot.
        self.slots = asyncio.Semaphore(settings.key_queries_at_once_max)
        dialer = Dialer(settings.upstream, settings.connect_timeout_s)
        sessions = SessionRegistry(open_session, process.handles)
        pool = ThreadPoolExecutor(settings.rewrite_threads, thread_name_prefix="rewrite")
        self._context = ServerContext(
            settings,
            sessions,
            TrackedStatements(aliases=process.aliases),
            pool,
            process.handles,
            RewriteService(sessions, pool, self.slots),
            ShadowRunner(ShadowRunnerSettings(dialer, at_once_max=settings.shadows_at_once_max), pool),
            dialer,
            backends or BackendPool([Member(settings.backend)], time.monotonic),
        )
        self._http = Listeners(self._context)
        self._connections: set[Connection] = set()
        self._accepted = 0
        self._servers: list[asyncio.Server | TlsServer] = []
        # Clients of these connect anew for every call.
        self._kept_until_the_end: set[asyncio.Server | TlsServer] = set()
        self._sweep_timer: asyncio.TimerHandle | None = None

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return self.ports[0]

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports that are listened on, one for each listener."""
        if not self._servers:
            raise RuntimeError("the proxy is not listening; await start() first")
        return tuple(server.sockets[0].getsockname()[1] for server in self._servers)

    @property
    def connection_count(self) -> int:
        """How many clients are connected."""
        return len(self._connections) + self._http.connection_count

    @property
    def farewell_count(self) -> int:
        """How many backend connections are kept for a moment because a query of ours is being ended on them."""
        return len(self._context.graceful_closes)

    async def start(self) -> None:
        """Listen. Raises OSError where the address cannot be had."""
        for listener in filter(self._serves, self._settings.listeners):
            self._servers.append(await self._listen(listener))
            if listener.transport is Transport.HTTP:
                self._kept_until_the_end.add(self._servers[-1])
            log.info("listening on %s for %s", Address(listener.address.host, self.ports[-1]), listener.spoken)
        log.info("the backend is %s. %s", self._context.backends.name, _WHO_IS_READ)
        self._sweep_timer = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep_again)

    def sweep(self) -> None:
        """End what is kept of sessions that other processes opened and that have ended there."""
        ended = self._context.sessions.ended_elsewhere()
        for told in self._context.tracked_statements.sessions_ended(ended, asyncio.get_running_loop().time()):
            tell_outcome(told.dispatch, told.outcome, "a session of another process")

    async def drain(self, seconds: float) -> None:
        """Accept no more clients, and wait for statements in flight, up to `seconds`."""
        self._stop_listening(but=self._kept_until_the_end)
        self._http.drain()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while loop.time() < deadline:
            since = loop.time() - DRAIN_UNUSED_S
            quiet = all(connection.is_quiet(since) for connection in self._connections)
            if quiet and self._http.is_quiet(since):
                return
            await asyncio.sleep(DRAIN_LOOK_S)
        log.warning(
            "%d connections still had statements in flight after %g s",
            sum(not c.is_quiet(loop.time()) for c in self._connections),
            seconds,
        )

    async def close(self) -> None:
        """Close every connection and the listening socket."""
        self._stop_listening()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        for connection in list(self._connections):
            connection.close("the proxy is shutting down")
        await self._http.close()
        await self._context.shadow_runner.close()
        self._context.pool.shutdown(wait=False, cancel_futures=True)
        # One turn of the loop, so that the ends of streams are on their way before it stops.
        await asyncio.sleep(0)
        # Each of them ends by itself after `farewell_s`.
        while self._context.graceful_closes:  # noqa: ASYNC110 - it happens once, at the very end
            await asyncio.sleep(DRAIN_LOOK_S)

    def _serves(self, listener: Listener) -> bool:
        """Over HTTP the calls of a session come on many connections, and only who sees them all can rewrite."""
        return self._process.is_first or listener.transport is not Transport.HTTP

    async def _listen(self, listener: Listener) -> asyncio.Server | TlsServer:
        address, certificates = listener.address, self._certificates.get(listener)
        over_http = listener.transport is Transport.HTTP
        accept = await self._http.accepting(listener) if over_http else partial(self._accept, listener)
        if certificates is not None:
            return TlsServer(address, certificates, accept, shares_port=self._process.shares_ports)
        loop = asyncio.get_running_loop()
        shares_port = self._process.shares_ports or None
        return await loop.create_server(lambda: accept()[0], address.host, address.port, reuse_port=shares_port)

    def _accept(self, listener: Listener) -> Accepted:
        self._accepted += 1
        full = len(self._connections) + self._process.connections_elsewhere() >= self._settings.connections_max
        connection = Connection(self._accepted, listener, self._context, self._ended)
        self._connections.add(connection)
        self._process.count_connections(len(self._connections))
        return connection.client_side(full=full), connection.close

    def renew_certificates(self) -> None:
        """Read the files of TLS again, for the connections that come."""
        for certificates in self._certificates.values():
            certificates.renew()
        self._context.dialer.renew_certificates()

    def _ended(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._process.count_connections(len(self._connections))

    def _sweep_again(self) -> None:
        self.sweep()
        self._sweep_timer = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep_again)

    def _stop_listening(self, but: Collection[asyncio.Server | TlsServer] = ()) -> None:
        for server in self._servers:
            if server not in but:
                server.close()
