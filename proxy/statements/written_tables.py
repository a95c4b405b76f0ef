"""The tables that a statement may write. Too many are harmless; a missed one gives wrong answers.

A statement whose head names its target (`proxy.statements.write_target_parser`) writes that and reads the rest. In
any other statement each word of the text may be a table that is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from itertools import islice
from typing import Final, Self

from proxy.statements.write_target_parser import Target, target_at
from rewriter import TableName
from rewriter.sql.classify import before_first_word, first_word, has_none

# First words of statements that change no table, whatever follows. SET, USE and RESET change the session alone.
_READING: Final = frozenset("select values table show describe desc explain list set use reset declare".split())
# First words of queries that may have a write behind them: WITH .. INSERT, FROM .. INSERT.
_LEADING: Final = frozenset({"with", "from"})
# First words of statements that name all tables that they change, in whichever form. Any other statement may
# change any table, unless its form is known: CALL, EXECUTE, GRANT, REFRESH '/a/path', a script.
_NAMING: Final = frozenset(
    "insert create replace alter drop truncate update delete merge msck load analyze comment cache uncache".split()
)
# Is among the words of a write that may give its tables other columns, as in the text WITH SCHEMA EVOLUTION.
EVOLUTION: Final = "evolution"
# First words of statements that may give a table other columns. CREATE TABLE may be about a name whose table was
# dropped past this proxy, and REFRESH about one that was altered there.
_DEFINING: Final = frozenset({"create", "replace", "alter", "drop", "refresh"})
# Forms of ALTER that leave the columns as they are, and that some clients run every few minutes.
_PLAIN_NAME: Final = r"(?:\w++|`\w++`)(?:\s*+\.\s*+(?:\w++|`\w++`))*+"
_LEAVES_COLUMNS: Final = re.compile(
    rf"alter\s++table\s++{_PLAIN_NAME}\s++"
    r"(?:add\s++(?:if\s++not\s++exists\s++)?+partition\s*+\(|recover\s++partitions\b)",
    re.IGNORECASE,
)
# Words of statements that change tables without naming them: DROP DATABASE .. CASCADE, INSERT OVERWRITE DIRECTORY,
# IDENTIFIER(..).
_UNNAMED: Final = frozenset("database databases schema schemas directory identifier execute".split())
# CREATE DATABASE changes no table. Some tools begin each of their runs with it, IF NOT EXISTS.
_MAKES_DATABASE: Final = re.compile(r"create\s++(?:database|schema|namespace)\s", re.IGNORECASE)
# Forms about objects of one session, whose state shows that a name means something else. A GLOBAL view is not
# among them, since all sessions share it. Files and classes that are added change the rows of no table.
_OF_SESSION: Final = re.compile(
    r"create\s++(?:or\s++replace\s++)?+temp(?:orary)?+\s++(?:view|function)\s|drop\s++temporary\s++function\s"
    r"|add\s++(?:jar|file|archive)s?+\s",
    re.IGNORECASE,
)
_WRITING: Final = re.compile(r"\b(?:insert|update|delete|merge)\b|\$\{", re.IGNORECASE)
# Each match of the pattern holds one of these.
_IN_WRITING: Final = ("insert", "update", "delete", "merge", "${")
# EXPLAIN EXECUTE IMMEDIATE executes: Spark does so to know the plan. Text that Spark replaces may say it too.
_EXECUTING: Final = re.compile(r"\bexecute\b|\$\{", re.IGNORECASE)

_WORD: Final = re.compile(r"\w+")
# A table by the path of its files: parquet.`/a/path`.
_BY_PATH: Final = re.compile(r"\w\s*\.\s*`[^`]*/")
# Names behind a table's own name (MetadataTableType and SparkCatalog in Iceberg). A table that is called so
# itself counts as written with its database, and nothing worse.
_OF_A_TABLE: Final = re.compile(
    r"(?:all_)?(?:entries|(?:data_|delete_)?files|manifests)|history|metadata_log_entries|snapshots|refs|partitions"
    r"|position_deletes|changes|(?:branch|tag|snapshot_id|at_timestamp)_.*",
    re.IGNORECASE | re.DOTALL,
)
# Text that is looked at. What is longer holds values, and INSERT names its table before them.
_CHARS_MAX: Final = 10_000
# Words that are kept of a statement, 100 KB of memory. One that has more counts for any table.
_WORDS_MAX: Final = 1_000
# Words within a query that may begin a write behind it. FROM .. INSERT has one for each of its targets.
_BEGINNINGS_MAX: Final = 100
# The longest text that a pattern searches: that takes milliseconds in which the whole process waits. A longer text
# counts as a match.
_SEARCHED_CHARS_MAX: Final = 250_000


class WrittenTables:
    """Names of tables, as the words of a statement."""

    def __init__(self, words: Iterable[str]) -> None:
        # None where it may be any table.
        self.words: frozenset[str] | None = frozenset(words)

    def hold(self, name: TableName) -> bool:
        """True if the table of this name may be among them."""
        words = self.words
        return words is None or any(words.issuperset(one) for one in words_of(name))

    def evolving(self) -> Self:
        """The same tables, where the write may add columns to them."""
        evolving = copy(self)
        evolving.words = self.words if self.words is None else self.words | {EVOLUTION}
        return evolving

    @property
    def may_change_columns(self) -> bool:
        """True if the tables may have other columns afterwards."""
        return self.words is None or EVOLUTION in self.words


class AnyTable(WrittenTables):
    """The tables of a statement that does not say which it changes."""

    def __init__(self) -> None:
        super().__init__(())
        self.words = None


class WriteTargets(WrittenTables):
    """The tables of a statement that says at its head which it writes."""

    def __init__(self, targets: Iterable[Target]) -> None:
        targets = tuple(targets)
        self.names = frozenset[str]().union(*(target.words for target in targets))
        super().__init__(self.names)
        # Targets that may be views: then the tables behind them are written.
        self.maybe_views = tuple(target.name for target in targets if target.may_be_view)

    def given(self, is_table: Callable[[TableName], bool]) -> WrittenTables:
        """These tables if all targets are known to be tables; else any table, since a view may read any."""
        return self if all(map(is_table, self.maybe_views)) else AnyTable()


def words_in(sql: str) -> frozenset[str]:
    """The words of the text, or of its beginning, that may name tables, in lower case."""
    return frozenset(_WORD.findall(sql[:_CHARS_MAX].lower()))


def words_of(name: TableName) -> list[list[str]]:
    """The words of each name by which the table that it denotes may be written: one word, if it needs no quotes.

    A metadata table or branch of Iceberg has the table's name in front of its own, and a write may name the table
    alone (`ALTER TABLE db.t REPLACE BRANCH b`). A table that is read by its path may have any other name: it is
    given no words, so it is in every write.
    """
    *before, last = name.parts
    if "/" in last:
        return [[]]
    owned = before[-1:] if _OF_A_TABLE.fullmatch(last) else []
    return [_WORD.findall(part.lower()) for part in (last, *owned)]


def tables_written(sql: str) -> WrittenTables | None:
    """The tables that a statement may write, or None where it certainly writes none."""
    word = first_word(sql)
    if not word or not begins_clearly(sql):
        return AnyTable()
    if word in _READING:
        return None
    if word in _LEADING:
        return _written_behind(sql)
    start = len(before_first_word(sql))
    if "${" not in sql and any(form.match(sql, start) for form in (_MAKES_DATABASE, _OF_SESSION)):
        return None
    targets = _targets(sql, [start])
    if targets is None and word not in _NAMING:
        return AnyTable()
    named = targets or _named(sql, whole=word != "insert")
    # An INSERT that is not recognized may have options, of which some add columns.
    may_evolve = word in _DEFINING or (word == "insert" and targets is None)
    return named.evolving() if may_evolve and not _LEAVES_COLUMNS.match(sql, start) else named


def begins_clearly(sql: str) -> bool:
    """True if a statement certainly does what its first word says.

    Comments before the word may end elsewhere for Spark, which nests them and replaces text within them;
    `first_word` does neither. And EXPLAIN may execute the statement that it explains.
    """
    before = before_first_word(sql)
    is_executed = first_word(sql) == "explain" and _may_hold(_EXECUTING, ("execute", "${"), sql)
    has_odd_comments = before.count("/*") > 1 or any(odd in before for odd in ("\\\n", "\\\r", "${"))
    return not (is_executed or has_odd_comments)


def _may_hold(pattern: re.Pattern[str], words: Sequence[str], text: str) -> bool:
    return not has_none(words, text) and (len(text) > _SEARCHED_CHARS_MAX or pattern.search(text) is not None)


def _written_behind(query: str) -> WrittenTables | None:
    if not _may_hold(_WRITING, _IN_WRITING, query):
        return None
    if len(query) > _SEARCHED_CHARS_MAX:
        return AnyTable()
    # Each of the words may be a name, or stand in a string. A write begins at one of them, and the others do no
    # harm.
    found = [match.start() for match in islice(_WRITING.finditer(query), _BEGINNINGS_MAX + 1)]
    targets = _targets(query, found) if len(found) <= _BEGINNINGS_MAX else None
    return targets or _named(query, whole=True).evolving()


def _targets(sql: str, beginnings: Sequence[int]) -> WrittenTables | None:
    """The tables that the forms at these beginnings write; None unless each form says so, and there is one."""
    found = [target for start in beginnings if (target := target_at(sql, start)) is not None]
    if not found or len(found) < len(beginnings):
        return None
    targets, is_by_path = WriteTargets(found), any("/" in part for target in found for part in target.name.parts)
    return AnyTable() if is_by_path or len(targets.names) > _WORDS_MAX else targets


def _named(sql: str, *, whole: bool) -> WrittenTables:
    """The words of the text, or of its beginning if it is long and `whole` is not set."""
    looked_at = sql[:_CHARS_MAX]
    is_cut = len(sql) > _CHARS_MAX and (whole or "--" in looked_at or "/*" in looked_at)
    if is_cut or "${" in looked_at or _BY_PATH.search(looked_at) is not None:
        return AnyTable()
    words = words_in(sql)
    return AnyTable() if words & _UNNAMED or len(words) > _WORDS_MAX else WrittenTables(words)
