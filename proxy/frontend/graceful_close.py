"""The last of a connection's two sockets: what was written arrives, and what is ours on the backend is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from proxy.net.sockets import SocketCallbacks
from proxy.relay.commands import SendBackend
from proxy.relay.relay import Relay

# The time that the backend may take to hear that a query of ours has nobody left to wait for it. It reads nothing
# while it holds a status call back, for up to five seconds.
GRACEFUL_CLOSE_S: Final = 7.0


class GracefulClose:
    """Sees to it that an operation of ours ends on the backend, after its connection has ended."""

    def __init__(self, backend: asyncio.Transport, relay: Relay, on_end: Callable[[GracefulClose], None]) -> None:
        self._backend = backend
        self._relay = relay
        self._on_end = on_end
        self._said_all = False
        self._timer = asyncio.get_running_loop().call_later(GRACEFUL_CLOSE_S, backend.abort)
        backend.set_protocol(SocketCallbacks(lambda _: None, self._data, self._lost, lambda _: None))
        # A slow client may have held it back.
        backend.resume_reading()
        self._end_stream()

    def _data(self, data: bytes) -> None:
        for command in self._relay.backend_data(data):
            if isinstance(command, SendBackend):
                self._backend.write(command.data)
        self._end_stream()

    def _end_stream(self) -> None:
        if self._relay.own_operation.is_awaited:
            return
        if not self._backend.can_write_eof():
            # Of TLS: a close now could cost the last words, so their replies are waited for.
            if not self._relay.awaits_replies:
                self._backend.close()
        elif not self._said_all:
            self._said_all = True
            self._backend.write_eof()

    def _lost(self) -> None:
        self._timer.cancel()
        self._on_end(self)
