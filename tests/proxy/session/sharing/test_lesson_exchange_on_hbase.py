"""Lessons that proxies share, in a real HBase of one process behind its Thrift gateway."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from support.hbase_server import HBase, hbase
from support.maven import ClientMissingError, is_required

from demo.java import find_java
from proxy.backends import circuit_breaker
from proxy.config.config import Config
from proxy.config.rewriting import CatalogSection
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.session.feedback.cost_gate import CostGate, Fact, Run, StatementKey, Way
from proxy.session.feedback.quarantine_list import Cause, QuarantineKind
from proxy.session.feedback.spark_listings import SessionListings
from proxy.session.layout import hbase_lists, open_store
from proxy.session.layout.hbase_store import HBasePartitionStore, share_lessons
from proxy.session.shared_state import SharedState
from proxy.session.sharing import lesson_exchange
from proxy.session.sharing.lesson_exchange import LessonExchange
from rewriter import Rule

BACKGROUND_S = 120.0
INNER = Rule.INNER_JOIN
KEY = StatementKey("ann", "fingerprint")


@dataclass
class Replica:
    """One proxy's lessons, exchanged by its own thread."""

    store: HBasePartitionStore
    shared: SharedState
    listings: SessionListings

    def runs(self, way: Way, seconds: float) -> None:
        overhead_s = 0.2 if way is Way.REWRITTEN else 0.0
        run = Run(KEY, way, self.listings, overhead_s, (Fact("sales", partitions=200),))
        self.shared.gate.ended(run, Outcome(OutcomeKind.FINISHED, seconds))

    @property
    def sentence(self) -> str:
        return self.shared.gate.report(KEY, self.listings).sentence


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + BACKGROUND_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@dataclass
class Shared:
    server: HBase
    stack: ExitStack
    name: str

    def replica(self) -> Replica:
        section = CatalogSection(
            store="hbase", store_gateway=str(self.server.gateway_endpoint), store_table=self.name
        )
        store = self.stack.enter_context(open_store.open_store(section))
        assert isinstance(store, HBasePartitionStore)
        shared = SharedState.of(Config(catalog=section), store=store)
        assert isinstance(shared.gate, CostGate)
        share_lessons(store, LessonExchange(shared.quarantine, shared.gate).due)
        return Replica(store, shared, SessionListings(shared.clock))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HBase]:
    with ExitStack() as stack:
        try:
            server = stack.enter_context(hbase(find_java(), tmp_path_factory.mktemp("hbase")))
        except ClientMissingError as error:
            if is_required():
                raise
            pytest.skip(str(error))
        yield server


@pytest.fixture
def shared(server: HBase, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shared]:
    for name, seconds in (("_EVERY_S", 0.2), ("_RECORDS_EVERY_S", 0.5), ("_REST_PART", 0.0)):
        monkeypatch.setattr(lesson_exchange, name, seconds)
    monkeypatch.setattr(open_store, "_LESSONS_LOOK_S", 0.1)
    monkeypatch.setattr(circuit_breaker, "OPEN_S", 0.5)
    with ExitStack() as stack:
        shared = Shared(server, stack, request.node.name[:60])
        table = server.table(shared.name)
        stack.callback(table.close)
        # A table takes seconds to be made, and then it is there.
        table.create(hbase_lists.TABLE_TTL_S)
        yield shared


def test_a_fault_that_one_replica_saw_stops_the_rule_on_the_other_until_it_is_released(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica()
    one.shared.quarantine.blame(frozenset({INNER}), KEY, Cause.DIFFERENT)
    eventually(lambda: other.shared.quarantine.rules_off() == {INNER})
    eventually(lambda: other.shared.quarantine.has_statement(KEY))
    late = shared.replica()
    eventually(lambda: late.shared.quarantine.rules_off() == {INNER})
    assert other.shared.quarantine.release(QuarantineKind.RULE, INNER.value)
    eventually(lambda: not one.shared.quarantine.rules_off() and not late.shared.quarantine.rules_off())
    assert one.shared.quarantine.has_statement(KEY)


def test_what_one_replica_has_measured_the_other_knows(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica()
    for _ in range(3):
        one.runs(Way.REWRITTEN, 2.0)
        one.listings.tables_listed(frozenset({"sales"}))
        one.runs(Way.ORIGINAL, 0.1)
    eventually(lambda: "3 times as the original" in other.sentence)
    assert "3 times rewritten" in other.sentence
    other.listings.tables_listed(frozenset({"sales"}))
    assert other.shared.gate.decide(KEY, other.listings).leaves


def test_replicas_go_on_by_themselves_while_the_gateway_is_killed(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica()
    shared.server.kill_gateway()
    try:
        one.shared.quarantine.blame(frozenset({INNER}), KEY, Cause.DIFFERENT)
        begun = time.monotonic()
        for _ in range(1_000):
            assert one.shared.quarantine.rules_off() == {INNER}
            assert not other.shared.quarantine.rules_off()
        assert time.monotonic() - begun < 30.0, "nobody waits for HBase"
        eventually(lambda: one.store.is_away and other.store.is_away)
    finally:
        shared.server.start_gateway()
    eventually(lambda: other.shared.quarantine.rules_off() == {INNER})
    eventually(lambda: not one.store.is_away and not other.store.is_away)


def test_rows_are_gone_once_nobody_has_to_know_them(shared: Shared) -> None:
    one = shared.replica()
    one.shared.quarantine.period_s = 3.0
    one.shared.quarantine.blame(frozenset({INNER}), KEY)
    eventually(lambda: bool(rows(shared)))
    eventually(lambda: not one.shared.quarantine.current())
    eventually(lambda: not rows(shared))


def rows(shared: Shared) -> list[bytes]:
    table = shared.server.table(shared.name)
    try:
        return [row.key for row in table.scan(b"1Q", b"1S")]
    finally:
        table.close()
