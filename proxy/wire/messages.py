"""Reassembles a client's Thrift messages from its frames.

In practice a frame holds one message, but Spark Thrift Server accepts a message over several frames and
several in one, so messages are parsed for their end and never assumed.
"""

from __future__ import annotations

from dataclasses import dataclass

from proxy.wire.errors import IncompleteError, RemoteProtocolError
from proxy.wire.frames import FrameReader, frame
from proxy.wire.kinds import Kind
from proxy.wire.thrift import Header, read_header
from proxy.wire.walk import Walk


@dataclass(frozen=True)
class Message:
    """One whole Thrift message, without its frame."""

    header: Header
    raw: bytes

    def __repr__(self) -> str:
        return f"Message({self.header.name}, seqid {self.header.seqid}, {len(self.raw)} bytes)"


class MessageReader:
    """Bytes in, messages out. Holds at most one unfinished frame and one unfinished message."""

    def __init__(self, message_bytes_max: int) -> None:
        self._message_bytes_max = message_bytes_max
        self._frames = FrameReader(message_bytes_max)
        # Unread bytes of frames that have ended: an unfinished message, or more messages of one frame.
        self._body = bytearray()
        self._header: Header | None = None
        self._walk: Walk | None = None

    def feed(self, data: bytes) -> None:
        """Take in bytes in whatever pieces they came."""
        self._frames.feed(data)

    def next_message(self) -> Message | None:
        """The next whole message, or None until more bytes have come."""
        while (message := self._parse()) is None:
            body = self._frames.next_frame()
            if body is None:
                return None
            if len(self._body) + len(body) > self._message_bytes_max:
                raise RemoteProtocolError(f"a message grew past the {self._message_bytes_max} bytes accepted")
            self._body += body
        return message

    @property
    def is_between_messages(self) -> bool:
        """Whether the next byte to come begins a frame and a message."""
        return not self._body and self._frames.is_empty

    def leftover(self) -> bytes:
        """The bytes not yet handed out, in frames."""
        unfinished = frame(bytes(self._body)) if self._body else b""
        return unfinished + self._frames.leftover()

    def _parse(self) -> Message | None:
        if not self._body:
            return None
        if self._header is None or self._walk is None:
            try:
                self._header = read_header(self._body)
            except IncompleteError:
                return None
            self._walk = Walk(Kind.STRUCT, self._header.body_offset)
        end = self._walk.advance(self._body)
        return None if end is None else self._cut(self._header, end)

    def _cut(self, header: Header, end: int) -> Message:
        message = Message(header, bytes(self._body[:end]))
        del self._body[:end]
        self._header = self._walk = None
        return message
