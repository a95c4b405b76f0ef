"""Partition lists that proxies share by way of HBase: what each finds, and what happens while HBase is away.

The gateway is one in memory: test_hbase_store_on_hbase.py has a real one.
"""

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen

import pytest
from support.clock import Clock, eventually
from support.hbase_gateway import HELD_S_MAX, PATIENT_S, GatewayInMemory, allow_time, gateway_in_memory
from support.shared_lists import ANN, COLUMNS, OTHER, TYPES, Replica, SharedLists, SharedListsContract

from demo.hive import Endpoint, free_port
from demo.proxy_process import proxy_process
from proxy.backends import circuit_breaker
from proxy.config.rewriting import CatalogSection
from proxy.hbase import gateway_thread
from proxy.hbase.table import HBaseTable
from proxy.session.layout import hbase_store, shared_rows
from proxy.session.layout import open_store as open_store_module
from proxy.session.layout.hbase_store import HBasePartitionStore, close_store, is_hbase_away, share_lessons
from proxy.session.layout.open_store import open_store
from proxy.session.layout.partition_store import ListKey, StoreWait

DAYS = [f"k={day}/r={r}" for day in range(1, 31) for r in ("eu", "us")]
# More than that takes who waits for an answer that is held.
PROMPTLY_S = 30.0
# As long as a test takes.
LEFT_ALONE_S = 60.0
# Patience for an answer that does not come in time.
IMPATIENT_S = 0.05


class Shared(SharedLists):
    """A table in memory, and time that the test sets."""

    def __init__(self, gateway: GatewayInMemory, stack: ExitStack) -> None:
        self.gateway = gateway
        self.day = Clock(1_000.0)
        super().__init__(f"127.0.0.1:{gateway.port}", stack, clock=self.day, ttl_s=60.0)

    @property
    def is_loading(self) -> bool:
        return "scannerGetList" in self.gateway.calls


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shared]:
    # Each look is a question to HBase.
    monkeypatch.setattr(hbase_store, "_HEADER_BELIEVED_S", 0.0)
    monkeypatch.setattr(circuit_breaker, "OPEN_S", 0.2)
    monkeypatch.setattr(gateway_thread, "_IDLE_S", 0.3)
    allow_time(monkeypatch)
    with gateway_in_memory() as gateway, ExitStack() as stack:
        yield Shared(gateway, stack)


class TestInMemory(SharedListsContract):
    """As on a real one."""


