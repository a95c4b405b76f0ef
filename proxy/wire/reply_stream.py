"""Follows the backend's reply stream frame by frame, without decoding it.

A queue of the calls made says what the next frame is. Most bytes are only counted; the few replies that
are read are copied while they pass; replies to the proxy's own calls are taken out. For a backend that sends no
frames, `proxy.wire.unframed_reply_stream` does the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.frames import HEADER_BYTES, frame_length

# A client that sends calls and reads no replies fills this. HiveServer2 clients wait for each reply.
PENDING_CALLS_MAX: Final = 1024


class Handling(Enum):
    """What to do with a reply."""

    RELAY = "forwarded, not looked at"
    WATCH = "forwarded, and copied to be read"
    KEEP = "copied, and kept back until it has been judged"
    OURS = "answers a call of the proxy's own; never reaches the client"


@dataclass(frozen=True)
class PendingCall:
    """A call on its way. Of a reply longer than `copy_bytes_max` no copy is made: it is only forwarded."""

    handling: Handling
    name: str
    seqid: int
    copy_bytes_max: int = 0


# What a follower follows while it follows nothing.
NO_CALL: Final = PendingCall(Handling.RELAY, "", 0)


@dataclass(frozen=True)
class Forward:
    """Reply bytes for the client."""

    data: bytes | memoryview


@dataclass(frozen=True)
class ReplyEnd:
    """A reply has ended. `raw` is its message where it was to be read and is not too long.

    A reply to KEEP has reached nobody yet, unless `raw` is None: then it has been forwarded.
    """

    call: PendingCall
    raw: bytes | None
    # Calls sent since, as of this reply: the same bytes may have brought their replies too.
    calls_since: int


@dataclass(frozen=True)
class ReplyTooLong:
    """The reply that begins now was to be kept, and is too long for that: from here on it comes as Forward."""


@dataclass(frozen=True)
class SyncLost:
    """The stream is not what the calls explain; from here on all bytes come as Forward."""

    reason: str


ReplyEvent: TypeAlias = Forward | ReplyEnd | ReplyTooLong | SyncLost


class ReplyStream(ABC):
    """Reply bytes in, events out."""

    def __init__(self) -> None:
        self._pending: deque[PendingCall] = deque()

    @property
    def pending_count(self) -> int:
        """How many calls have no whole reply yet."""
        return len(self._pending)

    def awaits_own_reply(self) -> bool:
        """Whether a call of the proxy's own is among them."""
        return any(call.handling is Handling.OURS for call in self._pending)

    def expect(self, call: PendingCall) -> None:
        """A call has been sent after all earlier ones; HiveServer2 answers a connection's calls in order."""
        self.expect_room()
        self._pending.append(call)

    def expect_room(self) -> None:
        """Raise RemoteProtocolError where no further call may be sent."""
        if len(self._pending) >= PENDING_CALLS_MAX:
            raise RemoteProtocolError(f"{PENDING_CALLS_MAX} calls are waiting for their replies")

    @abstractmethod
    def try_pass(self, count: int) -> bool:
        """The fast path: whether the next `count` bytes go on as they are, and nothing of interest ends there."""

    @abstractmethod
    def stop_following(self) -> bytes:
        """Follow no longer. Returns what has come for the client and not been forwarded yet."""

    @abstractmethod
    def feed(self, data: bytes) -> list[ReplyEvent]:
        """Take in bytes in whatever pieces they came."""


class FramedReplyStream(ReplyStream):
    """Follows frames. Holds a frame header at most, and the one reply being copied."""

    def __init__(self, *, strips_headers: bool = False) -> None:
        """With `strips_headers` the client gets the frames' bodies, one right behind the other."""
        super().__init__()
        self._strips_headers = strips_headers
        self._partial_header = b""
        # Of the frame on its way, header included.
        self._remaining = 0
        self._current = NO_CALL
        self._copy: bytearray | None = None
        # Whether the frame on its way goes to the client as it comes.
        self._forwards = True
        self._lost = False

    def try_pass(self, count: int) -> bool:
        """Whether they lie within one frame that is only forwarded."""
        if self._remaining <= count or self._current.handling is not Handling.RELAY:
            return False
        self._remaining -= count
        return True

    def stop_following(self) -> bytes:
        """A frame's header, or the reply that was kept back."""
        self._lost = True
        kept, self._partial_header = self._partial_header, b""
        if self._copy is not None and not self._forwards and self._current.handling is Handling.KEEP:
            kept, self._copy, self._forwards = bytes(self._copy), None, True
        return kept

    def feed(self, data: bytes) -> list[ReplyEvent]:
        """Cut them into frames."""
        if self._partial_header:
            data, self._partial_header = self._partial_header + data, b""
        view = memoryview(data)
        events: list[ReplyEvent] = []
        while view:
            if not self._remaining:
                if not self._begin(view, events):
                    break
                if self._strips_headers:
                    view = view[HEADER_BYTES:]
                    continue
            segment, view = view[: self._remaining], view[self._remaining :]
            self._take(segment, events)
        return events

    def _begin(self, view: memoryview, events: list[ReplyEvent]) -> bool:
        """Begin a frame. False where no frame can begin: the header is incomplete, or sync is lost."""
        if self._lost:
            events.append(Forward(view))
            return False
        if len(view) < HEADER_BYTES:
            self._partial_header = bytes(view)
            return False
        try:
            length = frame_length(view)
            self._current = self._answered(length)
        except RemoteProtocolError as error:
            self._lost = True
            events += (SyncLost(str(error)), Forward(view))
            return False
        handling = self._current.handling
        wanted = handling is not Handling.RELAY and length <= self._current.copy_bytes_max
        self._copy = bytearray() if wanted else None
        self._forwards = handling is not Handling.OURS and not (handling is Handling.KEEP and wanted)
        if handling is Handling.KEEP and not wanted:
            events.append(ReplyTooLong())
        self._remaining = length if self._strips_headers else HEADER_BYTES + length
        return True

    def _answered(self, length: int) -> PendingCall:
        """The call that a frame of this length answers. An empty frame carries nothing and answers none."""
        if length == 0:
            return NO_CALL
        if self._pending:
            return self._pending[0]
        raise RemoteProtocolError(f"the backend sent a frame of {length} bytes that answers no call")

    def _take(self, segment: memoryview, events: list[ReplyEvent]) -> None:
        if self._forwards:
            events.append(Forward(segment))
        if self._copy is not None:
            self._copy += segment
        self._remaining -= len(segment)
        if not self._remaining:
            self._end(events)

    def _end(self, events: list[ReplyEvent]) -> None:
        if self._current is NO_CALL:
            return
        call = self._pending.popleft()
        if call.handling is not Handling.RELAY:
            raw = None if self._copy is None else bytes(self._copy[0 if self._strips_headers else HEADER_BYTES :])
            events.append(ReplyEnd(call, raw, len(self._pending)))
        self._copy = None
