"""Index of a table's partitions in the order of their values, and queries on it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, TypeAlias

from rewriter.domains.literals import Key
from rewriter.partitions.filter_tree import PartitionFilter, PartitionTest
from rewriter.partitions.key_encoding import END, PartitionKeys
from rewriter.partitions.scan_plan import ScanPlan, plan_scans
from rewriter.partitions.value_encoding import NotIndexableError
from rewriter.vocabulary.identifiers import TableName


class OrderedEntries(Protocol):
    """A store of the entries: a sorted list here, an embedded or a distributed store elsewhere.

    It must show one state for as long as it is used: no entry may be missing while a list is replaced.
    """

    def scan(self, start: bytes, stop: bytes) -> Iterator[bytes]:
        """The entries from `start` up to `stop`, which is not one of them, in the order of their bytes."""


@dataclass(frozen=True)
class SortedEntries:
    """Entries in a list."""

    entries: Sequence[bytes]

    def scan(self, start: bytes, stop: bytes) -> Iterator[bytes]:
        """See OrderedEntries."""
        for index in range(bisect_left(self.entries, start), bisect_left(self.entries, stop)):
            yield self.entries[index]


def in_order(
    keys: PartitionKeys, specs: Iterable[str], *, entry_bytes_max: int | None = None
) -> tuple[list[bytes], list[str]]:
    """The entries of partitions, ascending, and the partitions that have none.

    The latter cannot be read with certainty, or are longer than the store of the entries allows.
    """
    entries, unreadable = [], []
    for spec in specs:
        try:
            entry = keys.entry(spec)
        except NotIndexableError:
            unreadable.append(spec)
            continue
        if entry_bytes_max is None or len(entry) <= entry_bytes_max:
            entries.append(entry)
        else:
            unreadable.append(spec)
    return sorted(set(entries)), unreadable


def matching(plan: ScanPlan, keys: PartitionKeys, entries: OrderedEntries) -> Iterator[bytes]:
    """The entries that satisfy the filter of a plan, in order."""
    tests: dict[int, PartitionTest] = {}
    for scan in plan.scans:
        found = entries.scan(scan.start, scan.stop)
        for condition in scan.residual:
            # Many scans share few conditions.
            if id(condition) not in tests:
                tests[id(condition)] = PartitionTest.of(condition, keys)
            found = filter(tests[id(condition)].holds, found)
        yield from found


@dataclass(frozen=True)
class PartitionIndex:
    """The partitions of one table. The unreadable ones may have any values, so every answer has their names."""

    keys: PartitionKeys
    entries: OrderedEntries
    unreadable: tuple[str, ...] = ()
    # The number of all partitions, where they were counted before.
    known_count: int | None = None

    @classmethod
    def of(cls, columns: Sequence[str], type_names: Sequence[str], specs: Iterable[str]) -> PartitionIndex:
        """An index in memory, from the rows of SHOW PARTITIONS. Raises NotIndexableError."""
        keys = PartitionKeys(tuple(columns), tuple(type_names))
        entries, unreadable = in_order(keys, specs)
        return cls(keys, SortedEntries(entries), tuple(unreadable))

    def matching(self, condition: PartitionFilter) -> Iterator[str]:
        """The names of partitions that satisfy a filter, and of unreadable ones. Raises NotIndexableError."""
        plan = plan_scans(condition, self.keys)
        for entry in matching(plan, self.keys, self.entries):
            yield self.keys.spec(entry)
        yield from self.unreadable

    def has_all(self, names: Iterable[str]) -> bool:
        """True if there are partitions of all these names.

        >>> index = PartitionIndex.of(["y"], ["int"], ["y=1", "y=2", "y=x"])
        >>> index.has_all(["y=2", "y=x"]), index.has_all(["y=1", "y=02"])
        (True, False)
        """
        # A store may have no entry for a name that is too long.
        unreadable = frozenset(self.unreadable)
        found, others = in_order(self.keys, (name for name in names if name not in unreadable))
        return not others and all(any(self.entries.scan(entry, entry + b"\0")) for entry in found)

    def values(self, columns: Sequence[str], condition: PartitionFilter) -> set[tuple[Key | None, ...]]:
        """The values of some columns in the partitions that satisfy a filter. Raises NotIndexableError.

        Unreadable partitions are left out.

        >>> from rewriter.partitions.filter_tree import And
        >>> index = PartitionIndex.of(["y", "m"], ["int", "int"], ["y=1/m=2", "y=1/m=3", "y=4/m=2"])
        >>> sorted(index.values(["y"], And(())))
        [(1,), (4,)]
        """
        positions = [self.keys.position(column) for column in columns]
        entries = matching(plan_scans(condition, self.keys), self.keys, self.entries)
        fields = {tuple(self.keys.field(entry, position) for position in positions) for entry in entries}
        return {
            tuple(self.keys.decode_field(at, field) for at, field in zip(positions, found, strict=True))
            for found in fields
        }

    @property
    def count(self) -> int:
        """The number of partitions."""
        if self.known_count is not None:
            return self.known_count
        return sum(1 for _ in self.entries.scan(b"", END)) + len(self.unreadable)

    def counts(self, column: str) -> Iterator[tuple[Key | None, int]]:
        """The values of a column, ascending, null first, each with the number of its partitions.

        A value is decoded once, however many partitions share it. Raises NotIndexableError.
        """
        position = self.keys.position(column)
        fields = self.keys.fields(self.entries.scan(b"", END), position)
        for field, same in groupby(sorted(fields) if position else fields):
            yield self.keys.decode_field(position, field), len(list(same))


# The partitions of tables. None: they could not be listed.
PartitionIndexes: TypeAlias = Mapping[TableName, PartitionIndex | None]
