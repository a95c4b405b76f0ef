"""Keys of an Iceberg table's columns as a condition that Iceberg skips manifests and files by.

Iceberg knows the bounds and partitions of each snapshot's files, and compares both with a literal: bounds of the
column, and partitions that a transform makes of it. So one condition is enough, and is sound whatever is known of
the files. An index only decides where to widen, and if the condition is worth its cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from rewriter.catalog.table_facts import transforms
from rewriter.domains.consumers import (
    ICEBERG,
    ICEBERG_LIST_MAX,
    ICEBERG_PAIRED_POINTS_MAX,
    ICEBERG_POINTS_MAX,
    ICEBERG_SWITCHED,
    ICEBERG_SWITCHED_POINTS_MAX,
)
from rewriter.domains.cover import Box, Cover
from rewriter.domains.cover_sql import cover_sql
from rewriter.domains.domain import Domain
from rewriter.domains.widen import Consumer, column_by_column, widen
from rewriter.files.bounds import FileCosts
from rewriter.files.file_index import FileIndex, FileSelection, spares_enough
from rewriter.files.row_groups import RowGroupCount
from rewriter.predicates.predicate import Predicate, Restriction, columns_of, first_written, without_ranges


def iceberg_predicate(
    restrictions: Sequence[Restriction], partitioning: Sequence[str], index: FileIndex | None, chars_max: int
) -> Predicate | None:
    """The condition that the columns hold keys of every restriction, or that one of their assumptions changed.

    None if it would exclude no row, be too long, or is not proven to hold every key. Raises UnreadableKeyError.
    """
    bucketed, consumer = _bucketed(partitioning), replace(ICEBERG, unordered=without_ranges(restrictions))
    return first_written(
        restrictions,
        lambda asked: _candidates(asked, index, consumer),
        lambda wide: _written(wide, bucketed),
        chars_max,
    )


def _candidates(cover: Cover, index: FileIndex | None, consumer: Consumer) -> Iterator[Cover]:
    """The cover itself if its points are few; then each column alone, for pairs, or ranges, the better first."""
    if _is_listed(cover):
        yield cover
    columns = columns_of(cover)
    ranges = widen(cover, columns, consumer, _costs(columns, index))
    around = Box.of(column_by_column(cover.boxes))
    apart = [Cover.of([around])] if around is not None and len(cover.boxes) > 1 else []
    yield from _best_first([*filter(_is_listed, apart), ranges], index)


def _costs(columns: Iterable[str], index: FileIndex | None) -> Mapping[str, FileCosts]:
    known = ((name, index.costs(name) if index is not None else None) for name in columns)
    return {name: costs for name, costs in known if costs is not None}


def _best_first(covers: Sequence[Cover], index: FileIndex | None) -> Sequence[Cover]:
    if index is None or len(covers) == 1:
        return covers
    return sorted(covers, key=lambda cover: _bytes_left(cover, index))


def _bytes_left(cover: Cover, index: FileIndex) -> tuple[int, int]:
    """The bytes of the files that the cover leaves, and of their row groups."""
    left = index.row_groups(cover)
    return index.misses(cover).kept_bytes, left.kept_bytes if left is not None else 0


def _written(cover: Cover, bucketed: AbstractSet[str]) -> str:
    """The condition of a cover. A range skips no buckets, so values in ranges are listed for bucketed columns.

    A long list is written as a whole too, in front of the short ones that Iceberg reads: Spark evaluates all lists
    for every row, and stops early for a row that the whole list does not hold.
    """
    has_buckets = any(column.lower() in bucketed for column, _ in _domains(cover))
    if not _is_listed(cover) or (ICEBERG.accepts(cover) and not has_buckets):
        return cover_sql(cover)
    in_lists = cover_sql(cover, ICEBERG_LIST_MAX)
    is_long = any(domain.width > ICEBERG_LIST_MAX for _, domain in _domains(cover))
    return f"({cover_sql(cover, ICEBERG_POINTS_MAX)} AND {in_lists})" if is_long else in_lists


def _is_listed(cover: Cover) -> bool:
    """True if the points of the cover are few enough to be listed."""
    is_switched = any(domain.type_name in ICEBERG_SWITCHED for _, domain in _domains(cover))
    points_max = ICEBERG_SWITCHED_POINTS_MAX if is_switched else ICEBERG_POINTS_MAX
    points_max = points_max if len(cover.boxes) == 1 else ICEBERG_PAIRED_POINTS_MAX
    return sum(domain.width for _, domain in _domains(cover)) <= points_max


def _domains(cover: Cover) -> list[tuple[str, Domain]]:
    return [pair for box in cover.boxes for pair in box.domains]


def files_left(cover: Cover, partitioning: Sequence[str], index: FileIndex | None) -> FileSelection | None:
    """The files that may hold a row of the cover; None if bounds alone do not tell, as with buckets."""
    if index is None:
        return None
    columns = {column.lower() for column, _ in _domains(cover)}
    is_told = columns <= index.type_names.keys() and not columns & _bucketed(partitioning)
    return index.misses(cover) if is_told else None


def skips_too_little(found: FileSelection | None, row_groups: RowGroupCount | None) -> bool:
    """True if nearly every file may hold a key, and nearly every row group in them, as far as that is known.

    The row groups of a file whose rows are in no known order may all hold keys.
    """
    if found is None or spares_enough(found.total_bytes - found.kept_bytes, found.total_bytes):
        return False
    return row_groups is None or not row_groups.spares_enough


def _bucketed(partitioning: Sequence[str]) -> frozenset[str]:
    """The columns, in lower case, whose hash decides which partition a row is in."""
    return frozenset(column.lower() for transform, column in transforms(partitioning) if transform == "bucket")
