"""Query for a reducer's key set, in the client's own session and words, and the reading of its answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import TokenType

from rewriter.domains.keys import Keys
from rewriter.domains.keyset import Assumptions, KeySet
from rewriter.domains.literals import (
    Key,
    UnreadableKeyError,
    compares_exactly,
    fits,
    key_expression,
    key_of_answer,
    literal,
)
from rewriter.sql.bounded_parser import tokenize
from rewriter.sql.deterministic_functions import BARE_FUNCTIONS, CLOCKS, SESSION_FUNCTIONS
from rewriter.vocabulary.identifiers import TableName
from rewriter.vocabulary.skip_reason import SkipReason

# A row of an answer: for each key column its value and its type, then the values of the assumptions.
Row: TypeAlias = Sequence[object]

# A condition that always holds, and that no query of a user's has. Spark reads a part of a query from memory if
# CACHE TABLE has put the same query there, as it was at that moment. With `SELECT * FROM d WHERE d.y = 2026` in
# memory, a key query of those words would read old rows, and the statement, which joins d, current ones.
NOT_IN_MEMORY = "'starpruner' IS NOT NULL"
_SESSION_WORD = re.compile(rf"\b(?:{'|'.join({*SESSION_FUNCTIONS, *CLOCKS})})\b", re.IGNORECASE)


@dataclass(frozen=True)
class KeyColumn:
    """A fact's column that keys are fetched for; `null_safe` where `<=>` compares it, which matches null."""

    type_name: str
    null_safe: bool = False


@dataclass(frozen=True)
class KeySetQuery:
    """A query for the distinct keys of a small side.

    Its rows are `(key, type)` for each column: the type that the key has as the query runs, so that a stale
    catalog can never lead to a literal of the wrong type. Behind them come the values of the session functions
    that the query reads, `assumes` by name; a last row with null types has them if no key was found. One row more
    than the cap means that there are too many.
    """

    sql: str
    columns: tuple[KeyColumn, ...]
    rows_max: int
    assumes: tuple[str, ...] = ()
    # Tables whose writes can change its answer: the tables and views that it names, and all that those views read,
    # except for tables that it reads at a snapshot.
    tables: frozenset[TableName] = field(default=frozenset(), compare=False)
    # The query without DISTINCT: its answer is read the same way, if it is not too long. Spark runs it without a
    # shuffle, in about 60 % of the time, and most dimensions have each key once.
    sql_with_repeats: str = field(default="", compare=False)
    # True if it is a scalar subquery: a second row, even an equal one, is an error to Spark.
    is_scalar: bool = False
    # True if it has a scalar subquery: an error of the query may come from a second row of the subquery.
    may_fail: bool = False

    @property
    def is_fixed(self) -> bool:
        """True if its answer cannot change: it reads tables at snapshots alone, or no table."""
        return not self.tables

    @property
    def answer_rows_max(self) -> int:
        """The number of rows that are needed to use an answer, or to find the reason why it cannot be used."""
        return self.rows_max + self.is_scalar + bool(self.assumes)

    def read(self, rows: Sequence[Row]) -> Keys | SkipReason:
        """The keys in an answer, or the reason why they cannot be used."""
        width = len(self.columns)
        found = [row for row in rows if row[1] is not None]
        if self.is_scalar and len(found) > self.rows_max:
            return SkipReason.SCALAR_SUBQUERY_ROWS
        if any(not self._has_known_types(row) for row in found):
            return SkipReason.KEY_TYPE_CHANGED
        if len(found) > self.rows_max:
            return SkipReason.TOO_MANY_KEYS
        try:
            keys = KeySet.of(
                tuple(column.type_name for column in self.columns),
                [key for row in found if (key := self._key(row)) is not None],
                null_safe=tuple(column.null_safe for column in self.columns),
            )
            assumptions = read_assumptions(self.assumes, [row[2 * width :] for row in rows])
        except UnreadableKeyError:
            return SkipReason.UNREADABLE_KEY
        return KeySet(keys.type_names, keys.rows, assumptions)

    def _has_known_types(self, row: Row) -> bool:
        pairs = zip(self.columns, row[1::2], strict=False)
        return all(compares_exactly(column.type_name, str(type_name)) for column, type_name in pairs)

    def _key(self, row: Row) -> tuple[Key | None, ...] | None:
        """The row's key; None for one that no row of the fact can hold."""
        found = []
        for index, column in enumerate(self.columns):
            value, type_name = key_of_answer(column.type_name, row[2 * index]), row[2 * index + 1]
            if type_name != column.type_name and not fits(column.type_name, value):
                return None
            found.append(value)
        return tuple(found)


