"""Table facts as a session is told them: the statements that ask for them, and the parsers of the answers.

DESCRIBE's text is read on every Spark version, also where `AS JSON` exists: the JSON of Spark 4 calls a
`char(5)` column a `string`, and the difference decides whether a literal may be compared with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import Query, QueryResult, Rows
from proxy.operations.spark_versions import older_view_text_sql, output_columns, with_catalog
from proxy.session.catalog import describe_delta, describe_iceberg
from proxy.session.catalog.spark_settings import ORC_BY_POSITION
from rewriter import Column, TableFacts, TableKind, TableName, ViewText

_BYTES_MAX = 16 * 1024 * 1024  # DESCRIBE of the widest tables, or 200,000 partition names of 80 bytes
_SAME_NAMES_MAX = 10
_PARTITIONS_HEADING = "# Partition Information"
_DETAILS_HEADING = "# Detailed Table Information"


def describe_query(name: TableName, settings: CatalogSection) -> Query:
    """The statement whose answer `read_description` reads."""
    return _query(f"DESCRIBE TABLE EXTENDED {name.sql}", settings.describe_rows_max, settings, name)


def view_text_query(name: TableName, settings: CatalogSection) -> Query:
    """The statement whose answer `read_view_text` reads: on Spark 4 it shows a temporary view's text."""
    return _query(f"DESCRIBE TABLE EXTENDED {name.sql} AS JSON", 1, settings, name)


def older_view_text_query(name: TableName, settings: CatalogSection) -> Query | None:
    """The same for Spark 3, read by `read_older_view_text`; None for a name that cannot be asked about."""
    sql = older_view_text_sql(name)
    # A table of the current database may have the name as well.
    return None if sql is None else _query(sql, _SAME_NAMES_MAX, settings, name)


def columns_query(name: TableName, settings: CatalogSection) -> Query:
    """The statement whose answer `read_columns` reads: the columns of a version of a table."""
    sql = f"DESCRIBE QUERY SELECT * FROM {name.sql}"  # noqa: S608 - a quoted name
    return _query(sql, settings.describe_rows_max, settings, name)


def read_columns(result: QueryResult) -> tuple[Column, ...]:
    """The columns of a query; none where it failed."""
    if not isinstance(result, Rows):
        return ()
    return tuple(Column(str(row[0]), str(row[1]).lower()) for row in result.rows)


def partitions_query(name: TableName, settings: CatalogSection) -> Query:
    """The statement that lists a table's partitions, one string a row."""
    return _query(f"SHOW PARTITIONS {name.sql}", settings.partitions_max, settings, name)


def _query(sql: str, rows_max: int, settings: CatalogSection, name: TableName) -> Query:
    reads = frozenset({name})
    return Query(sql, rows_max=rows_max, bytes_max=_BYTES_MAX, deadline_s=settings.query_deadline_s, reads=reads)


def read_partitions(result: QueryResult) -> tuple[str, ...] | None:
    """The partitions as `ds=2026-01-01/region=eu`, or None where they could not be listed."""
    if not isinstance(result, Rows):
        return None
    return tuple(row[0] for row in result.rows if isinstance(row[0], str))


def read_description(result: QueryResult) -> TableFacts | None:
    """The facts in an answer to DESCRIBE TABLE EXTENDED, or None where it has none that can be parsed.

    Source of the layout: DescribeTableCommand in Spark's sql/core/.../execution/command/tables.scala.
    """
    if not isinstance(result, Rows):
        return None
    sections = _sections((str(row[0] or ""), str(row[1] or "")) for row in result.rows)
    details = with_catalog(dict(sections.get(_DETAILS_HEADING, ())))
    columns = tuple(Column(name, type_name.lower()) for name, type_name in sections.get("", ()))
    partition_columns = tuple(name for name, _ in sections.get(_PARTITIONS_HEADING, ()))
    is_iceberg = details.get("Provider", "").lower() == describe_iceberg.PROVIDER
    transforms = sections.pop(describe_iceberg.TRANSFORMS_HEADING, ()) if is_iceberg else ()
    if not columns or any(heading not in _KNOWN_HEADINGS for heading in sections):
        return None
    if details.get("View Schema Mode") in _EVOLVING:
        return None
    # A temporary view has no details, or says VIEW: neither is a table.
    is_table = details.get("Type") in {"MANAGED", "EXTERNAL"}
    facts = TableFacts(
        columns=columns,
        partition_columns=partition_columns,
        provider=_provider(details),
        kind=TableKind.TABLE if is_table else TableKind.VIEW,
        full_name=_full_name(details),
        size_bytes=_bytes(details.get("Statistics", "")),
        bucket_columns=_bucket_columns(details.get("Bucket Columns", "")),
        bucket_count=_bucket_count(details.get("Num Buckets", "")),
        converted_format=_converted_format(details),
        view=None if is_table else _lasting_view(details),
    )
    if facts.provider == describe_delta.PROVIDER:
        return describe_delta.with_delta(facts, details)
    if not is_iceberg:
        return facts
    return describe_iceberg.with_iceberg(facts, (transform for _, transform in transforms), details)


