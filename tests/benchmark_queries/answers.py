"""Whether two answers hold the same rows, in whatever order, floating-point numbers up to rounding."""

import math
from collections.abc import Sequence

from demo.hive import Row

# Spark adds doubles in the order in which its tasks finish, so a sum or a deviation differs in its last digits
# from one run to the next; nothing that leaves out or repeats a row changes a number by so little.
RELATIVE_TOLERANCE = 1e-9


def same_rows(left: Sequence[Row], right: Sequence[Row]) -> bool:
    """Whether both hold the same rows equally often.

    >>> same_rows([("a", 0.3), ("b", None)], [("b", None), ("a", 0.1 + 0.2)])
    True
    """
    pairs = zip(sorted(left, key=_order), sorted(right, key=_order), strict=False)
    return len(left) == len(right) and all(_same_row(one, other) for one, other in pairs)


def _order(row: Row) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """What must be equal first, so that rounding cannot put two rows in another order unless they are alike."""
    exact = tuple(repr(value) for value in row if not isinstance(value, float))
    return exact, tuple(value for value in row if isinstance(value, float))


def _same_row(left: Row, right: Row) -> bool:
    return len(left) == len(right) and all(map(_same_value, left, right))


def _same_value(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        both_nan = math.isnan(left) and math.isnan(right)
        return both_nan or math.isclose(left, right, rel_tol=RELATIVE_TOLERANCE)
    return left == right
