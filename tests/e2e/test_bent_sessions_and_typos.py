"""Clients that bend their session, mistype, or write directories: on a real server answers are those of Spark."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from pyhive import exc, hive
from support.clock import eventually
from support.metrics_of_proxy import ended_count, rewritten_count
from support.proxies import patient
from TCLIService.ttypes import TOperationState

from demo.hive import Row, connect, run
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

DATABASE = "bent_sessions"
TABLES = f"""
DROP DATABASE IF EXISTS {DATABASE} CASCADE;
CREATE DATABASE {DATABASE};
CREATE TABLE {DATABASE}.days USING parquet AS
  SELECT date_add(DATE'2026-01-01', CAST(id AS INT)) AS day, CAST(id % 4 AS INT) AS g FROM range(0, 8, 1, 1);
CREATE TABLE {DATABASE}.visits USING parquet PARTITIONED BY (day) AS
  SELECT id, date_add(DATE'2026-01-01', CAST(id % 8 AS INT)) AS day FROM range(0, 64, 1, 1)"""
JOIN = "SELECT v.id FROM visits v JOIN days d ON v.day = d.day WHERE d.g = 1"
# A statement sleeps so long at each row, the longer the busier the machine: another one is to run beside it.
SLEEPS_MS = (400, 4_000, 20_000)
WAIT_S = 300.0
ENDS = ("finished", "overtaken")
UNENDED = (TOperationState.INITIALIZED_STATE, TOperationState.RUNNING_STATE, TOperationState.PENDING_STATE)


@pytest.fixture(scope="module")
def proxy(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    with closing(connect(spark.endpoint)) as connection:
        for statement in TABLES.split(";"):
            run(connection, statement)
    with proxy_process(spark.endpoint, tmp_path_factory.mktemp("proxy"), options=patient()) as process:
        yield process


@pytest.fixture
def direct(spark: ThriftServer) -> Iterator[hive.Connection]:
    with closing(connect(spark.endpoint, database=DATABASE)) as connection:
        yield connection


@pytest.fixture
def proxied(proxy: ProxyProcess) -> Iterator[hive.Connection]:
    with closing(connect(proxy.endpoint, database=DATABASE)) as connection:
        yield connection


# --- functions by which keys are asked for

# Up to Spark 4.1 the first bends a session; from 4.3 on, once the order is set, which no look at the text shows.
BENDING = [
    "CREATE OR REPLACE TEMPORARY FUNCTION unix_date AS 'org.apache.hadoop.hive.ql.udf.UDFYear'",
    "CREATE TEMPORARY FUNCTION unix_date(d DATE) RETURNS INT RETURN year(d)",
    "SET v=functionResolution",
    "SET spark.sql.${v}.sessionOrder=first",
]
# The same behind a comment that the session's own text ends.
HIDDEN = [f"SET hivevar:hidden=*/ {BENDING[0]} --", "/*${hivevar:hidden}*/ SELECT 1", *BENDING[2:]]


@pytest.mark.parametrize("statements", [BENDING, HIDDEN], ids=["said", "hidden"])
def test_a_session_that_hides_a_function_of_spark_is_answered_as_spark_answers_it(
    direct: hive.Connection, proxied: hive.Connection, statements: list[str]
) -> None:
    for session in (direct, proxied):
        for sql in statements:
            with suppress(exc.OperationalError):
                run(session, sql)
        assert run(session, "SELECT unix_date(DATE'2026-01-02')") == [(2026,)], "it is hidden"
    answer = Counter(run(direct, JOIN))
    assert sum(answer.values()) == 16
    assert Counter(run(proxied, JOIN)) == answer
    told = "\n".join(str(row) for row in run(proxied, f"EXPLAIN REWRITE {JOIN}"))
    assert "function of its own" in told


def test_a_function_of_a_database_hides_none_of_spark(
    direct: hive.Connection, proxied: hive.Connection, proxy: ProxyProcess
) -> None:
    run(direct, "CREATE FUNCTION unix_date AS 'org.apache.hadoop.hive.ql.udf.UDFYear'")
    try:
        assert run(proxied, "SELECT unix_date(DATE'1970-01-02')") == [(1,)]
        before = rewritten_count(proxy)
        assert Counter(run(proxied, JOIN)) == Counter(run(direct, JOIN))
        assert rewritten_count(proxy) == before + 1
    finally:
        run(direct, f"DROP FUNCTION {DATABASE}.unix_date")


# --- statements that fail beside one that was rewritten


def polled(connection: hive.Connection, sql: str) -> None:
    """Run a statement as most drivers do: its call is answered at once, and its status tells how it ends."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(sql, async_=True)
        while cursor.poll().operationState in UNENDED:
            time.sleep(0.05)


