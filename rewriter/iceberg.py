"""Keys of an Iceberg table's columns as a condition that Iceberg skips manifests and files by.

Iceberg knows of each snapshot what its files hold, and compares that with a literal whether the column has bounds in
files, is what a transform makes partitions of, or both. So one condition says all of it, and is sound whatever is
known of the files. An index only tells where to widen, and whether it is worth it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from rewriter.catalog import IcebergFacts
from rewriter.consumers import ICEBERG, ICEBERG_LIST_MAX
from rewriter.cover import Cover
from rewriter.file_costs import FileCosts
from rewriter.files import FileIndex, Selection
from rewriter.keyset import KeySet
from rewriter.predicate import Predicate, Restriction, cover_sql, doubts, met, nothing
from rewriter.widen import widen

# The part of the bytes that has to be skipped: Spark compares each row that it reads with the keys once more.
_BYTES_SPARED_MIN = 0.1

_BUCKET = re.compile(r"bucket\(\d+, (.+)\)", re.ASCII)


def iceberg_predicate(
    restrictions: Sequence[Restriction], index: FileIndex | None, chars_max: int
) -> Predicate | None:
    """The condition that the columns hold keys of every restriction, or that what these rest on holds no longer.

    None if it would say nothing, be too long, or is not proven to hold every key. Raises UnreadableKeyError.
    """
    changed = doubts(restrictions)
    asked, left_out = met(restrictions)
    if asked.is_none:
        return nothing(changed)
    wide = _within_limits(asked, index)
    if wide.is_all or not wide.encloses(asked):
        return None
    sql = f"({' OR '.join([cover_sql(wide, ICEBERG_LIST_MAX), *changed])})"
    if len(sql) > chars_max:
        return None
    listed = all(isinstance(restriction.keys, KeySet) for restriction in restrictions)
    return Predicate(sql, exact=listed and not left_out and wide == asked, cover=wide)


def _within_limits(cover: Cover, index: FileIndex | None) -> Cover:
    """The cover as it is where it has few points, or else in ranges that leave out most of the files' bytes."""
    if ICEBERG.digests(cover):
        return cover
    columns = list(dict.fromkeys(column for box in cover.boxes for column, _ in box.domains))
    return widen(cover, columns, ICEBERG, _costs(columns, index))


def _costs(columns: Iterable[str], index: FileIndex | None) -> Mapping[str, FileCosts]:
    known = ((name, index.costs(name) if index is not None else None) for name in columns)
    return {name: costs for name, costs in known if costs is not None}


def files_left(cover: Cover, facts: IcebergFacts, index: FileIndex | None) -> Selection | None:
    """The files that hold nothing of the cover; None where bounds alone do not tell, as with buckets."""
    if index is None:
        return None
    columns = {column.lower() for box in cover.boxes for column, _ in box.domains}
    is_told = columns <= index.type_names.keys() and not columns & _bucketed(facts)
    return index.misses(cover) if is_told else None


def skips_too_little(found: Selection | None) -> bool:
    """Whether nearly every file may hold a key, as far as that is known."""
    return found is not None and found.total_bytes - found.kept_bytes < found.total_bytes * _BYTES_SPARED_MIN


def _bucketed(facts: IcebergFacts) -> frozenset[str]:
    """The columns, in lower case, whose hash says which partition a row is in."""
    found = (_BUCKET.fullmatch(transform) for transform in facts.partitioning)
    return frozenset(bucket[1].strip("`").lower() for bucket in found if bucket is not None)
