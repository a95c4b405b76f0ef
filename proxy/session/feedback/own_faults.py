"""Failures of a statement by its own data, which it has however its scans are split.

Fewer splits leave the rows, the filters and the expressions of a statement as they are, so the original fails in
the same way, and need not be run to see that. A failure of another kind may come from the hint: names that are not
found, or tasks that need more memory.
"""

from __future__ import annotations

import re

# By the standard: cardinality violations (21000) and data exceptions (22xxx), beside raise_error's P0001. Sums may
# pass the range of a number (22003) in one order of adding and not in another, which fewer splits may change.
_SQLSTATE = re.compile(r"\bSQLSTATE: (?:21000|22(?!003)[0-9A-Z]{3}|P0001)\b")


def is_own_fault(message: str) -> bool:
    """Whether a statement failed by its own data.

    >>> is_own_fault("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012")
    True
    >>> is_own_fault("[ARITHMETIC_OVERFLOW] long overflow. SQLSTATE: 22003")
    False
    """
    return _SQLSTATE.search(message) is not None
