"""Takes the ports that workers will listen on, and holds them until the last one has ended.

Each worker listens on a socket of its own, with SO_REUSEPORT: the kernel deals new connections out among those
that listen. Of a worker that dies nothing is left that a connection could wait in. The sockets here are bound and
never listen, so they get none; but a port that was free when it was asked for stays ours as workers come and go.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Self

from proxy.config.address import Address


class PortReservations:
    """Ports that are held. Used as a context, which lets go of them."""

    def __init__(self) -> None:
        self._sockets = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._sockets.close()

    def reserve(self, wanted: Address) -> Address:
        """Take a port, a free one for port 0. Raises OSError where it cannot be had."""
        port = wanted.port
        for family, address in _resolved(wanted):
            self._expect_free(family, (address, port))
            held = self._sockets.enter_context(socket.socket(family, socket.SOCK_STREAM))
            _prepare(held)
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            held.bind((address, port))
            port = held.getsockname()[1]
        return Address(wanted.host, port)

    def _expect_free(self, family: int, address: tuple[str, int]) -> None:
        """Whether somebody listens there: with SO_REUSEPORT we would take a part of their connections."""
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            _prepare(probe)
            probe.bind(address)


def _prepare(sock: socket.socket) -> None:
    """As asyncio does before it binds: connections that ended a moment ago are no obstacle."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)


def _resolved(wanted: Address) -> Iterable[tuple[int, str]]:
    """Each address that the host stands for."""
    found = socket.getaddrinfo(
        wanted.host, wanted.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_ADDRCONFIG
    )
    return dict.fromkeys((family, str(sockaddr[0])) for family, _, _, _, sockaddr in found)
