"""The golden cases about Iceberg tables without a server: the catalog, and keys as the server last gave them."""

import pytest
from support.golden_cases import Refusal, Take, expectation, expectations, refusals, takes
from support.iceberg_golden_cases import KIND, LIMITS, planned, rule_of

from rewriter import RewriteLimits, Rule, apply
from rewriter.sql.statement import parse_tree

RULES = {rule.value: rule for rule in Rule}


@pytest.mark.parametrize("case", takes(KIND), ids=str)
def test_a_statement_over_iceberg_tables_is_rewritten(case: Take) -> None:
    expected, found = expectation(case), planned(case.sql)
    assert tuple(query.sql_with_repeats or query.sql for query in found.key_queries) == expected.key_queries
    answers = {query: query.read(rows) for query, rows in zip(found.key_queries, expected.answers, strict=True)}
    result = apply(found, answers, LIMITS)
    assert result.skip is None
    assert result.text == expected.rewritten
    assert result.text != case.sql
    assert parse_tree(result.text) is not None
    assert RULES[rule_of(case)] in result.rules


@pytest.mark.parametrize("case", takes(KIND), ids=str)
def test_nothing_is_asked_of_an_iceberg_table_while_its_rule_is_off(case: Take) -> None:
    assert planned(case.sql, RewriteLimits(rules_off=frozenset({RULES[rule_of(case)]}))).key_queries == ()


@pytest.mark.parametrize("case", refusals(KIND), ids=str)
def test_a_statement_over_iceberg_tables_that_is_refused_says_why(case: Refusal) -> None:
    found = planned(case.sql)
    # Some are refused for what the server says of their keys.
    rows = zip(found.key_queries, case.answers, strict=bool(case.answers))
    result = apply(found, {query: query.read(answer) for query, answer in rows}, LIMITS)
    assert {outcome.skip for outcome in result.scans if outcome.scan.alias == case.scan} == {case.reason}
    assert result.text == case.sql


def test_every_expectation_about_iceberg_has_its_case() -> None:
    rules = {case.rule for case in takes(KIND)}
    recorded = {(rule, name) for rule in rules for name in expectations(rule)}
    assert recorded == {(case.rule, case.name) for case in takes(KIND)}
