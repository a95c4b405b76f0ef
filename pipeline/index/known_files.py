"""What the index says of a table's files before it is refreshed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as f

from pipeline.index.file_listing import comparable_path, current_paths
from pipeline.index.index_table import known_rows
from pipeline.index.indexed_table import SourceTable
from pipeline.index.rows import ColumnBounds, IndexedFile, LacksEntry
from rewriter.files.file_facts import file_identity


@dataclass(frozen=True)
class KnownFiles:
    """The files of the index, by identity where there is still one of that path. It may have changed since."""

    # The paths of those of which the index has all columns that are wanted.
    complete: Mapping[str, str]
    # Of these some: a load told of its own columns, or more are wanted than before.
    partial: Mapping[str, IndexedFile]
    # The paths of the others.
    gone: tuple[str, ...]


def known_files(spark: SparkSession, index: str, table: SourceTable) -> KnownFiles:
    """What the index says of the table's files, compared with the table's files now."""
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


def _is_complete(table: SourceTable) -> Column:
    complete = f.lit("true").cast("boolean")
    for name, type_name in table.columns.items():
        complete &= f.col("columns")[name.lower()]["type"].eqNullSafe(type_name)
    return complete


def _identity(row: Row) -> str:
    return file_identity(row.path, row.size_bytes, row.modified_ms)


def indexed_file(row: Row) -> IndexedFile:
    """A row of the index."""
    return IndexedFile(
        row.path,
        row.size_bytes,
        row.modified_ms,
        row.rows,
        {name: ColumnBounds(*known) for name, known in (row["columns"] or {}).items()},
        tuple(LacksEntry(tuple(columns), tuple(map(tuple, tuples))) for columns, tuples in row["lacks"] or ()),
    )
