"""One file of the index as Python sees it, on its way into the index table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from pyspark.sql import DataFrame, SparkSession

from rewriter.files.file_facts import file_identity

# What stands in `table_name` beside these is the partition column of the index table.
INDEX_COLUMNS = """
  path STRING, size_bytes BIGINT, modified_ms BIGINT, rows BIGINT,
  columns MAP<STRING, STRUCT<type: STRING, low: STRING, high: STRING, nulls: BIGINT>>,
  lacks ARRAY<STRUCT<columns: ARRAY<STRING>, tuples: ARRAY<ARRAY<STRING>>>>,
  indexed_at TIMESTAMP"""

# A longer string is no bound: every session's proxy holds two of them for each column of each file.
STRING_CHARS_MAX = 256
# Control characters travel badly through terminals and logs, and U+FFFD stands for bytes that are not known.
_UNFIT_STRING = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ufffd]")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """What one file holds of one column; `low` and `high` are key texts, both None where they are not known."""

    type_name: str
    low: str | None
    high: str | None
    nulls: int | None


@dataclass(frozen=True, slots=True)
class LacksEntry:
    """Tuples of these columns that no row of the file has."""

    columns: tuple[str, ...]
    tuples: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """One row of the index: `path`, `size_bytes` and `modified_ms` exactly as Spark's `_metadata` says them."""

    path: str
    size_bytes: int
    modified_ms: int
    rows: int | None
    columns: Mapping[str, ColumnBounds]
    lacks: tuple[LacksEntry, ...] = ()
    indexed_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def identity(self) -> str:
        """Which version of which file it is."""
        return file_identity(self.path, self.size_bytes, self.modified_ms)


def key_text(type_name: str, text: str | None) -> str | None:
    """A value that Spark cast to a string, as the index writes it; None if it can be no bound.

    >>> key_text("decimal(10,8)", "1E-7")
    '0.0000001'
    >>> key_text("date", "+10000-01-01") is None
    True
    """
    if text is None:
        return None
    if type_name.startswith("decimal"):
        return _decimal_text(text)
    if type_name == "date":
        return text if _DATE.fullmatch(text) else None
    if type_name == "string":
        return text if len(text) <= STRING_CHARS_MAX and not _UNFIT_STRING.search(text) else None
    return text


def bounds(type_name: str, low: str | None, high: str | None, nulls: int | None) -> ColumnBounds:
    """The bounds of a column from its minimum and maximum as Spark casts them; both are known or neither."""
    texts = key_text(type_name, low), key_text(type_name, high)
    return ColumnBounds(type_name, *(texts if None not in texts else (None, None)), nulls)


def as_frame(spark: SparkSession, files: Iterable[IndexedFile]) -> DataFrame:
    """The files as rows of the index table, without the column `table_name`."""
    return spark.createDataFrame([_row(file) for file in files], INDEX_COLUMNS)


def _row(file: IndexedFile) -> tuple[object, ...]:
    columns = {name: (known.type_name, known.low, known.high, known.nulls) for name, known in file.columns.items()}
    lacks = [(list(entry.columns), [list(values) for values in entry.tuples]) for entry in file.lacks]
    return (file.path, file.size_bytes, file.modified_ms, file.rows, columns, lacks, file.indexed_at)


def _decimal_text(text: str) -> str | None:
    try:
        return format(Decimal(text), "f")
    except InvalidOperation:
        return None
