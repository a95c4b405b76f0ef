"""The sieve is worth what it catches: with any one rule switched off it must find a wrong answer."""

from collections.abc import Iterator, Sequence

import pytest
from grammar import Query
from mutations import MUTATIONS, Mutation
from seeding import DEEP, seeded
from sieve import Sieve, check, planned_on, wrong_answers
from small_scopes import three_table_stars, three_table_statements, two_table_stars, two_table_statements
from star_tables import Star
from tally import Tally

# Most rules are caught within three seeds, one takes 24; the rest need the small scopes, which follow.
SEEDS = 40


@pytest.mark.skipif(not DEEP, reason="takes minutes: make test-deep runs it")
@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_the_sieve_notices_a_rule_that_is_off(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    planned_on.cache_clear()
    mutation.apply(monkeypatch)
    try:
        caught = next(wrong_reports(), None)
    finally:
        planned_on.cache_clear()
    assert caught is not None, f"nothing goes wrong without the rule: {mutation}"


def wrong_reports() -> Iterator[str]:
    """Wrong answers to generated statements, then to the small cases over the fullest tables."""
    for seed in range(SEEDS):
        yield from (wrong.report for wrong in wrong_answers(seed))
    yield from wrong_in(two_table_stars()[-1], list(two_table_statements()))
    for star in three_table_stars()[:2]:
        yield from wrong_in(star, list(three_table_statements()))


def wrong_in(star: Star, statements: Sequence[Query]) -> Iterator[str]:
    sieve = Sieve(star)
    try:
        for query in statements:
            yield from check(sieve, query, seeded(0), Tally())
    finally:
        sieve.close()
