"""Table facts from the client's own session: the statements that ask for them and the reading of the answers.

DESCRIBE's text is read on every Spark version, also where `AS JSON` exists: the JSON of Spark 4 calls a
`char(5)` column a `string`, and the difference decides whether a literal may be compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from proxy.config import CatalogSection
from proxy.queries import Query, QueryResult, Rows
from rewriter import Column, TableFacts, TableKind, TableName

_BYTES_MAX = 16 * 1024 * 1024  # DESCRIBE of the widest tables, or 200,000 partition names of 80 bytes
_PARTITIONS_HEADING = "# Partition Information"
_DETAILS_HEADING = "# Detailed Table Information"


def describe_query(name: TableName, settings: CatalogSection) -> Query:
    """The statement whose answer `read_description` reads."""
    return _query(f"DESCRIBE TABLE EXTENDED {name.sql}", settings.describe_rows_max, settings)


def partitions_query(name: TableName, settings: CatalogSection) -> Query:
    """The statement that lists a table's partitions, one string a row."""
    return _query(f"SHOW PARTITIONS {name.sql}", settings.partitions_max, settings)


def _query(sql: str, rows_max: int, settings: CatalogSection) -> Query:
    return Query(sql, rows_max=rows_max, bytes_max=_BYTES_MAX, deadline_s=settings.query_deadline_s)


def read_partitions(result: QueryResult) -> tuple[str, ...] | None:
    """The partitions as `ds=2026-01-01/region=eu`, or None where they could not be listed."""
    if not isinstance(result, Rows):
        return None
    return tuple(row[0] for row in result.rows if isinstance(row[0], str))


def read_description(result: QueryResult) -> TableFacts | None:
    """The facts in an answer to DESCRIBE TABLE EXTENDED, or None where it has none that we understand.

    Source of the layout: DescribeTableCommand in Spark's sql/core/.../execution/command/tables.scala.
    """
    if not isinstance(result, Rows):
        return None
    sections = _sections((str(row[0] or ""), str(row[1] or "")) for row in result.rows)
    details = dict(sections.get(_DETAILS_HEADING, ()))
    columns = tuple(Column(name, type_name.lower()) for name, type_name in sections.get("", ()))
    partition_columns = tuple(name for name, _ in sections.get(_PARTITIONS_HEADING, ()))
    if not columns or any(heading not in _KNOWN_HEADINGS for heading in sections):
        return None
    # A temporary view has no details, or says VIEW: neither is a table.
    is_table = details.get("Type") in {"MANAGED", "EXTERNAL"}
    return TableFacts(
        columns=columns,
        partition_columns=partition_columns,
        provider=details.get("Provider", "").lower(),
        kind=TableKind.TABLE if is_table else TableKind.VIEW,
    )


# The first three are understood; the rest may follow and say nothing about partition columns.
_KNOWN_HEADINGS = frozenset(
    {
        "",
        _PARTITIONS_HEADING,
        _DETAILS_HEADING,
        "# Storage Information",
        "# View Information",
        "# Metadata Columns",
    }
)


def _sections(rows: Iterator[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """The rows under each `# Heading`; those before the first stand under the empty one."""
    sections: dict[str, list[tuple[str, str]]] = {"": []}
    current = sections[""]
    for name, value in rows:
        if name == "# col_name":
            continue
        if name.startswith("# "):
            current = sections.setdefault(name, [])
        elif name:
            current.append((name, value))
    return sections


@dataclass
class FactsCache:
    """What one session was told about tables, each fact with the time until which it is believed."""

    settings: CatalogSection
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self._entries: dict[TableName, tuple[float, TableFacts | None]] = {}

    def current(self) -> dict[TableName, TableFacts | None]:
        """The facts that are not older than the configuration allows."""
        now = self.clock()
        self._entries = {name: entry for name, entry in self._entries.items() if entry[0] > now}
        return {name: facts for name, (_, facts) in self._entries.items()}

    def add(self, name: TableName, facts: TableFacts | None) -> None:
        """Remember a fact; the oldest one goes where there are too many."""
        if len(self._entries) >= self.settings.tables_max:
            del self._entries[next(iter(self._entries))]
        self._entries[name] = (self.clock() + self.settings.facts_ttl_s, facts)

    def clear(self) -> None:
        """Forget everything: the session ran a statement that may have changed what names mean."""
        self._entries.clear()
