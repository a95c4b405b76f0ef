"""The interval for a ratio: known answers, its coverage, and what it does with little."""

import random
from math import exp
from statistics import median

import pytest
from intervals import Interval, median_interval

SEED = 4


def test_nine_pairs_are_enclosed_by_the_second_smallest_and_the_second_largest_ratio() -> None:
    ratios = [1.04, 0.91, 1.2, 0.97, 1.0, 1.1, 0.95, 1.02, 9.0]
    assert median_interval(ratios) == Interval(0.95, 1.2)


@pytest.mark.parametrize(("pairs", "ends"), [(3, (0, 2)), (5, (0, 4)), (7, (1, 5)), (9, (1, 7)), (11, (2, 8))])
def test_odd_numbers_of_pairs_end_at_ratios_that_stand_in_the_docstring(pairs: int, ends: tuple[int, int]) -> None:
    ratios = [1 + number / 100 for number in range(pairs)]
    low, high = ends
    assert median_interval(ratios) == Interval(ratios[low], ratios[high])


def test_the_interval_encloses_the_median_whatever_the_order_of_the_runs() -> None:
    ratios = [0.8, 1.3, 1.1, 0.9, 1.0, 1.2, 0.7, 1.4, 1.5]
    forth, back = median_interval(ratios), median_interval(ratios[::-1])
    assert forth.low <= median(ratios) <= forth.high
    assert forth == back == median_interval(ratios)


def test_one_pair_that_was_struck_alone_moves_no_end() -> None:
    calm = [0.99, 1.0, 1.01, 0.98, 1.02, 1.0, 0.99, 1.01, 1.02]
    assert median_interval([*calm[:8], 50.0]).high == median_interval(calm).high


def test_equal_pairs_have_no_width() -> None:
    assert median_interval([1.25] * 9) == Interval(1.25, 1.25)


def test_a_single_pair_is_both_ends() -> None:
    assert median_interval([0.5]) == Interval(0.5, 0.5)


def test_of_no_pairs_there_is_no_interval() -> None:
    with pytest.raises(ValueError, match="no pairs"):
        _ = median_interval([])


def ratio_under_load(drawn: random.Random) -> float:
    """Both runs of a pair bear the load of their moment; each has noise of its own, and a few are struck alone."""
    load = exp(drawn.gauss(0, 0.2))
    direct_s, proxied_s = (
        load * exp(drawn.gauss(0, 0.08)) * (2 if drawn.random() < 0.08 else 1) for _ in range(2)
    )
    return proxied_s / direct_s


@pytest.mark.parametrize(("pairs", "expected"), [(5, 0.94), (7, 0.88), (9, 0.96)])
def test_even_sides_lie_in_the_interval_as_often_as_the_docstring_says(pairs: int, expected: float) -> None:
    drawn, trials = random.Random(SEED), 400  # noqa: S311 - to be repeatable
    held = 0
    for _ in range(trials):
        found = median_interval([ratio_under_load(drawn) for _ in range(pairs)], drawings=1_000)
        held += found.low <= 1 <= found.high
    # Twice the standard deviation of a count of 400.
    assert held / trials == pytest.approx(expected, abs=0.035)
