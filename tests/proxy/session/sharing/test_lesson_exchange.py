"""Lessons that proxies share by way of HBase: each knows what another one has learned, and goes on without it.

The gateway is one in memory: test_lesson_exchange_on_hbase.py has a real one.
"""

import dataclasses
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clock import Clock
from support.hbase_gateway import GatewayInMemory, gateway_in_memory
from support.shared_lessons import INNER, PERIOD_S, SharedLessons, SharedLessonsContract, exchange, key

from proxy.hbase.calls import Cell, Row
from proxy.hbase.errors import HBaseError
from proxy.hbase.table import HBaseTable
from proxy.session.feedback import quarantine_list
from proxy.session.feedback.cost_gate import PRIVATE_SCOPE, StatementKey, Way, owner_of
from proxy.session.feedback.cost_model import RunRecord
from proxy.session.feedback.quarantine_list import LEASE_S, Blamed, Cause, QuarantineKind, SharedEntry
from proxy.session.sharing import lesson_exchange, lesson_rows
from rewriter import Rule


class SlowTable(HBaseTable):
    """Each scan of the rows of a prefix takes so long."""

    def __init__(self, day: Clock, table: HBaseTable, scan_s: float, of: bytes = b"1") -> None:
        self._day = day
        self._inner = table
        self._scan_s = scan_s
        self._of = of

    def scan(
        self, start: bytes, stop: bytes, *, filter_text: bytes = b"", page_rows: int = 1_000
    ) -> Generator[Row]:
        if start.startswith(self._of):
            self._day.now += self._scan_s
        return self._inner.scan(start, stop, filter_text=filter_text, page_rows=page_rows)

    def put(self, cells: Iterator[Cell], ttl_s: float) -> None:
        self._inner.put(cells, ttl_s)


@dataclass
class Shared(SharedLessons):
    """A table in memory."""

    gateway: GatewayInMemory = field(default_factory=GatewayInMemory)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shared]:
    monkeypatch.setattr(lesson_exchange, "_RECORDS_EVERY_S", 0.0)
    with gateway_in_memory() as gateway, ExitStack() as stack:
        yield Shared(f"127.0.0.1:{gateway.port}", stack, gateway=gateway)


class TestInMemory(SharedLessonsContract):
    """As on a real one."""


# --- the quarantine


def test_failures_of_one_rule_at_several_replicas_count_together(shared: Shared) -> None:
    replicas = [shared.learner() for _ in range(3)]
    for replica, fingerprint in zip(replicas, "abc", strict=True):
        replica.failed(fingerprint)
    exchange(*replicas, *replicas)
    assert all(replica.quarantine.rules_off() == {INNER} for replica in replicas)


def test_a_user_s_failures_at_several_replicas_count_for_that_user_alone_until_another_has_seen_the_same(
    shared: Shared,
) -> None:
    replicas = [shared.learner() for _ in range(3)]
    ann, bob, eve = map(owner_of, ("ann", "bob", "eve"))
    for replica, fingerprint in zip(replicas, "abc", strict=True):
        replica.quarantine.blame(frozenset({INNER}), StatementKey(f"session {fingerprint}", fingerprint, ann))
    exchange(*replicas, *replicas)
    for replica in replicas:
        assert replica.quarantine.rules_off(ann) == {INNER}
        assert not replica.quarantine.rules_off(bob)
    for fingerprint in "abc":
        replicas[0].quarantine.blame(frozenset({INNER}), StatementKey("another", fingerprint, bob))
    exchange(*replicas, *replicas)
    assert all(replica.quarantine.rules_off(eve) == {INNER} for replica in replicas)
    assert replicas[1].quarantine.release(QuarantineKind.RULE, INNER.value)
    shared.after(1.0, *replicas, *replicas)
    assert not any(replica.quarantine.rules_off(owner) for replica in replicas for owner in (ann, bob, eve))


