"""Timestamps, and days that they are cast to, as keys of plain Parquet tables with a file index."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from pipeline_server import FILE_INDEX, PipelineServer
from pyhive import hive
from support.changed_clocks import CHANGES, EVENTS, SMALL_SIDES, of_days, of_moments

from demo.hive import connect, run, same_answer
from demo.proxy_process import ProxyProcess

DATABASE = "times"
FILES = 40
# Fewer than for Iceberg, since the times that are asked for are computed alike.
ZONES = ["America/St_Johns", "America/Sao_Paulo", "Europe/Berlin", "Asia/Kolkata", "UTC"]
COLUMNS = "id BIGINT, at TIMESTAMP, local TIMESTAMP_NTZ"
INSERT = f"SELECT /*+ REPARTITION_BY_RANGE({FILES}, at) */ * FROM ({EVENTS})"
# As Spark 4 has it: Spark 3 writes no such day unless it is told how.
TABLES = f"""
SET spark.sql.parquet.datetimeRebaseModeInWrite=CORRECTED;
SET spark.sql.parquet.int96RebaseModeInWrite=CORRECTED;
SET TIME ZONE 'UTC';
SET spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS;
CREATE TABLE events ({COLUMNS}) USING parquet;
INSERT INTO events {INSERT};
CREATE TABLE as_int96 ({COLUMNS}) USING parquet;
SET spark.sql.parquet.outputTimestampType=INT96;
INSERT INTO as_int96 {INSERT};
CREATE TABLE as_orc ({COLUMNS}) USING orc;
INSERT INTO as_orc {INSERT};
{SMALL_SIDES.format(format="parquet")}"""


@pytest.fixture(scope="module")
def proxied(pipeline_spark: PipelineServer, indexed_proxy: ProxyProcess) -> Iterator[hive.Connection]:
    """A session through the proxy in a database of its own, whose tables are indexed."""
    with closing(connect(pipeline_spark.endpoint)) as direct:
        for statement in (f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", *TABLES.split(";")):
            run(direct, statement)
        for table in ("events", "as_int96", "as_orc"):
            pipeline_spark.pipeline("index", "--table", f"{DATABASE}.{table}", "--index", FILE_INDEX)
        with closing(connect(indexed_proxy.endpoint, database=DATABASE, user=DATABASE)) as session:
            yield session
        run(direct, f"DROP DATABASE {DATABASE} CASCADE")


def files_read(server: PipelineServer, session: hive.Connection, sql: str, table: str = "events") -> int:
    """The files that a statement reads of the table; an assertion fails if it answers otherwise than directly."""
    before = server.ui.last_execution()
    answer = run(session, sql)
    read = server.ui.scans_of(table, after=before).files_read
    run(session, "SET starpruner.enabled=false")
    assert same_answer(answer, run(session, sql)), sql
    run(session, "SET starpruner.enabled=true")
    return read


def in_zone(session: hive.Connection, zone: str, *, ansi: bool = True) -> None:
    run(session, f"SET TIME ZONE '{zone}'")
    run(session, f"SET spark.sql.ansi.enabled={ansi}")


@pytest.mark.parametrize("zone", ZONES)
def test_days_have_the_rows_that_the_zone_puts_on_them(
    pipeline_spark: PipelineServer, proxied: hive.Connection, zone: str
) -> None:
    for ansi, group, column in ((True, 0, "at"), (False, 1, "at"), (True, 2, "local")):
        in_zone(proxied, zone, ansi=ansi)
        assert 0 < files_read(pipeline_spark, proxied, of_days(group, column)) < FILES


@pytest.mark.parametrize("zone", ZONES)
def test_times_match_to_the_microsecond(
    pipeline_spark: PipelineServer, proxied: hive.Connection, zone: str
) -> None:
    for ansi, group, column in ((True, 1, "at"), (False, 2, "at"), (True, 2, "local")):
        in_zone(proxied, zone, ansi=ansi)
        assert 0 < files_read(pipeline_spark, proxied, of_moments(group, column)) < FILES


@pytest.mark.parametrize("zone", ["America/Havana", "UTC"])
def test_one_day_reads_the_files_of_that_day(
    pipeline_spark: PipelineServer, proxied: hive.Connection, zone: str
) -> None:
    in_zone(proxied, zone)
    assert files_read(pipeline_spark, proxied, of_days(4)) <= FILES / len(CHANGES)


@pytest.mark.parametrize("table", ["as_int96", "as_orc"])
def test_files_whose_times_settings_decide_are_all_read(
    pipeline_spark: PipelineServer, proxied: hive.Connection, table: str
) -> None:
    in_zone(proxied, "America/Sao_Paulo")
    for sql in (of_days(4, table=table), of_moments(2, "at", table)):
        assert files_read(pipeline_spark, proxied, sql, table) == FILES


@pytest.mark.parametrize("rebase", ["LEGACY", "CORRECTED"])
def test_the_calendar_of_reading_changes_nothing(
    pipeline_spark: PipelineServer, proxied: hive.Connection, rebase: str
) -> None:
    in_zone(proxied, "America/Sao_Paulo")
    run(proxied, f"SET spark.sql.parquet.datetimeRebaseModeInRead={rebase}")
    run(proxied, "SET spark.sql.datetime.java8API.enabled=false")
    for sql in (of_days(4), of_moments(2, "at"), of_moments(3, "at")):
        assert files_read(pipeline_spark, proxied, sql) <= FILES
    run(proxied, "RESET spark.sql.parquet.datetimeRebaseModeInRead")
    run(proxied, "RESET spark.sql.datetime.java8API.enabled")
