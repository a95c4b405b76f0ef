"""Reading what Spark says of its tables, and remembering it."""

from proxy.catalog import FactsCache, read_description, read_partitions
from proxy.config import CatalogSection
from proxy.queries import Column, FailureKind, QueryFailed, Rows
from rewriter import Column as TableColumn
from rewriter import TableFacts, TableKind, TableName

FAILED = QueryFailed(FailureKind.REJECTED, "no such table", 0.1)
FACTS = TableFacts((TableColumn("ds", "string"),))


def rows(*values: tuple[str, ...]) -> Rows:
    return Rows(tuple(Column(f"c{i}", "string") for i in range(3)), values, 0.0)


def test_a_partitioned_table_is_read() -> None:
    facts = read_description(
        rows(
            ("id", "INT", ""),
            ("ds", "string", "the day"),
            ("# Partition Information", "", ""),
            ("# col_name", "data_type", "comment"),
            ("ds", "string", "the day"),
            ("", "", ""),
            ("# Detailed Table Information", "", ""),
            ("Type", "EXTERNAL", ""),
            ("Provider", "PARQUET", ""),
        )
    )
    assert facts == TableFacts(
        (TableColumn("id", "int"), TableColumn("ds", "string")), ("ds",), "parquet", TableKind.TABLE
    )


def test_a_view_is_no_table() -> None:
    details = ("# Detailed Table Information", "", ""), ("Type", "VIEW", "")
    described = read_description(rows(("id", "int", ""), ("", "", ""), *details))
    assert described is not None
    assert described.kind is TableKind.VIEW


def test_a_temporary_view_without_details_is_no_table() -> None:
    described = read_description(rows(("id", "int", "")))
    assert described is not None
    assert described.kind is TableKind.VIEW


def test_a_description_with_parts_that_are_not_known_says_nothing() -> None:
    assert (
        read_description(rows(("id", "int", ""), ("# Partitioning", "", ""), ("Part 0", "days(ts)", ""))) is None
    )


def test_a_failed_description_says_nothing() -> None:
    assert read_description(FAILED) is None
    assert read_partitions(FAILED) is None


def test_facts_are_believed_until_they_expire() -> None:
    now = [100.0]
    cache = FactsCache(CatalogSection(facts_ttl_s=10), lambda: now[0])
    cache.add(TableName(("f",)), FACTS)
    now[0] = 109.9
    assert cache.current() == {TableName(("f",)): FACTS}
    now[0] = 110.0
    assert cache.current() == {}


def test_the_oldest_fact_goes_where_there_are_too_many() -> None:
    cache = FactsCache(CatalogSection(tables_max=2), lambda: 0.0)
    for name in "abc":
        cache.add(TableName((name,)), None)
    assert list(cache.current()) == [TableName(("b",)), TableName(("c",))]
