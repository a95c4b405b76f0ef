"""The memory gate: bounds the bytes of calls that the connections of a process hold for their clients.

If they hold too much, the gate reads no client for a moment, and TCP makes them wait. Held calls go on meanwhile:
they are decided and sent. The gate reads unfinished calls to their ends, one after the other. It ends the
connection of a call that stalls, with an error after which the client may try again. Replies are not counted: each
connection reads no more of its backend than its client takes, and long ones that come wrapped have room of their
own (`proxy.net.reply_room`).
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from proxy.config.memory_shares import COPIES

log = logging.getLogger(__name__)

# The time between two looks at the held bytes, while nothing is read.
LOOK_S: Final = 0.02
# An unfinished call of which no byte has come for so long may be ended.
STALLED_S: Final = 10.0
# The call that is read to its end gives way to another after this long without a byte.
TURN_S: Final = 1.0
# Statements are decided and sent within milliseconds. If the held bytes do not fall for this long, unfinished
# calls are read to their ends, one at a time.
_FINISHING_AFTER_S: Final = 0.05
# New connections are refused once nothing has been read for this long. Before, they wait as the others do.
REFUSING_AFTER_S: Final = 1.0
# A call over HTTP waits this long for room, and is then refused.
ROOM_WITHIN_S: Final = 10.0
# At least one part in this many of `bytes_max` may come between two looks. A look is a loop over all connections.
_UNSEEN: Final = 8
# A call over HTTP of at most this length always has room: status calls, fetches, most statements.
SMALL_BYTES: Final = 16 * 1024
# A call over HTTP that comes in chunks counts as one of this length, the longest statement that is analysed.
_UNKNOWN_BYTES: Final = 256 * 1024
# Log lines are no closer to each other.
_LOG_EVERY_S: Final = 60.0

SENTENCE: Final = "Starpruner has too little memory for this now (memory_bytes_max); try again later"


class NoRoomError(Exception):
    """There was no room for a call within ROOM_WITHIN_S."""


class Holder(Protocol):
    """A connection, as far as it holds bytes of calls."""

    @property
    def held_bytes(self) -> int:
        """The memory that its calls take."""
        ...

    @property
    def unfinished_bytes(self) -> int:
        """The bytes of a call that has begun to come."""
        ...

    def pause_for_memory(self, *, on: bool) -> None:
        """Read no more calls; or go on."""
        ...

    def close_with_error(self, sentence: str) -> None:
        """End it, and answer its client's calls by an error."""
        ...


@dataclass
class _Upload:
    """An unfinished call, as it was at the last look."""

    held_bytes: int
    moved_at: float
    # The end of its last turn, in which no byte came.
    tried_at: float = -math.inf


class Room:
    """The room of one call over HTTP."""

    def __init__(self, gate: MemoryGate, count: int) -> None:
        self._gate = gate
        self._bytes = 0
        self.resize(count)

    def resize(self, count: int) -> None:
        """Take room for a call of that many bytes; a short call takes none."""
        before, self._bytes = self._bytes, _room_bytes(count)
        self._gate.reserved_bytes += self._bytes - before

    def release(self) -> None:
        """The call has gone to the backend, or is refused. May be called again."""
        self.resize(0)


