"""What the metastore behind Spark digests: as configured, and less for a while once it has failed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import Final

from rewriter.consumers import METASTORES, halved
from rewriter.widen import Consumer

_log = logging.getLogger(__name__)

# How Spark names it when the metastore refused the partition filter of a statement (HiveShim.scala).
FILTER_REFUSED = "INTERNAL_ERROR_HIVE_METASTORE_PARTITION_FILTER"

# What does harm again each time it comes back is still tried once a day: by then somebody may have mended it.
PERIOD_MAX_S: Final = 86_400.0


class Metastore:
    """The limits that all sessions of the process share. They are halved by a refusal, and grow back step by step.

    Each step takes a period without a refusal. A refusal after a step back doubles the period; it is the first one
    again after a period at the configured limits.
    """

    def __init__(
        self, database: str, period_s: float = 600.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        # For how long the limits stay halved the first time; may be changed at any time.
        self.period_s = period_s
        self._clock = clock
        self._lock = Lock()
        # The limits halved so many times; the last ones hold.
        self._levels = [METASTORES[database]]
        self._current_period_s = period_s
        self._has_grown = False
        self._next_step_at = 0.0

    @property
    def consumer(self) -> Consumer:
        """What it is sent at most now."""
        with self._lock:
            self._grow()
            return self._levels[-1]

    @property
    def halvings(self) -> int:
        """How many times the configured limits are halved now."""
        with self._lock:
            self._grow()
            return len(self._levels) - 1

    def refused(self) -> None:
        """It refused a filter that we have a part in: what we send from now on is half as long."""
        with self._lock:
            self._grow()
            if self._has_grown:
                self._current_period_s = min(2 * self._current_period_s, PERIOD_MAX_S)
            elif len(self._levels) == 1:
                self._current_period_s = self.period_s
            self._has_grown = False
            self._next_step_at = self._clock() + self._current_period_s
            before = self._levels[-1]
            if halved(before) != before:
                self._levels.append(halved(before))
                self._log_halved(before)

    def _grow(self) -> None:
        now = self._clock()
        while now >= self._next_step_at and (len(self._levels) > 1 or self._has_grown):
            self._next_step_at += self._current_period_s
            self._has_grown = len(self._levels) > 1
            if self._has_grown:
                _ = self._levels.pop()
                limits = self._levels[-1]
                _log.info(
                    "no partition filter was refused for %g s; one is sent %d points or %d ranges at most again",
                    *(self._current_period_s, limits.points_max, limits.ranges_max),
                )

    def _log_halved(self, before: Consumer) -> None:
        now = self._levels[-1]
        _log.warning(
            "the metastore refused a partition filter; for %g s it is sent %d points or %d ranges at most,"
            " instead of %d and %d (rewrite.metastore says which database is behind it)",
            *(self._current_period_s, now.points_max, now.ranges_max, before.points_max, before.ranges_max),
        )
