"""Key values and their literals, for the types whose equality is certain.

Types without an entry here are refused: float and double (-0.0, NaN), char and varchar (padding), binary, other
collations, intervals, structs, variants. Timestamps are refused for partition columns, whose values are texts of
local times, which can occur twice.
"""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, TypeAlias

from rewriter.domains.instants import INSTANT, LOCAL_TIME, is_certain, micros_of_local_time, micros_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# Dates and decimals are strings, timestamps numbers of microseconds since 1970.
Key: TypeAlias = str | int | bool

_INTEGERS = {"tinyint": (8, "Y"), "smallint": (16, "S"), "int": (32, ""), "bigint": (64, "L")}
_DECIMAL_TYPE = re.compile(r"decimal\((\d+),(\d+)\)")
_DECIMAL = re.compile(r"-?\d+(?:\.\d+)?")
# Four-digit years only: Spark writes others with a sign, and versions differ in how they read that back.
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
# The hybrid Julian and Gregorian calendar lacks the days from 1582-10-05 to 1582-10-14, and reads them as the days
# up to 1582-10-24. Spark pushes filters down by that calendar: to files under
# spark.sql.datetime.java8API.enabled=false, and to the metastore under spark.sql.legacy.timeParserPolicy=LEGACY.
# Derby has no other: it reads a partition 1582-10-14 as 1582-10-24, and a range that ends between them loses it.
CALENDAR_SWITCH_DAYS = ("1582-10-05", "1582-10-24")
_EPOCH = date(1970, 1, 1).toordinal()
# Strings that read the same in a quoted literal under every setting: no quote, no backslash
# (escapedStringLiterals), no `$` (variable substitution), no control character.
_PLAIN_STRING = re.compile(r"[^\x00-\x1f\x7f'\"\\$\u2028\u2029\ufffd\ufffe\uffff]*")


class UnreadableKeyError(ValueError):
    """A key that is not of its type, or that no literal is sure to denote."""


def key_expression(type_name: str, key: str) -> str:
    """The expression by which a key query selects a key of the type, so that no setting changes how it arrives.

    Spark writes a date into a result by a calendar that settings choose: 1582-10-10 can arrive as 1582-10-15. The
    number of a day does not depend on it. A timestamp is written in the session's time zone, where a local time
    may occur twice; the number of its microseconds does not depend on that. A local time has no such number, since
    Spark would take it for one of the session's zone, but its text is always the same. Values of all other types
    arrive unchanged.

    >>> key_expression("date", "d.`day`"), key_expression("string", "d.`ds`")
    ('unix_date(d.`day`)', 'd.`ds`')
    """
    form = _FORMS.get(type_name)
    return form.format(key) if form is not None else key


_FORMS = {"date": "unix_date({})", INSTANT: "unix_micros({})", LOCAL_TIME: "CAST({} AS STRING)"}


def key_of_answer(type_name: str, value: object) -> Key | None:
    """A key of the type from the answer to `key_expression`. Raises UnreadableKeyError for what no key can be.

    >>> key_of_answer("date", -141428)
    '1582-10-14'
    """
    if type_name == "date" and value is not None:
        return _day(value)
    if type_name == LOCAL_TIME and value is not None:
        micros = micros_of_local_time(value) if isinstance(value, str) else None
        if micros is None:
            raise _unreadable(type_name, value)
        return micros
    if value is None or isinstance(value, str | int):
        return value
    raise UnreadableKeyError(f"a key arrived as {type(value).__name__}")


def _day(value: object) -> Key:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unreadable("date", value)
    try:
        return date.fromordinal(_EPOCH + value).isoformat()
    except (ValueError, OverflowError):
        raise UnreadableKeyError("a day outside of the years 1 to 9999 has no certain literal") from None


def literal(type_name: str, value: Key | None) -> str:
    """A value as a Spark SQL literal of the type. Raises UnreadableKeyError.

    >>> literal("bigint", 7)
    '7L'
    """
    return "NULL" if value is None else _WRITERS[_family(type_name)](type_name, value)


def literals(type_name: str, values: Iterable[Key | None]) -> Iterator[str]:
    """Values as Spark SQL literals of one type, written one by one. Raises UnreadableKeyError."""
    write = _WRITERS[_family(type_name)]
    return ("NULL" if value is None else write(type_name, value) for value in values)


def is_key_type(type_name: str) -> bool:
    """True if keys of the type can be compared, ordered and written with certainty, wherever they are kept."""
    return _family(type_name) in _WRITERS and type_name not in TIMES


def is_data_key_type(type_name: str) -> bool:
    """True if keys of the type can narrow a table by a column that is no partition column.

    Timestamps are among them. A partition column of that type is kept as a text of a local time.
    """
    return _family(type_name) in _WRITERS


