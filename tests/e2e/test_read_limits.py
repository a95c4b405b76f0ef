"""Limits on what a statement may read, on a real server: each client is refused as by an error of Spark's."""

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from pyhive import hive
from support.beeline_clients import run_beeline
from support.executed_texts import texts_after
from support.histories import until
from support.http_stage import basic
from support.proxies import patient
from support.spark_over_http import URL_OPTIONS, connect_over_http

from demo.hive import Endpoint, connect, fetch_all, run
from demo.java import Java
from demo.metrics import SparkUi
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

DATABASE = "bounded"
TABLES = f"""
DROP DATABASE IF EXISTS {DATABASE} CASCADE;
CREATE DATABASE {DATABASE};
CREATE TABLE {DATABASE}.sales USING parquet PARTITIONED BY (ds) AS
  SELECT id AS amount, concat('2026-10-0', 1 + id % 8) AS ds FROM range(0, 64, 1, 1);
CREATE TABLE {DATABASE}.hive_sales (amount BIGINT) PARTITIONED BY (ds STRING) STORED AS textfile;
INSERT INTO {DATABASE}.hive_sales PARTITION (ds = '2026-10-01') VALUES (1);
INSERT INTO {DATABASE}.hive_sales PARTITION (ds = '2026-10-02') VALUES (1);
INSERT INTO {DATABASE}.hive_sales PARTITION (ds = '2026-10-03') VALUES (1);
CREATE TABLE {DATABASE}.days USING parquet AS SELECT concat('2026-10-0', 1 + id) AS ds, id AS number FROM range(8);
CREATE VIEW {DATABASE}.shown AS SELECT amount, ds FROM {DATABASE}.sales;
CREATE TABLE {DATABASE}.copies (amount BIGINT, ds STRING) USING parquet"""
LIMITS = f"""
[[listener]]
listen = "127.0.0.1:0"
transport = "http"

[limiting]
groups = {{analysts = ["anna", "test*"]}}

[[limits]]
name = "exempt"
users = ["root"]

[[limits]]
name = "careful"
users = ["carla"]
tables = ["{DATABASE}.*"]
partition_filter = true
action = "warn"

[[limits]]
name = "small"
users = ["sam"]
tables = ["{DATABASE}.sales"]
bytes_max = 10
unknown = "reject"

[[limits]]
name = "analysts"
users = ["@analysts"]
tables = ["{DATABASE}.*"]
partitions_max = 2
"""
ALL = f"SELECT * FROM {DATABASE}.sales"
REFUSED = (
    f"[STARPRUNER_LIMIT] This statement would read 8 of 8 partitions of {DATABASE}.sales. The limit for"
    " analysts is 2. Add a filter on ds, such as ds >= '2026-10-07', or join a table that is filtered on it."
    " SQLSTATE: 42ZSL"
)
# Each reads all partitions of a table.
READING_ALL = (
    f"/* WHERE ds = '2026-10-01' */ -- WHERE ds = '2026-10-01'\n{ALL}",
    f"select * from {DATABASE}.SALES",
    f"FROM `{DATABASE}`.`sales` SELECT *",
    f"TABLE {DATABASE}.sales",
    f"WITH s AS ({ALL}) SELECT count(*) FROM s",
    f"SELECT * FROM (SELECT * FROM {DATABASE}.sales) s",
    f"SELECT * FROM {DATABASE}.shown",
    f"SELECT * FROM {DATABASE}.hive_sales",
    f"SELECT (SELECT max(amount) FROM {DATABASE}.sales)",
    f"SELECT 1 UNION ALL SELECT amount FROM {DATABASE}.sales",
    f"SELECT * FROM {DATABASE}.days WHERE EXISTS ({ALL})",
    f"{ALL} s JOIN {DATABASE}.days d ON s.ds = d.ds",
    f"{ALL} WHERE length(ds) > 0",
    f"{ALL} WHERE ds IS NOT NULL",
    f"{ALL} TABLESAMPLE (100 PERCENT)",
    f"SELECT monotonically_increasing_id() FROM {DATABASE}.sales",
    f"INSERT INTO {DATABASE}.copies {ALL}",
    f"CREATE TABLE {DATABASE}.made USING parquet AS {ALL}",
    f"CACHE TABLE cached AS {ALL}",
    f"SELECT * FROM IDENTIFIER('{DATABASE}.sales')",
)
# Each reads two partitions at most, by what is inserted or as Spark plans it.
READING_FEW = (
    f"{ALL} WHERE ds >= '2026-10-07'",
    f"{ALL} s JOIN {DATABASE}.days d ON s.ds = d.ds WHERE d.number = 3",
    f"{ALL} s JOIN {DATABASE}.days d ON s.ds = d.ds WHERE d.ds = '2026-10-01'",
    f"SELECT * FROM {DATABASE}.shown WHERE ds = '2026-10-01'",
    f"SELECT * FROM {DATABASE}.shown s JOIN {DATABASE}.days d ON s.ds = d.ds WHERE d.number = 3",
    f"WITH s AS ({ALL}) SELECT * FROM s WHERE ds = '2026-10-01' UNION ALL SELECT * FROM s WHERE ds = '2026-10-02'",
    f"{ALL} WHERE substr(ds, 9, 2) = '01'",
    f"SELECT * FROM {DATABASE}.hive_sales WHERE ds = '2026-10-01'",
    f"INSERT INTO {DATABASE}.copies {ALL} WHERE ds = '2026-10-01'",
    f"{ALL} WHERE 1 = 0",
    f"{ALL} LIMIT 0",
    f"SELECT * FROM {DATABASE}.days",
    f"EXPLAIN {ALL}",
    f"SHOW PARTITIONS {DATABASE}.sales",
)


