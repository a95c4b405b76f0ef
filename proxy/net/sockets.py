"""Sockets as asyncio sees them: their events as callbacks, their options, and closing without data loss."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, cast

from proxy.config.serving import ProxySection


class SocketCallbacks(asyncio.Protocol):
    """A socket's callbacks. `on_data` becomes `data_received` itself, which saves the fast path one call."""

    def __init__(
        self,
        on_connected: Callable[[asyncio.Transport], None],
        on_data: Callable[[bytes], None],
        on_lost: Callable[[], None],
        on_writable: Callable[[bool], None],
    ) -> None:
        self._on_connected = on_connected
        self._on_lost = on_lost
        self._on_writable = on_writable
        self.data_received = on_data  # type: ignore[method-assign, assignment]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open."""
        # uvloop's transports are not subclasses of asyncio's, so there is nothing to check against.
        self._on_connected(cast("asyncio.Transport", transport))

    def connection_lost(self, _error: Exception | None) -> None:
        """The socket is closed, by either side."""
        self._on_lost()

    def pause_writing(self) -> None:
        """More bytes than the limit wait to be written."""
        self._on_writable(False)  # noqa: FBT003 - the callback's only parameter

    def resume_writing(self) -> None:
        """The waiting bytes have been written."""
        self._on_writable(True)  # noqa: FBT003 - the callback's only parameter


def prepare(transport: asyncio.Transport, settings: ProxySection) -> None:
    """Set a socket's options: small calls go out at once, dead peers are noticed, and buffers are bounded."""
    transport.set_write_buffer_limits(high=settings.write_buffer_bytes_max)
    sock = transport.get_extra_info("socket")
    if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, number in (
            ("TCP_KEEPIDLE", settings.keepalive_idle_s),
            ("TCP_KEEPINTVL", settings.keepalive_interval_s),
            ("TCP_KEEPCNT", settings.keepalive_count),
        ):
            # Not every system has all of them.
            if number and hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), number)


def peer_host(transport: asyncio.Transport) -> str:
    """Return the peer's host without its port."""
    name = transport.get_extra_info("peername")
    return str(name[0]) if name else "an unknown address"


def peer_name(transport: asyncio.Transport) -> str:
    """Return the peer's host and port for the log."""
    name = transport.get_extra_info("peername")
    return f"{name[0]}:{name[1]}" if name else "an unknown address"


# The time between two checks whether the client has taken the buffered bytes, and the most checks.
LINGER_S: Final = 2.0
LINGER_ROUNDS_MAX: Final = 15


def linger(client: asyncio.Transport, rounds_left: int = LINGER_ROUNDS_MAX) -> None:
    """Deliver the buffered bytes and the end of the stream, then close.

    A socket that is closed with unread bytes resets the connection, and the peer loses the bytes that it has not
    read yet. So the proxy reads and drops the peer's bytes for a while after it has ended its own stream.
    """
    if client.is_closing():
        return
    if not client.can_write_eof():
        # TLS cannot end half of a connection. Its close delivers buffered bytes, within proxy.net.tls.SHUTDOWN_S.
        client.close()
        return
    if rounds_left == LINGER_ROUNDS_MAX:
        client.write_eof()
    elif rounds_left == 0 or not client.get_write_buffer_size():
        client.abort()
        return
    asyncio.get_running_loop().call_later(LINGER_S, linger, client, rounds_left - 1)
