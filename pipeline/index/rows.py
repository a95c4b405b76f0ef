"""One row of the file index in Python, and its form in the index table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from pipeline.index.row_groups import RowGroupRun
from pipeline.index.texts import key_text
from pipeline.spark.local_rows import local_frame
from rewriter.files.file_facts import JSON_CHARS_MAX, file_identity

_FACTS = """
  path STRING, size_bytes BIGINT, modified_ms BIGINT, rows BIGINT,
  columns MAP<STRING, STRUCT<type: STRING, low: STRING, high: STRING, nulls: BIGINT,
    row_groups: ARRAY<STRUCT<low: STRING, high: STRING, count: BIGINT, steps: BIGINT>>>>,
  lacks ARRAY<STRUCT<columns: ARRAY<STRING>, tuples: ARRAY<ARRAY<STRING>>>>"""
# The index table has one more column, `table_name`, by which it is partitioned.
INDEX_COLUMNS = f"{_FACTS}, indexed_at TIMESTAMP"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FileColumnBounds:
    """The bounds of one column in one file; `low` and `high` are key texts, both None where they are unknown."""

    type_name: str
    low: str | None
    high: str | None
    nulls: int | None
    # Empty if they are not known, or in no order.
    row_groups: tuple[RowGroupRun, ...] = ()


@dataclass(frozen=True, slots=True)
class LacksEntry:
    """Tuples of these columns that no row of the file has."""

    columns: tuple[str, ...]
    tuples: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """One row of the index: `path`, `size_bytes` and `modified_ms` exactly as in Spark's `_metadata`."""

    path: str
    size_bytes: int
    modified_ms: int
    rows: int | None
    columns: Mapping[str, FileColumnBounds]
    lacks: tuple[LacksEntry, ...] = ()
    indexed_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def identity(self) -> str:
        """The identity of this version of the file."""
        return file_identity(self.path, self.size_bytes, self.modified_ms)


def bounds(type_name: str, low: str | None, high: str | None, nulls: int | None) -> FileColumnBounds:
    """The bounds of a column from its minimum and maximum as Spark casts them: both are known or neither."""
    texts = key_text(type_name, low), key_text(type_name, high)
    return FileColumnBounds(type_name, *(texts if None not in texts else (None, None)), nulls)


def as_frame(spark: SparkSession, files: Iterable[IndexedFile]) -> DataFrame:
    """The files as rows of the index table, without the column `table_name`."""
    # The time goes as a number: settings of the session decide how a text is read as a time.
    rows = local_frame(spark, map(_row, files), f"{_FACTS}, indexed_us BIGINT")
    return rows.withColumn("indexed_at", f.timestamp_micros("indexed_us")).drop("indexed_us")


def _row(file: IndexedFile) -> dict[str, object]:
    columns = _columns(file)
    # The proxy takes no JSON beyond this length. Spark writes none of the spaces and nulls here, so its is
    # shorter.
    if len(json.dumps(columns, ensure_ascii=False)) > JSON_CHARS_MAX:
        columns = {name: {**known, "row_groups": None} for name, known in columns.items()}
    return {
        "path": file.path,
        "size_bytes": file.size_bytes,
        "modified_ms": file.modified_ms,
        "rows": file.rows,
        "columns": columns,
        "lacks": [{"columns": entry.columns, "tuples": entry.tuples} for entry in file.lacks],
        "indexed_us": (file.indexed_at - _EPOCH) // timedelta(microseconds=1),
    }


def _columns(file: IndexedFile) -> dict[str, dict[str, object]]:
    return {
        name: {
            "type": known.type_name,
            "low": known.low,
            "high": known.high,
            "nulls": known.nulls,
            "row_groups": [asdict(run) for run in known.row_groups] or None,
        }
        for name, known in file.columns.items()
    }
