"""Limits that come down with a refusal and grow back by themselves."""

from dataclasses import dataclass, field

import pytest

from proxy.metastore import PERIOD_MAX_S, Metastore
from rewriter.consumers import LEAST, METASTORES

PERIOD_S = 600.0
FULL = METASTORES["derby"].points_max


@dataclass
class Refusing:
    now: float = 1_000.0
    metastore: Metastore = field(init=False)

    def __post_init__(self) -> None:
        self.metastore = Metastore("derby", PERIOD_S, lambda: self.now)

    def after(self, seconds: float) -> int:
        """The points that are sent after so much more time."""
        self.now += seconds
        return self.metastore.consumer.points_max


@pytest.fixture
def refusing() -> Refusing:
    return Refusing()


def test_a_refusal_halves_the_limits_and_another_one_does_so_again(refusing: Refusing) -> None:
    assert refusing.after(0) == FULL
    refusing.metastore.refused()
    assert refusing.after(0) == FULL // 2
    refusing.metastore.refused()
    assert refusing.after(0) == FULL // 4
    assert refusing.metastore.halvings == 2


def test_the_limits_grow_back_step_by_step_and_no_further_than_configured(refusing: Refusing) -> None:
    refusing.metastore.refused()
    refusing.metastore.refused()
    assert refusing.after(PERIOD_S - 1) == FULL // 4
    assert refusing.after(1) == FULL // 2
    assert refusing.after(PERIOD_S) == FULL
    assert refusing.after(100 * PERIOD_S) == FULL
    assert refusing.metastore.halvings == 0


def test_the_steps_are_taken_although_nobody_asked_in_between(refusing: Refusing) -> None:
    refusing.metastore.refused()
    refusing.metastore.refused()
    assert refusing.after(2 * PERIOD_S) == FULL


def test_a_refusal_after_a_step_back_doubles_the_time(refusing: Refusing) -> None:
    refusing.metastore.refused()
    refusing.after(PERIOD_S + 1)
    refusing.metastore.refused()
    assert refusing.after(2 * PERIOD_S - 1) == FULL // 2
    assert refusing.after(1) == FULL


def test_after_a_period_at_the_configured_limits_the_time_is_the_first_one_again(refusing: Refusing) -> None:
    refusing.metastore.refused()
    refusing.after(PERIOD_S + 1)
    refusing.metastore.refused()
    refusing.after(2 * 2 * PERIOD_S)
    refusing.metastore.refused()
    assert refusing.after(PERIOD_S) == FULL


def test_refusals_without_end_leave_the_least_and_a_try_a_day(refusing: Refusing) -> None:
    for _ in range(20):
        refusing.metastore.refused()
    least = refusing.metastore.consumer
    assert (least.points_max, least.ranges_max) == (LEAST.points_max, LEAST.ranges_max)
    for _ in range(20):
        refusing.after(PERIOD_MAX_S)
        refusing.metastore.refused()
    halvings = refusing.metastore.halvings
    refusing.after(PERIOD_MAX_S)
    assert refusing.metastore.halvings == halvings - 1
