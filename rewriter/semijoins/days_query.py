"""Query for the days of a small side as the times that lie on them, for `cast(t.at AS date) = d.day`.

A day of the session's time zone need not begin at midnight, last 24 hours, or be in one piece. Where clocks are
put back across midnight, from 00:01 to 23:01, an hour of the first day comes after a minute of the second. So
Spark tells when days begin, by its own rules of the zones. If the following day is longer than 24 hours, a day
counts up to the end of the following one. The answer holds in that zone, which the narrowed scan assumes.

A day can begin no earlier than Spark says: to be on the day, clocks must have passed or skipped its midnight, and
Spark takes the first of a midnight that occurs twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rewriter.domains.instants import CERTAIN_MAX, CERTAIN_MIN, INSTANT, MICROS_MAX, MICROS_MIN
from rewriter.domains.keyset import KeyRanges
from rewriter.domains.literals import Key, UnreadableKeyError
from rewriter.semijoins.key_query import (
    KeyColumn,
    Row,
    assumed_columns,
    read_assumptions,
    session_functions,
    where_clause,
)
from rewriter.semijoins.range_query import KeyRangesQuery
from rewriter.sql.deterministic_functions import SESSION_FUNCTIONS
from rewriter.vocabulary.identifiers import TableName
from rewriter.vocabulary.skip_reason import SkipReason

_DAY_MICROS = 86_400_000_000
# A day that is longer has an hour, or less, that comes twice.
_LONGEST_PLAIN_DAY = _DAY_MICROS
# Days beyond these count as these, so that no number of microseconds overflows: no certain time lies on them.
_DAY_NUMBER_MIN = CERTAIN_MIN // _DAY_MICROS - 2
_DAY_NUMBER_MAX = CERTAIN_MAX // _DAY_MICROS + 2
_KEY_TYPE = "date"
_ZONE = "current_timezone"


@dataclass(frozen=True)
class DaysQuery(KeyRangesQuery):
    """A query for the times of days.

    Its rows are the beginning of a day, the day's type, the beginnings of the next two days, and the values of the
    session functions that it reads.
    """

    def read(self, rows: Sequence[Row]) -> KeyRanges | SkipReason:
        """The times in an answer, or the reason why they cannot be used."""
        # A text or a timestamp in the place of the day makes Spark cast the days.
        if any(row[1] != _KEY_TYPE for row in rows):
            return SkipReason.KEY_TYPE_CHANGED
        if len(rows) > self.rows_max:
            return SkipReason.TOO_MANY_KEYS
        try:
            ranges = {_range(*map(_micros, (row[0], row[2], row[3]))) for row in rows}
            # Without a day nothing matches in any zone.
            needs_zone = bool(rows) or self.assumes != (_ZONE,)
            assumptions = read_assumptions(self.assumes if needs_zone else (), [row[4:] for row in rows])
        except UnreadableKeyError:
            return SkipReason.UNREADABLE_KEY
        return KeyRanges(self.column.type_name, tuple(sorted(ranges)), assumptions=assumptions)


def days_query(  # noqa: PLR0913 - the parts of a query
    *,
    source: str,
    key: str,
    column: KeyColumn,
    filters: Sequence[str] = (),
    rows_max: int,
    tables: frozenset[TableName] = frozenset(),
) -> DaysQuery:
    """Compose a query for the times of days from the parts of a key query.

    >>> sql = days_query(source="d", key="d.`day`", column=KeyColumn("timestamp_ntz"), rows_max=9).sql
    >>> sql[:108]
    'SELECT (greatest(least(unix_date(key), 2932898), -25204) + 0L) * 86400000000L AS begins, typeof(key) AS type'
    """
    where = where_clause(filters)
    asked = f"SELECT DISTINCT {key} AS key FROM {source}{where}"
    is_instant = column.type_name == INSTANT
    called = {*session_functions(asked), *([_ZONE] if is_instant else [])}
    assumes = tuple(name for name in SESSION_FUNCTIONS if name in called)
    begins, next_begins, following_begins = (_start(days, is_instant=is_instant) for days in range(3))
    shown = [
        *(f"{begins} AS begins", "typeof(key) AS type"),
        *(f"{next_begins} AS next_begins", f"{following_begins} AS following_begins"),
        *(f"{text} AS {name}_assumed" for text, name in zip(assumed_columns(assumes), assumes, strict=True)),
    ]
    return DaysQuery(
        f"SELECT {', '.join(shown)} FROM ({asked}) WHERE key IS NOT NULL LIMIT {rows_max + 1}",
        column,
        rows_max,
        assumes=assumes,
        tables=tables,
    )


def _start(days: int, *, is_instant: bool) -> str:
    """The first time of the day that comes so many days after a key, as a number of microseconds."""
    if not is_instant:
        day = f"greatest(least(unix_date(key), {_DAY_NUMBER_MAX}), {_DAY_NUMBER_MIN})"
        return f"({day} + {days}L) * {_DAY_MICROS}L"
    # TIMESTAMP may be a local time, by spark.sql.timestampType, and Spark 3.3 has no TIMESTAMP_LTZ. This function
    # takes an instant, to which Spark casts the day.
    return f"unix_micros(date_trunc('DAY', date_add(key, {days})))"


def _range(begins: int, next_begins: int, following_begins: int) -> tuple[Key, Key]:
    """The times that may lie on a day, up to the next certain ones, or open."""
    # A day that a zone has skipped begins with the next one.
    if not begins <= next_begins <= following_begins:
        raise UnreadableKeyError("days do not begin one after another")
    goes_on = following_begins - next_begins > _LONGEST_PLAIN_DAY
    last = (following_begins if goes_on else next_begins) - 1
    low = MICROS_MIN if begins < CERTAIN_MIN else min(begins, CERTAIN_MAX)
    return low, MICROS_MAX if last > CERTAIN_MAX else max(last, CERTAIN_MIN)


def _micros(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnreadableKeyError("the beginning of a day is no number")
    return value
