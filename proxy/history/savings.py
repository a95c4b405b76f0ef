"""Time saved: each rewritten run is compared with originals of its fingerprint, cold ones or warm ones.

Like is compared with like. Spark lists the files of a partitioned fact once in a session, and again after a write.
The listing can take longer than all else. A run is cold if its original has to wait for a listing. A cold run is
compared with cold originals, a warm run with warm ones. The originals are those of any session: trials of the cost
gate, statements in shadow mode, runs with rewriting switched off. They count without the time for deciding, which
a server without the proxy does not take.

Time that was spent in vain counts against the sum: deciding about statements that went as they came, and the first
runs of those that fell back. If no such original is kept, an estimate stands beside the sum, and never in it: a
cold run has saved the listing of the partitions that it left out, less the time of deciding.
"""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from proxy.history.record import id_of_time
from proxy.session.feedback.cost_gate import PARTITION_LISTED_S

# Spark compiles a plan when it is new, so that the first of several originals takes longest. Cold ones are rare:
# the cost gate tries one, and no other.
_WARM_MIN: Final = 2
_COLD_MIN: Final = 1
# Savings over time are summed by half hours from a midnight. Time zones change their clocks by no less, so each
# half hour lies in one hour and one day.
_SLOT_S: Final = 1_800

# Rows are summed in Python: of a join of runs with originals SQLite 3.34 makes no index, and takes a minute for
# 200,000 of them. The plus keeps SQLite from the index of outcomes, by which it would read each row of the table.
_FINISHED: Final = "fingerprint IS NOT NULL AND run_s IS NOT NULL AND +outcome"
_ORIGINALS: Final = """
SELECT fingerprint, lists_files, run_s FROM statements AS s
WHERE {where} AND {finished} = 'original' AND lists_files IS NOT NULL ORDER BY run_s
"""
_PARTITIONS: Final = """
SELECT fingerprint, max(partitions_total) FROM statements AS s
WHERE {where} AND {finished} IN ('rewritten', 'original', 'fallback') GROUP BY +fingerprint
"""
_RUNS: Final = """
SELECT {column}, fingerprint, outcome, lists_files, deciding_s, run_s, partitions_total - partitions_kept
FROM statements AS s {join}
WHERE {where} AND {finished} IN ('rewritten', 'original', 'fallback')
"""
# The slot of the time at which a statement was sent. Its id has the same time, so a day's sum is of the day's ids.
_SLOT: Final = "CAST((started_at + deciding_s - {first!r}) / {slot_s} AS INTEGER)"


class Savings(msgspec.Struct):
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


@dataclass(frozen=True)
class Originals:
    """The originals that rewritten runs are compared with."""

    # By fingerprint, and by whether they were cold.
    medians: Mapping[tuple[str, bool], float]
    # The time to list a partition.
    partition_s: float

    @classmethod
    def of(cls, connection: sqlite3.Connection, where: str, values: Sequence[object]) -> Originals:
        """Read the originals among the statements that satisfy a condition."""
        medians = _medians(connection.execute(_ORIGINALS.format(where=where, finished=_FINISHED), values))
        if not any((fingerprint, not is_cold) in medians for fingerprint, is_cold in medians):
            return cls(medians, PARTITION_LISTED_S)
        partitions = dict(connection.execute(_PARTITIONS.format(where=where, finished=_FINISHED), values))
        return cls(medians, _partition_listed_s(medians, partitions))

    def compare(self, run: Sequence[Any], total: Savings) -> None:
        """Add to the total what a run (`runs_question`, without its name) has saved or has spent in vain."""
        fingerprint, outcome, is_cold, deciding_s, run_s, spared = run
        if outcome != "rewritten":
            spent_s = deciding_s + (run_s if outcome == "fallback" else 0.0)
            total.spent_s += spent_s
            total.measured_s -= spent_s
            return
        total.runs += 1
        median = self.medians.get((fingerprint, bool(is_cold))) if is_cold is not None else None
        if median is not None:
            total.measured += 1
            total.measured_s += median - deciding_s - run_s
        elif spared is not None and (is_cold or spared == 0):
            total.estimated += 1
            total.estimated_s += spared * self.partition_s - deciding_s


def runs_question(where: str, name: str, join: str = "") -> str:
    """The question for runs that finished: each with a name, such as a column, and all that it is compared by."""
    return _RUNS.format(where=where, finished=_FINISHED, column=name, join=join)


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
    originals = Originals.of(connection, where, values)
    sums: dict[Any, Savings] = defaultdict(Savings)
    question = runs_question(f"{where} AND s.id >= ?", *grouping)
    for name, *run in connection.execute(question, (*values, since)):
        originals.compare(run, sums[name])
    return dict(sums)


def _medians(originals: Iterable[tuple[str, int, float]]) -> dict[tuple[str, bool], float]:
    """By fingerprint and by whether they were cold: the median of sorted originals, the lower one of two."""
    found: dict[tuple[str, bool], list[float]] = defaultdict(list)
    for fingerprint, is_cold, run_s in originals:
        found[fingerprint, bool(is_cold)].append(run_s)
    return {
        kind: times[(len(times) - 1) // 2]
        for kind, times in found.items()
        if len(times) >= (_COLD_MIN if kind[1] else _WARM_MIN)
    }


def _partition_listed_s(medians: Mapping[tuple[str, bool], float], partitions: Mapping[str, int | None]) -> float:
    """The time to list a partition, where a fingerprint has both cold and warm originals; else what is usual."""
    compared = [
        (median - medians[fingerprint, False], count)
        for (fingerprint, is_cold), median in medians.items()
        if is_cold and (fingerprint, False) in medians and (count := partitions.get(fingerprint))
    ]
    listed = sum(count for _, count in compared)
    return max(sum(seconds for seconds, _ in compared), 0.0) / listed if listed else PARTITION_LISTED_S


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
