"""The golden cases about lists of partitions on the real server, through the real proxy, and with new partitions.

`pytest tests/rewriter/test_listed_goldens_on_spark.py --update-goldens` records what the server says.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest
from pyhive import hive
from support import golden_cases
from support.explain_requests import explanation_of
from support.golden_cases import Expected, Refusal, Take, refusals, takes
from support.goldens import recorded_rows, recorded_value
from support.listed_golden_cases import DATABASE, KIND, planned, recorded_partitions, shown, write_partitions
from support.metrics_of_proxy import recovered_count
from support.proxies import patient

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer
from proxy.operations.query import Column, Rows
from proxy.session.catalog.describe import read_description, read_view_text
from rewriter import KeyQuery, Keys, SkipReason, TableFacts, TableKind, apply
from rewriter.semijoins.limits import RewriteLimits

Sessions = tuple[hive.Connection, hive.Connection]


@pytest.fixture(scope="module")
def proxy(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """A proxy that knows the sizes of the pure cases."""
    options = patient("catalog.asks_sizes=false")
    with proxy_process(spark.endpoint, tmp_path_factory.mktemp("proxy"), options=options) as process:
        yield process


@pytest.fixture(scope="module")
def sessions(spark: ThriftServer, proxy: ProxyProcess) -> Iterator[Sessions]:
    """A direct and a proxied session in the database of these tables."""
    with closing(connect(spark.endpoint)) as direct:
        run(direct, f"CREATE DATABASE {DATABASE}")
        run(direct, f"USE {DATABASE}")
        for statement in golden_cases.table_statements(KIND):
            run(direct, statement)
        with closing(connect(proxy.endpoint, database=DATABASE)) as proxied:
            yield direct, proxied


def explain(proxy: ProxyProcess, sql: str) -> dict[str, object]:
    answer = explanation_of(proxy.admin_url, sql=sql, database=DATABASE)
    assert isinstance(answer, dict)
    return answer


def described(connection: hive.Connection, name: str) -> TableFacts:
    def answer(sql: str) -> Rows:
        return Rows((Column("col_name", "string"),), tuple(tuple(row) for row in run(connection, sql)), 0.0)

    facts = read_description(answer(f"DESCRIBE TABLE EXTENDED {name}"))
    assert facts is not None, name
    if facts.kind is TableKind.VIEW:
        return TableFacts(
            facts.columns,
            provider=facts.provider,
            kind=facts.kind,
            view=read_view_text(answer(f"DESCRIBE TABLE EXTENDED {name} AS JSON")),
        )
    return facts


def test_the_tables_are_what_the_pure_cases_take_them_for(sessions: Sessions, *, updating: bool) -> None:
    facts = {name: described(sessions[0], name) for name in golden_cases.table_names(KIND)}
    found = {
        name: [str(row[0]) for row in run(sessions[0], f"SHOW PARTITIONS {name}")]
        for name, one in facts.items()
        if one.partition_columns
    }
    if updating:
        golden_cases.write_catalog(facts, KIND)
        write_partitions(found)
    assert facts == golden_cases.catalog(KIND)
    assert found == recorded_partitions()


@pytest.mark.parametrize("rule", sorted({case.rule for case in takes(KIND)}))
def test_a_rule_about_partitions_rewrites_to_what_is_recorded(
    rule: str, sessions: Sessions, proxy: ProxyProcess, *, updating: bool
) -> None:
    cases = [case for case in takes(KIND) if case.rule == rule]
    found = {case.name: recorded(proxy, sessions[0], case) for case in cases}
    if updating:
        golden_cases.write(rule, found)
    assert found == golden_cases.expectations(rule)


def recorded(proxy: ProxyProcess, direct: hive.Connection, case: Take) -> Expected:
    answer = explain(proxy, case.sql)
    assert answer["changed"], f"{case}: {answer['scans']}"
    queries, answers = [], []
    known: dict[KeyQuery, Keys | SkipReason] = {}
    found = planned(case.sql)
    while pending := found.pending(known):
        for question in pending:
            rows = [tuple(map(recorded_value, row)) for row in run(direct, question.sql)]
            known[question] = question.read(rows)
            queries.append(shown(question))
            answers.append(recorded_rows(rows))
        found = planned(case.sql, answers=known)
    assert apply(found, known, RewriteLimits()).text == answer["rewritten"], (
        "the proxy asked about other partitions"
    )
    return Expected(tuple(queries), tuple(answers), str(answer["rewritten"]))


@pytest.mark.parametrize("case", takes(KIND), ids=str)
def test_a_statement_narrowed_by_partitions_answers_as_it_does_directly(
    case: Take, sessions: Sessions, proxy: ProxyProcess
) -> None:
    before = recovered_count(proxy)
    direct, proxied = (Counter(map(repr, run(session, case.sql))) for session in sessions)
    assert proxied == direct, f"{case.sql}\ndirect:  {direct}\nproxied: {proxied}"
    assert recovered_count(proxy) == before, "the rewritten text failed, and the original was run in its place"


@pytest.mark.parametrize("case", refusals(KIND), ids=str)
def test_a_statement_that_must_not_ask_about_partitions_is_explained(
    case: Refusal, sessions: Sessions, proxy: ProxyProcess
) -> None:
    scans = explain(proxy, case.sql)["scans"]
    assert isinstance(scans, list)
    assert {scan["skip_reason"] for scan in scans if scan["alias"] == case.scan} == {case.reason.name}
    direct, proxied = (Counter(map(repr, run(session, case.sql))) for session in sessions)
    assert proxied == direct


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


def test_partitions_that_came_after_the_list_lose_no_row(sessions: Sessions) -> None:
    """The recorded texts, which know nothing of the new partitions, against the originals."""
    direct, _ = sessions
    expected = golden_cases.expectations(f"{KIND}/partition_list")
    before = {case.name: answer(direct, case.sql) for case in takes(KIND)}
    run(direct, NEW_DAYS)
    for name, values in NEW.items():
        run(direct, f"INSERT INTO {name} {values}")
    gained = 0
    for case in takes(KIND):
        original, narrowed = answer(direct, case.sql), answer(direct, expected[case.name].rewritten)
        gained += original != before[case.name]
        # A new day in the calendar lets known partitions match too, which the recorded answers do not know.
        missing = original - narrowed
        assert not any(_is_of_new(row) for row in missing.elements()), f"{case}\n{missing}"
    assert gained > len(takes(KIND)) // 2, "the new partitions hold too few rows that count"


def answer(session: hive.Connection, sql: str) -> Counter[str]:
    return Counter(map(repr, run(session, sql)))


def _is_of_new(row: str) -> bool:
    return any(
        number.strip("(),' ").startswith("9") and len(number.strip("(),' ")) == 2 for number in row.split(",")
    )
