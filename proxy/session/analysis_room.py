"""The room for analysis: the memory that trees of statements may take at once, all sessions together.

A tree is a hundred times as large as its text, and lives until the keys of its statement have been asked for. A
statement for which there is no room goes on as the original.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from threading import Lock, current_thread, main_thread
from typing import Final

# Measured as 140 to 260 for the tree of one parse (lists of literals, columns, CASE, UNION). The plan adds parts,
# and the rewritten text is parsed as well, for the proof that nothing else has changed.
BYTES_PER_CHARACTER: Final = 600
# `take` collects garbage no more often than this. In between, Python's collector runs by its own thresholds.
COLLECTING_EVERY_S: Final = 5.0


def _is_beside_main_thread() -> bool:
    return current_thread() is not main_thread()


class AnalysisRoom:
    """The room of a process. Used by several threads at once.

    `may_collect` is true in threads that may stand still for a moment: not in the main one, whose event loop
    serves all connections.
    """

    def __init__(
        self,
        bytes_max: int,
        collect: Callable[[], object] = gc.collect,
        clock: Callable[[], float] = time.monotonic,
        may_collect: Callable[[], bool] = _is_beside_main_thread,
    ) -> None:
        self._characters_max = bytes_max // BYTES_PER_CHARACTER
        self._collect = collect
        self._clock = clock
        self._may_collect = may_collect
        self._collected_at = -math.inf
        self._lock = Lock()
        self._taken = 0
        # The characters of trees that are no longer used. Their nodes name their parents, so only the collector
        # frees their memory. By itself it looks for them when a quarter of all objects are new.
        self._uncollected = 0
        # Statements for which there was no room.
        self.refused = 0

    def take(self, characters: int) -> bool:
        """Take room for a statement; False where there is too little."""
        if self._has_to_collect(characters):
            # It takes some milliseconds: objects from the proxy's start are frozen (proxy/bootstrap.py).
            self._collect()
        with self._lock:
            if self._taken + characters > self._characters_max:
                self.refused += 1
                return False
            self._taken += characters
        return True

    def give_back(self, characters: int) -> None:
        """Give back the room of a statement whose trees are no longer used."""
        with self._lock:
            self._taken -= characters
            self._uncollected += characters

    def _has_to_collect(self, characters: int) -> bool:
        if not self._may_collect():
            return False
        with self._lock:
            now = self._clock()
            if now - self._collected_at < COLLECTING_EVERY_S:
                return False
            fits = self._taken + characters <= self._characters_max
            has_to = fits and self._taken + self._uncollected + characters > self._characters_max
            if has_to:
                self._uncollected, self._collected_at = 0, now
            return has_to
