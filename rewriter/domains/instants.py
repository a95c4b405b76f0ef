"""Instants and local times as numbers of microseconds since 1970, and as literals that every session reads alike.

A TIMESTAMP is an instant. Its text depends on the session's time zone, in which a local time can occur twice or
not at all, so it is written and read in UTC. A TIMESTAMP_NTZ is a local time without a zone.

Only the years 1901 to 9999 have literals. In files, times before 1900 may be of another calendar or local mean
times: settings of the session decide that. Versions of Spark differ in how they write years of five digits. Times
within a second of 1970 have no literal either: a reader of ORC takes 23:59:59.9 for 00:00:00.9. Bounds of files
and Iceberg's partitions keep the true time, and nothing tells if an Iceberg table still has files in ORC.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

INSTANT: Final = "timestamp"
LOCAL_TIME: Final = "timestamp_ntz"

# Spark's own range, which has no certain literals at its ends.
MICROS_MIN: Final = -(1 << 63)
MICROS_MAX: Final = (1 << 63) - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SECOND: Final = 1_000_000
CERTAIN_MIN: Final = (datetime(1901, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
CERTAIN_MAX: Final = (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC) - _EPOCH) // _MICROSECOND

# A local time as Spark casts it to a string: with a fraction of up to six digits, none at its end a zero.
_LOCAL_TIME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?")


def is_certain(micros: int) -> bool:
    """True if the time has a literal, and is the same time in files of every calendar and format.

    >>> is_certain(0), is_certain(900_000), is_certain(1_000_000)
    (True, False, True)
    """
    return CERTAIN_MIN <= micros <= CERTAIN_MAX and (micros == 0 or abs(micros) >= _SECOND)


def micros_text(micros: int) -> str:
    """The time of a certain number of microseconds, in UTC.

    >>> micros_text(-1)
    '1969-12-31 23:59:59.999999'
    """
    return (_EPOCH + micros * _MICROSECOND).strftime("%Y-%m-%d %H:%M:%S.%f")


def micros_of_local_time(text: str) -> int | None:
    """The number of microseconds of a local time as Spark casts it to a string; None for other texts.

    >>> micros_of_local_time("1970-01-01 00:00:01.5")
    1500000
    """
    found = _LOCAL_TIME.fullmatch(text)
    if found is None:
        return None
    *parts, fraction = found.groups()
    try:
        moment = datetime(*map(int, parts), int((fraction or "").ljust(6, "0")), tzinfo=UTC)  # type: ignore[misc,arg-type]
    except ValueError:
        return None
    return (moment - _EPOCH) // _MICROSECOND
