"""Reassembles Thrift messages from a stream, which carries them in frames or one right behind the other.

In practice a frame holds one message, but Spark Thrift Server accepts a message over several frames and
several in one, so messages are parsed for their end and never assumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.frames import FrameReader, frame
from proxy.wire.thrift.reader import Header, read_header
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
    """Bytes of messages in, messages out. Holds at most one unfinished message beside what one read brought."""

    def __init__(self, message_bytes_max: int) -> None:
        self._message_bytes_max = message_bytes_max
        self._body = bytearray()
        self._header: Header | None = None
        self._walk: ValueSkipper | None = None

    def feed(self, data: bytes) -> None:
        """Take in bytes in whatever pieces they came."""
        self._body += data

    def next_message(self) -> Message | None:
        """The next whole message, or None until more bytes have come."""
        if not self._body:
            return None
        if self._header is None or self._walk is None:
            try:
                self._header = read_header(self._body)
            except IncompleteError:
                self._expect_room_for(len(self._body))
                return None
            self._walk = ValueSkipper(Kind.STRUCT, self._header.body_offset, CALL_VALUES_MAX)
        end = self._walk.advance(self._body)
        # Where the walk stands is what has been announced, so nobody waits for what would be refused anyway.
        self._expect_room_for(self._walk.position)
        return None if end is None else self._cut(self._header, end)

    @property
    def is_between_messages(self) -> bool:
        """Whether the next byte to come begins a message."""
        return not self._body

    def leftover(self) -> bytes:
        """The bytes not yet handed out."""
        return bytes(self._body)

    def _expect_room_for(self, count: int) -> None:
        if count > self._message_bytes_max:
            raise RemoteProtocolError(f"a message grew past the {self._message_bytes_max} bytes accepted")

    def _cut(self, header: Header, end: int) -> Message:
        message = Message(header, bytes(self._body[:end]))
        del self._body[:end]
        self._header = self._walk = None
        return message


class FramedMessageReader:
    """The same for messages in frames. Holds at most one unfinished frame and one unfinished message."""

    def __init__(self, message_bytes_max: int) -> None:
        self._frames = FrameReader(message_bytes_max)
        # What frames that have ended held: an unfinished message, or more messages of one frame.
        self._bodies = UnframedMessageReader(message_bytes_max)

    def feed(self, data: bytes) -> None:
        """Take in bytes in whatever pieces they came."""
        self._frames.feed(data)

    def next_message(self) -> Message | None:
        """The next whole message, or None until more bytes have come."""
        while (message := self._bodies.next_message()) is None:
            body = self._frames.next_frame()
            if body is None:
                return None
            self._bodies.feed(body)
        return message

    @property
    def is_between_messages(self) -> bool:
        """Whether the next byte to come begins a frame and a message."""
        return self._bodies.is_between_messages and self._frames.is_empty

    def leftover(self) -> bytes:
        """The bytes not yet handed out, in frames."""
        unfinished = self._bodies.leftover()
        return (frame(unfinished) if unfinished else b"") + self._frames.leftover()
