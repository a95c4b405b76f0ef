"""A listener for clients that speak TLS. A connection begins after its handshake; a failed handshake is logged."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

from proxy.config.address import Address
from proxy.net.tls import HANDSHAKE_S, SHUTDOWN_S, Certificates, why_no_handshake

log = logging.getLogger(__name__)

# Handshakes at once. Each takes some milliseconds of arithmetic; more clients wait in the listening sockets.
HANDSHAKES_MAX: Final = 200
# asyncio's own number: connections that the system accepts meanwhile.
_BACKLOG: Final = 100
# The wait after an error such as "no file descriptors left", as in asyncio.
_RETRY_S: Final = 1.0

# The callbacks of a new client, and the function that ends it if its handshake fails.
Accepted = tuple[asyncio.BaseProtocol, Callable[[str], None]]


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
        self._handshake_slots = asyncio.Semaphore(HANDSHAKES_MAX)
        self._tasks = {asyncio.get_running_loop().create_task(self._serve(sock)) for sock in self.sockets}

    def close(self) -> None:
        """Accept no more clients, and cancel the handshakes under way."""
        for task in self._tasks:
            task.cancel()

    async def _serve(self, listening: socket.socket) -> None:
        # Closed by the task that waits on it, once the event loop no longer watches the socket.
        with listening:
            while True:
                await self._handshake_slots.acquire()
                await self._accept_one(listening)

    async def _accept_one(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            accepted, _ = await loop.sock_accept(listening)
        except OSError as error:
            self._handshake_slots.release()
            log.warning("the listener cannot accept clients: %s", error.strerror)
            await asyncio.sleep(_RETRY_S)
            return
        task = loop.create_task(self._shake_hands(accepted))
        self._tasks.add(task)
        task.add_done_callback(self._handshake_ended)

    async def _shake_hands(self, accepted: socket.socket) -> None:
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
            end("the proxy is shutting down")
            raise

    def _handshake_ended(self, task: asyncio.Task[None]) -> None:
        self._handshake_slots.release()
        self._tasks.discard(task)


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
