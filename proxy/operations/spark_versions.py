"""Answers and errors that differ between versions of Spark: all that the proxy reads in more than one way.

Measured on 3.3.4, 3.4.4, 3.5.9, 4.0.5 and 4.3.0, and with Iceberg 1.12 on 3.5.9 and 4.1.4. No server is asked for
its version: each form shows by itself the version that it is of, and an unknown form is not read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from proxy.operations.query import QueryResult, Rows
from rewriter import TableName, ViewText

# Spark's own catalog. Up to 3.3 DESCRIBE does not name it. Tables of other catalogs have neither a row `Database`
# nor a row `Table` there, but a row `Name`.
_SESSION_CATALOG: Final = "spark_catalog"

# Words of an error by which the metastore has refused the partition filter of a statement (HiveShim.scala): those
# of 4.0 and older, and the class of newer ones.
FILTER_REFUSED: Final = (
    "Caught Hive MetaException attempting to get partition metadata by filter from Hive",
    "INTERNAL_ERROR_HIVE_METASTORE_PARTITION_FILTER",
)

# Settings that change what quotes and backslashes mean, and the values with which they change nothing. 3.3 does
# not know the first one.
DEFAULT_QUOTING: Final[Mapping[str, frozenset[str]]] = {
    "spark.sql.ansi.doubleQuotedIdentifiers": frozenset({"false", "<undefined>"}),
    "spark.sql.parser.escapedStringLiterals": frozenset({"false"}),
}

# A scan of an Iceberg table in a plan: on 4.1 `BatchScan t[k#1] IcebergScan(table=t, schemaId=0, ..)`, and on 3.5
# `BatchScan t[k#1] t (branch=null) [filters=, groupedBy=]`, which tells neither its schema nor its snapshot.
ICEBERG_SCAN: Final = re.compile(r"\bIcebergScan\(| \(branch=[^\s()]{1,256}\) \[filters=")


def with_catalog(details: Mapping[str, str]) -> Mapping[str, str]:
    """The details of a table or view in an answer to DESCRIBE, with its catalog where a server does not say it.

    >>> with_catalog({"Database": "shop", "Table": "sales"})["Catalog"]
    'spark_catalog'
    """
    is_named = "Catalog" in details or not {"Database", "Table"} <= details.keys()
    return details if is_named else {**details, "Catalog": _SESSION_CATALOG}


def is_filter_refused(message: str) -> bool:
    """True if a statement failed because the metastore refused a partition filter."""
    return any(words in message for words in FILTER_REFUSED)


def output_columns(listed: str) -> tuple[str, ...]:
    """The names in a view's `View Query Output Columns`; none where they are not certain.

    Up to 3.5 no name is quoted, so that one may hold a comma or be in backquotes of its own.

    >>> output_columns("[`day`, `region`]"), output_columns("[day, region]"), output_columns("[```day```]")
    (('day', 'region'), ('day', 'region'), ())
    """
    names = listed.removeprefix("[").removesuffix("]").split(", ")
    found = [_OUTPUT.fullmatch(name) for name in names]
    return tuple(name[1] or name[2] for name in found if name is not None) if all(found) else ()


_OUTPUT: Final = re.compile(r"`([^`]+)`|([^`]+)")

# A name that has no characters by which LIKE would take it for a pattern.
_PLAIN_NAME: Final = re.compile(r"\w+", re.ASCII)
_GLOBAL: Final = "global_temp"


def older_view_text_sql(name: TableName) -> str | None:
    """The statement whose answer `read_older_view_text` reads: 3.x tells a temporary view's text by no other one.

    >>> older_view_text_sql(TableName(("recent",))), older_view_text_sql(TableName(("shop", "sales")))
    ("SHOW TABLE EXTENDED LIKE 'recent'", None)
    """
    *databases, view = name.parts
    is_temporary = not databases or databases == [_GLOBAL]
    if not is_temporary or name.version or _PLAIN_NAME.fullmatch(view) is None:
        return None
    return f"SHOW TABLE EXTENDED {f'IN {_GLOBAL} ' if databases else ''}LIKE '{view}'"


# The answer of 3.x about a temporary view. It has these lines alone, a comment of the view's maker not among them.
_NAMESPACE: Final = "\nView Catalog and Namespace: "
_OLDER_VIEW: Final = re.compile(
    r"(?:(?:Catalog|Database): [^\n]*\n)*Table: (?P<name>\w+)\n"
    r"Created Time: [^\n]*\nLast Access: [^\n]*\nCreated By: [^\n]*\nType: VIEW\nView Text: (?P<text>.+)"
    rf"{_NAMESPACE}(?P<catalog>\w+)\.(?P<database>\w+)\n"
    r"View Query Output Columns: (?P<columns>\[[^\n]+\])\nSchema: root\n.*",
    re.DOTALL,
)


def read_older_view_text(result: QueryResult, name: TableName) -> ViewText | None:
    """The text of a temporary view, where the answer is about one of that name alone, and can be read in one way.

    A table of the current database may have its name. A text that holds lines like those around it is not read.
    """
    if not isinstance(result, Rows):
        return None
    view = name.parts[-1].lower()
    # namespace, tableName, isTemporary, information
    told = [str(row[3]) for row in result.rows if row[2] is True and str(row[1]).lower() == view]
    if len(told) != 1 or told[0].count(_NAMESPACE) != 1:
        return None
    found = _OLDER_VIEW.fullmatch(told[0])
    outputs = output_columns(found["columns"]) if found is not None else ()
    if found is None or not outputs or found["name"].lower() != view:
        return None
    return ViewText(found["text"], (found["catalog"], found["database"]), outputs, is_temporary=True)
