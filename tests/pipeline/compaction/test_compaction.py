"""`starpruner pipeline compact` on tables of Spark's own, while others read and write."""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession
from support.loaded_tables import TWO_DAYS, answers, held, load_query, quietly

from pipeline.compaction.compaction import Compacted, Compaction, compact, plan_compaction
from pipeline.compaction.plan import Limits
from pipeline.index.index_table import known_rows
from pipeline.spark.errors import PipelineError
from pipeline.tables.storage import Storage

AT_ONCE: dict[str, Any] = {"limits": Limits(files_min=2), "grace_s": 0, "keep_s": 0}


def compacted(
    spark: SparkSession, table: str, progress: Callable[[str], None] = quietly, **others: Any
) -> Compacted:
    return compact(spark, Compaction(table, **{**AT_ONCE, **others}), progress)


def made(spark: SparkSession, table: str, definition: str, inserts: list[str]) -> None:
    spark.sql(f"CREATE TABLE {table} {definition}")
    for insert in inserts:
        spark.sql(f"INSERT INTO {table} {insert}")


def file_names(spark: SparkSession, table: str) -> list[str]:
    return [path.rpartition("/")[2] for path in spark.table(table).inputFiles()]


@pytest.fixture
def codec_of_old_files(local_spark: SparkSession) -> Iterator[None]:
    """Other than the one that Spark writes by itself."""
    local_spark.conf.set("spark.sql.parquet.compression.codec", "gzip")
    yield
    local_spark.conf.unset("spark.sql.parquet.compression.codec")


@pytest.mark.usefixtures("codec_of_old_files")
def test_readers_see_all_rows_once_and_appended_ones_survive_while_a_table_is_compacted(
    local_spark: SparkSession,
) -> None:
    odd = "CASE id % 3 WHEN 0 THEN 'a b%c/{x}[y]' WHEN 1 THEN NULL ELSE 'c' END"
    inserts = [f"SELECT id, {odd} FROM range({start}, {start + 3})" for start in (0, 3, 6)]
    made(local_spark, "watched", "(id BIGINT, p STRING) USING parquet PARTITIONED BY (p)", inserts)
    local_spark.conf.unset("spark.sql.parquet.compression.codec")
    truths = [sum(range(9)), sum(range(9)) + 100, sum(range(9)) + 300]
    seen: list[tuple[int, int]] = []
    is_over = threading.Event()

    def read() -> None:
        # Each in a session of its own: one that listed the files before reads them from its cache.
        while not is_over.is_set():
            [row] = local_spark.newSession().sql("SELECT sum(id), count(*) FROM watched").collect()
            seen.append((row[0], row[1]))

    def append(message: str) -> None:
        # After its files were listed; and while it is away.
        for start, row in (("Compacting", 100), ("Statements may", 200)):
            if message.startswith(start):
                local_spark.newSession().sql(f"INSERT INTO watched VALUES ({row}, 'c')")

    thread = threading.Thread(target=read)
    thread.start()
    try:
        done = compacted(local_spark, "watched", append, grace_s=15)
    finally:
        is_over.set()
        thread.join()
    assert (done.partitions, done.files_before, done.files_after) == (3, 9, 3)
    assert len(seen) > 3
    assert {total for total, _ in seen} <= set(truths)
    assert seen == sorted(seen), "what a reader saw stayed"
    rows = answers(local_spark, "SELECT id, p FROM watched")
    expected = answers(local_spark, f"SELECT id, {odd} FROM range(9)")
    assert rows == expected + answers(local_spark, "VALUES (100L, 'c'), (200L, 'c')")
    # The two that were appended stay as they were written.
    assert sum(name.endswith(".gz.parquet") for name in file_names(local_spark, "watched")) == 3
    assert len(file_names(local_spark, "watched")) == 5


