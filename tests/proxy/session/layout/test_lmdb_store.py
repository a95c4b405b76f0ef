"""The store of partition lists: who finds what, for how long, and what happens where it does not fit."""

import logging
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.clock import Clock

from proxy.config.errors import ConfigError
from proxy.config.rewriting import CatalogSection
from proxy.session.layout.lmdb_store import LmdbPartitionStore, lmdb_store
from proxy.session.layout.partition_store import ListKey
from rewriter.partitions.filter_tree import And, Compare, In, Operator, PartitionFilter
from rewriter.partitions.index import PartitionIndex

ANN = ListKey(("ann", "ann"), ("sales", "default", "spark_catalog", "file:/sales", "2026-11-20"))
DAYS = [f"ds=2026-01-{day:02d}/r={r}" for day in range(1, 31) for r in ("eu", "us")]
COLUMNS, TYPES = ("ds", "r"), ("date", "string")
EVERYTHING: PartitionFilter = And(())


@dataclass
class Opened:
    store: LmdbPartitionStore
    clock: Clock = field(default_factory=Clock)

    def names(self, key: ListKey = ANN) -> list[str] | None:
        index = self.store.get(key)
        return list(index.matching(EVERYTHING)) if index is not None else None


@pytest.fixture
def opened() -> Iterator[Opened]:
    clock = Clock(1_000.0)
    with lmdb_store(CatalogSection(partitions_ttl_s=60), clock) as store:
        yield Opened(store, clock)


def test_a_list_is_found_again_in_the_order_of_its_values(opened: Opened) -> None:
    assert opened.names() is None
    assert opened.store.put(ANN, COLUMNS, TYPES, DAYS[::-1])
    assert opened.names() == DAYS


def test_the_store_answers_filters_as_the_index_in_memory_does(opened: Opened) -> None:
    specs = [*DAYS, "ds=2026-1-1/r=eu", "ds=__HIVE_DEFAULT_PARTITION__/r=eu", "ds=2026-01-01/r=" + "long" * 200]
    opened.store.put(ANN, COLUMNS, TYPES, specs)
    stored, memory = opened.store.get(ANN), PartitionIndex.of(COLUMNS, TYPES, specs)
    condition = And((Compare("ds", Operator.GREATER, "2026-01-10"), In("r", ("eu", "us"))))
    assert stored is not None
    assert set(stored.unreadable) == {specs[60], specs[62]}
    assert set(stored.matching(condition)) - {specs[62]} == set(memory.matching(condition))
    assert dict(stored.counts("ds")).keys() == dict(memory.counts("ds")).keys()


@settings(max_examples=20)
@given(st.lists(st.integers(-128, 127), unique=True), st.lists(st.integers(-128, 127)))
def test_any_list_answers_from_the_store_as_from_memory(values: list[int], wanted: list[int]) -> None:
    specs = [f"k={value}" for value in values]
    condition = In("k", tuple(wanted))
    with lmdb_store(CatalogSection()) as store:
        store.put(ANN, ("k",), ("tinyint",), specs)
        store.put(ListKey(("bob",), ANN.table), ("k",), ("tinyint",), ["k=1", "k=2"])
        stored = store.get(ANN)
        assert stored is not None
        memory = PartitionIndex.of(("k",), ("tinyint",), specs)
        assert list(stored.matching(condition)) == list(memory.matching(condition))


@pytest.mark.parametrize(
    "other",
    [
        ListKey(("bob", "bob"), ANN.table),
        ListKey(("ann", "bob"), ANN.table),
        ListKey(("ann",), ANN.table),
        ListKey(("annann", ""), ANN.table),
        ListKey(ANN.owner, ("spark_catalog", "other", "sales", "file:/sales", "2026-11-20")),
        ListKey(ANN.owner, (*ANN.table[:4], "2026-11-21")),
    ],
)
def test_a_list_is_found_under_its_own_key_alone(opened: Opened, other: ListKey) -> None:
    opened.store.put(ANN, COLUMNS, TYPES, DAYS)
    assert opened.names(other) is None
    opened.store.put(other, COLUMNS, TYPES, DAYS[:1])
    assert opened.names() == DAYS
    assert opened.names(other) == DAYS[:1]


@pytest.mark.parametrize(("owner", "table"), [((), ("t",)), (("ann",), ())])
def test_a_list_without_an_owner_or_a_table_is_refused(owner: tuple[str, ...], table: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="anyone's"):
        ListKey(owner, table)


def test_a_list_expires_and_none_is_believed_from_the_future(opened: Opened) -> None:
    opened.store.put(ANN, COLUMNS, TYPES, DAYS)
    opened.clock.now += 59
    assert opened.names() == DAYS
    opened.clock.now += 1
    assert opened.names() is None
    opened.clock.now = 0
    assert opened.names() is None


def test_a_list_replaces_the_earlier_one_and_who_uses_that_goes_on_undisturbed(opened: Opened) -> None:
    opened.store.put(ANN, COLUMNS, TYPES, DAYS)
    earlier = opened.store.get(ANN)
    assert earlier is not None
    answer = earlier.matching(EVERYTHING)
    first = next(answer)
    opened.store.put(ANN, ("k",), ("int",), ["k=1"])
    assert opened.names() == ["k=1"]
    assert [first, *answer] == DAYS
    opened.store.forget({ANN.table[0].lower()})
    assert list(earlier.matching(EVERYTHING)) == DAYS


def test_forgetting_a_table_drops_everyones_lists_of_it_and_no_others(opened: Opened) -> None:
    bob, other = ListKey(("bob",), ANN.table), ListKey(ANN.owner, ("other",))
    for key in (ANN, bob, other):
        opened.store.put(key, COLUMNS, TYPES, DAYS)
    opened.store.forget({"unknown", ANN.table[0].lower()})
    assert [opened.names(key) for key in (ANN, bob, other)] == [None, None, DAYS]


