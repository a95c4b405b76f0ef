"""Readers of Thrift messages from a stream that carries them in frames, or one right after the other.

In practice a frame contains one message, but Spark Thrift Server accepts a message over several frames and
several messages in one frame, so the readers parse each message to find its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from proxy.wire.thrift.errors import IncompleteError, MessageTooLongError, RemoteProtocolError
from proxy.wire.thrift.frames import FrameReader, frame
from proxy.wire.thrift.reader import HEADER_BYTES_MAX, Header, read_header
from proxy.wire.thrift.skip import ValueSkipper
from proxy.wire.thrift.types import Kind

# Fields, and items of lists and maps, in one call. The settings of an OpenSession are some dozens; a message
# made of nothing else would keep the event loop for a minute.
CALL_VALUES_MAX: Final = 250_000


@dataclass(frozen=True)
class Message:
    """One whole Thrift message, without its frame."""

    header: Header
    raw: bytes

    def __repr__(self) -> str:
        return f"Message({self.header.name}, seqid {self.header.seqid}, {len(self.raw)} bytes)"


class UnframedMessageReader:
    """Cuts a byte stream into messages. Buffers at most one unfinished message and the bytes of one read."""

    def __init__(self, message_bytes_max: int) -> None:
        self._message_bytes_max = message_bytes_max
        self._body = bytearray()
        self._header: Header | None = None
        self._skipper: ValueSkipper | None = None

    def feed(self, data: bytes) -> None:
        """Take in bytes, cut anywhere."""
        self._body += data

    def next_message(self) -> Message | None:
        """Return the next whole message, or None until more bytes have come."""
        if not self._body:
            return None
        if self._header is None or self._skipper is None:
            try:
                self._header = read_header(self._body)
            except IncompleteError:
                self._expect_room_for(len(self._body))
                return None
            self._skipper = ValueSkipper(Kind.STRUCT, self._header.body_offset, CALL_VALUES_MAX)
        end = self._skipper.advance(self._body)
        # The position counts the bytes announced so far: a message that is too long is refused before it has come.
        self._expect_room_for(self._skipper.position)
        return None if end is None else self._cut(self._header, end)

    @property
    def is_between_messages(self) -> bool:
        """True if the next byte begins a message."""
        return not self._body

    @property
    def waiting_bytes(self) -> int:
        """The bytes that have not been returned."""
        return len(self._body)

    def begun_header(self) -> Header | None:
        """The header of the next message; None until it has come."""
        return self._header or _header_of(self._body[:HEADER_BYTES_MAX])

    def leftover(self) -> bytes:
        """Return the bytes not yet returned as messages."""
        return bytes(self._body)

    def _expect_room_for(self, count: int) -> None:
        if count > self._message_bytes_max:
            raise MessageTooLongError(f"a message grew past the {self._message_bytes_max} bytes accepted")

    def _cut(self, header: Header, end: int) -> Message:
        message = Message(header, bytes(self._body[:end]))
        del self._body[:end]
        self._header = self._skipper = None
        return message


class FramedMessageReader:
    """Cuts a stream of frames into messages. Buffers at most one unfinished frame and one unfinished message."""

    def __init__(self, message_bytes_max: int) -> None:
        self._frames = FrameReader(message_bytes_max)
        # Bodies of frames that have ended: an unfinished message, or more messages of one frame.
        self._bodies = UnframedMessageReader(message_bytes_max)

    def feed(self, data: bytes) -> None:
        """Take in bytes, cut anywhere."""
        self._frames.feed(data)

    def next_message(self) -> Message | None:
        """Return the next whole message, or None until more bytes have come."""
        while (message := self._bodies.next_message()) is None:
            body = self._frames.next_frame()
            if body is None:
                return None
            self._bodies.feed(body)
        return message

    @property
    def is_between_messages(self) -> bool:
        """True if the next byte begins a frame and a message."""
        return self._bodies.is_between_messages and self._frames.is_empty

    @property
    def waiting_bytes(self) -> int:
        """The bytes that have not been returned."""
        return self._bodies.waiting_bytes + self._frames.waiting_bytes

    def begun_header(self) -> Header | None:
        """The header of the next message; None until it has come."""
        if self._bodies.waiting_bytes:
            return self._bodies.begun_header()
        return _header_of(self._frames.begun_body(HEADER_BYTES_MAX))

    def leftover(self) -> bytes:
        """Return the bytes not yet returned as messages, in frames."""
        unfinished = self._bodies.leftover()
        return (frame(unfinished) if unfinished else b"") + self._frames.leftover()


def _header_of(begun: bytes | bytearray) -> Header | None:
    try:
        return read_header(begun)
    except (IncompleteError, RemoteProtocolError):
        return None
