"""Limits of the filters that Spark sends to the metastore for a table: as configured, and lower after a refusal.

A refusal does not say what was wrong: a filter that is too long for the metastore's database, a value of a
partition that the database cannot cast, a name that the grammar of a newer Hive takes for a keyword. All but the
first belong to one table. So after a refusal the metastore is sent half as much of that table, and after another
refusal nothing: then only Spark's planner leaves out partitions. The proxy knows a refusal by words in an error,
and a user can make a statement fail with these words. So it counts for that user's statements, and for those of
all once another user has seen the same.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final, NamedTuple

from rewriter import TableName
from rewriter.domains.consumers import ACCEPTS_NOTHING, METASTORES, halved
from rewriter.domains.widen import Consumer

_log = logging.getLogger(__name__)

# A limit that fails each time it comes back is still tried once a day: by then it may have been mended.
PERIOD_MAX_S: Final = 86_400.0

# Users whose filters of a table were refused before limits come down for all.
_OWNERS: Final = 2

# Tables that are remembered, some 300 bytes each. The oldest goes, and then has to be refused again.
_TABLES_MAX: Final = 10_000


class _UsersTable(NamedTuple):
    """A table as it stands in the statements of one user, or of all if the owner is empty."""

    name: TableName
    owner: str = ""


@dataclass
class _Table:
    """The lowered limits of a table, and the time of the next step back."""

    period_s: float
    level: int = 0
    has_grown: bool = False
    next_step_at: float = math.inf


class MetastoreLimits:
    """The limits that all sessions of the process share, for each table by itself.

    They come down with each refusal, and grow back step by step. Each step takes a period without a refusal. A
    refusal after a step back doubles the period; after a period at the configured limits, the first period counts
    again.
    """

    def __init__(
        self, database: str, period_s: float = 600.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        # Seconds that the limits stay down the first time; may be changed at any time.
        self.period_s = period_s
        self._clock = clock
        self._lock = Lock()
        self._levels = (METASTORES[database], halved(METASTORES[database]), ACCEPTS_NOTHING)
        self._tables: dict[_UsersTable, _Table] = {}
        # The levels of lowered tables, by owner.
        self._lowered: dict[str, dict[TableName, int]] = {}
        self._next_step_at = math.inf

    @property
    def consumer(self) -> Consumer:
        """The limits of a table without a recent refusal."""
        return self._levels[0]

    def lowered(self, owner: str = "") -> Mapping[TableName, Consumer]:
        """The limits of tables with a recent refusal, in statements of a user (`cost_gate.owner_of`)."""
        with self._lock:
            self._grow()
            levels = dict(self._lowered.get("", {}))
            for name, level in self._lowered.get(owner, {}).items():
                levels[name] = max(level, levels.get(name, 0))
            return {name: self._levels[level] for name, level in levels.items()}

    @property
    def lowered_count(self) -> int:
        """The number of tables for which somebody's statements send less at present."""
        with self._lock:
            self._grow()
            return len({name for levels in self._lowered.values() for name in levels})

    def refused(self, tables: frozenset[TableName], owner: str = "") -> None:
        """Lower the limits: the metastore refused a filter of one of these tables, part of it inserted by us."""
        with self._lock:
            self._grow()
            now = self._clock()
            for name in tables:
                self._lower(_UsersTable(name, owner), now)
                self._lower_for_all(name, now)
            self._note()

    def _lower_for_all(self, name: TableName, now: float) -> None:
        """Lower the limits of a table for all as far as two users have seen its filters refused."""
        for_all = self._tables.get(_UsersTable(name))
        seen = sorted((table.level for item, table in self._tables.items() if item.name == name and item.owner))
        if len(seen) >= _OWNERS and seen[-_OWNERS] > (for_all.level if for_all is not None else 0):
            self._lower(_UsersTable(name), now)

    def _lower(self, name: _UsersTable, now: float) -> None:
        table = self._tables.pop(name, None) or _Table(self.period_s)
        if table.has_grown:
            table.period_s = min(2 * table.period_s, PERIOD_MAX_S)
        table.has_grown = False
        table.next_step_at = now + table.period_s
        if len(self._tables) >= _TABLES_MAX:
            del self._tables[next(iter(self._tables))]
        self._tables[name] = table
        if table.level + 1 < len(self._levels):
            table.level += 1
            limits = self._levels[table.level]
            _log.warning(
                "the metastore refused a partition filter; for %g s it is sent %d points or %d ranges at most of"
                " the table %s (rewrite.metastore says which database is behind it)",
                *(table.period_s, limits.points_max, limits.ranges_max, _shown(name)),
            )

    def _grow(self) -> None:
        now = self._clock()
        if now < self._next_step_at:
            return
        for name, table in list(self._tables.items()):
            while now >= table.next_step_at:
                table.next_step_at += table.period_s
                table.has_grown = table.level > 0
                if not table.has_grown:
                    del self._tables[name]
                    break
                table.level -= 1
                limits = self._levels[table.level]
                _log.info(
                    "no partition filter of the table %s was refused for %g s; the metastore is sent %d points"
                    " or %d ranges at most of it again",
                    *(_shown(name), table.period_s, limits.points_max, limits.ranges_max),
                )
        self._note()

    def _note(self) -> None:
        self._lowered = {}
        for (name, owner), table in self._tables.items():
            if table.level:
                self._lowered.setdefault(owner, {})[name] = table.level
        self._next_step_at = min((table.next_step_at for table in self._tables.values()), default=math.inf)


def _shown(item: _UsersTable) -> str:
    return f"{item.name} in statements of one user" if item.owner else str(item.name)
