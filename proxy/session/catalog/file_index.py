"""The file index as a table: the queries to it by the client's login, and the parsers of their answers."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from proxy.config.rewriting import FilesSection
from proxy.operations.query import Query, QueryResult, Rows, Value
from rewriter import TableFacts, TableKind, TableName
from rewriter.domains.literals import literal

_log = logging.getLogger(__name__)

_WORD = re.compile(r"\w+")

# The largest average size of small files: Spark reads several of them in one split, and could read several splits
# in one task. A file counts four megabytes more than it is (`rewriter.splits.packing`), and there may be larger
# ones among them.
_SMALL_FILE_BYTES = 16 * 1024 * 1024

# A name and three numbers for each table.
_TABLE_BYTES_MAX = 1_000


@dataclass(frozen=True)
class TableFigures:
    """Figures of a table in the file index. They differ once the table's rows in the index have changed."""

    files: int
    size_bytes: int
    # When a file of the table was indexed last, in microseconds.
    indexed_at: int

    def has_small_files(self, files_min: int) -> bool:
        """True if it has more files than that, and small ones by their average."""
        return self.files > files_min and self.size_bytes <= self.files * _SMALL_FILE_BYTES


@dataclass(frozen=True)
class IndexOverview:
    """The tables of a file index that a session may read, by their full names in lower case."""

    index: str
    tables: Mapping[str, TableFigures]
    # When it was answered, and when it expires.
    at: float
    until: float

    def is_named_in(self, statement: str) -> bool:
        """True if a statement may name one of the tables."""
        return not self._words.isdisjoint(words(statement))

    def names_small_files_in(self, statement: str, files_min: int) -> bool:
        """True if a statement may name one of the tables with more small files than that."""
        if files_min not in self._words_of_small_files:
            small = (name for name, table in self.tables.items() if table.has_small_files(files_min))
            self._words_of_small_files[files_min] = last_words(small)
        found = self._words_of_small_files[files_min]
        return bool(found) and not found.isdisjoint(words(statement))

    @cached_property
    def _words_of_small_files(self) -> dict[int, frozenset[str]]:
        """The words of the tables with more small files than a number, which a new configuration may change."""
        return {}

    @cached_property
    def _words(self) -> frozenset[str]:
        return last_words(self.tables)


def last_words(tables: Iterable[str]) -> frozenset[str]:
    """The last word of each table's own name: a statement cannot name the table without it."""
    names = (_WORD.findall(name.rpartition(".")[2]) for name in tables)
    return frozenset(found[-1] for found in names if found)


def words(text: str) -> Iterable[str]:
    """The words of a text that may be names of tables, in lower case."""
    return (word.lower() for word in _WORD.findall(text))


def name_in_index(facts: TableFacts | None) -> str | None:
    """The name of a table in the file index; None where it cannot be in it, or where columns could be mistaken."""
    if facts is None or facts.kind is not TableKind.TABLE or facts.columns_differ_by_case:
        return None
    return str(facts.full_name).lower() if facts.full_name is not None else None


def tables_query(settings: FilesSection) -> Query:
    """The statement whose answer `read_tables` reads.

    Without the columns' names: to read those of 80,000 files took 3.5 times as long as this.
    """
    numbers = "count(*), sum(size_bytes), unix_micros(CAST(max(indexed_at) AS TIMESTAMP))"
    sql = f"SELECT table_name, {numbers} FROM {_sql(settings)} GROUP BY table_name"  # noqa: S608 - a quoted name
    bytes_max = _TABLE_BYTES_MAX * settings.tables_max
    return Query(sql, settings.tables_max, bytes_max, settings.query_deadline_s, needs_slot=True)


def read_tables(result: QueryResult, files_max: int) -> dict[str, TableFigures]:
    """The tables in an answer but for those with too many files; none where the session may not read the index."""
    if not isinstance(result, Rows):
        return {}
    found = dict(filter(None, map(_read_table, result.rows)))
    too_many = [name for name, table in found.items() if table.files > files_max]
    for name in too_many:
        _log.info("the file index has more files of %s than files.files_max, so it is not used", name)
        del found[name]
    return found


def _read_table(row: tuple[Value, ...]) -> tuple[str, TableFigures] | None:
    match row:
        case (str(name), int(files), int(size_bytes), int(indexed_at)):
            return name, TableFigures(files, size_bytes, indexed_at)
    return None


# Up to this number of files, their row groups are asked for too: for ten columns, 5 KB for each file.
FILES_WITH_ROW_GROUPS_MAX = 2_000
_BOUNDS_ALONE = (
    "transform_values(columns, (name, known) -> "
    "named_struct('type', known.type, 'low', known.low, 'high', known.high, 'nulls', known.nulls))"
)


def files_query(name: str, settings: FilesSection, *, with_row_groups: bool) -> Query:
    """The statement whose rows `FileIndex.of_rows` reads."""
    known = "columns" if with_row_groups else _BOUNDS_ALONE
    columns = f"path, size_bytes, modified_ms, `rows`, to_json({known}), to_json(lacks)"
    where = f"table_name = {literal('string', name)}"
    sql = f"SELECT {columns} FROM {_sql(settings)} WHERE {where}"  # noqa: S608 - a quoted name and a literal
    bounds = settings.files_max, settings.fetch_bytes_max, settings.query_deadline_s
    return Query(sql, *bounds, needs_slot=True)


def _sql(settings: FilesSection) -> str:
    return TableName(tuple(settings.index.split("."))).sql