@pytest.fixture(scope="module")
def bounded(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    with closing(connect(spark.endpoint)) as session:
        for sql in TABLES.split(";"):
            run(session, sql)
    folder = tmp_path_factory.mktemp("bounded")
    config = folder / "starpruner.toml"
    config.write_text(LIMITS)
    # The cost gate would leave such small tables alone.
    options = ("--config", str(config), *patient(), "--set", "rewrite.cost_gate=true")
    with proxy_process(spark.endpoint, folder / "proxy", options=options) as proxy:
        yield proxy


def over_http(proxy: ProxyProcess) -> Endpoint:
    (found,) = re.findall(r"(127\.0\.0\.1:\d+) \(http", proxy.child.log.read_text())
    return Endpoint.parse(found)


@pytest.fixture(params=["binary", "http"])
def as_anna(bounded: ProxyProcess, request: pytest.FixtureRequest) -> Iterator[hive.Connection]:
    is_binary = request.param == "binary"
    with closing(
        connect(bounded.endpoint, user="anna") if is_binary else connect_over_http(over_http(bounded), "anna")
    ) as session:
        yield session


def error_of(session: hive.Connection, sql: str, *, is_async: bool = False) -> tuple[str, str] | None:
    """The SQLSTATE and the message with which a statement fails; None where it runs."""
    with closing(session.cursor()) as cursor:
        try:
            cursor.execute(sql, async_=is_async)
            if not is_async:
                fetch_all(cursor)
        except hive.Error as error:
            status = error.args[0].status
            return status.sqlState, status.errorMessage
    return None


def test_a_refused_statement_has_a_class_and_a_state_was_not_sent_and_the_session_goes_on(
    as_anna: hive.Connection, spark_ui: SparkUi
) -> None:
    run(as_anna, "SELECT 1")
    before = spark_ui.last_execution()
    for is_async in (False, True):
        assert error_of(as_anna, ALL, is_async=is_async) == ("42ZSL", REFUSED)
    for off in ("SET starpruner.enabled=false", "SET starpruner.mode=shadow"):
        run(as_anna, off)
        assert error_of(as_anna, ALL) == ("42ZSL", REFUSED)
    assert ALL not in texts_after(spark_ui, before)
    assert len(run(as_anna, f"{ALL} WHERE ds >= '2026-10-07'")) == 16
    assert f"{ALL} WHERE ds >= '2026-10-07'" in texts_after(spark_ui, before)


def test_no_way_to_write_it_evades_a_limit(as_anna: hive.Connection) -> None:
    run(as_anna, f"CREATE TEMPORARY VIEW mine AS {ALL}")
    passed = [sql for sql in (*READING_ALL, "SELECT * FROM mine") if "LIMIT]" not in str(error_of(as_anna, sql))]
    assert not passed


def test_what_reads_few_partitions_runs(as_anna: hive.Connection) -> None:
    failed = {sql: error for sql in READING_FEW if (error := error_of(as_anna, sql)) is not None}
    assert not failed


def test_without_rewriting_the_original_counts(as_anna: hive.Connection) -> None:
    star = READING_FEW[1]
    # The cost gate would leave the second one alone.
    assert [error_of(as_anna, star) for _ in range(3)] == [None] * 3
    run(as_anna, "SET starpruner.enabled=false")
    assert error_of(as_anna, star) == ("42ZSL", REFUSED)


def test_a_limit_counts_for_its_users_warns_and_tells_the_history_and_the_metrics(bounded: ProxyProcess) -> None:
    for user in ("root", "carla", "sam"):
        with closing(connect(bounded.endpoint, user=user)) as session:
            refused = error_of(session, ALL)
            assert (refused is None) == (user != "sam"), refused
            if user == "sam":
                assert "The limit for small is 10 bytes" in str(refused) or "not known" in str(refused)
    metrics = _read(bounded, "metrics")
    assert 'starpruner_limits_met_total{limit="careful",result="warned"} 1.0' in metrics
    assert 'limit="exempt"' not in metrics
    # The history is written twice a second.
    until(lambda: bool(_refused(bounded)))
    (limit,) = json.loads(_read(bounded, f"statements/{_refused(bounded)[0]['id']}"))["limits"]
    assert (limit["limit"], limit["table"], limit["result"]) == ("small", f"{DATABASE}.sales", "rejected")


def _refused(proxy: ProxyProcess) -> list[Any]:
    found: list[Any] = json.loads(_read(proxy, "statements?outcome=refused"))["statements"]
    return found


def _read(proxy: ProxyProcess, path: str) -> str:
    request = Request(f"{proxy.admin_url.rstrip('/')}/{path}", headers=basic("sam", "any"))
    with urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("is_http", [False, True])
def test_beeline_shows_it_as_an_error_of_spark(
    bounded: ProxyProcess, java: Java, tmp_path: Path, *, is_http: bool
) -> None:
    endpoint, options = (over_http(bounded), URL_OPTIONS) if is_http else (bounded.endpoint, "")
    done = run_beeline(java, endpoint, f"{ALL};\nSELECT 'goes on' AS z;\n", tmp_path, url_options=f"{options}")
    # Beeline logs in as tester, of the group.
    assert REFUSED in done.stderr
    assert "state=42ZSL" in done.stderr
    assert done.stdout.split()[-2:] == ["goes", "on"]