def is_rounded_in_delta(type_name: str) -> bool:
    """True if a writer of Delta may round a column's bounds: delta-rs keeps those of decimals in 64-bit floats."""
    decimal = _DECIMAL_TYPE.fullmatch(type_name)
    return decimal is not None and int(decimal[1]) > _DIGITS_OF_FLOATS


# Digits that a 64-bit float keeps of any decimal.
_DIGITS_OF_FLOATS = 15

TIMES = frozenset({INSTANT, LOCAL_TIME})


def compares_exactly(fact_type: str, small_type: str) -> bool:
    """True if `=` between the types casts nothing, or between integers only, where a cast loses nothing.

    Spark compares a string with an int as ints: '01' = 1 is true, and '01' IN ('1') is not.
    """
    return fact_type == small_type or {fact_type, small_type} <= _INTEGERS.keys()


def fits(type_name: str, value: Key | None) -> bool:
    """True if a column of the type can hold the value of a wider integer type."""
    held = integers_of(type_name)
    return held is None or isinstance(value, bool) or not isinstance(value, int) or value in held


def integers_of(type_name: str) -> range | None:
    """The values of an integer type; None for any other type.

    >>> integers_of("tinyint")
    range(-128, 128)
    """
    if type_name not in _INTEGERS:
        return None
    bits, _ = _INTEGERS[type_name]
    return range(-(1 << bits - 1), 1 << bits - 1)


def narrowest_fit(type_name: str, low: Key, high: Key) -> tuple[Key, Key] | None:
    """The part of a range of a wider integer type that the type can hold, or None if there is none."""
    held = integers_of(type_name)
    if held is None or not isinstance(low, int) or not isinstance(high, int):
        return low, high
    low, high = max(low, held.start), min(high, held.stop - 1)
    return (low, high) if low <= high else None


def _family(type_name: str) -> str:
    if type_name in _INTEGERS:
        return "integer"
    return "decimal(p,s)" if _DECIMAL_TYPE.fullmatch(type_name) else type_name


def _unreadable(type_name: str, value: object) -> UnreadableKeyError:
    return UnreadableKeyError(f"a key of type {type_name} arrived as {type(value).__name__} of another form")


def _integer(type_name: str, value: Key) -> str:
    _, suffix = _INTEGERS[type_name]
    if isinstance(value, bool) or not isinstance(value, int) or not fits(type_name, value):
        raise _unreadable(type_name, value)
    return f"{value}{suffix}"


def _boolean(type_name: str, value: Key) -> str:
    if not isinstance(value, bool):
        raise _unreadable(type_name, value)
    return "TRUE" if value else "FALSE"


def _matching(pattern: re.Pattern[str], type_name: str, value: Key) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise _unreadable(type_name, value)
    return value


def _date(type_name: str, value: Key) -> str:
    day = _matching(_DATE, type_name, value)
    if CALENDAR_SWITCH_DAYS[0] <= day <= CALENDAR_SWITCH_DAYS[1]:
        raise UnreadableKeyError("a day on which calendars differ")
    return f"DATE'{day}'"


def _time(type_name: str, value: Key) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unreadable(type_name, value)
    if not is_certain(value):
        raise UnreadableKeyError(
            "a time outside of the years 1901 to 9999, or within a second of 1970, has no certain literal"
        )
    # With a zone in the text, TIMESTAMP is an instant whatever spark.sql.timestampType says.
    return (
        f"TIMESTAMP'{micros_text(value)}+00:00'"
        if type_name == INSTANT
        else f"TIMESTAMP_NTZ'{micros_text(value)}'"
    )


def _decimal(type_name: str, value: Key) -> str:
    # A bare 1.50BD has its own precision, for which Spark would cast the column and no longer prune by it.
    return f"CAST('{_matching(_DECIMAL, type_name, value)}' AS {type_name.upper()})"


def _string(type_name: str, value: Key) -> str:
    if not isinstance(value, str) or "\ufffd" in value:
        # Invalid UTF-8 has become U+FFFD on the way here: the key's real bytes are not known.
        raise _unreadable(type_name, value)
    if _PLAIN_STRING.fullmatch(value):
        return f"'{value}'"
    return f"CAST(X'{value.encode().hex().upper()}' AS STRING)"


_WRITERS: dict[str, Callable[[str, Key], str]] = {
    "integer": _integer,
    "boolean": _boolean,
    "date": _date,
    INSTANT: _time,
    LOCAL_TIME: _time,
    "decimal(p,s)": _decimal,
    "string": _string,
}
