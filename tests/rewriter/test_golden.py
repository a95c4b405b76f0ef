"""The golden cases without a server: catalog and keys as the server last gave them."""

from collections.abc import Sequence

import pytest
from support.golden_cases import Refusal, Row, Take, expectation, expectations, pure_catalog, refusals, takes
from support.golden_executions import LIMITS
from support.goldens import planned_with

from rewriter import Plan, Rewrite, SkipReason, apply, parse
from rewriter.sql.statement import parse_tree

CHARS_MAX = 100_000


def planned(sql: str) -> Plan:
    return planned_with(sql, pure_catalog, LIMITS)


def rewritten(found: Plan, rows: Sequence[Sequence[Row]]) -> Rewrite:
    answers = {query: query.read(answer) for query, answer in zip(found.key_queries, rows, strict=True)}
    return apply(found, answers, LIMITS)


@pytest.mark.parametrize("case", takes(), ids=str)
def test_a_statement_that_the_rule_takes_asks_for_its_keys_and_is_rewritten(case: Take) -> None:
    expected = expectation(case)
    found = planned(case.sql)
    assert tuple(query.sql_with_repeats or query.sql for query in found.key_queries) == expected.key_queries
    result = rewritten(found, expected.answers)
    assert result.skip is None
    assert result.text == expected.rewritten
    assert result.text != case.sql
    assert parse_tree(result.text) is not None


@pytest.mark.parametrize("case", takes(), ids=str)
def test_without_its_keys_the_statement_stays_as_it_is(case: Take) -> None:
    result = apply(planned(case.sql), {}, LIMITS)
    assert result.text == case.sql
    assert SkipReason.KEYS_NOT_ASKED in {scan.skip for scan in result.scans}


@pytest.mark.parametrize("case", refusals(), ids=str)
def test_a_statement_that_the_rule_refuses_says_why_and_stays_as_it_is(case: Refusal) -> None:
    if case.scan is None:
        assert parse(case.sql, chars_max=CHARS_MAX) is case.reason
        return
    found = planned(case.sql)
    if case.answers:
        result = rewritten(found, case.answers)
        assert {outcome.skip for outcome in result.scans if outcome.scan.alias == case.scan} == {case.reason}
        assert result.text == case.sql
        return
    assert {scan.skip for scan in found.scans if scan.alias == case.scan} == {case.reason}
    if not found.key_queries:
        assert apply(found, {}, LIMITS).text == case.sql


def test_every_expectation_has_its_case() -> None:
    rules = {case.rule for case in takes()}
    recorded = {(rule, name) for rule in rules for name in expectations(rule)}
    assert recorded == {(case.rule, case.name) for case in takes()}
