"""Whether messages stand in frames, and what reads and writes them accordingly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from proxy.wire.reply_stream import Follower, ReplyFollower
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.messages import MessageReader, PlainReader
from proxy.wire.unframed_reply_stream import PlainFollower


@dataclass(frozen=True)
class Framing:
    """With SASL messages stand in frames; with NOSASL they follow one another, and over HTTP each stands alone."""

    has_frames: bool

    def written(self, message: bytes) -> bytes:
        """A message as either side reads it."""
        return frame(message) if self.has_frames else message

    def reader(self, message_bytes_max: int) -> MessageReader | PlainReader:
        """Reads the client's messages."""
        return MessageReader(message_bytes_max) if self.has_frames else PlainReader(message_bytes_max)

    def follower(self) -> Follower:
        """Follows the backend's replies, and gives their bytes as they are."""
        return ReplyFollower() if self.has_frames else PlainFollower()


FRAMED: Final = Framing(has_frames=True)
UNFRAMED: Final = Framing(has_frames=False)
