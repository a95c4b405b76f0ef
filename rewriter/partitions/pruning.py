"""Pruning of a table's partitions by covers, and the costs of partitions along each column."""

from __future__ import annotations

from collections.abc import Iterable

from rewriter.domains.cover import Box, Cover
from rewriter.domains.domain import Domain, Interval
from rewriter.domains.gap_costs import PartitionCosts
from rewriter.domains.literals import Key
from rewriter.partitions.filter_tree import And, Compare, In, IsNull, Operator, Or, PartitionFilter
from rewriter.partitions.index import PartitionIndex


def kept_count(index: PartitionIndex, covers: Iterable[Cover]) -> int:
    """The number of partitions that all covers let through, unreadable ones too. Raises NotIndexableError."""
    return sum(1 for _ in index.matching(And(tuple(map(as_filter, covers)))))


def partition_costs(index: PartitionIndex) -> dict[str, PartitionCosts]:
    """The number of partitions along each column. Null and unreadable partitions are not counted."""
    return {
        column: _costs(type_name, index.counts(column))
        for column, type_name in zip(index.keys.columns, index.keys.type_names, strict=True)
    }


def _costs(type_name: str, counts: Iterable[tuple[Key | None, int]]) -> PartitionCosts:
    values, weights = [], []
    for value, count in counts:
        if value is not None:
            values.append(value)
            weights.append(count)
    return PartitionCosts.of(type_name, values, weights if max(weights, default=1) > 1 else None)


def as_filter(cover: Cover) -> PartitionFilter:
    """The cover as a filter of partitions."""
    return Or(tuple(map(_box, cover.boxes)))


def _box(box: Box) -> PartitionFilter:
    return And(tuple(_domain(column, domain) for column, domain in box.domains))


def _domain(column: str, domain: Domain) -> PartitionFilter:
    intervals = domain.intervals
    points = tuple(i.low.value for i in intervals if i.is_point and i.low is not None)
    terms: list[PartitionFilter] = [In(column, points)] if points else []
    terms += [_range(column, interval) for interval in intervals if not interval.is_point]
    return Or((*terms, *([IsNull(column)] if domain.nullable else [])))


def _range(column: str, interval: Interval) -> PartitionFilter:
    terms: list[PartitionFilter] = [IsNull(column, negated=True)]
    if (low := interval.low) is not None:
        terms.append(Compare(column, Operator.AT_LEAST if low.inclusive else Operator.GREATER, low.value))
    if (high := interval.high) is not None:
        terms.append(Compare(column, Operator.AT_MOST if high.inclusive else Operator.LESS, high.value))
    return And(tuple(terms))
