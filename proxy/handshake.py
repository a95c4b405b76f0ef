"""A client's TLS handshake, before whose end nobody else hears of it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

from proxy.sockets import Side
from proxy.tls import HANDSHAKE_S, SHUTDOWN_S, why_no_handshake


class Handshake(asyncio.Protocol):
    """A socket's callbacks until its handshake is done; then they are those of `side`."""

    def __init__(self, side: Side, context: ssl.SSLContext, on_failed: Callable[[str], None]) -> None:
        self._side = side
        self._context = context
        self._on_failed = on_failed
        # What came in the same packets as the handshake's end: at most what one read brings.
        self._early: list[bytes] = []
        self._is_lost = False
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is open."""
        plain = cast("asyncio.Transport", transport)
        # Its first bytes are for whoever does the handshake.
        plain.pause_reading()
        self._task = asyncio.get_running_loop().create_task(self._run(plain))

    def data_received(self, data: bytes) -> None:
        """Bytes of the client behind its part of the handshake."""
        self._early.append(data)

    def connection_lost(self, _error: Exception | None) -> None:
        """The client has left in the same moment."""
        self._is_lost = True

    async def _run(self, plain: asyncio.Transport) -> None:
        try:
            secured = await asyncio.get_running_loop().start_tls(
                plain,
                self,
                self._context,
                server_side=True,
                ssl_handshake_timeout=HANDSHAKE_S,
                ssl_shutdown_timeout=SHUTDOWN_S,
            )
        except OSError as error:
            self._on_failed(f"no TLS: {why_no_handshake(error)}")
            return
        if secured is None or self._is_lost:
            self._on_failed("no TLS: the other side closed behind the handshake")
            return
        secured.set_protocol(self._side)
        self._side.connection_made(secured)
        for data in self._early:
            self._side.data_received(data)
