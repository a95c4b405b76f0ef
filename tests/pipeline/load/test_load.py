import signal
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from support.loaded_tables import FOUND, TWO_DAYS, answers, held, load_query, quietly
from support.profile import only_deep

import pipeline.index.build
import pipeline.load.load
from pipeline.index.build import index_files
from pipeline.index.index_table import known_rows
from pipeline.load.load import Load, load
from pipeline.load.skew import Skew
from pipeline.load.source import Source
from pipeline.spark.errors import PipelineError
from pipeline.tables.reserved_paths import LOCK
from pipeline.tables.storage import Storage
from pipeline.tables.table import find_table

# Names in letters that differ from those of the index.
DAYS_WITH_AMOUNTS = f"SELECT id AS Id, x, CAST(id / 4 AS DECIMAL(9, 2)) AS amount, ds AS Day FROM ({TWO_DAYS})"


@pytest.fixture(scope="module")
def two_days(local_spark: SparkSession) -> SparkSession:
    """The table `two_days`, loaded with found values."""
    done = load_query(local_spark, "two_days", TWO_DAYS, partition_by=("ds",))
    assert (done.rows, done.files, done.skewed_files, done.indexed_files) == (200, 6, 4, 6)
    return local_spark


def test_each_skewed_value_has_its_own_file_and_partitions_differ_in_them(two_days: SparkSession) -> None:
    files = held(two_days, "two_days", "x", "ds")
    assert files["a"][:2] == [{(10,)}, {(20,)}]
    assert files["b"][:2] == [{(20,)}, {(30,)}]
    for day, skewed in (("a", {(10,), (20,)}), ("b", {(20,), (30,)})):
        [others] = files[day][2:]
        assert (None,) in others
        assert not others & skewed
    assert answers(two_days, "SELECT id, x, ds FROM two_days") == answers(two_days, TWO_DAYS)


def test_the_index_says_what_each_file_holds_and_what_the_others_lack(two_days: SparkSession) -> None:
    rows = known_rows(two_days, "two_days_index", "spark_catalog.default.two_days").collect()
    said = {(row.columns["ds"].low, row.columns["x"].low): row for row in rows}
    alone = {key for key, row in said.items() if not row.lacks}
    assert alone == {("a", "10"), ("a", "20"), ("b", "20"), ("b", "30")}
    others = said["a", "1006"]
    assert others.columns["x"].asDict() == {
        "type": "int",
        "low": "1006",
        "high": "1098",
        "nulls": 10,
        "row_groups": None,
    }
    assert [entry.asDict() for entry in others.lacks] == [{"columns": ["x"], "tuples": [["10"], ["20"]]}]
    assert said["b", "1106"].lacks[0].tuples == [["20"], ["30"]]


@pytest.mark.parametrize("table_format", ["parquet", "orc"])
def test_the_index_has_all_columns_and_the_next_run_knows_the_files(
    local_spark: SparkSession, table_format: str
) -> None:
    name = f"known_{table_format}"
    load_query(local_spark, name, DAYS_WITH_AMOUNTS, partition_by=("Day",), table_format=table_format)
    index = f"{name}_index"
    before = known_rows(local_spark, index, f"spark_catalog.default.{name}").collect()
    for row in before:
        assert set(row.columns) == {"id", "x", "day", "amount"}
        [held] = (
            local_spark.table(name)
            .where(f.col("_metadata.file_path") == row.path)
            .selectExpr("min(Id)", "max(Id)", "count_if(x IS NULL)", "min(amount)")
            .collect()
        )
        found = row.columns
        assert (found["id"].low, found["id"].high) == (str(held[0]), str(held[1]))
        assert (found["x"].nulls, Decimal(found["amount"].low)) == (held[2], held[3])
    assert [bool(row.lacks) for row in before].count(True) == 2
    report = index_files(local_spark, name, index, (), quietly)
    assert (report.known, report.from_footers, report.read) == (len(before), 0, 0)
    assert known_rows(local_spark, index, f"spark_catalog.default.{name}").collect() == before


def test_the_index_has_the_row_groups_of_large_files(
    local_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline.index.build, "READ_WHOLE_BYTES_MAX", 0)
    skew = Skew(("x",), ("1",), None, 0.05, 10)
    load_query(local_spark, "grouped", "SELECT id, CAST(1 AS INT) AS x FROM range(0, 100000, 1, 1)", skew)
    [row] = known_rows(local_spark, "grouped_index", "spark_catalog.default.grouped").collect()
    assert sum(run["count"] for run in row.columns["id"].row_groups) == 5
    assert row.columns["x"].row_groups is None


