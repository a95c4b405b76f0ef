"""A connection to HBase's Thrift gateway: one call at a time, each within a deadline."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from proxy.config.address import Address, why_unreachable
from proxy.hbase.calls import GatewayCall
from proxy.hbase.errors import HBaseError
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.messages import Message, UnframedMessageReader

# A page of rows has some hundred kilobytes. A peer that announces more is no gateway.
REPLY_BYTES_MAX: Final = 16 * 1024 * 1024
_RECEIVE_BYTES: Final = 256 * 1024


class GatewayConnection:
    """Connects with the first call, and again after a call that failed in between. For one thread at a time.

    The gateway speaks the binary protocol without frames, which is its default.
    """

    def __init__(self, address: Address, clock: Callable[[], float]) -> None:
        """The clock is one that is never set, such as time.monotonic."""
        self._address = address
        self._clock = clock
        self._socket: socket.socket | None = None
        self._seqid = 0
        self._is_cut_off = False

    def answer(self, call: GatewayCall, within_s: float) -> Message:
        """The reply to a call. Raises HBaseError if it has not come in time, and then connects anew."""
        deadline = self._clock() + within_s
        try:
            return self._answer(call, deadline)
        except TimeoutError:
            self.close()
            raise HBaseError(f"{call.name} has not been answered within {within_s:g} s") from None
        except OSError as error:
            self.close()
            raise HBaseError(f"{call.name}: {why_unreachable(error)}") from error
        except RemoteProtocolError as error:
            self.close()
            raise HBaseError(f"{call.name} was answered by bytes that are no reply: {error}") from error

    def close(self) -> None:
        """End the connection. The gateway ends its scans some time later."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.close()
        self._socket = None

    def cut_off(self) -> None:
        """Let the call under way fail, and all that follow. Any thread may call it."""
        self._is_cut_off = True
        sock = self._socket
        if sock is not None:
            # Another thread that waits for bytes gets none, which `close` would not do.
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _answer(self, call: GatewayCall, deadline: float) -> Message:
        sock = self._connected(deadline)
        self._seqid = (self._seqid + 1) & 0x7FFF_FFFF
        sock.settimeout(self._left_s(deadline))
        sock.sendall(call.to_bytes(self._seqid))
        reader = UnframedMessageReader(REPLY_BYTES_MAX)
        while (message := reader.next_message()) is None:
            sock.settimeout(self._left_s(deadline))
            received = sock.recv(_RECEIVE_BYTES)
            if not received:
                raise ConnectionResetError("the gateway closed the connection")
            reader.feed(received)
        if message.header.seqid != self._seqid or message.header.name != call.name:
            raise RemoteProtocolError(f"a reply to {message.header.name}, seqid {message.header.seqid}")
        return message

    def _connected(self, deadline: float) -> socket.socket:
        if self._socket is None:
            where = (self._address.host, self._address.port)
            self._socket = socket.create_connection(where, self._left_s(deadline))
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._is_cut_off:
            raise ConnectionAbortedError("the proxy stops")
        return self._socket

    def _left_s(self, deadline: float) -> float:
        left_s = deadline - self._clock()
        if left_s <= 0:
            raise TimeoutError
        return left_s
