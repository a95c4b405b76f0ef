"""The reply stream of a backend that sends its messages without frames: each is skipped value by value to its end.

The bytes that a length announces are skipped unread, so a column of numbers costs nothing, and a column of text
one step for each value. Bytes go on as they come; a few wait for the rest of a length or of a field's header.
"""

from __future__ import annotations

from typing import Final

from proxy.wire.reply_stream import (
    NO_CALL,
    Forward,
    Handling,
    PendingCall,
    ReplyEnd,
    ReplyEvent,
    ReplyStream,
    ReplyTooLong,
    SyncLost,
)
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.reader import read_header
from proxy.wire.thrift.skip import ValueSkipper
from proxy.wire.thrift.types import Kind

_FORWARDED: Final = frozenset({Handling.RELAY, Handling.WATCH})


class UnframedReplyStream(ReplyStream):
    """Follows messages. Buffers at most the start of a header and the one reply being copied."""

    def __init__(self) -> None:
        super().__init__()
        self._partial_header = b""
        # Skips the current message; None between two messages.
        self._skipper: ValueSkipper | None = None
        self._current: PendingCall = NO_CALL
        self._copy: bytearray | None = None
        self._forwards = True
        self._lost = False

    @property
    def _has_forwarded_part(self) -> bool:
        return self._skipper is not None and self._forwards

    def try_pass(self, count: int) -> bool:
        """See ReplyStream. The bytes must lie within one value of a message that is only forwarded."""
        skipper = self._skipper
        if skipper is None or self._partial_header:
            return False
        if skipper.position <= count or self._current.handling is not Handling.RELAY:
            return False
        skipper.drop_bytes(count)
        return True

    def stop_following(self) -> bytes:
        """See ReplyStream. The bytes are the reply that was kept back, and after it the start of a header."""
        self._lost = True
        keeps = self._copy is not None and self._current.handling is Handling.KEEP
        kept = bytes(self._copy) if keeps and self._copy is not None else b""
        kept, self._copy, self._partial_header = kept + self._partial_header, None, b""
        return kept

    def feed(self, data: bytes) -> list[ReplyEvent]:
        """See ReplyStream. Cuts the bytes into messages."""
        if self._partial_header:
            data, self._partial_header = self._partial_header + data, b""
        view = memoryview(data)
        events: list[ReplyEvent] = []
        while view and not self._lost:
            try:
                count, has_ended = self._skip_on(view)
            except RemoteProtocolError as error:
                events += (SyncLost(str(error)), *_forward(self.stop_following()))
                break
            if not count:
                self._partial_header = bytes(view)
                return events
            segment, view = view[:count], view[count:]
            self._take(segment, events)
            if has_ended:
                self._end(events)
        if view:
            events += _forward(view)
        return events

    def _skip_on(self, view: memoryview) -> tuple[int, bool]:
        """Return how many of the bytes belong to the current message, and whether it ends there.

        The count is 0 while too few bytes have come to know.
        """
        if self._skipper is None:
            try:
                self._begin(ValueSkipper(Kind.STRUCT, read_header(view).body_offset))
            except IncompleteError:
                return 0, False
        assert self._skipper is not None  # noqa: S101 - begun just above
        end = self._skipper.advance(view)
        count = min(self._skipper.position, len(view))
        self._skipper.drop_bytes(count)
        return count, end is not None

    def _begin(self, skipper: ValueSkipper) -> None:
        if not self._pending:
            raise RemoteProtocolError("the backend sent a message that answers no call")
        self._skipper, self._current = skipper, self._pending[0]
        self._copy = None if self._current.handling is Handling.RELAY else bytearray()
        self._forwards = self._current.handling in _FORWARDED

    def _take(self, segment: memoryview, events: list[ReplyEvent]) -> None:
        copy = self._copy
        if copy is not None and len(copy) + len(segment) <= self._current.copy_bytes_max:
            copy += segment
        elif copy is not None:
            self._copy = None
            if self._current.handling is Handling.KEEP:
                self._forwards = True
                events += [ReplyTooLong(), *_forward(bytes(copy))]
        if self._forwards:
            events += _forward(segment)

    def _end(self, events: list[ReplyEvent]) -> None:
        call = self._pending.popleft()
        if call.handling is not Handling.RELAY:
            raw = None if self._copy is None else bytes(self._copy)
            events.append(ReplyEnd(call, raw, len(self._pending)))
        self._skipper = self._copy = None


def _forward(piece: bytes | memoryview) -> list[ReplyEvent]:
    return [Forward(piece)] if piece else []
