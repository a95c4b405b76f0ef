"""Limits that come down with a refusal, for one table, and grow back by themselves."""

import logging
from dataclasses import dataclass, field

import pytest

from proxy.session.feedback import metastore_limits
from proxy.session.feedback.metastore_limits import PERIOD_MAX_S, MetastoreLimits
from rewriter import TableName
from rewriter.domains.consumers import ACCEPTS_NOTHING, METASTORES, halved

PERIOD_S = 600.0
FULL = METASTORES["derby"]
HALF = halved(FULL)
SALES, RETURNS = (TableName(("main", "shop", name)) for name in ("sales", "returns"))


@dataclass
class Refusing:
    now: float = 1_000.0
    metastore: MetastoreLimits = field(init=False)

    def __post_init__(self) -> None:
        self.metastore = MetastoreLimits("derby", PERIOD_S, lambda: self.now)

    def refuses(self, *tables: TableName) -> None:
        self.metastore.refused(frozenset(tables or (SALES,)))

    def after(self, seconds: float, table: TableName = SALES) -> object:
        """The limits of a table after so much more time."""
        self.now += seconds
        return self.metastore.lowered().get(table, self.metastore.consumer)


@pytest.fixture
def refusing() -> Refusing:
    return Refusing()


def test_a_refusal_halves_the_limits_of_the_table_and_another_one_leaves_nothing(refusing: Refusing) -> None:
    assert refusing.after(0) == FULL
    for limits in (HALF, ACCEPTS_NOTHING, ACCEPTS_NOTHING):
        refusing.refuses()
        assert refusing.after(0) == limits
    assert refusing.after(0, RETURNS) == refusing.metastore.consumer == FULL, "the others are sent the same"


def test_all_tables_of_the_statement_are_sent_less(refusing: Refusing) -> None:
    refusing.refuses(SALES, RETURNS)
    assert dict(refusing.metastore.lowered()) == {SALES: HALF, RETURNS: HALF}


def test_no_user_s_refusals_change_what_is_sent_for_others(refusing: Refusing) -> None:
    """`raise_error('INTERNAL_ERROR_HIVE_METASTORE_PARTITION_FILTER')` looks like a refusal, too."""
    for _ in range(9):
        refusing.metastore.refused(frozenset({SALES}), "ann")
    assert refusing.metastore.lowered("ann") == {SALES: ACCEPTS_NOTHING}
    assert refusing.metastore.lowered("bob") == refusing.metastore.lowered() == {}
    assert refusing.metastore.lowered_count == 1


def test_limits_come_down_for_all_as_far_as_two_users_have_seen_it(refusing: Refusing) -> None:
    for user in ("ann", "ann", "bob"):
        refusing.metastore.refused(frozenset({SALES}), user)
    assert refusing.metastore.lowered("eve") == {SALES: HALF}
    assert refusing.metastore.lowered("ann") == {SALES: ACCEPTS_NOTHING}
    refusing.metastore.refused(frozenset({SALES}), "bob")
    assert refusing.metastore.lowered("eve") == {SALES: ACCEPTS_NOTHING}


def test_the_limits_grow_back_step_by_step_and_no_further_than_configured(refusing: Refusing) -> None:
    refusing.refuses()
    refusing.refuses()
    assert refusing.after(PERIOD_S - 1) == ACCEPTS_NOTHING
    assert refusing.after(1) == HALF
    assert refusing.after(PERIOD_S) == FULL
    assert refusing.after(100 * PERIOD_S) == FULL
    assert not refusing.metastore.lowered()
    refusing.refuses()
    refusing.refuses()
    assert refusing.after(2 * PERIOD_S) == FULL, "though nobody asked in between"


def test_each_table_takes_its_own_steps(refusing: Refusing) -> None:
    refusing.refuses(SALES)
    refusing.after(PERIOD_S / 2)
    refusing.refuses(RETURNS)
    assert refusing.after(PERIOD_S / 2) == FULL
    assert refusing.after(0, RETURNS) == HALF
    assert refusing.after(PERIOD_S / 2, RETURNS) == FULL


def test_a_refusal_after_a_step_back_doubles_the_time_until_a_period_at_the_configured_limits(
    refusing: Refusing,
) -> None:
    refusing.refuses()
    refusing.after(PERIOD_S + 1)
    refusing.refuses()
    assert refusing.after(2 * PERIOD_S - 1) == HALF
    assert refusing.after(1) == FULL
    refusing.after(2 * PERIOD_S)
    refusing.refuses()
    assert refusing.after(PERIOD_S) == FULL


def test_refusals_without_end_leave_a_try_a_day(refusing: Refusing) -> None:
    refusing.refuses()
    refusing.refuses()
    for step in range(20):
        refusing.after(min(PERIOD_S * 2**step, PERIOD_MAX_S))
        refusing.refuses()
    assert refusing.after(PERIOD_MAX_S - 1) == ACCEPTS_NOTHING
    assert refusing.after(1) == HALF


def test_only_so_many_tables_are_remembered(refusing: Refusing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metastore_limits, "_TABLES_MAX", 3)
    names = [TableName((str(number),)) for number in range(5)]
    for name in names:
        refusing.refuses(name)
    assert set(refusing.metastore.lowered()) == set(names[2:])


def test_the_log_names_the_table_and_what_is_sent_of_it(
    refusing: Refusing, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    refusing.refuses()
    refusing.after(PERIOD_S)
    refusing.metastore.refused(frozenset({RETURNS}), "ann")
    down, up, of_user = (record.getMessage() for record in caplog.records)
    assert "of the table main.shop.returns in statements of one user (" in of_user
    assert "40 points or 20 ranges at most of the table main.shop.sales" in down
    assert "80 points or 40 ranges at most of it again" in up
