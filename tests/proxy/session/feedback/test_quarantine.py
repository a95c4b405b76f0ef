"""Fingerprints and rules that did harm are quarantined for a while, and released by themselves."""

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.spark_versions import FILTER_REFUSED
from proxy.session.feedback import quarantine, quarantine_list
from proxy.session.feedback.cost_gate import StatementKey, owner_of
from proxy.session.feedback.metastore_limits import PERIOD_MAX_S, MetastoreLimits
from proxy.session.feedback.quarantine import RULE_WINDOW_S, Quarantine, Suspects, learn
from proxy.session.feedback.quarantine_list import Cause, QuarantineKind
from rewriter import Rule, TableName

PERIOD_S = 600.0
SALES = TableName(("main", "shop", "sales"))
INNER, EXISTS = Rule.INNER_JOIN, Rule.EXISTS


def key(fingerprint: str, user: str = "ann") -> StatementKey:
    """The key of a statement in one of the user's sessions."""
    return StatementKey(f"a session of {user}", fingerprint, owner_of(user))


def rule_of(user: str, rule: Rule = INNER) -> str:
    return f"{rule.value}@{owner_of(user)}"


A = key("a")


@dataclass
class Watched:
    now: float = 1_000.0
    quarantine: Quarantine = field(init=False)

    def __post_init__(self) -> None:
        self.quarantine = Quarantine(PERIOD_S, lambda: self.now)

    def failed(
        self, *fingerprints: str, rules: Iterable[Rule] = (INNER,), cause: Cause = Cause.FAILED, user: str = "ann"
    ) -> None:
        for fingerprint in fingerprints:
            self.quarantine.blame(frozenset(rules), key(fingerprint, user), cause)

    def rules_off(self, user: str = "ann") -> frozenset[Rule]:
        return self.quarantine.rules_off(owner_of(user))

    @property
    def names(self) -> set[str]:
        return {entry.name for entry in self.quarantine.current()}

    def left_s(self, name: str = A.name) -> float:
        return next(entry.left_s for entry in self.quarantine.current() if entry.name == name)

    def learns(self, end: OutcomeKind, message: str, *sent: TableName) -> MetastoreLimits:
        """Learns from a statement's end; what that says of the metastore."""
        metastore = MetastoreLimits("derby", PERIOD_S, lambda: self.now)
        suspects = Suspects(frozenset({INNER}), A, frozenset(sent))
        learn(Outcome(end, 1.0, message), suspects, self.quarantine, metastore)
        return metastore


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_failure_quarantines_the_statements_fingerprint_and_nothing_else(watched: Watched) -> None:
    watched.failed("a")
    of_others = A, key("b"), key("a", "bob")
    assert [watched.quarantine.has_statement(one) for one in of_others] == [True, False, False]
    assert watched.names == {A.name}


def test_a_rule_is_quarantined_for_a_user_once_three_fingerprints_failed_with_it(watched: Watched) -> None:
    watched.failed("a", rules=[INNER, Rule.VIEWS])
    watched.failed("b", rules=[INNER, EXISTS])
    assert watched.rules_off() == frozenset()
    watched.failed("c", rules=[INNER])
    assert watched.rules_off() == {INNER}


def test_no_user_s_statements_switch_a_rule_off_for_others(watched: Watched) -> None:
    """`assert_true(rand() < 0.5)` fails now and then; a user may write it in as many shapes and sessions."""
    for number in range(300):
        at_times = StatementKey(f"session {number % 100}", f"shape {number}", owner_of("ann"))
        watched.quarantine.blame(frozenset({INNER, EXISTS}), at_times)
        watched.now += 1
    assert watched.rules_off("ann") == {INNER, EXISTS}
    assert watched.rules_off("bob") == watched.quarantine.rules_off() == frozenset()
    watched.failed("b", "c", user="bob")
    assert watched.rules_off("bob") == watched.rules_off("eve") == frozenset(), "that may have been chance"


def test_what_fails_for_two_users_is_left_out_for_all(watched: Watched) -> None:
    watched.failed("a", "b", "c")
    watched.failed("a", "b", "c", user="bob")
    assert watched.rules_off("eve") == {INNER}
    rules = {name for name in watched.names if "_" in name}
    assert rules == {INNER.value, rule_of("ann"), rule_of("bob")}
    (for_all,), of_users = watched.quarantine.sentences()
    assert for_all.startswith("The rule inner_join is quarantined for another 600 s")
    assert sum("for statements of one user" in sentence for sentence in of_users) == 2


def test_a_release_of_a_rule_releases_it_for_each_user(watched: Watched) -> None:
    watched.failed("a", "b", "c")
    watched.failed("a", "b", "c", user="bob")
    assert watched.quarantine.release(QuarantineKind.RULE, INNER.value)
    assert watched.rules_off("ann") == watched.rules_off("bob") == watched.rules_off("eve") == frozenset()
    watched.failed("d", "e", "f")
    assert watched.rules_off("ann") == {INNER}
    assert watched.rules_off("eve") == frozenset()
    assert watched.quarantine.release(QuarantineKind.RULE, rule_of("ann"))
    assert watched.rules_off("ann") == frozenset()
    assert not watched.quarantine.release(QuarantineKind.RULE, "no_rule@ann")


def test_only_so_many_failures_of_users_are_remembered(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine, "_FAILURES_MAX", 2)
    watched.failed("a", "b")
    for user in ("bob", "eve"):
        watched.failed("a", user=user)
    watched.failed("c")
    assert watched.rules_off("ann") == frozenset()


