"""Limits of the filters that Spark sends to the metastore for a table: as configured, and lower after a refusal.

A refusal does not say what was wrong: a filter that is too long for the metastore's database, a value of a
partition that this cannot cast, a name that the grammar of a newer Hive takes for a keyword. All but the first
belong to one table. So the metastore is sent half as much of a table of which it refused a filter, and after
another refusal nothing: its partitions are then left out by Spark's planner alone.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Final

from rewriter import TableName
from rewriter.domains.consumers import ACCEPTS_NOTHING, METASTORES, halved
from rewriter.domains.widen import Consumer

_log = logging.getLogger(__name__)

# Spark's error where the metastore refused the partition filter of a statement (HiveShim.scala).
FILTER_REFUSED = "INTERNAL_ERROR_HIVE_METASTORE_PARTITION_FILTER"

# A limit that fails each time it comes back is still tried once a day: by then it may have been mended.
PERIOD_MAX_S: Final = 86_400.0

# Tables that are remembered, some 300 bytes each. The oldest goes, and then has to be refused again.
_TABLES_MAX: Final = 10_000


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
    refusal after a step back doubles the period; it is the first one again after a period at the configured
    limits.
    """

    def __init__(
        self, database: str, period_s: float = 600.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        # Seconds that the limits stay down the first time; may be changed at any time.
        self.period_s = period_s
        self._clock = clock
        self._lock = Lock()
        self._levels = (METASTORES[database], halved(METASTORES[database]), ACCEPTS_NOTHING)
        self._tables: dict[TableName, _Table] = {}
        self._lowered: Mapping[TableName, Consumer] = {}
        self._next_step_at = math.inf

    @property
    def consumer(self) -> Consumer:
        """The limits of a table without a recent refusal."""
        return self._levels[0]

    @property
    def lowered(self) -> Mapping[TableName, Consumer]:
        """The limits of the other tables at present."""
        with self._lock:
            self._grow()
            return self._lowered

    def refused(self, tables: frozenset[TableName]) -> None:
        """Lower the limits: the metastore refused a filter of one of these tables, part of it inserted by us."""
        with self._lock:
            self._grow()
            now = self._clock()
            for name in tables:
                self._lower(name, now)
            self._note()

    def _lower(self, name: TableName, now: float) -> None:
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
                *(table.period_s, limits.points_max, limits.ranges_max, name),
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
                    *(name, table.period_s, limits.points_max, limits.ranges_max),
                )
        self._note()

    def _note(self) -> None:
        levels = {name: table.level for name, table in self._tables.items() if table.level}
        self._lowered = {name: self._levels[level] for name, level in levels.items()}
        self._next_step_at = min((table.next_step_at for table in self._tables.values()), default=math.inf)
