"""Many small files are read in fewer tasks through the proxy, and cached ones are left alone."""

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from pyhive import hive
from support.proxies import DEADLINE_S, patient
from support.server_statements import StatementPage
from support.server_version import needs

from demo.hive import connect, run, same_answer
from demo.metrics import SparkUi
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

# A file for each number, as the index has them.
FILES = 192
TABLES = f"""
DROP DATABASE IF EXISTS small_files CASCADE;
CREATE DATABASE small_files;
CREATE TABLE small_files.many USING parquet AS SELECT int(id) AS x, 'v' AS v FROM range(0, {FILES}, 1, {FILES});
CREATE TABLE small_files.of_orc USING orc AS
  SELECT int(id) AS x, 'v' AS v FROM range(0, {FILES}, 1, {FILES});
ANALYZE TABLE small_files.many COMPUTE STATISTICS NOSCAN;
ANALYZE TABLE small_files.of_orc COMPUTE STATISTICS NOSCAN;
CREATE TABLE small_files.names USING parquet AS
  SELECT int(id) AS x, string(id) AS name FROM range(0, {FILES}, 1, 1);
CREATE TABLE small_files.file_index (path STRING, size_bytes BIGINT, modified_ms BIGINT, rows BIGINT,
  columns MAP<STRING, STRUCT<type: STRING, low: STRING, high: STRING, nulls: BIGINT>>,
  lacks ARRAY<STRUCT<columns: ARRAY<STRING>, tuples: ARRAY<ARRAY<STRING>>>>,
  indexed_at TIMESTAMP, table_name STRING) USING parquet PARTITIONED BY (table_name);
INSERT INTO small_files.file_index PARTITION (table_name = 'spark_catalog.small_files.many')
  SELECT _metadata.file_path, _metadata.file_size, unix_millis(_metadata.file_modification_time), 1,
    map('x', named_struct('type', 'int', 'low', string(x), 'high', string(x), 'nulls', 0L)), NULL,
    current_timestamp()
  FROM small_files.many;
INSERT INTO small_files.file_index PARTITION (table_name = 'spark_catalog.small_files.of_orc')
  SELECT _metadata.file_path, _metadata.file_size, unix_millis(_metadata.file_modification_time), 1,
    map('x', named_struct('type', 'int', 'low', string(x), 'high', string(x), 'nulls', 0L)), NULL,
    current_timestamp()
  FROM small_files.of_orc
"""
# Spark packs 32 of these files into a split. A user who has it pack fewer has chosen the number of tasks.
SQL = "SELECT sum(m.x) AS total, count(m.v) AS rows FROM small_files.many m WHERE m.x < 150"
KEPT, GROUPED = 5, 2
SPLITS = 6
# Nothing narrows these: all files are read, three splits in a task.
PLAIN = "SELECT sum(m.x) AS total, count(m.v) AS rows FROM small_files.many m WHERE m.v = 'v'"
# Of the preserved side no keys are asked for.
JOINED = "SELECT count(n.name) AS n FROM small_files.many m LEFT JOIN small_files.names n ON m.x = n.x"
PLAIN_GROUPED = 2


@pytest.fixture(scope="module")
def tables(spark: ThriftServer) -> None:
    with closing(connect(spark.endpoint)) as connection:
        for statement in TABLES.split(";"):
            run(connection, statement)
    assert StatementPage(spark.ui_url).becomes_idle()


@pytest.fixture(scope="module")
def indexing(
    tables: None, spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxyProcess]:
    _ = tables
    settings = "files.index=small_files.file_index", "splits.saved_min=1"
    options = patient(*settings, files=True)
    with proxy_process(spark.endpoint, tmp_path_factory.mktemp("small_files"), options=options) as process:
        yield process


@pytest.fixture
def grouped(indexing: ProxyProcess) -> Iterator[hive.Connection]:
    with closing(connect(indexing.endpoint)) as connection:
        # To explain a statement asks for all that is known of splits.
        run(connection, f"EXPLAIN REWRITE {PLAIN}")
        yield connection


def test_a_narrowed_scan_of_small_files_takes_fewer_tasks(
    grouped: hive.Connection, direct: hive.Connection, spark_ui: SparkUi
) -> None:
    # What the proxy asks is asked once, and then the tasks are the statement's own.
    answer = run(grouped, SQL)
    before = spark_ui.last_execution()
    assert run(grouped, SQL) == answer
    # One more puts the partial sums together.
    assert spark_ui.tasks(after=before) == GROUPED + 1
    assert same_answer(answer, run(direct, SQL))


def test_explain_rewrite_shows_the_splits(grouped: hive.Connection) -> None:
    lines = [line for (line,) in run(grouped, f"EXPLAIN REWRITE {SQL}")]
    assert f"  splits       {KEPT} before, {GROUPED} after" in lines
    assert any(f"/*+ COALESCE({GROUPED}) */" in line for line in lines)


