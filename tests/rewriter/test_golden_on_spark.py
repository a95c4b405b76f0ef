"""The golden cases on the real server, through the real proxy: same rows as direct, and the recorded text.

`pytest tests/rewriter/test_golden_on_spark.py --update-goldens` records what the server says; read the
difference before you commit it. A quick run leaves out cases that have a stamp (`support/stamps.py`), but for a
tenth of them. A statement that is refused goes out byte for byte, as the tests of the relay show: once it has its
stamp, a quick run has it explained and no more.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from pyhive import hive
from support import golden_cases
from support.explain_requests import explanation_of
from support.golden_cases import DATABASE, Expected, Refusal, Take, refusals, takes
from support.golden_executions import golden_stamps, plain_execution, refused_execution, settings_of
from support.golden_tables import make_golden_tables
from support.goldens import recorded_rows
from support.metrics_of_proxy import recovered_count
from support.proxies import patient
from support.stamps import UNCHANGED, Stamps

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer
from proxy.operations.query import Column, Rows
from proxy.session.catalog.describe import read_description, read_view_text
from rewriter import TableFacts, TableKind, TableName

Explanation = dict[str, object]
Sessions = tuple[hive.Connection, hive.Connection]


@pytest.fixture(scope="module")
def proxy(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """A proxy that asks for keys alone: conditions on lists of partitions have cases of their own.

    Sizes are those of the pure cases.
    """
    options = patient('rewrite.rules_off=["partition_list"]', "catalog.asks_sizes=false")
    with proxy_process(spark.endpoint, tmp_path_factory.mktemp("proxy"), options=options) as process:
        yield process


@pytest.fixture(scope="module")
def sessions(spark: ThriftServer, proxy: ProxyProcess) -> Iterator[Sessions]:
    """A direct and a proxied session in the database of the golden tables, which are made here."""
    make_golden_tables(spark)
    with (
        closing(connect(spark.endpoint, database=DATABASE)) as direct,
        closing(connect(proxy.endpoint, database=DATABASE)) as proxied,
    ):
        yield direct, proxied


@pytest.fixture(scope="module")
def stamps(*, updating: bool) -> Iterator[Stamps]:
    with golden_stamps("plain", updating=updating) as stamps:
        yield stamps


@pytest.fixture(scope="module")
def refused(*, updating: bool) -> Iterator[Stamps]:
    with golden_stamps("refused", updating=updating) as stamps:
        yield stamps


def explain(proxy: ProxyProcess, sql: str) -> Explanation:
    answer = explanation_of(proxy.admin_url, sql=sql, database=DATABASE)
    assert isinstance(answer, dict)
    return answer


def assert_same_rows(sessions: Sessions, sql: str) -> None:
    direct, proxied = (Counter(map(repr, run(session, sql))) for session in sessions)
    assert proxied == direct, f"{sql}\ndirect:  {direct}\nproxied: {proxied}"


def described(connection: hive.Connection, name: str) -> TableFacts:
    describe = f"DESCRIBE TABLE EXTENDED {name}"
    facts = read_description(answer(connection, describe))
    assert facts is not None, name
    if facts.kind is TableKind.VIEW and facts.view is None:
        return replace(facts, view=read_view_text(answer(connection, f"{describe} AS JSON")))
    return facts


def answer(connection: hive.Connection, sql: str) -> Rows:
    return Rows((Column("col_name", "string"),), tuple(tuple(row) for row in run(connection, sql)), 0.0)


def test_the_tables_are_what_the_pure_cases_take_them_for(sessions: Sessions, *, updating: bool) -> None:
    facts = {name: described(sessions[0], name) for name in golden_cases.table_names()}
    if updating:
        golden_cases.write_catalog(facts)
    assert facts == golden_cases.catalog()


def test_the_server_tells_the_full_name_of_all_but_temporary_views(sessions: Sessions) -> None:
    run(sessions[0], "CREATE TEMPORARY VIEW passing AS SELECT * FROM dates")
    names = {name: described(sessions[0], name).full_name for name in ("sales", "dates_view", "passing")}
    assert names == {
        "sales": TableName(("spark_catalog", DATABASE, "sales")),
        "dates_view": TableName(("spark_catalog", DATABASE, "dates_view")),
        "passing": None,
    }


@pytest.mark.parametrize("rule", sorted({case.rule for case in takes()}))
def test_a_rule_rewrites_to_what_is_recorded(
    rule: str, sessions: Sessions, proxy: ProxyProcess, stamps: Stamps, *, updating: bool
) -> None:
    cases = [case for case in takes() if case.rule == rule]
    if updating:
        golden_cases.write(rule, {case.name: recorded(proxy, sessions[0], case) for case in cases})
    expected = golden_cases.expectations(rule)
    for case in cases:
        if updating or stamps.is_due(str(case), plain_execution(case)):
            assert recorded(proxy, sessions[0], case) == expected[case.name]


def recorded(proxy: ProxyProcess, direct: hive.Connection, case: Take) -> Expected:
    answer = explain(proxy, case.sql)
    scans = answer["scans"]
    assert isinstance(scans, list)
    assert answer["changed"], f"{case}: {[(scan['alias'], scan['skip_reason']) for scan in scans]}"
    queries = dict.fromkeys(reducer["key_query"] for scan in scans for reducer in scan["reducers"])
    answers = tuple(recorded_rows(run(direct, query)) for query in queries)
    return Expected(tuple(queries), answers, str(answer["rewritten"]))


@pytest.mark.parametrize("case", takes(), ids=str)
def test_a_rewritten_statement_answers_as_it_does_directly(
    case: Take, sessions: Sessions, proxy: ProxyProcess, stamps: Stamps
) -> None:
    execution = plain_execution(case)
    if not stamps.is_due(str(case), execution):
        pytest.skip(UNCHANGED)
    before = recovered_count(proxy)
    assert_same_rows(sessions, case.sql)
    assert recovered_count(proxy) == before, "what was rewritten failed, and was run again as it came"
    assert execution is not None
    stamps.came_out_equal(str(case), execution)


@pytest.mark.parametrize("case", refusals(), ids=str)
def test_a_refused_statement_is_explained_and_answers_as_it_does_directly(
    case: Refusal, sessions: Sessions, proxy: ProxyProcess, refused: Stamps
) -> None:
    execution = refused_execution(case)
    if not refused.is_due(str(case), execution):
        pytest.skip(UNCHANGED)
    answer = explain(proxy, case.sql)
    if case.scan is None:
        assert answer["skip_reason"] == case.reason.name
    else:
        scans = answer["scans"]
        assert isinstance(scans, list)
        assert {s["skip_reason"] for s in scans if s["alias"] == case.scan} == {case.reason.name}
    if case.executes and (refused.all_due or not refused.is_verified(str(case), execution)):
        for name, setting in settings_of(case).items():
            _ = [run(session, f"SET {name}={setting}") for session in sessions]
        assert_same_rows(sessions, case.sql)
        _ = [run(session, f"RESET {name}") for name in settings_of(case) for session in sessions]
    refused.came_out_equal(str(case), execution)


def test_a_rewritten_insert_and_ctas_write_what_they_write_directly(
    sessions: Sessions, proxy: ProxyProcess
) -> None:
    query = "SELECT s.id, s.ds FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.month = '2026-01'"
    for number, session in enumerate(sessions):
        table = f"written_{number}"
        create, insert = f"CREATE TABLE {table} USING parquet AS {query}", f"INSERT INTO {table} {query}"
        assert all(explain(proxy, sql)["changed"] for sql in (create, insert))
        run(session, create)
        run(session, insert)
    direct, proxied = (Counter(run(sessions[0], f"SELECT * FROM written_{number}")) for number in (0, 1))
    assert proxied == direct
    assert sum(direct.values()) == 2 * len(run(sessions[0], query))


def test_the_day_that_a_key_query_read_is_assumed_and_another_day_loses_nothing(
    sessions: Sessions, proxy: ProxyProcess
) -> None:
    # No golden case: its text would be another one tomorrow.
    sql = "SELECT s.id FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.ds <= CAST(current_date AS STRING)"
    assert_same_rows(sessions, sql)
    rewritten = str(explain(proxy, sql)["rewritten"])
    outdated, count = re.subn(
        r"WHERE \(.* OR current_date\(\) <> DATE'\d{4}-\d\d-\d\d'\)\)",
        "WHERE (FALSE OR current_date() <> DATE'1999-12-31'))",
        rewritten,
    )
    assert count == 1, rewritten
    assert Counter(run(sessions[0], outdated)) == Counter(run(sessions[0], sql))
