"""Room for long replies that come wrapped: nobody can read a part of one, so all of it has to be in memory.

A reply gets its room when its length is known. Until it has room, its backend is not read, and TCP makes the
backend wait. The reply keeps the room until its client has taken the last of it. So slow clients could keep all of
the room: while other replies wait, a reply that stands still is ended, with its connection.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Final

from proxy.config.memory_shares import REPLY_COPIES
from proxy.kerberos.errors import KerberosError

# A shorter token needs no room: a connection without a layer has as much after one read of its socket.
SHORT_BYTES_MAX: Final = 256 * 1024
# A reply that has stood still for so long is ended if others wait: nothing of it has come, and its client has not
# taken a piece of 256 KiB, which a line of 25 KB/s can.
STALLED_S: Final = 10.0
# The time between two looks for replies that stand still, while others wait.
LOOK_S: Final = 0.5


class NoReplyRoomError(KerberosError):
    """A reply has no room here. No backend is to blame, and the client may read the message."""


class ReplyRoom:
    """The room of a process. Used by its event loop alone."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.held_bytes = 0
        self._holders: set[ReplyPlace] = set()
        self._waiting: deque[ReplyPlace] = deque()
        self._next_look: asyncio.Handle | None = None
        # How many replies had to wait, and how many were refused or ended.
        self.waited = self.refused = 0

    def enter(self, place: ReplyPlace) -> None:
        """Give the place its bytes, now or in its turn. Raises NoReplyRoomError if there can never be as many."""
        if place.bytes > self._bytes_max:
            self.refused += 1
            raise NoReplyRoomError(
                f"Starpruner has no memory for a reply of {place.bytes // REPLY_COPIES >> 20} MB "
                "(memory_bytes_max): fetch fewer rows at once"
            )
        self._waiting.append(place)
        self._give()
        if self._waiting:
            self.waited += 1
            if self._next_look is None:
                # The first look is at once: a reply may have stood still for long while nobody waited.
                self._next_look = asyncio.get_running_loop().call_soon(self._look)

    def leave(self, place: ReplyPlace) -> None:
        """Take the bytes of a place back, or let it wait no longer."""
        if place in self._holders:
            self._holders.remove(place)
            self.shrunk(place.bytes)
        else:
            self._waiting.remove(place)
            self._give()

    def shrunk(self, count: int) -> None:
        """So many bytes are free again."""
        self.held_bytes -= count
        self._give()

    def _give(self) -> None:
        while self._waiting and self.held_bytes + self._waiting[0].bytes <= self._bytes_max:
            place = self._waiting.popleft()
            self.held_bytes += place.bytes
            self._holders.add(place)
            place.get()

    def _look(self) -> None:
        self._next_look, now = None, _now()
        while self._waiting:
            slowest = min(self._holders, key=lambda place: place.moved_at)
            if now - slowest.moved_at < STALLED_S:
                self._next_look = asyncio.get_running_loop().call_later(LOOK_S, self._look)
                return
            self.refused += 1
            slowest.end()


class ReplyPlace:
    """The place of one connection in the room, for one reply at a time."""

    def __init__(
        self, room: ReplyRoom, on_room: Callable[[], None], on_end: Callable[[NoReplyRoomError], None]
    ) -> None:
        """`on_room` is told that a reply that waited may come, `on_end` that the connection has to end."""
        self._room = room
        self._on_room = on_room
        self._on_end = on_end
        # The memory that the reply takes; and the time since which it has stood still.
        self.bytes = 0
        self.moved_at = math.inf
        self.is_waiting = False

    def has_room_for(self, token_bytes: int) -> bool:
        """Ask once for the room of the next reply; True if that may come. Raises NoReplyRoomError."""
        if not self.bytes and token_bytes > SHORT_BYTES_MAX:
            self.bytes, self.is_waiting = REPLY_COPIES * token_bytes, True
            try:
                self._room.enter(self)
            except NoReplyRoomError:
                self.bytes, self.is_waiting = 0, False
                raise
        return not self.is_waiting

    def get(self) -> None:
        """The room is this reply's from now on."""
        self.is_waiting = False
        self.moved()
        self._on_room()

    def moved(self) -> None:
        """A part of the reply has come, or has gone to the client."""
        if self.bytes:
            self.moved_at = _now()

    def rests_with_us(self) -> None:
        """The reply waits for a thread of ours: it is nobody's fault that it stands still."""
        self.moved_at = math.inf

    def unwrapped(self) -> None:
        """All of it has come, and is unwrapped: one copy is left."""
        if self.bytes:
            free = self.bytes - self.bytes // REPLY_COPIES
            self.bytes -= free
            self.moved()
            self._room.shrunk(free)

    def leave(self) -> None:
        """The reply has gone to the client, or nobody wants it."""
        if self.bytes:
            self._room.leave(self)
            self.bytes, self.is_waiting = 0, False

    def end(self) -> None:
        """The client does not take the reply, or the backend does not go on with it, and others wait."""
        self.leave()
        self._on_end(
            NoReplyRoomError(
                f"a reply stood still for {STALLED_S:g} s while memory was short for others (memory_bytes_max)"
            )
        )


def _now() -> float:
    return asyncio.get_running_loop().time()


# For tokens that are counted elsewhere, or are few. Nobody ever waits in it.
UNBOUNDED: Final = ReplyRoom(1 << 62)
