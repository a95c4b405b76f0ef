"""Hive's list bucketing in DDL: SKEWED BY clauses become table properties, which Spark keeps.

Spark's grammar has the clauses, and Spark refuses each (`skewSpec` and `unsupportedHiveNativeCommands` in
SqlBaseParser.g4; "Operation not allowed"). So the proxy changes only texts that would fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from proxy.statements.ddl_items import Item, ddl_items, separated, shape
from proxy.statements.skew_clause import SkewClause, SkewRefusedError
from rewriter.catalog.skewed_by import OWN_FILES_PROPERTY, PROPERTIES

_FIRST_WORDS: Final = frozenset({"create", "alter"})
# One of these stands in each of the clauses.
_IN_CLAUSES: Final = re.compile(r"\bskewed\b|\bdirectories\b", re.IGNORECASE)

_NAME: Final = r"(?:[`\w]+ (?:\. [`\w]+ )*+)"
_STRING: Final = r"(?:'' )++"
_CREATE: Final = re.compile(
    rf"CREATE (?:EXTERNAL )?TABLE (?:IF NOT EXISTS )?{_NAME}(?P<columns>\(\) )?(?:USING {_NAME})?"
)
_SKEWED: Final = r"(?P<skewed>SKEWED BY \(\) ON \(\) (?:STORED AS DIRECTORIES )?)"
_OTHER_CLAUSES: Final = (
    r"OPTIONS \(\) ",
    r"CLUSTER BY \(\) ",
    r"CLUSTERED BY \(\) (?:SORTED BY \(\) )?INTO 0 BUCKETS ",
    rf"ROW FORMAT SERDE {_STRING}(?:WITH SERDEPROPERTIES \(\) )?",
    (
        rf"ROW FORMAT DELIMITED (?:(?:(?:FIELDS|COLLECTION ITEMS|MAP KEYS|LINES) TERMINATED|ESCAPED) BY {_STRING}"
        rf"|NULL DEFINED AS {_STRING})*+"
    ),
    rf"STORED BY {_STRING}(?:WITH SERDEPROPERTIES \(\) )?",
    rf"STORED AS (?:INPUTFORMAT {_STRING}OUTPUTFORMAT {_STRING}|[`\w]+ )",
    rf"(?:LOCATION|COMMENT) {_STRING}",
    r"(?:DEFAULT )?COLLATION \w+ ",
)
# createTableClauses of the grammar, which come in any order.
_CLAUSE: Final = re.compile(
    rf"{_SKEWED}|(?P<properties>TBLPROPERTIES \(\) )|(?P<partitioned>PARTITIONED BY \(\) )"
    rf"|(?P<other>{'|'.join(_OTHER_CLAUSES)})"
)
_END: Final = re.compile(r"(?:; )*+\Z")
_QUERY: Final = re.compile(r"(?:AS )?(?:(?:SELECT|WITH|FROM|VALUES|TABLE|MAP|REDUCE) |\(\) )")
_ALTER: Final = re.compile(
    rf"ALTER TABLE {_NAME}(?:{_SKEWED}|(?P<not_skewed>NOT SKEWED )|(?P<not_stored>NOT STORED AS DIRECTORIES ))"
    r"(?:; )*+\Z"
)
_SET_LOCATION: Final = re.compile(rf"ALTER TABLE {_NAME}(?:PARTITION \(\) )?SET SKEWED LOCATION ")


@dataclass(frozen=True)
class SkewStatement:
    """A statement about skewed values: the text to send in its place, or the sentence that refuses it."""

    text: str = ""
    refusal: str = ""


def skew_statement(text: str, first_word: str, chars_max: int) -> SkewStatement | None:
    """The statement about skewed values that a text is; None for any other text, which Spark reads as it is.

    >>> skew_statement("ALTER TABLE t NOT STORED AS DIRECTORIES", "alter", 1_000).text
    "ALTER TABLE t SET TBLPROPERTIES ('starpruner.skewed.own-files' = 'false')"
    """
    if first_word not in _FIRST_WORDS or len(text) > chars_max or not _IN_CLAUSES.search(text):
        return None
    items = ddl_items(text)
    if items is None:
        return None
    try:
        sent = _altered(text, items) if first_word == "alter" else _created(text, items)
    except SkewRefusedError as error:
        return SkewStatement(refusal=str(error))
    return None if sent is None else SkewStatement(sent)


def _altered(text: str, items: tuple[Item, ...]) -> str | None:
    symbols = shape(items)
    if _SET_LOCATION.match(symbols):
        raise SkewRefusedError(
            "SET SKEWED LOCATION cannot be kept: the file index finds the files of a skewed value wherever they"
            " lie, so leave it out"
        )
    found = _ALTER.match(symbols)
    if found is None:
        return None
    kind = found.lastgroup or ""
    clause = _span(symbols, items, *found.span(kind))
    if kind == "not_skewed":
        names = ", ".join(f"'{name}'" for name in PROPERTIES)
        return _edited(text, [(clause, f"UNSET TBLPROPERTIES IF EXISTS ({names})")])
    if kind == "not_stored":
        return _edited(text, [(clause, f"SET TBLPROPERTIES ('{OWN_FILES_PROPERTY}' = 'false')")])
    skew = SkewClause.read(clause)
    return None if skew is None else _edited(text, [(clause, f"SET TBLPROPERTIES ({_listed(skew.kept())})")])


def _created(text: str, items: tuple[Item, ...]) -> str | None:
    symbols = shape(items)
    head = _CREATE.match(symbols)
    if head is None:
        return None
    clauses: dict[str, list[Item]] = {}
    at = head.end()
    while (found := _CLAUSE.match(symbols, at)) is not None:
        kind, at = found.lastgroup or "", found.end()
        if kind in clauses and kind != "other":
            return None
        clauses[kind] = _span(symbols, items, *found.span())
    skewed = clauses.get("skewed")
    skew = SkewClause.read(skewed) if skewed is not None else None
    if skewed is None or skew is None:
        return None
    if _QUERY.match(symbols, at):
        raise SkewRefusedError(
            "SKEWED BY cannot be said of a table that a query makes, and Hive refuses it as well: create the table"
            " with its columns, then load it"
        )
    if not _END.match(symbols, at):
        return None
    partitions = _partition_columns(clauses.get("partitioned"))
    if head["columns"] is None:
        kept = skew.kept(partition_columns=partitions)
    else:
        columns = _span(symbols, items, *head.span("columns"))[0]
        kept = skew.kept(_column_types(columns), partitions)
    properties = clauses.get("properties")
    if properties is None:
        return _edited(text, [(skewed, f"TBLPROPERTIES ({_listed(kept)})")])
    group = properties[-1]
    separator = ", " if group.members else ""
    end = Item("", "", group.end - 1, group.end - 1)
    return _edited(text, [(skewed, " "), ([end], separator + _listed(kept))])


def _span(symbols: str, items: tuple[Item, ...], start: int, end: int) -> list[Item]:
    """The items of a part of the symbols, each of which has one space behind it."""
    return list(items[symbols.count(" ", 0, start) : symbols.count(" ", 0, end)])


def _edited(text: str, edits: Iterable[tuple[list[Item], str]]) -> str:
    """The text with items replaced, and every other character as it was."""
    for span, replacement in sorted(edits, key=lambda edit: edit[0][0].start, reverse=True):
        text = text[: span[0].start] + replacement + text[span[-1].end :]
    return text


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())


def _partition_columns(clause: list[Item] | None) -> frozenset[str]:
    """The names of the partition columns in lower case, without transforms such as `days(ts)`."""
    parts = separated(clause[-1].members) if clause is not None else []
    names = [part[0].name for part in parts if part and not (len(part) > 1 and part[1].members)]
    return frozenset(name.lower() for name in names if name is not None)


def _column_types(columns: Item) -> dict[str, str]:
    """The types of a table's columns as the text has them, by the names in lower case."""
    parts = [part for part in separated(columns.members) if part]
    return {name.lower(): _type_text(part[1:]) for part in parts if (name := part[0].name) is not None}


def _type_text(items: list[Item]) -> str:
    """The text of a type; empty where a collation makes another one of it."""
    if not items or "COLLATE" in shape(items).split():
        return ""
    has_arguments = len(items) > 1 and items[1].symbol == "()"
    return items[0].text + (items[1].text if has_arguments else "")