class MemoryGate:
    """The gate of a process. Used by its event loop alone."""

    def __init__(self, bytes_max: int, holders: Callable[[], Collection[Holder]]) -> None:
        self.bytes_max = bytes_max
        self._holders = holders
        # Memory of calls over HTTP.
        self.reserved_bytes = 0
        # Bytes that may still come before the next look.
        self._unseen_left = bytes_max
        # Set while no client is read.
        self._timer: asyncio.TimerHandle | None = None
        self._paused_at = self._fell_at = self._turn_at = self._logged_at = -math.inf
        self._last_held = 0
        self._uploads: dict[Holder, _Upload] = {}
        # The only connection that is read, so that its unfinished call can be sent on.
        self._finishing: Holder | None = None
        self._has_failed = False
        # How often reading was paused, and what was refused: connections, and calls.
        self.paused = self.refused = 0

    @property
    def call_bytes_max(self) -> int:
        """The longest call for which there may be room."""
        return self.bytes_max // COPIES

    @property
    def held_bytes(self) -> int:
        """The memory that calls take now."""
        return self._held(self._holders())

    @property
    def is_paused(self) -> bool:
        """True if no connection is to be read."""
        return self._timer is not None

    def is_full(self) -> bool:
        """True if a new connection is to be refused, which is counted."""
        is_full = self.is_paused and _now() - self._paused_at > REFUSING_AFTER_S
        self.refused += is_full
        return is_full

    def bytes_came(self, count: int) -> None:
        """Count the memory that bytes of a connection may take for a while."""
        self._unseen_left -= count
        if self._unseen_left < 0 and not self.is_paused:
            self._look()

    @asynccontextmanager
    async def room_for(self, count: int | None) -> AsyncIterator[Room]:
        """Room for a call of that many bytes, or of unknown length (None). Raises NoRoomError."""
        count = min(_UNKNOWN_BYTES, self.call_bytes_max) if count is None else count
        needed, deadline = _room_bytes(count), _now() + ROOM_WITHIN_S
        while needed and self.held_bytes + needed > self.bytes_max:
            if _now() > deadline:
                self.refused += 1
                raise NoRoomError(SENTENCE)
            await asyncio.sleep(LOOK_S)
        room = Room(self, count)
        try:
            yield room
        finally:
            room.release()

    def close(self) -> None:
        """Look no more: the proxy ends."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _held(self, holders: Collection[Holder]) -> int:
        return self.reserved_bytes + sum(self._guarded(_held_bytes, holder) for holder in holders)

    def _look(self) -> None:
        # The timer is set first: without it, an error below would leave clients unread for ever.
        was_paused, self._timer = self.is_paused, asyncio.get_running_loop().call_later(LOOK_S, self._look)
        holders, now = tuple(self._holders()), _now()
        held = self._held(holders)
        if held <= self.bytes_max:
            self._go_on(holders, was_paused=was_paused)
            self._unseen_left = max(self.bytes_max - held, self.bytes_max // _UNSEEN)
            return
        if not was_paused:
            self._pause(held, now)
        elif held < self._last_held:
            self._fell_at = now
        self._last_held = held
        self._see_uploads(holders, now)
        self._take_turns(now)
        for holder in holders:
            self._guarded(_resumed if holder is self._finishing else _paused, holder)

    def _pause(self, held: int, now: float) -> None:
        self.paused += 1
        self._paused_at = self._fell_at = now
        if now - self._logged_at > _LOG_EVERY_S:
            self._logged_at = now
            log.warning(
                "calls take %d MB, and memory allows %d: no client is read for a moment",
                *(held >> 20, self.bytes_max >> 20),
            )

    def _go_on(self, holders: Collection[Holder], *, was_paused: bool) -> None:
        self.close()
        self._finishing = None
        self._uploads = {}
        if was_paused:
            for holder in holders:
                self._guarded(_resumed, holder)

    def _see_uploads(self, holders: Collection[Holder], now: float) -> None:
        """Note which unfinished calls have grown or shrunk."""
        before, self._uploads = self._uploads, {}
        for holder in holders:
            if not self._guarded(_unfinished_bytes, holder):
                continue
            held = self._guarded(_held_bytes, holder)
            upload = before.get(holder)
            if upload is None or upload.held_bytes != held:
                upload = _Upload(held, now)
            self._uploads[holder] = upload

    def _take_turns(self, now: float) -> None:
        """Read one unfinished call to its end: the held bytes may all be parts of calls."""
        finishing = self._finishing
        upload = None if finishing is None else self._uploads.get(finishing)
        if finishing is None or upload is None:
            self._finishing = None
        elif now - max(upload.moved_at, self._turn_at) > TURN_S:
            upload.tried_at, self._finishing = now, None
            # Only a call that was read until now can have stalled: a paused one shows no bytes.
            if now - upload.moved_at > STALLED_S:
                self._end(finishing)
        if self._finishing is None and self._uploads and now - self._fell_at > _FINISHING_AFTER_S:
            self._finishing, self._turn_at = min(self._uploads, key=self._turn_order), now

    def _turn_order(self, holder: Holder) -> tuple[float, int]:
        upload = self._uploads[holder]
        return upload.tried_at, -upload.held_bytes

    def _end(self, holder: Holder) -> None:
        self.refused += 1
        upload = self._uploads.pop(holder)
        log.warning("a connection that holds %d MB is ended: memory is short", upload.held_bytes >> 20)
        self._guarded(_refused, holder)

    def _guarded(self, action: Callable[[Holder], int], holder: Holder) -> int:
        """Do `action` with a connection. If that fails, it counts as 0, and the other connections go on."""
        try:
            return action(holder)
        except Exception:
            if not self._has_failed:
                self._has_failed = True
                log.exception("a connection cannot be asked for its memory, which is logged once")
            return 0


def _held_bytes(holder: Holder) -> int:
    return holder.held_bytes


def _unfinished_bytes(holder: Holder) -> int:
    return holder.unfinished_bytes


def _paused(holder: Holder) -> int:
    holder.pause_for_memory(on=True)
    return 0


def _resumed(holder: Holder) -> int:
    holder.pause_for_memory(on=False)
    return 0


def _refused(holder: Holder) -> int:
    holder.close_with_error(SENTENCE)
    return 0


def _room_bytes(count: int) -> int:
    return COPIES * count if count > SMALL_BYTES else 0


def _now() -> float:
    return asyncio.get_running_loop().time()
