"""Listeners for clients over HTTP, before backends that speak HTTP or the binary protocol."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from proxy.access.impersonation import ProxyUsers
from proxy.config.endpoints import Listener, Transport
from proxy.frontend.context import ServerContext
from proxy.http.binary_pool import BinaryPool
from proxy.http.binary_upstream import BinaryUpstreams
from proxy.http.gateway import Gateway
from proxy.http.http_listener import HttpListener
from proxy.http.http_logins import HttpLogins
from proxy.http.http_upstream import HttpUpstreams
from proxy.http.upstream_protocol import Upstreams
from proxy.net.tls_listener import Accepted
from proxy.wire.hs2.calls import SessionHandle

log = logging.getLogger(__name__)


class Listeners:
    """The listeners of a process that speak HTTP."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._config = context.config
        self._proxy_users = ProxyUsers(context.config.proxy_users)
        self._upstreams = _upstreams(context, self._sessions_lost)
        self._gateway = Gateway(context, self._upstreams)
        self._listeners: list[HttpListener] = []

    @property
    def connection_count(self) -> int:
        """The number of connected clients."""
        return sum(listener.connection_count for listener in self._listeners)

    @property
    def bound_session_count(self) -> int:
        """The number of sessions that end with the proxy."""
        return 0 if self._upstreams.has_lasting_sessions else self._gateway.session_count

    def count_in_flight(self, since: float) -> int:
        """The number of calls under way, or of statements that were used since then."""
        calls = sum(listener.call_count for listener in self._listeners)
        if calls or self._gateway.last_activity < since:
            return calls
        return self._gateway.open_operation_count

    async def accepting(self, listener: Listener) -> Callable[[], Accepted]:
        """The factory of the protocols of connections that the listener has accepted."""
        if not self._listeners:
            await self._upstreams.start()
        taken = self._context.client_logins.get(listener)
        logins = None if taken is None else HttpLogins(taken, self._config.proxy.handshake_timeout_s)
        self._listeners.append(
            HttpListener(listener.path, self._config, self._gateway, self._upstreams.client, self._refusal, logins)
        )
        factory = await self._listeners[-1].start()
        return lambda: (factory(), _log_end)

    def drain(self) -> None:
        """Open no more sessions."""
        for listener in self._listeners:
            listener.is_draining = True

    async def close(self) -> None:
        """Close every connection."""
        for listener in self._listeners:
            await listener.close()
        await self._gateway.close()
        if self._listeners:
            await self._upstreams.close()

    def _sessions_lost(self, sessions: Iterable[SessionHandle]) -> None:
        self._gateway.forget(sessions)

    def _refusal(self, login: str, wanted: str) -> str | None:
        refused = self._proxy_users.refusal(login or None, wanted)
        if refused is None and not self._upstreams.takes_do_as and wanted != login:
            return "Starpruner: doAs is not for a binary or kerberized backend; hive.server2.proxy.user is"
        return refused


def _upstreams(context: ServerContext, on_lost: Callable[[Iterable[SessionHandle]], None]) -> Upstreams:
    """The upstreams to the backends, of either kind. No other module knows both kinds."""
    if context.dialer.upstream.transport is Transport.HTTP:
        return HttpUpstreams(context.dialer, context.backends, context.owner_key)
    pool = BinaryPool(context.config, context.dialer, context.backends, on_lost)
    return BinaryUpstreams(pool, context.dialer.upstream.transport, context.owner_key)


def _log_end(reason: str) -> None:
    log.info("a connection ended: %s", reason)