@pytest.mark.parametrize(
    "sql",
    [
        PLAIN,
        PLAIN.replace("many m", "of_orc m"),
        JOINED,
        # The scan of a CTE is one like others.
        "WITH a AS (SELECT x FROM small_files.many) SELECT max(x) AS most FROM a",
    ],
    ids=["plain", "of ORC", "joined", "in a CTE"],
)
def test_a_scan_that_nothing_narrows_takes_fewer_tasks(
    grouped: hive.Connection, spark: ThriftServer, spark_ui: SparkUi, sql: str
) -> None:
    with closing(connect(spark.endpoint)) as direct:
        answer = run(direct, sql)
        run(grouped, f"EXPLAIN REWRITE {sql}")
        assert same_answer(run(grouped, sql), answer)
        before = spark_ui.last_execution()
        run(direct, sql)
        between = spark_ui.last_execution()
        run(grouped, sql)
        fewer = spark_ui.tasks(after=before) - 2 * spark_ui.tasks(after=between)
    assert fewer == SPLITS - PLAIN_GROUPED


def test_a_first_statement_does_not_wait_and_a_later_one_takes_fewer_tasks(
    indexing: ProxyProcess, spark_ui: SparkUi
) -> None:
    with closing(connect(indexing.endpoint)) as connection:
        # Nothing is known of a session that is like no other one.
        run(connection, "SET spark.sql.shuffle.partitions=7")
        run(connection, PLAIN)

        def tasks() -> int:
            before = spark_ui.last_execution()
            run(connection, PLAIN)
            return spark_ui.tasks(after=before)

        deadline = time.monotonic() + DEADLINE_S
        while tasks() != PLAIN_GROUPED + 1:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def test_a_user_who_has_chosen_how_large_splits_are_keeps_them(indexing: ProxyProcess) -> None:
    with closing(connect(indexing.endpoint)) as connection:
        run(connection, "SET spark.sql.files.maxPartitionBytes=4194304")
        assert not any("COALESCE" in line for (line,) in run(connection, f"EXPLAIN REWRITE {PLAIN}"))


def test_rows_that_are_fetched_task_by_task_keep_their_tasks(indexing: ProxyProcess) -> None:
    with closing(connect(indexing.endpoint)) as connection:
        run(connection, "SET spark.sql.thriftServer.incrementalCollect=true")
        assert not any("COALESCE" in line for (line,) in run(connection, f"EXPLAIN REWRITE {PLAIN}"))


def test_a_statement_that_fails_by_its_own_data_runs_once(grouped: hive.Connection, spark_ui: SparkUi) -> None:
    sql = "SELECT x % (x - x) AS nothing FROM small_files.many m"
    # Before, it is run again as it came, for the proxy does not know the error for the statement's own.
    needs(grouped, (4, 0), "SQLSTATEs in the messages of errors, and ANSI mode by default")
    assert any("COALESCE" in line for (line,) in run(grouped, f"EXPLAIN REWRITE {sql}"))
    before = spark_ui.last_execution()
    with pytest.raises(hive.OperationalError, match="BY_ZERO"):
        run(grouped, sql)
    assert spark_ui.last_execution() == before + 1


def test_all_rows_come_through_fewer_tasks(grouped: hive.Connection, direct: hive.Connection) -> None:
    sql = "SELECT * FROM small_files.many"
    assert any(f"COALESCE({PLAIN_GROUPED})" in line for (line,) in run(grouped, f"EXPLAIN REWRITE {sql}"))
    assert same_answer(run(grouped, sql), run(direct, sql))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT x FROM small_files.many LIMIT 3",
        "SELECT first(x) FROM small_files.many",
        "SELECT spark_partition_id() AS p, count(*) AS n FROM small_files.many GROUP BY 1",
        "SELECT /*+ COALESCE(7) */ x FROM small_files.many",
        "SELECT _metadata.file_name, x FROM small_files.many",
        "SELECT (SELECT max(x) FROM small_files.many) AS a, (SELECT min(x) FROM small_files.many) AS b",
    ],
)
def test_a_statement_that_shows_its_tasks_or_gains_nothing_keeps_them(grouped: hive.Connection, sql: str) -> None:
    lines = [line for (line,) in run(grouped, f"EXPLAIN REWRITE {sql}")]
    assert "Left as it is:" in lines
    assert not any("COALESCE" in line for line in lines if line.strip() != sql)


def test_filters_and_columns_are_pushed_through_the_hint(grouped: hive.Connection) -> None:
    lines = [line for (line,) in run(grouped, f"EXPLAIN REWRITE {PLAIN}")]
    assert f"  splits       {SPLITS} before, {PLAIN_GROUPED} after" in lines
    rewritten = lines[lines.index("Rewritten:") + 1].strip()
    (plan,) = (row[0] for row in run(grouped, f"EXPLAIN {rewritten}"))
    assert f"Coalesce {PLAIN_GROUPED}" in plan
    assert "PushedFilters: [IsNotNull(v), EqualTo(v,v)], ReadSchema: struct<x:int,v:string>" in plan


def test_splits_of_a_cached_table_are_left_alone(grouped: hive.Connection) -> None:
    run(grouped, "CACHE TABLE small_files.many")
    try:
        assert not any("COALESCE" in line for (line,) in run(grouped, f"EXPLAIN REWRITE {SQL}"))
    finally:
        run(grouped, "UNCACHE TABLE small_files.many")
    assert any("COALESCE" in line for (line,) in run(grouped, f"EXPLAIN REWRITE {SQL}"))