def test_files_of_skewed_values_stay_their_own_and_the_index_knows_the_new_ones(local_spark: SparkSession) -> None:
    for _ in range(2):
        load_query(local_spark, "skewed", TWO_DAYS, partition_by=("ds",))
    before = held(local_spark, "skewed", "x", "ds")
    done = compacted(local_spark, "skewed", index="skewed_index", where="ds < 'b'")
    assert (done.files_before, done.files_after) == (6, 3)
    after = held(local_spark, "skewed", "x", "ds")
    assert after["a"] == before["a"][::2]
    assert after["b"] == before["b"]
    assert answers(local_spark, "TABLE skewed") == answers(local_spark, f"{TWO_DAYS} UNION ALL {TWO_DAYS}")
    rows = known_rows(local_spark, "skewed_index", "spark_catalog.default.skewed").collect()
    current = local_spark.sql(
        "SELECT _metadata.file_path, _metadata.file_size, unix_millis(_metadata.file_modification_time), count(*) "
        "FROM skewed GROUP BY ALL"
    )
    assert {tuple(row) for row in current.collect()} == {
        (row.path, row.size_bytes, row.modified_ms, row.rows) for row in rows
    }
    said = {
        (row["columns"]["x"].low, row["columns"]["x"].high, str(row.lacks))
        for row in rows
        if row["columns"]["ds"].low == "a"
    }
    lacks = "[Row(columns=['x'], tuples=[['10'], ['20']])]"
    assert said == {("10", "10", "[]"), ("20", "20", "[]"), ("1006", "1098", lacks)}


def test_files_of_a_bucket_stay_in_it_and_sorted_as_the_table_promises(local_spark: SparkSession) -> None:
    inserts = [f"SELECT CAST(id AS INT), 'x' || id % 7 FROM range({at}, {at + 10})" for at in (0, 10, 20)]
    definition = "(id INT, s STRING) USING parquet CLUSTERED BY (id) SORTED BY (s) INTO 2 BUCKETS"
    made(local_spark, "bucketed", definition, inserts)
    before = answers(local_spark, "TABLE bucketed")
    done = compacted(local_spark, "bucketed")
    assert (done.files_before, done.files_after) == (6, 2)
    assert answers(local_spark, "TABLE bucketed") == before
    rows = local_spark.sql("SELECT _metadata.file_name, pmod(hash(id), 2), s FROM bucketed").collect()
    for name, bucket, _ in rows:
        assert re.search(rf"_0000{bucket}\.c000\.", name), (name, bucket)
    for name in file_names(local_spark, "bucketed"):
        values = [row[2] for row in rows if row[0] == name]
        assert values == sorted(values)
    with pytest.raises(PipelineError, match="is SORTED BY s"):
        compacted(local_spark, "bucketed", sort_by=("id",))


def test_neighbours_by_value_become_one_sorted_file(local_spark: SparkSession) -> None:
    starts = (40, 0, 30, 10, 20, 50)
    inserts = [f"SELECT {at} + 7 * id % 10, 'x' FROM range(10)" for at in starts]
    made(local_spark, "ranged", "(k BIGINT, s STRING) USING orc", inserts)
    [size] = {int(row[0]) for row in local_spark.sql("SELECT max(_metadata.file_size) FROM ranged").collect()}
    limits = Limits(int(size * 2.5), files_min=2)
    done = compacted(local_spark, "ranged", limits=limits, sort_by=("K",))
    assert (done.files_before, done.files_after) == (6, 3)
    found: dict[str, list[int]] = {}
    for name, value in local_spark.sql("SELECT _metadata.file_name, k FROM ranged").collect():
        found.setdefault(name, []).append(value)
    assert sorted(found.values()) == [list(range(low, low + 20)) for low in (0, 20, 40)]


