"""The golden cases about files and buckets without a server: catalog, index and keys as it last gave them."""

import pytest
from support.file_golden_cases import CHARS_MAX, KIND, LIMITS, Outcome, planned, recorded_index
from support.golden_cases import Expected, Refusal, Take, expectation, expectations, refusals, takes

from rewriter import RewriteLimits, Rule, SkipReason, parse
from rewriter.sql.statement import parse_tree

RULES = {rule.value: rule for rule in Rule}


@pytest.mark.parametrize("case", takes(KIND), ids=str)
def test_a_statement_whose_files_are_known_is_rewritten(case: Take) -> None:
    expected, found = expectation(case), planned(case.sql)
    assert tuple(query.sql_with_repeats or query.sql for query in found.key_queries) == expected.key_queries
    result = Outcome.of(found, expected, recorded_index()).rewrite()
    assert result.skip is None
    assert result.text == expected.rewritten
    assert result.text != case.sql
    assert parse_tree(result.text) is not None


@pytest.mark.parametrize("case", takes(KIND), ids=str)
def test_a_statement_says_by_which_rule_it_is_narrowed_and_stays_without_it(case: Take) -> None:
    expected = expectation(case)
    rule = RULES[case.rule.removeprefix(f"{KIND}/")]
    assert rule in Outcome.of(planned(case.sql), expected, recorded_index()).rewrite().rules
    limits = RewriteLimits(has_file_index=True, rules_off=frozenset({rule}))
    found = planned(case.sql, limits)
    answers = expected if found.key_queries else Expected((), (), "")
    assert rule not in Outcome.of(found, answers, recorded_index()).rewrite(limits).rules


@pytest.mark.parametrize("case", refusals(KIND), ids=str)
def test_a_statement_whose_files_must_not_be_chosen_says_why_and_stays_as_it_is(case: Refusal) -> None:
    if case.scan is None:
        assert parse(case.sql, chars_max=CHARS_MAX, has_file_index=True) is case.reason
        return
    found = planned(case.sql)
    result = Outcome(found, {}, recorded_index()).rewrite(LIMITS)
    assert {outcome.skip for outcome in result.scans if outcome.scan.alias == case.scan} == {case.reason}
    assert result.text == case.sql


def test_every_expectation_about_files_has_its_case() -> None:
    rules = {case.rule for case in takes(KIND)}
    recorded = {(rule, name) for rule in rules for name in expectations(rule)}
    assert recorded == {(case.rule, case.name) for case in takes(KIND)}


def test_without_a_file_index_filters_alone_are_not_looked_at() -> None:
    assert parse("SELECT id FROM clustered WHERE x = 5", chars_max=CHARS_MAX) is SkipReason.NO_JOIN_IN_TEXT
