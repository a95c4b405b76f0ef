"""Digests: one line for each fingerprint, of the runs that are kept. Every number is of runs that were made.

The times with and without us stand beside one another where runs of both kinds are kept: originals run as trials
of the cost gate, while the fingerprint is quarantined, or while a session has rewriting switched off.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from proxy.history.savings import Originals, Savings, runs_question

# Later runs that take this many times as long as earlier ones are called slower.
_SLOWER: Final = 1.5
# Characters of a text in a list.
EXCERPT_CHARS: Final = 300

# SQLite sums by the index of sums, and reads the texts only then: rows take kilobytes.
_LINES: Final = """
SELECT sums.*, substr(last.original, 1, {chars}) FROM (
  SELECT fingerprint, count(*), total(outcome = 'rewritten'), total(outcome = 'fallback'),
    total(outcome = 'failed'), total(total_s) AS seconds,
    total(CASE WHEN outcome = 'rewritten' THEN partitions_total - partitions_kept END),
    total(CASE WHEN outcome = 'rewritten' THEN partitions_total END),
    total(CASE WHEN outcome = 'rewritten' THEN bytes_total - bytes_kept END),
    min(started_at), max(started_at), max(id) AS last_id
  FROM statements AS s WHERE {where} AND +fingerprint IS NOT NULL GROUP BY +fingerprint
  ORDER BY seconds DESC LIMIT ?
) AS sums JOIN statements AS last ON last.id = last_id ORDER BY seconds DESC
"""


class RunTimes(msgspec.Struct):
    """The runs of one kind that finished, and how long they took, deciding included."""

    runs: int
    median_s: float
    p95_s: float
    # Of all of them together.
    sum_s: float

    @classmethod
    def of(cls, times: Sequence[float]) -> RunTimes:
        """Sum up sorted times: the median and the 95th percentile are those of a run that was made."""
        count = len(times)
        return cls(count, times[(count - 1) // 2], times[(count * 95 + 99) // 100 - 1], sum(times))


class Digest(msgspec.Struct, kw_only=True):
    """The runs of one fingerprint.

    Times are null where no such run is kept. The last two are of runs of both kinds, in two times that are
    compared: the last 24 hours and before, or two days.
    """

    fingerprint: str
    runs: int
    rewritten: int
    fallbacks: int
    failures: int
    seconds: float
    # Of finished rewritten runs of which the numbers are known.
    partitions_spared: int
    partitions_total: int
    bytes_spared: int
    first_seen: float
    last_seen: float
    last_id: str
    excerpt: str
    times_rewritten: RunTimes | None = None
    times_original: RunTimes | None = None
    times_later: RunTimes | None = None
    times_earlier: RunTimes | None = None
    savings: Savings = msgspec.field(default_factory=Savings)
    reasons: list[str] = []

    @property
    def is_slower(self) -> bool:
        """True if the later runs took half as long again as the earlier ones."""
        later, earlier = self.times_later, self.times_earlier
        return later is not None and earlier is not None and later.median_s > _SLOWER * earlier.median_s


class TimeSpan(msgspec.Struct, frozen=True):
    """A span of time by the ids of its statements: from `start` up to `end`, which is not part of it."""

    start: str
    end: str


def digests(
    connection: sqlite3.Connection,
    where: str,
    values: list[object],
    compared: tuple[TimeSpan, TimeSpan],
    rows: int,
) -> list[Digest]:
    """The digests of statements that satisfy a condition; the earlier and the later of two times are compared."""
    found = connection.execute(_LINES.format(where=where, chars=EXCERPT_CHARS), (*values, rows)).fetchall()
    lines = {row[0]: _digest(row) for row in found}
    _add_runs(connection, where, values, lines, compared)
    named = connection.execute(
        "SELECT DISTINCT s.fingerprint, r.reason"  # noqa: S608 - a condition of ours
        " FROM reasons AS r JOIN statements AS s INDEXED BY statements_sums ON s.id = r.id"
        f" WHERE {where} AND s.fingerprint IS NOT NULL ORDER BY r.reason",
        values,
    )
    for fingerprint, reason in named:
        if fingerprint in lines:
            lines[fingerprint].reasons.append(reason)
    return list(lines.values())


def _add_runs(
    connection: sqlite3.Connection,
    where: str,
    values: list[object],
    lines: Mapping[str, Digest],
    compared: tuple[TimeSpan, TimeSpan],
) -> None:
    """Add the times and the savings of runs."""
    # Sorted in Python: windows over 200,000 rows take SQLite three times as long.
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    originals = Originals.of(connection, where, values)
    earlier, later = compared
    for identifier, *run in connection.execute(runs_question(where, "s.id"), values):
        fingerprint, outcome, _, deciding_s, run_s, _ = run
        if fingerprint not in lines:
            continue
        originals.compare(run, lines[fingerprint].savings)
        if outcome == "fallback":
            continue
        took = deciding_s + run_s
        times[fingerprint, f"times_{outcome}"].append(took)
        if earlier.start <= identifier < earlier.end:
            times[fingerprint, "times_earlier"].append(took)
        elif later.start <= identifier < later.end:
            times[fingerprint, "times_later"].append(took)
    for (fingerprint, field), found in times.items():
        setattr(lines[fingerprint], field, RunTimes.of(sorted(found)))


def _digest(row: tuple[Any, ...]) -> Digest:
    fingerprint, *counts = row[:5]
    seconds, *spared = row[5:9]
    first, last, last_id, excerpt = row[9:]
    runs, rewritten, fallbacks, failures = map(int, counts)
    partitions_spared, partitions_total, bytes_spared = map(int, spared)
    return Digest(
        fingerprint=fingerprint,
        runs=runs,
        rewritten=rewritten,
        fallbacks=fallbacks,
        failures=failures,
        seconds=seconds,
        partitions_spared=partitions_spared,
        partitions_total=partitions_total,
        bytes_spared=bytes_spared,
        first_seen=first,
        last_seen=last,
        last_id=last_id,
        excerpt=excerpt,
    )
