"""Settings that Spark keeps with a view: they change its casts, and none of the conditions of a key query."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

# The two zones are 26 hours apart: there is no moment that is of the same day in both.
MAKERS = {"spark.sql.ansi.enabled": "false", "spark.sql.session.timeZone": "Pacific/Kiritimati"}
CLIENTS = {"spark.sql.ansi.enabled": "true", "spark.sql.session.timeZone": "Etc/GMT+12"}
SETTLED = (
    *("d.g = 5", "d.g IN (5, -6)", "NOT d.ds LIKE 'a%'", "d.ds BETWEEN 'a' AND 'b'", "d.ds IS NULL"),
    *("d.day >= DATE'2026-01-01'", "year(d.day) = 2026", "d.o", "coalesce(d.ds, 'x') <> 'b'", "d.g <=> 5"),
    "d.ds <> current_user()",
)


@pytest.fixture(scope="module")
def session(local_spark: SparkSession) -> Iterator[SparkSession]:
    settings = {name: local_spark.conf.get(name) for name in MAKERS}
    local_spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW d AS SELECT * FROM VALUES"
        " ('a', 5, DATE'2026-01-01', true, 'x', TIMESTAMP'2026-01-01 00:30:00'),"
        " ('c', -6, DATE'2025-12-31', false, '5', TIMESTAMP'2025-12-31 12:00:00'),"
        " (NULL, NULL, NULL, NULL, NULL, NULL) AS t(ds, g, day, o, n, ts)"
    )
    yield local_spark
    for name, value in settings.items():
        local_spark.conf.set(name, str(value))
    local_spark.catalog.dropTempView("d")


def made(session: SparkSession, name: str, query: str) -> None:
    """Make a view with its maker's settings, and leave those of a client."""
    for settings, sql in ((MAKERS, f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {query}"), (CLIENTS, "")):
        for setting, value in settings.items():
            session.conf.set(setting, value)
        if sql:
            session.sql(sql)


def test_a_cast_in_a_view_has_the_settings_of_the_views_maker(session: SparkSession) -> None:
    query = "SELECT CAST(ts AS STRING) AS t, try_cast(n AS INT) AS n FROM d WHERE g = 5"
    made(session, "cast_there", query)
    assert session.table("cast_there").collect() != session.sql(query).collect()


def test_the_day_in_a_view_is_that_of_its_makers_time_zone(session: SparkSession) -> None:
    made(session, "day_there", "SELECT current_date() AS day")
    assert session.table("day_there").collect() != session.sql("SELECT current_date() AS day").collect()


@pytest.mark.parametrize("condition", SETTLED)
def test_a_settled_condition_lets_the_same_rows_pass(session: SparkSession, condition: str) -> None:
    query = f"SELECT ds, g FROM d WHERE {condition}"
    made(session, "settled_there", query)
    assert session.table("settled_there").collect() == session.sql(query).collect()
