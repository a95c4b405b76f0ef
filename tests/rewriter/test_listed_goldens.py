"""The golden cases about lists of partitions without a server: catalog, lists and answers as it last gave them."""

import pytest
from support.golden_cases import Refusal, Take, expectation, expectations, refusals, takes
from support.listed_golden_cases import KIND, LIMITS, planned, rewritten, shown

from rewriter import RewriteLimits, Rule, SkipReason, apply
from rewriter.sql.statement import parse_tree

FOR_THE_ANSWER = {SkipReason.NULL_SAFE_OVER_NULLS, SkipReason.NOTHING_TO_SKIP}
OFF = RewriteLimits(rules_off=frozenset({Rule.PARTITION_LIST}))


@pytest.mark.parametrize("case", takes(KIND), ids=str)
def test_a_statement_that_asks_about_partitions_is_rewritten(case: Take) -> None:
    expected = expectation(case)
    result = rewritten(case.sql, expected)
    assert result.skip is None
    assert result.text == expected.rewritten
    assert Rule.PARTITION_LIST in result.rules
    assert parse_tree(result.text) is not None


@pytest.mark.parametrize("case", takes(KIND), ids=str)
def test_without_the_rule_nothing_is_asked_about_partitions(case: Take) -> None:
    found = planned(case.sql, OFF)
    assert not found.wants_lists({})
    assert Rule.PARTITION_LIST not in {rule for scan in found.scans for one in scan.reducers for rule in one.rules}


@pytest.mark.parametrize("case", refusals(KIND), ids=str)
def test_a_statement_that_must_not_ask_about_partitions_says_why_and_stays_as_it_is(case: Refusal) -> None:
    result = apply(planned(case.sql), {}, LIMITS)
    # Some are refused for what Spark answers (`test_listed_goldens_on_spark`).
    reason = SkipReason.KEYS_NOT_ASKED if case.reason in FOR_THE_ANSWER else case.reason
    assert {outcome.skip for outcome in result.scans if outcome.scan.alias == case.scan} == {reason}
    assert result.text == case.sql


def test_every_expectation_about_partitions_has_its_case() -> None:
    recorded = {(rule, name) for rule in {case.rule for case in takes(KIND)} for name in expectations(rule)}
    assert recorded == {(case.rule, case.name) for case in takes(KIND)}


def test_users_are_shown_the_query_without_the_list() -> None:
    (query,) = planned(takes(KIND)[1].sql).key_queries
    assert "(partitions) AS s(`ds`)" in shown(query)
    assert "2026-01-31" in query.sql
    assert "2026-01-31" not in shown(query)
