"""The golden cases about files and buckets on the real server: real files, same rows, and the recorded text.

`pytest tests/rewriter/test_file_goldens_on_spark.py --update-goldens` records what the server says; read the
difference before you commit it. A quick run leaves out cases that have a stamp (`support/stamps.py`).
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

import pytest
from pyhive import hive
from support import file_golden_cases, golden_cases
from support.file_golden_cases import (
    INDEXED,
    KIND,
    SKEWED,
    IndexRow,
    Outcome,
    planned,
    recorded_index,
    with_layout,
)
from support.golden_cases import Expected, Refusal, Take, refusals, table_names, table_statements, takes
from support.golden_executions import file_execution, golden_stamps, refused_execution
from support.goldens import recorded_rows
from support.stamps import UNCHANGED, Stamps

from demo.hive import connect, run
from demo.thrift_server import ThriftServer
from proxy.operations.query import Column, Rows
from proxy.session.catalog.describe import read_description
from rewriter import ScanOutcome, TableFacts

DATABASE = "golden_files"


@pytest.fixture(scope="module")
def session(spark: ThriftServer) -> Iterator[hive.Connection]:
    """A session in a database of its own with the tables of the cases."""
    with closing(connect(spark.endpoint)) as connection:
        run(connection, f"CREATE DATABASE {DATABASE}")
        run(connection, f"USE {DATABASE}")
        for statement in table_statements(KIND):
            run(connection, statement)
        yield connection


@pytest.fixture(scope="module")
def stamps(*, updating: bool) -> Iterator[Stamps]:
    with golden_stamps("files", KIND, updating=updating) as stamps:
        yield stamps


@pytest.fixture(scope="module")
def refused(*, updating: bool) -> Iterator[Stamps]:
    with golden_stamps("refused_files", KIND, updating=updating) as stamps:
        yield stamps


@pytest.fixture(scope="module")
def real_index(session: hive.Connection) -> Mapping[str, Sequence[IndexRow]]:
    """The rows that an index of the real files has, in the order of the recorded ones."""
    tables = {name: with_layout(name, described(session, name)) for name in INDEXED}
    return {name: indexed_files(session, name, facts) for name, facts in tables.items() if facts.takes_file_hints}


def described(connection: hive.Connection, name: str) -> TableFacts:
    rows = tuple(tuple(row) for row in run(connection, f"DESCRIBE TABLE EXTENDED {name}"))
    found = read_description(Rows((Column("col_name", "string"),), rows, 0.0))
    assert found is not None, name
    return replace(found, size_bytes=None, view=None)


def indexed_files(connection: hive.Connection, name: str, facts: TableFacts) -> list[IndexRow]:
    """What the files of a table hold, by one pass over their rows."""
    types = {column.name: column.type_name for column in facts.columns}
    bounds = ", ".join(
        f"'{column}', named_struct('type', '{types[column]}', 'low', CAST(min({column}) AS STRING),"
        f" 'high', CAST(max({column}) AS STRING), 'nulls', count_if({column} IS NULL))"
        for column in INDEXED[name]
    )
    selected = (
        "SELECT _metadata.file_path, _metadata.file_size, unix_millis(_metadata.file_modification_time), count(*),"
        f" to_json(map({bounds})) FROM {name} GROUP BY ALL"
    )
    found = [(*row, json.dumps(lacks(connection, name, row[0]))) for row in run(connection, selected)]
    return sorted(found, key=lambda row: (row[4], row[5]))


def lacks(connection: hive.Connection, name: str, path: str) -> list[dict[str, object]]:
    """The skewed tuples that no row of a file has."""
    if name not in SKEWED:
        return []
    columns, tuples = SKEWED[name]
    rows = run(
        connection, f"SELECT DISTINCT {', '.join(columns)} FROM {name} WHERE _metadata.file_path = '{path}'"
    )
    held = {tuple(map(str, row)) for row in rows}
    return [{"columns": list(columns), "tuples": [list(values) for values in tuples if values not in held]}]


def named_by_order(index: Mapping[str, Sequence[IndexRow]]) -> dict[str, list[IndexRow]]:
    """The index with files that are called by their place in it."""
    return {
        name: [(f"file:/{name}/{place}", 100 + place, 1, *row[3:]) for place, row in enumerate(rows)]
        for name, rows in index.items()
    }


def test_the_tables_and_files_are_what_the_pure_cases_take_them_for(
    session: hive.Connection, real_index: Mapping[str, Sequence[IndexRow]], *, updating: bool
) -> None:
    found = {name: described(session, name) for name in table_names(KIND)}
    if updating:
        golden_cases.write_catalog(found, KIND)
        file_golden_cases.write_index(named_by_order(real_index))
    assert {name: with_layout(name, facts) for name, facts in found.items()} == file_golden_cases.facts()
    assert normal(named_by_order(real_index)) == normal(recorded_index())


def normal(index: Mapping[str, Sequence[IndexRow]]) -> dict[str, list[object]]:
    return {
        name: [(*row[:4], json.loads(row[4]), json.loads(row[5])) for row in rows] for name, rows in index.items()
    }


@pytest.mark.parametrize("rule", sorted({case.rule for case in takes(KIND)}))
def test_a_rule_about_files_rewrites_to_what_is_recorded(
    rule: str, session: hive.Connection, stamps: Stamps, *, updating: bool
) -> None:
    cases = [case for case in takes(KIND) if case.rule == rule]
    if updating:
        golden_cases.write(rule, {case.name: recorded(session, case) for case in cases})
    expected = golden_cases.expectations(rule)
    for case in cases:
        if stamps.is_due(str(case), file_execution(case)):
            assert recorded(session, case) == expected[case.name]


def recorded(session: hive.Connection, case: Take) -> Expected:
    found = planned(case.sql)
    queries = tuple(query.sql_with_repeats or query.sql for query in found.key_queries)
    answers = tuple(recorded_rows(run(session, query)) for query in queries)
    expected = Expected(queries, answers, "")
    return replace(expected, rewritten=Outcome.of(found, expected, recorded_index()).rewrite().text)


@pytest.mark.parametrize("case", takes(KIND), ids=str)
def test_a_statement_that_skips_real_files_answers_as_it_does_in_full(
    case: Take, session: hive.Connection, real_index: Mapping[str, Sequence[IndexRow]], stamps: Stamps
) -> None:
    execution = file_execution(case)
    if not stamps.is_due(str(case), execution):
        pytest.skip(UNCHANGED)
    expected = golden_cases.expectation(case)
    symbolic = Outcome.of(planned(case.sql), expected, recorded_index()).rewrite()
    real = Outcome.of(planned(case.sql), expected, real_index).rewrite()
    assert real.text != case.sql
    assert skipped(real.scans) == skipped(symbolic.scans)
    if not case.sql.startswith("INSERT"):
        narrowed, whole = (Counter(map(repr, run(session, sql))) for sql in (real.text, case.sql))
        assert narrowed == whole, f"{case.sql}\n{real.text}"
    assert execution is not None
    stamps.came_out_equal(str(case), execution)


def skipped(scans: Sequence[ScanOutcome]) -> list[int]:
    return [len(outcome.files.misses) if outcome.files is not None else 0 for outcome in scans]


@pytest.mark.parametrize("case", refusals(KIND), ids=str)
def test_a_statement_whose_files_are_not_chosen_is_one_that_spark_runs(
    case: Refusal, session: hive.Connection, refused: Stamps
) -> None:
    execution = refused_execution(case, KIND)
    if not refused.is_due(str(case), execution):
        pytest.skip(UNCHANGED)
    if case.executes:
        run(session, case.sql)
    refused.came_out_equal(str(case), execution)