def test_failures_of_one_fingerprint_by_several_users_are_still_one(shared: Shared) -> None:
    one, other = shared.learner(), shared.learner()
    for number in range(4):
        (one if number % 2 else other).failed("a", user=f"user{number}")
    exchange(one, other, one)
    assert not one.quarantine.rules_off()
    assert len(one.names) == len(other.names) == 4


def test_a_different_answer_quarantines_for_as_long_as_the_replica_runs_that_saw_it(shared: Shared) -> None:
    one, other = shared.learner(), shared.learner()
    one.failed("a", cause=Cause.DIFFERENT)
    for _ in range(6):
        shared.after(LEASE_S / 2, one, other)
        assert one.left_s(INNER.value) == inf
        assert other.quarantine.rules_off() == {INNER}
        assert other.left_s(INNER.value) >= LEASE_S / 2 - 1
    one.restart()
    exchange(one)
    assert one.quarantine.rules_off() == {INNER}, "the others tell it"
    shared.after(LEASE_S, one, other)
    assert not one.quarantine.rules_off() | other.quarantine.rules_off()


@pytest.mark.parametrize("skew_s", [-45.0, 45.0])
def test_a_release_counts_where_clocks_differ(shared: Shared, skew_s: float) -> None:
    one, other = shared.learner(), shared.learner(skew_s=skew_s)
    one.failed("a")
    exchange(one, other)
    name = key("a").name
    assert other.quarantine.release(QuarantineKind.FINGERPRINT, name)
    exchange(other, one, other)
    assert not one.names | other.names
    one.failed("a")
    exchange(one, other)
    assert one.names == other.names == {name}, "harm that was done later"


def test_a_release_counts_where_a_clock_was_set(shared: Shared) -> None:
    one, other = shared.learner(), shared.learner()
    one.failed("a")
    exchange(one, other)
    other.skew_s = -20.0
    assert other.quarantine.release(QuarantineKind.FINGERPRINT, key("a").name)
    for skew_s in (-19.9, 0.0, 30.0, -30.0):
        other.skew_s = one.skew_s = skew_s
        exchange(other, one)
        assert not one.names | other.names
    writes = shared.gateway.calls.count("mutateRows")
    exchange(other, one)
    assert shared.gateway.calls.count("mutateRows") == writes, "all is told"


def test_an_entry_of_a_clock_that_is_far_ahead_is_not_believed_unless_an_answer_differed(shared: Shared) -> None:
    one, other = shared.learner(skew_s=3_600.0), shared.learner()
    one.failed("a")
    exchange(one, other)
    assert not other.names
    one.failed("b", cause=Cause.DIFFERENT)
    exchange(one, other)
    assert other.quarantine.rules_off() == {INNER}
    assert one.quarantine.release(QuarantineKind.RULE, INNER.value)
    exchange(one, other)
    assert other.quarantine.rules_off() == {INNER}, "its release neither"


def test_a_released_rule_stays_released_where_a_replica_starts_soon_after(shared: Shared) -> None:
    one = shared.learner()
    one.failed("a", "b", "c")
    exchange(one)
    shared.after(30.0)
    assert one.quarantine.release(QuarantineKind.RULE, INNER.value)
    exchange(one)
    shared.after(3.0)
    new = shared.learner()
    exchange(new, one)
    assert not new.quarantine.rules_off()
    assert not one.quarantine.rules_off()
    assert len(new.names) == 3
    new.failed("d")
    assert not new.quarantine.rules_off(), "failures of before the release do not count"


def test_a_rule_that_failed_widely_by_rows_is_off_as_long_as_where_it_failed(shared: Shared) -> None:
    one, other = shared.learner(), shared.learner()
    one.failed("a", "b")
    shared.day.now += 10.0
    one.failed("c")
    left_s = one.left_s(INNER.value) - 100.0
    exchange(one)
    for row in [row for row in shared.gateway.rows if row.startswith(b"1Qr")]:
        del shared.gateway.rows[row]
    shared.after(100.0, other)
    assert other.left_s(INNER.value) == pytest.approx(left_s)


