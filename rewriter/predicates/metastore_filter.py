"""Names and values that a partition filter of a Hive metastore can hold.

Spark sends the metastore a text, `(k) in (1, 2) and s = "a"`, in which no name is quoted and nothing is escaped
(Spark 4.3, HiveShim.scala). The metastore parses it by a grammar of its own (Hive's Filter.g), and then its
database compares texts. An error there fails the whole statement, with or without its own filters; a text that a
backslash ends too early is even read as another filter, and rows are lost.

Spark converts comparisons, IN, LIKE and combinations of them by AND, OR and NOT. It skips any other condition,
which then prunes partitions in Spark's planner alone.
"""

from __future__ import annotations

import re
from typing import Final

from rewriter.domains.literals import CALENDAR_SWITCH_DAYS, Key

# `Identifier` of Filter.g in Hive 2.3, which Spark embeds, and in 3.1; 4.0 takes names that begin with `_` too.
# A word of digits alone is a number. Case is ignored.
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")
# The keywords that all three versions have. Hive 4.0 has DATE and TIMESTAMP as well, which are common names, and
# no keywords of the others: `proxy.session.feedback.metastore_limits` learns from the first refusal.
_KEYWORDS: Final = frozenset({"and", "or", "not", "like", "between", "in", "const", "struct"})

# The metastore's calendar has no year 0. No key is made of the days in 1582 on which calendars differ
# (`rewriter.domains.literals`), but a range may hold some: Derby reads 1582-10-14 as 1582-10-24.
_FIRST_DATE: Final = "0001-01-01"

_CAST: Final = frozenset({"date", "tinyint", "smallint", "int", "bigint"})

# A backslash escapes the quote behind it, unlike in Spark. PostgreSQL accepts no text with a NUL.
_HIDING: Final = re.compile(r"[\\\x00]")


def can_name(column: str) -> bool:
    """True if a filter can name a partition column.

    >>> can_name("ds"), can_name("_ds"), can_name("In"), can_name("2026")
    (True, False, False, False)
    """
    return _NAME.fullmatch(column) is not None and column.lower() not in _KEYWORDS and not column.isdecimal()


def is_cast(type_name: str) -> bool:
    """True if a metastore casts the values of a partition column of the type to compare them.

    It keeps them as texts, the names of their directories, and its database may read one in another way than
    Spark: `p=2024` is the first day of a year to Spark, and null to MariaDB, which finds no such day then.

    Spark sends it no comparisons but those of texts, days and whole numbers.

    >>> is_cast("date"), is_cast("string"), is_cast("boolean")
    (True, False, False)
    """
    return type_name in _CAST


def may_reach_cast(type_name: str) -> bool:
    """True if Spark may infer a comparison of such a column from one with values of the type.

    From `a.n = b.p AND a.n IN (1.0)`, of a decimal and a number, it infers `CAST(b.p AS DECIMAL(..)) IN (1.0)`,
    and takes the cast away (UnwrapCastInBinaryComparison), as it does between times and days.
    """
    return type_name != "string"


def can_compare(type_name: str, key: Key) -> bool:
    r"""True if a filter can compare a column of the type with a key.

    >>> can_compare("string", "it's"), can_compare("string", "C:\\"), can_compare("date", "0000-12-31")
    (True, False, False)
    """
    if not isinstance(key, str):
        return True
    if type_name == "date":
        return key >= _FIRST_DATE
    # Spark quotes by whichever quote the text does not hold.
    return _HIDING.search(key) is None and not ('"' in key and "'" in key)


def can_compare_range(type_name: str, low: Key, high: Key) -> bool:
    """True if a filter finds all partitions between two keys that it can compare a column of the type with.

    >>> can_compare_range("date", "1582-01-01", "1582-12-31")
    False
    >>> can_compare_range("date", "2026-01-01", "2026-12-31")
    True
    """
    first, last = CALENDAR_SWITCH_DAYS
    return type_name != "date" or str(high) < first or str(low) > last


def hidden_from_metastore(condition: str) -> str:
    """The condition in a form that Spark skips when it converts conditions to a metastore's filter.

    >>> hidden_from_metastore("`_ds` BETWEEN 1 AND 5")
    'array_contains(array(TRUE), `_ds` BETWEEN 1 AND 5)'
    """
    return f"array_contains(array(TRUE), {condition})"