def test_a_list_is_replaced_as_a_whole_in_all_replicas(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica()
    one.put(DAYS)
    other.finds(DAYS)
    other.put(DAYS[:7])
    one.finds(DAYS[:7])
    assert one.own_names() == DAYS[:7]


def test_an_equal_list_gets_new_times_and_no_new_rows(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica()
    one.put(DAYS)
    other.finds(DAYS)
    rows = set(shared.gateway.rows)
    shared.day.now += 61
    assert other.own_names() is None
    one.put(DAYS)
    assert set(shared.gateway.rows) == rows
    other.finds(DAYS)
    assert other.count("loaded") == 1, "what it had is believed again"


def test_a_list_that_is_being_written_while_its_table_is_written_is_not_published(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica()
    let_go = shared.gateway.hold("mutateRows")
    one.store.put(ANN, COLUMNS, TYPES, DAYS)
    eventually(lambda: "mutateRows" in shared.gateway.calls)
    shared.gateway.held.clear()
    other.store.forget({"sales"})
    # Lists to drop are looked for once the mark of the write is there.
    eventually(lambda: "scannerOpenWithScan" in shared.gateway.calls)
    let_go.set()
    eventually(lambda: one.count("unpublished") == 1)
    assert other.names() is None
    assert one.own_names() == DAYS, "as a list that was asked for when its table was written, within one proxy"


def test_an_older_list_does_not_take_the_place_of_a_newer_one(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica()
    shared.day.now += 30
    one.put(DAYS)
    shared.day.now -= 20
    assert other.store.put(ANN, COLUMNS, TYPES, DAYS[:3])
    eventually(lambda: other.count("unpublished") == 1)
    other.finds(DAYS)
    assert one.names() == DAYS


def test_a_list_that_a_statement_asked_for_meanwhile_stays_and_is_published(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica()
    one.put(DAYS)
    shared.day.now += 1
    let_go = shared.gateway.hold("scannerGetList")
    eventually(lambda: other.names_within(StoreWait(IMPATIENT_S)) is None and shared.is_loading)
    assert other.store.put(ANN, COLUMNS, TYPES, DAYS[:3])
    let_go.set()
    eventually(lambda: other.count("published") == 1)
    assert other.names() == DAYS[:3]
    one.finds(DAYS[:3])


def test_a_list_that_is_dropped_while_it_is_loaded_is_not_kept(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica()
    one.put(DAYS)
    let_go = shared.gateway.hold("scannerGetList")
    eventually(lambda: other.names_within(StoreWait(IMPATIENT_S)) is None and shared.is_loading)
    other.store.forget({"sales"})
    let_go.set()
    eventually(lambda: other.count("dropped") == 1)
    assert other.own_names() is None
    assert other.count("loaded") == 0


def test_a_list_expires_for_all_and_one_of_the_future_is_not_believed(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica()
    one.put(DAYS)
    shared.day.now += 61
    assert other.names() is None
    shared.day.now -= 200
    assert other.names() is None


def test_each_replica_believes_a_list_for_as_long_as_it_is_configured(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica(partitions_ttl_s=10.0)
    one.put(DAYS)
    other.finds(DAYS)
    shared.day.now += 11
    assert other.own_names() is None
    assert one.names() == DAYS


def test_a_list_longer_than_a_replica_keeps_is_not_loaded(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica(partitions_max=10)
    one.put(DAYS)
    assert other.names() is None
    assert other.count("invalid") == 1


@pytest.mark.parametrize("what", ["header", "entry", "lost", "foreign"])
def test_a_list_that_was_changed_in_hbase_is_not_used(
    shared: Shared, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = shared.replica(), shared.replica()
    one.put(DAYS)
    rows = shared.gateway.rows
    header = shared_rows.header_row(ANN)
    entry = next(row for row in sorted(rows) if row.startswith(b"1E"))
    if what == "header":
        rows[header][shared_rows.HEADER_COLUMN] = b"something else"
    elif what == "foreign":
        rows[shared_rows.header_row(OTHER)] = dict(rows.pop(header))
    else:
        cells = rows.pop(entry)
        if what == "entry":
            rows[entry + b"0"] = cells
    with caplog.at_level(logging.WARNING):
        assert other.names(OTHER if what == "foreign" else ANN) is None
        eventually(lambda: other.count("invalid") == 1)
    assert other.own_names() is None
    other.put(DAYS[:1])
    one.finds(DAYS[:1])


def test_a_gateway_that_is_slow_delays_a_statement_by_the_deadline_and_then_not_at_all(
    shared: Shared, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each of two statements that wait has to begin within the time of one read.
    monkeypatch.setattr(open_store_module, "_READ_S", 2.0)
    monkeypatch.setattr(circuit_breaker, "OPEN_S", LEFT_ALONE_S)
    one = shared.replica(deadline_s=IMPATIENT_S)
    one.put(DAYS)
    one.finds(DAYS)
    late = one.count("late")
    shared.gateway.hold()
    with caplog.at_level(logging.WARNING):
        waiting = sum(one.waits() for _ in range(100))
        eventually(lambda: not one.waits() and one.store.is_away)
    assert waiting <= circuit_breaker.FAILURES_MAX
    assert "left alone for now (reads): it answers too late for statements" in caplog.text
    assert one.count("late") - late >= 100


def test_a_statement_of_many_lists_waits_no_longer_than_one_of_one(shared: Shared) -> None:
    one = shared.replica()
    keys = [ListKey(("ann",), (f"t{number}",)) for number in range(20)]
    for key in keys:
        one.put(DAYS[:2], key)
    wait = StoreWait(PATIENT_S)
    assert one.names_within(wait, keys[0]) == DAYS[:2]
    assert one.count("found") == 1
    assert not wait.is_whole
    wait.waited(wait.left_s - IMPATIENT_S)
    shared.gateway.hold("getRows")
    begun = time.monotonic()
    assert [one.names_within(wait, key) for key in keys[1:]] == [DAYS[:2]] * 19, "from its own store"
    assert time.monotonic() - begun < PROMPTLY_S, "and no list has a time of its own"
    assert wait.left_s == 0.0
    assert one.count("late") == 19
    assert not one.store.is_away, "what is left for the second list says nothing of the gateway"


def test_the_headers_of_a_statements_lists_are_read_by_one_call(
    shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hbase_store, "_HEADER_BELIEVED_S", 60.0)
    one = shared.replica()
    keys = [ListKey(("ann",), (f"t{number}",)) for number in range(20)]
    for key in keys[1:]:
        one.put(DAYS[:2], key)
    asked = shared.gateway.calls.count("getRows")
    wait = StoreWait(PATIENT_S)
    one.store.ask_ahead(keys)
    assert [one.names_within(wait, key) for key in keys] == [None, *[DAYS[:2]] * 19]
    assert shared.gateway.calls.count("getRows") == asked + 1
    assert one.count("late") == 0


def test_a_scan_that_never_ends_is_given_up(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_store_module, "_PAGES_S", 0.5)
    one, other = shared.replica(), shared.replica()
    one.put(DAYS)
    shared.gateway.has_endless_scans = True
    assert other.names() is None
    other.store.forget({"sales"})
    eventually(lambda: other.store.is_away)
    shared.gateway.has_endless_scans = False
    eventually(lambda: other.count("dropped") == 1)
    one.finds(None)


def test_an_answer_that_hangs_is_waited_for_once_and_not_by_each_statement(shared: Shared) -> None:
    one = shared.replica(deadline_s=IMPATIENT_S)
    one.put(DAYS)
    shared.gateway.hold()
    assert sum(one.waits() for _ in range(4)) <= 1


def test_a_replica_whose_gateway_is_away_goes_on_alone_and_joins_the_others_later(
    shared: Shared, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    section = CatalogSection(store="hbase", store_gateway=f"127.0.0.1:{port}", store_deadline_s=PATIENT_S)
    with caplog.at_level(logging.INFO), open_store(section, shared.clock) as store:
        assert isinstance(store, HBasePartitionStore)
        alone = Replica(store)
        assert alone.names() is None
        for _ in range(5):
            assert alone.store.put(ANN, COLUMNS, TYPES, DAYS)
            assert alone.names() == DAYS
            time.sleep(0.05)
        alone.store.forget({"sales"})
        assert alone.names() is None
        eventually(lambda: alone.store.is_away)
        assert caplog.text.count("left alone for now") == 1
        with gateway_in_memory(port):
            eventually(lambda: alone.names() is None and not alone.store.is_away)
            alone.put(DAYS[:3])
        assert "answers again" in caplog.text


CUT = {"cut": 20, "nothing": 0}
GARBAGE = {
    "garbage": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    # The reply to another call, whole.
    "other": b"\x80\x01\x00\x02\x00\x00\x00\x05other\x00\x00\x00\x01\x00",
}


@pytest.mark.parametrize("call", ["getRows", "scannerOpenWithScan", "scannerGetList", "mutateRows", "createTable"])
@pytest.mark.parametrize("fault", [*GARBAGE, *CUT, "refused"])
def test_whatever_the_gateway_answers_each_replica_goes_on(shared: Shared, call: str, fault: str) -> None:
    one, other = shared.replica(), shared.replica()
    one.put(DAYS)
    gateway = shared.gateway
    if fault == "refused":
        gateway.refused[call] = "org.apache.hadoop.hbase.NotServingRegionException: sales\n at java"
    elif fault in CUT:
        gateway.cut_bytes[call] = CUT[fault]
    else:
        gateway.garbage[call] = GARBAGE[fault]
    for _ in range(4):
        assert other.names() in (None, DAYS)
        assert other.store.put(OTHER, COLUMNS, TYPES, DAYS[:5])
        assert other.own_names(OTHER) == DAYS[:5]
        other.store.forget({"third"})
    for faults in (gateway.garbage, gateway.cut_bytes, gateway.refused):
        faults.clear()
    other.finds(DAYS)
    assert one.names() == DAYS


def test_lists_of_a_table_that_could_not_be_dropped_are_not_used_until_they_are(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica()
    one.put(DAYS)
    other.finds(DAYS)
    shared.gateway.refused["mutateRows"] = "no region server"
    other.store.forget({"sales"})
    for _ in range(10):
        assert other.names() is None
    assert one.names() == DAYS, "it cannot know"
    shared.gateway.refused.clear()
    one.finds(None)
    eventually(lambda: other.count("dropped") == 1)


def test_no_statement_waits_where_many_ask_at_once(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit_breaker, "OPEN_S", LEFT_ALONE_S)
    one = shared.replica(deadline_s=IMPATIENT_S)
    shared.gateway.hold("getRows")
    waits = [one.waits(ListKey(("ann",), (f"t{number}",))) for number in range(200)]
    assert not any(waits[circuit_breaker.FAILURES_MAX :])


def test_a_header_that_was_read_is_believed_for_a_second(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    one = shared.replica()
    monkeypatch.setattr(hbase_store, "_HEADER_BELIEVED_S", 60.0)
    one.put(DAYS)
    assert one.names() == DAYS
    asked = shared.gateway.calls.count("getRows")
    for _ in range(50):
        assert one.names() == DAYS
    assert shared.gateway.calls.count("getRows") == asked


def test_a_store_that_is_closed_while_it_works_ends(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_thread, "_CLOSE_S", LEFT_ALONE_S)
    one = shared.replica()
    shared.gateway.hold()
    calls = len(shared.gateway.calls)
    assert one.store.put(ANN, COLUMNS, TYPES, DAYS)
    eventually(lambda: len(shared.gateway.calls) > calls)
    begun = time.monotonic()
    one.store.close()
    shared.stack.close()
    assert time.monotonic() - begun < PROMPTLY_S, "the call is cut off"


def test_a_store_whose_gateway_does_not_take_connections_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_thread, "_CLOSE_S", 3.0)
    monkeypatch.setattr(open_store_module, "_WORK_S", HELD_S_MAX)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as stack:
        where = full.getsockname()
        # The queue of connections that nobody accepts takes one or two.
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0)
            _ = waiting.connect_ex(where)
        section = CatalogSection(
            store="hbase", store_gateway=f"127.0.0.1:{where[1]}", store_path=str(tmp_path / "store")
        )
        store = stack.enter_context(open_store(section))
        time.sleep(0.2)
        begun = time.monotonic()
        close_store(store)
        took_s = time.monotonic() - begun
        assert took_s < PROMPTLY_S, "a connection has much longer to be made"
        begun = time.monotonic()
    assert time.monotonic() - begun < took_s / 2, "nobody waits for it again"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_proxy_serves_and_says_so_where_its_gateway_is_away(tmp_path: Path, workers: int) -> None:
    nobody, away = (Endpoint("127.0.0.1", free_port()) for _ in range(2))
    settings = ("catalog.store=hbase", f"catalog.store_gateway={away}", f"proxy.workers={workers}")
    options = tuple(option for setting in settings for option in ("--set", setting))
    with proxy_process(nobody, tmp_path, options=options) as proxy:
        with urlopen(f"{proxy.admin_url}/metrics", timeout=60) as answer:
            metrics = answer.read().decode()
        assert "starpruner_shared_lists_away" in metrics
        assert 'starpruner_shared_lists_total{result="found"} 0.0' in metrics


def test_a_proxy_makes_the_table_and_stops_although_its_gateway_hangs(tmp_path: Path) -> None:
    with gateway_in_memory() as gateway:
        options = ("--set", "catalog.store=hbase", "--set", f"catalog.store_gateway=127.0.0.1:{gateway.port}")
        with proxy_process(Endpoint("127.0.0.1", free_port()), tmp_path, options=options):
            eventually(lambda: gateway.has_table)
            gateway.hold()
            asked = len(gateway.calls)
            eventually(lambda: len(gateway.calls) > asked)
            begun = time.monotonic()
        assert time.monotonic() - begun < HELD_S_MAX / 2


def test_lessons_are_exchanged_once_there_is_a_table_without_any_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    exchanged: list[HBaseTable] = []
    section = CatalogSection(
        store="hbase",
        store_gateway=f"127.0.0.1:{port}",
        store_path=str(tmp_path / "store"),
        store_deadline_s=0.005,
    )
    monkeypatch.setattr(circuit_breaker, "OPEN_S", 0.2)
    monkeypatch.setattr(open_store_module, "_LESSONS_LOOK_S", 0.1)
    with ExitStack() as stack:
        store = stack.enter_context(open_store(section))
        share_lessons(store, lambda: exchanged.append)
        eventually(lambda: is_hbase_away(store))
        assert not exchanged
        stack.enter_context(gateway_in_memory(port))
        eventually(lambda: bool(exchanged))
        close_store(store)
