"""Replicas that share partition lists by way of HBase, and what any gateway has to do for them, real or not."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from threading import Event, Thread
from typing import Any

from proxy.config.address import address
from proxy.config.rewriting import CatalogSection
from proxy.hbase.calls import Cell
from proxy.hbase.connection import GatewayConnection
from proxy.hbase.table import HBaseTable
from proxy.session.layout import hbase_lists, shared_rows
from proxy.session.layout.hbase_store import HBasePartitionStore
from proxy.session.layout.lmdb_store import ListTimes, StoredList
from proxy.session.layout.open_store import open_store
from proxy.session.layout.partition_store import ListKey, StoreWait
from proxy.session.layout.row_filters import row_filter
from proxy.session.layout.shared_rows import SharedHeader
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
from rewriter.partitions.key_encoding import DEFAULT_PARTITION
from support.clock import eventually
from support.hbase_gateway import PATIENT_S

ANN = ListKey(("ann", "ann"), ("sales", "default", "spark_catalog", "file:/sales", "2026-11-20"))
OTHER = ListKey(ANN.owner, ("other",))
COLUMNS, TYPES = ("k", "r"), ("int", "string")
SPECS = [f"k={number}/r={r}" for number in (DEFAULT_PARTITION, *range(-1_200, 1_200)) for r in ("eu", "us", "%25")]
MEMORY = PartitionIndex.of(COLUMNS, TYPES, SPECS)
FILTERS: list[PartitionFilter] = [
    And(()),
    Compare("k", Operator.LESS, -5),
    And((Compare("k", Operator.AT_LEAST, -3), Compare("k", Operator.AT_MOST, 3), In("r", ("us",)))),
    In("k", (-1_200, -1, 0, 1_199, 5_000)),
    IsNull("k"),
    IsNull("k", negated=True),
]
ROWS = len(SPECS)
# The most of them that a condition lets through, where HBase tests it.
PUSHED: list[tuple[PartitionFilter, int]] = [
    (Compare("r", Operator.EQUAL, "us"), ROWS // 3),
    (In("r", ("us", "%")), ROWS * 2 // 3),
    (Compare("k", Operator.EQUAL, 65), 3),
    (Compare("k", Operator.EQUAL, -65), ROWS // 2),
    (Like("r", "u%"), ROWS // 3 + 3),
    (Like("r", "%u"), ROWS // 3),
    (And((Compare("r", Operator.EQUAL, "us"), Compare("k", Operator.EQUAL, 65))), 1),
    (Or((Compare("r", Operator.EQUAL, "us"), Compare("k", Operator.EQUAL, 65))), ROWS // 3 + 2),
]


def entries_of(specs: list[str]) -> list[bytes]:
    return list(PartitionIndex.of(COLUMNS, TYPES, specs).entries.scan(b"", b"\x02"))


def names_in(index: PartitionIndex | None) -> list[str] | None:
    return list(index.matching(And(()))) if index is not None else None


@dataclass
class Replica:
    """One proxy's store."""

    store: HBasePartitionStore
    deadline_s: float = PATIENT_S

    def names(self, key: ListKey = ANN) -> list[str] | None:
        """The list as a statement finds it that looks up no other."""
        return self.names_within(StoreWait(self.deadline_s), key)

    def names_within(self, wait: StoreWait, key: ListKey = ANN) -> list[str] | None:
        return names_in(self.store.look_up(key, wait))

    def own_names(self, key: ListKey = ANN) -> list[str] | None:
        return names_in(self.store.get(key))

    def put(self, specs: list[str], key: ListKey = ANN, types: tuple[str, str] = TYPES) -> None:
        """Put a list, and wait until the others can find it."""
        before = self.count("published")
        assert self.store.put(key, COLUMNS, types, specs)
        eventually(lambda: self.count("published") > before)

    def finds(self, specs: list[str] | None, key: ListKey = ANN) -> None:
        """Looks up until the list is found, as one statement after the other does."""
        eventually(lambda: self.names(key) == specs)

    def waits(self, key: ListKey = ANN) -> bool:
        """Looks a list up, in vain, and tells whether that waited: it does not where its time is over at once."""
        wait = StoreWait(self.deadline_s)
        assert self.names_within(wait, key) == self.own_names(key), "from this replica's own store"
        return not wait.is_whole

    def count(self, result: str) -> float:
        return dict(self.store.results())[result]


@dataclass
class SharedLists:
    """A table behind a gateway, and those who share it."""

    gateway_address: str
    stack: ExitStack
    table_name: str = "starpruner"
    clock: Callable[[], float] = time.time
    ttl_s: float = 600.0

    def replica(self, deadline_s: float = PATIENT_S, **settings: Any) -> Replica:
        section = CatalogSection(
            store="hbase",
            store_gateway=self.gateway_address,
            store_table=self.table_name,
            store_deadline_s=deadline_s,
            **{"partitions_ttl_s": self.ttl_s, **settings},
        )
        store = self.stack.enter_context(open_store(section, self.clock))
        assert isinstance(store, HBasePartitionStore)
        # Without its table, a store finds nothing.
        eventually(lambda: store._threads.work.is_prepared)  # noqa: SLF001 - nobody else asks for it
        return Replica(store, deadline_s)

    def table(self, name: str | None = None) -> HBaseTable:
        connection = GatewayConnection(address(self.gateway_address), time.monotonic)
        table = HBaseTable(connection, name or self.table_name, 60.0, pages_s=600.0)
        self.stack.callback(table.close)
        return table

    def publish(self, table: HBaseTable, version: bytes = b"version1", specs: list[str] = SPECS) -> SharedHeader:
        """Writes a list as a replica does, and reads its header."""
        memory, now = PartitionIndex.of(COLUMNS, TYPES, specs), self.clock()
        kept = StoredList(
            memory.keys, tuple(entries_of(specs)), memory.unreadable, ListTimes(version, now, now + 600.0)
        )
        assert hbase_lists.publish(table, ANN, kept, now, lambda: False) == version
        header = hbase_lists.read_header(table, ANN, 10_000).header
        assert header is not None
        return header


