"""The backend's reply stream, followed frame by frame without decoding it.

The next frame answers the oldest call in a queue of the calls made. Most bytes are only counted; the few replies
that the proxy reads are copied as they pass; replies to the proxy's own calls are taken out. For a backend that
sends no frames, `proxy.wire.unframed_reply_stream` does the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.frames import HEADER_BYTES, frame_length

# Only a client that sends calls and reads no replies reaches this. HiveServer2 clients wait for each reply.
PENDING_CALLS_MAX: Final = 1024


class Handling(Enum):
    """The ways to handle a reply."""

    RELAY = "forwarded, not looked at"
    WATCH = "forwarded, and copied to be read"
    KEEP = "copied, and kept back until the proxy decides whether the client gets it"
    OURS = "answers a call of the proxy's own; never reaches the client"


@dataclass(frozen=True)
class PendingCall:
    """A call without a whole reply. A reply longer than `copy_bytes_max` is not copied, only forwarded."""

    handling: Handling
    name: str
    seqid: int
    copy_bytes_max: int = 0


# The current call while no reply is under way.
NO_CALL: Final = PendingCall(Handling.RELAY, "", 0)


@dataclass(frozen=True)
class Forward:
    """Reply bytes for the client."""

    data: bytes | memoryview


@dataclass(frozen=True)
class ReplyEnd:
    """A reply has ended. `raw` is its message if the proxy wanted to read it and it is not too long.

    A reply to KEEP has not reached the client yet, unless `raw` is None: then it has been forwarded.
    """

    call: PendingCall
    raw: bytes | None
    # Calls sent after this one, as of this reply: the same bytes may have brought their replies too.
    calls_since: int


@dataclass(frozen=True)
class ReplyTooLong:
    """The reply that begins now was to be kept back and is too long for that: from here on it comes as Forward."""


@dataclass(frozen=True)
class SyncLost:
    """The stream no longer matches the calls made; from here on all bytes come as Forward."""

    reason: str


ReplyEvent: TypeAlias = Forward | ReplyEnd | ReplyTooLong | SyncLost


class ReplyStream(ABC):
    """Takes reply bytes, and returns events."""

    def __init__(self) -> None:
        self._pending: deque[PendingCall] = deque()

    @property
    def pending_count(self) -> int:
        """The number of calls without a whole reply."""
        return len(self._pending)

    def awaits_own_reply(self) -> bool:
        """True if the whole reply to a call of the proxy's own is still to come."""
        return any(call.handling is Handling.OURS for call in self._pending)

    def unanswered_calls(self) -> tuple[PendingCall, ...]:
        """Return the client's calls without a reply, if each can be answered: none in the middle of a reply."""
        if self._has_forwarded_part:
            return ()
        return tuple(call for call in self._pending if call.handling is not Handling.OURS)

    @property
    @abstractmethod
    def _has_forwarded_part(self) -> bool:
        """True if the client has got the first bytes of a reply, and not the last."""

    def expect(self, call: PendingCall) -> None:
        """Expect the reply to a call just sent. HiveServer2 answers the calls of a connection in order."""
        self.expect_room()
        self._pending.append(call)

    def expect_room(self) -> None:
        """Raise RemoteProtocolError if no further call may be sent."""
        if len(self._pending) >= PENDING_CALLS_MAX:
            raise RemoteProtocolError(f"{PENDING_CALLS_MAX} calls are waiting for their replies")

    @abstractmethod
    def try_pass(self, count: int) -> bool:
        """Fast path: count off bytes that pass as they are and end no reply of interest, or return False."""

    @abstractmethod
    def stop_following(self) -> bytes:
        """Stop following. Returns the bytes that have come for the client and were not forwarded yet."""

    @abstractmethod
    def feed(self, data: bytes) -> list[ReplyEvent]:
        """Take in bytes, cut anywhere."""


class FramedReplyStream(ReplyStream):
    """Follows frames. Buffers at most a frame header and the one reply being copied."""

    def __init__(self, *, strips_headers: bool = False) -> None:
        """With `strips_headers` the client gets the frames' bodies, one right after the other."""
        super().__init__()
        self._strips_headers = strips_headers
        self._partial_header = b""
        # Bytes left of the current frame, header included.
        self._remaining = 0
        self._current = NO_CALL
        self._copy: bytearray | None = None
        # True if the current frame goes to the client as it comes.
        self._forwards = True
        self._lost = False

    @property
    def _has_forwarded_part(self) -> bool:
        return self._remaining > 0 and self._forwards

    def try_pass(self, count: int) -> bool:
        """See ReplyStream. The bytes must lie within one frame that is only forwarded."""
        if self._remaining <= count or self._current.handling is not Handling.RELAY:
            return False
        self._remaining -= count
        return True

    def stop_following(self) -> bytes:
        """See ReplyStream. The bytes are those of a frame's header, or of the reply that was kept back."""
        self._lost = True
        kept, self._partial_header = self._partial_header, b""
        if self._copy is not None and not self._forwards and self._current.handling is Handling.KEEP:
            kept, self._copy, self._forwards = bytes(self._copy), None, True
        return kept

    def feed(self, data: bytes) -> list[ReplyEvent]:
        """See ReplyStream. Cuts the bytes into frames."""
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
        """Begin a frame. False if none can begin: the header is incomplete, or sync is lost."""
        if self._lost:
            events.append(Forward(view))
            return False
        if len(view) < HEADER_BYTES:
            self._partial_header = bytes(view)
            return False
        try:
            length = frame_length(view)
            self._current = self._answered_call(length)
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

    def _answered_call(self, length: int) -> PendingCall:
        """Return the call that a frame of this length answers. An empty frame carries nothing and answers none."""
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
