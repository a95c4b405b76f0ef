"""Keys as ranges that Parquet and ORC skip row groups by, inside of the files that are read."""

from __future__ import annotations

from collections.abc import Mapping

from rewriter.domains.consumers import PARQUET, PARQUET_LIST_MAX
from rewriter.domains.cover import Cover
from rewriter.domains.widen import widen
from rewriter.files.bounds import FileCosts
from rewriter.files.file_index import FileIndex
from rewriter.predicate import Restriction, beside_uuids, cover_sql, doubts


def row_group_predicate(restriction: Restriction, index: FileIndex | None, chars_max: int) -> str | None:
    """The condition that the columns hold keys, or that the columns' types and the session changed since.

    As few keys as `PARQUET` takes are listed. More are said in ranges, which leave out where the files that the
    index knows have most of their bytes, or where the keys are farthest apart. None if it would let all files
    through whole, if the table is in no order of the columns, if the condition is too long, or if it is not proven
    to hold every key. Raises UnreadableKeyError.
    """
    keys = restriction.cover
    costs = _costs(restriction, index)
    wide = widen(keys, restriction.names, PARQUET, costs)
    if keys.is_none or wide.is_all or not wide.encloses(keys) or not _skips(wide, keys, index, costs):
        return None
    others = [*doubts([restriction]), *beside_uuids([restriction])]
    sql = f"({' OR '.join([cover_sql(wide, PARQUET_LIST_MAX), *others])})"
    return sql if len(sql) <= chars_max else None


def _costs(restriction: Restriction, index: FileIndex | None) -> dict[str, FileCosts]:
    if index is None:
        return {}
    known = ((name, index.costs(name)) for name in restriction.names)
    return {name: costs for name, costs in known if costs is not None}


def _skips(wide: Cover, keys: Cover, index: FileIndex | None, costs: Mapping[str, FileCosts]) -> bool:
    """Whether there may be row groups to skip: in a table in order, where a file has more than is asked for."""
    if index is None or not index.files:
        return True
    columns = {column for box in wide.boxes for column, _ in box.domains}
    is_clustered = any(column not in costs or costs[column].is_clustered for column in columns)
    return is_clustered and index.reaches_out_of(wide, keys)
