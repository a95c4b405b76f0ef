"""Daily snapshots of a dimension as small sides: the partitions that are chosen of it tell those of the fact."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from pyhive import hive

from demo.hive import connect, run, same_answer
from demo.metrics import SparkUi
from demo.thrift_server import ThriftServer

DATABASE = "snapshots"
SHOPS = 20
IN_OSLO = 2
TABLES = f"""
CREATE DATABASE {DATABASE};
USE {DATABASE};
CREATE TABLE visits (v BIGINT, shop STRING) USING parquet PARTITIONED BY (shop);
INSERT INTO visits SELECT id, concat('s', id % {SHOPS}) FROM range(0, 200, 1, 1);
CREATE TABLE shops (shop STRING, city STRING, dt STRING) USING parquet PARTITIONED BY (dt);
INSERT INTO shops SELECT concat('s', id), if(id < {IN_OSLO}, 'Oslo', 'Bergen'), '2026-11-05' FROM range({SHOPS});
INSERT INTO shops SELECT concat('s', id), 'Oslo', '2026-11-04' FROM range({SHOPS});
CREATE VIEW shops_now AS SELECT shop AS s, city, dt AS day FROM shops WHERE dt = (SELECT max(dt) FROM shops);
CREATE VIEW every_shop AS SELECT * FROM shops;
CREATE VIEW named AS SELECT s AS shop, city AS dt, day AS city FROM shops_now"""
JOINED = """
SELECT v.shop, count(*) FROM visits v JOIN shops s ON v.shop = s.shop
WHERE s.dt = '2026-11-05' AND s.city = 'Oslo' GROUP BY v.shop"""

WRITES_TODAY = "INSERT OVERWRITE shops PARTITION (dt = '2026-11-06')"


@pytest.fixture(scope="module", autouse=True)
def _tables(spark: ThriftServer) -> Iterator[None]:
    with closing(connect(spark.endpoint)) as session:
        for statement in TABLES.split(";"):
            run(session, statement)
        yield
        run(session, f"DROP DATABASE {DATABASE} CASCADE")


def scanned(session: hive.Connection, spark_ui: SparkUi, sql: str) -> tuple[list[Any], int | None]:
    """The answer, and how many partitions of the fact were read for it."""
    before = spark_ui.last_execution()
    rows = run(session, sql)
    return rows, spark_ui.scans_of("visits", after=before).partitions_read


def test_the_chosen_day_of_a_snapshot_tells_the_partitions_of_the_fact(
    direct: hive.Connection, proxied: hive.Connection, spark_ui: SparkUi
) -> None:
    for session in (direct, proxied):
        run(session, f"USE {DATABASE}")
    rows, partitions = scanned(proxied, spark_ui, JOINED)
    assert same_answer(rows, run(direct, JOINED))
    assert len(rows) == partitions == IN_OSLO
    other_day = JOINED.replace("05", "04")
    rows, partitions = scanned(proxied, spark_ui, other_day)
    assert same_answer(rows, run(direct, other_day))
    assert len(rows) == partitions == SHOPS


LAST = "dt = (SELECT max(dt) FROM shops)"
OF_SHOPS = "SELECT v.shop, count(*) FROM visits v"


@pytest.mark.parametrize(
    "sql",
    [
        f"{OF_SHOPS} JOIN shops s ON v.shop = s.shop WHERE s.{LAST} AND s.city = 'Oslo'",
        (
            f"WITH x AS (SELECT * FROM shops), s AS (SELECT * FROM x WHERE {LAST} AND city = 'Oslo')"
            f"{OF_SHOPS} JOIN s ON v.shop = s.shop"
        ),
        (
            "WITH s AS (SELECT shop, city, dt AS day FROM shops)"
            f"{OF_SHOPS} JOIN s ON v.shop = s.shop WHERE s.city = 'Oslo' AND s.day = '2026-11-05'"
        ),
        f"{OF_SHOPS} WHERE shop IN (SELECT shop FROM shops WHERE {LAST} AND city = 'Oslo')",
        f"{OF_SHOPS} JOIN shops_now n ON v.shop = n.s WHERE n.city = 'Oslo'",
        f"{OF_SHOPS} JOIN every_shop s USING (shop) WHERE s.dt = '2026-11-05' AND s.city = 'Oslo'",
        f"{OF_SHOPS} JOIN every_shop s ON v.shop = s.shop WHERE s.{LAST} AND s.city = 'Oslo'",
        f"{OF_SHOPS} JOIN {DATABASE}.named ON v.shop = named.shop AND named.dt = 'Oslo'",
        f"{OF_SHOPS} WHERE EXISTS (SELECT 1 FROM shops_now v WHERE v.city = 'Oslo' AND shop = v.s)",
        f"WITH shops AS (SELECT s FROM shops_now WHERE city = 'Oslo') {OF_SHOPS} JOIN shops ON v.shop = shops.s",
    ],
)
def test_the_last_day_of_a_snapshot_tells_the_partitions_of_the_fact(
    direct: hive.Connection, proxied: hive.Connection, spark_ui: SparkUi, sql: str
) -> None:
    for session in (direct, proxied):
        run(session, f"USE {DATABASE}")
    sql += " GROUP BY v.shop"
    rows, partitions = scanned(proxied, spark_ui, sql)
    assert same_answer(rows, run(direct, sql))
    assert len(rows) == partitions == IN_OSLO


ON_A_DAY = "s.shop = v.shop AND s.dt = '2026-11-05'"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT v.v FROM visits v JOIN shops s ON v.shop = s.shop AND s.dt IN ('2026-11-05', '2') AND city <> 'x'",
        f"SELECT s.city, v.v FROM shops s LEFT JOIN visits v ON {ON_A_DAY} WHERE s.shop < 's3'",
        f"SELECT v.v FROM visits v WHERE EXISTS (SELECT 1 FROM shops s WHERE {ON_A_DAY} AND s.city = 'Oslo')",
        "SELECT n.day, v.v FROM shops_now n LEFT JOIN visits v ON n.s = v.shop AND n.city = 'Oslo'",
        "SELECT s.dt, v.v FROM visits v RIGHT JOIN every_shop s USING (shop) WHERE s.dt = '2026-11-05' AND v < 9",
        "SELECT v.v FROM visits v JOIN every_shop s USING (shop) WHERE s.dt IN (SELECT max(day) FROM shops_now)",
        f"SELECT v.v FROM visits v LEFT SEMI JOIN shops s ON {ON_A_DAY.replace('s.shop', 'lower(s.shop)')}",
        f"SELECT v.v, x.n FROM visits v JOIN shops s ON {ON_A_DAY} JOIN (SELECT 'Oslo' city, 1 n) x USING (city)",
    ],
)
def test_the_answer_is_that_of_the_server(direct: hive.Connection, proxied: hive.Connection, sql: str) -> None:
    for session in (direct, proxied):
        run(session, f"USE {DATABASE}")
    assert same_answer(run(proxied, sql), run(direct, sql))


def test_a_day_that_the_session_writes_anew_gives_its_new_keys(
    direct: hive.Connection, proxied: hive.Connection, spark_ui: SparkUi
) -> None:
    for session in (direct, proxied):
        run(session, f"USE {DATABASE}")
    run(proxied, f"{WRITES_TODAY} SELECT 's7', 'Oslo'")
    today = JOINED.replace("05", "06")
    assert scanned(proxied, spark_ui, today) == ([("s7", 10)], 1)
    run(
        proxied,
        "INSERT OVERWRITE shops PARTITION (dt = '2026-11-06') SELECT concat('s', id), 'Oslo' FROM range(3)",
    )
    rows, partitions = scanned(proxied, spark_ui, today)
    assert sorted(rows) == [("s0", 10), ("s1", 10), ("s2", 10)]
    assert partitions == len(rows)
    run(direct, "REFRESH TABLE shops")
    assert same_answer(rows, run(direct, today))
    # A day later still, which only the other session knows of.
    latest = JOINED.replace("= '2026-11-05'", "= (SELECT max(dt) FROM shops)")
    assert same_answer(run(proxied, latest), run(direct, latest))
    run(direct, "INSERT OVERWRITE shops PARTITION (dt = '2026-11-07') SELECT 's9', 'Oslo'")
    assert run(direct, latest) == run(proxied, latest) == [("s9", 10)]
    by_view = f"{OF_SHOPS} JOIN shops_now n ON v.shop = n.s WHERE n.city = 'Oslo' GROUP BY v.shop"
    assert run(proxied, by_view) == [("s9", 10)]
    run(proxied, "INSERT OVERWRITE shops PARTITION (dt = '2026-11-08') SELECT 's8', 'Oslo'")
    assert scanned(proxied, spark_ui, by_view) == ([("s8", 10)], 1)
