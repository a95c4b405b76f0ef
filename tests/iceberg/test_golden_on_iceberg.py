"""The golden cases about Iceberg tables on the real server: same rows with and without, and the recorded text.

`pytest tests/iceberg/test_golden_on_iceberg.py --update-goldens` records what the server says; read the difference
before you commit it. A quick run leaves out cases that have a stamp (`support/stamps.py`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing

import pytest
from iceberg_server import RUNTIME, VERSION, spark_for_iceberg
from pipeline_server import PipelineServer
from pyhive import hive
from support import golden_cases
from support.golden_cases import Expected, Refusal, Take, refusals, table_statements, takes
from support.golden_executions import golden_stamps, iceberg_execution, refused_execution
from support.goldens import recorded_rows
from support.iceberg_golden_cases import KIND, LIMITS, NAMESPACE, PARTITIONING, SMALL_SIDES, facts, planned
from support.stamps import UNCHANGED, Stamps, spark_version

from demo.hive import Row, connect, run
from rewriter import TableKind, apply

DATABASE = ".".join(NAMESPACE)


@pytest.fixture(scope="module")
def session(iceberg_server: PipelineServer) -> Iterator[hive.Connection]:
    """A session in a database of its own with the tables of the cases."""
    with closing(connect(iceberg_server.endpoint)) as connection:
        make_tables(connection)
        yield connection
        for _, table, _ in run(connection, f"SHOW TABLES IN {DATABASE}"):
            if table in PARTITIONING or table in {"sorted", "timed", *SMALL_SIDES}:
                run(connection, f"DROP TABLE {DATABASE}.{table} PURGE")
        run(connection, f"DROP DATABASE {DATABASE}")


def make_tables(connection: hive.Connection) -> None:
    run(connection, f"CREATE DATABASE {DATABASE}")
    run(connection, f"USE {DATABASE}")
    # Days are those of the session's time zone, which stands in the texts.
    run(connection, "SET TIME ZONE 'UTC'")
    for statement in table_statements(KIND):
        run(connection, statement)


@pytest.fixture(scope="module")
def stamps(*, updating: bool) -> Iterator[Stamps]:
    with golden_stamps("iceberg", KIND, updating=updating) as stamps:
        yield stamps


@pytest.fixture(scope="module")
def refused(*, updating: bool) -> Iterator[Stamps]:
    with golden_stamps("refused_iceberg", KIND, updating=updating) as stamps:
        yield stamps


@pytest.fixture(scope="module")
def engine() -> str:
    """The versions of Spark and Iceberg."""
    return f"{spark_version(spark_for_iceberg() / 'pyspark')} {RUNTIME}-{VERSION}"


def described(connection: hive.Connection, name: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The columns of a table, and the transforms that it is partitioned by."""
    parts, heading = defaultdict[str, list[Row]](list), ""
    for row in run(connection, f"DESCRIBE TABLE {name}"):
        heading = row[0] if row[0].startswith("# ") and row[0] != "# col_name" else heading
        parts[heading] += [row] if row[0] and not row[0].startswith("#") else []
    columns = {column: type_name for column, type_name, _ in parts[""]}
    transforms = tuple(transform for _, transform, _ in parts["# Partitioning"])
    return columns, transforms or tuple(column for column, _, _ in parts["# Partition Information"])


def recorded(connection: hive.Connection, case: Take) -> Expected:
    """What the case comes to with the keys of the server's tables."""
    found = planned(case.sql)
    queries = tuple(query.sql_with_repeats or query.sql for query in found.key_queries)
    rows = tuple(recorded_rows(run(connection, query)) for query in queries)
    answers = {query: query.read(answer) for query, answer in zip(found.key_queries, rows, strict=True)}
    return Expected(queries, rows, apply(found, answers, LIMITS).text)


def assert_same_rows(connection: hive.Connection, sql: str, rewritten: str) -> None:
    direct, narrowed = (Counter(map(repr, run(connection, text))) for text in (sql, rewritten))
    assert narrowed == direct, f"{rewritten}\ndirect:   {direct}\nnarrowed: {narrowed}"


def test_the_tables_are_what_the_pure_cases_take_them_for(session: hive.Connection) -> None:
    known = facts()
    tables = [name for name, table in known.items() if table.kind is TableKind.TABLE and name != "files"]
    for name in tables:
        columns = {column.name: column.type_name for column in known[name].columns}
        assert described(session, name) == (columns, PARTITIONING.get(name, ())), name


@pytest.mark.parametrize("rule", sorted({case.rule for case in takes(KIND)}))
def test_a_rule_rewrites_to_what_is_recorded(
    rule: str, session: hive.Connection, stamps: Stamps, engine: str, *, updating: bool
) -> None:
    cases = [case for case in takes(KIND) if case.rule == rule]
    if updating:
        golden_cases.write(rule, {case.name: recorded(session, case) for case in cases})
    expected = golden_cases.expectations(rule)
    for case in cases:
        if stamps.is_due(str(case), iceberg_execution(case, engine)):
            assert recorded(session, case) == expected[case.name]


@pytest.mark.parametrize("case", takes(KIND), ids=str)
def test_a_narrowed_statement_answers_as_it_came(
    case: Take, session: hive.Connection, stamps: Stamps, engine: str
) -> None:
    execution = iceberg_execution(case, engine)
    if not stamps.is_due(str(case), execution):
        pytest.skip(UNCHANGED)
    assert_same_rows(session, case.sql, golden_cases.expectation(case).rewritten)
    assert execution is not None
    stamps.came_out_equal(str(case), execution)


@pytest.mark.parametrize("case", [case for case in refusals(KIND) if case.executes], ids=str)
def test_a_refused_statement_is_one_that_runs(
    case: Refusal, session: hive.Connection, refused: Stamps, engine: str
) -> None:
    execution = refused_execution(case, KIND, engine)
    if not refused.is_due(str(case), execution):
        pytest.skip(UNCHANGED)
    run(session, case.sql)
    refused.came_out_equal(str(case), execution)
