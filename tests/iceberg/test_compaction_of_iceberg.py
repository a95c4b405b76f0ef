"""`starpruner pipeline compact` of tables that keep lists of their own files."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from pipeline_server import CommandError, PipelineServer
from pyhive import hive

from demo.hive import connect, run

DATABASE = "ice.compacted"
FEW_SMALL = ("--min-files", "2")
NUMBERS = "(k INT) USING iceberg"


@pytest.fixture(scope="module")
def session(iceberg_server: PipelineServer) -> Iterator[hive.Connection]:
    with closing(connect(iceberg_server.endpoint)) as connection:
        run(connection, f"CREATE DATABASE {DATABASE}")
        yield connection


def filled(session: hive.Connection, name: str, columns: str, *sources: str) -> str:
    """The table of that name, made with these columns and what else, and each source in a commit of its own."""
    table = f"{DATABASE}.{name}"
    run(session, f"CREATE TABLE {table} {columns}")
    for source in sources:
        run(session, f"INSERT INTO {table} {source}")
    return table


def refusal(server: PipelineServer, *arguments: str) -> str:
    with pytest.raises(CommandError) as refused:
        _ = server.pipeline("compact", *arguments)
    return str(refused.value)


def test_iceberg_tables_are_compacted_by_their_own_procedure(
    iceberg_server: PipelineServer, session: hive.Connection
) -> None:
    rows = (f"SELECT {start} + 7 * id % 10, id % 2 FROM range(10)" for start in (20, 0, 10))
    table = filled(session, "days", "(k BIGINT, `a day` INT) USING iceberg PARTITIONED BY (`a day`)", *rows)
    options = ("--table", table, *FEW_SMALL)
    before = sorted(run(session, f"SELECT * FROM {table}"))
    planned = iceberg_server.pipeline("compact", *options, "--dry-run")
    assert f"{table}: going by sizes, Iceberg would rewrite 6 files of 2 partitions\n" in planned
    conditional = iceberg_server.pipeline("compact", *options, "--dry-run", "--where", "`a day` = 1")
    assert "6 files of 2 partitions, less what --where leaves out\n" in conditional
    done = iceberg_server.pipeline("compact", *options, "--where", "`a day` = 1", "--sort-by", "k")
    assert f"{table}: 3 files became 1" in done
    run(session, f"REFRESH TABLE {table}")
    assert sorted(run(session, f"SELECT * FROM {table}")) == before
    files = run(session, f"SELECT `partition`.`a day`, count(*) FROM {table}.files GROUP BY ALL ORDER BY 1")
    assert files == [(0, 3), (1, 1)]
    of_one = [row[0] for row in run(session, f"SELECT k FROM {table} WHERE `a day` = 1")]
    assert of_one == sorted(of_one)


@pytest.mark.parametrize(
    ("target_size", "min_files"),
    [
        # Small ones, as many as are asked for in one partition of the two.
        ("128m", "3"),
        # Fewer than are asked for, which make up a file of the size together.
        ("1400", "4"),
        # Ones that are too large.
        ("256", "4"),
    ],
)
def test_a_dry_run_tells_what_iceberg_then_rewrites(
    iceberg_server: PipelineServer, session: hive.Connection, target_size: str, min_files: str
) -> None:
    rows = ("SELECT id, id % 2 FROM range(20)", "SELECT 100, 0", "SELECT 101, 0")
    table = filled(
        session, f"told_{target_size}_{min_files}", "(k BIGINT, p INT) USING iceberg PARTITIONED BY (p)", *rows
    )
    options = ("--table", table, "--target-size", target_size, "--min-files", min_files)
    planned = iceberg_server.pipeline("compact", *options, "--dry-run").splitlines()[-1]
    told = planned.partition("Iceberg would rewrite ")[2].partition(" files")[0]
    done = iceberg_server.pipeline("compact", *options).splitlines()[-1]
    assert f"{table}: {told} files became " in done


def test_a_condition_reaches_iceberg_as_it_was_given(
    iceberg_server: PipelineServer, session: hive.Connection
) -> None:
    value = r"""it''s "q" b\\c x$y d`e ü"""
    rows = (f"VALUES ({number}, '{text}')" for number in (1, 2) for text in (value, "other"))
    table = filled(session, "said", "(k INT, s STRING) USING iceberg PARTITIONED BY (s)", *rows)
    done = iceberg_server.pipeline("compact", "--table", table, *FEW_SMALL, "--where", f"s = '{value}'")
    assert f"{table}: 2 files became 1" in done


def test_a_table_of_any_name_is_compacted(iceberg_server: PipelineServer, session: hive.Connection) -> None:
    table = filled(session, "`we'i``rd\\ $name ü`", NUMBERS, "VALUES (1)", "VALUES (2)")
    planned = iceberg_server.pipeline("compact", "--table", table, *FEW_SMALL, "--dry-run")
    assert "2 files of 1 partitions" in planned
    assert f"{table}: 2 files became 1" in iceberg_server.pipeline("compact", "--table", table, *FEW_SMALL)


