"""Time saved: each rewritten run against originals of its fingerprint that found the server as it did.

Like is compared with like. Spark lists the files of a partitioned fact once in a session, and again after a
write, which can take longer than all else. A cold run, for whose original it would have to, is compared with
originals for which it had to; a warm one with the others. The originals are those of any session: trials of the
cost gate, statements in shadow mode, runs with rewriting switched off. They count without the time for deciding,
which a server without the proxy does not take.

Time that was spent in vain counts against it: deciding about statements that went as they came, and the first runs
of those that fell back. Where no such original is kept, an estimate stands beside the sum, and never in it: a cold
run has saved the listing of the partitions that it left out, less the time of deciding.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from proxy.history.record import id_of_time
from proxy.session.feedback.cost_gate import PARTITION_LISTED_S

# Spark compiles a plan when it is new, so that the first of several originals takes longest. Cold ones are rare:
# the cost gate tries one, and no other.
_WARM_MIN: Final = 2
_COLD_MIN: Final = 1
# Savings over time are asked for by half hours from a midnight: by no less do zones change their clocks, so that
# each lies in one hour and one day.
_SLOT_S: Final = 1_800

# The median is that of a run that was made, the lower one of two. The last join begins with the one row of
# `listing`: with it behind, SQLite makes no index of `originals`, and looks through all of them for each run.
_SAVED: Final = """
WITH runs AS (
  SELECT id, started_at, fingerprint, user, client, label, outcome, lists_files AS is_cold, deciding_s, run_s,
    partitions_total, partitions_total - partitions_kept AS spared
  FROM statements AS s
  WHERE {where} AND fingerprint IS NOT NULL AND run_s IS NOT NULL
    AND +outcome IN ('rewritten', 'original', 'fallback')
), placed AS (
  SELECT fingerprint, is_cold, run_s,
    row_number() OVER (PARTITION BY fingerprint, is_cold ORDER BY run_s) AS place,
    count(*) OVER (PARTITION BY fingerprint, is_cold) AS total
  FROM runs WHERE outcome = 'original' AND is_cold IS NOT NULL
), originals AS (
  SELECT fingerprint, is_cold, run_s AS median FROM placed
  WHERE place = (total + 1) / 2 AND total >= iif(is_cold, {cold_min}, {warm_min})
), listing AS (
  SELECT coalesce(max(sum(cold.median - warm.median), 0.0) / sum(partitions), {partition_s}) AS partition_s
  FROM originals AS cold JOIN originals AS warm USING (fingerprint)
  JOIN (SELECT fingerprint, max(partitions_total) AS partitions FROM runs GROUP BY fingerprint) USING (fingerprint)
  WHERE cold.is_cold AND NOT warm.is_cold AND partitions > 0
), compared AS MATERIALIZED (
  SELECT runs.*, median, outcome = 'rewritten' AS is_rewritten, CASE
      WHEN median IS NULL AND (is_cold OR spared = 0) THEN spared * partition_s - deciding_s
    END AS estimate,
    CASE outcome WHEN 'original' THEN deciding_s WHEN 'fallback' THEN deciding_s + run_s ELSE 0.0 END AS spent_s
  FROM listing CROSS JOIN runs LEFT JOIN originals USING (fingerprint, is_cold)
  WHERE id >= ?
)
SELECT {column}, sum(is_rewritten), count(median) FILTER (WHERE is_rewritten),
  total(median - deciding_s - run_s) FILTER (WHERE is_rewritten) - total(spent_s), total(spent_s),
  count(estimate) FILTER (WHERE is_rewritten), total(estimate) FILTER (WHERE is_rewritten)
FROM compared AS s {join} GROUP BY 1
"""
# An id has the time at which its statement was sent, as this has: a day's sum is of the statements of its ids.
_SLOT: Final = "CAST((started_at + deciding_s - {first!r}) / {slot_s} AS INTEGER)"


class Savings(msgspec.Struct, frozen=True):
    """The seconds that rewriting has saved; below zero, it has cost time."""

    # Rewritten statements that finished, and those of them for which there are originals to compare with.
    runs: int = 0
    measured: int = 0
    # Of those that are compared, less the time spent in vain.
    measured_s: float = 0.0
    spent_s: float = 0.0
    # The others as far as there is an estimate.
    estimated: int = 0
    estimated_s: float = 0.0

    @property
    def is_known(self) -> bool:
        """True if any is compared with originals."""
        return self.measured > 0

    @property
    def rank(self) -> tuple[bool, float]:
        """Sorts by the time saved, estimates behind what was measured."""
        return self.is_known, self.measured_s if self.is_known else self.estimated_s


def savings(
    connection: sqlite3.Connection,
    where: str,
    values: Sequence[object],
    since: str = "",
    grouping: tuple[str, str] = ("s.fingerprint", ""),
) -> dict[Any, Savings]:
    """The savings since an id, by originals of all statements that satisfy a condition.

    They are grouped by a column of `statements AS s`, or of a table that is joined with it.
    """
    # The time to list a partition is measured where a fingerprint has both cold and warm originals.
    terms = {"cold_min": _COLD_MIN, "warm_min": _WARM_MIN, "partition_s": PARTITION_LISTED_S}
    question = _SAVED.format(where=where, column=grouping[0], join=grouping[1], **terms)
    rows = connection.execute(question, (*values, since))
    return {name: Savings(*row) for name, *row in rows}


def savings_over_time(
    connection: sqlite3.Connection, where: str, values: Sequence[object], midnights: Sequence[float]
) -> tuple[dict[float, Savings], dict[float, Savings]]:
    """The savings of the last 24 hours and of the days that begin at midnights, by start and by such originals."""
    first = midnights[0]
    slot = _SLOT.format(first=first, slot_s=_SLOT_S)
    slots = savings(connection, where, values, id_of_time(first), (slot, ""))
    this_hour = first + (time.time() - first) // 3_600 * 3_600
    hours = [this_hour - 3_600 * back for back in reversed(range(24))]
    return _between(slots, first, hours), _between(slots, first, midnights)


def _between(slots: Mapping[int, Savings], first: float, starts: Sequence[float]) -> dict[float, Savings]:
    """The slots summed from each of the starts to the next one."""
    numbers = [round((start - first) / _SLOT_S) for start in starts] + [max(slots, default=0) + 1]
    return {
        start: total(one for slot, one in slots.items() if begin <= slot < end)
        for start, begin, end in zip(starts, numbers, numbers[1:], strict=False)
    }


def total(parts: Iterable[Savings]) -> Savings:
    """The sum."""
    rows = [msgspec.structs.astuple(part) for part in parts]
    return Savings(*map(sum, zip(*rows, strict=True))) if rows else Savings()
