"""The golden cases without a server: catalogs, indexes, lists and keys as the servers last gave them."""

from dataclasses import replace

import pytest
from support.golden_cases import Refusal, Take, expectation, expectations, refusals, takes
from support.golden_sets import LISTED, recorded, set_of, shown
from support.goldens import CHARS_MAX

from rewriter import Rule, SkipReason, parse
from rewriter.sql.statement import parse_tree

pytestmark = pytest.mark.costly

KINDS = ("", "delta", "files", "iceberg", "listed")
TAKES = [case for kind in KINDS for case in takes(kind)]
# Refused for what Spark answers: `test_golden_on_spark` sees it.
FOR_THE_ANSWER = {SkipReason.NULL_SAFE_OVER_NULLS, SkipReason.NOTHING_TO_SKIP}
RULES = {rule.value: rule for rule in Rule}


def rule_of(case: Take) -> Rule:
    return RULES[case.rule.rpartition("/")[2]]


@pytest.mark.parametrize("case", TAKES, ids=str)
def test_a_statement_that_the_rule_takes_asks_for_its_keys_and_is_rewritten(case: Take) -> None:
    outcome = set_of(case).outcome(case.sql, recorded(case))
    assert outcome.expected == expectation(case)
    assert outcome.rewrite.skip is None
    assert outcome.text != case.sql
    assert parse_tree(outcome.text) is not None
    assert "/" not in case.rule or rule_of(case) in outcome.rewrite.rules


@pytest.mark.parametrize("case", takes(), ids=str)
def test_without_its_keys_the_statement_stays_as_it_is(case: Take) -> None:
    outcome = set_of(case).outcome(case.sql, lambda _: None)
    assert outcome.text == case.sql
    assert SkipReason.KEYS_NOT_ASKED in {scan.skip for scan in outcome.rewrite.scans}


@pytest.mark.parametrize("case", [case for case in TAKES if "/" in case.rule], ids=str)
def test_without_its_rule_nothing_is_asked_for_it(case: Take) -> None:
    cases, rule = set_of(case), rule_of(case)
    limits = replace(cases.limits, rules_off=frozenset({rule}))
    off = replace(cases, limits=limits).outcome(case.sql, recorded(case))
    assert not off.found.wants_lists({})
    assert rule not in {other for scan in off.found.scans for reducer in scan.reducers for other in reducer.rules}
    assert rule not in off.rewrite.rules
    # Of other tables the partitions may still be narrowed.
    assert cases.kind not in {"iceberg", "delta"} or not off.rows


@pytest.mark.parametrize("case", [case for kind in KINDS for case in refusals(kind)], ids=str)
def test_a_statement_that_the_rule_refuses_says_why_and_stays_as_it_is(case: Refusal) -> None:
    cases = set_of(case)
    if case.scan is None:
        assert parse(case.sql, chars_max=CHARS_MAX, has_file_index=cases.limits.has_file_index) is case.reason
        return
    answers = iter(case.answers)
    outcome = cases.outcome(case.sql, lambda _: next(answers, None))
    assert not case.answers or outcome.is_known
    assert next(answers, None) is None
    is_unseen = cases is LISTED and case.reason in FOR_THE_ANSWER
    reason = SkipReason.KEYS_NOT_ASKED if is_unseen else case.reason
    assert {one.skip for one in outcome.rewrite.scans if one.scan.alias == case.scan} == {reason}
    assert outcome.text == case.sql


@pytest.mark.parametrize("kind", KINDS)
def test_every_expectation_has_its_case(kind: str) -> None:
    rules = {case.rule for case in takes(kind)}
    found = {(rule, name) for rule in rules for name in expectations(rule)}
    assert found == {(case.rule, case.name) for case in takes(kind)}


def test_without_a_file_index_filters_alone_are_not_looked_at() -> None:
    assert parse("SELECT id FROM clustered WHERE x = 5", chars_max=CHARS_MAX) is SkipReason.NO_JOIN_IN_TEXT


def test_users_are_shown_the_query_without_the_list() -> None:
    (query,) = LISTED.planned(takes("listed")[1].sql).key_queries
    assert "(partitions) AS s(`ds`)" in shown(query)
    assert "2026-01-31" in query.sql
    assert "2026-01-31" not in shown(query)
