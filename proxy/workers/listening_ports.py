"""Reservations of the ports that workers listen on, from before the first worker starts until the last has ended.

Each worker listens on a socket of its own, with SO_REUSEPORT: the kernel distributes new connections among the
sockets that listen. A dead worker leaves no socket in which a connection could wait. The sockets here are bound
and never listen, so they get no connections, but they keep the port reserved while workers end and start.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Self

from proxy.config.address import Address


class PortReservations:
    """Reserved ports. Used as a context, which releases them."""

    def __init__(self) -> None:
        self._sockets = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._sockets.close()

    def reserve(self, wanted: Address) -> Address:
        """Reserve a port, a free one for port 0. Raises OSError in asyncio's words if it is not available."""
        port = wanted.port
        for family, address in _resolved(wanted):
            try:
                port = self._bound(family, (address, port))
            except OSError as error:
                words = f"error while attempting to bind on address {(address, port)}: {error.strerror}"
                raise OSError(error.errno, words) from error
        return Address(wanted.host, port)

    def _bound(self, family: int, address: tuple[str, int]) -> int:
        self._expect_free(family, address)
        bound = self._sockets.enter_context(socket.socket(family, socket.SOCK_STREAM))
        _prepare(bound)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
        port: int = bound.getsockname()[1]
        return port

    def _expect_free(self, family: int, address: tuple[str, int]) -> None:
        """Raise OSError if another process listens there: with SO_REUSEPORT both would get some clients."""
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            _prepare(probe)
            probe.bind(address)


def _prepare(sock: socket.socket) -> None:
    """Set the options that asyncio sets before it binds: connections that have just ended are then no obstacle."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)


def _resolved(wanted: Address) -> Iterable[tuple[int, str]]:
    """Return each address that the host resolves to, with its family."""
    found = socket.getaddrinfo(
        wanted.host, wanted.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_ADDRCONFIG
    )
    return dict.fromkeys((family, str(sockaddr[0])) for family, _, _, _, sockaddr in found)
