"""`starpruner pipeline compact` of Delta tables, by Delta's own OPTIMIZE."""

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import pytest
from pipeline_server import CommandError, PipelineServer
from pyhive import hive

from demo.hive import connect, run

DATABASE = "compacted"
# Each of these is a file of every partition.
PARTS = tuple(
    f"SELECT /*+ REPARTITION(1) */ INT(id), INT(id % 2) FROM range({start}, 30)" for start in (20, 10, 0)
)
NUMBERS = "(k INT, p INT) USING delta"
BY_P = f"{NUMBERS} PARTITIONED BY (p)"


class Detail(NamedTuple):
    """A table's files as DESCRIBE DETAIL counts them, and the operations of its history, newest first."""

    files: int
    size_bytes: int
    operations: tuple[str, ...]


@pytest.fixture(scope="module")
def session(delta_server: PipelineServer) -> Iterator[hive.Connection]:
    with closing(connect(delta_server.endpoint)) as connection:
        run(connection, f"CREATE DATABASE {DATABASE}")
        yield connection


def filled(session: hive.Connection, name: str, columns: str) -> str:
    """The table of that name, with three files in each partition."""
    table = f"{DATABASE}.{name}"
    run(session, f"CREATE TABLE {table} {columns}")
    for part in PARTS:
        run(session, f"INSERT INTO {table} {part}")
    return table


def detail(session: hive.Connection, table: str) -> Detail:
    [row] = run(session, f"DESCRIBE DETAIL {table}")
    history = run(session, f"DESCRIBE HISTORY {table}")
    return Detail(int(row[9]), int(row[10]), tuple(str(line[4]) for line in history))


def refusal(server: PipelineServer, *arguments: str) -> str:
    """The sentence that says why, the last line of all."""
    with pytest.raises(CommandError) as refused:
        _ = server.pipeline(*arguments)
    assert "Traceback" not in str(refused.value)
    return str(refused.value).splitlines()[-1].partition("Error: ")[2]


def test_delta_tables_are_compacted_by_their_own_optimize(
    delta_server: PipelineServer, session: hive.Connection
) -> None:
    table = filled(session, "parted", BY_P)
    options = ("compact", "--table", table)
    rows, before = sorted(run(session, f"SELECT * FROM {table}")), detail(session, table)
    planned = delta_server.pipeline(*options, "--dry-run")
    assert f"{table}: going by sizes, Delta would rewrite 6 files of 2 partitions\n" in planned
    of_one = delta_server.pipeline(*options, "--dry-run", "--where", "p = 1")
    assert "\np=1: 3 files, " in f"\n{of_one}"
    assert "3 files of 1 partitions\n" in of_one
    assert detail(session, table) == before
    assert f"{table}: 3 files became 1, " in delta_server.pipeline(*options, "--where", "p = 1")
    assert detail(session, table).files == 4
    done = delta_server.pipeline(*options)
    after = detail(session, table)
    assert f"{table}: 3 files became 1, " in done
    assert sorted(run(session, f"SELECT * FROM {table}")) == rows
    assert (before.files, after.files) == (6, 2)
    assert after.size_bytes < before.size_bytes
    assert after.operations[:3] == ("OPTIMIZE", "OPTIMIZE", "WRITE")
    assert f"{table}: 0 files became 0, 0 bytes rewritten as 0\n" in delta_server.pipeline(*options)
    assert detail(session, table) == after


def test_a_dry_run_tells_what_delta_then_rewrites(delta_server: PipelineServer, session: hive.Connection) -> None:
    table = filled(session, "told", BY_P)
    found = []
    # Too large to be a candidate, two for each file, and all of them.
    for size in ("600", "1200", "128m"):
        options = ("compact", "--table", table, "--target-size", size)
        planned = delta_server.pipeline(*options, "--dry-run").splitlines()[-1]
        told = planned.partition("Delta would rewrite ")[2].partition(" files")[0]
        assert f"{table}: {told} files became " in delta_server.pipeline(*options)
        found.append((int(told), detail(session, table).files))
    assert found == [(0, 6), (4, 4), (4, 2)]


