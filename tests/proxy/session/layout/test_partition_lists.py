"""How many partitions a table has, as far as that is known without asking."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.clock import eventually
from support.hbase_gateway import PATIENT_S, allow_time, gateway_in_memory

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import ResultColumn, Rows, ask_driver
from proxy.session.catalog.facts_cache import DescribedTable
from proxy.session.catalog.metadata_cache import MetadataCache, SessionMetadata
from proxy.session.layout.open_store import open_store
from proxy.session.layout.partition_lists import PartitionLists, SharedLists
from proxy.session.layout.partition_store import ScannedPartitions, StoreWait
from rewriter import Column, TableFacts, TableName
from rewriter.partitions.filter_tree import And

SALES = DescribedTable(
    TableName(("sales",)),
    TableFacts((Column("id", "int"), Column("ds", "string")), ("ds",)),
    ("sales", "shop", "spark_catalog", "file:/warehouse/sales", "today"),
)


@pytest.fixture
def known() -> SessionMetadata:
    return MetadataCache(CatalogSection(), lambda: 0.0).of_nobody_else(("someone",))


@pytest.fixture
def lists() -> Iterator[PartitionLists]:
    settings = CatalogSection()
    with open_store(settings) as store:
        yield PartitionLists(SharedLists(store), settings, lambda: 0.0)


def listed(lists: PartitionLists, known: SessionMetadata, *partitions: str) -> None:
    asking = lists.find(ask_driver, SALES, known, StoreWait(1.0))
    assert asking.send(None).sql == "SHOW PARTITIONS `sales`"
    with pytest.raises(StopIteration):
        asking.send(rows(*partitions))


def rows(*values: str) -> Rows:
    return Rows((ResultColumn("value", "string"),), tuple((value,) for value in values), 0.1)


def test_the_partitions_of_a_table_are_counted_once_it_was_listed(
    lists: PartitionLists, known: SessionMetadata
) -> None:
    assert lists.count(SALES, known) is None
    listed(lists, known, "ds=2026-01-01", "ds=2026-01-02", "ds=2026-01-03")
    assert lists.count(SALES, known) == 3
    assert lists.count(DescribedTable(TableName(("sales",)), None), known) is None


def rest(lists: PartitionLists, known: SessionMetadata, table: DescribedTable = SALES) -> list[str]:
    """The queries that are asked for a list, all of them answered."""
    asked = []
    asking = lists.find(ask_driver, table, known, StoreWait(1.0))
    try:
        query = asking.send(None)
        while True:
            asked.append(query.sql)
            query = asking.send(rows("ds=2026-01-01"))
    except StopIteration:
        return asked


@pytest.fixture
def replicas(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[PartitionLists, PartitionLists]]:
    """The lists of two replicas that share a store."""
    allow_time(monkeypatch)
    with gateway_in_memory() as gateway, ExitStack() as stack:
        at = f"127.0.0.1:{gateway.port}"
        section = CatalogSection(store="hbase", store_gateway=at, store_deadline_s=PATIENT_S)
        stores = [stack.enter_context(open_store(section)) for _ in range(2)]
        one, other = (PartitionLists(SharedLists(store), section, lambda: 0.0) for store in stores)
        yield one, other


def test_a_list_that_one_replica_asked_for_is_not_asked_for_by_another(
    replicas: tuple[PartitionLists, PartitionLists], known: SessionMetadata
) -> None:
    one, other = replicas
    listed(one, known, "ds=2026-01-01")
    # Whatever it asks for nobody answers.
    eventually(lambda: rest(other, known) == [])


def test_a_filter_is_answered_by_scans_of_a_list_that_another_replica_asked_for(
    replicas: tuple[PartitionLists, PartitionLists], known: SessionMetadata
) -> None:
    one, other = replicas
    listed(one, known, "ds=2026-01-01", "ds=2026-01-02", "ds=2026-01-03")
    eventually(lambda: scanned(other, known, "ds > '2026-01-02'") is not None)
    found = scanned(other, known, "ds > '2026-01-02'")
    assert found is not None
    assert list(found.index.matching(And(()))) == ["ds=2026-01-03"]
    assert (found.index.count, found.scanned) == (3, (1,))
    assert scanned(other, known, "id = 3") is None, "it is no partition column"
    assert scanned(other, known, "ds = '2026-01-02'", DescribedTable(SALES.name, None)) is None
    assert scanned(one, known, "ds > '2026-01-02'") is None, "the list is here"


def scanned(
    lists: PartitionLists, known: SessionMetadata, condition: str, table: DescribedTable = SALES
) -> ScannedPartitions | None:
    """The answer of scans, for which nothing is asked."""
    return lists.scanned(table, known, condition)


def test_a_store_that_shares_nothing_is_not_scanned(lists: PartitionLists, known: SessionMetadata) -> None:
    listed(lists, known, "ds=2026-01-01")
    assert scanned(lists, known, "ds > '2026-01-02'") is None
    assert scanned(PartitionLists(SharedLists(None), CatalogSection(), lambda: 0.0), known, "TRUE") is None


def test_a_list_of_other_columns_is_not_used(lists: PartitionLists, known: SessionMetadata) -> None:
    listed(lists, known, "ds=2026-01-01")
    assert rest(lists, known) == []
    facts = TableFacts((Column("id", "int"), Column("ds", "date")), ("ds",))
    assert len(rest(lists, known, DescribedTable(SALES.name, facts, SALES.identity))) == 1


def test_what_a_clients_session_lists_is_kept_for_that_session_alone(
    lists: PartitionLists, known: SessionMetadata
) -> None:
    one, other = (MetadataCache(CatalogSection(), lambda: 0.0).of_nobody_else() for _ in range(2))
    listed(lists, one, "ds=2026-01-01")
    assert lists.count(SALES, one) == 1
    assert rest(lists, one) == []
    assert (lists.count(SALES, other), lists.count(SALES, known)) == (None, None)
    assert rest(lists, other) == rest(lists, known) == ["SHOW PARTITIONS `sales`"]


def test_a_clients_own_list_is_dropped_by_a_write_and_expires() -> None:
    now = 0.0
    shared, settings = SharedLists(None), CatalogSection()
    lists = PartitionLists(shared, settings, lambda: now)
    own = MetadataCache(settings, lambda: now).of_nobody_else()
    listed(lists, own, "ds=2026-01-01")
    shared.forget({"other"})
    assert rest(lists, own) == []
    shared.forget({"sales"})
    assert len(rest(lists, own)) == 1
    now += settings.partitions_ttl_s
    assert len(rest(lists, own)) == 1
