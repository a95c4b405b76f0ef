"""The tables whose files Spark has listed for a session.

Spark keeps the files of a partitioned table with the session that listed them (CatalogFileIndex, of which the
catalog of each session has its own): 1,800 partitions take the first statement that prunes none of them some
seconds, and those that follow in its session nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from math import inf
from typing import Final

# A session of a tool reads some dozens of facts, in some dozens of combinations.
_TABLES_MAX: Final = 1_000

# After so long a table may have been written by another way, or have left Spark's cache.
_IDLE_S: Final = 3_600.0


class SessionListings:
    """The tables that were listed in one session, and the seconds that rewritten runs may have lost meanwhile."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._listed_at: dict[str, float] = {}
        self._owed_s: dict[Collection[str], float] = {}

    def has(self, tables: Collection[str], written_at: Mapping[str, float]) -> bool:
        """Whether the files of all of them were listed, and none was written since."""
        now = self._clock()
        return all(
            now - _IDLE_S <= self._listed_at.get(name, -inf) > written_at.get(name, -inf) for name in tables
        )

    def note(self, tables: Collection[str]) -> None:
        """Count tables as listed: a statement that prunes nothing has read them."""
        self._owed_s.pop(tables, None)
        if len(self._listed_at) >= _TABLES_MAX:
            self._listed_at.clear()
        self._listed_at.update(dict.fromkeys(tables, self._clock()))

    def owed_s(self, tables: Collection[str]) -> float:
        """The seconds that rewritten runs on these tables may have lost while they were not listed."""
        return self._owed_s.get(tables, 0.0)

    def owe(self, tables: Collection[str], seconds: float) -> None:
        """Add the seconds that a rewritten run may have lost against the original, for these tables."""
        if len(self._owed_s) >= _TABLES_MAX:
            self._owed_s.clear()
        self._owed_s[tables] = self.owed_s(tables) + seconds
