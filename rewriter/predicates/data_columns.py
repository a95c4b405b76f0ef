"""Keys of data columns, which are no partition columns: as ranges for row groups, as lists for buckets.

Parquet and ORC skip row groups by ranges, inside of the files that are read. Spark prunes no buckets by ranges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rewriter.catalog.table_facts import TableFacts
from rewriter.domains.consumers import PARQUET, PARQUET_LIST_MAX
from rewriter.domains.cover import Cover
from rewriter.domains.cover_sql import cover_sql
from rewriter.domains.keyset import KeySet
from rewriter.domains.literals import literals
from rewriter.domains.widen import widen
from rewriter.files.bounds import FileCosts
from rewriter.files.file_index import FileIndex, spares_enough
from rewriter.files.row_groups import RowGroupCount
from rewriter.predicates.predicate import Restriction, changed_assumptions, reader_guards, without_ranges
from rewriter.vocabulary.identifiers import quoted


@dataclass(frozen=True)
class RowGroupPredicate:
    """A condition by which readers skip row groups, and the row groups that it leaves; None if not known."""

    sql: str
    left: RowGroupCount | None


def row_group_predicate(
    restriction: Restriction,
    index: FileIndex | None,
    chars_max: int,
    among: Cover | None = None,
    *,
    for_files: bool = False,
) -> RowGroupPredicate | None:
    """The condition that the columns hold keys, or that one of their assumptions changed.

    Up to as many keys as `PARQUET` accepts are listed. More are written as ranges, whose gaps are where the files
    of the index have most of their bytes, or where the keys are farthest apart. None if every file would be read
    whole, if neither the table nor its files are ordered by the columns, if the condition is too long, or if it is
    not proven to hold every key. `among` are the rows that the partition predicate leaves. With `for_files` no
    other condition leaves out files, so this one pays where it does. Raises UnreadableKeyError.
    """
    keys = restriction.cover
    costs = _costs(restriction, index)
    wide = widen(keys, restriction.names, replace(PARQUET, unordered=without_ranges([restriction])), costs)
    if keys.is_none or wide.is_all or not wide.encloses(keys):
        return None
    left = index.row_groups(wide, among or Cover.all()) if index is not None else None
    spares_files = for_files and index is not None and _spares_files(index, wide, among or Cover.all())
    if not spares_files and not _skips(wide, keys, index, left, among or Cover.all()):
        return None
    others = [*changed_assumptions([restriction]), *reader_guards([restriction])]
    sql = f"({' OR '.join([cover_sql(wide, PARQUET_LIST_MAX), *others])})"
    return RowGroupPredicate(sql, left) if len(sql) <= chars_max else None


def _costs(restriction: Restriction, index: FileIndex | None) -> dict[str, FileCosts]:
    if index is None:
        return {}
    known = ((name, index.costs(name)) for name in restriction.names)
    return {name: costs for name, costs in known if costs is not None}


def _skips(
    wide: Cover,
    keys: Cover,
    index: FileIndex | None,
    left: RowGroupCount | None,
    among: Cover,
) -> bool:
    """True if there may be row groups to skip, as their bounds tell.

    Bounds may not be known, or the condition may spare whole files that nothing else leaves out. Then the answer
    is True if the table is ordered, and a file has rows of other keys too.
    """
    if index is None or not index.files:
        return True
    if left is not None and left.spares_enough:
        return True
    if left is not None and left.is_complete and not _spares_files(index, wide, among):
        return False
    costs = [index.costs(column) for column in {column for box in wide.boxes for column, _ in box.domains}]
    is_clustered = any(known is None or known.is_clustered for known in costs)
    return is_clustered and index.reaches_out_of(wide, keys)


def _spares_files(index: FileIndex, wide: Cover, among: Cover) -> bool:
    selection = index.misses(wide, among)
    return spares_enough(selection.total_bytes - selection.kept_bytes, selection.total_bytes)


# The largest part of the buckets that keys are expected to be in. Beyond it too few are left out for the cost of
# looking up each row in the list of keys.
_SHARE_MAX = 0.8


def bucket_predicate(facts: TableFacts, restriction: Restriction, chars_max: int) -> str | None:
    """The condition that the bucket column holds a key; None if it would leave out too few buckets."""
    asked = restriction.of_columns({facts.bucket_column} if facts.bucket_column is not None else set())
    if asked is None or not isinstance(asked.keys, KeySet) or not facts.bucket_count:
        return None
    if 1.0 - (1.0 - 1.0 / facts.bucket_count) ** len(asked.keys.rows) > _SHARE_MAX:
        return None
    name, (type_name,) = quoted(asked.names[0]), asked.keys.type_names
    points = [key for (key,) in asked.keys.rows if key is not None]
    terms = [f"{name} IN ({', '.join(literals(type_name, points))})"] if points else []
    terms += [f"{name} IS NULL"] if asked.keys.has_null else []
    text = f"({' OR '.join([*terms, *changed_assumptions([asked]), *reader_guards([asked])])})"
    return text if terms and len(text) <= chars_max else None
