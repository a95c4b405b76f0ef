"""What a file is known by in a hint, switched off part by part: a file written again then gives a wrong answer.

The proxy's session runs in this process, so that it can be changed, and asks the real server.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from layout_world import on_disk, put
from pipeline_server import FILE_INDEX, PipelineServer
from pyhive import hive
from support.text_session import TextSession

from demo.hive import connect, run
from proxy.config.config import Config
from proxy.config.rewriting import FilesSection, RewriteSection
from proxy.operations.query import QueryResult, ResultColumn, Rows
from proxy.session.shared_state import SharedState
from rewriter.files.file_facts import FileFacts

TABLES = ("by_time", "by_size", "by_name")
# Rows of a file that holds 1 alone, before it is written again.
AS_LARGE, LARGER = "SELECT 7 AS x", "SELECT 7 AS x UNION ALL SELECT id FROM range(100, 5000)"

_NAMES = "NOT IN ({names})"
_SIZE, _TIME = "_metadata.file_size", "unix_millis(_metadata.file_modification_time)"
# Parts of the condition, and of what it compares with, by what a file is known by then.
WITHOUT_SIZE = (
    f"({_TIME} NOT IN ({{times}}) OR concat(_metadata.file_path, '|', CAST({_TIME} AS STRING)) {_NAMES})",
    lambda facts: f"{facts.path}|{facts.modified_ms}",
)
WITHOUT_TIME = (
    f"({_SIZE} NOT IN ({{sizes}}) OR concat(_metadata.file_path, '|', CAST({_SIZE} AS STRING)) {_NAMES})",
    lambda facts: f"{facts.path}|{facts.size_bytes}",
)
BY_NAME = (f"(_metadata.file_path {_NAMES})", lambda facts: facts.path)
Mutant = tuple[str, Callable[[FileFacts], str]]


@pytest.fixture(scope="module")
def tables(pipeline_spark: PipelineServer) -> Iterator[hive.Connection]:
    """A connection to a database of tables with two files each, which are indexed."""
    with closing(connect(pipeline_spark.endpoint)) as connection:
        run(connection, "CREATE DATABASE mutants")
        run(connection, "USE mutants")
        for table in TABLES:
            run(connection, f"CREATE TABLE {table} (x BIGINT) USING parquet")
            for rows in ("SELECT 1", "SELECT /*+ COALESCE(1) */ id FROM range(10, 90)"):
                run(connection, f"INSERT INTO {table} {rows}")
        named = (word for table in TABLES for word in ("--table", f"mutants.{table}"))
        _ = pipeline_spark.pipeline("index", *named, "--index", FILE_INDEX)
        yield connection
        run(connection, "DROP DATABASE mutants CASCADE")


@pytest.fixture
def session() -> TextSession:
    """The proxy's end of a session."""
    files = FilesSection(index=FILE_INDEX, query_deadline_s=600)
    # A table of two small files would not be worth asking for.
    config = Config(files=files, rewrite=RewriteSection(cost_gate=False))
    return TextSession(SharedState.of(config, time.monotonic))


def sent(session: TextSession, connection: hive.Connection, sql: str) -> str:
    """What would go to the backend for a statement."""
    queries, answer = session.rewrite(sql), None
    while True:
        try:
            query = queries.send(answer)
        except StopIteration as done:
            return str(done.value.text)
        answer = answered(connection, query.sql)


def answered(connection: hive.Connection, sql: str) -> QueryResult:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        types = [(name, kind.lower().removesuffix("_type")) for name, kind, *_ in cursor.description]
        return Rows(tuple(ResultColumn(*described) for described in types), tuple(cursor.fetchall()), 0.0)


def write_again(connection: hive.Connection, table: str, rows: str, *, at_the_same_time: bool) -> None:
    """Put other rows in the place of the file that holds 1."""
    ((path,),) = run(connection, f"SELECT DISTINCT _metadata.file_path FROM {table} WHERE x = 1")
    target = on_disk(str(path))
    written_ns = target.stat().st_mtime_ns
    run(connection, f"CREATE TABLE {table}_again (x BIGINT) USING parquet")
    run(connection, f"INSERT INTO {table}_again SELECT /*+ COALESCE(1) */ x FROM ({rows})")
    ((other,),) = run(connection, f"SELECT DISTINCT _metadata.file_path FROM {table}_again")
    put(on_disk(str(other)), target)
    if at_the_same_time:
        os.utime(target, ns=(written_ns, written_ns))
    run(connection, f"REFRESH TABLE {table}")


@pytest.mark.parametrize(
    ("table", "mutant", "rows", "at_the_same_time"),
    [
        pytest.param("by_time", WITHOUT_SIZE, LARGER, True, id="without its size"),
        pytest.param("by_size", WITHOUT_TIME, AS_LARGE, False, id="without its time"),
        pytest.param("by_name", BY_NAME, LARGER, False, id="by its name alone"),
    ],
)
def test_a_file_written_again_is_read_and_would_not_be_if_it_were_known(  # noqa: PLR0913, PLR0917 - a case each
    tables: hive.Connection,
    session: TextSession,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
    mutant: Mutant,
    rows: str,
    at_the_same_time: bool,  # noqa: FBT001 - a parameter of the cases
) -> None:
    point = f"SELECT x FROM {table} WHERE x = 7"
    sound = sent(session, tables, point)
    hint, identity = mutant
    monkeypatch.setattr("rewriter.files.file_hint._HINT", hint)
    monkeypatch.setattr(FileFacts, "identity", property(identity))
    unsound = sent(session, tables, point)
    assert "NOT IN" in sound
    assert "NOT IN" in unsound
    assert unsound != sound
    assert run(tables, sound) == run(tables, unsound) == []
    write_again(tables, table, rows, at_the_same_time=at_the_same_time)
    assert run(tables, point) == run(tables, sound) == [(7,)]
    assert run(tables, unsound) == []
