"""Counts of an Iceberg table's files by partition spec and kind, for explain alone: no decision depends on them.

Spark counts them each time that somebody asks: it reads the table's manifests, and answers a few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from proxy.config.rewriting import FilesSection
from proxy.operations.query import Ask, Query, Rows, Value
from rewriter import TableName

# One for each partition spec that a table has had, and each of three kinds of files.
_ROWS_MAX: Final = 1_000
_BYTES_MAX: Final = 65_536

# Kind, spec, number and bytes.
_COLUMNS: Final = 4
# The other kinds say which rows are deleted: by their place in a file, or by their keys.
_DATA: Final = 0


@dataclass(frozen=True)
class FileCounts:
    """Counts of the partition specs of a table's current files, and of its files of deleted rows."""

    # The number of partition specs of files of rows: where the spec was changed, older files keep theirs.
    partition_specs: int
    # Files that are read beside the files of rows, to leave out deleted rows.
    delete_files: int
    delete_bytes: int


async def file_counts(ask: Ask, table: TableName, settings: FilesSection) -> FileCounts | None:
    """The counts, or None where they cannot be had now."""
    answer = await ask(counts_query(table, settings))
    return _read(answer.rows) if isinstance(answer, Rows) else None


def counts_query(table: TableName, settings: FilesSection) -> Query:
    """The statement whose rows tell how many files there are of each kind and partition spec, and their bytes."""
    files = TableName((*table.parts, "files")).sql
    told = "content, spec_id, count(*), sum(file_size_in_bytes)"
    sql = f"SELECT {told} FROM {files} GROUP BY content, spec_id"  # noqa: S608 - quoted names
    return Query(sql, _ROWS_MAX, _BYTES_MAX, settings.query_deadline_s, needs_slot=True)


def _read(rows: Sequence[Sequence[Value]]) -> FileCounts | None:
    counted = [[value for value in row if isinstance(value, int)] for row in rows]
    if any(len(row) != _COLUMNS for row in counted):
        return None
    specs = {spec for content, spec, _, _ in counted if content == _DATA}
    deletes = [(count, size_bytes) for content, _, count, size_bytes in counted if content != _DATA]
    return FileCounts(len(specs), sum(count for count, _ in deletes), sum(size for _, size in deletes))