def test_a_name_that_could_be_another_tables_is_refused(
    iceberg_server: PipelineServer, session: hive.Connection
) -> None:
    table = filled(session, "`a.b`", NUMBERS, "VALUES (1)", "VALUES (2)")
    run(session, f"CREATE DATABASE {DATABASE}.a")
    other = filled(session, "a.b", NUMBERS, "VALUES (1)", "VALUES (2)")
    assert "it is not certain which table is meant" in refusal(iceberg_server, "--table", table, *FEW_SMALL)
    assert f"{other}: 2 files became 1" in iceberg_server.pipeline("compact", "--table", other, *FEW_SMALL)


def test_a_branch_is_not_taken_for_its_table(iceberg_server: PipelineServer, session: hive.Connection) -> None:
    table = filled(session, "branched", NUMBERS, "VALUES (1)", "VALUES (2)")
    run(session, f"ALTER TABLE {table} CREATE BRANCH audit")
    said = refusal(iceberg_server, "--table", f"{table}.branch_audit", *FEW_SMALL)
    assert f"{table}.branch_audit: is a branch or a tag of {table}" in said


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("no_column", ("--where", "nosuch = 1"), "Cannot parse predicates in where option: nosuch = 1"),
        ("a_function", ("--where", "upper(s) = 'PARSE'"), "Cannot convert Spark filter"),
        ("no_order", ("--sort-by", "nosuch"), "Cannot find field 'nosuch'"),
    ],
)
def test_what_the_procedure_does_not_take_is_told_in_one_line(
    iceberg_server: PipelineServer,
    session: hive.Connection,
    name: str,
    options: tuple[str, str],
    expected: str,
) -> None:
    table = filled(session, name, "(k INT, s STRING) USING iceberg", "VALUES (1, 'a')")
    said = refusal(iceberg_server, "--table", table, *options)
    (line,) = (line for line in said.splitlines() if line.startswith("Error: "))
    assert line.startswith(f"Error: {table}: Iceberg's rewrite_data_files failed: ")
    assert expected in line
    assert ("For --where it takes" in line) == (options[0] == "--where")
    assert "Traceback" not in said


def test_options_that_iceberg_has_nothing_like_are_refused(
    iceberg_server: PipelineServer, session: hive.Connection
) -> None:
    table = filled(session, "given", NUMBERS, "VALUES (1)")
    given = ("--keep-hours", "24", "--index", "i", "--file-worth", "64m", "--grace-minutes", "0")
    said = refusal(iceberg_server, "--table", table, *given)
    options = "--index, --file-worth, --grace-minutes, --keep-hours"
    assert f"{table} is a table of Iceberg's, compacted by its own procedure, which has no {options}" in said
    assert "which has no --file-worth\n" in refusal(iceberg_server, "--table", table, "--file-worth", "64m")
