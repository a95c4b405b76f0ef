"""Query for ranges around a reducer's keys, for keys that are too many to be listed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rewriter.domains.instants import LOCAL_TIME
from rewriter.domains.keyset import KeyRanges
from rewriter.domains.literals import (
    Key,
    UnreadableKeyError,
    compares_exactly,
    key_expression,
    key_of_answer,
    narrowest_fit,
)
from rewriter.semijoins.key_query import (
    KeyColumn,
    Row,
    assumed_columns,
    read_assumptions,
    session_functions,
    where_clause,
)
from rewriter.vocabulary.identifiers import TableName
from rewriter.vocabulary.skip_reason import SkipReason

# The distance of a key from the one before it, by the family of the column's type. Only the order of the distances
# matters: with poor ones the ranges hold more than they need, never less.
_DISTANCES = {
    "date": "datediff(key, previous)",
    # Strings that are dates, as most that partition a table are; others have no distance.
    "string": "datediff(try_cast(key AS DATE), try_cast(previous AS DATE))",
    # A local time has no number. To the day is near enough.
    LOCAL_TIME: "datediff(CAST(key AS DATE), CAST(previous AS DATE))",
}
_NUMBERS_APART = "CAST(key AS DOUBLE) - CAST(previous AS DOUBLE)"


@dataclass(frozen=True)
class KeyRangesQuery:
    """A query for ranges that hold all keys of one column: between them lie the widest gaps.

    Its rows are `(lowest, type, highest, type)` of each range, and the values of the session functions it reads.
    """

    sql: str
    column: KeyColumn
    rows_max: int
    assumes: tuple[str, ...] = ()
    # Tables whose writes can change its answer, as for a KeySetQuery.
    tables: frozenset[TableName] = field(default=frozenset(), compare=False)
    # A range query has no form with repeats.
    sql_with_repeats: str = ""
    # No subquery of the statement's is asked for ranges.
    may_fail: bool = False

    @property
    def is_fixed(self) -> bool:
        """True if its answer cannot change: it reads tables at snapshots alone, or no table."""
        return not self.tables

    @property
    def columns(self) -> tuple[KeyColumn, ...]:
        """The one column."""
        return (self.column,)

    @property
    def answer_rows_max(self) -> int:
        """The number of rows of an answer that can be used."""
        return self.rows_max

    def read(self, rows: Sequence[Row]) -> KeyRanges | SkipReason:
        """The ranges in an answer, or the reason why they cannot be used."""
        type_name = self.column.type_name
        if any(not compares_exactly(type_name, str(shown)) for row in rows for shown in (row[1], row[3])):
            return SkipReason.KEY_TYPE_CHANGED
        try:
            ends = [(_end(type_name, row[0]), _end(type_name, row[2])) for row in rows]
            assumptions = read_assumptions(self.assumes, [row[4:] for row in rows])
            fitting = [fit for low, high in ends if (fit := narrowest_fit(type_name, low, high)) is not None]
            ranges = KeyRanges(type_name, tuple(sorted(fitting)), self.column.null_safe, assumptions)
            _ = ranges.cover(["key"])
        except UnreadableKeyError:
            return SkipReason.UNREADABLE_KEY
        return ranges


def key_ranges_query(  # noqa: PLR0913 - the parts of a query
    *,
    source: str,
    key: str,
    column: KeyColumn,
    filters: Sequence[str] = (),
    ranges_max: int,
    tables: frozenset[TableName] = frozenset(),
) -> KeyRangesQuery:
    """Compose a range query from the parts of a key query.

    The inner queries number the distinct keys by the gap in front of each, the widest first. In the keys' own
    order, a new range then begins at each of the widest gaps.
    """
    where = where_clause(filters)
    asked = f"SELECT DISTINCT {key} AS key FROM {source}{where}"
    distance = _DISTANCES.get(column.type_name, _NUMBERS_APART)
    assumes = session_functions(asked)
    shown = [
        f"{key_expression(column.type_name, 'min(key)')} AS low",
        "typeof(min(key)) AS low_type",
        f"{key_expression(column.type_name, 'max(key)')} AS high",
        "typeof(max(key)) AS high_type",
    ]
    shown += [f"{text} AS {name}_assumed" for text, name in zip(assumed_columns(assumes), assumes, strict=True)]
    sql = (
        f"SELECT {', '.join(shown)} FROM"
        f" (SELECT key, count_if(place < {ranges_max}) OVER (ORDER BY key) AS part FROM"
        f" (SELECT key, row_number() OVER (ORDER BY coalesce({distance}, 0) DESC, hash(key)) AS place FROM"
        f" (SELECT key, lag(key) OVER (ORDER BY key) AS previous FROM ({asked}) WHERE key IS NOT NULL)))"
        f" GROUP BY part"
    )
    return KeyRangesQuery(
        sql,
        column,
        ranges_max,
        assumes=assumes,
        tables=tables,
    )


def _end(type_name: str, value: object) -> Key:
    key = key_of_answer(type_name, value)
    if key is None:
        raise UnreadableKeyError("the end of a range of keys is null")
    return key
