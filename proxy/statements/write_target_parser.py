"""The target of a statement that writes, read from its head where the form has one known place for it.

A form is recognized by its first words and by the words after the name. Anything in between that is not listed
here, a comment included, makes it unknown: the caller then takes any word of the text for a table that may be
written. The query behind is not looked into. Spark's grammar has no place in it for another target, to parse 100
KB takes half a second, and sqlglot may read a text otherwise than Spark does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from rewriter import TEMPORARY_NAMESPACES, TableName

_PART: Final = r"(?:\w++|`(?:[^`]|``)++`)"
_NAME_PART: Final = re.compile(_PART)
# A name might go on behind a comment: so no comment is skipped, here or before the words that have to follow.
_NAME: Final = rf"(?P<name>{_PART}(?:\s*+\.\s*+{_PART})*+)\s*+"
_ALIAS: Final = rf"(?:(?:AS\s++)?+{_PART}\s++)??"
_EVOLVING: Final = r"(?:WITH\s++SCHEMA\s++EVOLUTION\s++)?+"
_UNLESS_EXISTS: Final = r"(?:IF\s++NOT\s++EXISTS\s++)?+"


def _followed_by(words: str) -> str:
    """A parenthesis, a CTE or one of these words: the name has ended, and no options follow that add columns."""
    return rf"(?:\(|WITH(?=\s++[\w`])|(?:{'|'.join(words.split())})\b)"


_TABLE: Final = r"(?:EXTERNAL\s++)?+TABLE"
_VIEW: Final = r"(?:(?:GLOBAL\s++)?+TEMP(?:ORARY)?+\s++)?+VIEW"
_INTO: Final = r"(?:INTO|OVERWRITE)\s++(?:TABLE\s++)?+"
_AFTER_INSERT: Final = _followed_by("SELECT VALUES FROM PARTITION BY REPLACE")
_AFTER_CREATE: Final = _followed_by(
    "AS SELECT FROM USING COMMENT LOCATION OPTIONS PARTITIONED CLUSTERED CLUSTER STORED ROW TBLPROPERTIES"
)

# Iceberg's procedures that keep the rows of a table, before its name. Arguments that have names may come in any
# order: where the table is not the first of them, the form is unknown.
_MAINTAINING: Final = (
    r"SYSTEM\s*+\.\s*+(?:rewrite_(?:data_files|position_delete_files|manifests)|expire_snapshots"
    r"|compute_(?:table|partition)_stats)\s*+\(\s*+(?:TABLE\s*+=>\s*+)?+"
)

# By the first word of a form, as Spark's SqlBaseParser.g4, Delta's DeltaSqlBase.g4 and Iceberg's procedures have
# them. Quantifiers are possessive: whoever writes the text chooses its length, and nothing in it is tried twice.
_FORMS: Final = {
    form.partition("\\")[0].lower(): re.compile(form, re.IGNORECASE)
    for form in (
        rf"INSERT\s++{_EVOLVING}{_INTO}{_NAME}{_AFTER_INSERT}",
        rf"CREATE\s++(?:OR\s++REPLACE\s++)?+(?:{_TABLE}|{_VIEW})\s++{_UNLESS_EXISTS}{_NAME}{_AFTER_CREATE}",
        rf"REPLACE\s++TABLE\s++{_NAME}{_AFTER_CREATE}",
        rf"ALTER\s++VIEW\s++{_NAME}AS\b",
        rf"MERGE\s++{_EVOLVING}INTO\s++{_NAME}{_ALIAS}USING\b",
        rf"UPDATE\s++{_NAME}{_ALIAS}SET\b",
        rf"DELETE\s++FROM\s++{_NAME}(?:{_ALIAS}WHERE\b|;?+\s*+\Z)",
        rf"REFRESH\s++TABLE\s++{_NAME};?+\s*+\Z",
        rf"OPTIMIZE\s++{_NAME}(?:(?:FULL|WHERE|ZORDER)\b|;?+\s*+\Z)",
        rf"VACUUM\s++{_NAME}(?:(?:FULL|LITE|USING|RETAIN|DRY)\b|;?+\s*+\Z)",
        rf"CALL\s++(?:{_PART}\s*+\.\s*+)?{_MAINTAINING}'(?P<name>\w++(?:\.\w++)*+)'\s*+[,)]",
    )
}
# If their target is a view, these write the tables that the view reads.
_OF_VIEWS: Final = frozenset({"merge", "update", "delete", "refresh"})
# Behind the target of these nothing is written. In other forms the clauses before the query are looked at too: a
# LOCATION may be that of another table.
_TARGET_ALONE: Final = _OF_VIEWS | {"optimize", "vacuum", "call"}
_QUERY: Final = re.compile(r"\b(?:as|select|values|from)\b", re.IGNORECASE)
# Words of the grammar that may stand in a name's place: then the name may stand behind them.
_NO_NAMES: Final = frozenset(
    """
    table tables view if not exists into overwrite or replace temp temporary global external with schema evolution
    directory local identifier from using set as select values partition where by materialized streaming
    """.split()
)
_WORD: Final = re.compile(r"\w+")
# Text that is looked at before the query. The clauses of a table are some hundred characters.
_CHARS_MAX: Final = 2_000


@dataclass(frozen=True)
class Target:
    """A table that a statement writes."""

    name: TableName
    # The words of the name, of the text before it, and of clauses behind it.
    words: frozenset[str]
    # True if the statement may name a view, and write the table that the view reads.
    may_be_view: bool


def target_at(sql: str, start: int) -> Target | None:
    """The table that the form at `start` writes; None where it is not certain."""
    word = _WORD.match(sql, start)
    form = _FORMS.get(word[0].lower()) if word is not None else None
    found = form.match(sql, start) if form is not None else None
    if word is None or found is None:
        return None
    parts = _NAME_PART.findall(found["name"])
    if sql.find("${", 0, found.end()) >= 0 or not _NO_NAMES.isdisjoint(map(str.lower, parts)):
        return None
    name = TableName(tuple(map(_unquoted, parts)))
    kind = word[0].lower()
    stop = found.end() if kind in _TARGET_ALONE else _before_query(sql, found.end("name"))
    words = frozenset(_WORD.findall(sql[start:stop].lower()))
    return Target(name, words, _may_be_view(kind, name))


def _before_query(sql: str, name_end: int) -> int:
    found = _QUERY.search(sql, name_end, name_end + _CHARS_MAX)
    return found.start() if found is not None else name_end + _CHARS_MAX


def _may_be_view(kind: str, name: TableName) -> bool:
    """True if the target may be a view: no other form allows one.

    With Iceberg, Spark 4.1 takes a DELETE FROM any view of one table that drops whole files, and removes the rows
    from the table. Delta takes UPDATE and MERGE of temporary views too. REFRESH is about all tables of any view.
    """
    if kind not in _OF_VIEWS:
        return False
    is_temporary = len(name.parts) == 1 or name.parts[0].lower() in TEMPORARY_NAMESPACES
    return kind in {"delete", "refresh"} or is_temporary


def _unquoted(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part
