"""Lessons that proxies share, in a real HBase of one process behind its Thrift gateway."""

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.clock import eventually
from support.hbase_server import HBase, hbase_or_skip
from support.shared_lessons import INNER, KEY, SharedLessons, SharedLessonsContract

from proxy.backends import circuit_breaker
from proxy.config.config import Config
from proxy.session.feedback.cost_gate import CostGate
from proxy.session.feedback.quarantine import Quarantine
from proxy.session.feedback.quarantine_list import Cause, QuarantineKind
from proxy.session.layout import hbase_lists, open_store
from proxy.session.layout.hbase_store import HBasePartitionStore, share_lessons
from proxy.session.shared_state import SharedState
from proxy.session.sharing import lesson_exchange
from proxy.session.sharing.lesson_exchange import LessonExchange


class Shared(SharedLessons):
    """A table in HBase."""

    def of_a_thread(self) -> tuple[Quarantine, HBasePartitionStore]:
        """What a proxy has quarantined, exchanged by its own thread, and its store."""
        store = self.replica().store
        shared = SharedState.of(Config(), store=store)
        assert isinstance(shared.gate, CostGate)
        share_lessons(store, LessonExchange(shared.quarantine, shared.gate).due)
        return shared.quarantine, store

    def rows(self) -> list[bytes]:
        return [row.key for row in self.table().scan(b"1Q", b"1S")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HBase]:
    with hbase_or_skip(tmp_path_factory.mktemp("hbase")) as server:
        yield server


@pytest.fixture
def shared(server: HBase, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shared]:
    for name, seconds in (("_EVERY_S", 0.2), ("_RECORDS_EVERY_S", 0.0), ("_REST_PART", 0.0)):
        monkeypatch.setattr(lesson_exchange, name, seconds)
    monkeypatch.setattr(open_store, "_LESSONS_LOOK_S", 0.1)
    monkeypatch.setattr(circuit_breaker, "OPEN_S", 0.5)
    with ExitStack() as stack:
        shared = Shared(str(server.gateway_endpoint), stack, request.node.name[:60])
        # A table takes seconds to be made, and then it is there.
        shared.table().create(hbase_lists.TABLE_TTL_S)
        yield shared


class TestOnHBase(SharedLessonsContract):
    """As in memory."""


def test_replicas_go_on_by_themselves_while_the_gateway_is_killed(shared: Shared, server: HBase) -> None:
    (one, one_store), (other, other_store) = shared.of_a_thread(), shared.of_a_thread()
    server.kill_gateway()
    try:
        one.blame(frozenset({INNER}), KEY, Cause.DIFFERENT)
        begun = time.monotonic()
        for _ in range(1_000):
            assert one.rules_off() == {INNER}
            assert not other.rules_off()
        assert time.monotonic() - begun < 30.0, "nobody waits for HBase"
        eventually(lambda: one_store.is_away and other_store.is_away)
    finally:
        server.start_gateway()
    eventually(lambda: other.rules_off() == {INNER})
    eventually(lambda: not one_store.is_away and not other_store.is_away)
    late, _ = shared.of_a_thread()
    eventually(lambda: late.rules_off() == {INNER} and late.has_statement(KEY))
    assert other.release(QuarantineKind.RULE, INNER.value)
    eventually(lambda: not one.rules_off() and not late.rules_off())
    assert one.has_statement(KEY)


def test_rows_are_gone_once_nobody_has_to_know_them(shared: Shared) -> None:
    one, _ = shared.of_a_thread()
    one.period_s = 3.0
    one.blame(frozenset({INNER}), KEY)
    eventually(lambda: bool(shared.rows()))
    eventually(lambda: not one.current())
    eventually(lambda: not shared.rows())