def test_a_release_of_a_failure_ends_no_wrong_answer(shared: Shared) -> None:
    one, other, third = (shared.learner() for _ in range(3))
    one.failed("a", "b", "c")
    exchange(one)
    other.failed("z", cause=Cause.DIFFERENT)
    shared.after(3.0, other)
    assert one.quarantine.release(QuarantineKind.RULE, INNER.value), "it has not heard of the answer"
    exchange(one, other, one, third)
    for replica in (one, other, third):
        assert replica.quarantine.rules_off() == {INNER}
    assert one.quarantine.release(QuarantineKind.RULE, INNER.value)
    exchange(one, other, third, one, other, third)
    for replica in (one, other, third):
        assert not replica.quarantine.rules_off()


@pytest.mark.parametrize("cause", list(Cause))
def test_harm_that_others_have_not_heard_of_outlives_a_release(shared: Shared, cause: Cause) -> None:
    one, other = shared.learner(), shared.learner(skew_s=-30.0)
    exchange(other)
    one.failed("a", cause=Cause.DIFFERENT)
    exchange(one)
    shared.after(1.0)
    other.failed("x", "y", "z", cause=cause)
    shared.day.now += 3_600.0 if cause is Cause.DIFFERENT else 10.0
    assert one.quarantine.release(QuarantineKind.RULE, INNER.value)
    exchange(one, other, one)
    assert one.quarantine.rules_off() == other.quarantine.rules_off() == {INNER}
    assert one.quarantine.release(QuarantineKind.RULE, INNER.value), "known by now"
    exchange(one, other, one)
    assert not one.quarantine.rules_off() | other.quarantine.rules_off()


def test_harm_that_could_not_be_told_outlives_a_release(shared: Shared) -> None:
    one, other = shared.learner(), shared.learner()
    one.failed("a", "b", "c")
    exchange(one)
    other.failed("d", "e", "f")
    shared.gateway.refused["mutateRows"] = "no region server"
    shared.day.now += 1.0
    with pytest.raises(HBaseError):
        other.exchange()
    shared.gateway.refused.clear()
    assert one.quarantine.release(QuarantineKind.FINGERPRINT, key("a").name)
    exchange(one, other)
    assert other.names == {INNER.value, *(key(one).name for one in "bcdef")}


def test_failures_of_before_a_release_do_not_count_at_other_replicas(shared: Shared) -> None:
    one, other = shared.learner(), shared.learner()
    other.failed("x", "y")
    one.failed("a", cause=Cause.DIFFERENT)
    exchange(one, other, one)
    shared.after(5.0)
    assert one.quarantine.release(QuarantineKind.RULE, INNER.value)
    exchange(one)
    shared.after(3.0, other, one)
    other.failed("n")
    assert not other.quarantine.rules_off()
    other.failed("o", "p")
    assert other.quarantine.rules_off() == {INNER}


def test_a_release_that_is_seen_again_leaves_the_past_of_a_later_quarantine(shared: Shared) -> None:
    one = shared.learner()
    one.failed("a")
    exchange(one)
    assert one.quarantine.release(QuarantineKind.FINGERPRINT, key("a").name)
    exchange(one)
    released = dict(shared.gateway.rows)
    shared.day.now += 100.0
    one.failed("a")
    shared.after(PERIOD_S, one)
    # HBase keeps the older cell, whose time to live is longer.
    shared.gateway.rows.update(released)
    exchange(one)
    one.failed("a")
    assert one.left_s(key("a").name) == 2 * PERIOD_S


