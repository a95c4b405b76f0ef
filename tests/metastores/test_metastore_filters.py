"""Names and values that no filter of a real metastore can hold: no statement fails that would not by itself."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest
from pyhive import hive
from support.metrics_of_proxy import recovered_count

from demo.hive import Row, connect, run, same_answer
from demo.metrics import ScanMetrics, SparkUi
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer

DATABASE = "metastore_filters"
# As many partition columns as names, all of one table: a table for each would take a minute to make.
NAMES = ("_x", "_dt", "a-b", "in", "and", "like", "between", "é", "p q.r", "12")
PARTITIONS = 4
KEPT = 2

COLUMNS = ", ".join(f"`{name}` INT" for name in NAMES)
PARTITIONED = ", ".join(f"`{name}`" for name in NAMES)
COPIES = ", ".join("CAST(id AS INT)" for _ in NAMES)
STATEMENTS = f"""
CREATE DATABASE {DATABASE};
USE {DATABASE};
CREATE TABLE odd (v BIGINT, {COLUMNS}) USING parquet PARTITIONED BY ({PARTITIONED});
INSERT INTO odd SELECT id, {COPIES} FROM range(0, {PARTITIONS}, 1, 1);
CREATE TABLE plain (v BIGINT, `date` INT) USING parquet PARTITIONED BY (`date`);
INSERT INTO plain SELECT id, CAST(id AS INT) FROM range(0, {PARTITIONS}, 1, 1);
CREATE TABLE keys USING parquet AS SELECT CAST(id AS INT) AS k, id < {KEPT} AS chosen FROM range(0, 9, 1, 1);
CREATE TABLE years (v INT, day DATE) USING parquet PARTITIONED BY (day);
INSERT INTO years VALUES (1, DATE'0000-01-01'), (2, DATE'2026-01-01'), (3, DATE'2026-01-02');
CREATE TABLE others (v INT, day DATE) USING parquet PARTITIONED BY (day);
INSERT INTO others VALUES (2, DATE'2026-01-01'), (3, DATE'2026-01-02');
CREATE TABLE copies (v INT) USING parquet;
CREATE TABLE days USING parquet AS SELECT DATE'2026-01-01' AS day, true AS chosen"""


@dataclass(frozen=True)
class Sessions:
    """A session on the server and one through the proxy, which tells what it had to run again."""

    direct: hive.Connection
    proxied: hive.Connection
    proxy: ProxyProcess
    spark_ui: SparkUi

    def scanned(self, table: str, sql: str) -> tuple[list[Row], ScanMetrics, float]:
        """The answer through the proxy with nothing cached, what was read, and how often it was run again."""
        direct = run(self.direct, sql)
        run(self.direct, f"REFRESH TABLE {table}")
        rescued, before = recovered_count(self.proxy), self.spark_ui.last_execution()
        rows = run(self.proxied, sql)
        assert same_answer(rows, direct)
        return rows, self.spark_ui.scans_of(table, after=before), recovered_count(self.proxy) - rescued


@pytest.fixture(scope="module")
def sessions(spark: ThriftServer, proxy: ProxyProcess, spark_ui: SparkUi) -> Iterator[Sessions]:
    with closing(connect(spark.endpoint)) as connection:
        for statement in STATEMENTS.split(";"):
            run(connection, statement)
    with (
        closing(connect(spark.endpoint, database=DATABASE)) as direct,
        closing(connect(proxy.endpoint, database=DATABASE)) as proxied,
    ):
        yield Sessions(direct, proxied, proxy, spark_ui)
        # Derby reads the days of all tables where it filters one by a day, and fails at the year 0.
        run(direct, f"DROP DATABASE {DATABASE} CASCADE")


@pytest.mark.parametrize("name", NAMES)
def test_a_column_that_no_filter_can_name_is_pruned_and_the_statement_does_not_fail(
    sessions: Sessions, name: str
) -> None:
    with pytest.raises(hive.Error, match="INTERNAL_ERROR_HIVE_METASTORE_PARTITION_FILTER"):
        run(sessions.direct, f"SELECT v FROM odd WHERE `{name}` IN (0, 1)")
    sql = f"SELECT f.v FROM odd f JOIN keys k ON f.`{name}` = k.k WHERE k.chosen"
    rows, scans, rescued = sessions.scanned("odd", sql)
    assert len(rows) == scans.files_listed == KEPT < PARTITIONS
    assert not rescued


def test_nothing_is_inferred_from_another_table_for_such_a_column(sessions: Sessions) -> None:
    sql = "SELECT f.v FROM plain f JOIN keys k ON f.`date` = k.k LEFT JOIN odd o ON o._x = f.`date` WHERE k.chosen"
    rows, scans, rescued = sessions.scanned("plain", sql)
    assert len(rows) == scans.files_listed == KEPT
    assert not rescued


def test_days_are_not_sent_of_a_table_with_one_that_the_metastore_cannot_read(sessions: Sessions) -> None:
    sql = "SELECT f.v FROM years f JOIN days d ON f.day = d.day WHERE d.chosen"
    with pytest.raises(hive.Error, match="INTERNAL_ERROR_HIVE_METASTORE_PARTITION_FILTER"):
        run(sessions.direct, "SELECT v FROM years WHERE day = DATE'2026-01-01'")
    rows, scans, rescued = sessions.scanned("years", sql)
    assert (rows, scans.files_listed, rescued) == ([(2,)], 1, 0)
    # One that writes could not be run again.
    run(sessions.proxied, f"INSERT INTO copies {sql}")
    assert run(sessions.direct, "SELECT v FROM copies") == [(2,)]


def test_a_table_of_which_every_filter_fails_is_found_out_and_then_pruned_by_spark_alone(
    sessions: Sessions,
) -> None:
    sql = "SELECT f.v FROM others f JOIN days d ON f.day = d.day WHERE d.chosen"
    assert sessions.scanned("others", sql)[2] == 0
    # The metastore's database casts every partition's value to a date, and year 0 is none. The list is of before.
    run(sessions.direct, "INSERT INTO others VALUES (1, DATE'0000-01-01')")
    ways = [sessions.scanned("others", sql) for _ in range(3)]
    assert [rescued for _, _, rescued in ways] == [1, 1, 0]
    assert ways[-1][1].files_listed == 1
    rows, scans, rescued = sessions.scanned(
        "plain", "SELECT f.v FROM plain f JOIN keys k ON f.`date` = k.k WHERE k.chosen"
    )
    assert len(rows) == scans.files_listed == KEPT
    assert not rescued
