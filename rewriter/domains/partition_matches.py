"""Partitions that can match: all except those of a list that were asked for and cannot.

A partition may have come since the list was read. So the rows that may match are all rows except those of the
partitions that are known to miss, and not only the rows of the partitions that were found to match.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rewriter.domains.cover import Box, Cover
from rewriter.domains.domain import Domain
from rewriter.domains.keyset import Assumptions
from rewriter.domains.literals import Key

# The values of some partition columns in one partition.
PartitionRow = tuple[Key | None, ...]


@dataclass(frozen=True)
class PartitionMatches:
    """The values of some partition columns that were asked for, and those of them that can match.

    Values that were not asked for may match too.
    """

    type_names: tuple[str, ...]
    asked: frozenset[PartitionRow]
    matching: frozenset[PartitionRow]
    assumptions: Assumptions = ()

    @property
    def is_none(self) -> bool:
        """False: a value that was not asked for may match."""
        return False

    @cached_property
    def misses(self) -> frozenset[PartitionRow]:
        """The values that cannot match."""
        return self.asked - self.matching

    def cover(self, columns: Sequence[str]) -> Cover:
        """The rows whose columns do not have the values of a miss. Raises UnreadableKeyError.

        >>> matches = PartitionMatches(("int",), frozenset({(1,), (2,), (3,)}), frozenset({(2,)}))
        >>> matches.cover(["k"]).holds({"k": 2}), matches.cover(["k"]).holds({"k": 7})
        (True, True)
        >>> matches.cover(["k"]).holds({"k": 3}), matches.cover(["k"]).holds({"k": None})
        (False, True)
        """
        pairs = list(zip(columns, self.type_names, strict=True))
        boxes = (Box.of(dict(domains)) for domains in _outside(pairs, self.misses))
        return Cover.of(box for box in boxes if box is not None)


def _outside(
    columns: Sequence[tuple[str, str]], rows: Iterable[PartitionRow]
) -> Iterator[tuple[tuple[str, Domain], ...]]:
    """The rows other than these, as domains of the columns.

    Such a row has another value in the first column, or one of its values with other values behind it. First
    values with the same rows behind them are taken together.
    """
    (name, type_name), *rest = columns
    behind: dict[Key | None, set[PartitionRow]] = defaultdict(set)
    for row in rows:
        behind[row[0]].add(row[1:])
    yield ((name, _domain(type_name, behind).complement()),)
    alike: dict[frozenset[PartitionRow], list[Key | None]] = defaultdict(list)
    for first, found in behind.items() if rest else ():
        alike[frozenset(found)].append(first)
    for others, firsts in alike.items():
        for domains in _outside(rest, others):
            yield ((name, _domain(type_name, firsts)), *domains)


def _domain(type_name: str, values: Iterable[Key | None]) -> Domain:
    found = set(values)
    return Domain.of(type_name, [value for value in found if value is not None], nullable=None in found)
