"""Splits: the number that Spark makes of a scan's files, and a smaller number that does the same work.

Each split is a task, and a task takes some milliseconds before it reads anything. Spark packs small files, but
counts each as four megabytes more than it is (`spark.sql.files.openCostInBytes`): four thousand of 5 KB are 125
splits. openLooKeng merges small splits before it schedules them; in the same way a scan can ask for fewer by a
hint: `COALESCE(n)` reads runs of splits that follow one another, as even in number as can be, in one task each.

The known sizes of files may be old. So the number of splits never decides which rows are read, but only how.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from rewriter.files.file_facts import FileFacts
from rewriter.vocabulary.identifiers import TableName

_MEBIBYTE = 1 << 20

# Splits of one scan that are computed. A scan with more has large files, or long tasks.
_SPLITS_MAX = 100_000

# A single task for all of a scan lets Spark leave out the exchange above, and all that follows is one task too.
_GROUPS_MIN = 2

# The least factor by which splits get fewer. A smaller one changes little, and known sizes may be as far off.
_FEWER_MIN = 2

# `TableScanUtil.MIN_SPLIT_SIZE`.
_ICEBERG_SPLIT_BYTES_MIN = 16 * _MEBIBYTE


@dataclass(frozen=True)
class Packing:
    """Packing of files into splits by the settings of a session's Spark."""

    # The tasks that run at once (`leafNodeDefaultParallelism`).
    slots: int
    # spark.sql.files.maxPartitionBytes
    split_bytes_max: int = 128 * _MEBIBYTE
    # spark.sql.files.openCostInBytes
    open_cost_bytes: int = 4 * _MEBIBYTE
    # False if executors may be added while a statement runs, or if that was not asked.
    has_fixed_slots: bool = False

    def bytes_max(self, sizes: Sequence[int]) -> int:
        """The size up to which files are packed: less than the setting if slots would have no work otherwise.

        `FilePartition.maxSplitBytes` (sql/core, execution/datasources/FilePartition.scala).
        """
        each_slot = (sum(sizes) + len(sizes) * self.open_cost_bytes) // max(1, self.slots)
        return max(1, min(self.split_bytes_max, max(self.open_cost_bytes, each_slot)))

    def needed(self, size_bytes: int) -> int:
        """The room that a split must have left for a file to be put into it."""
        return size_bytes

    def taken(self, size_bytes: int) -> int:
        """The room that the file then takes."""
        return size_bytes + self.open_cost_bytes


