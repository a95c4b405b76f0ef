"""Clients over HTTP on either side see of the real server what they see directly."""

import gc
import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from pyhive import hive
from support.beeline_clients import Answer, answer, comparable_message, run_beeline, way_to
from support.derby_statistics import let_derby_filter
from support.metrics_of_proxy import key_checks
from support.proxies import options
from support.scripted_proxy import Script, scripted_proxy
from support.spark_over_http import URL_OPTIONS, connect_over_http, proxy_with_http, spark_over_http
from TCLIService.ttypes import TOperationState

from demo.hive import Endpoint, connect, run
from demo.java import Java
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer
from proxy.config.endpoints import Transport
from proxy.operations.dispatch import OutcomeKind

WAYS = ("http to http", "http to sasl")

STAR = [
    """CREATE TABLE IF NOT EXISTS h_sales USING parquet PARTITIONED BY (ds) AS
       SELECT id AS amount, id % 12 AS ds FROM range(60)""",
    "CREATE TABLE IF NOT EXISTS h_dates USING parquet AS SELECT id AS ds, id % 4 AS quarter FROM range(12)",
    # Spark lists the files of text for each statement anew: of Parquet each session keeps what it listed first.
    "CREATE TABLE IF NOT EXISTS h_chosen (ds BIGINT, quarter INT) STORED AS TEXTFILE",
    "INSERT OVERWRITE h_chosen VALUES (2, 2)",
]
JOIN = "SELECT s.ds, sum(s.amount) FROM h_sales s JOIN h_dates d ON s.ds = d.ds WHERE d.quarter = 2 GROUP BY s.ds"

SEEN_ALIKE = [
    "SELECT 1 AS a, 'Zażółć 日本語 🦔' AS b, CAST(NULL AS INT) AS c, DATE'2024-02-29' AS d, array(1, 2) AS e",
    "SELECT id, concat('row ', id) AS label FROM range(20000)",
    "SET spark.sql.session.timeZone=Asia/Tokyo",
    "SELECT current_timezone()",
    "CREATE TEMPORARY VIEW h_view AS SELECT 1 AS k",
    "SELECT * FROM h_view",
    "SELECT * FROM h_no_such_table",
    "SELEC 1",
    "SELECT raise_error('it was planned so')",
    "SELECT id FROM range(0)",
]

SLEEP = "SELECT id, reflect('java.lang.Thread', 'sleep', 1000L) FROM range(0, 60, 1, 1)"
PROMPTLY_S = 45.0
# Hours of work, with a table that is narrowed.
ENDLESS = JOIN.replace("FROM h_sales s", "FROM range(1000000000000) CROSS JOIN h_sales s")
# Nobody has to sign in at the admin port.
OPEN = options("admin.open=true")


@dataclass(frozen=True)
class Way:
    """A proxy with a listener for HTTP, and the server behind it."""

    proxy: ProxyProcess
    http: Endpoint
    server: ThriftServer
    connect_directly: Callable[[], hive.Connection]


@pytest.fixture(scope="module")
def over_http(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThriftServer]:
    with spark_over_http(tmp_path_factory.mktemp("spark_http"), java) as server:
        with closing(connect_over_http(server.endpoint)) as connection:
            for sql in STAR:
                run(connection, sql)
        yield server


