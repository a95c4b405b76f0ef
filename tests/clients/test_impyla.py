"""impyla works through the proxy as it does directly, also where it asks what only Impala has."""

from contextlib import closing
from typing import Any

import pytest
from impala import dbapi
from steps import Step, outcomes
from support.metrics_of_proxy import rewritten_count

from demo.hive import Endpoint
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer

SLEEP = "SELECT id, reflect('java.lang.Thread', 'sleep', 1000L) FROM range(0, 60, 1, 1)"
STAR_JOIN = """SELECT v.* FROM small_star.visits v JOIN small_star.days d ON v.ds = d.ds
WHERE d.weekday = 'Sunday' ORDER BY v.id"""

Cursor = Any  # impyla has no types.


def _run(cursor: Cursor, sql: str, parameters: dict[str, object] | None = None) -> object:
    cursor.execute(sql, parameters)
    return cursor.description, cursor.fetchall()


def _in_the_background(cursor: Cursor, sql: str) -> object:
    cursor.execute_async(sql)
    cursor._wait_to_finish()  # noqa: SLF001 - it offers no other way
    return cursor.status(), cursor.is_executing(), cursor.get_log(), cursor.fetchall()


def _cancelled(cursor: Cursor) -> object:
    cursor.execute_async(SLEEP)
    cursor.cancel_operation(reset_state=False)
    return cursor.status(), _run(cursor, "SELECT 'used again'")


def _in_columns(cursor: Cursor) -> object:
    cursor.arraysize = 1_000
    cursor.execute("SELECT id, concat('row ', id), IF(id % 3 = 0, NULL, id) FROM range(2500)")
    return [[list(column.values) for column in batch.columns] for batch in cursor.fetchcolumnar()]


def _catalog(cursor: Cursor) -> dict[str, Step]:
    return {
        "tables": lambda: (cursor.get_tables(database_name="small_star"), cursor.fetchall()),
        "a database that is there": lambda: cursor.database_exists("small_star"),
        "a database that is not": lambda: cursor.database_exists("no_such_database"),
        "a table that is there": lambda: cursor.table_exists("visits", database_name="small_star"),
        "columns": lambda: cursor.get_table_schema("visits", database_name="small_star"),
        "functions": lambda: (cursor.get_functions(database_name="default"), len(cursor.fetchall())),
    }


def _steps(cursor: Cursor) -> dict[str, Step]:
    return {
        "a query": lambda: _run(cursor, "SELECT 1 AS a, 'é' AS b, 1.5BD AS c, NULL AS d"),
        "parameters": lambda: _run(cursor, "SELECT %(a)s, %(b)s", {"a": "it's", "b": None}),
        "a star join": lambda: _run(cursor, STAR_JOIN),
        "rows in columns": lambda: _in_columns(cursor),
        "in the background": lambda: _in_the_background(cursor, "SELECT id FROM range(5)"),
        "cancelled": lambda: _cancelled(cursor),
        **_catalog(cursor),
        "Impala's profile": cursor.get_profile,
        "Impala's summary": cursor.get_summary,
        "an error": lambda: _run(cursor, "SELECT * FROM no_such_table"),
        "alive": cursor.ping,
    }


def _taken(endpoint: Endpoint) -> dict[str, object]:
    login = {"auth_mechanism": "PLAIN", "user": "tester", "password": "secret"}
    with (
        closing(dbapi.connect(endpoint.host, endpoint.port, **login)) as connection,
        closing(connection.cursor()) as cursor,
    ):
        return outcomes(_steps(cursor))


@pytest.mark.usefixtures("small_star")
def test_every_step_of_impyla_is_as_by_the_server(spark: ThriftServer, proxy: ProxyProcess) -> None:
    direct = _taken(spark.endpoint)
    before = rewritten_count(proxy)
    proxied = _taken(proxy.endpoint)
    assert proxied == direct
    failed = [name for name, outcome in direct.items() if "failed" in repr(outcome)]
    assert failed == ["Impala's profile", "Impala's summary", "an error"]
    assert rewritten_count(proxy) == before + 1
