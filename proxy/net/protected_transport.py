"""A socket behind a security layer: its users write and read plain frames, the peer sees wrapped ones."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from proxy.kerberos.errors import KerberosError
from proxy.kerberos.security_layer import SecurityLayer
from proxy.net.sockets import peer_name
from proxy.wire.thrift.errors import RemoteProtocolError

log = logging.getLogger(__name__)


class ProtectedTransport(asyncio.Transport):
    """Takes a transport's place from the moment on at which both sides wrap."""

    def __init__(self, inner: asyncio.Transport, layer: SecurityLayer) -> None:
        super().__init__()
        self._inner = inner
        self._layer = layer
        self._protocol = inner.get_protocol()
        inner.set_protocol(_Unwrapping(self, layer))

    # --- writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes of plain frames, cut anywhere."""
        try:
            wrapped = self._layer.wrapped(memoryview(data))
        except (KerberosError, RemoteProtocolError) as error:
            self.give_up(f"a frame cannot be wrapped: {error}")
            return
        if wrapped:
            self._inner.write(wrapped)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Write several buffers."""
        for data in list_of_data:
            self.write(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Pass on."""
        self._inner.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Return the number of wrapped bytes that wait."""
        return self._inner.get_write_buffer_size()

    def can_write_eof(self) -> bool:
        """Pass on."""
        return self._inner.can_write_eof()

    def write_eof(self) -> None:
        """Pass on."""
        self._inner.write_eof()

    # --- reading

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand plain frames to another protocol from now on."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol that gets plain frames."""
        return self._protocol

    def is_reading(self) -> bool:
        """Pass on."""
        return self._inner.is_reading()

    def pause_reading(self) -> None:
        """Pass on."""
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        """Pass on."""
        self._inner.resume_reading()

    # --- the end

    def is_closing(self) -> bool:
        """Pass on."""
        return self._inner.is_closing()

    def close(self) -> None:
        """Pass on."""
        self._inner.close()

    def abort(self) -> None:
        """Pass on."""
        self._inner.abort()

    def give_up(self, reason: str) -> None:
        """End the connection: its layer cannot go on."""
        log.warning("the connection with %s ends: %s", peer_name(self._inner), reason)
        self._inner.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Pass on."""
        return self._inner.get_extra_info(name, default)


class _Unwrapping(asyncio.Protocol):
    """The socket's own protocol: unwraps, and passes its events on."""

    def __init__(self, transport: ProtectedTransport, layer: SecurityLayer) -> None:
        self._transport = transport
        self._layer = layer

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._transport.is_closing():
            return
        try:
            frames = self._layer.unwrapped(data)
        except RemoteProtocolError as error:
            self._transport.give_up(str(error))
            return
        protocol = self._transport.get_protocol()
        if frames and isinstance(protocol, asyncio.Protocol):
            protocol.data_received(frames)

    def eof_received(self) -> bool | None:
        """The peer has ended its stream."""
        protocol = self._transport.get_protocol()
        return protocol.eof_received() if isinstance(protocol, asyncio.Protocol) else None

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is closed, by either side."""
        self._transport.get_protocol().connection_lost(error)

    def pause_writing(self) -> None:
        """More bytes than the limit wait to be written."""
        self._transport.get_protocol().pause_writing()

    def resume_writing(self) -> None:
        """The waiting bytes have been written."""
        self._transport.get_protocol().resume_writing()
