"""The tables whose files Spark has listed for a session.

Spark keeps the files of a partitioned table with the session that listed them: each session's catalog has a
CatalogFileIndex of its own. For 1,800 partitions, the first statement that prunes none of them spends some seconds
on it, and later ones in its session nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from math import inf, isfinite
from typing import Final

# A session of a tool reads some dozens of facts, in some dozens of combinations.
_TABLES_MAX: Final = 1_000

# After so long a table may have been written by another way, or have left Spark's cache.
_IDLE_S: Final = 3_600.0


class Listing(Enum):
    """The state in which an original finds the listing of its facts' files in a session."""

    LISTED = "listed"
    UNLISTED = "not listed, as far as known"
    WRITTEN = "not listed since a write that went through the proxy"


class SessionListings:
    """The tables that were listed in one session, and the seconds that rewritten runs have lost meanwhile."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._opened_at = clock()
        self._listed_at: dict[str, float] = {}
        # When a statement last read each table, narrowed or not.
        self._read_at: dict[str, float] = {}
        # The seconds lost for some tables, and when some were last lost.
        self._lost: dict[Collection[str], tuple[float, float]] = {}

    def listing(self, tables: Collection[str], written_at: Mapping[str, float]) -> Listing:
        """The state of the files of all of them: listed, or why not."""
        oldest = self._clock() - _IDLE_S
        listed_at = {name: self._listed_at.get(name, -inf) for name in tables}
        if any(max(at, self._opened_at) <= written_at.get(name, -inf) for name, at in listed_at.items()):
            return Listing.WRITTEN
        return Listing.LISTED if all(at >= oldest for at in listed_at.values()) else Listing.UNLISTED

    def tables_listed(self, tables: Collection[str]) -> None:
        """Count tables as listed, and as read: a statement that prunes nothing has read them."""
        self.drop_lost(tables)
        self.tables_read(tables)
        if len(self._listed_at) >= _TABLES_MAX:
            self._listed_at.clear()
        self._listed_at.update(dict.fromkeys(tables, self._clock()))

    def were_read(self, tables: Collection[str], written_at: Mapping[str, float]) -> bool:
        """True if each was read since it was written: by originals alone, it would be listed by now."""
        oldest = self._clock() - _IDLE_S
        read_at = {name: self._read_at.get(name, -inf) for name in tables}
        return all(at >= oldest and at > written_at.get(name, -inf) for name, at in read_at.items())

    def tables_read(self, tables: Collection[str]) -> None:
        """Count tables as read."""
        if len(self._read_at) >= _TABLES_MAX:
            self._read_at.clear()
        self._read_at.update(dict.fromkeys(tables, self._clock()))

    def lost_s(self, tables: Collection[str], written_at: Mapping[str, float]) -> float:
        """The seconds that rewritten runs on these tables have lost since they were last listed, or written."""
        lost_s, lost_at = self._lost.get(tables, (0.0, -inf))
        return lost_s if all(lost_at > written_at.get(name, -inf) for name in tables) else 0.0

    def add_lost(self, tables: Collection[str], seconds: float, written_at: Mapping[str, float]) -> None:
        """Add the seconds that a rewritten run has lost against an original on listed files."""
        lost_s = self.lost_s(tables, written_at) + (max(0.0, seconds) if isfinite(seconds) else 0.0)
        if len(self._lost) >= _TABLES_MAX:
            self._lost.clear()
        self._lost[tables] = lost_s, self._clock()

    def drop_lost(self, tables: Collection[str]) -> None:
        """Forget the seconds lost for these tables: an original is about to have their files listed."""
        _ = self._lost.pop(tables, None)
