"""Scans of Iceberg tables with many small files: Iceberg makes the splits that are reckoned with."""

import re
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from pipeline_server import PipelineServer
from pyhive import hive
from support.proxies import DEADLINE_S, patient

from demo.hive import connect, run, same_answer
from demo.proxy_process import ProxyProcess, proxy_process

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


PLAIN = "SELECT m.k % 10 AS g, sum(m.v) AS total FROM ice.splits.many m GROUP BY m.k % 10"


@pytest.fixture(scope="module")
def grouping(
    iceberg_server: PipelineServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[hive.Connection]:
    """A session behind a proxy that has no file index: Iceberg tells of its files."""
    options = patient(files=True)
    directory = tmp_path_factory.mktemp("iceberg_splits")
    with (
        proxy_process(iceberg_server.endpoint, directory, options=options) as process,
        closing(connect(process.endpoint)) as connection,
    ):
        yield connection


def test_a_scan_that_nothing_narrows_takes_fewer_tasks_once_its_files_are_known(
    session: hive.Connection, grouping: hive.Connection, iceberg_server: PipelineServer
) -> None:
    answer, plain = run(session, PLAIN), tasks(session, iceberg_server, PLAIN)
    # The first statement describes the table, the second has its files listed beside it.
    deadline = time.monotonic() + DEADLINE_S
    while tasks(grouping, iceberg_server, PLAIN) >= plain - 28:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert same_answer(run(grouping, PLAIN), answer)
    lines = [line for (line,) in run(grouping, f"EXPLAIN REWRITE {PLAIN}")]
    before, after = next(map(int, found.groups()) for found in map(_SPLITS.fullmatch, lines) if found)
    assert plain - tasks(grouping, iceberg_server, PLAIN) == before - after


def test_filters_and_columns_reach_iceberg_through_the_hint(
    session: hive.Connection, grouping: hive.Connection
) -> None:
    sql = "SELECT m.v FROM ice.splits.many m WHERE m.v <> 7"
    lines = [line for (line,) in run(grouping, f"EXPLAIN REWRITE {sql}")]
    rewritten = lines[lines.index("Rewritten:") + 1].strip()
    (plan,) = (row[0] for row in run(session, f"EXPLAIN {rewritten}"))
    assert "Coalesce" in plan
    assert re.search(r"BatchScan ice\.splits\.many[^\n]*\bfilters=[^\n]*v", plan)
    assert re.search(r"BatchScan ice\.splits\.many\[v#\d+L\]", plan)


def test_a_count_that_iceberg_answers_from_its_metadata_is_left_alone(
    session: hive.Connection, grouping: hive.Connection
) -> None:
    sql = "SELECT count(*) AS n FROM ice.splits.many"
    lines = [line for (line,) in run(grouping, f"EXPLAIN REWRITE {sql}")]
    assert not any("COALESCE" in line for line in lines)
    (plan,) = (row[0] for row in run(session, f"EXPLAIN {sql}"))
    assert "LocalTableScan" in plan