def test_a_table_whose_values_have_no_certain_order_is_not_kept(opened: Opened) -> None:
    assert not opened.store.put(ANN, ("t",), ("timestamp",), ["t=2026-01-01 00%3A00%3A00"])
    assert opened.names() is None


def test_a_list_longer_than_the_configuration_allows_is_not_kept() -> None:
    with lmdb_store(CatalogSection(partitions_max=2)) as store:
        assert store.put(ANN, COLUMNS, TYPES, DAYS[:2])
        assert not store.put(ListKey(("bob",), ("t",)), COLUMNS, TYPES, DAYS[:3])


def test_a_list_that_does_not_fit_is_not_kept_and_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    long = [f"k={value}" for value in range(20_000)]
    other = ListKey(("bob",), ("t",))
    with lmdb_store(CatalogSection(store_bytes_max=256 * 1024)) as store, caplog.at_level(logging.WARNING):
        assert store.put(ANN, COLUMNS, TYPES, DAYS)
        assert not store.put(other, ("k",), ("int",), long)
        assert "20000 partitions is not kept" in caplog.text
        assert store.get(other) is None
        assert Opened(store).names() == DAYS


def other_lists(store: LmdbPartitionStore, count: int) -> list[bool]:
    specs = [f"k={value}" for value in range(300)]
    return [store.put(ListKey(("bob",), (f"t{number}",)), ("k",), ("int",), specs) for number in range(count)]


def test_a_store_without_room_for_more_lists_has_room_to_drop_them(opened: Opened) -> None:
    with lmdb_store(CatalogSection(store_bytes_max=256 * 1024), opened.clock) as store:
        assert store.put(ANN, COLUMNS, TYPES, DAYS)
        assert not all(other_lists(store, 100))
        store.forget({"t0", "t1"})
        assert store.get(ListKey(("bob",), ("t0",))) is None
        assert Opened(store).names() == DAYS, "what is left is still used"
        assert other_lists(store, 1) == [True]


def test_lists_are_used_again_once_all_of_them_could_be_dropped(opened: Opened) -> None:
    with lmdb_store(CatalogSection(store_bytes_max=256 * 1024), opened.clock) as store:
        assert store.put(ANN, COLUMNS, TYPES, DAYS)
        # Somebody who reads keeps what is replaced meanwhile.
        reading = store.get(ANN)
        assert reading is not None
        while store.put(ANN, COLUMNS, TYPES, DAYS):
            store.forget({"other"})
        store.forget({"sales"})
        assert store.get(ANN) is None
        del reading
        store.forget({"other"})
        assert store.put(ANN, COLUMNS, TYPES, DAYS)
        assert store.get(ANN) is not None


def test_a_list_that_expired_within_a_day_is_there_for_numbers(opened: Opened) -> None:
    other = ListKey(("bob",), ANN.table)
    opened.store.put(ANN, COLUMNS, TYPES, DAYS)
    opened.clock.now += 3_600
    opened.store.put(other, COLUMNS, TYPES, DAYS)
    assert opened.names() is None
    found = opened.store.get(ANN, or_old=True)
    assert found is not None
    assert found.count == len(DAYS)
    opened.clock.now += 86_400
    assert opened.store.get(ANN, or_old=True) is None


def test_what_expired_makes_room(opened: Opened) -> None:
    with lmdb_store(CatalogSection(store_bytes_max=512 * 1024, partitions_ttl_s=60), opened.clock) as store:
        for table in range(50):
            opened.clock.now += 61
            specs = [f"k={value}" for value in range(2_000)]
            assert store.put(ListKey(("ann",), (str(table),)), ("k",), ("int",), specs), table


def test_a_temporary_store_ends_with_the_proxy_and_a_configured_one_stays(tmp_path: Path) -> None:
    section = CatalogSection(store_path=str(tmp_path / "lists"))
    with lmdb_store(section) as store:
        store.put(ANN, COLUMNS, TYPES, DAYS)
        assert stat.S_IMODE((tmp_path / "lists").stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "lists").iterdir()} == {0o600}
    with lmdb_store(section) as store:
        assert Opened(store).names() == DAYS
    with lmdb_store(CatalogSection()) as store:
        assert store.get(ANN) is None


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(ConfigError, match=r"catalog.store_path: .*taken cannot be made"):
        lmdb_store(CatalogSection(store_path=str(tmp_path / "taken"))).__enter__()


def test_threads_write_and_read_at_the_same_time(opened: Opened) -> None:
    lists = {length: [f"k={value}" for value in range(length)] for length in (10, 500, 1_000)}
    seen: list[list[str] | None] = []

    def write(length: int) -> None:
        for _ in range(20):
            opened.store.put(ANN, ("k",), ("int",), lists[length])

    def read() -> None:
        seen.extend(opened.names() for _ in range(50))

    opened.store.put(ANN, ("k",), ("int",), lists[10])
    threads = [threading.Thread(target=write, args=(length,)) for length in lists]
    threads += [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 100
    assert all(names in lists.values() for names in seen)


def _put_from_elsewhere(path: str) -> None:
    with lmdb_store(CatalogSection(store_path=path)) as store:
        store.put(ANN, COLUMNS, TYPES, DAYS)


def test_processes_share_a_directory(tmp_path: Path) -> None:
    with lmdb_store(CatalogSection(store_path=str(tmp_path))) as store:
        other = get_context("spawn").Process(target=_put_from_elsewhere, args=(str(tmp_path),))
        other.start()
        other.join()
        assert other.exitcode == 0
        assert Opened(store).names() == DAYS
