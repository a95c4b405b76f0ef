"""Guard of a port for HTTP: closes connections that send no whole request in time, and limits their number.

aiohttp's server has one limit of time, for connections that are kept open between requests. The guard stands
between the socket and aiohttp's protocol, and is told by the port's handlers how far a request has come.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, cast

from proxy.net.log_once import LogOnce
from proxy.net.newcomers import Newcomers, address_group
from proxy.net.sockets import peer_host

log = logging.getLogger(__name__)

# The line and the headers of a request come in one packet or a few. A packet that is lost twice arrives sooner.
REQUEST_S: Final = 10.0


class GuardedConnection(asyncio.Protocol):
    """One connection: hands its events on to aiohttp's protocol."""

    def __init__(self, inner: asyncio.Protocol, guard: RequestGuard) -> None:
        self._inner = inner
        self._guard = guard
        self._timer: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport | None = None
        self.address = ""
        # True if the connection is kept open between requests, since one has been answered well.
        self.is_kept = False
        self._is_idle = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is open."""
        # uvloop's transports are not subclasses of asyncio's, so there is nothing to check against.
        self.transport = cast("asyncio.Transport", transport)
        self.address = address_group(peer_host(self.transport))
        self._inner.connection_made(transport)
        self._guard.opened(self)

    def data_received(self, data: bytes) -> None:
        """Bytes have come from the client."""
        if self._is_idle:
            self.expect_request()
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """The client sends no more."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Too many bytes wait to be written."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """They have been written."""
        self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is closed."""
        self.stop_waiting()
        self._guard.closed(self)
        self._inner.connection_lost(error)

    def expect_request(self, *, is_idle: bool = False) -> None:
        """Close the connection unless the header of a request comes in time; it has begun if not `is_idle`."""
        self.stop_waiting(is_idle=is_idle)
        timer = asyncio.get_running_loop().call_later
        self._timer = timer(REQUEST_S, self.end_waiting, f"no request within {REQUEST_S:g} s")

    def stop_waiting(self, *, is_idle: bool = False) -> None:
        """Let the connection be: a request is being answered, or, if `is_idle`, none has begun so far."""
        self._is_idle = is_idle
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end_waiting(self, reason: str) -> None:
        """Close the connection."""
        if not self._is_idle:
            self._guard.tell(self.address, reason)
        if self.transport is not None:
            self.transport.abort()


class RequestGuard:
    """The connections of one port, by their transports. It ignores those that were not opened here."""

    def __init__(self, port: str, newcomers: Newcomers, *, keeps: bool) -> None:
        """`keeps` lets connections wait for a next request as long as aiohttp has it, once one is answered well.

        Otherwise a connection between two requests is a newcomer again.
        """
        self._port = port
        self._newcomers = newcomers
        self._keeps = keeps
        self._connections: dict[asyncio.BaseTransport, GuardedConnection] = {}
        self._told = LogOnce()

    def factory(self, inner: Callable[[], asyncio.Protocol]) -> Callable[[], asyncio.Protocol]:
        """The factory of guarded protocols, made of the factory of aiohttp's."""
        return lambda: GuardedConnection(inner(), self)

    @property
    def served_count(self) -> int:
        """The number of connections of which a whole request has come."""
        return len(self._connections) - len(self._newcomers)

    def is_newcomer(self, transport: asyncio.BaseTransport | None) -> bool:
        """True if the request that is coming is the connection's first."""
        connection = self._of(transport)
        return connection is not None and connection in self._newcomers

    def header_came(self, transport: asyncio.BaseTransport | None) -> None:
        """The header of a request has come. The handler limits the time for the body."""
        connection = self._of(transport)
        if connection is not None:
            connection.stop_waiting()

    def request_came(self, transport: asyncio.BaseTransport | None) -> None:
        """All of a request has come: the connection waits for us now."""
        connection = self._of(transport)
        if connection is not None:
            self._newcomers.discard(connection)

    def answered(self, transport: asyncio.BaseTransport | None, *, is_well: bool) -> None:
        """The answer has been written. A refused request earns its connection no time."""
        connection = self._of(transport)
        if connection is None:
            return
        connection.is_kept = self._keeps and (connection.is_kept or is_well)
        if connection.is_kept:
            connection.stop_waiting(is_idle=True)
        else:
            self._newcomers.add(connection)
            connection.expect_request(is_idle=True)

    def opened(self, connection: GuardedConnection) -> None:
        """A client has connected."""
        assert connection.transport is not None  # noqa: S101 - it has just been set
        self._connections[connection.transport] = connection
        self._newcomers.add(connection)
        connection.expect_request()

    def closed(self, connection: GuardedConnection) -> None:
        """A connection has gone."""
        self._newcomers.discard(connection)
        if connection.transport is not None:
            self._connections.pop(connection.transport, None)

    def tell(self, address: str, reason: str) -> None:
        """Log that a connection is closed: once for each address, so that many of them do not flood the log."""
        level = logging.INFO if self._told.is_first_mention(address) else logging.DEBUG
        log.log(level, "%s: a connection from %s is closed: %s", self._port, address, reason)

    def _of(self, transport: asyncio.BaseTransport | None) -> GuardedConnection | None:
        return None if transport is None else self._connections.get(transport)
