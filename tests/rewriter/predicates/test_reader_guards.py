"""Keys that a reader of files compares wrongly: a condition on them is left to Spark, and no row is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rewriter import Column, KeySet, TableFacts
from rewriter.domains.consumers import METASTORES
from rewriter.domains.keyset import KeyRanges
from rewriter.predicates.data_columns import bucket_predicate, row_group_predicate
from rewriter.predicates.partition_predicate import Budget, partition_predicate
from rewriter.predicates.predicate import Restriction

CHARS_MAX = 100_000
S = Column("s", "string")

# By UTF-8 bytes they stand in this order, by UTF-16 the last one comes first.
TEXTS = ("\uff46", "\uff5a", "\U0001f600")


def keys_of(*keys: str) -> Restriction:
    return Restriction((S,), KeySet.of(("string",), [(key,) for key in keys]))


def said(restriction: Restriction) -> list[str]:
    """The conditions that say keys to readers of partitions, row groups and buckets."""
    bucketed = TableFacts((S,), bucket_columns=("s",), bucket_count=8)
    by_partition = partition_predicate([restriction], ["s"], Budget(METASTORES["derby"], CHARS_MAX), {})
    by_row_groups = row_group_predicate(restriction, None, CHARS_MAX)
    by_bucket = bucket_predicate(bucketed, restriction, CHARS_MAX)
    assert by_partition is not None
    assert by_row_groups is not None
    return [by_partition.sql, by_row_groups.sql, *([by_bucket] if by_bucket is not None else [])]


ODD = {"wide F": TEXTS[0], "wide Z": TEXTS[1], "smiley": TEXTS[2], "first": "a\ue000", "four bytes": "\U00010000"}


@pytest.mark.parametrize("key", ODD.values(), ids=ODD)
def test_a_text_that_orc_orders_otherwise_is_left_to_spark(key: str) -> None:
    assert all(sql.endswith(" OR length(`s`) < 0)") for sql in said(keys_of("a", key)))
    by_ranges = row_group_predicate(Restriction((S,), KeyRanges("string", (("a", key),))), None, CHARS_MAX)
    assert by_ranges is not None
    assert by_ranges.sql.endswith(" OR length(`s`) < 0)")


@pytest.mark.parametrize("key", ["a", "\u00e9", "\u65e5\u672c", "\ud7ff"], ids=ascii)
def test_a_text_that_orc_orders_as_spark_does_is_not(key: str) -> None:
    assert not any("length" in sql for sql in said(keys_of("a", key)))


@pytest.fixture(scope="module")
def session(local_spark: SparkSession) -> Iterator[SparkSession]:
    rows = ", ".join(f"('{text}')" for text in TEXTS)
    for table, layout in (("texts", "USING orc"), ("parts", "USING parquet PARTITIONED BY (s)")):
        _ = local_spark.sql(f"DROP TABLE IF EXISTS {table}")
        _ = local_spark.sql(f"CREATE TABLE {table} (n INT, s STRING) {layout}")
        _ = local_spark.sql(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ 1, s FROM VALUES {rows} AS t(s)")
    yield local_spark
    for table in ("texts", "parts"):
        _ = local_spark.sql(f"DROP TABLE {table}")


@pytest.mark.parametrize("key", TEXTS, ids=ascii)
def test_spark_finds_each_text_in_orc_in_the_table_itself_and_in_one_that_it_infers_the_condition_for(
    session: SparkSession, key: str
) -> None:
    for condition in said(keys_of(key)):
        assert session.sql(f"SELECT n FROM texts WHERE {condition}").count() == 1
        joined = f"SELECT t.n FROM (SELECT * FROM parts WHERE {condition}) p JOIN texts t ON p.s = t.s"
        assert session.sql(joined).count() == 1


WIDE = Column("k", "decimal(18,2)")


def decimals(count: int, step: int) -> Restriction:
    """500 and others, some of which no file of decimal(5,2) can hold."""
    keys = ["500.00", *(f"{n * step}.00" for n in range(1, count))]
    return Restriction((WIDE,), KeySet.of((WIDE.type_name,), [(key,) for key in keys]))


def test_no_range_is_said_of_decimals_that_may_wrap_around_in_a_narrower_file() -> None:
    many, few = decimals(60, 1_000_000), decimals(3, 1_000_000_000)
    assert row_group_predicate(many, None, CHARS_MAX) is None
    assert "BETWEEN" not in said(few)[1]
    small = row_group_predicate(decimals(60, 1_000), None, CHARS_MAX)
    assert small is not None
    assert "BETWEEN" in small.sql


@pytest.mark.parametrize(("count", "step"), [(3, 900), (9, 10_000_000), (60, 1_000)])
def test_spark_finds_decimals_in_files_of_a_narrower_type(
    local_spark: SparkSession, tmp_path: Path, count: int, step: int
) -> None:
    path = tmp_path / "narrow"
    local_spark.sql("SELECT CAST(k AS DECIMAL(5,2)) AS k FROM VALUES (500), (999.99) AS t(k)").write.parquet(
        str(path)
    )
    _ = local_spark.sql(f"CREATE TABLE narrow (k DECIMAL(18,2)) USING parquet LOCATION '{path}'")
    predicate = row_group_predicate(decimals(count, step), None, CHARS_MAX)
    assert predicate is not None
    found = local_spark.sql(f"SELECT k FROM narrow WHERE {predicate.sql}").collect()
    _ = local_spark.sql("DROP TABLE narrow")
    assert "500.00" in [str(row.k) for row in found]
