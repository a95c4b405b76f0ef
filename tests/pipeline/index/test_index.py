"""`starpruner pipeline index` on tables of every kind, with real Spark."""

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TypeAlias

import pytest
from pyspark.sql import SparkSession

import pipeline.index.build
from pipeline.index.build import IndexReport, index_files
from pipeline.index.file_listing import comparable_path
from pipeline.index.index_table import known_rows, replace_rows
from pipeline.index.rows import FileColumnBounds, IndexedFile, LacksEntry, as_frame
from pipeline.spark.errors import PipelineError

NUMBERS = count()

# A column's low, high and nulls.
Said: TypeAlias = tuple[str | None, str | None, int | None]
NOTHING: Said = (None, None, None)


def ignored(_: str) -> None:
    """Progress that nobody watches."""


@pytest.fixture
def index(local_spark: SparkSession) -> Iterator[str]:
    name = f"default.file_index_{next(NUMBERS)}"
    yield name
    local_spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def table(local_spark: SparkSession) -> Iterator[str]:
    name = f"default.indexed_{next(NUMBERS)}"
    yield name
    local_spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.fixture
def by_footers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of tests are small, and small files are read."""
    monkeypatch.setattr(pipeline.index.build, "READ_WHOLE_BYTES_MAX", 0)


def refreshed(spark: SparkSession, table: str, index: str, *columns: str) -> IndexReport:
    return index_files(spark, table, index, columns, ignored)


def counts(report: IndexReport) -> tuple[int, int, int]:
    """Files that were known, that were looked at, and that are gone."""
    return report.known, report.from_footers + report.read, report.gone


def said(spark: SparkSession, table: str, index: str) -> list[dict[str, Said]]:
    """What the index says of the columns of each file, by path."""
    rows = known_rows(spark, index, f"spark_catalog.{table}").orderBy("path").collect()
    return [
        {name: (known.low, known.high, known.nulls) for name, known in sorted(row["columns"].items())}
        for row in rows
    ]


def files_of(spark: SparkSession, table: str) -> list[Path]:
    return sorted(Path(path.removeprefix("file://")) for path in spark.table(table).inputFiles())


def written_again(target: Path, source: Path) -> None:
    """Another file under the same name; the checksum beside it belonged to the first."""
    (target.parent / f".{target.name}.crc").unlink(missing_ok=True)
    shutil.copyfile(source, target)


def test_a_run_looks_only_at_files_that_are_new_or_changed(
    local_spark: SparkSession, table: str, index: str, tmp_path: Path
) -> None:
    def insert(partition: int, rows: str) -> None:
        local_spark.sql(f"INSERT INTO {table} SELECT id, {partition} FROM {rows}")

    local_spark.sql(
        f"CREATE TABLE {table} (x BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '{tmp_path}'"
    )
    insert(1, "range(10)")
    insert(2, "range(10, 20)")
    assert counts(refreshed(local_spark, table, index)) == (0, 2, 0)
    assert said(local_spark, table, index) == [
        {"p": ("1", "1", 0), "x": ("0", "9", 0)},
        {"p": ("2", "2", 0), "x": ("10", "19", 0)},
    ]
    assert counts(refreshed(local_spark, table, index)) == (2, 0, 0)
    # Written again under its name, gone with its partition, and one that came.
    first, second = files_of(local_spark, table)
    insert(3, "range(30, 45)")
    written_again(first, files_of(local_spark, table)[2])
    second.unlink()
    assert counts(refreshed(local_spark, table, index)) == (0, 2, 1)
    assert said(local_spark, table, index) == [
        {"p": ("1", "1", 0), "x": ("30", "44", 0)},
        {"p": ("3", "3", 0), "x": ("30", "44", 0)},
    ]
    # What is recreated has files of its own, and may have other types.
    local_spark.sql(f"DROP TABLE {table}")
    shutil.rmtree(tmp_path)
    local_spark.sql(f"CREATE TABLE {table} USING orc LOCATION '{tmp_path}' AS SELECT 'a' AS x FROM range(3)")
    assert counts(refreshed(local_spark, table, index)) == (0, 1, 2)
    assert said(local_spark, table, index) == [{"x": ("a", "a", 0)}]


@pytest.mark.usefixtures("by_footers_alone")
def test_special_paths_and_null_partitions_are_named_as_spark_names_them(
    local_spark: SparkSession, table: str, index: str
) -> None:
    values = "VALUES ('a b%c/', 1), ('Zürich=?', 2), (NULL, NULL) AS v(p, x)"
    local_spark.sql(f"CREATE TABLE {table} USING parquet PARTITIONED BY (p) AS SELECT x, p FROM {values}")
    report = refreshed(local_spark, table, index)
    assert (report.from_footers, report.read) == (3, 0)
    rows = known_rows(local_spark, index, f"spark_catalog.{table}").collect()
    spelled = local_spark.table(table).select("_metadata.file_path").collect()
    assert {row.path for row in rows} == {row.file_path for row in spelled}
    assert {(known["p"], known["x"]) for known in said(local_spark, table, index)} == {
        (("a b%c/", "a b%c/", 0), ("1", "1", 0)),
        (("Zürich=?", "Zürich=?", 0), ("2", "2", 0)),
        ((None, None, 1), (None, None, 1)),
    }
    assert counts(refreshed(local_spark, table, index)) == (3, 0, 0)


@pytest.fixture(params=["by footers", "read whole"])
def by_either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        pipeline.index.build, "READ_WHOLE_BYTES_MAX", 0 if request.param == "by footers" else 1 << 20
    )


@pytest.mark.usefixtures("by_either_way")
@pytest.mark.parametrize("provider", ["parquet", "orc"])
def test_what_is_not_in_a_file_by_name_and_type_is_read_or_left_unknown(
    local_spark: SparkSession, table: str, index: str, tmp_path: Path, provider: str
) -> None:
    folder = tmp_path / "f"
    # As Spark 4 has it; Spark 3 writes no such day.
    local_spark.conf.set("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
    older = local_spark.sql(
        "SELECT 1 AS narrow, 2 AS Lettered, DATE'1500-01-01' AS old, CAST(NULL AS INT) AS empty"
    )
    older.write.format(provider).save(str(folder))
    # Spark 3 reads no INT as a BIGINT.
    widened = "BIGINT" if local_spark.version >= "4" else "INT"
    columns = f"narrow {widened}, lettered INT, old DATE, empty INT"
    local_spark.sql(f"CREATE TABLE {table} ({columns}) USING {provider} LOCATION '{folder}'")
    local_spark.sql(f"ALTER TABLE {table} ADD COLUMNS (missing INT)")
    local_spark.sql(f"ALTER TABLE {table} ADD COLUMNS (defaulted INT DEFAULT 7)")
    refreshed(local_spark, table, index)
    assert said(local_spark, table, index) == [
        {
            "narrow": ("1", "1", 0),
            # A session that minds the case of names reads nulls here, and others 2.
            "lettered": NOTHING,
            # How a day of the old calendar is read is a setting, unless the file says who wrote it.
            "old": (None, None, 0),
            "empty": (None, None, 1),
            # A table that is made anew over the file may say another default.
            "missing": NOTHING,
            "defaulted": NOTHING,
        }
    ]
    assert counts(refreshed(local_spark, table, index)) == (1, 0, 0)


def test_of_orc_columns_by_position_nothing_is_said(
    local_spark: SparkSession, table: str, index: str, tmp_path: Path
) -> None:
    local_spark.sql("SELECT 1 AS _col0, 2 AS _col1").write.orc(str(tmp_path / "f"))
    local_spark.sql(f"CREATE TABLE {table} (x INT, _col1 INT) USING orc LOCATION '{tmp_path / 'f'}'")
    refreshed(local_spark, table, index)
    assert said(local_spark, table, index) == [{"x": NOTHING, "_col1": NOTHING}]


def test_what_a_load_said_stays_as_more_columns_are_indexed(
    local_spark: SparkSession, table: str, index: str
) -> None:
    local_spark.sql(f"CREATE TABLE {table} USING parquet AS SELECT 50 AS x, 'b' AS y")
    refreshed(local_spark, table, index, "X")
    [row] = known_rows(local_spark, index, f"spark_catalog.{table}").collect()
    columns = {"x": FileColumnBounds("int", "50", "50", 0), "z": FileColumnBounds("int", "1", "1", 0)}
    lacks = (LacksEntry(("x",), (("10",), ("20",))),)
    loaded = IndexedFile(row.path, row.size_bytes, row.modified_ms, 1, columns, lacks)
    replace_rows(local_spark, index, f"spark_catalog.{table}", [], as_frame(local_spark, [loaded]))
    assert counts(refreshed(local_spark, table, index)) == (0, 1, 0)
    assert said(local_spark, table, index) == [{"x": ("50", "50", 0), "y": ("b", "b", 0), "z": ("1", "1", 0)}]
    [row] = known_rows(local_spark, index, f"spark_catalog.{table}").collect()
    assert [(list(entry.columns), list(entry.tuples)) for entry in row.lacks] == [(["x"], [["10"], ["20"]])]
    assert counts(refreshed(local_spark, table, index)) == (1, 0, 0)


def test_a_run_that_was_killed_has_done_what_it_has_done(
    local_spark: SparkSession, table: str, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_spark.sql(
        f"CREATE TABLE {table} USING parquet PARTITIONED BY (p) AS SELECT id AS x, id AS p FROM range(3)"
    )
    monkeypatch.setattr(pipeline.index.build, "BATCH_FILES", 1)

    def killed(message: str) -> None:
        if "1 of 3" in message:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index_files(local_spark, table, index, (), killed)
    assert len(said(local_spark, table, index)) == 1
    assert counts(refreshed(local_spark, table, index)) == (1, 2, 0)
    assert [known["x"] for known in said(local_spark, table, index)] == [(f"{n}", f"{n}", 0) for n in range(3)]


def test_a_file_of_this_second_waits_where_times_are_whole_seconds(
    local_spark: SparkSession, table: str, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_spark.sql(f"CREATE TABLE {table} USING parquet AS SELECT 1 AS x")
    # To whoever takes every time for one of whole seconds, and an hour for a moment.
    monkeypatch.setattr(pipeline.index.build, "_COARSE_MS", 1)
    monkeypatch.setattr(pipeline.index.build, "_SETTLED_MS", 3_600_000)
    report = refreshed(local_spark, table, index)
    assert (counts(report), report.unsettled) == ((0, 0, 0), 1)
    assert "1 changing and left to the next run" in str(report)


def test_an_index_takes_no_more_files_than_the_proxy(
    local_spark: SparkSession, table: str, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_spark.sql(
        f"CREATE TABLE {table} USING parquet PARTITIONED BY (p) AS SELECT id AS x, id AS p FROM range(3)"
    )
    monkeypatch.setattr(pipeline.index.build, "FILES_MAX", 2)
    assert counts(refreshed(local_spark, table, index)) == (0, 2, 0)
    report = refreshed(local_spark, table, index)
    assert (counts(report), report.is_full) == ((2, 0, 0), True)


def test_what_cannot_be_indexed_is_said_at_once(local_spark: SparkSession, table: str, index: str) -> None:
    def refusal(of: str, into: str = index, columns: tuple[str, ...] = ()) -> str:
        with pytest.raises(PipelineError) as raised:
            index_files(local_spark, of, into, columns, ignored)
        return str(raised.value)

    local_spark.sql(f"CREATE TABLE {table} (x INT, price DOUBLE, code CHAR(3)) USING parquet")
    local_spark.sql(f"CREATE TABLE {table}_text USING csv AS SELECT 1 AS x")
    local_spark.sql(f"CREATE OR REPLACE VIEW {table}_seen AS SELECT * FROM {table}")
    option = "orc.force.positional.evolution"
    local_spark.sql(f"CREATE TABLE {table}_by_place (x INT) USING orc OPTIONS ('{option}' = 'true')")
    assert f"{option} finds columns by their place in a file" in refusal(f"{table}_by_place")
    assert "there is no such table" in refusal("default.nowhere")
    assert "is a view; name the table that it reads" in refusal(f"{table}_seen")
    assert "is a table of format csv; expected one of parquet, orc" in refusal(f"{table}_text")
    assert f"{table} has no column z; it has x, price" in refusal(table, columns=("z",))
    assert "Price cannot be indexed: values of double are not compared" in refusal(table, columns=("x", "Price"))
    assert "code cannot be indexed: values of char(3) are not compared" in refusal(table, columns=("code",))
    assert "the index cannot be made" in refusal(table, into="no_database.file_index")
    assert "is a table of another kind" in refusal(table, into=table)


def test_a_path_is_found_in_either_spelling() -> None:
    assert comparable_path("file:///a/b") == comparable_path("file:/a/b")
    assert comparable_path("hdfs://host/a") != comparable_path("hdfs://other/a")
