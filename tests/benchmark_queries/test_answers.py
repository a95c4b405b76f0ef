"""Answers are compared so that rounding passes and a lost row does not."""

import pytest
from answers import same_rows

from demo.hive import Row

SUM_IN_ONE_ORDER = 0.1 + 0.2 + 0.3
SUM_IN_ANOTHER = 0.3 + 0.2 + 0.1


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([(1, "a"), (2, "b")], [(2, "b"), (1, "a")]),
        ([("a", SUM_IN_ONE_ORDER)], [("a", SUM_IN_ANOTHER)]),
        ([(float("nan"), None)], [(float("nan"), None)]),
        ([], []),
    ],
    ids=["another order", "rounding", "nan and null", "nothing"],
)
def test_the_same_rows_are_the_same_answer(left: list[Row], right: list[Row]) -> None:
    assert same_rows(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([(1,), (1,)], [(1,)]),
        ([(1,), (1,), (2,)], [(1,), (2,), (2,)]),
        ([(1.0,)], [(1.0001,)]),
        ([(None,)], [(0,)]),
        ([("1",)], [(1,)]),
    ],
    ids=["a row less", "another row twice", "another number", "null for zero", "another type"],
)
def test_other_rows_are_another_answer(left: list[Row], right: list[Row]) -> None:
    assert not same_rows(left, right)
