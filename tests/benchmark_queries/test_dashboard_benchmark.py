"""The dashboard benchmark: its statements, its pace, and the comparison of its periods."""

import re

import pytest
from dashboard import Compared, Percentiles, Period, Report, Settings, _paced, compared, with_period
from dashboard_tables import WINDOW_DAYS_MAX, DashboardTables
from pairs import COLD, WARM

TABLES = DashboardTables(partitions=100, rows_per_partition=10)
SETTINGS = Settings(100, 10, 2, 1, 0, 1)


def period(latencies_s: list[float], *, is_proxied: bool, listing: str = WARM) -> Period:
    counters = {'starpruner_statements_total{outcome="rewritten"}': 3.0} if is_proxied else {}
    return Period(listing, is_proxied, latencies_s, [max(latencies_s)], 1.0, 0.1, counters)


def days_of(sql: str) -> list[str]:
    return re.findall(r"DATE'([\d-]+)'", sql)


def test_twelve_statements_move_on_by_a_day_and_begin_anew_where_the_fact_ends() -> None:
    first, second = TABLES.dashboard(0), TABLES.dashboard(1)
    assert len(first) == len(set(first)) == 12
    assert days_of(first[1]) == ["2020-03-24", "2020-03-30"]
    assert days_of(second[1]) == ["2020-03-25", "2020-03-31"]
    assert TABLES.dashboard(100 - WINDOW_DAYS_MAX + 1) == first
    assert TABLES.fact in first[0]


def test_short_statements_differ_and_read_a_week_at_most() -> None:
    found = TABLES.short(30)
    assert len(found) == 30
    assert not any("stores" in sql or "products" in sql for sql in found)


class Clock:
    """A clock that moves as somebody sleeps or works."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_a_refresh_begins_five_seconds_after_the_last_or_when_that_has_ended() -> None:
    clock, begun = Clock(), []
    for number in _paced(range(4), clock, clock.sleep):
        begun.append(clock.now)
        clock.now += 7.0 if number == 1 else 2.0
    assert begun == [0.0, 5.0, 12.0, 17.0]


def test_periods_are_compared_in_pairs_and_the_last_one_waits_for_its_partner() -> None:
    periods = [
        period([1.0, 1.0], is_proxied=False),
        period([0.5, 0.5], is_proxied=True),
        period([2.0, 2.0], is_proxied=True),
        period([4.0, 4.0], is_proxied=False),
        period([9.0, 9.0], is_proxied=False),
    ]
    found = compared(periods)
    assert isinstance(found, Compared)
    assert (found.p50_ratio, found.p95_ratio) == (0.5, 0.5)
    assert found.direct == Percentiles(2.5, 4.0)
    assert (found.statements, found.rewritten) == (4, 6)
    assert compared(periods[:1]) is None


def test_cold_and_warm_periods_are_compared_apart() -> None:
    report = Report(SETTINGS)
    for listing, factor in ((COLD, 0.1), (WARM, 1.0)):
        for is_proxied in (False, True):
            one = period([factor, factor] if is_proxied else [1.0, 1.0], is_proxied=is_proxied, listing=listing)
            report = with_period(report, one, ["none"])
    assert {listing: one.p50_ratio for listing, one in report.compared.items()} == pytest.approx(
        {COLD: 0.1, WARM: 1.0}
    )
    assert report.other_answers == ["none"]
