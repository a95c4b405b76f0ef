"""Partition lists that proxies share, in a real HBase of one process behind its Thrift gateway."""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from threading import Event, Thread

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st
from support.hbase_server import HBase, hbase
from support.maven import ClientMissingError, is_required
from support.partition_strategies import VALUES, filters, name_of

from demo.java import find_java
from proxy.backends import circuit_breaker
from proxy.config.rewriting import CatalogSection
from proxy.hbase.calls import Cell
from proxy.hbase.errors import HBaseError
from proxy.hbase.table import HBaseTable
from proxy.session.layout import hbase_lists, hbase_scans, hbase_store, shared_rows
from proxy.session.layout.hbase_store import HBasePartitionStore
from proxy.session.layout.lmdb_store import StoredList, Times
from proxy.session.layout.open_store import open_store
from proxy.session.layout.partition_store import ListKey, StoreWait
from proxy.session.layout.row_filters import row_filter
from proxy.session.layout.shared_rows import new_version
from rewriter.partitions.filter_report import report
from rewriter.partitions.filter_tree import (
    And,
    Compare,
    In,
    IsNull,
    Like,
    Operator,
    Or,
    PartitionFilter,
    PartitionTest,
)
from rewriter.partitions.index import PartitionIndex
from rewriter.partitions.key_encoding import DEFAULT_PARTITION, END
from rewriter.partitions.scan_plan import plan_scans

COLUMNS, TYPES = ("k", "r"), ("int", "string")
SPECS = [f"k={number}/r={r}" for number in (DEFAULT_PARTITION, *range(-1_200, 1_200)) for r in ("eu", "us", "%25")]
BACKGROUND_S = 120.0
# Less than who waits for a gateway that is away.
PROMPTLY_S = 30.0


@dataclass
class Replica:
    """One proxy's store."""

    store: HBasePartitionStore
    deadline_s: float

    def names(self, key: ListKey) -> list[str] | None:
        index = self.store.look_up(key, StoreWait(self.deadline_s))
        return list(index.matching(And(()))) if index is not None else None

    def put(self, key: ListKey, specs: list[str]) -> None:
        before = self.count("published")
        assert self.store.put(key, COLUMNS, TYPES, specs)
        eventually(lambda: self.count("published") > before)

    def count(self, result: str) -> float:
        return dict(self.store.results())[result]


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

    def replica(self, deadline_s: float = 1.0) -> Replica:
        section = CatalogSection(
            store="hbase",
            store_gateway=str(self.server.gateway_endpoint),
            store_table=self.name,
            store_deadline_s=deadline_s,
        )
        store = self.stack.enter_context(open_store(section))
        assert isinstance(store, HBasePartitionStore)
        return Replica(store, deadline_s)

    def table(self, name: str | None = None) -> HBaseTable:
        table = self.server.table(name or self.name)
        self.stack.callback(table.close)
        return table


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
    monkeypatch.setattr(hbase_store, "_HEADER_BELIEVED_S", 0.0)
    monkeypatch.setattr(circuit_breaker, "OPEN_S", 0.5)
    monkeypatch.setattr(hbase_scans, "_ANSWER_S", BACKGROUND_S)
    name = request.node.name[:60]
    with ExitStack() as stack:
        shared = Shared(server, stack, name)
        # A table takes seconds to be made, and then it is there.
        shared.table().create(hbase_lists.TABLE_TTL_S)
        yield shared


KEY = ListKey(("ann", "ann"), ("sales", "default", "spark_catalog", "file:/sales", "today"))
FILTERS: list[PartitionFilter] = [
    And(()),
    Compare("k", Operator.LESS, -5),
    And((Compare("k", Operator.AT_LEAST, -3), Compare("k", Operator.AT_MOST, 3), In("r", ("us",)))),
    In("k", (-1_200, -1, 0, 1_199, 5_000)),
    IsNull("k"),
    IsNull("k", negated=True),
]


def kept_list(specs: list[str], version: bytes = b"version1", ttl_s: float = 600.0) -> StoredList:
    memory = PartitionIndex.of(COLUMNS, TYPES, specs)
    now = time.time()
    entries = tuple(memory.entries.scan(b"", b"\x02"))
    return StoredList(memory.keys, entries, memory.unreadable, Times(version, now, now + ttl_s))


