"""Filters answered by scans of HBase at a replica that does not hold the list, and what makes it answer as before.

The gateway is one in memory: test_hbase_store_on_hbase.py has a real one.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Thread

import pytest
from support.clock import Clock, eventually
from support.hbase_gateway import PATIENT_S, GatewayInMemory, allow_time, gateway_in_memory
from support.shared_lists import ANN, SharedLists

from proxy.session.explain.partition_plan import PartitionPlanView, planned
from proxy.session.layout import hbase_scans, shared_rows
from proxy.session.layout.hbase_store import HBasePartitionStore
from proxy.session.layout.partition_store import ListKey, ScannedPartitions, StoreWait
from rewriter.partitions.filter_text import read_filter
from rewriter.partitions.index import PartitionIndex
from rewriter.partitions.key_encoding import PartitionKeys
from rewriter.partitions.scan_plan import plan_scans

COLUMNS, TYPES = ("ds", "r"), ("date", "string")
KEYS = PartitionKeys(COLUMNS, TYPES)
DAYS = [f"ds=2026-{month:02}-{day:02}/r={r}" for month in (1, 2) for day in range(1, 29) for r in ("eu", "us")]
UNREADABLE = "ds=tomorrow/r=us"
WHOLE = PartitionIndex.of(COLUMNS, TYPES, [*DAYS, UNREADABLE])
FILTER = "ds >= '2026-02-01' AND r = 'us'"


class Replicas:
    """One that has a list and has told of it, and one that does not hold it."""

    def __init__(self, gateway: GatewayInMemory, stack: ExitStack) -> None:
        self.gateway = gateway
        self.day = Clock(1_000.0)
        shared = SharedLists(f"127.0.0.1:{gateway.port}", stack, clock=self.day)
        self.one, self.other = shared.replica().store, shared.replica().store
        self.publish([*DAYS, UNREADABLE])

    def publish(self, specs: list[str]) -> None:
        before = self.count(self.one, "published")
        assert self.one.put(ANN, COLUMNS, TYPES, specs)
        eventually(lambda: self.count(self.one, "published") > before)

    def count(self, store: HBasePartitionStore, result: str) -> float:
        return dict(store.results())[result]

    def scan(self, text: str = FILTER, key: ListKey = ANN, keys: PartitionKeys = KEYS) -> ScannedPartitions | None:
        return self.other.scan(key, keys, plan_scans(read_filter(text, keys), keys))

    def plan(self, text: str) -> PartitionPlanView:
        found = self.scan(text)
        assert found is not None
        return planned("sales", text, found.index, None, found.scanned)


@pytest.fixture
def replicas(monkeypatch: pytest.MonkeyPatch) -> Iterator[Replicas]:
    allow_time(monkeypatch)
    with gateway_in_memory() as gateway, ExitStack() as stack:
        yield Replicas(gateway, stack)


def without_scanned(plan: PartitionPlanView) -> object:
    scans = [(scan.start, scan.stop, scan.filter_left, scan.kept) for scan in plan.scans]
    return plan.names, plan.partitions, plan.unreadable, plan.full_scan, plan.scan_count, scans


@pytest.mark.parametrize(
    "text",
    [
        "ds = '2026-01-07'",
        "ds BETWEEN '2026-01-07' AND '2026-02-03'",
        FILTER,
        "ds >= '2026-02-01' AND r > 'eu'",
        "r LIKE '%s'",
        "ds IN ('2026-01-07', '2026-02-03') OR ds > '2026-02-20' AND r IN ('us', 'asia')",
        "ds > '2027-01-01'",
        "FALSE",
        "TRUE",
    ],
)
def test_a_filter_is_answered_as_from_the_list_itself(replicas: Replicas, text: str) -> None:
    scanned, own = replicas.plan(text), planned("sales", text, WHOLE)
    assert without_scanned(scanned) == without_scanned(own)
    assert scanned.scanned in {own.scanned, None}
    assert replicas.other.get(ANN) is None, "nothing is loaded"
    assert replicas.count(replicas.other, "scanned") == 1


def test_hbase_tests_the_filter_that_is_left_where_it_can(replicas: Replicas) -> None:
    assert replicas.plan(FILTER).scanned is None
    assert b"regexstring:\\x01us\\x00\\x01" in replicas.gateway.filters[-1]
    assert replicas.plan("r = 'us'").scanned == len(DAYS) + 1, "a full scan looks at each"
    plan = replicas.plan("ds >= '2026-02-01' AND r > 'eu'")
    assert plan.scanned == 56
    assert [(scan.scanned, scan.kept) for scan in plan.scans] == [(1, 1), (54, 27)]
    assert replicas.gateway.filters[-1] == b"KeyOnlyFilter()"


def test_a_list_that_is_at_hand_is_not_scanned(replicas: Replicas) -> None:
    eventually(lambda: replicas.other.look_up(ANN, StoreWait(PATIENT_S)) is not None)
    assert replicas.scan() is None
    assert replicas.one.scan(ANN, KEYS, plan_scans(read_filter(FILTER, KEYS), KEYS)) is None
    replicas.day.now += 1
    replicas.publish(DAYS[:-1])
    assert replicas.plan(FILTER).partitions.kept == 27, "what is at hand is older by now"


def test_a_list_of_another_user_is_not_scanned(replicas: Replicas) -> None:
    assert replicas.scan(key=ListKey(("bob", "bob"), ANN.table)) is None
    assert replicas.scan(key=ListKey(ANN.owner, ("other",))) is None


def test_a_list_of_other_columns_is_not_scanned(replicas: Replicas) -> None:
    for text in ("TRUE", "ds = 'unlike any other'"):
        assert replicas.scan(text, keys=PartitionKeys(COLUMNS, ("string", "string"))) is None


def test_a_list_that_expired_or_was_dropped_is_not_scanned(replicas: Replicas) -> None:
    replicas.day.now += 1_000
    assert replicas.scan() is None
    replicas.day.now -= 1_000
    assert replicas.scan() is not None
    replicas.gateway.hold("mutateRows")
    replicas.other.forget({"sales"})
    assert replicas.scan() is None, "not even before HBase knows"


@pytest.mark.parametrize("what", ["header", "renamed", "added", "lost"])
def test_rows_that_no_replica_writes_are_no_answer(replicas: Replicas, what: str) -> None:
    rows = replicas.gateway.rows
    last = max(row for row in rows if row.startswith(b"1E"))
    if what == "header":
        rows[shared_rows.header_row(ANN)][shared_rows.HEADER_COLUMN] = b"something else"
    elif what == "renamed":
        rows[last + b"0"] = rows.pop(last)
    elif what == "lost":
        del rows[last]
    else:
        for day in DAYS:
            rows[last[: -len(KEYS.entry(DAYS[-1]))] + KEYS.entry(f"{day[:-2]}zz")] = rows[last]
    assert replicas.scan("TRUE" if what in {"added", "lost"} else FILTER) is None


def test_a_gateway_that_is_slow_is_given_up_by_one_deadline(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hbase_scans, "_ANSWER_S", 0.5)
    replicas.gateway.delay_s["scannerGetList"] = 0.2
    assert replicas.scan("ds IN ('2026-01-07', '2026-01-09', '2026-01-11', '2026-01-13')") is None
    assert replicas.gateway.calls.count("scannerGetList") < 4, "and not by that of each call"
    replicas.gateway.delay_s.clear()
    monkeypatch.setattr(hbase_scans, "_ANSWER_S", PATIENT_S)
    assert replicas.scan() is not None, "the next one connects anew"
    replicas.gateway.refused["scannerOpenWithScan"] = "no such table"
    assert replicas.scan() is None


def test_nobody_waits_while_hbase_is_left_alone(replicas: Replicas) -> None:
    replicas.gateway.refused["getRows"] = "it is ill"
    eventually(lambda: replicas.other.look_up(ANN, StoreWait(1.0)) is None and replicas.other.is_away)
    calls = len(replicas.gateway.calls)
    assert replicas.scan() is None
    assert len(replicas.gateway.calls) == calls


def test_one_filter_is_answered_at_a_time(replicas: Replicas) -> None:
    with held_scan(replicas) as found:
        assert replicas.scan() is None
    assert found[0] is not None


def test_a_list_that_is_dropped_while_it_is_scanned_is_no_answer(replicas: Replicas) -> None:
    with held_scan(replicas) as found:
        replicas.other.forget({"sales"})
    assert found == [None]


@contextmanager
def held_scan(replicas: Replicas) -> Iterator[list[ScannedPartitions | None]]:
    """A filter whose answer waits for the end of the context, and is there then."""
    let_go = replicas.gateway.hold("scannerGetList")
    found: list[ScannedPartitions | None] = []
    thread = Thread(target=lambda: found.append(replicas.scan()))
    thread.start()
    eventually(lambda: "scannerGetList" in replicas.gateway.calls)
    yield found
    let_go.set()
    thread.join()


@pytest.mark.parametrize("limit", ["_SCANS_MAX", "_ROWS_MAX"])
def test_a_filter_of_many_scans_or_rows_is_not_answered(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    text = "ds = '2026-01-07' OR ds = '2026-01-09'"
    assert replicas.scan(text) is not None
    monkeypatch.setattr(hbase_scans, limit, 1)
    assert replicas.scan(text) is None


def test_a_full_scan_of_many_rows_is_not_begun(replicas: Replicas, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hbase_scans, "_ROWS_MAX", 10)
    assert replicas.scan("r > 'eu'") is None
    assert "scannerOpenWithScan" not in replicas.gateway.calls
    assert replicas.scan("r = 'asia'") is not None, "HBase tests each"
    monkeypatch.setattr(hbase_scans, "_ROWS_TESTED_MAX", 10)
    assert replicas.scan("r = 'asia'") is None
    assert replicas.gateway.calls.count("scannerOpenWithScan") == 1


def test_the_scans_end_with_the_proxy(replicas: Replicas) -> None:
    assert replicas.scan() is not None
    replicas.other.close()
    assert replicas.scan() is None