def test_one_fingerprint_that_fails_for_many_users_is_still_one(watched: Watched) -> None:
    for user in ("ann", "bob", "eve", "joe"):
        watched.failed("a", user=user)
    assert watched.quarantine.rules_off() == frozenset()
    assert len(watched.names) == 4


def test_failures_of_a_rule_count_together_within_a_window(watched: Watched) -> None:
    watched.failed("a")
    watched.now += RULE_WINDOW_S - 1
    watched.failed("b")
    watched.now += 1
    watched.failed("c")
    assert watched.rules_off() == frozenset()
    watched.now += RULE_WINDOW_S - 2
    watched.failed("d")
    assert watched.rules_off() == {INNER}


def test_failures_before_a_rule_was_quarantined_do_not_count_once_it_is_released(watched: Watched) -> None:
    watched.failed("a", "b", "c")
    watched.now += PERIOD_S
    watched.failed("d", "e")
    assert watched.rules_off() == frozenset()
    watched.failed("f")
    assert watched.left_s(rule_of("ann")) == 2 * PERIOD_S


def test_a_quarantine_ends_by_itself(watched: Watched) -> None:
    watched.failed("a", "b", "c")
    watched.now += PERIOD_S - 1
    assert watched.names == {*(key(one).name for one in "abc"), rule_of("ann")}
    watched.now += 1
    assert not watched.names
    assert not watched.quarantine.has_statement(A)
    assert watched.rules_off() == frozenset()


def test_a_relapse_is_quarantined_for_twice_as_long_up_to_a_day(watched: Watched) -> None:
    watched.failed("a")
    for times in (2, 4, 8):
        watched.now += watched.left_s()
        assert not watched.quarantine.has_statement(A)
        watched.failed("a")
        assert watched.left_s() == times * PERIOD_S
    for _ in range(20):
        watched.now += watched.left_s()
        watched.failed("a")
    assert watched.left_s() == PERIOD_MAX_S


def test_what_has_been_well_for_as_long_begins_anew(watched: Watched) -> None:
    watched.failed("a")
    watched.now += PERIOD_S
    watched.failed("a")
    watched.now += 2 * 2 * PERIOD_S
    watched.failed("a")
    assert watched.left_s() == PERIOD_S


def test_failures_of_what_was_under_way_do_not_lengthen_the_time(watched: Watched) -> None:
    watched.failed("a")
    watched.now += 10
    watched.failed("a")
    assert watched.left_s() == PERIOD_S - 10


@pytest.mark.parametrize("before", ["", "abc"])
def test_another_answer_puts_all_rules_of_the_statement_aside_until_a_restart(
    watched: Watched, before: str
) -> None:
    watched.failed(*before)
    watched.failed("d", rules=[INNER, EXISTS], cause=Cause.DIFFERENT)
    watched.now += 1e9
    assert watched.quarantine.rules_off() == {INNER, EXISTS}
    assert watched.left_s("inner_join") == math.inf


def test_an_entry_says_what_is_quarantined_and_why_and_for_how_long(watched: Watched) -> None:
    watched.failed("a", rules=[])
    watched.now += 10
    watched.failed("b", rules=[EXISTS], cause=Cause.DIFFERENT)
    entries = {entry.kind: entry for entry in watched.quarantine.current() if entry.name != key("b").name}
    assert set(entries) == {QuarantineKind.RULE, QuarantineKind.FINGERPRINT}
    found = entries[QuarantineKind.FINGERPRINT]
    assert (found.age_s, found.left_s) == (10, PERIOD_S - 10)
    assert found.sentence == (
        f"The fingerprint {key('a').name} is quarantined for another 590 s: "
        "a rewritten statement failed with it, and its original worked."
    )
    assert "until a restart" in entries[QuarantineKind.RULE].sentence
    watched.failed("c", "d", "e")
    (of_ann,) = (entry for entry in watched.quarantine.current() if entry.name == rule_of("ann"))
    assert of_ann.sentence == (
        f"The rule {rule_of('ann')} is quarantined for statements of one user for another 600 s: "
        "a rewritten statement failed with it, and its original worked."
    )


def test_the_log_says_once_what_is_quarantined_and_once_that_it_is_released(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    watched.failed("a", "a")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    watched.now += PERIOD_S
    for _ in range(3):
        watched.quarantine.rules_off()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_only_so_much_is_remembered(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quarantine_list, "KEPT_MAX", 3)
    watched.failed(*"01234", rules=[])
    assert watched.names == {key(one).name for one in "234"}


@pytest.mark.parametrize("end", list(OutcomeKind))
@pytest.mark.parametrize("message", ["went wrong", f"{FILTER_REFUSED[0]}, although we sent none"])
def test_only_a_statement_that_worked_as_it_came_teaches_that_the_rewrite_did_harm(
    watched: Watched, end: OutcomeKind, message: str
) -> None:
    assert not watched.learns(end, message).lowered_count
    assert watched.names == ({A.name} if end is OutcomeKind.RECOVERED else set())


@pytest.mark.parametrize("end", list(OutcomeKind))
@pytest.mark.parametrize("words", FILTER_REFUSED)
def test_a_filter_that_the_metastore_refused_is_shortened_for_its_table_and_nothing_else_is_blamed(
    watched: Watched, end: OutcomeKind, words: str
) -> None:
    message = f"Error running query: {words}: too complex" if end is not OutcomeKind.FINISHED else ""
    lowered = set(watched.learns(end, message, SALES).lowered(owner_of("ann")))
    assert lowered == ({SALES} if end in {OutcomeKind.RECOVERED, OutcomeKind.FAILED} else set())
    assert not watched.names