def test_a_list_that_one_replica_was_given_is_found_by_another(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica()
    one.put(KEY, SPECS)
    eventually(lambda: other.names(KEY) is not None)
    memory = PartitionIndex.of(COLUMNS, TYPES, SPECS)
    found = other.store.look_up(KEY, StoreWait(1.0))
    assert found is not None
    for condition in FILTERS:
        assert list(found.matching(condition)) == list(memory.matching(condition))
    assert one.names(KEY) == other.names(KEY)


def test_range_scans_of_hbase_answer_filters_as_the_list_in_memory_does(shared: Shared) -> None:
    table, kept = shared.table(), kept_list(SPECS)
    assert hbase_lists.publish(table, KEY, kept, time.time(), lambda: False) == b"version1"
    header = hbase_lists.read_header(table, KEY, 10_000).header
    assert header is not None

    class Scans:
        def scan(self, start: bytes, stop: bytes) -> Iterator[bytes]:
            assert header is not None
            return hbase_lists.scan(table, header, start, stop)

    memory = PartitionIndex.of(COLUMNS, TYPES, SPECS)
    scanned = PartitionIndex(memory.keys, Scans(), memory.unreadable)
    for condition in FILTERS:
        assert list(scanned.matching(condition)) == list(memory.matching(condition))
    found = list(hbase_lists.scan(table, header))
    assert len(found) == len(SPECS) > 2 * 1_000, "several pages"
    assert all(before < after for before, after in pairwise(found))


RANDOM_TYPES = ("int", "string", "date", "bigint")
RANDOM_COLUMNS = ("a", "b", "c", "d")
VALUE_ROWS = st.lists(st.tuples(*(VALUES[one] | st.none() for one in RANDOM_TYPES)), min_size=30, max_size=60)


@given(st.data())
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
def test_a_replica_without_the_list_answers_any_filter_as_the_list_in_memory_does(
    shared: Shared, data: st.DataObject
) -> None:
    """Of some lists, each of which is asked for by some filters: no filter here is too long for an answer."""
    specs = [name_of(RANDOM_COLUMNS, row) for row in data.draw(VALUE_ROWS)]
    memory = PartitionIndex.of(RANDOM_COLUMNS, RANDOM_TYPES, specs)
    key = ListKey(("ann",), ("sales", secrets.token_hex(8)))
    now = time.time()
    entries = tuple(memory.entries.scan(b"", END))
    kept = StoredList(memory.keys, entries, memory.unreadable, Times(new_version(), now, now + 600.0))
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


def test_hbase_leaves_out_rows_by_each_form_of_a_condition(shared: Shared) -> None:
    table, kept = shared.table(), kept_list(SPECS)
    assert hbase_lists.publish(table, KEY, kept, time.time(), lambda: False)
    header = hbase_lists.read_header(table, KEY, 10_000).header
    assert header is not None
    rows = len(SPECS)
    pushed: list[tuple[PartitionFilter, int]] = [
        (Compare("r", Operator.EQUAL, "us"), rows // 3),
        (In("r", ("us", "%")), rows * 2 // 3),
        (Compare("k", Operator.EQUAL, 65), 3),
        (Compare("k", Operator.EQUAL, -65), rows // 2),
        (Like("r", "u%"), rows // 3 + 3),
        (Like("r", "%u"), rows // 3),
        (And((Compare("r", Operator.EQUAL, "us"), Compare("k", Operator.EQUAL, 65))), 1),
        (Or((Compare("r", Operator.EQUAL, "us"), Compare("k", Operator.EQUAL, 65))), rows // 3 + 2),
    ]
    for condition, most in pushed:
        pushed_down = row_filter((condition,), kept.keys)
        found = set(hbase_lists.scan(table, header, pushed_down=pushed_down))
        held = set(filter(PartitionTest.of(condition, kept.keys).holds, kept.entries))
        assert held <= found, condition
        assert len(found) <= most, condition


def test_a_list_that_is_replaced_while_it_is_read_is_read_as_it_was(shared: Shared) -> None:
    table, other = shared.table(), shared.table()
    assert hbase_lists.publish(table, KEY, kept_list(SPECS), time.time(), lambda: False)
    header = hbase_lists.read_header(table, KEY, 10_000).header
    assert header is not None
    scan = hbase_lists.scan(table, header)
    first = [next(scan) for _ in range(10)]
    replacing = kept_list(SPECS[:100], b"version2")
    assert hbase_lists.publish(other, KEY, replacing, time.time(), lambda: False) == b"version2"
    assert [*first, *scan] == list(kept_list(SPECS).entries)
    header = hbase_lists.read_header(table, KEY, 10_000).header
    assert header is not None
    assert hbase_lists.load(table, header) == list(replacing.entries)


def test_readers_see_whole_lists_while_two_replicas_write(shared: Shared) -> None:
    lists = [SPECS[:50], SPECS[:1_500], SPECS[1_000:1_010]]
    wanted = [list(PartitionIndex.of(COLUMNS, TYPES, specs).matching(And(()))) for specs in lists]
    reader, writers = shared.replica(), [shared.replica(), shared.replica()]
    is_over = Event()
    seen: list[list[str]] = []

    def read() -> None:
        while not is_over.is_set():
            names = reader.names(KEY)
            if names is not None:
                seen.append(names)
            time.sleep(0.01)

    thread = Thread(target=read)
    thread.start()
    try:
        for round_ in range(2):
            for number, specs in enumerate(lists):
                writers[(round_ + number) % 2].put(KEY, specs)
        eventually(lambda: wanted[2] in seen[-1:])
    finally:
        is_over.set()
        thread.join()
    assert all(names in wanted for names in seen)


def test_a_list_that_one_replica_drops_is_dropped_for_all(shared: Shared) -> None:
    one, other = shared.replica(), shared.replica()
    one.put(KEY, SPECS[:100])
    eventually(lambda: other.names(KEY) is not None)
    other.store.forget({"sales", "unknown"})
    eventually(lambda: one.names(KEY) is None)
    assert other.names(KEY) is None


def test_rows_expire_by_their_time_to_live(shared: Shared) -> None:
    table = shared.table()
    table.put(iter([Cell(b"short", b"l:e", b"1"), Cell(b"short2", b"l:e", b"")]), 1.0)
    table.put(iter([Cell(b"long", b"l:e", b"2")]), 3_600.0)
    assert table.rows([b"short", b"long", b"none"]).keys() <= {b"short", b"long"}
    eventually(lambda: table.rows([b"short", b"short2", b"long", b"none"]).keys() == {b"long"})
    assert table.rows([b"long"])[b"long"].cells == {b"l:e": b"2"}


def test_keys_and_values_are_any_bytes(shared: Shared) -> None:
    table = shared.table()
    rows = sorted({bytes((first, second)) for first in (0, 1, 39, 127, 128, 255) for second in (0, 10, 255)})
    table.put((Cell(row, b"l:e", row[::-1]) for row in rows), 600.0)
    assert [row.key for row in table.scan(b"\x00", b"\xff\xff\xff")] == rows
    assert {row.key: row.cells[b"l:e"] for row in table.scan(b"\x01", b"\x28", filter_text=b"")} == {
        row: row[::-1] for row in rows if b"\x01" <= row < b"\x28"
    }
    table.delete(rows[:5], b"l:e")
    assert [row.key for row in table.scan(b"\x00", b"\xff\xff\xff", page_rows=2)] == rows[5:]


def test_what_hbase_refuses_is_an_error_with_its_words(shared: Shared) -> None:
    with pytest.raises(HBaseError, match="no_such_table"):
        shared.table("no_such_table").rows([b"row"])
    table = shared.table()
    with pytest.raises(HBaseError, match="mutateRows"):
        table.put(iter([Cell(b"row", b"other:e", b"")]), 60.0)
    table.create(60)
    assert table.rows([b"row"]) == {}


def test_rows_of_another_format_are_not_seen(shared: Shared) -> None:
    table = shared.table()
    table.put(iter([Cell(b"2" + shared_rows.header_row(KEY)[1:], shared_rows.HEADER_COLUMN, b"other")]), 600.0)
    assert not hbase_lists.read_header(table, KEY, 10_000).is_there
    assert hbase_lists.drop(table, None) == 0


def test_a_replica_goes_on_while_the_gateway_is_killed_and_joins_the_others_again(shared: Shared) -> None:
    one, other = shared.replica(0.05), shared.replica()
    one.put(KEY, SPECS)
    eventually(lambda: one.names(KEY) is not None)
    known = one.names(KEY)
    shared.server.kill_gateway()
    try:
        begun = time.monotonic()
        assert one.names(KEY) == known
        assert time.monotonic() - begun < PROMPTLY_S
        eventually(lambda: one.names(KEY) == known and one.store.is_away)
        waits = [StoreWait(0.05) for _ in range(20)]
        assert all(one.store.look_up(KEY, wait) is not None for wait in waits)
        # But for a trial now and then.
        assert sum(wait.is_whole for wait in waits) > 10
    finally:
        shared.server.start_gateway()
    eventually(lambda: other.names(KEY) == known and one.names(KEY) == known and not one.store.is_away)
    other.put(KEY, SPECS[:10])
    eventually(lambda: one.names(KEY) == list(PartitionIndex.of(COLUMNS, TYPES, SPECS[:10]).matching(And(()))))
