from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from pipeline.index.index_table import create_if_needed, known_rows, replace_rows
from pipeline.index.known_files import indexed_file
from pipeline.index.row_groups import RowGroupRun
from pipeline.index.rows import INDEX_COLUMNS, FileColumnBounds, IndexedFile, LacksEntry, as_frame, bounds
from pipeline.index.texts import key_text

TABLE = "spark_catalog.default.sales"


def indexed(path: str, size_bytes: int = 10) -> IndexedFile:
    columns = {"x": FileColumnBounds("int", "1", "9", 0), "s": FileColumnBounds("string", None, None, 3)}
    lacks = (LacksEntry(("x", "s"), (("10", "a"), ("20", "c"))),)
    return IndexedFile(path, size_bytes, 1_700_000_000_000, 7, columns, lacks, datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def index(local_spark: SparkSession) -> str:
    local_spark.sql("DROP TABLE IF EXISTS file_index")
    create_if_needed(local_spark, "file_index")
    create_if_needed(local_spark, "file_index")
    return "file_index"


def sizes(spark: SparkSession, index: str, table: str) -> dict[str, int]:
    return {row.path: row.size_bytes for row in known_rows(spark, index, table).collect()}


def test_rows_are_added_replaced_and_removed_for_one_table_alone(local_spark: SparkSession, index: str) -> None:
    other = "spark_catalog.default.visits"
    replace_rows(local_spark, index, other, [], as_frame(local_spark, [indexed("file:/v")]))
    replace_rows(local_spark, index, TABLE, [], as_frame(local_spark, map(indexed, ["file:/a", "file:/b"])))
    added = as_frame(local_spark, [indexed("file:/b", 20), indexed("file:/c")])
    replace_rows(local_spark, index, TABLE, ["file:/a", "file:/none"], added)
    assert sizes(local_spark, index, TABLE) == {"file:/b": 20, "file:/c": 10}
    assert sizes(local_spark, index, other) == {"file:/v": 10}


def test_a_row_says_in_sql_what_was_put_in(local_spark: SparkSession, index: str) -> None:
    replace_rows(local_spark, index, TABLE, [], as_frame(local_spark, [indexed("file:/a")]))
    [row] = (
        known_rows(local_spark, index, TABLE).selectExpr("rows", "to_json(columns)", "to_json(lacks)").collect()
    )
    assert tuple(row) == (
        7,
        '{"x":{"type":"int","low":"1","high":"9","nulls":0},"s":{"type":"string","nulls":3}}',
        '[{"columns":["x","s"],"tuples":[["10","a"],["20","c"]]}]',
    )


def test_row_groups_are_a_part_of_a_columns_bounds(local_spark: SparkSession, index: str) -> None:
    bounds_of_x = FileColumnBounds("int", "1", "9", 0, (RowGroupRun("1", "4", 2, 2), RowGroupRun("5", "9", 2, 1)))
    file = replace(indexed("file:/a"), columns={"x": bounds_of_x})
    replace_rows(local_spark, index, TABLE, [], as_frame(local_spark, [file]))
    [row] = known_rows(local_spark, index, TABLE).collect()
    assert indexed_file(row).columns == file.columns
    [(text,)] = known_rows(local_spark, index, TABLE).selectExpr("to_json(columns)").collect()
    assert '"row_groups":[{"low":"1","high":"4","count":2,"steps":2}' in text


def test_an_index_of_an_earlier_version_goes_on_without_row_groups(local_spark: SparkSession) -> None:
    local_spark.sql("DROP TABLE IF EXISTS old_index")
    runs = ", row_groups: ARRAY<STRUCT<low: STRING, high: STRING, count: BIGINT, steps: BIGINT>>"
    columns = " ".join(INDEX_COLUMNS.split())
    assert runs in columns
    local_spark.sql(
        f"CREATE TABLE old_index ({columns.replace(runs, '')}, table_name STRING) USING parquet "
        f"PARTITIONED BY (table_name)"
    )
    create_if_needed(local_spark, "old_index")
    file = replace(
        indexed("file:/a"), columns={"x": FileColumnBounds("int", "1", "9", 0, (RowGroupRun("1", "4", 2, 2),))}
    )
    for added in (file, replace(file, path="file:/b")):
        replace_rows(local_spark, "old_index", TABLE, [], as_frame(local_spark, [added]))
    rows = known_rows(local_spark, "old_index", TABLE).collect()
    assert [indexed_file(row).columns["x"] for row in rows] == [FileColumnBounds("int", "1", "9", 0)] * 2
    local_spark.sql("DROP TABLE old_index")


def test_the_last_row_of_a_table_can_be_removed(local_spark: SparkSession, index: str) -> None:
    replace_rows(local_spark, index, TABLE, [], as_frame(local_spark, [indexed("file:/a")]))
    replace_rows(local_spark, index, TABLE, ["file:/a"], as_frame(local_spark, []))
    assert sizes(local_spark, index, TABLE) == {}


@pytest.mark.parametrize(
    ("type_name", "text", "written"),
    [
        ("decimal(10,8)", "1E-7", "0.0000001"),
        ("decimal(10,2)", "-1.50", "-1.50"),
        ("date", "2024-02-29", "2024-02-29"),
        ("date", "+10000-01-01", None),
        ("string", "a" * 256, "a" * 256),
        ("string", "a" * 257, None),
        ("string", "line\nbreak", None),
        ("string", "\ufffd", None),
        ("bigint", "-5", "-5"),
    ],
)
def test_a_value_that_the_proxy_could_misread_is_no_bound(type_name: str, text: str, written: str | None) -> None:
    assert key_text(type_name, text) == written


def test_a_column_has_both_bounds_or_none() -> None:
    assert bounds("string", "a", "z" * 300, 1) == FileColumnBounds("string", None, None, 1)