def read_assumptions(assumes: Sequence[str], values: Sequence[Row]) -> Assumptions:
    """The values of session functions, from the first row. Raises UnreadableKeyError without a row."""
    if not assumes:
        return ()
    if not values:
        raise UnreadableKeyError("no row tells what the query read of the session")
    typed = [(name, SESSION_FUNCTIONS[name], value) for name, value in zip(assumes, values[0], strict=True)]
    return tuple(
        (f"{name}()", literal(type_name, key_of_answer(type_name, value))) for name, type_name, value in typed
    )


def assumed_columns(assumes: Sequence[str]) -> list[str]:
    """The expressions of a select list that `read_assumptions` reads."""
    return [key_expression(SESSION_FUNCTIONS[name], f"{name}()") for name in assumes]


def key_set_query(  # noqa: PLR0913 - the parts of a query
    *,
    source: str,
    keys: Sequence[str],
    columns: Sequence[KeyColumn],
    filters: Sequence[str] = (),
    rows_max: int,
    tables: frozenset[TableName] = frozenset(),
    is_scalar: bool = False,
) -> KeySetQuery:
    """Compose a key query from the client's text of the small side and of the filters that read it alone.

    A scalar subquery is run without DISTINCT, with the limit of two rows: a second row is an error.

    >>> day = KeyColumn("string")
    >>> key_set_query(source="dates d", keys=["d.`ds`"], columns=[day], rows_max=9).sql
    'SELECT DISTINCT d.`ds` AS key, typeof(d.`ds`) AS type FROM dates d LIMIT 10'
    """
    rows_max = 1 if is_scalar else rows_max
    where = where_clause(filters)
    assumes = session_functions(f"SELECT {', '.join(keys)} FROM {source}{where}")
    assumed = assumed_columns(assumes)
    shown = [
        *_shown(keys, columns),
        *(f"{text} AS {name}_assumed" for text, name in zip(assumed, assumes, strict=True)),
    ]
    asked = f"{', '.join(shown)} FROM {source}{where} LIMIT {rows_max + 1}"
    nothing = ", ".join([*("NULL, NULL" for _ in keys), *assumed])
    distinct, sql_with_repeats = (
        f"({select} {asked}) UNION ALL SELECT {nothing}" if assumes else f"{select} {asked}"
        for select in ("SELECT DISTINCT", "SELECT")
    )
    sql, sql_with_repeats = (sql_with_repeats, "") if is_scalar else (distinct, sql_with_repeats)
    return KeySetQuery(
        sql,
        tuple(columns),
        rows_max,
        assumes=assumes,
        tables=tables,
        sql_with_repeats=sql_with_repeats,
        is_scalar=is_scalar,
    )


def where_clause(filters: Sequence[str]) -> str:
    """The WHERE behind a FROM, of conditions that Spark finds nothing in memory by.

    It does not begin with a parenthesis: Spark would read `FROM cal WHERE (holiday)` as `cal AS WHERE(holiday)`, a
    table with names for its columns.

    >>> where_clause(["d.y = 2026", "holiday"])
    " WHERE 'starpruner' IS NOT NULL AND (d.y = 2026) AND (holiday)"
    """
    return f" WHERE {' AND '.join([NOT_IN_MEMORY, *(f'({text})' for text in filters)])}" if filters else ""


def _shown(keys: Sequence[str], columns: Sequence[KeyColumn]) -> list[str]:
    """Each key with its type. The type is constant while a query runs: Spark folds `typeof` into a literal."""
    numbers = [""] if len(keys) == 1 else [str(number) for number in range(1, len(keys) + 1)]
    return [
        f"{key_expression(column.type_name, key)} AS key{n}, typeof({key}) AS type{n}"
        for key, column, n in zip(keys, columns, numbers, strict=True)
    ]


def session_functions(text: str) -> tuple[str, ...]:
    """The session functions that the text calls, or could call: an assumption too many does no harm."""
    if _SESSION_WORD.search(text) is None:
        return ()
    tokens = tokenize(text)
    called = {
        token.text.lower()
        for token, after in zip(tokens, [*tokens[1:], None], strict=True)
        if (after is not None and after.token_type is TokenType.L_PAREN) or token.text.lower() in BARE_FUNCTIONS
    }
    # A key query reads nothing but the day from the clock.
    called |= {"current_date"} if CLOCKS & called else set()
    return tuple(name for name in SESSION_FUNCTIONS if name in called)
