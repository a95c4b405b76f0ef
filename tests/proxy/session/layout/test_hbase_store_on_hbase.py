"""Partition lists that proxies share, in a real HBase of one process behind its Thrift gateway."""

import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from support.clock import eventually
from support.hbase_server import HBase, hbase_or_skip
from support.partition_strategies import VALUES, filters, name_of
from support.shared_lists import ANN, SPECS, SharedLists, SharedListsContract

from proxy.backends import circuit_breaker
from proxy.hbase.calls import Cell
from proxy.hbase.errors import HBaseError
from proxy.session.layout import hbase_lists, hbase_scans, hbase_store
from proxy.session.layout.lmdb_store import ListTimes, StoredList
from proxy.session.layout.partition_store import ListKey, StoreWait
from proxy.session.layout.row_filters import row_filter
from proxy.session.layout.shared_rows import new_version
from rewriter.partitions.filter_report import report
from rewriter.partitions.filter_tree import And, In
from rewriter.partitions.index import PartitionIndex
from rewriter.partitions.key_encoding import END
from rewriter.partitions.scan_plan import plan_scans

# Less than who waits for a gateway that is away.
PROMPTLY_S = 30.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HBase]:
    with hbase_or_skip(tmp_path_factory.mktemp("hbase")) as server:
        yield server


@pytest.fixture
def shared(
    server: HBase, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SharedLists]:
    monkeypatch.setattr(hbase_store, "_HEADER_BELIEVED_S", 0.0)
    monkeypatch.setattr(circuit_breaker, "OPEN_S", 0.5)
    monkeypatch.setattr(hbase_scans, "_ANSWER_S", 120.0)
    with ExitStack() as stack:
        shared = SharedLists(str(server.gateway_endpoint), stack, request.node.name[:60])
        # A table takes seconds to be made, and then it is there.
        shared.table().create(hbase_lists.TABLE_TTL_S)
        yield shared


class TestOnHBase(SharedListsContract):
    """As in memory."""


RANDOM_TYPES = ("int", "string", "date", "bigint")
RANDOM_COLUMNS = ("a", "b", "c", "d")
VALUE_ROWS = st.lists(st.tuples(*(VALUES[one] | st.none() for one in RANDOM_TYPES)), min_size=30, max_size=60)


@given(st.data())
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
def test_a_replica_without_the_list_answers_any_filter_as_the_list_in_memory_does(
    shared: SharedLists, data: st.DataObject
) -> None:
    """Of some lists, each of which is asked for by some filters: no filter here is too long for an answer."""
    specs = [name_of(RANDOM_COLUMNS, row) for row in data.draw(VALUE_ROWS)]
    memory = PartitionIndex.of(RANDOM_COLUMNS, RANDOM_TYPES, specs)
    key = ListKey(("ann",), ("sales", secrets.token_hex(8)))
    now = time.time()
    entries = tuple(memory.entries.scan(b"", END))
    kept = StoredList(memory.keys, entries, memory.unreadable, ListTimes(new_version(), now, now + 600.0))
    assert hbase_lists.publish(shared.table(), key, kept, now, lambda: False)
    store = shared.replica().store
    trees = data.draw(st.lists(filters(RANDOM_COLUMNS, RANDOM_TYPES), min_size=10, max_size=10))
    ranges = data.draw(st.lists(filters(RANDOM_COLUMNS[:1], RANDOM_TYPES[:1]), min_size=10, max_size=10))
    values = data.draw(st.lists(VALUES["string"], min_size=10, max_size=10))
    narrower = [And((tree, In("b", (value, "a")))) for tree, value in zip(ranges, values, strict=True)]
    for condition in [*trees, *narrower]:
        plan = plan_scans(condition, memory.keys)
        found = store.scan(key, memory.keys, plan)
        event(f"pushed down: {any(row_filter(scan.residual, memory.keys) for scan in plan.scans)}")
        assert found is not None, len(plan.scans)
        own, scanned = report(condition, memory), report(condition, found.index, found.scanned)
        assert list(found.index.matching(condition)) == list(memory.matching(condition))
        assert (scanned.total, scanned.full_scan_cause) == (own.total, own.full_scan_cause)
        for there, here in zip(scanned.scans, own.scans, strict=True):
            assert (there.start, there.stop, there.kept) == (here.start, here.stop, here.kept)
            assert there.scanned in {here.scanned, None}


def test_rows_expire_by_their_time_to_live(shared: SharedLists) -> None:
    table = shared.table()
    table.put(iter([Cell(b"short", b"l:e", b"1"), Cell(b"short2", b"l:e", b"")]), 1.0)
    table.put(iter([Cell(b"long", b"l:e", b"2")]), 3_600.0)
    assert table.rows([b"short", b"long", b"none"]).keys() <= {b"short", b"long"}
    eventually(lambda: table.rows([b"short", b"short2", b"long", b"none"]).keys() == {b"long"})
    assert table.rows([b"long"])[b"long"].cells == {b"l:e": b"2"}


def test_what_hbase_refuses_is_an_error_with_its_words(shared: SharedLists) -> None:
    with pytest.raises(HBaseError, match="no_such_table"):
        shared.table("no_such_table").rows([b"row"])
    table = shared.table()
    with pytest.raises(HBaseError, match="mutateRows"):
        table.put(iter([Cell(b"row", b"other:e", b"")]), 60.0)
    table.create(60)
    assert table.rows([b"row"]) == {}


def test_a_replica_goes_on_while_the_gateway_is_killed_and_joins_the_others_again(
    shared: SharedLists, server: HBase
) -> None:
    one, other = shared.replica(0.05), shared.replica()
    one.put(SPECS)
    eventually(lambda: one.names() is not None)
    known = one.names()
    server.kill_gateway()
    try:
        begun = time.monotonic()
        assert one.names() == known
        assert time.monotonic() - begun < PROMPTLY_S
        eventually(lambda: one.names() == known and one.store.is_away)
        waits = [StoreWait(0.05) for _ in range(20)]
        assert all(one.store.look_up(ANN, wait) is not None for wait in waits)
        # But for a trial now and then.
        assert sum(wait.is_whole for wait in waits) > 10
    finally:
        server.start_gateway()
    eventually(lambda: other.names() == known and one.names() == known and not one.store.is_away)
    other.put(SPECS[3:4])
    one.finds(SPECS[3:4])
