"""Reading what Spark says of its tables, and remembering it."""

import json
from dataclasses import replace

import pytest

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import FailureKind, QueryFailed, QueryResult, ResultColumn, Rows
from proxy.session.catalog.describe import read_description, read_identity, read_partitions, read_view_text
from proxy.session.catalog.facts_cache import DescribedTable, FactsCache
from proxy.session.consistency.write_fence import LocalWriteLog
from proxy.statements.written_tables import tables_written
from rewriter import Column, TableFacts, TableKind, TableName, ViewText

FAILED = QueryFailed(FailureKind.REJECTED, "no such table", 0.1)
FACTS = TableFacts((Column("ds", "string"),))


def rows(*values: tuple[str, ...]) -> Rows:
    return Rows(tuple(ResultColumn(f"c{i}", "string") for i in range(3)), values, 0.0)


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
    assert facts == TableFacts((Column("id", "int"), Column("ds", "string")), ("ds",), "parquet", TableKind.TABLE)


def with_details(*details: tuple[str, str]) -> TableFacts:
    described = read_description(
        rows(("x", "int", ""), ("# Detailed Table Information", "", ""), *((*d, "") for d in details))
    )
    assert described is not None
    return described


def test_a_table_is_known_to_all_sessions_by_its_catalog_database_and_name() -> None:
    named = ("Catalog", "lake"), ("Database", "shop"), ("Table", "sales")
    assert with_details(*named).full_name == TableName(("lake", "shop", "sales"))
    assert with_details(named[2]).full_name is None, "to its own session alone"
    assert with_details(*named[1:]).full_name == TableName(("spark_catalog", "shop", "sales")), "by Spark 3.3"


def test_a_table_of_spark_3_3_has_the_identity_by_which_its_partitions_are_kept() -> None:
    details = ("Database", "db"), ("Table", "f"), ("Created Time", "Fri Nov 27"), ("Location", "file:/f")
    described = rows(("ds", "string", ""), ("# Detailed Table Information", "", ""), *((*d, "") for d in details))
    assert read_identity(described) == ("f", "db", "spark_catalog", "file:/f", "Fri Nov 27")


def test_a_bucketed_table_says_by_which_columns_and_into_how_many_buckets() -> None:
    described = with_details(("Num Buckets", "8"), ("Bucket Columns", "[`x`, `y`]"), ("Sort Columns", "[`z`]"))
    assert (described.bucket_columns, described.bucket_count) == (("x", "y"), 8)


@pytest.mark.parametrize(
    "details",
    [
        (),
        (("Num Buckets", "many"), ("Bucket Columns", "[]")),
        (("Num Buckets", "0"), ("Bucket Columns", "[`a``, `b`]")),
    ],
)
def test_buckets_that_are_not_understood_are_none(details: tuple[tuple[str, str], ...]) -> None:
    described = with_details(*details)
    assert (described.bucket_columns, described.bucket_count) == ((), None)


def test_a_view_is_no_table() -> None:
    assert with_details(("Type", "VIEW")).kind is TableKind.VIEW
    undetailed = read_description(rows(("id", "int", "")))
    assert undetailed is not None
    assert undetailed.kind is TableKind.VIEW, "a temporary one"


def view_rows(*further: tuple[str, ...], namespace: str = "spark_catalog.sales_db") -> Rows:
    return rows(
        ("id", "int", ""),
        ("day", "string", ""),
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        ("Type", "VIEW", ""),
        ("View Text", "SELECT id, ds\n  FROM f", ""),
        ("View Catalog and Namespace", namespace, ""),
        ("View Query Output Columns", "[`id`, `ds`]", ""),
        *further,
    )


def test_a_views_text_is_read_with_what_its_names_mean() -> None:
    described = read_description(view_rows())
    assert described is not None
    assert described.view == ViewText("SELECT id, ds\n  FROM f", ("spark_catalog", "sales_db"), ("id", "ds"))


@pytest.mark.parametrize(
    "answer",
    [
        view_rows(("SQL Path", "system.builtin, spark_catalog.other", "")),
        view_rows(namespace="spark_catalog.`odd.name`"),
        view_rows(namespace="lake.east.sales"),
        view_rows(namespace=""),
    ],
)
def test_a_view_whose_names_may_mean_something_else_has_no_text(answer: Rows) -> None:
    described = read_description(answer)
    assert described is not None
    assert (described.kind, described.view) == (TableKind.VIEW, None)


@pytest.mark.parametrize("mode", ["EVOLUTION", "TYPE EVOLUTION"])
def test_a_view_that_follows_its_tables_is_not_known_by_the_columns_that_it_had(mode: str) -> None:
    assert read_description(view_rows(("View Schema Mode", mode))) is None
    assert read_description(view_rows(("View Schema Mode", "COMPENSATION"))) == read_description(view_rows())


def view_json(**further: object) -> Rows:
    described = {
        "type": "VIEW",
        "view_text": "SELECT * FROM f",
        "view_catalog_and_namespace": "spark_catalog.default",
        "view_query_output_columns": ["id", "ds"],
    }
    return rows((json.dumps(described | further), "", ""))


def test_a_temporary_views_text_is_read_from_json() -> None:
    found = read_view_text(view_json())
    assert found == ViewText("SELECT * FROM f", ("spark_catalog", "default"), ("id", "ds"), is_temporary=True)


@pytest.mark.parametrize(
    "answer",
    [
        FAILED,
        rows(),
        rows(("no json", "", "")),
        rows(("[]", "", "")),
        rows(("[" * 100_000, "", "")),
        view_json(view_text=None),
        view_json(view_catalog_and_namespace=None),
        view_json(view_query_output_columns=None),
        view_json(sql_path="system.session"),
    ],
)
def test_a_temporary_view_of_which_less_is_said_has_no_text(answer: QueryResult) -> None:
    assert read_view_text(answer) is None


