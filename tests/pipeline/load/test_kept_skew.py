"""Loads of a table whose properties keep its skewed columns and values."""

from dataclasses import replace

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession
from support.loaded_tables import FOUND, TWO_DAYS, answers, held, load_query

from pipeline.cli import pipeline
from pipeline.index.build import index_files
from pipeline.index.index_table import known_rows
from pipeline.load.kept_skew import completed
from pipeline.load.skew import Skew
from pipeline.spark.errors import PipelineError
from pipeline.tables.table import Table
from rewriter.catalog.skewed_by import COLUMNS_PROPERTY, OWN_FILES_PROPERTY, SkewedBy

UNSAID = replace(FOUND, columns=(), top=None)


def table(kept: SkewedBy | None, **properties: str) -> Table:
    return Table(
        ("spark_catalog", "default", "t"),
        "parquet",
        "file:/t",
        {"x": "int", "y": "string"},
        (),
        tracks_partitions=False,
        options={},
        properties={**(kept.properties() if kept is not None else {}), **properties},
    )


KEPT = SkewedBy(("x", "y"), (("10", "a"), ("20", "b, c")))


def test_a_load_that_says_nothing_takes_columns_and_values_of_the_table() -> None:
    assert completed(UNSAID, table(KEPT), "t") == replace(
        UNSAID, columns=("x", "y"), values=('"10","a"', '"20","b, c"')
    )
    single = SkewedBy(("y",), (("a, b",), ("",)))
    assert completed(UNSAID, table(single), "t") == replace(UNSAID, columns=("y",), values=("a, b", ""))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (FOUND, FOUND),
        (replace(UNSAID, columns=("y",)), replace(UNSAID, columns=("y",))),
        (replace(UNSAID, values=("1,a",)), replace(UNSAID, columns=("x", "y"), values=("1,a",))),
        (replace(UNSAID, top=3), replace(UNSAID, columns=("x", "y"), top=3)),
    ],
)
def test_an_option_that_is_given_wins(given: Skew, expected: Skew) -> None:
    assert completed(given, table(KEPT), "t") == expected


def test_null_among_the_values_of_one_column_is_one_of_them() -> None:
    kept = SkewedBy(("x",), (("30",), (None,)))
    assert completed(UNSAID, table(kept), "t") == replace(UNSAID, columns=("x",), values=("30",), nulls=True)
    alone = completed(UNSAID, table(SkewedBy(("x",), ((None,),))), "t")
    assert alone == replace(UNSAID, columns=("x",), top=0, nulls=True)


def test_columns_without_values_have_their_values_found() -> None:
    assert completed(UNSAID, table(SkewedBy(("x",), ())), "t") == replace(UNSAID, columns=("x",))


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (None, "t has no skewed columns .*: name them with --skewed-by"),
        (table(None), "t has no skewed columns .*: name them with --skewed-by"),
        (table(None, **{COLUMNS_PROPERTY: "x"}), "cannot be read: starpruner.skewed.by is no JSON"),
        (table(KEPT, **{OWN_FILES_PROPERTY: "false"}), "t is NOT STORED AS DIRECTORIES"),
        (table(SkewedBy(("x", "y"), (("1", None),))), "t has a null in a skewed tuple"),
    ],
)
def test_a_load_that_cannot_know_its_skewed_columns_is_refused(kept: Table | None, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        completed(UNSAID, kept, "t")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--skewed-by", " ,"), "--skewed-by names no column"),
        (("--skewed-by", "x", "--skewed-value", "1", "--top", "3"), "expected one of --skewed-value"),
    ],
)
def test_options_that_contradict_each_other_are_refused(arguments: tuple[str, ...], message: str) -> None:
    answer = CliRunner().invoke(pipeline, ["load", "--table", "t", "--query", "q", *arguments])
    assert answer.exit_code == 2
    assert message in answer.output


def test_values_of_the_table_get_files_of_their_own_in_each_load(local_spark: SparkSession) -> None:
    properties = SkewedBy(("X",), (("20",), ("1006",))).properties()
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    local_spark.sql(
        f"CREATE TABLE once_said (id INT, x INT, ds STRING) USING parquet PARTITIONED BY (ds) "
        f"TBLPROPERTIES ({listed})"
    )
    done = load_query(local_spark, "once_said", TWO_DAYS, UNSAID)
    assert (done.files, done.skewed_files) == (5, 3)
    files = held(local_spark, "once_said", "x", "ds")
    assert files["a"][:2] == [{(1006,)}, {(20,)}]
    assert files["b"][0] == {(20,)}
    again = load_query(
        local_spark, "once_said", "SELECT CAST(id AS INT) AS id, 20 AS x, 'c' AS ds FROM range(3)", UNSAID
    )
    assert (again.files, again.skewed_files) == (1, 1)
    assert sum(answers(local_spark, "TABLE once_said").values()) == 203


def test_values_of_the_table_that_do_not_fit_its_columns_are_refused(local_spark: SparkSession) -> None:
    properties = SkewedBy(("x",), (("ten",),)).properties()
    listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    local_spark.sql(f"CREATE TABLE wrongly_said (x INT) USING parquet TBLPROPERTIES ({listed})")
    with pytest.raises(PipelineError, match=r"skewed value 'ten' cannot be read as \(x int\)"):
        load_query(local_spark, "wrongly_said", "SELECT 1 AS x", UNSAID)


def test_skewed_columns_are_indexed_beside_those_that_are_named(local_spark: SparkSession) -> None:
    local_spark.sql(
        f"CREATE TABLE named_once (a INT, b INT, c INT) USING parquet "
        f"TBLPROPERTIES ('{COLUMNS_PROPERTY}' = '[\"B\", \"gone\"]')"
    )
    local_spark.sql("INSERT INTO named_once VALUES (1, 2, 3)")
    index_files(local_spark, "named_once", "named_once_index", ["a"], lambda _: None)
    [row] = known_rows(local_spark, "named_once_index", "spark_catalog.default.named_once").collect()
    assert set(row.columns) == {"a", "b"}
