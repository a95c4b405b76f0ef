"""All of the proxy that has to do with HTTP: listeners that speak it, and listeners before a backend that does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack

from proxy.config.endpoints import Listener, Transport
from proxy.frontend.context import ServerContext
from proxy.http.binary_client import BinarySettings, SignedIn
from proxy.http.binary_listener import BinaryFront
from proxy.http.binary_pool import BinaryPool, BinaryPoolSettings
from proxy.http.binary_upstream import PooledClient
from proxy.http.gateway import Gateway
from proxy.http.http_listener import Clients, HttpListener, HttpListenerSettings
from proxy.http.http_upstream import HttpClient, HttpReach
from proxy.net.tls_listener import Accepted
from proxy.upstream.http_connections import HttpConnections
from proxy.upstream.http_headers import Caller

log = logging.getLogger(__name__)


class Listeners:
    """What serves the listeners for which `serves` says so."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._settings = context.settings
        self._gateway = Gateway(context)
        self._fronts: list[HttpListener | BinaryFront] = []
        self._reach: HttpReach | None = None
        self._stack = AsyncExitStack()
        self._clients: Clients | None = None

    def serves(self, listener: Listener) -> bool:
        """Whether either side of the listener's connections is HTTP."""
        return Transport.HTTP in (listener.transport, self._settings.upstream.transport)

    @property
    def connection_count(self) -> int:
        """How many clients are connected."""
        return sum(front.connection_count for front in self._fronts)

    def is_quiet(self, since: float) -> bool:
        """Whether no statement is in flight. One that stays open unused since then counts as done."""
        if any(front.awaits_replies for front in self._fronts):
            return False
        return not self._gateway.has_open_operations or self._gateway.last_activity < since

    async def accepting(self, listener: Listener) -> Callable[[], Accepted]:
        """What makes the protocol of a connection that the listener has accepted."""
        factory = await self._factory(listener)
        return lambda: (factory(), _log_end)

    async def _factory(self, listener: Listener) -> Callable[[], asyncio.BaseProtocol]:
        settings = self._settings
        if listener.transport is not Transport.HTTP:
            return await self._binary(listener.transport)
        if self._clients is None:
            self._clients = await self._http_clients()
        front_settings = HttpListenerSettings(
            path=listener.path,
            request_bytes_max=settings.request_bytes_max,
            connections_max=settings.connections_max,
            keep_alive_s=settings.http_keep_alive_s,
            body_s=settings.http_body_s,
        )
        front = HttpListener(front_settings, self._gateway, self._clients, self._refusal)
        self._fronts.append(front)
        return await front.start()

    def drain(self) -> None:
        """Open no more sessions."""
        for front in self._fronts:
            if isinstance(front, HttpListener):
                front.is_draining = True

    async def close(self) -> None:
        """Close every connection."""
        for front in self._fronts:
            await front.close()
        await self._gateway.close()
        await self._stack.aclose()

    async def _binary(self, spoken: Transport) -> Callable[[], asyncio.BaseProtocol]:
        reach = await self._http_reach()
        settings = BinarySettings.of(self._settings, spoken)
        front = BinaryFront(settings, self._gateway, lambda header: SignedIn(reach, header))
        self._fronts.append(front)
        return front.accept

    async def _http_clients(self) -> Clients:
        key = self._context.owner_key
        if self._settings.upstream.transport is Transport.HTTP:
            reach = await self._http_reach()
            return lambda query, headers: HttpClient(reach, query, headers)
        links = BinaryPool(self._link_settings(), self._context.backends, self._gateway.forget)
        _ = self._stack.callback(links.close)
        return lambda query, headers: PooledClient(links, Caller.from_request(query, headers), key)

    async def _http_reach(self) -> HttpReach:
        if self._reach is None:
            context = self._context
            connections = await self._stack.enter_async_context(HttpConnections(context.dialer))
            self._reach = HttpReach(connections, context.backends, context.owner_key)
        return self._reach

    def _link_settings(self) -> BinaryPoolSettings:
        settings = self._settings
        return BinaryPoolSettings(
            dialer=self._context.dialer,
            login_timeout_s=settings.handshake_timeout_s,
            links_max=settings.connections_max,
            session_idle_s=settings.http_session_idle_s,
        )

    def _refusal(self, login: str, wanted: str) -> str | None:
        settings = self._settings
        refused = settings.proxy_users.refusal(login or None, wanted)
        if refused is None and settings.upstream.transport is not Transport.HTTP and wanted != login:
            return "Starpruner: doAs is not for a backend that does not speak HTTP; hive.server2.proxy.user is"
        return refused


def _log_end(reason: str) -> None:
    log.info("a connection ended: %s", reason)