def test_what_is_quarantined_here_is_not_pushed_out_by_what_others_tell(
    shared: Shared, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = shared.learner(), shared.learner()
    one.failed(*"abcdef")
    exchange(one)
    monkeypatch.setattr(quarantine_list, "KEPT_MAX", 3)
    other.failed("x")
    caplog.clear()
    exchange(other)
    assert other.quarantine.has_statement(key("x"))
    assert len(other.names) == 4
    assert len([record for record in caplog.records if "as other replicas say" in record.message]) == 1


def test_fingerprints_that_nobody_reads_are_not_told_again_and_again(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lesson_exchange, "KEPT_MAX", 3)
    one = shared.learner()
    one.failed(*"abcdef")
    exchange(one, one)
    writes = shared.gateway.calls.count("mutateRows")
    exchange(one)
    assert shared.gateway.calls.count("mutateRows") == writes
    late = shared.learner()
    exchange(late)
    assert late.quarantine.rules_off() == {INNER}, "rules are read first"


def test_a_relapse_after_another_replicas_quarantine_takes_twice_as_long(shared: Shared) -> None:
    one, other = shared.learner(), shared.learner()
    one.failed("a")
    exchange(one, other)
    shared.after(PERIOD_S)
    assert not other.names
    other.failed("a")
    assert other.left_s(key("a").name) == 2 * PERIOD_S


def test_without_hbase_each_replica_goes_on_by_itself_and_tells_the_others_later(shared: Shared) -> None:
    one, other = shared.learner(), shared.learner()
    for call in ("scannerOpenWithScan", "mutateRows"):
        shared.gateway.refused[call] = "no region server"
    one.failed("a", "b", "c")
    one.runs(Way.REWRITTEN, 1.0, 3)
    for replica in (one, other):
        with pytest.raises(HBaseError):
            replica.exchange()
    assert one.quarantine.rules_off() == {INNER}
    assert not other.names
    del shared.gateway.refused["scannerOpenWithScan"]
    with pytest.raises(HBaseError):
        one.exchange()
    shared.gateway.refused.clear()
    exchange(one, other)
    assert other.quarantine.rules_off() == {INNER}
    assert "3 times rewritten" in other.gate.report(key("a"), other.listings).sentence


def test_rows_that_no_replica_has_written_are_passed_by(shared: Shared) -> None:
    one, other = shared.learner(), shared.learner()
    one.failed("a", "b", "c")
    one.runs(Way.REWRITTEN, 1.0, 3)
    exchange(one)
    rows = shared.gateway.rows
    for row in list(rows):
        for column, value in list(rows[row].items()):
            # One that was copied to another row, one that was cut, and one of another column.
            rows[row + b"0"] = {column: value}
            rows[row + b"1"] = {column: value[:-1]}
            rows[row + b"2"] = {b"l:x": value}
            rows[row][column] = value[:20] + b"?" + value[21:]
    exchange(other)
    assert not other.names
    assert other.counts == {"told": 0, "learned": 0, "invalid": 4 * len(one.names) + 4}
    assert "not seen before" in other.gate.report(key("a"), other.listings).sentence
    exchange(one, other)
    assert other.quarantine.rules_off() == {INNER}, "it is written again"


@given(
    cause=st.sampled_from(Cause),
    is_release=st.booleans(),
    at=st.floats(0.0, 1e6),
    lasts_s=st.floats(0.0, 1e5) | st.just(inf),
    rules=st.frozensets(st.sampled_from(Rule)),
)
def test_an_entry_is_read_as_it_was_written(
    cause: Cause, *, is_release: bool, at: float, lasts_s: float, rules: frozenset[Rule]
) -> None:
    until = 0.0 if is_release else at + lasts_s
    entry = SharedEntry(
        QuarantineKind.FINGERPRINT, "0123", cause, at, until, 0.0, Blamed(rules, "fff"), is_release
    )
    value = lesson_rows.quarantine_value(entry, at, 100.0)
    read = lesson_rows.read_quarantine(lesson_rows.quarantine_row(entry), value, at, 100.0)
    assert read is not None
    assert read.until == pytest.approx(min(until, at + LEASE_S), abs=1e-3)
    assert dataclasses.replace(read, until=until) == entry


# --- runs of statements


def test_a_way_that_was_not_seen_here_is_known_from_another_replica(shared: Shared) -> None:
    one, other = shared.learner(), shared.learner()
    one.listings.tables_listed(frozenset({"sales"}))
    one.runs(Way.ORIGINAL, 0.1, 2)
    other.listings.tables_listed(frozenset({"sales"}))
    other.runs(Way.REWRITTEN, 2.0, 2)
    exchange(one, other, one)
    for replica in (one, other):
        report = replica.gate.report(key("a"), replica.listings)
        assert "2 times rewritten" in report.sentence
        assert "2 times as the original" in report.sentence
    other.runs(Way.REWRITTEN, 4.0, 5)
    assert "7 times rewritten in 4.20 s" in other.gate.report(key("a"), other.listings).sentence
    exchange(other, one)
    one.runs(Way.REWRITTEN, 2.0)
    assert "8 times rewritten" in one.gate.report(key("a"), one.listings).sentence


def test_a_trial_is_paid_by_a_replicas_own_runs(shared: Shared) -> None:
    one, other = shared.learner(), shared.learner()
    one.runs(Way.REWRITTEN, 0.2, 2)
    assert one.gate.report(key("a"), one.listings).is_trial
    exchange(one, other)
    assert not other.gate.report(key("a"), other.listings).is_trial


def test_a_statement_that_ran_once_and_one_of_a_private_session_are_not_told(shared: Shared) -> None:
    one = shared.learner()
    one.runs(Way.REWRITTEN, 1.0)
    one.runs(Way.REWRITTEN, 1.0, 5, StatementKey(PRIVATE_SCOPE + "x", "a"))
    exchange(one)
    assert not shared.gateway.rows


def test_a_record_that_a_replica_cannot_have_written_is_not_used() -> None:
    sound = RunRecord(rewritten=(1.0, inf), overheads=(0.1, 0.2), rewritten_count=2, planned_at=7.0)
    row = lesson_rows.record_row("0123")
    read = lesson_rows.read_record(row, lesson_rows.record_value("0123", sound, 100.0), 50.0, 100.0)
    assert read == ("0123", sound)
    for broken in (
        {"overheads": ()},
        {"overheads": (0.1, inf)},
        {"overheads": (0.1, 1e300)},
        {"rewritten": (1.0, 1e5)},
        {"originals": (1e5,)},
        {"rewritten": (1.0, float("nan"))},
        {"rewritten": (1.0,) * 4, "overheads": (1.0,) * 4},
        {"originals": (-1.0,)},
        {"cold_s": float("nan")},
        {"gained_s": inf},
        {"rewritten_count": -1},
        {"planned_at": float("nan")},
    ):
        value = lesson_rows.record_value("0123", dataclasses.replace(sound, **broken), 100.0)
        assert lesson_rows.read_record(row, value, 50.0, 100.0) is None, broken


def test_an_exchange_takes_a_twentieth_of_the_time_at_most(shared: Shared) -> None:
    one = shared.learner()
    assert one.is_due()
    one.exchange()
    assert not one.is_due()
    shared.day.now += 3.0
    assert one.is_due()
    one.table = SlowTable(shared.day, one.table, 0.5)
    one.exchange()
    shared.day.now += 18.0
    assert not one.is_due(), "two scans of 0.5 s, and one of the runs"
    shared.day.now += 2.0
    assert one.is_due()


def test_a_slow_read_of_runs_puts_the_next_look_at_the_quarantine_off_by_its_own_time_alone(
    shared: Shared,
) -> None:
    one = shared.learner()
    one.table = SlowTable(shared.day, one.table, 20.0, of=lesson_rows.ALL_RECORDS.start)
    one.exchange()
    assert one.is_due()
    begun = shared.day.now
    one.exchange()
    assert shared.day.now == begun, "runs are read less often"


def test_a_slow_look_at_the_quarantine_puts_the_next_one_off_by_half_a_minute_at_most(shared: Shared) -> None:
    one = shared.learner()
    one.table = SlowTable(shared.day, one.table, 9.0, of=lesson_rows.ALL_RULES.start)
    one.exchange()
    assert not one.is_due()
    shared.day.now += 30.0
    assert one.is_due()
