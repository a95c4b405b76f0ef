"""Strings that a reader of files compares wrongly: a condition on them is left to Spark, and no row is lost."""

from collections.abc import Iterator

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
