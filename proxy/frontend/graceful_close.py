"""Graceful close: flush the backend's socket, and cancel our own running query before it is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from proxy.net.sockets import SocketCallbacks
from proxy.relay.commands import SendBackend
from proxy.relay.relay import Relay

# Time for the backend to read that a query of ours is cancelled. It reads nothing while it holds a status call
# back, for up to five seconds.
GRACEFUL_CLOSE_S: Final = 7.0


class GracefulClose:
    """Ends an operation of ours on the backend after the client's connection has ended."""

    def __init__(self, backend: asyncio.Transport, relay: Relay, on_end: Callable[[GracefulClose], None]) -> None:
        self._backend = backend
        self._relay = relay
        self._on_end = on_end
        self._said_all = False
        self._timer = asyncio.get_running_loop().call_later(GRACEFUL_CLOSE_S, backend.abort)
        backend.set_protocol(SocketCallbacks(lambda _: None, self._data, self._lost, lambda _: None))
        # A slow client may have paused the backend's transport.
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
            # With TLS a close now could lose the closing calls, so their replies are waited for.
            if not self._relay.awaits_replies:
                self._backend.close()
        elif not self._said_all:
            self._said_all = True
            self._backend.write_eof()

    def _lost(self) -> None:
        self._timer.cancel()
        self._on_end(self)
