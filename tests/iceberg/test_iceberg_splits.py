"""Narrowed scans of Iceberg tables with many small files: Iceberg makes the splits that are reckoned with."""

import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from pipeline_server import PipelineServer
from pyhive import hive

from demo.hive import connect, run, same_answer
from demo.proxy_process import ProxyProcess

# As many small files, and a key in each of those that are asked for.
FILES, FILES_ASKED, ROWS_OF_A_FILE = 240, 200, 10
TABLES = f"""
CREATE DATABASE ice.splits;
USE ice.splits;
CREATE TABLE many (k INT, v BIGINT) USING iceberg;
INSERT INTO many SELECT CAST(id AS INT), id * 7 FROM range(0, {FILES * ROWS_OF_A_FILE}, 1, {FILES});
CREATE TABLE wanted (k INT, g INT) USING iceberg;
INSERT INTO wanted SELECT CAST(id * {ROWS_OF_A_FILE} AS INT), 1 FROM range({FILES_ASKED})"""
SQL = (
    "SELECT count(*) AS n, sum(m.v) AS total FROM ice.splits.many m"
    " JOIN ice.splits.wanted w ON m.k = w.k WHERE w.g = 1"
)

_HINT = re.compile(r"/\*\+ COALESCE\([0-9]+\) \*/ ")
_SPLITS = re.compile(r"  splits +([0-9]+) before, ([0-9]+) after")


@pytest.fixture(scope="module")
def session(iceberg_server: PipelineServer) -> Iterator[hive.Connection]:
    with closing(connect(iceberg_server.endpoint)) as connection:
        for statement in TABLES.split(";"):
            run(connection, statement)
        yield connection
        for _, table, _ in run(connection, "SHOW TABLES"):
            run(connection, f"DROP TABLE {table} PURGE")
        run(connection, "DROP DATABASE ice.splits")


def test_a_narrowed_scan_takes_as_many_tasks_fewer_as_explain_says(
    session: hive.Connection, iceberg_server: PipelineServer, iceberg_proxy: ProxyProcess
) -> None:
    with closing(connect(iceberg_proxy.endpoint)) as proxied:
        lines = [line for (line,) in run(proxied, f"EXPLAIN REWRITE {SQL}")]
        assert same_answer(run(proxied, SQL), run(session, SQL))
    before, after = next(map(int, found.groups()) for found in map(_SPLITS.fullmatch, lines) if found)
    assert after < before
    narrowed = lines[lines.index("Rewritten:") + 1].strip()
    hinted, plain = (tasks(session, iceberg_server, sql) for sql in (narrowed, _HINT.sub("", narrowed)))
    assert plain - hinted == before - after


def tasks(session: hive.Connection, server: PipelineServer, sql: str) -> int:
    first = server.ui.last_execution()
    run(session, sql)
    return server.ui.tasks(after=first)
