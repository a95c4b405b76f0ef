"""A PyHive client cannot tell the proxy from the server."""

import pytest
from pyhive import hive
from support.beeline_clients import answer

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess

SIMPLE_TYPES = """
SELECT true AS a_boolean, 1Y AS a_tinyint, 2S AS a_smallint, 3 AS an_int, 4L AS a_bigint, 1.5F AS a_float,
  2.5D AS a_double, 12.34BD AS a_decimal, 'text' AS a_string, CAST('c' AS CHAR(3)) AS a_char,
  CAST('v' AS VARCHAR(3)) AS a_varchar, X'00ff41' AS a_binary, DATE'2024-02-29' AS a_date,
  TIMESTAMP'2024-02-29 12:34:56.789' AS a_timestamp, INTERVAL '1 02:03:04' DAY TO SECOND AS a_day_interval,
  INTERVAL '1-2' YEAR TO MONTH AS a_month_interval, array(1, 2) AS an_array, map('a', 1) AS a_map,
  named_struct('x', 1, 'y', 'z') AS a_struct, NULL AS a_null"""

# Each is run from top to bottom in one session, once directly and once through the proxy.
SCRIPTS = {
    "simple types": [SIMPLE_TYPES],
    "nulls among values": [
        "SELECT * FROM VALUES (1, 'a', true), (NULL, NULL, NULL), (3, '', false) AS t(a, b, c)"
    ],
    "unicode": ["SELECT 'Zażółć gęślą jaźń' AS `naïve`, '日本語' AS b, '🦔' AS c, 'tab\there' AS d"],
    "an empty result": ["SELECT id, 'x' AS x FROM range(0)"],
    "the current database": [
        "CREATE DATABASE IF NOT EXISTS e2e_other",
        "USE e2e_other",
        "SELECT current_database()",
        "USE default",
        "SELECT current_database()",
    ],
    "settings": [
        "SET spark.sql.session.timeZone=Asia/Tokyo",
        "SET spark.sql.session.timeZone",
        "SELECT current_timezone(), TIMESTAMP'2024-01-01 00:00:00Z'",
        "SET demo.test=${hiveconf:none}",
    ],
    "temporary views": [
        "CREATE TEMPORARY VIEW e2e_view AS SELECT id AS k FROM range(3)",
        "SELECT * FROM e2e_view ORDER BY k",
        "DROP VIEW e2e_view",
        "SELECT * FROM e2e_view",
    ],
    "writing": [
        "CREATE TABLE e2e_written (k INT, v STRING) USING parquet",
        "INSERT INTO e2e_written VALUES (1, 'one'), (2, NULL)",
        "SELECT * FROM e2e_written ORDER BY k",
        "DROP TABLE e2e_written",
    ],
    "errors": [
        "SELECT * FROM e2e_no_such_table",
        "SELEC 1",
        "SELECT no_such_column FROM range(1)",
        "SELECT raise_error('it was planned so')",
        "SELECT CAST('x' AS INT)",
        "SELECT 1; SELECT 2",
        "",
    ],
    "a semicolon at the end": ["SELECT 1;"],
    "comments and odd spaces": ["/* one */ SELECT -- two\n 1 AS a\t\n"],
}


@pytest.mark.parametrize("statements", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_every_statement_of_a_session_is_answered_as_by_the_server(
    direct: hive.Connection, proxied: hive.Connection, statements: list[str]
) -> None:
    through_proxy = [(sql, answer(proxied, sql)) for sql in statements]
    assert through_proxy == [(sql, answer(direct, sql)) for sql in statements]


def test_two_hundred_thousand_rows_arrive_in_order(direct: hive.Connection, proxied: hive.Connection) -> None:
    sql = "SELECT id, concat('row ', id) AS label FROM range(200000)"
    rows = run(proxied, sql)
    assert len(rows) == 200_000
    assert rows == run(direct, sql)


def test_sessions_do_not_see_each_others_settings_and_views(proxy: ProxyProcess, proxied: hive.Connection) -> None:
    other = connect(proxy.endpoint)
    run(proxied, "CREATE TEMPORARY VIEW e2e_mine AS SELECT 1 AS k")
    run(proxied, "SET spark.sql.session.timeZone=Asia/Tokyo")
    assert run(proxied, "SELECT k, current_timezone() FROM e2e_mine") == [(1, "Asia/Tokyo")]
    assert answer(other, "SELECT * FROM e2e_mine")[0] == "error"
    assert run(other, "SELECT current_timezone()") != [("Asia/Tokyo",)]
    other.close()


def test_a_session_opens_in_the_database_that_the_client_named(
    proxy: ProxyProcess, direct: hive.Connection
) -> None:
    run(direct, "CREATE DATABASE IF NOT EXISTS e2e_named")
    connection = connect(proxy.endpoint, database="e2e_named")
    assert run(connection, "SELECT current_database()") == [("e2e_named",)]
    connection.close()


def test_catalog_calls_of_the_protocol_pass_through(direct: hive.Connection, proxied: hive.Connection) -> None:
    run(direct, "CREATE OR REPLACE VIEW e2e_catalog AS SELECT 1 AS k")
    assert "e2e_catalog" in {row[1] for row in run(proxied, "SHOW TABLES")}
    assert run(proxied, "DESCRIBE e2e_catalog") == run(direct, "DESCRIBE e2e_catalog") == [("k", "int", None)]
