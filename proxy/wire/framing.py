"""Framing of each side's messages (SASL has frames, NOSASL has none), and the readers and writers for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from proxy.wire.reply_stream import FramedReplyStream, ReplyStream
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.messages import FramedMessageReader, UnframedMessageReader
from proxy.wire.unframed_reply_stream import UnframedReplyStream


@dataclass(frozen=True)
class Framing:
    """With SASL messages stand in frames; with NOSASL they follow one another."""

    client: bool = True
    backend: bool = True

    @property
    def is_same(self) -> bool:
        """Whether both sides frame alike, so that bytes pass unchanged."""
        return self.client == self.backend

    def to_client(self, message: bytes) -> bytes:
        """Return a message as the client reads it."""
        return frame(message) if self.client else message

    def to_backend(self, message: bytes) -> bytes:
        """Return a message as the backend reads it."""
        return frame(message) if self.backend else message

    def reader(self, message_bytes_max: int) -> FramedMessageReader | UnframedMessageReader:
        """Return a reader of the client's messages."""
        return FramedMessageReader(message_bytes_max) if self.client else UnframedMessageReader(message_bytes_max)

    def reply_stream(self) -> ReplyStream:
        """Return a follower of the backend's replies that gives their bytes as the client reads them."""
        if self.backend:
            return FramedReplyStream(strips_headers=not self.client)
        return UnframedReplyStream(frames_pieces=self.client)


FRAMED: Final = Framing()