@pytest.fixture(scope="module")
def before_http(over_http: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    directory = tmp_path_factory.mktemp("before_http")
    with proxy_with_http(over_http.endpoint, directory, "http", options=OPEN) as (process, http):
        yield Way(process, http, over_http, partial(connect_over_http, over_http.endpoint))


@pytest.fixture(scope="module")
def before_sasl(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    with closing(connect(spark.endpoint)) as connection:
        for sql in STAR:
            run(connection, sql)
        let_derby_filter(connection, "SELECT count(*) FROM h_sales WHERE ds IN (2, 6)")
    directory = tmp_path_factory.mktemp("before_sasl")
    with proxy_with_http(spark.endpoint, directory, "sasl", options=OPEN) as (process, http):
        yield Way(process, http, spark, partial(connect, spark.endpoint))


@pytest.fixture
def way(request: pytest.FixtureRequest, before_http: Way, before_sasl: Way) -> Way:
    return dict(zip(WAYS, (before_http, before_sasl), strict=True))[request.param]


@pytest.fixture
def proxied(way: Way) -> Iterator[hive.Connection]:
    with closing(connect_over_http(way.http)) as connection:
        yield connection


EVERY_WAY = pytest.mark.parametrize("way", WAYS, indirect=True)


@EVERY_WAY
def test_pyhive_sees_the_same(proxied: hive.Connection, over_http: ThriftServer) -> None:
    through_proxy = [(sql, answer(proxied, sql)) for sql in SEEN_ALIKE]
    with closing(connect_over_http(over_http.endpoint)) as direct:
        assert through_proxy == [(sql, answer(direct, sql)) for sql in SEEN_ALIKE]


@EVERY_WAY
def test_statements_are_rewritten(proxied: hive.Connection, over_http: ThriftServer) -> None:
    explained = [line for (line,) in run(proxied, f"EXPLAIN REWRITE {JOIN}")]
    assert "keys of h_dates, 3 keys" in explained[0]
    assert "Rewritten:" in explained
    assert any("keys         3" in line for line in explained)
    with closing(connect_over_http(over_http.endpoint)) as direct:
        assert sorted(run(proxied, JOIN)) == sorted(run(direct, JOIN))


@EVERY_WAY
def test_a_session_is_shown_its_own_statements_and_no_other(way: Way, proxied: hive.Connection) -> None:
    with closing(connect_over_http(way.http)) as another:
        run(another, "SELECT 'of another'")
        run(proxied, JOIN)
        run(proxied, f"EXPLAIN REWRITE JSON {JOIN}")
        shown = run(proxied, "SHOW STARPRUNER STATEMENTS LIMIT 2")
    assert [(row[2], row[8]) for row in shown] == [
        ("answered", f"EXPLAIN REWRITE JSON {JOIN}"),
        ("rewritten", JOIN),
    ]


@EVERY_WAY
def test_remembered_keys_are_checked_while_a_statement_runs(way: Way, proxied: hive.Connection) -> None:
    sql, before = JOIN.replace("h_dates", "h_chosen"), key_checks(way.proxy)
    with closing(way.connect_directly()) as direct:
        for change in ((), (), ("INSERT INTO h_chosen VALUES (5, 2)",)):
            for write in change:
                run(direct, write)
            assert sorted(run(proxied, sql)) == sorted(run(direct, sql))
    assert key_checks(way.proxy) - before == {"held": 1, "changed": 1}


@EVERY_WAY
def test_fifty_megabytes_arrive(proxied: hive.Connection) -> None:
    rows = run(proxied, "SELECT repeat(CAST(id % 10 AS STRING), 10000) AS s FROM range(5000)")
    assert len(rows) == 5000
    assert all(row == (str(number % 10) * 10_000,) for number, row in enumerate(rows))


@EVERY_WAY
def test_a_cancel_ends_a_statement(proxied: hive.Connection) -> None:
    with closing(proxied.cursor()) as cursor:
        cursor.execute(SLEEP, async_=True)
        started = time.monotonic()
        while cursor.poll().operationState != TOperationState.RUNNING_STATE:
            assert time.monotonic() - started < PROMPTLY_S
        cursor.cancel()
        assert cursor.poll().operationState == TOperationState.CANCELED_STATE
        assert time.monotonic() - started < PROMPTLY_S


def _asked(proxy: ProxyProcess, path: str, method: str = "GET") -> Any:
    with urlopen(Request(f"{proxy.admin_url}{path}", method=method), timeout=PROMPTLY_S) as answered:
        return json.load(answered)


def _cancelled(proxy: ProxyProcess) -> dict[str, Any]:
    """Cancel the only statement that runs, on the admin port. Returns its record."""
    deadline = time.monotonic() + PROMPTLY_S
    while not (running := [one["id"] for one in _asked(proxy, "/now")["running"] if one["spark_ids"]]):
        assert time.monotonic() < deadline
    (identifier,) = running
    assert _asked(proxy, f"/statements/{identifier}/cancel", "POST") == {"cancelled": identifier}
    # The history is written a moment later.
    while not _asked(proxy, f"/statements?text={identifier}")["statements"]:
        assert time.monotonic() < deadline
    found: dict[str, Any] = _asked(proxy, f"/statements/{identifier}")
    return found


def test_an_administrator_cancels_a_statement_and_its_client_is_told(before_http: Way, before_sasl: Way) -> None:
    for proxy, connected in (
        (before_http.proxy, connect_over_http(before_http.http)),
        (before_sasl.proxy, connect_over_http(before_sasl.http)),
        (before_sasl.proxy, connect(before_sasl.proxy.endpoint)),
    ):
        with closing(connected) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(ENDLESS, async_=True)
            record = _cancelled(proxy)
            assert cursor.poll().operationState == TOperationState.CANCELED_STATE
            assert run(connection, "SELECT 42") == [(42,)], "the session goes on"
        assert (record["outcome"], record["cancelled_by"]) == ("cancelled", "an administrator")
        assert record["rewritten"] is not None
        assert len(record["spark_ids"]) == 1, "the original was run as well"


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_impyla_sees_the_same(before_http: Way, over_http: ThriftServer) -> None:
    dbapi = pytest.importorskip("impala.dbapi")

    def rows(endpoint: Endpoint) -> list[Answer]:
        with closing(
            dbapi.connect(
                host=endpoint.host,
                port=endpoint.port,
                use_http_transport=True,
                http_path="cliservice",
                auth_mechanism="PLAIN",
                user="demo",
                password="password",  # noqa: S106 - the server takes any
            )
        ) as connection:
            cursor = connection.cursor()
            cursor.execute(JOIN)
            found: list[Answer] = sorted(cursor.fetchall())
            return found

    seen = rows(before_http.http)
    assert len(seen) == 3
    assert seen == rows(over_http.endpoint)
    # It leaves its sockets to the garbage collector, who is to find them here and in no other test.
    gc.collect()


def test_beeline_prints_the_same(before_http: Way, over_http: ThriftServer, java: Java, tmp_path: Path) -> None:
    script = (
        f"{JOIN} ORDER BY 1;\nSELECT id, concat('row ', id) FROM range(3000);\nSELECT * FROM h_none;\nSELECT 1;\n"
    )
    proxied, direct = (
        run_beeline(java, endpoint, script, tmp_path, url_options=URL_OPTIONS)
        for endpoint in (before_http.http, over_http.endpoint)
    )
    assert proxied.stdout.rstrip().endswith("1"), proxied.stderr
    assert proxied.stdout == direct.stdout
    errors = [comparable_message(done.stderr) for done in (proxied, direct)]
    assert "TABLE_OR_VIEW_NOT_FOUND" in errors[0]
    assert errors[0].replace(str(before_http.http), "") == errors[1].replace(str(over_http.endpoint), "")


def test_several_servers_are_as_one(over_http: ThriftServer, java: Java, tmp_path: Path) -> None:
    with (
        way_to(over_http.endpoint) as first,
        way_to(over_http.endpoint) as second,
        proxy_with_http(first.endpoint, tmp_path, "http", second.endpoint) as (_, http),
        closing(connect_over_http(http)) as one,
        closing(connect_over_http(http)) as other,
        closing(connect_over_http(over_http.endpoint)) as direct,
    ):
        # The second session has gone where the first one is not.
        assert first.connections
        assert second.connections
        expected = sorted(run(direct, JOIN))
        for proxied in (one, other):
            assert sorted(run(proxied, JOIN)) == expected
            assert ("Rewritten:",) in run(proxied, f"EXPLAIN REWRITE {JOIN}")
        # hive-jdbc goes on by the server's cookie alone.
        printed = run_beeline(java, http, f"{JOIN} ORDER BY 1;\nSELECT 42;\n", tmp_path, url_options=URL_OPTIONS)
        assert printed.stdout.rstrip().endswith("42"), printed.stderr


def test_a_failure_of_the_rewritten_text_is_never_seen(over_http: ThriftServer) -> None:
    sql = "SELECT 11 AS a FROM range(3)"
    script = Script({sql: "SELECT 11 AS a FROM range(3) WHERE id > raise_error('x')"})
    with (
        scripted_proxy(over_http.endpoint, script, Transport.HTTP) as endpoint,
        closing(connect_over_http(endpoint)) as proxied,
    ):
        assert run(proxied, sql) == [(11,)] * 3
        with closing(proxied.cursor()) as cursor:
            cursor.execute(sql, async_=True)
            while cursor.poll().operationState in (
                TOperationState.INITIALIZED_STATE,
                TOperationState.PENDING_STATE,
                TOperationState.RUNNING_STATE,
            ):
                pass
            assert cursor.fetchall() == [(11,)] * 3
    assert [outcome.kind for text, outcome in script.outcomes if text == sql] == [OutcomeKind.RECOVERED] * 2
