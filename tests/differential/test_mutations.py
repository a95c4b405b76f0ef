"""The suite is worth what it catches: with any one rule switched off, the sieve or the named test must fail.

`caught_by.json` has, for each rule that the small cases hold, the first statement that went wrong without it. That
statement is tried first, which takes a tenth of a second where all before it take up to half a minute. If it goes
wrong no longer, all are tried. `--update-goldens` and the deep run write the file.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
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
from support.profile import DEEP, only_deep
from tally import Tally

pytestmark = pytest.mark.costly

TESTS = Path(__file__).parent.parent
FIRST_WRONG = Path(__file__).parent / "caught_by.json"
# Their start takes longer than most of the named tests.
UNUSED_PLUGINS = ("cacheprovider", "xdist", "unraisableexception", "threadexception")
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


@pytest.fixture(scope="module")
def first_wrong(*, updating: bool) -> Iterator[dict[str, str]]:
    """By rule, the statement that went wrong first without it. Written anew with what this run finds."""
    stored: dict[str, str] = json.loads(FIRST_WRONG.read_text(encoding="utf-8"))
    found = dict(stored)
    yield found
    if (updating or DEEP) and found != stored:
        kept = {str(mutation): found[str(mutation)] for mutation in MUTATIONS if str(mutation) in found}
        FIRST_WRONG.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


@pytest.mark.parametrize("switched_off", caught_by(SMALL_CASES), indirect=True, ids=str)
def test_the_small_cases_notice_a_rule_that_is_off(switched_off: Mutation, first_wrong: dict[str, str]) -> None:
    rule = str(switched_off)
    wrong = next(wrong_statements(first_wrong.get(rule)), None)
    assert wrong is not None, f"nothing goes wrong without the rule: {rule}"
    first_wrong[rule] = wrong


@only_deep("takes minutes")
@pytest.mark.parametrize("switched_off", caught_by(SIEVE), indirect=True, ids=str)
def test_generated_statements_notice_a_rule_that_is_off(switched_off: Mutation) -> None:
    wrong = (wrong for seed in range(SEEDS) for wrong in wrong_answers(seed))
    assert next(wrong, None) is not None, f"nothing goes wrong without the rule: {switched_off}"


@pytest.mark.parametrize("switched_off", BY_A_TEST, indirect=True, ids=str)
def test_the_named_test_notices_a_rule_that_is_off(switched_off: Mutation) -> None:
    # In this very process, where the rule is off. Any other end, such as a test that is not found, is no catch.
    without = [f"-pno:{plugin}" for plugin in UNUSED_PLUGINS]
    ended = pytest.main(["-q", *without, str(TESTS / switched_off.caught_by)])
    assert ended == pytest.ExitCode.TESTS_FAILED


def wrong_statements(tried_first: str | None) -> Iterator[str]:
    """The small cases that go wrong, the one that is tried first before the others."""
    cases: Mapping[Star, list[Query]] = {
        star_of_two_types(): list(joins_of_two_types()),
        three_table_stars()[0]: [*nested_statements(), *outer_statements()],
    }
    first = {star: [query for query in queries if query.sql == tried_first] for star, queries in cases.items()}
    for star, queries in chain(first.items(), cases.items()):
        if queries:
            yield from wrong_in(star, queries)


def wrong_in(star: Star, statements: Sequence[Query]) -> Iterator[str]:
    sieve = Sieve(star)
    try:
        for query in statements:
            if next(check(sieve, query, seeded(0), Tally()), None) is not None:
                yield query.sql
    finally:
        sieve.close()
