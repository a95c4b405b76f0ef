"""Errors that are the statement's own: those that Spark always reports, and those that depend on what it reads."""

import re
from collections.abc import Mapping
from contextlib import closing

import pytest
from pyhive import hive
from support.server_version import Version, version_of

from demo.hive import connect, run
from demo.thrift_server import ThriftServer
from proxy.session.feedback.spark_errors import error_of

DATABASE = "own_errors"
ANSI = "SET spark.sql.ansi.enabled=true"
NO_CLASS = "an error without a class"
PRUNED = "spark.sql.optimizer.dynamicPartitionPruning.enabled"

TABLES = (
    f"CREATE DATABASE {DATABASE}",
    f"USE {DATABASE}",
    "CREATE TABLE f (v INT, k INT) USING parquet PARTITIONED BY (k)",
    "INSERT INTO f VALUES (0, 1), (1, 2), (2, 3)",
    "CREATE TABLE d (k INT, g INT) USING parquet",
    "INSERT INTO d VALUES (1, 1), (2, 2), (3, 2), (9, 3), (9, 3)",
)

# The partition with the zero has no partner, so whether Spark divides by it depends on how far it prunes.
DIVIDES = "SELECT /*+ BROADCAST(d) */ f.v FROM f JOIN d ON f.k = d.k WHERE d.g = 2 AND 10 / f.v > 1"

# Two rows, two equal rows, and two rows beside a join without a single key.
TOO_MANY_ROWS = (
    "SELECT v FROM f WHERE k = (SELECT k FROM d WHERE g = 2)",
    "SELECT v FROM f WHERE k = (SELECT k FROM d WHERE g = 3)",
    "SELECT f.v FROM d JOIN f ON f.k = d.k WHERE d.g > 9 AND f.k = (SELECT k FROM d WHERE g = 2)",
)


@pytest.fixture(scope="module", autouse=True)
def tables(spark: ThriftServer) -> None:
    with closing(connect(spark.endpoint)) as connection:
        for sql in TABLES:
            run(connection, sql)


def failure(session: hive.Connection, sql: str) -> str:
    """The message of an error, less the numbers that Spark gives to the parts of each plan."""
    run(session, f"USE {DATABASE}")
    # An empty side of a join would let adaptive execution drop the other one, error and all.
    run(session, "SET spark.sql.adaptive.enabled=false")
    with pytest.raises(hive.Error) as caught:
        run(session, sql)
    (response,) = caught.value.args
    return re.sub(r"#\d+", "#", str(response.status.errorMessage))


@pytest.mark.parametrize("sql", TOO_MANY_ROWS)
def test_a_scalar_subquery_of_two_rows_is_the_error_that_spark_reports(
    sql: str, direct: hive.Connection, proxied: hive.Connection
) -> None:
    expected = failure(direct, sql)
    assert "more than one row returned by a subquery" in expected.lower()
    assert failure(proxied, sql) == expected
    told = "\n".join(str(line) for (line,) in run(proxied, f"EXPLAIN REWRITE {sql}"))
    assert "A subquery behind = gave more than one row" in told


def test_an_error_in_rows_that_no_key_matches_is_for_spark_to_find_or_not(
    direct: hive.Connection, proxied: hive.Connection
) -> None:
    for session in (direct, proxied):
        run(session, f"USE {DATABASE}")
        run(session, ANSI)
    # Spark's own pruning at run time leaves the zero out, and without that it does not.
    assert sorted(run(direct, DIVIDES)) == [(1,), (2,)]
    run(direct, f"SET {PRUNED}=false")
    assert "division by zero" in failure(direct, DIVIDES).lower()
    # Pruned while it is planned, the statement never divides by it.
    run(proxied, f"SET {PRUNED}=false")
    assert sorted(run(proxied, DIVIDES)) == [(1,), (2,)]


# The dimension has a text that is no day, so that its key query fails under ANSI each time.
NO_DAY = "SELECT f.v FROM f JOIN texts d ON f.k = day(to_date(d.day)) WHERE d.g = 1"


def test_a_key_query_that_fails_by_its_text_is_asked_once_and_explained_by_spark_s_class(
    direct: hive.Connection, proxied: hive.Connection
) -> None:
    run(direct, f"USE {DATABASE}")
    run(direct, "CREATE TABLE texts (day STRING, g INT) USING parquet")
    run(direct, "INSERT INTO texts VALUES ('2026-01-02', 1), ('a secret', 1)")
    run(proxied, f"USE {DATABASE}")
    run(proxied, ANSI)
    told = ["\n".join(str(line) for (line,) in run(proxied, f"EXPLAIN REWRITE {NO_DAY}")) for _ in range(2)]
    # Of an error without a state nobody knows that it will come again.
    is_lasting = version_of(direct) >= (4, 0)
    error = "CAST_INVALID_INPUT (SQLSTATE 22018)" if is_lasting else NO_CLASS
    assert all(f"Spark said {error}" in lines for lines in told)
    assert ["asked again in" in lines for lines in told] == [False, is_lasting]
    assert not any("secret" in lines for lines in told)


@pytest.mark.parametrize(
    ("sql", "errors"),
    [
        ("SELECT 1 / (id - id) FROM range(3)", {(4, 0): "DIVIDE_BY_ZERO (SQLSTATE 22012)"}),
        (
            "SELECT CAST(id || 'x' AS INT) FROM range(0, 10, 1, 2)",
            {(4, 0): "CAST_INVALID_INPUT (SQLSTATE 22018)"},
        ),
        ("SELECT '[SECRET]' FROM nowhere", {(3, 4): "TABLE_OR_VIEW_NOT_FOUND (SQLSTATE 42P01)"}),
        (
            "SELEC '[SECRET]'",
            {(3, 3): "PARSE_SYNTAX_ERROR (SQLSTATE 42000)", (3, 4): "PARSE_SYNTAX_ERROR (SQLSTATE 42601)"},
        ),
        (
            "SELECT raise_error('[SECRET] SQLSTATE: 12345')",
            {(4, 0): "USER_RAISED_EXCEPTION (SQLSTATE P0001)"},
        ),
    ],
)
def test_an_error_that_comes_again_is_known_by_its_class_and_state(
    sql: str, errors: Mapping[Version, str], direct: hive.Connection
) -> None:
    """By the oldest version from which on Spark tells it so; older ones tell neither class nor state."""
    run(direct, ANSI)
    told = [error for since, error in sorted(errors.items()) if version_of(direct) >= since]
    with pytest.raises(hive.Error) as caught:
        run(direct, sql)
    (response,) = caught.value.args
    # As `proxy.operations.run_query` has it.
    state = f" (SQLSTATE {response.status.sqlState})" if response.status.sqlState else ""
    found = error_of(f"{response.status.errorMessage}{state}")
    assert (str(found), found.is_lasting) == ((told[-1], True) if told else (NO_CLASS, False))