def runs_beside(proxy: ProxyProcess, sql: str, run_it: Callable[[hive.Connection, str], object] = run) -> str:
    """How a slow statement that was rewritten ends, beside which another user's statement runs."""
    ends = (slept_beside(proxy, sleep_ms, sql, run_it) for sleep_ms in SLEEPS_MS)
    return next(end for end in ends if end is not None)


def slept_beside(
    proxy: ProxyProcess, sleep_ms: int, sql: str, run_it: Callable[[hive.Connection, str], object]
) -> str | None:
    """How it ends, None if it may have ended before the other statement had run."""
    before, rewritten = {end: ended_count(proxy, end) for end in ENDS}, rewritten_count(proxy)
    with (
        closing(connect(proxy.endpoint, database=DATABASE)) as one,
        closing(connect(proxy.endpoint, user="b")) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        slow = JOIN.replace("v.id", f"v.id, reflect('java.lang.Thread', 'sleep', {sleep_ms}L)")
        running = pool.submit(run, one, slow)
        eventually(lambda: rewritten_count(proxy) > rewritten)
        with suppress(exc.OperationalError):
            run_it(other, sql)
        ran_beside = not running.done()
        assert len(running.result(WAIT_S)) == 16
    eventually(lambda: any(ended_count(proxy, end) > count for end, count in before.items()))
    (end,) = [end for end, count in before.items() if ended_count(proxy, end) > count]
    return end if ran_beside else None


@pytest.mark.parametrize("run_it", [run, polled])
def test_a_typo_of_another_user_does_not_make_a_statement_run_again(
    run_it: Callable[[hive.Connection, str], object], proxy: ProxyProcess
) -> None:
    assert runs_beside(proxy, "SELEC 1", run_it) == "finished"


def test_a_statement_that_may_have_written_any_table_does(proxy: ProxyProcess) -> None:
    assert runs_beside(proxy, "CLEAR CACHE") == "overtaken"


# --- directories


@pytest.mark.parametrize(
    ("form", "read_as"),
    [
        ("INSERT OVERWRITE DIRECTORY '{path}' USING parquet OPTIONS (compression 'gzip')", "parquet"),
        ("INSERT OVERWRITE DIRECTORY '{path}' STORED AS PARQUET", "parquet"),
        ("INSERT OVERWRITE LOCAL DIRECTORY '{path}' USING json", "json"),
        (
            "INSERT OVERWRITE LOCAL DIRECTORY '{path}' ROW FORMAT DELIMITED FIELDS TERMINATED BY '|'",
            "text",
        ),
    ],
)
def test_a_directory_holds_what_it_holds_without_us(
    direct: hive.Connection, proxied: hive.Connection, tmp_path: Path, form: str, read_as: str
) -> None:
    assert "`day` IN" in str(run(proxied, f"EXPLAIN REWRITE {form.format(path=tmp_path / 'x')} {JOIN}"))
    for name, session in (("direct", direct), ("proxied", proxied)):
        run(session, f"{form.format(path=tmp_path / name)} {JOIN}")
    written = [
        Counter(run(direct, f"SELECT * FROM {read_as}.`{tmp_path / name}`")) for name in ("direct", "proxied")
    ]
    assert written[0] == written[1]
    assert sum(written[0].values()) == 16


@pytest.mark.parametrize("inside", ["days", "visits", "visits/day=2026-01-02", "visits/day=2026-01-03"])
def test_a_directory_of_a_table_that_is_read_comes_to_the_same(
    direct: hive.Connection, proxied: hive.Connection, spark: ThriftServer, inside: str
) -> None:
    """Spark reads such a table before or after it deletes the files, as it does without us, or fails."""
    found: list[str | Counter[Row]] = []
    for session, database in ((direct, f"{DATABASE}_direct"), (proxied, f"{DATABASE}_proxied")):
        for statement in TABLES.replace(DATABASE, database).split(";"):
            run(session, statement)
        run(session, f"USE {database}")
        path = spark.directory / "warehouse" / f"{database}.db" / inside
        try:
            run(session, f"INSERT OVERWRITE DIRECTORY '{path}' USING parquet {JOIN}")
        except exc.OperationalError:
            found.append("it fails")
        else:
            found.append(Counter(run(session, f"SELECT id FROM parquet.`{path}`")))
        run(session, f"USE {DATABASE}")
    assert found[0] == found[1]
