"""The index's rows of a table's files before a refresh."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as f

from pipeline.index.file_listing import comparable_path, current_paths
from pipeline.index.index_table import known_rows
from pipeline.index.indexed_table import IndexedTable
from pipeline.index.row_groups import RowGroupRun
from pipeline.index.rows import FileColumnBounds, IndexedFile, LacksEntry
from rewriter.files.file_facts import file_identity


@dataclass(frozen=True)
class KnownFiles:
    """The files of the index, by identity where a file of that path still exists. It may have changed since."""

    # Paths of files of which the index has all wanted columns.
    complete: Mapping[str, str]
    # Files of which it has some: a load wrote the columns it knew, or more are wanted than before.
    partial: Mapping[str, IndexedFile]
    # Paths of files that no longer exist.
    gone: tuple[str, ...]


def known_files(spark: SparkSession, index: str, table: IndexedTable) -> KnownFiles:
    """The index's rows of the table's files, compared with the table's files now."""
    current = current_paths(spark, table)
    rows = known_rows(spark, index, table.full_name).withColumn("is_complete", _is_complete(table))
    files = rows.select("path", "size_bytes", "modified_ms", "is_complete").collect()
    there = [file for file in files if comparable_path(file.path) in current]
    partial = [] if all(file.is_complete for file in there) else rows.where("NOT is_complete").collect()
    return KnownFiles(
        {_identity(file): file.path for file in there if file.is_complete},
        {_identity(row): indexed_file(row) for row in partial},
        tuple(file.path for file in files if comparable_path(file.path) not in current),
    )


def _is_complete(table: IndexedTable) -> Column:
    complete = f.lit("true").cast("boolean")
    for name, type_name in table.columns.items():
        complete &= f.col("columns")[name.lower()]["type"].eqNullSafe(type_name)
    return complete


def _identity(row: Row) -> str:
    return file_identity(row.path, row.size_bytes, row.modified_ms)


def indexed_file(row: Row) -> IndexedFile:
    """One row of the index as a file."""
    return IndexedFile(
        row.path,
        row.size_bytes,
        row.modified_ms,
        row.rows,
        {name: _bounds(known) for name, known in (row["columns"] or {}).items()},
        tuple(LacksEntry(tuple(columns), tuple(map(tuple, tuples))) for columns, tuples in row["lacks"] or ()),
    )


def _bounds(known: Row) -> FileColumnBounds:
    # An index that an earlier version made has no row groups.
    runs = known.asDict().get("row_groups") or ()
    return FileColumnBounds(
        known.type, known.low, known.high, known.nulls, tuple(RowGroupRun(*run) for run in runs)
    )