def _provider(details: Mapping[str, str]) -> str:
    """The format of a table, in lower case. One whose columns ORC finds by their place is of no known format."""
    if f"{ORC_BY_POSITION}=true" in details.get("Storage Properties", "").lower():
        return "orc by position"
    return details.get("Provider", "").lower()


def _full_name(details: Mapping[str, str]) -> TableName | None:
    """The name by which every session knows a table or view. Temporary views have a bare name, if any."""
    parts = tuple(details[name] for name in ("Catalog", "Database", "Table") if name in details)
    return TableName(parts) if {"Database", "Table"} <= details.keys() else None


def _converted_format(details: Mapping[str, str]) -> str:
    """The format of a table of Hive's that Spark converts to its own, by the name of the SerDe, as Spark does it.

    Source: RelationConversions in Spark's sql/hive/.../HiveStrategies.scala.
    """
    if details.get("Provider", "").lower() != "hive":
        return ""
    serde = details.get("Serde Library", "").lower()
    return next((name for name in ("parquet", "orc") if name in serde), "")


def _bytes(statistics: str) -> int | None:
    """The size in `4841 bytes` or `4841 bytes, 1000 rows`. It may be older than the last write."""
    found = _STATISTICS.match(statistics)
    return int(found[1]) if found is not None else None


def _bucket_columns(text: str) -> tuple[str, ...]:
    """The names in "[`x`, `y`]"; none where one of them is not plain."""
    names = text.removeprefix("[").removesuffix("]").split(", ")
    return tuple(name.strip("`") for name in names) if all(map(_BUCKET_COLUMN.fullmatch, names)) else ()


def _bucket_count(text: str) -> int | None:
    return int(text) if _BUCKET_COUNT.fullmatch(text) else None


def _lasting_view(details: Mapping[str, str]) -> ViewText | None:
    """The text of a view that is not temporary, with the catalog and database of its names; None for any other."""
    namespace = _namespace(details.get("View Catalog and Namespace", ""))
    text = details.get("View Text")
    if details.get("Type") != "VIEW" or namespace is None or not text or _SEARCH_PATH in details:
        return None
    return ViewText(text, namespace, output_columns(details.get("View Query Output Columns", "")))


def read_view_text(result: QueryResult) -> ViewText | None:
    """The text in an answer to DESCRIBE .. AS JSON, taken for a temporary view's, whose names are less certain."""
    if not isinstance(result, Rows) or len(result.rows) != 1:
        return None
    try:
        described = json.loads(str(result.rows[0][0]))
    except (ValueError, RecursionError):
        return None
    if not isinstance(described, dict) or any("path" in key for key in described):
        return None
    namespace = _namespace(str(described.get("view_catalog_and_namespace")))
    text, outputs = described.get("view_text"), described.get("view_query_output_columns")
    if namespace is None or not isinstance(text, str) or not isinstance(outputs, list):
        return None
    return ViewText(text, namespace, tuple(map(str, outputs)), is_temporary=True)


# A table that was never analyzed has no statistics, unless its CREATE filled it or Spark keeps them up to date.
# Twenty digits hold every size; a number of thousands of digits is nothing that Spark would write.
_STATISTICS = re.compile(r"(\d{1,20}) bytes\b")
_BUCKET_COLUMN = re.compile(r"`\w+`")
# Spark allows a hundred thousand buckets unless it is told otherwise.
_BUCKET_COUNT = re.compile(r"[1-9]\d{0,8}", re.ASCII)
# Spark 4.2 and later keep a view's SQL path with it, if it has one: names without a database are searched along
# it.
_SEARCH_PATH = "SQL Path"
# A view of such a mode shows the columns, or the types, that its query has now. DESCRIBE tells those that it had
# when it was last read.
_EVOLVING = frozenset({"EVOLUTION", "TYPE EVOLUTION"})
# Two plain names. Spark quotes any other, which is then not understood.
_NAMESPACE = re.compile(r"(\w+)\.(\w+)")


def _namespace(text: str) -> tuple[str, str] | None:
    found = _NAMESPACE.fullmatch(text)
    return (found[1], found[2]) if found is not None else None


# The first three are understood; the rest may follow and say nothing about partition columns.
_KNOWN_HEADINGS = frozenset(
    {
        "",
        _PARTITIONS_HEADING,
        _DETAILS_HEADING,
        "# Storage Information",
        "# View Information",
        "# Metadata Columns",
        "# Column Default Values",
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


def read_identity(result: QueryResult) -> tuple[str, ...]:
    """The identity of a table among earlier and later ones of its name: its location and time of creation."""
    if not isinstance(result, Rows):
        return ()
    sections = _sections((str(row[0] or ""), str(row[1] or "")) for row in result.rows)
    details = with_catalog(dict(sections.get(_DETAILS_HEADING, ())))
    return tuple(details[name] for name in _IDENTITY) if all(name in details for name in _IDENTITY) else ()


# The table's own name comes first: lists are dropped by it when a statement names the table.
_IDENTITY = ("Table", "Database", "Catalog", "Location", "Created Time")
