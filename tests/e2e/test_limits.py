"""Limits on what a statement may read, on a real server: each client is refused as by an error of Spark's."""

import asyncio
import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from pyhive import hive
from support.beeline_clients import run_beeline
from support.proxies import patient
from support.spark_over_http import URL_OPTIONS, connect_over_http

from demo.hive import Endpoint, connect, run
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
groups = {{analysts = ["an*"]}}

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
    f"[STARPRUNER_LIMIT] This statement would read 8 of 8 partitions of {DATABASE}.sales. The limit for analysts is"
    " 2. Add a filter on ds, such as ds >= '2026-10-07', or join a table that is filtered on it. SQLSTATE: 42ZSL"
)


@pytest.fixture(scope="module")
def bounded(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    with closing(connect(spark.endpoint)) as session:
        for sql in TABLES.split(";"):
            run(session, sql)
    folder = tmp_path_factory.mktemp("bounded")
    config = folder / "starpruner.toml"
    config.write_text(LIMITS)
    options = ("--config", str(config), *patient())
    with proxy_process(spark.endpoint, folder / "proxy", options=options) as proxy:
        yield proxy


def over_http(proxy: ProxyProcess) -> Endpoint:
    (found,) = re.findall(r"(127\.0\.0\.1:\d+) \(http", proxy.child.log.read_text())
    return Endpoint.parse(found)


def sessions(proxy: ProxyProcess, user: str) -> list[hive.Connection]:
    return [connect(proxy.endpoint, user=user), connect_over_http(over_http(proxy), user)]


def error_of(session: hive.Connection, sql: str, *, is_async: bool = False) -> tuple[str, str] | None:
    """The SQLSTATE and the message with which a statement fails; None where it runs."""
    with closing(session.cursor()) as cursor:
        try:
            cursor.execute(sql, async_=is_async)
            if cursor.description and not is_async:
                cursor.fetchall()
        except hive.Error as error:
            status = error.args[0].status
            return status.sqlState, status.errorMessage
    return None


def test_a_refused_statement_fails_with_a_class_and_a_state_and_was_not_sent(
    bounded: ProxyProcess, spark_ui: SparkUi
) -> None:
    for session in sessions(bounded, "anna"):
        with closing(session):
            run(session, "SELECT 1")
            before = spark_ui.last_execution()
            for is_async in (False, True):
                assert error_of(session, ALL, is_async=is_async) == ("42ZSL", REFUSED)
            assert spark_ui.last_execution() == before
            # The session goes on.
            assert len(run(session, f"{ALL} WHERE ds >= '2026-10-07'")) == 16
