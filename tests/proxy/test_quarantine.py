"""What did harm is put aside for a while, the smallest suspect first, and comes back by itself."""

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.session.feedback import quarantine_list
from proxy.session.feedback.metastore_limits import FILTER_REFUSED, PERIOD_MAX_S, MetastoreLimits
from proxy.session.feedback.quarantine import Quarantine, Suspects, learn
from proxy.session.feedback.quarantine_list import Cause, QuarantineKind
from rewriter import Rule, TableName

PERIOD_S = 600.0
SUSPECTS = Suspects(frozenset(), frozenset(), "a")
SALES, RETURNS = (TableName(("main", "shop", name)) for name in ("sales", "returns"))
INNER, EXISTS = Rule.INNER_JOIN, Rule.EXISTS


@dataclass
class Watched:
    now: float = 1_000.0
    quarantine: Quarantine = field(init=False)

    def __post_init__(self) -> None:
        self.quarantine = Quarantine(PERIOD_S, lambda: self.now)

    def failed(
        self,
        shape: str,
        *tables: TableName,
        rules: Iterable[Rule] = (INNER,),
        cause: Cause = Cause.FAILED,
    ) -> None:
        self.quarantine.blame(frozenset(rules), frozenset(tables), shape, cause)

    @property
    def aside(self) -> set[str]:
        return {entry.name for entry in self.quarantine.current()}


@pytest.fixture
def tracked_call() -> Watched:
    return Watched()


def test_a_failure_puts_the_statements_shape_aside_and_nothing_else(tracked_call: Watched) -> None:
    tracked_call.failed("a", SALES)
    assert tracked_call.quarantine.is_shape_off("a")
    assert not tracked_call.quarantine.is_shape_off("b")
    assert tracked_call.aside == {"a"}


def test_a_failure_of_another_shape_puts_the_table_aside(tracked_call: Watched) -> None:
    tracked_call.failed("a", SALES)
    tracked_call.failed("b", SALES)
    assert tracked_call.quarantine.off().tables == {SALES}
    assert tracked_call.quarantine.off().rules == frozenset()


def test_the_same_shape_again_says_nothing_of_the_table(tracked_call: Watched) -> None:
    tracked_call.failed("a", SALES)
    tracked_call.failed("a", SALES)
    assert tracked_call.quarantine.off().tables == frozenset()


def test_failures_on_two_tables_put_the_rule_that_they_share_aside(tracked_call: Watched) -> None:
    tracked_call.failed("a", SALES, rules=[INNER, Rule.VIEWS])
    tracked_call.failed("b", RETURNS, rules=[INNER, EXISTS])
    assert tracked_call.quarantine.off().rules == {INNER}
    assert tracked_call.quarantine.off().tables == frozenset()


def test_a_table_that_explains_all_failures_clears_the_rule(tracked_call: Watched) -> None:
    tracked_call.failed("a", SALES, RETURNS)
    tracked_call.failed("b", SALES)
    assert tracked_call.quarantine.off().rules == frozenset()
    tracked_call.failed("c", RETURNS)
    assert tracked_call.quarantine.off().rules == {INNER}


def test_what_failed_long_ago_is_no_suspect_any_more(tracked_call: Watched) -> None:
    tracked_call.failed("a", SALES)
    tracked_call.now += PERIOD_S
    tracked_call.failed("b", SALES)
    tracked_call.failed("c", RETURNS)
    assert tracked_call.quarantine.off().tables == frozenset()
    tracked_call.now += PERIOD_S - 1
    tracked_call.failed("d", RETURNS)
    assert tracked_call.quarantine.off().tables == {RETURNS}


def test_a_statement_whose_tables_are_not_known_to_all_sessions_blames_its_shape_alone(
    tracked_call: Watched,
) -> None:
    tracked_call.failed("a")
    tracked_call.failed("b")
    assert tracked_call.aside == {"a", "b"}


def test_what_was_put_aside_comes_back_by_itself(tracked_call: Watched) -> None:
    tracked_call.failed("a", SALES)
    tracked_call.failed("b", SALES)
    tracked_call.now += PERIOD_S - 1
    assert tracked_call.aside == {"a", "b", str(SALES)}
    tracked_call.now += 1
    assert not tracked_call.aside
    assert not tracked_call.quarantine.is_shape_off("a")
    assert tracked_call.quarantine.off().tables == frozenset()


def left_s(tracked_call: Watched, name: str) -> float:
    return next(entry.left_s for entry in tracked_call.quarantine.current() if entry.name == name)


def test_a_relapse_is_put_aside_for_twice_as_long_up_to_a_day(tracked_call: Watched) -> None:
    tracked_call.failed("a", SALES)
    for times in (2, 4, 8):
        tracked_call.now += left_s(tracked_call, "a")
        assert not tracked_call.quarantine.is_shape_off("a")
        tracked_call.failed("a", SALES)
        assert left_s(tracked_call, "a") == times * PERIOD_S
    for _ in range(20):
        tracked_call.now += left_s(tracked_call, "a")
        tracked_call.failed("a", SALES)
    assert left_s(tracked_call, "a") == PERIOD_MAX_S


