"""The memory gate: bounds the bytes that the connections of a process hold for their clients and backends.

Where they hold too much, no client is read for a moment, and TCP makes them wait. Statements that are held go on
meanwhile: they are decided and sent. Where nothing goes on, the connection that holds most is ended, with an error
that its client may answer by trying again.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Final, Protocol

from proxy.config.memory_shares import COPIES

log = logging.getLogger(__name__)

# The time between two looks at what is held, while nothing is read.
LOOK_S: Final = 0.02
# What is held goes on, to the backend or to the client, within this time, or the largest part of it is dropped. A
# key query ends at its deadline of 5 s.
STALLED_S: Final = 10.0
# Statements are decided and sent within milliseconds. Where what is held grows no smaller, unfinished calls are
# read to their ends, one at a time.
_FINISHING_AFTER_S: Final = 0.05
# New connections are refused once so long nothing was read; shorter, they wait as the others do.
REFUSING_AFTER_S: Final = 1.0
# A call over HTTP waits so long for room, and is refused then.
ROOM_WITHIN_S: Final = 10.0
# Bytes that may come between two looks, as a part of what may be held. A look is a loop over all connections.
_UNSEEN: Final = 8
# A call over HTTP that is no longer has room in any case: status calls, fetches, most statements.
_SMALL_BYTES: Final = 16 * 1024
# A call over HTTP that comes in chunks counts as one of this length, the longest statement that is analysed.
_UNKNOWN_BYTES: Final = 256 * 1024
# Log lines are no closer to each other.
_LOG_EVERY_S: Final = 60.0

SENTENCE: Final = "Starpruner has too little memory for this now (memory_bytes_max); try again later"


class NoRoomError(Exception):
    """There was no room for a call within ROOM_WITHIN_S."""


class Holder(Protocol):
    """A connection, as far as it holds bytes."""

    @property
    def held_bytes(self) -> int:
        """The memory that its bytes take."""
        ...

    @property
    def unfinished_bytes(self) -> int:
        """The bytes of a call that has begun to come."""
        ...

    def pause_for_memory(self, *, on: bool) -> None:
        """Read no more calls, and no replies that its client does not take; or go on."""
        ...

    def close_with_error(self, sentence: str) -> None:
        """End it, and answer its client's calls by an error."""
        ...


class MemoryGate:
    """The gate of a process. Used by its event loop alone."""

    def __init__(self, bytes_max: int, holders: Callable[[], Collection[Holder]]) -> None:
        self._bytes_max = bytes_max
        self._holders = holders
        # Bytes of calls over HTTP.
        self._reserved = 0
        # Bytes that may still come before the next look.
        self._unseen_left = bytes_max
        self._timer: asyncio.TimerHandle | None = None
        self._paused_at = self._fell_at = self._logged_at = -math.inf
        self._least = 0
        # The only connection that is read, so that its unfinished call can be sent on.
        self._finishing: Holder | None = None
        # How often reading was paused, and what was refused: connections, and calls.
        self.paused = self.refused = 0

    @property
    def is_paused(self) -> bool:
        """True if no connection is to be read."""
        return self._timer is not None

    def is_full(self) -> bool:
        """Whether a new connection is to be refused. Counts those that are."""
        is_full = self.is_paused and _now() - self._paused_at > REFUSING_AFTER_S
        self.refused += is_full
        return is_full

    def bytes_came(self, count: int) -> None:
        """A connection has taken in bytes that may take so much memory for a while."""
        self._unseen_left -= count
        if self._unseen_left < 0 and not self.is_paused:
            self._look()

    @asynccontextmanager
    async def room_for(self, count: int | None) -> AsyncIterator[None]:
        """Room for a call of so many bytes, or for one that does not say. Raises NoRoomError."""
        count = _UNKNOWN_BYTES if count is None else count
        room = COPIES * count if count > _SMALL_BYTES else 0
        deadline = _now() + ROOM_WITHIN_S
        while room and self._held(self._holders()) + room > self._bytes_max:
            if _now() > deadline:
                self.refused += 1
                raise NoRoomError(SENTENCE)
            await asyncio.sleep(LOOK_S)
        self._reserved += room
        try:
            yield
        finally:
            self._reserved -= room

    def close(self) -> None:
        """Look no more: the proxy ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _held(self, holders: Collection[Holder]) -> int:
        return self._reserved + sum(holder.held_bytes for holder in holders)

    def _look(self) -> None:
        holders, now = tuple(self._holders()), _now()
        held = self._held(holders)
        if held <= self._bytes_max:
            self._go_on(holders)
            self._unseen_left = max(self._bytes_max - held, self._bytes_max // _UNSEEN)
            return
        if not self.is_paused:
            self._pause(held, now)
        elif held < self._least:
            self._least, self._fell_at = held, now
        if now - self._fell_at > STALLED_S:
            self._end_largest(holders, now)
        elif now - self._fell_at > _FINISHING_AFTER_S:
            self._finish_largest(holders)
        for holder in holders:
            holder.pause_for_memory(on=holder is not self._finishing)
        self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _pause(self, held: int, now: float) -> None:
        self.paused += 1
        self._least, self._paused_at, self._fell_at = held, now, now
        if now - self._logged_at > _LOG_EVERY_S:
            self._logged_at = now
            log.warning(
                "statements and replies take %d MB, and memory allows %d: no client is read for a moment",
                *(held >> 20, self._bytes_max >> 20),
            )

    def _go_on(self, holders: Collection[Holder]) -> None:
        if self.is_paused:
            self.close()
            self._finishing = None
            for holder in holders:
                holder.pause_for_memory(on=False)

    def _finish_largest(self, holders: Collection[Holder]) -> None:
        """Read the connection that has most of a call: all that is held may be parts of calls."""
        if self._finishing in holders and self._finishing is not None and self._finishing.unfinished_bytes:
            return
        self._finishing = max(holders, key=_unfinished_bytes, default=None)

    def _end_largest(self, holders: Collection[Holder], now: float) -> None:
        self.refused += 1
        # As much time for the next one.
        self._fell_at = now
        largest = max(holders, key=_held_bytes, default=None)
        if largest is not None:
            log.warning("a connection that holds %d MB is ended: memory is short", largest.held_bytes >> 20)
            largest.close_with_error(SENTENCE)


def _held_bytes(holder: Holder) -> int:
    return holder.held_bytes


def _unfinished_bytes(holder: Holder) -> int:
    return holder.unfinished_bytes


def _now() -> float:
    return asyncio.get_running_loop().time()