def test_what_cannot_be_merged_for_certain_is_left_alone_or_refused(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    said: list[str] = []
    more = "SELECT 1 AS id, 'x' AS forgotten"
    for _ in range(2):
        local_spark.sql(more).write.mode("append").parquet(str(tmp_path / "wider"))
    local_spark.sql(f"CREATE TABLE wider (id INT) USING parquet LOCATION '{tmp_path / 'wider'}'")
    assert compacted(local_spark, "wider", said.append).partitions == 0
    assert any("columns that the table does not: forgotten" in message for message in said)
    definition = "(id INT, p INT) USING parquet PARTITIONED BY (p)"
    made(local_spark, "placed", definition, ["VALUES (1, 1)", "VALUES (2, 1)"])
    local_spark.sql(f"ALTER TABLE placed ADD PARTITION (p = 2) LOCATION '{tmp_path / 'elsewhere'}'")
    for row in (3, 4):
        local_spark.sql(f"INSERT INTO placed VALUES ({row}, 2)")
    assert [
        plan.directory for plan in plan_compaction(local_spark, Compaction("placed", **AT_ONCE), said.append)
    ] == ["p=1"]
    assert "1 partitions are left alone: they have a LOCATION of their own" in said[-1]
    for options, message in (
        ({"table": "nowhere"}, "no such table"),
        ({"table": "placed", "where": "id = 1"}, "expected a condition on p"),
        ({"table": "wider", "where": "id = 1"}, "has no partitions to choose"),
        ({"table": "placed", "sort_by": ("p",)}, "--sort-by p"),
    ):
        with pytest.raises(PipelineError, match=message):
            plan_compaction(local_spark, Compaction(**{**AT_ONCE, **options}), quietly)


def test_only_files_of_the_chosen_partitions_are_read_to_find_neighbours(local_spark: SparkSession) -> None:
    definition = "(k INT, p INT) USING parquet PARTITIONED BY (p)"
    made(local_spark, "partly_read", definition, [f"VALUES ({row}, 1), ({row}, 2)" for row in (3, 1)])
    for path in local_spark.table("partly_read").inputFiles():
        if "/p=2/" in path:
            Path(path.removeprefix("file:")).write_bytes(b"not Parquet at all")
    done = compacted(local_spark, "partly_read", where="p = 1", sort_by=("k",))
    assert (done.files_before, done.files_after) == (2, 1)
    assert [row.k for row in local_spark.sql("SELECT k FROM partly_read WHERE p = 1").collect()] == [1, 3]


def test_dates_of_a_calendar_that_no_file_tells_are_not_fixed_for_good(
    local_spark: SparkSession, tmp_path: Path
) -> None:
    for number in (1, 2):
        duckdb.sql(f"COPY (SELECT DATE '1500-01-01' AS d) TO '{tmp_path / str(number)}.parquet' (FORMAT parquet)")
    local_spark.sql(f"CREATE TABLE ancient (d DATE) USING parquet LOCATION '{tmp_path}'")
    with pytest.raises(PipelineError, match="do not tell which calendar"):
        compacted(local_spark, "ancient")
    # As Spark 4 has it; Spark 3 reads no such day.
    local_spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
    assert answers(local_spark, "SELECT CAST(d AS STRING) AS d FROM ancient") == Counter([("1500-01-01",)] * 2)


def test_ancient_dates_of_sparks_own_files_keep_their_meaning(local_spark: SparkSession) -> None:
    local_spark.sql("CREATE TABLE old_and_new (d DATE, t TIMESTAMP) USING parquet")
    for mode in ("LEGACY", "CORRECTED"):
        for name in ("datetime", "int96"):
            local_spark.conf.set(f"spark.sql.parquet.{name}RebaseModeInWrite", mode)
        local_spark.sql("INSERT INTO old_and_new VALUES (DATE'1500-01-01', TIMESTAMP'1500-01-01 12:00:00')")
    before = answers(local_spark, "TABLE old_and_new")
    assert compacted(local_spark, "old_and_new").files_after == 1
    assert answers(local_spark, "TABLE old_and_new") == before
    assert len(before) == 1


def test_a_compaction_for_which_there_is_no_room_writes_nothing(
    local_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(local_spark, "large", "(id INT) USING parquet", [f"VALUES ({row})" for row in (1, 2)])
    assert Storage(local_spark, Path.cwd().as_uri()).free_bytes() is not None
    monkeypatch.setattr(Storage, "free_bytes", lambda _: 10)
    with pytest.raises(PipelineError, match="0 MB are left"):
        compacted(local_spark, "large")
    assert len(file_names(local_spark, "large")) == 2
