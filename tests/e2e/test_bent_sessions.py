"""A client bends its own session, also past the proxy: nobody else's answers and lists change by that."""

import json
from collections.abc import Iterator
from contextlib import closing

import pytest
from pyhive import hive
from support.proxies import patient

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

# A thousand rows in four files, which an index knows by x; and four partitions.
TABLES = """
DROP DATABASE IF EXISTS bent CASCADE;
CREATE DATABASE bent;
CREATE TABLE bent.clustered USING parquet AS SELECT int(id) AS x FROM range(0, 1000, 1, 4);
CREATE TABLE bent.wanted USING parquet AS SELECT int(id) AS x, 1 AS g FROM range(0, 1000);
CREATE TABLE bent.daily (x INT, ds STRING) USING parquet PARTITIONED BY (ds);
INSERT INTO bent.daily SELECT int(id), concat('d', id % 4) FROM range(0, 100);
CREATE TABLE bent.days USING parquet AS SELECT 'd1' AS ds;
CREATE TABLE bent.file_index (path STRING, size_bytes BIGINT, modified_ms BIGINT, rows BIGINT,
  columns MAP<STRING, STRUCT<type: STRING, low: STRING, high: STRING, nulls: BIGINT>>,
  lacks ARRAY<STRUCT<columns: ARRAY<STRING>, tuples: ARRAY<ARRAY<STRING>>>>,
  indexed_at TIMESTAMP, table_name STRING) USING parquet PARTITIONED BY (table_name);
INSERT INTO bent.file_index PARTITION (table_name = 'spark_catalog.bent.clustered')
  SELECT path, size_bytes, modified_ms, count(*),
    map('x', struct('int' AS type, string(min(x)) AS low, string(max(x)) AS high, 0L AS nulls)),
    NULL, current_timestamp()
  FROM (SELECT x, _metadata.file_path AS path, _metadata.file_size AS size_bytes,
    unix_millis(_metadata.file_modification_time) AS modified_ms FROM bent.clustered)
  GROUP BY path, size_bytes, modified_ms
"""
JOIN = "SELECT count(*) FROM bent.clustered c JOIN bent.wanted w ON c.x = w.x WHERE w.g = 1"
# By its keys alone: it makes the proxy ask for the settings, and for no list.
FIRST_JOIN = "SELECT count(*) FROM bent.daily f JOIN bent.days d ON f.ds = d.ds"
LISTED = "EXPLAIN PARTITIONS JSON bent.daily WHERE ds >= 'd0'"

# To whom the index is read so, no file has a row below 999.
FALSE_BOUNDS = json.dumps({"x": {"type": "int", "low": "9999", "high": "9999", "nulls": 0, "row_groups": []}})
BENDING = (
    "CREATE TEMPORARY FUNCTION current_user() RETURNS STRING RETURN 'second'",
    f"CREATE TEMPORARY FUNCTION to_json(c STRING) RETURNS STRING RETURN '{FALSE_BOUNDS}'",
)
OWN_FUNCTIONS_FIRST = "SET spark.sql.functionResolution.sessionOrder=first"


@pytest.fixture
def indexing(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    with closing(connect(spark.endpoint)) as direct:
        for statement in TABLES.split(";"):
            run(direct, statement)
    options = patient("files.index=bent.file_index", files=True)
    with proxy_process(spark.endpoint, tmp_path_factory.mktemp("bent"), options=options) as process:
        yield process


def past_the_proxy(session: hive.Connection, spark: ThriftServer, *statements: str) -> None:
    """Run statements in a session over a connection of the backend's own: the handle works from any."""
    with closing(connect(spark.endpoint)) as direct:
        own, direct._sessionHandle = direct._sessionHandle, session.sessionHandle  # noqa: SLF001 - to use another's
        for statement in statements:
            run(direct, statement)
        direct._sessionHandle = own  # noqa: SLF001


def bend(session: hive.Connection, spark: ThriftServer) -> None:
    """Make a session lie to the proxy, which has just asked for its settings."""
    past_the_proxy(session, spark, *BENDING)
    assert run(session, FIRST_JOIN) == [(25,)]
    past_the_proxy(session, spark, OWN_FUNCTIONS_FIRST)


def test_a_session_that_was_bent_past_the_proxy_changes_no_other_answer(
    indexing: ProxyProcess, spark: ThriftServer
) -> None:
    with closing(connect(indexing.endpoint, user="first")) as bent:
        bend(bent, spark)
        _ = run(bent, JOIN)
    for name in ("first", "second"):
        with closing(connect(indexing.endpoint, user=name)) as other:
            assert run(other, JOIN) == [(1_000,)], name


def test_a_session_that_was_bent_through_the_proxy_changes_no_other_answer(indexing: ProxyProcess) -> None:
    with closing(connect(indexing.endpoint, user="first")) as bent:
        for statement in BENDING:
            run(bent, statement)
        assert run(bent, FIRST_JOIN) == [(25,)]
        run(bent, "SET v=functionResolution")
        run(bent, OWN_FUNCTIONS_FIRST.replace("functionResolution", "${v}"))
        _ = run(bent, JOIN)
    for name in ("first", "second"):
        with closing(connect(indexing.endpoint, user=name)) as other:
            assert run(other, JOIN) == [(1_000,)], name


def names(session: hive.Connection) -> set[str]:
    ((answer,),) = run(session, LISTED)
    return set(json.loads(answer)["names"])


def test_nobody_is_shown_the_list_of_another_user(
    indexing: ProxyProcess, spark: ThriftServer, direct: hive.Connection
) -> None:
    with closing(connect(indexing.endpoint, user="second")) as second:
        assert "ds=d3" in names(second)
    with closing(connect(indexing.endpoint, user="first")) as first:
        bend(first, spark)
        run(direct, "ALTER TABLE bent.daily DROP PARTITION (ds = 'd3')")
        assert names(first) == {"ds=d0", "ds=d1", "ds=d2"}
