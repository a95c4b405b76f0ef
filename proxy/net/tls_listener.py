"""A listener for clients that speak TLS. A connection begins after its handshake; a failed handshake is logged."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from proxy.config.address import Address
from proxy.net.newcomers import CLIENTS_MAX, CLIENTS_OF_ADDRESS_MAX, SILENT_S, Newcomers, address_group
from proxy.net.tls import HANDSHAKE_S, SHUTDOWN_S, Certificates, why_no_handshake

log = logging.getLogger(__name__)

# The most handshakes at once, in all and of one address, as for all newcomers. Each takes some milliseconds of
# arithmetic; more clients wait in the listening sockets, until one has ended or has taken so long that its client
# must be silent. With 100 for an address, 150 clients behind a balancer that connect at once would lose 50.
HANDSHAKES_MAX: Final = CLIENTS_MAX
HANDSHAKES_OF_ADDRESS_MAX: Final = CLIENTS_OF_ADDRESS_MAX
# asyncio's own number: connections that the system accepts meanwhile.
_BACKLOG: Final = 100
# The wait after an error such as "no file descriptors left", as in asyncio.
_RETRY_S: Final = 1.0

# The callbacks of a new client, and the function that ends it if its handshake fails.
Accepted = tuple[asyncio.BaseProtocol, Callable[[str], None]]


@dataclass(eq=False)
class _Handshake:
    """A client that is shaking hands."""

    address: str
    task: asyncio.Task[None] | None = None
    # The reason for its end, if we end it.
    reason: str = "the proxy is shutting down"

    def end_waiting(self, reason: str) -> None:
        """Make room for another."""
        self.reason = f"no TLS: {reason}"
        if self.task is not None:
            self.task.cancel()


class TlsServer:
    """Listens on one address, or on each address that its host name resolves to."""

    def __init__(
        self,
        address: Address,
        certificates: Certificates,
        accept: Callable[[], Accepted],
        *,
        shares_port: bool = False,
    ) -> None:
        """Raises OSError if the address is not available."""
        self.sockets = _listen(address, shares_port=shares_port)
        self._certificates = certificates
        self._accept = accept
        self.handshakes = Newcomers(time.monotonic, HANDSHAKES_MAX, HANDSHAKES_OF_ADDRESS_MAX)
        self._has_ended = asyncio.Event()
        self._tasks = {asyncio.get_running_loop().create_task(self._serve(sock)) for sock in self.sockets}

    def close(self) -> None:
        """Accept no more clients, and cancel the handshakes under way."""
        for task in self._tasks:
            task.cancel()

    async def _serve(self, listening: socket.socket) -> None:
        # The task that waits on the socket closes it, once the event loop no longer watches it.
        with listening:
            while True:
                await self._room()
                await self._accept_one(listening)

    async def _room(self) -> None:
        """Wait until one more may shake hands."""
        while len(self.handshakes) >= HANDSHAKES_MAX and not self.handshakes.end_silent():
            self._has_ended.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._has_ended.wait(), SILENT_S)

    async def _accept_one(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            accepted, peer = await loop.sock_accept(listening)
        except OSError as error:
            log.warning("the listener cannot accept clients: %s", error.strerror)
            await asyncio.sleep(_RETRY_S)
            return
        handshake = _Handshake(address_group(peer[0]))
        handshake.task = task = loop.create_task(self._shake_hands(accepted, handshake))
        self.handshakes.add(handshake)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _shake_hands(self, accepted: socket.socket, handshake: _Handshake) -> None:
        side, end = self._accept()
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: side,
                accepted,
                ssl=self._certificates.context(),
                ssl_handshake_timeout=HANDSHAKE_S,
                ssl_shutdown_timeout=SHUTDOWN_S,
            )
        except OSError as error:
            end(f"no TLS: {why_no_handshake(error)}")
        except asyncio.CancelledError:
            end(handshake.reason)
            raise
        finally:
            self.handshakes.discard(handshake)
            self._has_ended.set()


def _listen(address: Address, *, shares_port: bool) -> tuple[socket.socket, ...]:
    port, sockets = address.port, []
    found = socket.getaddrinfo(address.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    try:
        for family, _, _, _, name in dict.fromkeys(found):
            sock = socket.create_server((name[0], port), family=family, backlog=_BACKLOG, reuse_port=shares_port)
            sockets.append(sock)
            sock.setblocking(False)  # noqa: FBT003 - its only parameter
            # For port 0 the system chooses one for the first address; the others use the same.
            port = sock.getsockname()[1]
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    return tuple(sockets)