def test_a_description_that_failed_or_has_parts_that_are_not_known_says_nothing() -> None:
    partitioned = ("# Partitioning", "", ""), ("Part 0", "days(ts)", "")
    assert read_description(rows(("id", "int", ""), *partitioned)) is None
    assert read_description(FAILED) is None
    assert read_partitions(FAILED) is None


def test_facts_are_believed_until_they_expire() -> None:
    now = [100.0]
    cache = FactsCache(CatalogSection(facts_ttl_s=10), lambda: now[0], LocalWriteLog())
    cache.add(DescribedTable(TableName(("f",)), FACTS), cache.moment())
    now[0] = 109.9
    assert cache.current() == {TableName(("f",)): FACTS}
    now[0] = 110.0
    assert cache.current() == {}


def test_an_answer_that_was_asked_for_earlier_replaces_none_of_later() -> None:
    """Of another session, whose answer took longer: the table, or the view's text, may be another one by now."""
    now, name = [100.0], TableName(("f",))
    cache = FactsCache(CatalogSection(facts_ttl_s=10), lambda: now[0], LocalWriteLog())
    early = cache.moment()
    now[0] = 101.0
    late = cache.moment()
    cache.add(DescribedTable(name, FACTS), late)
    cache.add(DescribedTable(name, None), early)
    cache.add(DescribedTable(name, None), late.earlier(0.5))
    assert cache.current() == {name: FACTS}
    assert cache.described_since(name, 101.0)
    assert not cache.described_since(name, 101.5)


def test_more_about_a_table_is_not_added_to_a_later_description() -> None:
    now, name = [100.0], TableName(("f",))
    cache = FactsCache(CatalogSection(facts_ttl_s=10), lambda: now[0], LocalWriteLog())
    before = DescribedTable(name, FACTS)
    cache.add(before, cache.moment())
    cache.add_to(before, replace(FACTS, size_bytes=7))
    assert cache.current() == {name: replace(FACTS, size_bytes=7)}
    cache.add_to(before, replace(FACTS, size_bytes=8))
    assert cache.current() == {name: replace(FACTS, size_bytes=7)}


def test_the_oldest_fact_goes_where_there_are_too_many() -> None:
    cache = FactsCache(CatalogSection(tables_max=2), lambda: 0.0, LocalWriteLog())
    for name in "abc":
        cache.add(DescribedTable(TableName((name,)), None), cache.moment())
    assert list(cache.current()) == [TableName(("b",)), TableName(("c",))]


@pytest.mark.parametrize(
    ("statistics", "expected"),
    [("4841 bytes", 4841), ("4841 bytes, 0 rows", 4841), ("0 bytes, 0 rows", 0), ("some bytes", None), ("", None)],
)
def test_the_size_of_a_table_is_read_where_the_server_has_statistics(
    statistics: str, expected: int | None
) -> None:
    assert with_details(("Type", "MANAGED"), ("Statistics", statistics)).size_bytes == expected


def test_a_fact_that_was_asked_for_before_all_were_forgotten_is_not_remembered() -> None:
    cache = FactsCache(CatalogSection(), lambda: 0.0, LocalWriteLog())
    before = cache.moment()
    cache.clear()
    cache.add(DescribedTable(TableName(("t",)), None), before)
    assert not cache.current()


@pytest.mark.parametrize(
    ("sql", "is_kept"),
    [
        ("INSERT INTO t VALUES (1)", True),
        ("ALTER TABLE other ADD COLUMN k INT", True),
        ("ALTER TABLE t ADD IF NOT EXISTS PARTITION (ds = 'a')", True),
        ("ALTER TABLE db.t ADD COLUMN k INT", False),
        ("DROP TABLE IF EXISTS T", False),
        ("ALTER TABLE t CHANGE k l INT", False),
        ("ALTER VIEW t AS SELECT 1 AS k", False),
        ("CREATE OR REPLACE VIEW t AS SELECT 1 AS k", False),
        ("DROP DATABASE db CASCADE", False),
        ("CALL whatever()", False),
    ],
)
@pytest.mark.parametrize("moment", ["while it runs", "after it ran", "asked for while it ran"])
def test_a_table_that_gets_other_columns_in_any_session_is_asked_about_again(
    sql: str,
    is_kept: bool,  # noqa: FBT001 - a parameter of the cases
    moment: str,
) -> None:
    """`EXISTS (SELECT 1 FROM d WHERE d.k = fk)` reads the outer fk until d gets a column of that name."""
    writes, name, tables = LocalWriteLog(), TableName(("t",)), tables_written(sql)
    cache = FactsCache(CatalogSection(), lambda: 0.0, writes)
    assert tables is not None
    before = cache.moment()
    if moment != "asked for while it ran":
        cache.add(DescribedTable(name, FACTS), before)
        assert name in cache.current()
    running = writes.begin(tables)
    if moment == "asked for while it ran":
        before = cache.moment()
    if moment != "while it runs":
        writes.end(running)
    if moment == "asked for while it ran":
        cache.add(DescribedTable(name, FACTS), before)
    assert (name in cache.current()) == is_kept


def test_a_table_whose_columns_orc_finds_by_their_place_is_of_no_known_format() -> None:
    by_place = ("Storage Properties", "[orc.force.positional.evolution=true, serialization.format=1]")
    assert with_details(("Type", "MANAGED"), ("Provider", "orc"), by_place).provider == "orc by position"
