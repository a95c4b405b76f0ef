"""The suite is worth what it catches: with any one rule switched off, the sieve or the named test must fail."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from grammar import Query
from mutations import MUTATIONS, SIEVE, SMALL_CASES, Mutation
from seeding import seeded
from sieve import Sieve, check, planned_on, wrong_answers
from small_scopes import (
    joins_of_two_types,
    nested_statements,
    outer_statements,
    star_of_two_types,
    three_table_stars,
)
from star_tables import Star
from support.profile import DEEP
from tally import Tally

TESTS = Path(__file__).parent.parent
# Most rules are caught within three seeds, one takes 24.
SEEDS = 40

BY_A_TEST = [mutation for mutation in MUTATIONS if mutation.caught_by not in {SMALL_CASES, SIEVE}]


def caught_by(part: str) -> list[Mutation]:
    return [mutation for mutation in MUTATIONS if mutation.caught_by == part]


@pytest.fixture
def switched_off(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mutation]:
    """The mutation, with its rule off until the test is over."""
    mutation: Mutation = request.param
    planned_on.cache_clear()
    mutation.apply(monkeypatch)
    yield mutation
    planned_on.cache_clear()


@pytest.mark.parametrize("switched_off", caught_by(SMALL_CASES), indirect=True, ids=str)
def test_the_small_cases_notice_a_rule_that_is_off(switched_off: Mutation) -> None:
    assert next(wrong_in_small_cases(), None) is not None, f"nothing goes wrong without the rule: {switched_off}"


@pytest.mark.skipif(not DEEP, reason="takes minutes: make test-deep runs it")
@pytest.mark.parametrize("switched_off", caught_by(SIEVE), indirect=True, ids=str)
def test_generated_statements_notice_a_rule_that_is_off(switched_off: Mutation) -> None:
    wrong = (wrong for seed in range(SEEDS) for wrong in wrong_answers(seed))
    assert next(wrong, None) is not None, f"nothing goes wrong without the rule: {switched_off}"


@pytest.mark.parametrize("switched_off", BY_A_TEST, indirect=True, ids=str)
def test_the_named_test_notices_a_rule_that_is_off(switched_off: Mutation) -> None:
    # In this very process, where the rule is off. Any other end, such as a test that is not found, is no catch.
    ended = pytest.main(["-q", "-p", "no:cacheprovider", str(TESTS / switched_off.caught_by)])
    assert ended == pytest.ExitCode.TESTS_FAILED


def wrong_in_small_cases() -> Iterator[str]:
    yield from wrong_in(star_of_two_types(), list(joins_of_two_types()))
    yield from wrong_in(three_table_stars()[0], [*nested_statements(), *outer_statements()])


def wrong_in(star: Star, statements: Sequence[Query]) -> Iterator[str]:
    sieve = Sieve(star)
    try:
        for query in statements:
            yield from check(sieve, query, seeded(0), Tally())
    finally:
        sieve.close()
