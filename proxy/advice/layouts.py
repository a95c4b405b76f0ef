"""Layouts that a table could have, as the file index would tell of them: files with bounds, made from a sample.

A layout is only as good as its files tell values apart. So each is a `FileIndex`, in which the rewriter itself
finds the files that a statement would be spared.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import Final

from proxy.advice.table_sample import SampleRow, TableSample
from rewriter.domains.literals import Key
from rewriter.domains.positions import Position, line
from rewriter.files.file_index import Bounds, FileFacts, FileIndex, Lack

# Partitions of a column that a table could be partitioned by: each costs the metastore and every listing.
PARTITIONS_MAX: Final = 1_000
# If a larger part of the values is seen once in a sample, the table has many more that are not seen at all.
_SEEN_ONCE_MAX: Final = 0.1
# The least part of --file-mb that a file of one value should have: smaller ones make more tasks than they spare.
_FILE_PART_MIN: Final = 0.25
# Shares of rows by which the load takes a value for frequent: below the first, a partition has too many files;
# above the second, no value is frequent.
_SHARE_MIN, _SHARE_MAX = 0.01, 0.5
# The least number of sampled rows in a file: with fewer, its bounds are due to chance.
_FILE_ROWS_MIN: Final = 10
_NOTHING_KNOWN: Final = Bounds(None, None, None)


class LayoutKind(Enum):
    """A way to lay a table out; the value is its name for users."""

    AS_IT_LIES = "an index of its files as they lie"
    PARTITIONS = "partitions"
    FREQUENT_VALUES = "files of their own for frequent values"
    RANGES = "files by ranges of values"
    # Of Delta alone, which keeps bounds itself.
    CLUSTERED = "files clustered by values"


@dataclass(frozen=True)
class Layout:
    """A layout with its files. `column` is that of the layout; None for files as they lie."""

    kind: LayoutKind
    column: str | None
    index: FileIndex
    # The part of the table that the index stands for, by which the list of files to skip is limited too.
    share: float = 1.0
    # The number of files of RANGES and CLUSTERED, and the least share of FREQUENT_VALUES.
    file_count: int = 0
    share_min: float = 0.0


def today(sample: TableSample) -> FileIndex:
    """The files as they lie, told apart by partitions and by columns that are indexed."""
    known = {name.lower() for name in sample.facts.indexed_columns if sample.facts.file_columns}
    return _index_of(sample, known.union(sample.partition_columns))


def as_it_lies(sample: TableSample, column: str | None = None) -> Layout:
    """The files as they lie, told apart by all columns that were looked at, or by one of them."""
    names = {column, *sample.partition_columns} if column is not None else sample.type_names.keys()
    return Layout(LayoutKind.AS_IT_LIES, column, _index_of(sample, names), sample.share)


def layouts_by(sample: TableSample, column: str, file_bytes: int) -> Iterator[Layout]:
    """The layouts by a column that the table could be given, with files of about so many bytes."""
    partitions = {name.lower() for name in sample.facts.partition_columns}
    if column in partitions or len(partitions) > len(sample.partition_columns):
        return
    is_delta = sample.facts.delta is not None
    for made in (_by_ranges,) if is_delta else (_by_partitions, _by_frequent_values, _by_ranges):
        layout = made(_Making(sample, column), file_bytes)
        if layout is not None:
            yield layout


class _Making:
    """The sampled rows in the order of partitions and of a column, and what a row stands for."""

    def __init__(self, sample: TableSample, column: str) -> None:
        self.sample = sample
        self.column = column
        self.type_name = sample.type_names[column]
        names = [each.name for each in sample.columns]
        self._partitions = [names.index(name) for name in sample.partition_columns]
        self._value = names.index(column)
        ranked = [_ranks(sample.columns[at].type_name, sample.rows, at) for at in (*self._partitions, self._value)]
        order = sorted(range(len(sample.rows)), key=lambda row: [ranks[row] for ranks in ranked])
        self.rows = [sample.rows[number] for number in order]
        self.row_bytes = sample.bytes / max(1, len(self.rows))
        self._path = "x" * max((len(facts.path) for facts in sample.files), default=100)

    def partition_of(self, row: SampleRow) -> SampleRow:
        """The values of a row's partition."""
        return tuple(row[at] for at in self._partitions)

    def value_of(self, row: SampleRow) -> Key | None:
        """The value of the column."""
        return row[self._value]

    def by_partition(self, rows: Sequence[SampleRow]) -> Iterator[tuple[SampleRow, list[SampleRow]]]:
        """The rows of each partition, in order."""
        return ((partition, list(found)) for partition, found in groupby(rows, self.partition_of))

    def file(
        self, number: int, rows: int, partition: SampleRow, bounds: Bounds, lacks: tuple[Lack, ...] = ()
    ) -> FileFacts:
        """A file of so many sampled rows. Its path is as long as others: that limits the list of files to skip."""
        size_bytes = max(1, round(rows * self.row_bytes))
        told = {
            self.sample.columns[at].name: _only(value)
            for at, value in zip(self._partitions, partition, strict=True)
        }
        return FileFacts(f"{self._path}{number}", size_bytes, 0, rows, {**told, self.column: bounds}, lacks)

    def index(self, files: Sequence[FileFacts]) -> FileIndex:
        """The index of the files."""
        names = {self.column, *self.sample.partition_columns}
        return FileIndex({name: self.sample.type_names[name] for name in sorted(names)}, tuple(files))


