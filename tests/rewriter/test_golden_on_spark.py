"""The golden cases on the real server, through the real proxy: same rows as direct, and the recorded text.

`pytest tests/rewriter/test_golden_on_spark.py --update-goldens` records what the server says; read the
difference before you commit it.
"""

import json
import re
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import golden_cases
import pytest
from counting import recovered_count
from golden_cases import DATABASE, Expected, Refusal, Take, refusals, takes
from golden_tables import make_golden_tables
from pyhive import hive

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer
from proxy.operations.query import Column, Rows
from proxy.session.catalog.describe import read_description, read_view_text
from rewriter import TableFacts, TableKind, TableName

Explanation = dict[str, object]
Sessions = tuple[hive.Connection, hive.Connection]


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
def updating(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-goldens"))


def explain(proxy: ProxyProcess, sql: str) -> Explanation:
    body = json.dumps({"sql": sql, "database": DATABASE}).encode()
    with urllib.request.urlopen(f"{proxy.admin_url}/explain", body, timeout=60) as response:
        answer = json.load(response)
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
    rule: str, sessions: Sessions, proxy: ProxyProcess, *, updating: bool
) -> None:
    found = {case.name: recorded(proxy, sessions[0], case) for case in takes() if case.rule == rule}
    if updating:
        golden_cases.write(rule, found)
    assert found == golden_cases.expectations(rule)


def recorded(proxy: ProxyProcess, direct: hive.Connection, case: Take) -> Expected:
    answer = explain(proxy, case.sql)
    scans = answer["scans"]
    assert isinstance(scans, list)
    assert answer["changed"], f"{case}: {[(scan['alias'], scan['skip_reason']) for scan in scans]}"
    queries = dict.fromkeys(reducer["key_query"] for scan in scans for reducer in scan["reducers"])
    answers = tuple(written(run(direct, query)) for query in queries)
    return Expected(tuple(queries), answers, str(answer["rewritten"]))


def written(rows: Sequence[Sequence[object]]) -> tuple[golden_cases.Row, ...]:
    # Each once: a key query may give a key as often as it comes.
    return tuple(sorted({tuple(map(plain, row)) for row in rows}, key=repr))


def plain(value: object) -> str | int | bool | None:
    return value if value is None or isinstance(value, int | bool) else str(value)


@pytest.mark.parametrize("case", takes(), ids=str)
def test_a_rewritten_statement_answers_as_it_does_directly(
    case: Take, sessions: Sessions, proxy: ProxyProcess
) -> None:
    before = recovered_count(proxy)
    assert_same_rows(sessions, case.sql)
    assert recovered_count(proxy) == before, "what was rewritten failed, and was run again as it came"


@pytest.mark.parametrize("case", refusals(), ids=str)
def test_a_refused_statement_is_explained_and_answers_as_it_does_directly(
    case: Refusal, sessions: Sessions, proxy: ProxyProcess
) -> None:
    answer = explain(proxy, case.sql)
    if case.scan is None:
        assert answer["skip_reason"] == case.reason.name
    else:
        scans = answer["scans"]
        assert isinstance(scans, list)
        assert {s["skip_reason"] for s in scans if s["alias"] == case.scan} == {case.reason.name}
    if case.executes:
        assert_same_rows(sessions, case.sql)


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
