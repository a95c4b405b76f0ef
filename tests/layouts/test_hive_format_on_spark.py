"""Tables in Hive's format with a file index: row groups are skipped by keys where Spark reads the files itself."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from pipeline_server import FILE_INDEX, CommandError, PipelineServer
from pyhive import hive

from demo.hive import connect, run, same_answer
from demo.metrics import ScanMetrics
from demo.proxy_process import ProxyProcess
from rewriter import SkipReason

FILES, ROWS = 4, 20_000
PAGED = "TBLPROPERTIES ('parquet.page.row.count.limit' = '1000')"
# Each file has numbers of its own; and each file has numbers from everywhere, in their order.
APART, INSIDE = f"id + {ROWS} * {{n}}", f"id * {FILES} + {{n}}"


def filled(name: str, number: str) -> Iterator[str]:
    for n in range(FILES):
        x = number.format(n=n)
        yield (
            f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ IF(id % 100 = 7, NULL, CAST({x} AS INT)),"
            f" sha2(string(id), 256), 'p{n % 2}' FROM range(0, {ROWS}, 1, 1)"
        )


@pytest.fixture(scope="module")
def tables(pipeline_spark: PipelineServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The tables of the database `in_hive`, and their index. Its place has a space."""
    place = tmp_path_factory.mktemp("in hive")
    with closing(connect(pipeline_spark.endpoint)) as connection:
        run(connection, f"CREATE DATABASE in_hive LOCATION '{place}'")
        run(connection, "USE in_hive")
        run(connection, "SET hive.exec.dynamic.partition.mode=nonstrict")
        columns = "(x INT, v STRING) PARTITIONED BY (p STRING)"
        for statement in (
            f"CREATE TABLE apart (x INT, v STRING, p STRING) STORED AS PARQUET {PAGED}",
            *filled("apart", APART),
            f"CREATE TABLE inside {columns} STORED AS PARQUET {PAGED}",
            *filled("inside", INSIDE),
            f"CREATE TABLE as_orc {columns} STORED AS ORC",
            *filled("as_orc", APART),
            f"CREATE TABLE as_text {columns} STORED AS TEXTFILE",
            "CREATE TABLE wanted (x INT, g INT) USING parquet",
            "INSERT INTO wanted VALUES (5, 1), (9, 1), (NULL, 1), (23000, 2), (-1, 3)",
        ):
            run(connection, statement)
        names = [word for name in ("apart", "inside", "as_orc") for word in ("--table", f"in_hive.{name}")]
        said = pipeline_spark.pipeline("index", *names, "--index", FILE_INDEX)
        assert said.count(f"{FILES} new or changed") == len(names) // 2, said
        yield
        run(connection, "DROP DATABASE in_hive CASCADE")


@pytest.fixture
def sessions(
    tables: None, pipeline_spark: PipelineServer, indexed_proxy: ProxyProcess
) -> Iterator[tuple[hive.Connection, hive.Connection]]:
    """One that is direct and one through the proxy."""
    _ = tables
    with (
        closing(connect(pipeline_spark.endpoint, database="in_hive")) as direct,
        closing(connect(indexed_proxy.endpoint, database="in_hive", user="in_hive")) as proxied,
    ):
        yield direct, proxied


def joined(table: str, group: int, *, condition: str = "f.x = d.x") -> str:
    return f"SELECT /*+ MERGE(d) */ f.x, f.v, f.p FROM {table} f JOIN wanted d ON {condition} WHERE d.g = {group}"


def both(sessions: tuple[hive.Connection, hive.Connection], server: PipelineServer, sql: str) -> list[ScanMetrics]:
    """The scans of the first table of a FROM, directly and through the proxy, with equal answers."""
    table = sql.partition(" FROM ")[2].partition(" ")[0]
    metrics, answers = [], []
    for session in sessions:
        before = server.ui.last_execution()
        answers.append(run(session, sql))
        metrics.append(server.ui.scans_of(table, after=before))
    assert same_answer(*answers), sql
    return metrics


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize("table", ["apart", "inside", "as_orc"])
def test_row_groups_without_a_key_are_not_read(
    sessions: tuple[hive.Connection, hive.Connection], pipeline_spark: PipelineServer, table: str, ansi: str
) -> None:
    for session in sessions:
        run(session, f"SET spark.sql.ansi.enabled={ansi}")
    direct, proxied = both(sessions, pipeline_spark, joined(table, 1))
    # Spark opens all files: no condition of a statement can name those of a table in Hive's format.
    assert direct.files_read == proxied.files_read == FILES
    assert direct.rows_read == FILES * ROWS
    assert proxied.rows_read <= direct.rows_read / FILES
    told = "\n".join(line for (line,) in run(sessions[1], f"EXPLAIN REWRITE {joined(table, 1)}"))
    assert "_metadata" not in told


@pytest.mark.parametrize(
    "sql",
    [
        joined("inside", 1, condition="f.x = d.x AND f.p = 'p1'"),
        joined("inside", 1, condition="f.x <=> d.x"),
        joined("apart", 3),
        "SELECT x, v FROM apart WHERE x IN (SELECT x FROM wanted WHERE g = 2)",
        "SELECT d.x, f.v FROM wanted d LEFT JOIN apart f ON f.x = d.x",
        "SELECT count(*), sum(x) FROM apart WHERE NOT (x > 5 OR p = 'p1')",
    ],
)
def test_answers_are_those_of_the_server(sessions: tuple[hive.Connection, hive.Connection], sql: str) -> None:
    direct, proxied = sessions
    assert same_answer(run(direct, sql), run(proxied, sql))


@pytest.mark.parametrize(("table", "setting"), [("apart", "Parquet"), ("as_orc", "Orc")])
def test_a_table_that_the_session_does_not_have_converted_is_left_alone_with_the_reason(
    sessions: tuple[hive.Connection, hive.Connection], table: str, setting: str
) -> None:
    direct, proxied = sessions
    sql = joined(table, 2)
    run(proxied, f"SET spark.sql.hive.convertMetastore{setting}=false")
    told = "\n".join(line for (line,) in run(proxied, f"EXPLAIN REWRITE {sql}"))
    assert SkipReason.HIVE_FORMAT.sentence in " ".join(told.split())
    assert same_answer(run(proxied, sql), run(direct, sql))
    run(proxied, f"SET spark.sql.hive.convertMetastore{setting}=true")
    told = "\n".join(line for (line,) in run(proxied, f"EXPLAIN REWRITE {sql}"))
    assert SkipReason.HIVE_FORMAT.sentence not in " ".join(told.split())


def test_rows_that_came_after_the_index_are_read(
    sessions: tuple[hive.Connection, hive.Connection], pipeline_spark: PipelineServer
) -> None:
    direct, proxied = sessions
    run(direct, "CREATE TABLE growing STORED AS PARQUET AS SELECT * FROM apart")
    pipeline_spark.pipeline("index", "--table", "in_hive.growing", "--index", FILE_INDEX)
    run(direct, "INSERT INTO growing VALUES (5, 'new', 'p0'), (-1, 'new', 'p1')")
    run(proxied, "REFRESH TABLE growing")
    for group in (1, 3):
        answer = run(proxied, joined("growing", group))
        assert any("new" in row for row in answer)
        assert same_answer(answer, run(direct, joined("growing", group)))


def test_text_is_not_indexed(pipeline_spark: PipelineServer, tables: None) -> None:
    _ = tables
    with pytest.raises(CommandError, match=r"as_text is a Hive-format table \(STORED AS \.\.\)"):
        pipeline_spark.pipeline("index", "--table", "in_hive.as_text", "--index", FILE_INDEX)
