"""Framing of messages on a connection (SASL has frames, NOSASL has none), and readers and writers for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from proxy.wire.reply_stream import FramedReplyStream, ReplyStream
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.messages import FramedMessageReader, UnframedMessageReader
from proxy.wire.unframed_reply_stream import UnframedReplyStream


@dataclass(frozen=True)
class Framing:
    """With SASL messages stand in frames; with NOSASL they follow one another, and over HTTP each stands alone."""

    has_frames: bool

    def to_wire(self, message: bytes) -> bytes:
        """Return a message as both sides read it."""
        return frame(message) if self.has_frames else message

    def reader(self, message_bytes_max: int) -> FramedMessageReader | UnframedMessageReader:
        """Return a reader of the client's messages."""
        if self.has_frames:
            return FramedMessageReader(message_bytes_max)
        return UnframedMessageReader(message_bytes_max)

    def reply_stream(self) -> ReplyStream:
        """Return a follower of the backend's replies, which passes their bytes unchanged."""
        return FramedReplyStream() if self.has_frames else UnframedReplyStream()


FRAMED: Final = Framing(has_frames=True)
UNFRAMED: Final = Framing(has_frames=False)