class SharedListsContract:
    """The tests of a gateway. Each needs a fixture `shared`."""

    def test_a_list_that_one_replica_was_given_is_found_by_another(self, shared: SharedLists) -> None:
        one, other = shared.replica(), shared.replica()
        assert other.names() is None
        one.put(SPECS)
        assert one.names() == names_in(MEMORY)
        other.finds(names_in(MEMORY))
        assert other.count("loaded") == 1
        found = other.store.get(ANN)
        assert found is not None
        for condition in FILTERS:
            assert list(found.matching(condition)) == list(MEMORY.matching(condition))
        assert other.names(ListKey(("bob", "bob"), ANN.table)) is None
        assert other.names(OTHER) is None

    def test_a_list_that_one_replica_drops_is_dropped_for_all(self, shared: SharedLists) -> None:
        one, other, few = shared.replica(), shared.replica(), ["k=1/r=eu", "k=2/r=eu"]
        for key in (ANN, OTHER):
            one.put(few, key)
            other.finds(few, key)
        other.store.forget({"unknown", "sales"})
        assert other.own_names() is None
        one.finds(None)
        assert one.names(OTHER) == other.names(OTHER) == few
        eventually(lambda: other.count("dropped") == 1)
        one.put(few[:1])
        other.finds(few[:1])

    def test_range_scans_answer_filters_as_the_list_in_memory_does(self, shared: SharedLists) -> None:
        table = shared.table()
        header = shared.publish(table)

        class Scans:
            def scan(self, start: bytes, stop: bytes) -> Iterator[bytes]:
                return hbase_lists.scan(table, header, start, stop)

        scanned = PartitionIndex(MEMORY.keys, Scans(), MEMORY.unreadable)
        for condition in FILTERS:
            assert list(scanned.matching(condition)) == list(MEMORY.matching(condition))
        found = list(hbase_lists.scan(table, header))
        assert len(found) == len(SPECS) > 2 * 1_000, "several pages"
        assert all(before < after for before, after in pairwise(found))

    def test_rows_are_left_out_by_each_form_of_a_condition(self, shared: SharedLists) -> None:
        table = shared.table()
        header, entries = shared.publish(table), entries_of(SPECS)
        for condition, most in PUSHED:
            pushed_down = row_filter((condition,), MEMORY.keys)
            found = set(hbase_lists.scan(table, header, pushed_down=pushed_down))
            assert set(filter(PartitionTest.of(condition, MEMORY.keys).holds, entries)) <= found, condition
            assert len(found) <= most, condition

    def test_a_list_that_is_replaced_while_it_is_read_is_read_as_it_was(self, shared: SharedLists) -> None:
        table = shared.table()
        scan = hbase_lists.scan(table, shared.publish(table))
        first = [next(scan) for _ in range(10)]
        replacing = shared.publish(shared.table(), b"version2", SPECS[:100])
        assert [*first, *scan] == entries_of(SPECS)
        assert hbase_lists.load(table, replacing) == entries_of(SPECS[:100])

    def test_readers_see_whole_lists_while_two_replicas_write(self, shared: SharedLists) -> None:
        lists = [SPECS[:50], SPECS[:1_500], SPECS[1_000:1_010]]
        wanted = [names_in(PartitionIndex.of(COLUMNS, TYPES, specs)) for specs in lists]
        reader, writers = shared.replica(), [shared.replica(), shared.replica()]
        is_over = Event()
        seen: list[list[str] | None] = []

        def read() -> None:
            while not is_over.is_set():
                seen.append(reader.names())
                time.sleep(0.01)

        thread = Thread(target=read)
        thread.start()
        try:
            for round_ in range(2):
                for number, specs in enumerate(lists):
                    writers[(round_ + number) % 2].put(specs)
            eventually(lambda: wanted[2] in seen[-1:])
        finally:
            is_over.set()
            thread.join()
        assert all(names in [None, *wanted] for names in seen)

    def test_keys_and_values_are_any_bytes(self, shared: SharedLists) -> None:
        table = shared.table()
        rows = sorted({bytes((first, second)) for first in (0, 1, 39, 127, 128, 255) for second in (0, 10, 255)})
        table.put((Cell(row, b"l:e", row[::-1]) for row in rows), 600.0)
        assert [row.key for row in table.scan(b"\x00", b"\xff\xff\xff")] == rows
        assert {row.key: row.cells[b"l:e"] for row in table.scan(b"\x01", b"\x28", filter_text=b"")} == {
            row: row[::-1] for row in rows if b"\x01" <= row < b"\x28"
        }
        table.delete(rows[:5], b"l:e")
        assert [row.key for row in table.scan(b"\x00", b"\xff\xff\xff", page_rows=2)] == rows[5:]

    def test_rows_of_another_format_are_not_seen(self, shared: SharedLists) -> None:
        table = shared.table()
        table.put(iter([Cell(b"2" + shared_rows.header_row(ANN)[1:], shared_rows.HEADER_COLUMN, b"other")]), 600.0)
        assert not hbase_lists.read_header(table, ANN, 10_000).is_there
        assert hbase_lists.drop(table, None) == 0
