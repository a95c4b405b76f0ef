"""Failures of a statement by its own data, which it has however its scans are split.

Fewer splits leave the rows, the filters and the expressions of a statement as they are, so the original fails in
the same way, and need not be run to see that. A failure of another kind may come from the hint: names that are not
found, or tasks that need more memory.
"""

from __future__ import annotations

import re

# By the standard: cardinality violations (21000) and data exceptions (22xxx), beside raise_error's P0001. Sums may
# pass the range of a number (22003) in one order of adding and not in another, which fewer splits may change.
_OWN_STATE = re.compile(r"SQLSTATE: (?:21000|22(?!003)[0-9A-Z]{3}|P0001)(?![^\s;])")
# A message may go on with the statement, or its plan, in which a literal may look like a state.
_BEHIND = re.compile(r"; line |== SQL")
# Spark's own errors have a class, and their state behind their text.
_CLASS = re.compile(r"\[[A-Z][A-Z0-9_.]*\]")
_STATE = "SQLSTATE: "


def is_own_fault(message: str) -> bool:
    """True if a statement failed by its own data.

    >>> is_own_fault("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012")
    True
    >>> is_own_fault("[ARITHMETIC_OVERFLOW] long overflow. SQLSTATE: 22003")
    False
    >>> is_own_fault("Job aborted: OutOfMemoryError. Filter (e = 'SQLSTATE: 22012')")
    False
    """
    told = _BEHIND.split(message, maxsplit=1)[0]
    start = told.find(_STATE)
    return _CLASS.search(told, 0, max(start, 0)) is not None and _OWN_STATE.match(told, start) is not None
