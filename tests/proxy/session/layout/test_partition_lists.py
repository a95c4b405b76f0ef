"""How many partitions a table has, as far as that is known without asking."""

from collections.abc import Iterator

import pytest

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import Column, Rows
from proxy.session.catalog.facts_cache import DescribedTable
from proxy.session.catalog.metadata_cache import MetadataCache, SessionMetadata
from proxy.session.layout.open_store import open_store
from proxy.session.layout.partition_lists import PartitionLists, SharedLists
from rewriter import Column as TableColumn
from rewriter import TableFacts, TableName

SALES = DescribedTable(
    TableName(("sales",)),
    TableFacts((TableColumn("id", "int"), TableColumn("ds", "string")), ("ds",)),
    ("sales", "shop", "spark_catalog", "file:/warehouse/sales", "today"),
)


@pytest.fixture
def known() -> SessionMetadata:
    return MetadataCache(CatalogSection(), lambda: 0.0).of_nobody_else()


@pytest.fixture
def lists() -> Iterator[PartitionLists]:
    settings = CatalogSection()
    with open_store(settings) as store:
        yield PartitionLists(SharedLists(store), settings, lambda: 0.0)


def listed(lists: PartitionLists, known: SessionMetadata, *partitions: str) -> None:
    asking = lists.find(SALES, known)
    assert next(asking).sql == "SELECT current_user()"
    asking.send(rows("someone"))
    with pytest.raises(StopIteration):
        asking.send(rows(*partitions))


def rows(*values: str) -> Rows:
    return Rows((Column("value", "string"),), tuple((value,) for value in values), 0.1)


def test_the_partitions_of_a_table_are_counted_once_it_was_listed(
    lists: PartitionLists, known: SessionMetadata
) -> None:
    assert lists.count(SALES, known) is None
    listed(lists, known, "ds=2026-01-01", "ds=2026-01-02", "ds=2026-01-03")
    assert lists.count(SALES, known) == 3


def test_a_name_that_is_no_table_has_no_count(lists: PartitionLists, known: SessionMetadata) -> None:
    listed(lists, known, "ds=2026-01-01")
    assert lists.count(DescribedTable(TableName(("sales",)), None), known) is None