def test_deleted_rows_and_renamed_columns_of_delta_are_compacted(
    delta_server: PipelineServer, session: hive.Connection
) -> None:
    properties = "'delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name'"
    table = filled(session, "mapped", f"(`a k` INT, p INT) USING delta TBLPROPERTIES ({properties})")
    run(session, f"DELETE FROM {table} WHERE `a k` % 5 = 1")
    rows = sorted(run(session, f"SELECT * FROM {table}"))
    assert f"{table}: 3 files became 1, " in delta_server.pipeline("compact", "--table", table)
    assert sorted(run(session, f"SELECT * FROM {table}")) == rows
    after = detail(session, table)
    assert (after.files, after.operations[:2]) == (1, ("OPTIMIZE", "DELETE"))


def test_a_clustered_delta_table_is_clustered(delta_server: PipelineServer, session: hive.Connection) -> None:
    table = filled(session, "clustered", f"{NUMBERS} CLUSTER BY (k)")
    options = ("compact", "--table", table)
    rows = sorted(run(session, f"SELECT * FROM {table}"))
    assert f"{table}: Delta would cluster by k, at most 3 files, " in delta_server.pipeline(*options, "--dry-run")
    expected = f"--where: {table} is clustered by k"
    assert expected in refusal(delta_server, *options, "--dry-run", "--where", "k = 1")
    said = refusal(delta_server, *options, "--where", "k = 1")
    assert "doesn't support partition predicates" in said
    assert f"{table}: 3 files became 1, " in delta_server.pipeline(*options)
    assert sorted(run(session, f"SELECT * FROM {table}")) == rows
    assert f"{table}: 0 files became 0, " in delta_server.pipeline(*options)


def test_a_condition_reaches_delta_as_it_was_given(delta_server: PipelineServer, session: hive.Connection) -> None:
    value = r"""it''s "q" b\\c x$y d`e ü"""
    table = f"{DATABASE}.said"
    run(session, f"CREATE TABLE {table} (k INT, s STRING) USING delta PARTITIONED BY (s)")
    for number, text in ((number, text) for number in (1, 2) for text in (value, "other")):
        run(session, f"INSERT INTO {table} VALUES ({number}, '{text}')")
    options = ("compact", "--table", table, "--where")
    assert "2 files of 1 partitions" in delta_server.pipeline(*options, f"s = '{value}'", "--dry-run")
    assert f"{table}: 2 files became 1, " in delta_server.pipeline(*options, f"s = '{value}'")
    for refused in ("k = 1", "s = 'a' AND ("):
        for others in ((), ("--dry-run",)):
            said = refusal(delta_server, *options, refused, *others)
            assert said.startswith(f"{table}: [")
            assert "it takes a condition on partition columns" in said


def test_what_delta_has_nothing_like_is_refused(delta_server: PipelineServer, session: hive.Connection) -> None:
    table = f"{DATABASE}.given"
    run(session, f"CREATE TABLE {table} {NUMBERS}")
    given = ("--keep-hours", "24", "--index", "i", "--file-worth", "64m", "--grace-minutes", "0")
    said = refusal(delta_server, "compact", "--table", table, *given, "--sort-by", "k", "--min-files", "2")
    options = "--index, --file-worth, --grace-minutes, --keep-hours, --sort-by, --min-files"
    assert said == f"{table} is a table of Delta's, compacted by its own OPTIMIZE, which has no {options}"
    source = ("--query", "SELECT 1 AS k, 1 AS p", "--skewed-by", "k")
    for command in (("index", "--index", f"{DATABASE}.files"), ("load", *source)):
        said = refusal(delta_server, command[0], "--table", table, *command[1:])
        assert "is a table of Delta's, which keeps its own list of files and their bounds" in said
    assert detail(session, table).operations == ("CREATE TABLE",)
