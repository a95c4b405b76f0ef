"""The sieve with files: facts are cut into files of a few rows, and rows that a hint skips are left out by DuckDB.

Spark's `_metadata` is hidden from a star as DuckDB's `rowid` is. So a hint is translated into the numbers of the
rows that lie in the files it names, and the answer is compared like any other.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from grammar import Query
from sieve import NotRunError, Sieve
from star_tables import Row, Star, Table, catalog

from rewriter import (
    Column,
    KeyQuery,
    Keys,
    Plan,
    Rewrite,
    RewriteLimits,
    SkipReason,
    TableFacts,
    TableName,
    apply,
    parse,
    plan,
)
from rewriter.files.file_index import FileIndex

LIMITS = RewriteLimits(has_file_index=True)
ROWS_OF_A_FILE = 2
_CHARS_MAX = 100_000
_HINT = re.compile(
    r"\(_metadata\.file_size NOT IN \([^()]*\)"
    r" OR unix_millis\(_metadata\.file_modification_time\) NOT IN \([^()]*\)"
    r" OR concat\(_metadata\.file_path.*?\)\) NOT IN \(([^()]*)\)\)"
)
_NAMED = re.compile(r"'file:/\w+/(\d+)\|")


@dataclass(frozen=True)
class FiledTable(Table):
    """A table of which the file index knows every column."""

    @property
    def facts(self) -> TableFacts:
        """What the proxy would learn of the table, and of the index."""
        return replace(super().facts, indexed_columns=tuple(column.name for column in self.columns))

    @property
    def index(self) -> FileIndex:
        """The files of so many rows each, in their order."""
        cut = (self.rows[at : at + ROWS_OF_A_FILE] for at in range(0, len(self.rows), ROWS_OF_A_FILE))
        types = {column.name: column.type_name for column in self.columns}
        return FileIndex.of_rows((self._indexed(number, rows) for number, rows in enumerate(cut)), types)

    def _indexed(self, number: int, rows: tuple[Row, ...]) -> tuple[object, ...]:
        bounds = {
            column.name: _bounds(column, [row[place] for row in rows]) for place, column in enumerate(self.columns)
        }
        return f"file:/{self.name}/{number}", 100, 1, len(rows), json.dumps(bounds), "[]"


def _bounds(column: Column, values: list[object]) -> dict[str, object]:
    """The least and the largest value as text, where there are any."""
    known = sorted((value for value in values if value is not None), key=lambda value: (value, str(value)))
    ends = {"low": _text(known[0]), "high": _text(known[-1])} if known else {}
    return {"type": column.type_name, "nulls": len(values) - len(known), **ends}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def filed(star: Star, *names: str, partitioned: bool = True) -> Star:
    """The star with some of its tables in files, their partition columns kept as such or not."""
    return Star(
        tuple(
            FiledTable(t.name, t.columns, t.rows, t.partition_columns if partitioned else ())
            if t.name in names
            else t
            for t in star.tables
        )
    )


def skipping(sieve: Sieve, query: Query) -> str | None:
    """The statement with conditions on rows in the place of its file hints; None where it skips no file."""
    planned = _planned(query.sql, sieve.star)
    result = _rewritten(planned, sieve) if planned is not None else None
    if result is None or "_metadata" not in result.text:
        return None
    text = _HINT.sub(_of_rows, result.text)
    assert "_metadata" not in text, text
    return text


def wrong_with_files(sieve: Sieve, query: Query) -> Iterator[str]:
    """What is wrong with the answer that skips files; nothing where none is skipped."""
    text = skipping(sieve, query) if query.comparable else None
    if text is None:
        return
    try:
        expected = sieve.answer(query.sql, query)
    except NotRunError:
        return
    answer = sieve.answer(text, query)
    if answer != expected:
        yield f"original: {query.sql}\nskipping: {text}\nrows:     {expected}\nnow:      {answer}"


def _planned(sql: str, star: Star) -> Plan | None:
    statement = parse(sql, chars_max=_CHARS_MAX, has_file_index=True)
    if isinstance(statement, SkipReason):
        return None
    known: dict[TableName, TableFacts | None] = {}
    while (planned := plan(statement, known, LIMITS)).missing:
        known |= catalog(star.schema, planned.missing)
    return planned


def _rewritten(planned: Plan, sieve: Sieve) -> Rewrite:
    answers: dict[KeyQuery, Keys | SkipReason] = {}
    while pending := planned.pending(answers):
        answers |= {question: sieve.keys(question) for question in pending}
    files = {}
    for name in planned.wants_files(answers):
        table = sieve.star.table(name.parts[-1].lower())
        assert isinstance(table, FiledTable)
        files[name] = table.index
    return apply(planned, answers, LIMITS, files=files)


def _of_rows(hint: re.Match[str]) -> str:
    """The hint as a condition on the rows of the files that it names."""
    files = [int(number) for number in _NAMED.findall(hint[1])]
    rows = [str(row) for n in files for row in range(n * ROWS_OF_A_FILE, (n + 1) * ROWS_OF_A_FILE)]
    return f"(rowid NOT IN ({', '.join(rows)}))"
