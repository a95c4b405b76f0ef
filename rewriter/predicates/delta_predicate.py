"""Keys of a Delta table's columns as a condition that Delta skips files by.

Delta's log has the bounds of each file. Delta compares them with each comparison of a condition, and with the
least and greatest value of an IN; values of partition columns it compares as they are (`DataSkippingReader` in
Delta's sources). So data columns get a few ranges, and partition columns a list. Conditions on columns of both
kinds stand side by side: an OR over both would be compared with bounds alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from rewriter.domains.consumers import DELTA, DELTA_PARTITION_POINTS_MAX
from rewriter.domains.cover import Box, Cover
from rewriter.domains.domain import Domain
from rewriter.domains.literals import UnreadableKeyError
from rewriter.domains.widen import Consumer, column_by_column, widen
from rewriter.predicates.predicate import (
    Predicate,
    Restriction,
    columns_of,
    cover_sql,
    first_written,
    keys_or_range_ends,
    without_ranges,
)

# Values of a data column in one list: Spark reads `k IN (1) OR k IN (5)` as two comparisons.
_LIST_MAX = 1


def delta_predicate(
    restrictions: Sequence[Restriction], partitioned_by: Sequence[str], chars_max: int
) -> Predicate | None:
    """The condition that the columns hold keys of every restriction, or that one of their assumptions changed.

    None if it would exclude no row, be too long, or is not proven to hold every key. Raises UnreadableKeyError.
    """
    partitions = frozenset(name.lower() for name in partitioned_by)
    consumer = replace(DELTA, unordered=without_ranges(restrictions))

    def written(wide: Cover) -> str:
        whole = frozenset(name for name in columns_of(wide) if name.lower() in partitions)
        return cover_sql(wide, _LIST_MAX, whole)

    return first_written(restrictions, lambda asked: [_widened(asked, partitions, consumer)], written, chars_max)


def require_found(restrictions: Iterable[Restriction]) -> None:
    """Raise UnreadableKeyError for a text that Delta may not find in a table's log.

    The log has the first 32 characters of texts, and writers before Delta 3.3 cut between the two halves of a
    character of four bytes, or end a bound too low behind one (delta-io/delta 3430). Of CHAR, which DESCRIBE shows
    as a string here, it has the text with its spaces. From an equality Spark infers such a filter for each table.
    """
    for restriction in restrictions:
        for index, column in enumerate(restriction.columns):
            if column.type_name == "string":
                for key in keys_or_range_ends(restriction.keys, index):
                    text = str(key or "")
                    if len(text.encode("utf-16-le")) // 2 > _KEPT_WHOLE or text.endswith(" "):
                        raise UnreadableKeyError("Delta's log may have other bounds of the text")


# UTF-16 units of a text of which the log surely has all.
_KEPT_WHOLE = 31


def _widened(asked: Cover, partitions: AbstractSet[str], consumer: Consumer) -> Cover:
    """A cover of few enough ranges, in which partition columns keep their values, or ranges too if these are many.

    Pairs stay paired where no partition column is among them, and where there is no other.
    """
    columns = columns_of(asked)
    inside = [name for name in columns if name.lower() in partitions]
    if len(inside) == len(columns) and sum(map(_width, asked.boxes)) <= DELTA_PARTITION_POINTS_MAX:
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