def test_what_has_been_well_for_as_long_begins_anew(tracked_call: Watched) -> None:
    tracked_call.failed("a", SALES)
    tracked_call.now += PERIOD_S
    tracked_call.failed("a", SALES)
    tracked_call.now += 2 * 2 * PERIOD_S
    tracked_call.failed("a", SALES)
    assert left_s(tracked_call, "a") == PERIOD_S


def test_failures_of_what_was_under_way_do_not_lengthen_the_time(tracked_call: Watched) -> None:
    tracked_call.failed("a", SALES)
    tracked_call.now += 10
    tracked_call.failed("a", SALES)
    assert left_s(tracked_call, "a") == PERIOD_S - 10


def test_another_answer_puts_all_rules_of_the_statement_aside_until_a_restart(tracked_call: Watched) -> None:
    tracked_call.failed("a", SALES, rules=[INNER, EXISTS], cause=Cause.DIFFERENT)
    tracked_call.now += 1e9
    assert tracked_call.quarantine.off().rules == {INNER, EXISTS}
    assert tracked_call.quarantine.off().tables == frozenset()
    assert left_s(tracked_call, "inner_join") == math.inf


def test_another_answer_counts_although_the_rule_was_put_aside_for_a_while(tracked_call: Watched) -> None:
    tracked_call.failed("a", SALES)
    tracked_call.failed("b", RETURNS)
    tracked_call.failed("c", SALES, cause=Cause.DIFFERENT)
    tracked_call.now += 1e9
    assert tracked_call.quarantine.off().rules == {INNER}


def test_what_is_put_aside_says_what_why_and_for_how_long(tracked_call: Watched) -> None:
    tracked_call.failed("a", SALES, rules=[])
    tracked_call.now += 10
    tracked_call.failed("b", SALES, rules=[EXISTS], cause=Cause.DIFFERENT)
    entries = {entry.kind: entry for entry in tracked_call.quarantine.current() if entry.name != "b"}
    assert set(entries) == {QuarantineKind.RULE, QuarantineKind.SHAPE}
    assert (entries[QuarantineKind.SHAPE].age_s, entries[QuarantineKind.SHAPE].left_s) == (10, PERIOD_S - 10)
    assert entries[QuarantineKind.SHAPE].sentence == (
        "The shape a is put aside for another 590 s: a statement failed with it, and worked as it came."
    )
    assert "until a restart" in entries[QuarantineKind.RULE].sentence


def test_the_log_says_once_what_is_put_aside_and_once_that_it_is_back(
    tracked_call: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    tracked_call.failed("a", SALES)
    tracked_call.failed("a", SALES)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    tracked_call.now += PERIOD_S
    for _ in range(3):
        tracked_call.quarantine.off()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_only_so_much_is_remembered(tracked_call: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine_list, "KEPT_MAX", 3)
    for number in range(5):
        tracked_call.failed(str(number))
    assert tracked_call.aside == {"2", "3", "4"}


@pytest.mark.parametrize("end", list(OutcomeKind))
def test_only_a_statement_that_worked_as_it_came_teaches_that_the_rewrite_did_harm(
    tracked_call: Watched, end: OutcomeKind
) -> None:
    metastore = MetastoreLimits("derby", PERIOD_S, lambda: tracked_call.now)
    learn(Outcome(end, 1.0, "went wrong"), SUSPECTS, tracked_call.quarantine, metastore)
    assert tracked_call.quarantine.is_shape_off("a") == (end is OutcomeKind.RECOVERED)
    assert not metastore.lowered


@pytest.mark.parametrize("end", list(OutcomeKind))
def test_a_filter_that_the_metastore_refused_is_shortened_for_its_table_and_nothing_else_is_blamed(
    tracked_call: Watched, end: OutcomeKind
) -> None:
    metastore = MetastoreLimits("derby", PERIOD_S, lambda: tracked_call.now)
    message = f"[{FILTER_REFUSED}] too complex" if end is not OutcomeKind.FINISHED else ""
    suspects = replace(SUSPECTS, tables=frozenset({SALES, RETURNS}), sent=frozenset({SALES}))
    learn(Outcome(end, 1.0, message), suspects, tracked_call.quarantine, metastore)
    assert set(metastore.lowered) == ({SALES} if end in {OutcomeKind.RECOVERED, OutcomeKind.FAILED} else set())
    assert not tracked_call.aside


def test_a_filter_that_is_refused_although_we_sent_none_is_a_failure_like_any(tracked_call: Watched) -> None:
    metastore = MetastoreLimits("derby", PERIOD_S, lambda: tracked_call.now)
    learn(Outcome(OutcomeKind.RECOVERED, 1.0, f"[{FILTER_REFUSED}]"), SUSPECTS, tracked_call.quarantine, metastore)
    assert tracked_call.aside == {"a"}
    assert not metastore.lowered


def test_a_failure_that_was_provoked_teaches_nothing(tracked_call: Watched) -> None:
    metastore = MetastoreLimits("derby", PERIOD_S, lambda: tracked_call.now)
    outcome = Outcome(OutcomeKind.RECOVERED, 1.0, "the keys are out of date")
    learn(outcome, SUSPECTS, tracked_call.quarantine, metastore, expected="out of date")
    assert not tracked_call.aside
