"""Sample of a table: bounds of whole files and values of single rows, by queries that only read.

Files are chosen by a hash of their paths, and rows by chance from these files. Bounds are those of all rows of a
file: bounds of some rows would promise more than the file index could hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from proxy.operations.query import Query, Rows, Value, ask_driver
from rewriter import Column, TableFacts, TableName
from rewriter.domains.literals import Key, UnreadableKeyError, key_expression, key_of_answer
from rewriter.files.file_index import Bounds, FileFacts
from rewriter.vocabulary.identifiers import quoted

# Files whose bounds are fetched: a row of some hundred bytes each.
FILES_MAX: Final = 5_000
# Rows whose values are fetched. 50,000 of them tell a quantile of 1 % up to a tenth of itself.
ROWS_MAX: Final = 50_000
_ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
# Somewhat fewer rows are chosen than may be fetched, so that chance rarely chooses too many.
_CHANCE: Final = 0.9
_SEED: Final = 24

SampleRow: TypeAlias = tuple[Key | None, ...]


class UnmeasuredError(Exception):
    """A table could not be looked at. The message is a sentence for the user."""


@dataclass(frozen=True)
class TableSample:
    """A table's size, the files that were looked at, and rows of these files."""

    facts: TableFacts
    # Numbers of the whole table.
    partition_count: int
    file_count: int
    bytes: int
    row_count: int
    # The columns that were looked at, by their names in lower case, partition columns first.
    columns: tuple[Column, ...]
    files: tuple[FileFacts, ...]
    rows: tuple[SampleRow, ...]

    @property
    def name(self) -> TableName:
        """The table's full name."""
        assert self.facts.full_name is not None  # noqa: S101 - only tables with one are laid out
        return self.facts.full_name

    @property
    def share(self) -> float:
        """The part of the table's bytes whose bounds are known."""
        return sum(facts.size_bytes for facts in self.files) / self.bytes if self.bytes else 1.0

    @property
    def type_names(self) -> dict[str, str]:
        """The types of the columns that were looked at."""
        return {column.name: column.type_name for column in self.columns}

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The partition columns that were looked at: others have a type that has no keys."""
        partitions = {name.lower() for name in self.facts.partition_columns}
        return tuple(column.name for column in self.columns if column.name in partitions)


async def sample(facts: TableFacts, names: Sequence[str], *, bytes_max: int, deadline_s: float) -> TableSample:
    """Look at some columns of a table, in files of about so many bytes. Raises UnmeasuredError."""
    assert facts.full_name is not None  # noqa: S101 - only tables with one are laid out
    source = facts.full_name.sql
    columns = tuple(Column(name, known.type_name) for name in names if (known := facts.column(name)) is not None)
    (sized,) = await _rows_of(
        _size_sql(source, facts.partition_columns), 1, deadline_s, "its files could not be counted"
    )
    partition_count, file_count, size_bytes, row_count = (int(value or 0) for value in sized)
    if not row_count:
        raise UnmeasuredError("it has no rows")
    nth = max(1, math.ceil(file_count / FILES_MAX), math.ceil(size_bytes / bytes_max))
    chosen = f" WHERE pmod(xxhash64(_metadata.file_path), {nth}) = 0" if nth > 1 else ""
    asked = _bounds_sql(source, columns, chosen)
    bounds = await _rows_of(asked, 2 * FILES_MAX, deadline_s, "the bounds of its files could not be read")
    files = tuple(_file(row, columns) for row in bounds)
    rows_chosen = sum(facts.rows or 0 for facts in files)
    if not rows_chosen:
        raise UnmeasuredError(f"a sample of one file in {nth} has no rows: raise --sample-mb")
    asked = _rows_sql(source, columns, chosen, rows_chosen)
    values = await _rows_of(asked, ROWS_MAX, deadline_s, "its rows could not be read")
    try:
        rows = tuple(_row(row, columns) for row in values)
    except UnreadableKeyError as error:
        raise UnmeasuredError(f"its values could not be read: {error}") from error
    return TableSample(facts, partition_count, file_count, size_bytes, row_count, columns, files, rows)


async def _rows_of(sql: str, rows_max: int, deadline_s: float, failure: str) -> tuple[tuple[Value, ...], ...]:
    answer = await ask_driver(Query(sql, rows_max, _ANSWER_BYTES_MAX, deadline_s))
    if isinstance(answer, Rows):
        return answer.rows
    raise UnmeasuredError(f"{failure}: {answer.kind.value}, {answer.message}")


def _size_sql(source: str, partition_columns: Sequence[str]) -> str:
    partition = f"max(xxhash64({', '.join(map(quoted, partition_columns))}))" if partition_columns else "0"
    shown = f"{partition} AS part, max(_metadata.file_size) AS size_bytes, count(*) AS row_count"
    files = f"SELECT {shown} FROM {source} GROUP BY _metadata.file_path"  # noqa: S608 - quoted names
    return f"SELECT count(DISTINCT part), count(*), sum(size_bytes), sum(row_count) FROM ({files})"  # noqa: S608


def _bounds_sql(source: str, columns: Sequence[Column], chosen: str) -> str:
    shown = ["_metadata.file_path", "max(_metadata.file_size)"]
    shown += ["max(unix_millis(_metadata.file_modification_time))", "count(*)"]
    for column in columns:
        name = quoted(column.name)
        shown += [key_expression(column.type_name, f"{which}({name})") for which in ("min", "max")]
        shown.append(f"count_if({name} IS NULL)")
    return f"SELECT {', '.join(shown)} FROM {source}{chosen} GROUP BY _metadata.file_path"  # noqa: S608 - quoted names


def _rows_sql(source: str, columns: Sequence[Column], chosen: str, row_count: int) -> str:
    shown = ", ".join(key_expression(column.type_name, quoted(column.name)) for column in columns)
    condition = f"{chosen} AND " if chosen else " WHERE "
    part = f"{condition}rand({_SEED}) < {_CHANCE * ROWS_MAX / row_count:.9f}" if row_count > ROWS_MAX else chosen
    return f"SELECT {shown} FROM {source}{part} LIMIT {ROWS_MAX}"  # noqa: S608 - quoted names


def _file(row: Sequence[Value], columns: Sequence[Column]) -> FileFacts:
    path, size_bytes, modified_ms, count, *bounds = row
    found = {}
    for number, column in enumerate(columns):
        low, high, nulls = bounds[3 * number : 3 * number + 3]
        try:
            found[column.name] = Bounds(
                key_of_answer(column.type_name, low), key_of_answer(column.type_name, high), int(nulls or 0)
            )
        except UnreadableKeyError:
            # Without bounds, the file counts as read for any value.
            continue
    return FileFacts(str(path), int(size_bytes or 0), int(modified_ms or 0), int(count or 0), found, ())


def _row(row: Sequence[Value], columns: Sequence[Column]) -> SampleRow:
    return tuple(key_of_answer(column.type_name, value) for column, value in zip(columns, row, strict=True))
