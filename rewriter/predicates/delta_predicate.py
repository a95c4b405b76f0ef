"""Keys of a Delta table's columns as a condition that Delta skips files by.

Delta's log has the bounds of each file. Delta compares them with each comparison of a condition, and with the
least and greatest value of an IN. It compares values of partition columns as they are (`DataSkippingReader` in
Delta's sources). So data columns get a few ranges, and partition columns a list. Conditions on columns of both
kinds stand side by side: an OR over both would be compared with bounds alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from rewriter.domains.consumers import DELTA, DELTA_MERGE, DELTA_PARTITION_POINTS_MAX
from rewriter.domains.cover import Box, Cover
from rewriter.domains.cover_sql import cover_sql
from rewriter.domains.domain import Domain
from rewriter.domains.widen import Consumer, column_by_column, widen
from rewriter.predicates.predicate import Predicate, Restriction, columns_of, first_written, without_ranges

# Values of a data column in one list: Spark reads `k IN (1) OR k IN (5)` as two comparisons.
_LIST_MAX = 1


def delta_predicate(
    restrictions: Sequence[Restriction], partitioned_by: Sequence[str], chars_max: int, *, in_merge: bool = False
) -> Predicate | None:
    """The condition that the columns hold keys of every restriction, or that one of their assumptions changed.

    In a MERGE it is short, since Delta evaluates it for each row of the files that are written anew.

    None if it would exclude no row, be too long, or is not proven to hold every key. Raises UnreadableKeyError.
    """
    partitions = frozenset(name.lower() for name in partitioned_by)
    consumer = replace(DELTA_MERGE if in_merge else DELTA, unordered=without_ranges(restrictions))
    boxes_max = DELTA_MERGE.ranges_max if in_merge else DELTA_PARTITION_POINTS_MAX

    def written(wide: Cover) -> str:
        whole = frozenset(name for name in columns_of(wide) if name.lower() in partitions)
        return cover_sql(wide, _LIST_MAX, whole)

    def candidates(asked: Cover) -> list[Cover]:
        return [_widened(asked, partitions, consumer, boxes_max)]

    return first_written(restrictions, candidates, written, chars_max)


def _widened(asked: Cover, partitions: AbstractSet[str], consumer: Consumer, boxes_max: int) -> Cover:
    """A cover of few enough ranges, in which partition columns keep their values, or ranges too if these are many.

    Pairs stay paired where no column is a partition column, and where all of them are and the boxes are few.
    """
    columns = columns_of(asked)
    inside = [name for name in columns if name.lower() in partitions]
    is_listed = len(asked.boxes) <= boxes_max and sum(map(_width, asked.boxes)) <= DELTA_PARTITION_POINTS_MAX
    if len(inside) == len(columns) and is_listed:
        return asked
    if not inside:
        return widen(asked, columns, consumer, {})
    apart = column_by_column(asked.boxes)
    kept = {name: _of_column(name, domain, partitions, consumer) for name, domain in apart.items()}
    box = Box.of({name: domain for name, domain in kept.items() if domain is not None})
    return Cover.of([box] if box is not None else [])


def _of_column(name: str, domain: Domain, partitions: AbstractSet[str], consumer: Consumer) -> Domain | None:
    if name.lower() in partitions and domain.width <= DELTA_PARTITION_POINTS_MAX:
        return domain
    (box,) = widen(Cover((Box(((name, domain),)),)), [name], consumer, {}).boxes
    return box.domain(name)


def _width(box: Box) -> float:
    return sum(domain.width for _, domain in box.domains)