def test_a_load_whose_files_cannot_be_read_again_keeps_their_skewed_values_in_the_index(
    local_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise PipelineError("storage is away")

    monkeypatch.setattr(pipeline.load.load, "complete_bounds", failing)
    with pytest.raises(PipelineError, match=r"was loaded, .*`starpruner pipeline index`.*storage is away"):
        load_query(local_spark, "half_indexed", TWO_DAYS, partition_by=("ds",))
    monkeypatch.undo()
    report = index_files(local_spark, "half_indexed", "half_indexed_index", (), quietly)
    assert (report.known, report.from_footers + report.read) == (0, 6)
    rows = known_rows(local_spark, "half_indexed_index", "spark_catalog.default.half_indexed").collect()
    assert [len(row.lacks) for row in rows].count(1) == 2


def test_the_index_names_each_file_as_spark_names_it(two_days: SparkSession) -> None:
    rows = known_rows(two_days, "two_days_index", "spark_catalog.default.two_days").collect()
    current = two_days.sql(
        "SELECT _metadata.file_path, _metadata.file_size, unix_millis(_metadata.file_modification_time), count(*) "
        "FROM two_days GROUP BY ALL"
    )
    assert {tuple(row) for row in current.collect()} == {
        (row.path, row.size_bytes, row.modified_ms, row.rows) for row in rows
    }


@pytest.mark.parametrize("source", [Source(table="of_others"), Source(query="SELECT * FROM of_others")])
def test_what_others_wrote_since_the_last_load_is_read(local_spark: SparkSession, source: Source) -> None:
    name = "by_table" if source.table else "by_query"
    _ = local_spark.sql("DROP TABLE IF EXISTS of_others")
    local_spark.range(3).withColumn("ds", f.lit("a")).write.partitionBy("ds").saveAsTable("of_others")
    request = Load(name, source, partition_by=("ds",), skew=replace(FOUND, columns=("id",)))
    assert load(local_spark, request, quietly).rows == 3
    # Past the table's name, as another session of Spark.
    found = find_table(local_spark, "of_others")
    assert found is not None
    local_spark.range(4).write.mode("append").parquet(f"{found.location}/ds=a")
    assert load(local_spark, request, quietly).rows == 7


def test_overwriting_replaces_the_partitions_that_have_rows_and_their_index(local_spark: SparkSession) -> None:
    load_query(local_spark, "daily", TWO_DAYS, partition_by=("ds",))
    again = "SELECT CAST(id AS INT) AS id, 7 AS x, 'b' AS ds FROM range(5)"
    done = load_query(local_spark, "daily", again, overwrite=True)
    assert (done.files, done.replaced_files) == (1, 3)
    expected = answers(local_spark, f"SELECT * FROM ({TWO_DAYS}) WHERE ds = 'a'") + answers(local_spark, again)
    assert answers(local_spark, "SELECT id, x, ds FROM daily") == expected
    rows = known_rows(local_spark, "daily_index", "spark_catalog.default.daily")
    assert {row[0] for row in rows.select("path").collect()} == {
        row[0] for row in local_spark.sql("SELECT DISTINCT _metadata.file_path FROM daily").collect()
    }


TUPLES = """
SELECT CAST(id AS BIGINT) AS id,
    CAST(element_at(array(10, 10, 20, 20, 10), CAST(1 + id % 5 AS INT)) AS DECIMAL(4, 1)) AS x,
    element_at(array('a', 'b,', 'c', NULL, 'c'), CAST(1 + id % 5 AS INT)) AS y, map('k', id) AS m
FROM range(100)"""


def test_tuples_given_by_the_user_have_files_of_their_own_in_an_orc_table(local_spark: SparkSession) -> None:
    skew = Skew(("Y", "x"), ("a,10", '"b,", 10.0', '"b,",10', "c,20", "none,10"), None, 0.05, values_max=5)
    done = load_query(local_spark, "tuples", TUPLES, skew, table_format="orc")
    assert (done.files, done.skewed_files) == (4, 3)
    found = held(local_spark, "tuples", "CAST(x AS INT), y")["all"]
    assert found == [{(10, "a")}, {(10, "b,")}, {(20, "c")}, {(10, "c"), (20, None)}]
    rows = known_rows(local_spark, "tuples_index", "spark_catalog.default.tuples").collect()
    [others] = [row for row in rows if row.lacks]
    assert [entry.asDict() for entry in others.lacks] == [
        {"columns": ["y", "x"], "tuples": [["a", "10.0"], ["b,", "10.0"], ["c", "20.0"]]}
    ]
    assert answers(local_spark, "SELECT id, x, y FROM tuples") == answers(
        local_spark, f"SELECT id, x, y FROM ({TUPLES})"
    )


WITH_NULLS = """
SELECT CAST(id AS INT) AS id, IF(id % 2 = 0, NULL, IF(id % 3 = 0, 30, CAST(1000 + id AS INT))) AS x,
    IF(id < 100, 'a', 'b') AS ds FROM range(200)"""


@pytest.mark.parametrize(
    ("name", "skew", "files"),
    [
        ("nulls_and_one", Skew(("x",), ("30",), None, 0.05, 10, nulls=True), 6),
        ("nulls_and_found", Skew(("x",), (), 1, 0.05, 10, nulls=True), 6),
        ("nulls_alone", Skew(("x",), (), 0, 0.05, 10, nulls=True), 4),
    ],
)
def test_nulls_have_files_of_their_own_where_that_is_asked_for(
    local_spark: SparkSession, name: str, skew: Skew, files: int
) -> None:
    done = load_query(local_spark, name, WITH_NULLS, skew, partition_by=("ds",))
    assert (done.rows, done.files, done.skewed_files) == (200, files, files - 2)
    for values in held(local_spark, name, "x", "ds").values():
        assert {(None,)} in values
        assert sum((None,) in held_together for held_together in values) == 1
    assert answers(local_spark, f"SELECT id, x, ds FROM {name}") == answers(local_spark, WITH_NULLS)
    rows = known_rows(local_spark, f"{name}_index", f"spark_catalog.default.{name}").collect()
    known = [(row.columns["x"].low, row.columns["x"].nulls, row.rows) for row in rows]
    assert sorted(nulls for _, nulls, _ in known) == [0] * (files - 2) + [50, 50]
    assert [(low, rows) for low, nulls, rows in known if nulls] == [(None, 50), (None, 50)]


def test_nulls_of_tuples_have_no_files_of_their_own(local_spark: SparkSession) -> None:
    skew = Skew(("x", "id"), (), 1, 0.05, 10, nulls=True)
    with pytest.raises(PipelineError, match="nulls can have files of their own where one column is skewed"):
        load_query(local_spark, "null_tuples", WITH_NULLS, skew)


ODD_VALUES = (
    "'%41'",
    "'a/b'",
    "'two words'",
    "'żółw ✓'",
    "'it''s=\"1\"'",
    "'{x}[y]$${z}'",
    "''",
    "NULL",
    "'plain'",
)
ODD_PARTITIONS = f"""
SELECT CAST(id AS INT) AS id, CAST(id % 2 AS INT) AS x, p, IF(p = 'plain', NULL, 5) AS n
FROM range(4) CROSS JOIN VALUES {", ".join(f"({value})" for value in ODD_VALUES)} AS odd(p)"""


def test_partitions_may_have_any_value_and_be_loaded_again(local_spark: SparkSession) -> None:
    skew = Skew(("x",), ("1",), None, 0.05, 10)
    load_query(local_spark, "odd", ODD_PARTITIONS, skew, partition_by=("p", "n"))
    done = load_query(local_spark, "odd", ODD_PARTITIONS, skew)
    # The empty string is null as a partition, with Spark's own INSERT too.
    assert done.files == 2 * (len(ODD_VALUES) - 1)
    local_spark.sql(f"INSERT INTO odd {ODD_PARTITIONS}")
    stored = answers(local_spark, f"SELECT id, x, nullif(p, ''), n FROM ({ODD_PARTITIONS})")
    assert answers(local_spark, "SELECT id, x, p, n FROM odd") == stored + stored + stored
    indexed = known_rows(local_spark, "odd_index", "spark_catalog.default.odd").select("path").collect()
    paths = {row[0] for row in local_spark.sql("SELECT DISTINCT _metadata.file_path FROM odd").collect()}
    assert len(indexed) == 2 * done.files
    assert {row[0] for row in indexed} <= paths


WIDE = """
SELECT CAST(id AS INT) AS id, CAST(IF(id % 5 = 0, id, 1) AS INT) AS x, sha2(CAST(id AS STRING), 256) AS text
FROM range(20000)"""


def test_files_stay_within_the_target_size(local_spark: SparkSession) -> None:
    skew = Skew(("x",), ("1",), None, 0.05, 10)
    done = load_query(local_spark, "sized", WIDE, skew, file_bytes=200_000)
    rows = known_rows(local_spark, "sized_index", "spark_catalog.default.sized").collect()
    assert done.skewed_files > 3
    assert max(row.size_bytes for row in rows) <= 200_000
    assert sum(row.size_bytes for row in rows) > 200_000 * done.files / 3
    assert local_spark.table("sized").count() == 20_000


def test_a_load_that_fails_leaves_no_table_that_was_not_there(local_spark: SparkSession) -> None:
    def failing(message: str) -> None:
        if message.startswith("Publishing"):
            raise RuntimeError(message)

    with pytest.raises(RuntimeError):
        load(local_spark, Load("never", Source(query=TWO_DAYS), FOUND), failing)
    assert find_table(local_spark, "never") is None


def test_files_of_csv_are_read_with_the_types_of_the_table(local_spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,x,day\n1,true,2024-02-29\n2,,1999-12-31\n3,true,\n")
    local_spark.sql("CREATE TABLE from_csv (id SMALLINT, x BOOLEAN, day DATE) USING parquet")
    source = Source(path=str(tmp_path / "in.csv"), format="csv")
    skew = Skew(("x", "day"), (), 1, 0.05, 10)
    assert load(local_spark, Load("from_csv", source, skew), quietly).files == 2
    expected = "VALUES (1S, true, DATE'2024-02-29'), (2S, NULL, DATE'1999-12-31'), (3S, true, NULL)"
    assert answers(local_spark, "TABLE from_csv") == answers(local_spark, expected)


KILLED = """
import os, signal, sys
from pyspark.sql import SparkSession
from pipeline.load.load import Load, load
from pipeline.load.skew import Skew
from pipeline.load.source import Source

directory, stage = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config("spark.driver.memory", "1g").getOrCreate()
spark.sql(f"CREATE TABLE t (id INT, x INT) USING parquet LOCATION '{directory}'")

def killing(message):
    if message.startswith(stage):
        os.kill(os.getpid(), signal.SIGKILL)

rows = Source(query="SELECT CAST(id AS INT) AS id, 1 AS x FROM range(9)")
load(spark, Load("t", rows, Skew(("x",), ("1",), None, 0.1, 9)), killing)
"""


@only_deep("starts Spark in a process of its own, and kills it")
@pytest.mark.parametrize("stage", ["Writing", "Checking", "Publishing"])
def test_a_killed_load_leaves_the_table_as_it_was_and_can_be_run_again(
    local_spark: SparkSession, tmp_path: Path, stage: str
) -> None:
    directory = tmp_path / "table"
    name = f"killed_{stage}"
    local_spark.sql(f"CREATE TABLE {name} (id INT, x INT) USING parquet LOCATION '{directory}'")
    local_spark.sql(f"INSERT INTO {name} VALUES (100, 5)")
    process = subprocess.run([sys.executable, "-c", KILLED, str(directory), stage], cwd=tmp_path, check=False)
    assert process.returncode == -signal.SIGKILL
    local_spark.catalog.refreshTable(name)
    assert local_spark.table(name).collect() == [(100, 5)]
    table = find_table(local_spark, name)
    assert table is not None
    assert Storage(local_spark, table.location).exists(LOCK)
    load_query(local_spark, name, "SELECT 200 AS id, 1 AS x")
    assert sorted(local_spark.table(name).collect()) == [(100, 5), (200, 1)]
    assert not [entry.name for entry in (directory / ".starpruner").iterdir() if entry.name[0] != "."]


def test_a_partition_with_a_location_of_its_own_is_refused_and_nothing_is_left(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    local_spark.sql("CREATE TABLE elsewhere (id INT, x INT, ds STRING) USING parquet PARTITIONED BY (ds)")
    local_spark.sql(f"ALTER TABLE elsewhere ADD PARTITION (ds = 'a') LOCATION '{tmp_path}'")
    with pytest.raises(PipelineError, match="ds=a has a LOCATION of its own"):
        load_query(local_spark, "elsewhere", "SELECT 1 AS id, 1 AS x, 'a' AS ds")
    assert local_spark.table("elsewhere").count() == 0
