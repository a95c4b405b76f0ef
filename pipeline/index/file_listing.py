"""The files of a table as Spark names and reads them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from pyspark.sql import Row, SparkSession

from pipeline.index.indexed_table import IndexedTable
from pipeline.index.rows import FileColumnBounds, IndexedFile, bounds
from rewriter.domains.literals import TIMES, literal
from rewriter.files.file_facts import value_reader
from rewriter.files.file_hint import FILE_IDENTITY, FILE_SIZE, FILE_TIME
from rewriter.vocabulary.identifiers import quoted

_FILE = f"_metadata.file_path, {FILE_SIZE}, {FILE_TIME}"

# The first day on which the Julian and the Gregorian calendar agree. A setting of the session
# (`datetimeRebaseModeInRead`) decides how earlier days are read where a file does not say who wrote it.
_FIRST_CERTAIN_DATE = "1582-10-15"


def current_paths(spark: SparkSession, table: IndexedTable) -> frozenset[str]:
    """The paths of the table's files now, each in the spelling of `comparable_path`."""
    return frozenset(comparable_path(path) for path in spark.table(table.sql).inputFiles())


def comparable_path(path: str) -> str:
    """One spelling of a path for the two that Spark uses.

    >>> comparable_path("file:///a"), comparable_path("file:/a"), comparable_path("s3a://bucket/a")
    ('file:/a', 'file:/a', 's3a://bucket/a')
    """
    return re.sub(r"^file:/+", "file:/", path)


def all_but_files(identities: Iterable[str]) -> str:
    """The condition that excludes these files; Spark applies it before it opens any."""
    listed = ", ".join(literal("string", text) for text in identities)
    return f"{FILE_IDENTITY} NOT IN ({listed})" if listed else "TRUE"


def only_files(files: Collection[IndexedFile]) -> str:
    """The condition that holds in these versions of these files alone."""
    return f"{FILE_IDENTITY} IN ({', '.join(literal('string', file.identity) for file in files)})"


def file_profiles(
    spark: SparkSession, table: IndexedTable, columns: Mapping[str, str], condition: str, files_max: int
) -> list[IndexedFile]:
    """The files in which the condition holds, with rows and exact bounds of the columns, as Spark reads them.

    A file without rows is not among them.
    """
    measures = [
        f"CAST(min({quoted(name)}) AS STRING), CAST(max({quoted(name)}) AS STRING), count({quoted(name)})"
        for name in columns
    ]
    rows = spark.sql(
        f"SELECT {', '.join([_FILE, 'count(*)', *measures])} FROM {table.sql} WHERE {condition} "
        f"GROUP BY {_FILE} LIMIT {files_max}"
    ).collect()
    return [_profile(columns, row) for row in rows]


def certain_bounds(type_name: str, low: str | None, high: str | None, nulls: int | None) -> FileColumnBounds:
    """Bounds that hold in every session, however it reads the dates and times of old calendars."""
    if type_name == "date" and low is not None and low < _FIRST_CERTAIN_DATE:
        low = high = None
    if type_name in TIMES and None in {value_reader(type_name)(low), value_reader(type_name)(high)}:
        low = high = None
    return bounds(type_name, low, high, nulls)


def _profile(columns: Mapping[str, str], row: Row) -> IndexedFile:
    path, size_bytes, modified_ms, rows, *measures = row
    found = {
        name: certain_bounds(columns[name], low, high, rows - values)
        for name, low, high, values in zip(columns, measures[::3], measures[1::3], measures[2::3], strict=True)
    }
    return IndexedFile(path, size_bytes, modified_ms, rows, found)
