"""Tables whose shared lists have to be dropped, or were: lists that were read before the drop are not used."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from threading import Lock
from typing import Final

# Names that wait, and names whose last drop is remembered. With more that wait, lists of all tables are dropped.
_NAMES_MAX: Final = 10_000


class DroppedTables:
    """Names of tables, in lower case. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: set[str] = set()
        self._is_everything = False
        # Each drop has a number. Lists that were read before the floor may have been dropped since.
        self._drops = 0
        self._last_drops: dict[str, int] = {}
        self._floor = 0

    def add(self, names: AbstractSet[str]) -> None:
        """From now on, the shared lists of these tables are not used until they are dropped."""
        with self._lock:
            self._drops += 1
            self._waiting |= names
            self._last_drops.update(dict.fromkeys(names, self._drops))
            if len(self._waiting) > _NAMES_MAX:
                self._is_everything, self._floor = True, self._drops
            if len(self._last_drops) > _NAMES_MAX:
                self._last_drops.clear()
                self._floor = self._drops

    def is_waiting(self, name: str) -> bool:
        """True if shared lists of the table are still to be dropped."""
        with self._lock:
            return self._is_everything or name in self._waiting

    def moment(self, name: str) -> int:
        """A number that changes as soon as lists of the table are dropped again."""
        with self._lock:
            return max(self._last_drops.get(name, 0), self._floor)

    @property
    def has_waiting(self) -> bool:
        """True if any lists are to be dropped."""
        with self._lock:
            return self._is_everything or bool(self._waiting)

    def waiting(self) -> tuple[int, frozenset[str] | None]:
        """The number of the last drop, and the tables whose lists are to be dropped: None stands for all."""
        with self._lock:
            return self._drops, None if self._is_everything else frozenset(self._waiting)

    def dropped(self, until: int) -> None:
        """The lists are dropped of all tables that waited at that drop."""
        with self._lock:
            later = {name for name in self._waiting if self._last_drops.get(name, self._floor) > until}
            if not self._is_everything or self._floor <= until:
                self._is_everything, self._waiting = False, later
