"""The golden cases on the real server: same rows as direct, and the recorded text (`support.golden_stage`).

`pytest tests/rewriter/test_golden_on_spark.py --update-goldens` records what the server says; read the
difference before you commit it.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import TypeAlias

import pytest
from support import golden_cases, golden_tables
from support.golden_cases import Refusal, Take, refusals, takes
from support.golden_sets import FILES, LISTED, PLAIN, GoldenSet
from support.golden_stage import Stage, answer, assert_equal, staged

from demo.hive import run
from demo.thrift_server import ThriftServer
from rewriter import TableName

KINDS = (PLAIN, FILES, LISTED)

Stages: TypeAlias = Callable[[GoldenSet], Stage]


@pytest.fixture(scope="module")
def stages(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory, *, updating: bool) -> Iterator[Stages]:
    """The sets of cases on the server, each made as it is first asked for."""
    with ExitStack() as stack:
        yield cache(
            lambda cases: stack.enter_context(
                staged(cases, spark.endpoint, tmp_path_factory.mktemp(str(cases)), updating=updating)
            )
        )


@pytest.mark.parametrize("cases", KINDS, ids=str)
def test_the_tables_are_what_the_pure_cases_take_them_for(
    cases: GoldenSet, stages: Stages, *, updating: bool
) -> None:
    facts = {name: stages(cases).described(name) for name in golden_cases.table_names(cases.kind)}
    if updating:
        golden_cases.write_catalog(facts, cases.kind)
    expected = golden_tables.facts(cases.kind)
    assert golden_cases.without_full_names(facts) == golden_cases.without_full_names(expected)


def test_the_files_are_what_the_pure_cases_take_them_for(stages: Stages, *, updating: bool) -> None:
    # Called by their order.
    found = {
        name: [(f"file:/{name}/{place}", 100 + place, 1, *row[3:]) for place, row in enumerate(rows)]
        for name, rows in (stages(FILES).index or {}).items()
    }
    if updating:
        golden_tables.write_index(found)
    assert found == golden_tables.recorded_index()


def test_the_partitions_are_what_the_pure_cases_take_them_for(stages: Stages, *, updating: bool) -> None:
    session = stages(LISTED).direct
    found = {
        name: [str(row[0]) for row in run(session, f"SHOW PARTITIONS {name}")]
        for name, facts in golden_cases.catalog("listed").items()
        if facts.partition_columns
    }
    if updating:
        golden_tables.write_partitions(found)
    assert found == golden_tables.recorded_partitions()


def test_the_server_tells_the_full_name_of_all_but_temporary_views(stages: Stages) -> None:
    stage = stages(PLAIN)
    run(stage.direct, "CREATE TEMPORARY VIEW passing AS SELECT * FROM dates")
    names = {name: stage.described(name).full_name for name in ("sales", "dates_view", "passing")}
    assert names == {
        "sales": TableName(("spark_catalog", "golden", "sales")),
        "dates_view": TableName(("spark_catalog", "golden", "dates_view")),
        "passing": None,
    }


@pytest.mark.parametrize(
    ("cases", "rule"),
    [(cases, rule) for cases in KINDS for rule in sorted({case.rule for case in takes(cases.kind)})],
    ids=str,
)
def test_a_rule_rewrites_to_what_is_recorded(
    cases: GoldenSet, rule: str, stages: Stages, *, updating: bool
) -> None:
    stages(cases).check_rule(rule, updating=updating)


@pytest.mark.parametrize(
    ("cases", "case"), [(cases, case) for cases in KINDS for case in takes(cases.kind)], ids=str
)
def test_a_rewritten_statement_answers_as_it_does_directly(cases: GoldenSet, case: Take, stages: Stages) -> None:
    stages(cases).check_take(case)


@pytest.mark.parametrize(
    ("cases", "case"),
    [(cases, case) for cases in KINDS for case in refusals(cases.kind) if cases.proxy or case.executes],
    ids=str,
)
def test_a_refused_statement_is_explained_and_answers_as_it_does_directly(
    cases: GoldenSet, case: Refusal, stages: Stages
) -> None:
    stages(cases).check_refusal(case)


def test_a_rewritten_insert_and_ctas_write_what_they_write_directly(stages: Stages) -> None:
    stage = stages(PLAIN)
    query = "SELECT s.id, s.ds FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.month = '2026-01'"
    for number, session in enumerate((stage.direct, stage.proxied)):
        table = f"written_{number}"
        for sql in (f"CREATE TABLE {table} USING parquet AS {query}", f"INSERT INTO {table} {query}"):
            assert stage.explain(sql)["changed"]
            run(session, sql)
    direct, proxied = (answer(stage.direct, f"SELECT * FROM written_{number}") for number in (0, 1))
    assert proxied == direct
    assert sum(direct.values()) == 2 * len(run(stage.direct, query))


def test_the_day_that_a_key_query_read_is_assumed_and_another_day_loses_nothing(stages: Stages) -> None:
    # No golden case: its text would be another one tomorrow.
    stage = stages(PLAIN)
    sql = "SELECT s.id FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.ds <= CAST(current_date AS STRING)"
    direct = answer(stage.direct, sql)
    assert_equal(answer(stage.proxied, sql), direct, sql)
    rewritten = str(stage.explain(sql)["rewritten"])
    outdated, count = re.subn(
        r"WHERE \(.* OR current_date\(\) <> DATE'\d{4}-\d\d-\d\d'\)\)",
        "WHERE (FALSE OR current_date() <> DATE'1999-12-31'))",
        rewritten,
    )
    assert count == 1, rewritten
    assert_equal(answer(stage.direct, outdated), direct, outdated)


# Partitions that come after the list was read: below, between and above those that are known, of other spellings,
# and the default partition of another table's column.
NEW = {
    "sales": "VALUES (90, 1, '2020-01-01', 'north'), (91, 1, '2026-01-01T00:00:00', 'north'),"
    " (92, 1, '2026-01-30', 'north'), (93, 1, '2026-02-01', 'west'), (94, 1, '2026-2-1', 'south'),"
    " (95, 1, '2099-01-01', 'north')",
    "by_day": "VALUES (90, 1, DATE'2020-01-01'), (91, 1, DATE'2026-01-30'), (92, 1, DATE'2099-01-01')",
    "by_number": "VALUES (90, 20200101), (91, 20260130), (92, 20260228), (93, 20990101)",
    "by_month": "VALUES (90, 2020, 2), (91, 2026, 4), (92, 2026, -1), (93, 2099, 2)",
    "returns": "VALUES (90, '2020-01-01'), (91, '2026-02-28'), (92, '2099-01-01')",
}
NEW_DAYS = (
    "INSERT INTO calendar SELECT d, CAST(d AS STRING), CAST(date_format(d, 'yyyyMMdd') AS INT),"
    " date_format(d, 'yyyy-MM'), year(d), month(d), true"
    " FROM VALUES (DATE'2020-01-01'), (DATE'2026-01-30'), (DATE'2099-01-01') AS t(d)"
)


def test_partitions_that_came_after_the_list_lose_no_row(stages: Stages) -> None:
    """The recorded texts, which know nothing of the new partitions, against the originals.

    It comes last: its partitions are in no list.
    """
    direct = stages(LISTED).direct
    cases = takes("listed")
    before = {case.name: answer(direct, case.sql) for case in cases}
    run(direct, NEW_DAYS)
    for name, values in NEW.items():
        run(direct, f"INSERT INTO {name} {values}")
    gained = 0
    for case in cases:
        original = answer(direct, case.sql)
        narrowed = answer(direct, golden_cases.expectation(case).rewritten)
        gained += original != before[case.name]
        # A new day in the calendar lets known partitions match too, which the recorded answers do not know.
        missing = original - narrowed
        assert not any(_is_of_new(row) for row in missing.elements()), f"{case}\n{missing}"
    assert gained > len(cases) // 2, "the new partitions hold too few rows that count"


def _is_of_new(row: str) -> bool:
    return any(
        number.strip("(),' ").startswith("9") and len(number.strip("(),' ")) == 2 for number in row.split(",")
    )
