"""EXPLAIN PARTITIONS on Spark tells files and bytes of partitions, once a statement has fetched the index."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from pyhive import hive
from support.proxies import patient

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

# Directories whose names are written in another way than the values, and in paths in another way again.
PLACES = ("ab", "50%", "a b", "x=1/2", "ä:b", "__HIVE_DEFAULT_PARTITION__x")
TABLES = f"""
DROP DATABASE IF EXISTS placed CASCADE;
CREATE DATABASE placed;
CREATE TABLE placed.visits (x INT, y INT, place STRING) USING parquet PARTITIONED BY (y, place);
INSERT INTO placed.visits SELECT /*+ REPARTITION(2) */ int(id % 100), int(2020 + id % 3), place
  FROM range(0, 3000), VALUES {", ".join(f"('{place}')" for place in PLACES)}, (NULL) AS t(place);
CREATE TABLE placed.file_index (path STRING, size_bytes BIGINT, modified_ms BIGINT, rows BIGINT,
  columns MAP<STRING, STRUCT<type: STRING, low: STRING, high: STRING, nulls: BIGINT>>,
  lacks ARRAY<STRUCT<columns: ARRAY<STRING>, tuples: ARRAY<ARRAY<STRING>>>>,
  indexed_at TIMESTAMP, table_name STRING) USING parquet PARTITIONED BY (table_name);
INSERT INTO placed.file_index PARTITION (table_name = 'spark_catalog.placed.visits')
  SELECT path, size_bytes, modified_ms, count(*),
    map('x', struct('int' AS type, string(min(x)) AS low, string(max(x)) AS high, count(*) - count(x) AS nulls)),
    NULL, current_timestamp()
  FROM (SELECT x, _metadata.file_path AS path, _metadata.file_size AS size_bytes,
    unix_millis(_metadata.file_modification_time) AS modified_ms FROM placed.visits)
  GROUP BY path, size_bytes, modified_ms
"""


@pytest.fixture(scope="module")
def indexing(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    with closing(connect(spark.endpoint)) as connection:
        for statement in TABLES.split(";"):
            run(connection, statement)
    options = patient("files.index=placed.file_index", "catalog.facts_ttl_s=3600", files=True)
    with proxy_process(spark.endpoint, tmp_path_factory.mktemp("indexing"), options=options) as process:
        yield process
    with closing(connect(spark.endpoint)) as connection:
        run(connection, "DROP DATABASE placed CASCADE")


def explained(session: hive.Connection, condition: str) -> dict[str, Any]:
    ((answer,),) = run(session, f"EXPLAIN PARTITIONS JSON placed.visits WHERE {condition}")
    found: dict[str, Any] = json.loads(answer)
    return found


def counted(session: hive.Connection, condition: str) -> tuple[int, int]:
    """Files and bytes, as Spark says itself."""
    sql = "SELECT DISTINCT _metadata.file_path AS path, _metadata.file_size AS size FROM placed.visits WHERE"
    ((files, size),) = run(session, f"SELECT count(*), sum(size) FROM ({sql} {condition})")
    return files, size


def test_files_and_bytes_are_those_that_spark_reads(indexing: ProxyProcess, direct: hive.Connection) -> None:
    with closing(connect(indexing.endpoint)) as session:
        before = explained(session, "y = 2021")
        assert (before["files"], before["location"]) == ({"total": None, "kept": None}, None), "nothing is asked"
        run(session, "SELECT count(*) FROM placed.visits WHERE x = 107")
        total = counted(direct, "TRUE")
        for condition in ("y = 2021", "y > 2020 AND place = 'ab'", "place IS NULL", "place IN ('50%', 'x=1/2')"):
            plan = explained(session, condition)
            assert (plan["files"]["total"], plan["bytes"]["total"]) == total
            assert (plan["files"]["kept"], plan["bytes"]["kept"]) == counted(direct, condition)
            assert plan["location"].endswith("/visits")
        lines = [row[0] for row in run(session, "EXPLAIN PARTITIONS placed.visits WHERE y = 2021")]
        assert any(line.startswith("Files ") for line in lines)