@dataclass(frozen=True)
class IcebergPacking(Packing):
    """Packing of files by Iceberg for Spark, unless a property of the table changes it (`read.split.*`).

    Its splits are smaller for small tables, in whole, not by slots alone: 4,000 files of 5 KB are a thousand.
    """

    def bytes_max(self, sizes: Sequence[int]) -> int:
        """`TableScanUtil.adjustSplitSize` (core, org.apache.iceberg.util)."""
        total, least = sum(sizes), min(_ICEBERG_SPLIT_BYTES_MIN, self.split_bytes_max)
        if -(-total // self.split_bytes_max) >= self.slots:
            return self.split_bytes_max
        return max(total // max(1, self.slots), least)

    def needed(self, size_bytes: int) -> int:
        """A file counts with its size, but with no less than the cost to open it (`TableScanUtil.planTasks`)."""
        return max(size_bytes, self.open_cost_bytes)

    def taken(self, size_bytes: int) -> int:
        """The room that the file then takes: as much as it needed."""
        return self.needed(size_bytes)


class Chunk(NamedTuple):
    """A file by its place among the sizes, or a part of one."""

    file: int
    start: int
    size_bytes: int


Split: TypeAlias = tuple[Chunk, ...]


def packed(sizes: Sequence[int], packing: Packing) -> list[Split]:
    """The splits that Spark makes of files: the largest first, each packed until the next one does not fit.

    `FilePartition.getFilePartitions`, of formats in which a file can be split. Empty files are in none. Iceberg
    takes files in an order of its own, and looks for room in the last ten splits: small files come out the same.
    """
    bytes_max = packing.bytes_max(sizes)
    chunks = [
        Chunk(number, start, min(bytes_max, size - start))
        for number, size in enumerate(sizes)
        for start in range(0, size, bytes_max)
    ]
    splits: list[Split] = []
    current: list[Chunk] = []
    filled = 0
    for chunk in sorted(chunks, key=lambda chunk: chunk.size_bytes, reverse=True):
        if current and filled + packing.needed(chunk.size_bytes) > bytes_max:
            splits.append(tuple(current))
            current, filled = [], 0
        current.append(chunk)
        filled += packing.taken(chunk.size_bytes)
    return [*splits, tuple(current)] if current else splits


def runs(splits: Sequence[Split], count: int) -> Iterator[Sequence[Split]]:
    """The splits in so many groups, as COALESCE makes them: `DefaultPartitionCoalescer` in CoalescedRDD.scala.

    If Spark knows the hosts of the files it groups by hosts first, and its groups are about as long.

    >>> [len(run) for run in runs([()] * 7, 3)]
    [2, 2, 3]
    """
    ends = [number * len(splits) // count for number in range(count + 1)]
    return (splits[start:stop] for start, stop in pairwise(ends))


@dataclass(frozen=True)
class Grouping:
    """The number of splits that Spark makes of a scan's files, and the number of groups; equal if not grouped."""

    before: int
    after: int

    @property
    def hint(self) -> int | None:
        """The number that the scan asks for, if it does."""
        return self.after if self.after < self.before else None


@dataclass(frozen=True)
class GroupLimits:
    """Limits of grouping. The configuration states the reasons where it sets them."""

    splits_grouped_max: int = 10
    splits_saved_min: int = 28
    # Rows of the scan for each split that is saved.
    rows_per_saved_max: int = 100_000


@dataclass(frozen=True)
class SplitHints:
    """The packing of files into splits by Spark, for tables whose scans may be read in fewer splits."""

    packings: Mapping[TableName, Packing]
    limits: GroupLimits = field(default_factory=GroupLimits)


def grouping(sizes: Sequence[int], packing: Packing, limits: GroupLimits, rows: int = 0) -> Grouping | None:
    """The grouping of the splits of files of these sizes; None if they are too many to compute.

    No group is larger than a split may be, so a split of that size is a group of its own, and no group has more
    splits than the limit. Every slot still has work, if it had before, and all have equally many groups: one more
    group than slots would take a second round of tasks, with slots that wait. `rows` are those in the files, as
    far as they are known: each is copied where the hint ends the code that Spark generates for the scan.
    """
    if sum(sizes) // packing.bytes_max(sizes) + len(sizes) > _SPLITS_MAX:
        return None
    return _grouping(tuple(sizes), packing, limits, rows)


# A dashboard's statements read the same files over and over: to pack 50,000 takes a tenth of a second. Each entry
# has no more sizes than `_SPLITS_MAX`, of some 40 bytes.
@lru_cache(maxsize=4)
def _grouping(sizes: tuple[int, ...], packing: Packing, limits: GroupLimits, rows: int) -> Grouping:
    splits = packed(sizes, packing)
    before = len(splits)
    groups_min = max(_GROUPS_MIN, -(-before // max(1, limits.splits_grouped_max)))
    after = -(-groups_min // packing.slots) * packing.slots
    saved_min = max(limits.splits_saved_min, -(-rows // limits.rows_per_saved_max))
    while after * _FEWER_MIN <= before and before - after >= saved_min:
        if all(_fits(run, packing.split_bytes_max) for run in runs(splits, after)):
            return Grouping(before, after)
        after *= 2
    return Grouping(before, before)


def has_outgrown(size_bytes: int | None, indexed: Sequence[FileFacts], packing: Packing) -> bool:
    """True if a table has more bytes beside the files of its index than one split has.

    One task may read all of these bytes beside its own: then no task reads more than two of Spark's splits.
    """
    sizes = [file.size_bytes for file in indexed]
    return size_bytes is not None and size_bytes - sum(sizes) > packing.bytes_max(sizes)


def _fits(run: Sequence[Split], bytes_max: int) -> bool:
    """True if the splits of a group are together no larger than one split may be."""
    return len(run) == 1 or sum(chunk.size_bytes for split in run for chunk in split) <= bytes_max
