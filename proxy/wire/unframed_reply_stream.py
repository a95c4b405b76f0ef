"""Follows the reply stream of a backend that sends its messages without frames: each is walked to its end.

What a length announces is stepped over without a look, so a column of numbers costs nothing, and one of text a
step for each value. Bytes go on as they come; a few wait for the rest of a length or of a field's header.
"""

from __future__ import annotations

from typing import Final

from proxy.wire.reply_stream import (
    NO_CALL,
    Follower,
    Forward,
    Handling,
    Lost,
    Overlong,
    PendingCall,
    ReplyEnd,
    ReplyEvent,
)
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.reader import read_header
from proxy.wire.thrift.skip import Walk
from proxy.wire.thrift.types import Kind

_FORWARDED: Final = frozenset({Handling.RELAY, Handling.WATCH})


class PlainFollower(Follower):
    """Follows messages. Holds the start of a header at most, and the one reply being copied."""

    def __init__(self) -> None:
        super().__init__()
        self._partial_header = b""
        # Of the message on its way; None between two.
        self._walk: Walk | None = None
        self._current: PendingCall = NO_CALL
        self._copy: bytearray | None = None
        self._forwards = True
        self._lost = False

    def passes(self, count: int) -> bool:
        """Whether they lie within one value of a message that is only forwarded, as it is."""
        walk = self._walk
        if walk is None or self._partial_header:
            return False
        if walk.position <= count or self._current.handling is not Handling.RELAY:
            return False
        walk.moved(count)
        return True

    def give_up(self) -> bytes:
        """The start of a header, behind the reply that was kept back."""
        self._lost = True
        keeps = self._copy is not None and self._current.handling is Handling.KEEP
        kept = bytes(self._copy) if keeps and self._copy is not None else b""
        kept, self._copy, self._partial_header = kept + self._partial_header, None, b""
        return kept

    def feed(self, data: bytes) -> list[ReplyEvent]:
        """Cut them into messages."""
        if self._partial_header:
            data, self._partial_header = self._partial_header + data, b""
        view = memoryview(data)
        events: list[ReplyEvent] = []
        while view and not self._lost:
            try:
                count, has_ended = self._walk_on(view)
            except RemoteProtocolError as error:
                events += (Lost(str(error)), *_forward(self.give_up()))
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

    def _walk_on(self, view: memoryview) -> tuple[int, bool]:
        """How many of the bytes belong to the message on its way, and whether it ends there.

        None of them does where too few are there to tell.
        """
        if self._walk is None:
            try:
                self._begin(Walk(Kind.STRUCT, read_header(view).body_offset))
            except IncompleteError:
                return 0, False
        assert self._walk is not None  # noqa: S101 - it has just begun if it had not
        end = self._walk.advance(view)
        count = min(self._walk.position, len(view))
        self._walk.moved(count)
        return count, end is not None

    def _begin(self, walk: Walk) -> None:
        if not self._pending:
            raise RemoteProtocolError("the backend sent a message that answers no call")
        self._walk, self._current = walk, self._pending[0]
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
                events += [Overlong(), *_forward(bytes(copy))]
        if self._forwards:
            events += _forward(segment)

    def _end(self, events: list[ReplyEvent]) -> None:
        call = self._pending.popleft()
        if call.handling is not Handling.RELAY:
            raw = None if self._copy is None else bytes(self._copy)
            events.append(ReplyEnd(call, raw, len(self._pending)))
        self._walk = self._copy = None


def _forward(piece: bytes | memoryview) -> list[ReplyEvent]:
    return [Forward(piece)] if piece else []
