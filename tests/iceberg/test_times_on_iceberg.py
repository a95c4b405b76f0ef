"""Timestamps, and days that they are cast to, as keys of Iceberg tables: in time zones whose clocks are put back.

The answers through the proxy are those without it, in each zone, and files are left out.
"""

from collections.abc import Iterator

import pytest
from iceberg_sides import Sides, drop_namespace, make_namespace
from pipeline_server import PipelineServer
from support.changed_clocks import CHANGES, EVENTS, SMALL_SIDES, ZONES, of_days, of_moments

from demo.hive import run
from demo.proxy_process import ProxyProcess
from rewriter import SkipReason

NAMESPACE = "ice.times"

TABLES = f"""
CREATE TABLE events (id BIGINT, at TIMESTAMP, local TIMESTAMP_NTZ) USING iceberg
  TBLPROPERTIES ('write.distribution-mode' = 'none');
INSERT INTO events SELECT /*+ REPARTITION_BY_RANGE(40, at) */ * FROM ({EVENTS});
INSERT INTO events VALUES (-1, NULL, NULL);
CREATE TABLE stored (id BIGINT, at TIMESTAMP, local TIMESTAMP_NTZ) USING iceberg PARTITIONED BY (days(at));
INSERT INTO stored SELECT * FROM events DISTRIBUTE BY 1 SORT BY at;
{SMALL_SIDES.format(format="iceberg")}"""


@pytest.fixture(scope="module")
def sides(iceberg_server: PipelineServer, iceberg_proxy: ProxyProcess) -> Iterator[Sides]:
    make_namespace(iceberg_server, NAMESPACE, TABLES)
    with Sides.opened(iceberg_server, iceberg_proxy.endpoint, NAMESPACE) as sides:
        yield sides
    drop_namespace(iceberg_server, NAMESPACE)


def in_zone(sides: Sides, zone: str, *, ansi: bool = True) -> None:
    sides.both(f"SET TIME ZONE '{zone}'")
    sides.both(f"SET spark.sql.ansi.enabled={ansi}")


@pytest.mark.parametrize("zone", ZONES)
def test_days_have_the_rows_that_the_zone_puts_on_them(sides: Sides, zone: str) -> None:
    for ansi, group in ((True, 0), (False, 1), (True, 2)):
        in_zone(sides, zone, ansi=ansi)
        found = sides.compared(of_days(group), "events")
        assert found.is_narrowed
        assert len(found.rows) >= len(CHANGES)
        assert found.proxied.files_planned < found.direct.files_planned


@pytest.mark.parametrize("zone", ["America/Havana", "Asia/Kolkata", "UTC"])
@pytest.mark.parametrize("table", ["events", "stored"])
def test_one_day_reads_the_files_of_that_day(sides: Sides, zone: str, table: str) -> None:
    in_zone(sides, zone)
    for group in (4, 5):
        found = sides.compared(of_days(group, table=table), table)
        assert found.is_narrowed
        assert len(found.rows) == 1
        assert found.proxied.files_planned <= found.direct.files_planned / 5


def test_a_day_from_before_all_files_leaves_all_out(sides: Sides) -> None:
    in_zone(sides, "UTC")
    with sides.planned_once():
        assert sides.compared(of_days(6), "events").rows == []


@pytest.mark.parametrize("zone", ["America/St_Johns", "UTC"])
def test_days_of_local_times_do_not_depend_on_the_zone(sides: Sides, zone: str) -> None:
    in_zone(sides, zone)
    for group in (0, 1, 4):
        found = sides.compared(of_days(group, "local"), "events")
        assert found.is_narrowed
        assert "current_timezone" not in found.sent[-1]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("column", ["at", "local"])
def test_times_match_to_the_microsecond(sides: Sides, zone: str, column: str) -> None:
    for ansi, group in ((True, 1), (False, 2)):
        in_zone(sides, zone, ansi=ansi)
        found = sides.compared(of_moments(group, column), "events")
        assert found.rows
        assert found.is_narrowed
        assert found.proxied.files_planned < found.direct.files_planned


@pytest.mark.parametrize("default", ["TIMESTAMP_NTZ", "TIMESTAMP_LTZ"])
def test_what_timestamp_means_to_the_session_changes_nothing(sides: Sides, default: str) -> None:
    in_zone(sides, "America/Havana")
    sides.both(f"SET spark.sql.timestampType={default}")
    for sql in (of_days(4), of_days(4, "local"), of_moments(2, "at"), of_moments(2, "local")):
        found = sides.compared(sql, "events")
        assert found.rows
        assert found.is_narrowed
    sides.both("RESET spark.sql.timestampType")


def test_times_of_old_calendars_are_not_sent(sides: Sides) -> None:
    in_zone(sides, "UTC")
    assert not sides.compared(of_moments(3, "at"), "events").is_narrowed


@pytest.mark.parametrize(
    "condition",
    [
        "CAST(f.at AS DATE) = CAST(d.day AS STRING)",
        "date(f.at) = d.day",
        "CAST(f.at AS DATE) <=> d.day",
        "CAST(f.local AS TIMESTAMP) = CAST(d.day AS TIMESTAMP)",
        "f.at = d.day",
        "f.local = d.day",
    ],
)
def test_other_casts_are_left_to_spark(sides: Sides, condition: str) -> None:
    in_zone(sides, "America/Sao_Paulo")
    sql = f"SELECT count(*), sum(f.id) FROM events f JOIN calendar d ON {condition} WHERE d.g = 1"
    assert not sides.compared(sql, "events").is_narrowed


def test_explain_names_the_times(sides: Sides) -> None:
    in_zone(sides, "UTC")
    told = "\n".join(line for (line,) in run(sides.proxied, f"EXPLAIN REWRITE {of_days(4)}"))
    assert "BETWEEN TIMESTAMP'2025-11-02 00:00:00.000000+00:00'" in told


def test_times_of_orc_are_left_to_spark(sides: Sides) -> None:
    """By a filter Spark 4.1 does not find the least time of an ORC file if it has digits below a millisecond."""
    in_zone(sides, "UTC")
    table, at = "spark_catalog.default.orc_times", "TIMESTAMP'2024-05-05 10:00:03.599999'"
    for statement in (
        f"DROP TABLE IF EXISTS {table}",
        f"CREATE TABLE {table} (id INT, at TIMESTAMP) USING orc CLUSTERED BY (at) INTO 2 BUCKETS",
        f"INSERT INTO {table} VALUES (1, {at})",
    ):
        run(sides.direct, statement)
    sql = f"SELECT f.id FROM {table} f JOIN (SELECT explode(array({at})) AS at) d ON f.at = d.at"
    assert run(sides.direct, sql) == run(sides.proxied, sql) == [(1,)]
    [[told]] = run(sides.proxied, f"EXPLAIN REWRITE JSON {sql}")
    assert SkipReason.TYPE_REFUSED.name in str(told)
    run(sides.direct, f"DROP TABLE {table}")