def _by_partitions(making: _Making, file_bytes: int) -> Layout | None:
    """One partition for each value, of a table that has none yet."""
    counts = Counter(map(making.value_of, making.rows))
    mean_bytes = making.sample.bytes / max(1, len(counts))
    is_partitioned = bool(making.sample.facts.partition_columns)
    if is_partitioned or len(counts) > PARTITIONS_MAX or mean_bytes < file_bytes * _FILE_PART_MIN:
        return None
    seen_once = sum(rows == 1 for rows in counts.values())
    if len(making.rows) < making.sample.row_count and seen_once > _SEEN_ONCE_MAX * len(counts):
        return None
    files = [making.file(number, rows, (), _only(value)) for number, (value, rows) in enumerate(counts.items())]
    return Layout(LayoutKind.PARTITIONS, making.column, making.index(files))


def _by_frequent_values(making: _Making, file_bytes: int) -> Layout | None:
    """A list-bucketed load: in each partition files of their own for values with a share of its rows."""
    grouped = list(making.by_partition(making.rows))
    partition_bytes = making.sample.bytes / making.sample.partition_count
    share_min = max(_SHARE_MIN, file_bytes * _FILE_PART_MIN / max(1.0, partition_bytes))
    if share_min > _SHARE_MAX:
        return None
    files: list[FileFacts] = []
    frequent_files = 0
    for partition, rows in grouped:
        counts = Counter(value for row in rows if (value := making.value_of(row)) is not None)
        least = max(share_min * len(rows), _FILE_ROWS_MIN)
        frequent = {value: count for value, count in counts.items() if count >= least}
        files += [making.file(len(files) + n, c, partition, _only(v)) for n, (v, c) in enumerate(frequent.items())]
        frequent_files += len(frequent)
        others = len(rows) - sum(frequent.values())
        if others:
            lack = Lack((making.column,), frozenset((_spelled(making.type_name, value),) for value in frequent))
            files.append(making.file(len(files), others, partition, _NOTHING_KNOWN, (lack,) if frequent else ()))
    if not frequent_files:
        return None
    return Layout(LayoutKind.FREQUENT_VALUES, making.column, making.index(files), share_min=round(share_min, 3))


def _by_ranges(making: _Making, file_bytes: int) -> Layout | None:
    """Files with a range of values each, in each partition: rows in the order of both, cut into equal parts."""
    wanted = math.ceil(making.sample.bytes / file_bytes)
    # The sample may have seen files of some partitions alone.
    seen = sum(1 for _ in making.by_partition(making.rows)) / making.sample.partition_count
    parts = min(math.ceil(wanted * seen), len(making.rows) // _FILE_ROWS_MIN)
    if parts < 2:  # noqa: PLR2004 - one file has no other to be told from
        return None
    files: list[FileFacts] = []
    for part in range(parts):
        cut = slice(part * len(making.rows) // parts, (part + 1) * len(making.rows) // parts)
        for partition, rows in making.by_partition(making.rows[cut]):
            files.append(making.file(len(files), len(rows), partition, _wide(making, cut, partition, rows)))
    kind = LayoutKind.RANGES if making.sample.facts.delta is None else LayoutKind.CLUSTERED
    return Layout(kind, making.column, making.index(files), file_count=wanted)


def _wide(making: _Making, cut: slice, partition: SampleRow, rows: Sequence[SampleRow]) -> Bounds:
    """Bounds that reach to the neighbouring rows: rows that are not in the sample may lie between."""
    nulls = sum(making.value_of(row) is None for row in rows)
    before, after = making.rows[cut.start - 1] if cut.start else None, making.rows[cut.stop : cut.stop + 1]
    low = high = None
    if before is not None and making.partition_of(before) == partition:
        low = making.value_of(before)
    if after and making.partition_of(after[0]) == partition:
        high = making.value_of(after[0])
    return Bounds(low, high, nulls)


def _only(value: Key | None) -> Bounds:
    """Bounds of a file with one value."""
    return _NOTHING_KNOWN if value is None else Bounds(value, value, 0)


def _index_of(sample: TableSample, names: Collection[str]) -> FileIndex:
    types = sample.type_names
    return FileIndex({name: types[name] for name in types if name in names}, sample.files)


def _ranks(type_name: str, rows: Sequence[SampleRow], at: int) -> list[tuple[bool, Position]]:
    """The place of each row's value in Spark's order, nulls first."""
    found = iter(line(type_name).positions([value for row in rows if (value := row[at]) is not None]))
    return [(True, next(found)) if row[at] is not None else (False, 0) for row in rows]


def _spelled(type_name: str, value: Key) -> Key:
    """The value as domains spell it: 1.5 of decimal(5,2) is '1.50'."""
    on = line(type_name)
    return on.value(on.positions([value])[0])
