"""The 99 texts of TPC-DS are far below the limits of what a statement may take to read and to plan."""

from tpcds import tpcds

from rewriter import RewriteLimits, SkipReason, parse, plan
from rewriter.scopes.steps import PLAN_STEPS_MAX
from rewriter.sql.bounded_parser import TOKENS_READ_AGAIN_MAX, tokenize, tokens_read_again

LIMITS = RewriteLimits()


def test_their_plans_take_a_tenth_of_the_steps_at_most() -> None:
    benchmark = tpcds(scale=0)
    for text in benchmark.queries.values():
        statement = parse(text, chars_max=100_000)
        assert not isinstance(statement, SkipReason)
        catalog = benchmark.catalog(plan(statement, {}, LIMITS).missing)
        assert plan(statement, catalog, LIMITS).steps * 10 < PLAN_STEPS_MAX


def test_a_tenth_of_the_tokens_that_may_be_read_again_is_more_than_they_have() -> None:
    texts = tpcds(scale=0).queries.values()
    assert max(tokens_read_again(tokenize(text)) for text in texts) * 10 < TOKENS_READ_AGAIN_MAX
