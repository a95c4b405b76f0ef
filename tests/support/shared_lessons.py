"""Replicas that share lessons by way of HBase, and what any gateway has to do for them, real or not."""

from dataclasses import dataclass, field

import pytest

from proxy.hbase.table import HBaseTable
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.session.feedback.cost_gate import CostGate, Fact, Run, StatementKey, Way
from proxy.session.feedback.quarantine import Quarantine
from proxy.session.feedback.quarantine_list import Cause, QuarantineKind
from proxy.session.feedback.spark_listings import SessionListings
from proxy.session.sharing.lesson_exchange import LessonExchange
from rewriter import Rule
from support.clock import Clock
from support.shared_lists import SharedLists

PERIOD_S = 600.0
INNER = Rule.INNER_JOIN
SALES = Fact("sales", partitions=200)


def key(fingerprint: str, user: str = "ann") -> StatementKey:
    return StatementKey(user, fingerprint)


KEY = key("a")


@dataclass
class Replica:
    """One proxy's lessons. Its own clock began at another time than that of the others."""

    day: Clock
    table: HBaseTable
    began_at: float
    # Seconds by which its time of day differs.
    skew_s: float = 0.0
    quarantine: Quarantine = field(init=False)
    gate: CostGate = field(init=False)
    listings: SessionListings = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.quarantine = Quarantine(PERIOD_S, self.steady, self.time_of_day)
        self.gate = CostGate(self.steady)
        self.listings = SessionListings(self.steady)
        self._exchange = LessonExchange(self.quarantine, self.gate, self.steady, self.time_of_day)

    def time_of_day(self) -> float:
        return self.day.now + self.skew_s

    def steady(self) -> float:
        return self.day.now - self.began_at

    def exchange(self) -> None:
        self._exchange.exchange(self.table)

    def failed(self, *fingerprints: str, cause: Cause = Cause.FAILED, user: str = "ann") -> None:
        for fingerprint in fingerprints:
            self.quarantine.blame(frozenset({INNER}), key(fingerprint, user), cause)

    def runs(self, way: Way, seconds: float, times: int = 1, subject: StatementKey = KEY) -> None:
        for _ in range(times):
            run = Run(subject, way, self.listings, 0.2 if way is Way.REWRITTEN else 0.0, (SALES,))
            self.gate.ended(run, Outcome(OutcomeKind.FINISHED, seconds))

    @property
    def counts(self) -> dict[str, float]:
        return dict(self._exchange.results())

    def is_due(self) -> bool:
        return self._exchange.due() is not None

    @property
    def names(self) -> set[str]:
        return {entry.name for entry in self.quarantine.current()}

    def left_s(self, name: str) -> float:
        return next(entry.left_s for entry in self.quarantine.current() if entry.name == name)


@dataclass
class SharedLessons(SharedLists):
    """A table behind a gateway, and those who share it. They are given the time of day by the test."""

    day: Clock = field(default_factory=lambda: Clock(1_000_000.0))
    replicas: int = 0

    def learner(self, *, skew_s: float = 0.0) -> Replica:
        self.replicas += 1
        return Replica(self.day, self.table(), began_at=self.day.now - 50.0 - self.replicas, skew_s=skew_s)

    def after(self, seconds: float, *replicas: Replica) -> None:
        self.day.now += seconds
        exchange(*replicas)


def exchange(*replicas: Replica) -> None:
    for replica in replicas:
        replica.exchange()


class SharedLessonsContract:
    """The tests of a gateway. Each needs a fixture `shared`."""

    def test_a_fault_at_one_replica_stops_the_fingerprint_and_the_rule_on_all(self, shared: SharedLessons) -> None:
        one, other = shared.learner(), shared.learner()
        one.failed("a", "b", "c")
        exchange(one, other)
        assert one.quarantine.rules_off() == other.quarantine.rules_off() == {INNER}
        assert all(other.quarantine.has_statement(key(fingerprint)) for fingerprint in "abc")
        assert not other.quarantine.has_statement(key("a", "bob"))
        assert not other.quarantine.has_statement(key("d"))
        assert other.left_s(INNER.value) == pytest.approx(PERIOD_S)
        shared.after(PERIOD_S, one, other)
        assert not one.names
        assert not other.names

    def test_an_administrators_release_reaches_the_others(self, shared: SharedLessons) -> None:
        one, other, third = (shared.learner() for _ in range(3))
        one.failed("a", cause=Cause.DIFFERENT)
        exchange(one, other, third)
        assert other.quarantine.release(QuarantineKind.RULE, INNER.value)
        assert not other.quarantine.release(QuarantineKind.RULE, INNER.value), "it is not quarantined any more"
        exchange(other, one, third)
        for replica in (one, other, third):
            assert not replica.quarantine.rules_off()
            assert replica.quarantine.has_statement(key("a")), "that was not released"
        shared.after(60.0, one, other, third)
        assert not one.quarantine.rules_off()
        one.failed("b", cause=Cause.DIFFERENT)
        exchange(one, third)
        assert third.quarantine.rules_off() == {INNER}, "harm that was done later"

    def test_what_one_replica_has_measured_another_one_knows(self, shared: SharedLessons) -> None:
        one, other = shared.learner(), shared.learner()
        one.listings.tables_listed(frozenset({"sales"}))
        one.runs(Way.REWRITTEN, 2.0, 3)
        one.runs(Way.ORIGINAL, 0.1, 3)
        assert one.gate.decide(key("a"), one.listings).leaves
        exchange(one, other)
        other.listings.tables_listed(frozenset({"sales"}))
        report = other.gate.decide(key("a"), other.listings)
        assert report.leaves
        assert "3 times rewritten in 2.20 s" in report.sentence
        assert "3 times as the original in 0.10 s" in report.sentence
        assert not other.gate.decide(key("a", "bob"), other.listings).leaves, "nobody learns what others run"
