"""The write fence: tells whether a table was written, through this proxy in any session, since its keys were read.

Window consistency promises keys of the moment just before the statement. The order of events guarantees it:

* a write is begun here before its first byte goes to the backend, and ended after its end was seen there;
* a fence is opened before the first key query goes to the backend, and checked after the last one has answered,
  just before the statement goes.

So a write that a fence does not see either ended before the keys were read, and they show it, or it goes to the
backend after the fence was checked. Then a reader that had started at that moment would not have seen it either.
Writes past this proxy are not seen here.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from threading import Lock
from typing import Final, Protocol

from proxy.statements.written_tables import AnyTable, WrittenTables
from rewriter import TableName

# Running writes whose words are kept, up to 100 KB each. Each session has one or two, and there are 500
# connections by default. A write beyond these counts for any table, and no fence holds until it has ended.
RUNNING_MAX: Final = 1_000
# Writes that have ended, for fences that were opened before. A key query takes seconds, in which few writes end; a
# fence that is older than the first of these holds no longer.
ENDED_MAX: Final = 1_000
# How long a write counts as running if nobody will see its end: a statement within a call (runAsync=false) runs to
# its end on the server, also where its client has gone.
LOST_S: Final = 3_600.0
# How long a write counts as running after its session was closed. The server cancels it, but a commit that has
# begun goes on, in a thread that no longer listens.
CLOSING_S: Final = 60.0


@dataclass(frozen=True, eq=False)
class Write:
    """A statement that writes, from before it goes to the backend until its end."""

    tables: WrittenTables


class Written(Protocol):
    """The tables that one write may change: `WrittenTables`, or their form in a ledger of several processes."""

    def hold(self, name: TableName) -> bool:
        """True if the table may be among them."""
        ...

    @property
    def may_change_columns(self) -> bool:
        """True if the tables may have other columns afterwards."""
        ...


class WriteLog(Protocol):
    """The writes of all sessions, of one process or of several."""

    def open(self) -> Fence:
        """A fence around all reads from now on."""
        ...

    def begin(self, tables: WrittenTables) -> Write:
        """A write is about to go to the backend."""
        ...

    def end(self, write: Write) -> None:
        """A write has ended, one way or the other. To say so again changes nothing."""
        ...

    def withdraw(self, write: Write) -> None:
        """A write has changed nothing: no fence that is looked at from now on sees it."""
        ...

    def lose(self, write: Write) -> None:
        """The end of a write will not be seen: it counts as running for LOST_S."""
        ...

    def end_soon(self, write: Write) -> None:
        """The session of a write is being closed: it counts as running for CLOSING_S."""
        ...

    def since(self, ended_before: int) -> Sequence[Written] | None:
        """The writes that run, and those that ended after the first so many; None if some are forgotten."""
        ...


class LostWrites:
    """Writes whose end will not be seen. Used by several threads at once."""

    def __init__(self, end: Callable[[Write], None], clock: Callable[[], float], seconds: float) -> None:
        """Let them count as running for so many seconds."""
        self._end = end
        self._clock = clock
        self._seconds = seconds
        self._lost: deque[tuple[float, Write]] = deque()

    def add(self, write: Write) -> None:
        """Count a write as lost from now on."""
        self._lost.append((self._clock() + self._seconds, write))

    def end_old(self) -> None:
        """End those that were lost so long ago that they have ended."""
        with suppress(IndexError):
            while True:
                # Taken first: two threads never end the same one.
                found = self._lost.popleft()
                if found[0] > self._clock():
                    self._lost.appendleft(found)
                    return
                self._end(found[1])


class LocalWriteLog:
    """The writes of one process. Used by several threads at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._lock = Lock()
        self._lost = LostWrites(self.end, clock, LOST_S)
        self._closing = LostWrites(self.end, clock, CLOSING_S)
        self._running: set[Write] = set()
        # The writes that ended, each with its number; numbers count up by one.
        self._ended: deque[tuple[int, WrittenTables]] = deque(maxlen=ENDED_MAX)
        self._ended_count = 0

    def open(self) -> Fence:
        """A fence around what is read from now on."""
        self._lost.end_old()
        self._closing.end_old()
        with self._lock:
            return Fence(self, self._ended_count)

    def begin(self, tables: WrittenTables) -> Write:
        """A write is about to go to the backend."""
        with self._lock:
            write = Write(tables if len(self._running) < RUNNING_MAX else AnyTable())
            self._running.add(write)
        return write

    def end(self, write: Write) -> None:
        """A write has ended, one way or the other. To say so again changes nothing."""
        with self._lock:
            if write in self._running:
                self._running.remove(write)
                self._ended_count += 1
                self._ended.append((self._ended_count, write.tables))

    def withdraw(self, write: Write) -> None:
        """A write has changed nothing: no fence that is looked at from now on sees it."""
        with self._lock:
            self._running.discard(write)

    def lose(self, write: Write) -> None:
        """The end of a write will not be seen: it counts as running for LOST_S."""
        self._lost.add(write)

    def end_soon(self, write: Write) -> None:
        """The session of a write is being closed: it counts as running for CLOSING_S."""
        self._closing.add(write)

    def since(self, ended_before: int) -> Sequence[Written] | None:
        """See WriteLog."""
        with self._lock:
            if self._ended_count - ended_before > len(self._ended):
                return None
            later = takewhile(lambda ended: ended[0] > ended_before, reversed(self._ended))
            return [*(tables for _, tables in later), *(write.tables for write in self._running)]


@dataclass(frozen=True)
class Fence:
    """A fence: reads after it was opened are of this moment for as long as it holds."""

    _writes: WriteLog
    _ended_before: int

    def holds(self, names: Iterable[TableName]) -> bool:
        """True if no write to the tables has run since, not even one that was running already."""
        seen = self._writes.since(self._ended_before)
        return seen is not None and not _held(names, seen)

    def is_quiet(self) -> bool:
        """True if no write at all has run since, not even one that was running already."""
        return self._writes.since(self._ended_before) == []

    def written(self, names: Iterable[TableName]) -> frozenset[TableName]:
        """The tables among these that may have been written since, or are being written."""
        seen = self._writes.since(self._ended_before)
        return frozenset(names) if seen is None else _held(names, seen)

    def changed_columns(self, names: Iterable[TableName]) -> frozenset[TableName]:
        """The tables among these that may have got other columns since, or are getting them."""
        seen = self._writes.since(self._ended_before)
        if seen is None:
            return frozenset(names)
        return _held(names, [write for write in seen if write.may_change_columns])


def _held(names: Iterable[TableName], seen: Sequence[Written]) -> frozenset[TableName]:
    return frozenset(name for name in names if any(write.hold(name) for write in seen))
