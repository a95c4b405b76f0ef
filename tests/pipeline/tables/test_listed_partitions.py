"""What partitions say of themselves is what each says when it is asked alone."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from pipeline.spark.java import jvm, jvm_session, list_of_scala, texts
from pipeline.tables.listed_partitions import listed_partitions, partition_parser
from pipeline.tables.table import identifier

VALUES = ("a", "2026-01-01", "null", "a b", "a, region=b", "x%y", "é中", "a/b=c", "]", "line\\nbreak", "\\'")
COLUMNS = ["day", "region"]


@pytest.fixture(scope="module")
def partitions(local_spark: SparkSession) -> Iterator[Any]:
    """Java's list of the partitions of a table."""
    local_spark.sql(
        "CREATE TABLE listed (v INT, day STRING, region STRING) USING parquet PARTITIONED BY (day, region)"
    )
    for value in (*(f"'{value}'" for value in VALUES), "NULL"):
        local_spark.sql(f"ALTER TABLE listed ADD PARTITION (day = {value}, region = 'b')")
        local_spark.sql(f"ALTER TABLE listed ADD PARTITION (day = 'c', region = {value})")
    local_spark.sql("ALTER TABLE listed PARTITION (day = 'c', region = 'a') SET LOCATION 'file:/else where/%25'")
    catalog = jvm_session(local_spark).sessionState().catalog()
    nothing = getattr(getattr(jvm(local_spark).scala, "None$"), "MODULE$")
    listed = catalog.listPartitions(identifier(local_spark, "default", "listed"), nothing)
    yield list_of_scala(local_spark, listed)
    local_spark.sql("DROP TABLE listed")


def test_all_together_they_are_listed_as_each_by_itself(
    local_spark: SparkSession, partitions: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = listed_partitions(local_spark, partitions, COLUMNS)
    monkeypatch.setattr("pipeline.tables.listed_partitions.texts", lambda *_: None)
    assert together == listed_partitions(local_spark, partitions, COLUMNS)
    assert len(set(together)) == len(together) == 2 * (len(VALUES) + 1)


def test_plain_ones_need_not_be_asked(local_spark: SparkSession, partitions: Any) -> None:
    said = texts(local_spark, partitions)
    assert said is not None
    told = [place for text in said if (place := partition_parser(COLUMNS)(text)) is not None]
    assert {name for name, _ in told} >= {"day=a/region=b", "day=2026-01-01/region=b"}
    assert dict(told)["day=2026-01-01/region=b"].startswith("file:/")


def test_a_location_that_may_be_an_address_is_asked_for(local_spark: SparkSession, partitions: Any) -> None:
    """Spark 3 says a space as %20, and 4 as it is; what is asked is the same."""
    said = texts(local_spark, partitions)
    assert said is not None
    moved = next(text for text in said if "else" in text)
    assert partition_parser(COLUMNS)(moved) is None
    assert ("day=c/region=a", "file:/else where/%25") in listed_partitions(local_spark, partitions, COLUMNS)


def test_what_could_be_said_of_another_one_is_not_taken(local_spark: SparkSession, partitions: Any) -> None:
    """A null and the text `null`, and a value that goes on as the next column would."""
    said = texts(local_spark, partitions)
    assert said is not None
    unclear = [
        text for text in said if "null" in text.splitlines()[1] or "a, region=b, region" in text.splitlines()[1]
    ]
    assert len(unclear) >= 3
    assert [text for text in unclear if partition_parser(COLUMNS)(text)] == []
