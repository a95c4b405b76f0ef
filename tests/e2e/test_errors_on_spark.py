"""Errors that are the statement's own: those that Spark always reports, and those that depend on what it reads."""

from contextlib import closing

import pytest
from pyhive import hive

from demo.hive import connect, run
from demo.thrift_server import ThriftServer

DATABASE = "own_errors"
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
    run(session, f"USE {DATABASE}")
    # An empty side of a join would let adaptive execution drop the other one, error and all.
    run(session, "SET spark.sql.adaptive.enabled=false")
    with pytest.raises(hive.Error) as caught:
        run(session, sql)
    (response,) = caught.value.args
    return str(response.status.errorMessage)


@pytest.mark.parametrize("sql", TOO_MANY_ROWS)
def test_a_scalar_subquery_of_two_rows_is_the_error_that_spark_reports(
    sql: str, direct: hive.Connection, proxied: hive.Connection
) -> None:
    expected = failure(direct, sql)
    assert "SCALAR_SUBQUERY_TOO_MANY_ROWS" in expected
    assert failure(proxied, sql) == expected
    told = "\n".join(str(line) for (line,) in run(proxied, f"EXPLAIN REWRITE {sql}"))
    assert "A subquery behind = gave more than one row" in told


def test_an_error_in_rows_that_no_key_matches_is_for_spark_to_find_or_not(
    direct: hive.Connection, proxied: hive.Connection
) -> None:
    for session in (direct, proxied):
        run(session, f"USE {DATABASE}")
    # Spark's own pruning at run time leaves the zero out, and without that it does not.
    assert sorted(run(direct, DIVIDES)) == [(1,), (2,)]
    run(direct, f"SET {PRUNED}=false")
    assert "DIVIDE_BY_ZERO" in failure(direct, DIVIDES)
    # Pruned while it is planned, the statement never divides by it.
    run(proxied, f"SET {PRUNED}=false")
    assert sorted(run(proxied, DIVIDES)) == [(1,), (2,)]
