"""Thrift's frames after a SASL negotiation: a 4-byte length, then that many bytes."""

from __future__ import annotations

import struct

from proxy.wire.thrift.errors import MessageTooLongError, RemoteProtocolError

HEADER = struct.Struct(">I")
HEADER_BYTES = HEADER.size

# The length is a signed 32-bit number in every implementation; a larger one is negative to them.
_SIGNED_MAX = 0x7FFF_FFFF


def frame(message: bytes) -> bytes:
    """Return one message in one frame, as every known client and server sends it."""
    return HEADER.pack(len(message)) + message


def frame_length(header: bytes | bytearray | memoryview, offset: int = 0) -> int:
    """Return the length that a frame header announces."""
    length: int = HEADER.unpack_from(header, offset)[0]
    if length > _SIGNED_MAX:
        raise RemoteProtocolError(f"a frame announces a negative length ({length - (1 << 32)})")
    return length


class FrameReader:
    """Cuts a byte stream into frames. Buffers at most one unfinished frame and the bytes of one read."""

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._buffer = bytearray()
        self._position = 0

    def feed(self, data: bytes) -> None:
        """Take in bytes, cut anywhere."""
        self._drop_read_bytes()
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """Return the next whole frame's body, or None until more bytes have come."""
        start, length = self._position + HEADER_BYTES, self.announced_bytes
        if len(self._buffer) < start + length:
            return None
        self._position = start + length
        with memoryview(self._buffer) as view:
            body = bytes(view[start : start + length])
        if 2 * self._position >= len(self._buffer):
            # Dropped now, not with the next bytes: a session may be idle for hours after a long statement. If most
            # bytes are still to be returned, to move them would cost more than it saves.
            self._drop_read_bytes()
        return body

    @property
    def announced_bytes(self) -> int:
        """The length of the next frame's body; 0 as long as its header has not come."""
        # Checked as soon as the header has come: Spark's own handler runs out of memory on 0x7fffffff.
        return self._checked_length() if self.waiting_bytes >= HEADER_BYTES else 0

    @property
    def is_empty(self) -> bool:
        """True if every byte that came has been returned."""
        return self._position == len(self._buffer)

    @property
    def waiting_bytes(self) -> int:
        """The bytes that have not been returned."""
        return len(self._buffer) - self._position

    def begun_body(self, bytes_max: int) -> bytes:
        """The first bytes of the next frame's body, as far as they have come."""
        start = self._position + HEADER_BYTES
        return bytes(self._buffer[start : start + bytes_max])

    def leftover(self) -> bytes:
        """Return the bytes of frames not yet returned, headers included."""
        return bytes(self._buffer[self._position :])

    def _checked_length(self) -> int:
        length = frame_length(self._buffer, self._position)
        if length > self._frame_bytes_max:
            raise MessageTooLongError(
                f"a frame announces {length} bytes, at most {self._frame_bytes_max} are accepted"
            )
        return length

    def _drop_read_bytes(self) -> None:
        if self._position:
            del self._buffer[: self._position]
            self._position = 0
