"""What PyHive's cursors offer beyond execute and fetch works through the proxy as it does directly."""

import time
from contextlib import closing
from typing import Any

import pytest
from pyhive import hive
from steps import outcomes
from TCLIService.ttypes import TOperationState

from demo.hive import Endpoint, connect
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer

SLEEP = "SELECT id, reflect('java.lang.Thread', 'sleep', 1000L) FROM range(0, 60, 1, 1)"
ROWS = "SELECT id, concat('row ', id) AS label FROM range(2500)"
STAR_JOIN = """SELECT v.* FROM small_star.visits v JOIN small_star.days d ON v.ds = d.ds
WHERE d.weekday = 'Sunday' ORDER BY v.id"""
FINISH_SECONDS_MAX = 60

RUNNING = (TOperationState.INITIALIZED_STATE, TOperationState.RUNNING_STATE, TOperationState.PENDING_STATE)


def _in_the_background(cursor: hive.Cursor, sql: str) -> tuple[object, ...]:
    cursor.execute(sql, async_=True)
    state = _finished(cursor)
    return state, cursor.fetch_logs(), cursor.description, cursor.fetchall()


def _finished(cursor: hive.Cursor) -> object:
    deadline = time.monotonic() + FINISH_SECONDS_MAX
    while (state := cursor.poll().operationState) in RUNNING and time.monotonic() < deadline:
        time.sleep(0.1)
    return state


def _cancelled(cursor: hive.Cursor) -> tuple[object, ...]:
    cursor.execute(SLEEP, async_=True)
    cursor.cancel()
    state = _finished(cursor)
    cursor.execute("SELECT 'used again'")
    return state, cursor.fetchall()


def _by_arrays_of(cursor: hive.Cursor, size: int) -> tuple[object, ...]:
    cursor.arraysize = size
    cursor.execute(ROWS)
    some = [cursor.fetchone(), cursor.fetchmany(10), cursor.fetchmany()]
    return some, cursor.rownumber, cursor.fetchall(), cursor.fetchone()


def _with_parameters(cursor: hive.Cursor) -> Any:
    parameters = {"text": 'it\'s "quoted" \\ 日本語', "number": -1.5, "none": None, "several": [1, 2]}
    cursor.execute("SELECT %(text)s, %(number)s, %(none)s, 1 IN %(several)s", parameters)
    return cursor.fetchall()


def _one_after_another(connection: hive.Connection) -> list[object]:
    with closing(connection.cursor()) as one, closing(connection.cursor()) as other:
        one.execute("SELECT id FROM range(3)")
        other.execute("SELECT 10 + id FROM range(3)")
        return [one.fetchone(), other.fetchone(), one.fetchall(), other.fetchall()]


def _taken(endpoint: Endpoint) -> dict[str, object]:
    with closing(connect(endpoint)) as connection, closing(connection.cursor()) as cursor:
        return outcomes(
            {
                "in the background": lambda: _in_the_background(cursor, ROWS),
                "a star join in the background": lambda: _in_the_background(cursor, STAR_JOIN),
                "an error in the background": lambda: _in_the_background(cursor, "SELECT * FROM no_such_table"),
                "cancelled": lambda: _cancelled(cursor),
                "one row at a time": lambda: _by_arrays_of(cursor, 1),
                "seven rows at a time": lambda: _by_arrays_of(cursor, 7),
                "all rows at once": lambda: _by_arrays_of(cursor, 100_000),
                "parameters": lambda: _with_parameters(cursor),
                "two cursors": lambda: _one_after_another(connection),
                "an iteration": lambda: (cursor.execute(ROWS), sum(row[0] for row in cursor)),
                "a fetch without a statement": lambda: connection.cursor().fetchall(),
            }
        )


@pytest.mark.usefixtures("small_star")
def test_every_step_of_a_cursor_is_as_by_the_server(spark: ThriftServer, proxy: ProxyProcess) -> None:
    direct, proxied = _taken(spark.endpoint), _taken(proxy.endpoint)
    assert proxied == direct
    assert [name for name, outcome in direct.items() if "failed" in repr(outcome)] == [
        "an error in the background",
        "a fetch without a statement",
    ]
