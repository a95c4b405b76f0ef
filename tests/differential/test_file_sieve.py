"""Statements that skip files answer as they do when they read all: the small cases, and generated ones."""

from collections.abc import Iterator, Sequence

import pytest
from file_sieve import filed, skipping, wrong_with_files
from grammar import Query, random_query
from seeding import seeded, seeds
from sieve import Sieve
from small_scopes import joins_of_two_types, nested_statements, star_of_two_types, three_table_stars
from star_tables import Star, random_star

pytestmark = pytest.mark.costly

SEEDS = seeds(quick=8, deep=200)
STATEMENTS_PER_SEED = 40

# Filters of the fact alone, wherever a statement of two tables has room for one.
OWN = [
    *("f.m = 1", "f.m > 1", "f.k = 2", "f.k IN (1, 3)", "f.m = 1 OR f.k = 3", "f.m = 1 OR d.g = 5", "NOT f.m = 1"),
    *(
        "NOT (f.m = 1 AND f.k = 2)",
        "NOT (f.m = 1 OR f.k = 3)",
        "NOT (f.m = 1 AND d.g = 5)",
        "NOT (f.k IS NULL OR f.m = 2)",
    ),
    *(
        "(f.m, f.k) IN ((1, 1), (2, 3))",
        "(f.m, f.k) NOT IN ((1, 1), (2, 2))",
        "NOT ((f.m, f.k) = (1, 2) AND f.k = 2)",
    ),
    *(
        "f.k IS NOT NULL",
        "f.k = '2'",
        "f.k NOT IN ('1', '3')",
        "f.m = 1 AND (f.k = 3 OR NOT (f.k = 1 OR f.k IS NULL))",
    ),
    *("f.k BETWEEN 2 AND 3", "(f.m = 1 AND f.k = 2) OR (f.m = 2 AND f.k = 3)", "f.m = 2 AND f.k IS NULL"),
]
KINDS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]


def own_filters() -> Iterator[Query]:
    """Each filter in the ON and in the WHERE of each join, with the fact on either side."""
    for kind in KINDS:
        for left, right in ("fd", "df"):
            for own in OWN:
                shown = (
                    "*" if kind.startswith("LEFT ") and kind.endswith(("SEMI JOIN", "ANTI JOIN")) else "f.m, d.g"
                )
                joined = f"{left} {kind} {right} ON f.k = d.k"
                yield Query(f"SELECT {shown} FROM {joined} AND ({own})", frozenset())
                yield Query(f"SELECT {shown} FROM {joined} WHERE {own}", frozenset())
    for own in OWN:
        if "d." not in own:
            yield Query(f"SELECT m, k FROM f WHERE {own}", frozenset())
            yield Query(
                f"SELECT g FROM d WHERE g NOT IN (SELECT f.m FROM f WHERE ({own}) AND f.m > 0)", frozenset()
            )


def wrong(star: Star, statements: Sequence[Query]) -> Iterator[str]:
    sieve = Sieve(star)
    try:
        for query in statements:
            yield from wrong_with_files(sieve, query)
    finally:
        sieve.close()


def wrong_in_small_cases() -> Iterator[str]:
    star = three_table_stars()[0]
    yield from wrong(filed(star, "f", partitioned=False), [*own_filters(), *nested_statements()])
    yield from wrong(filed(star, "f"), list(own_filters())[::2])
    yield from wrong(filed(star, "f", "d", "e", partitioned=False), list(own_filters())[1::2])
    yield from wrong(filed(star_of_two_types(), "f", partitioned=False), list(joins_of_two_types()))


def test_small_cases_that_skip_files_answer_as_they_do_in_full() -> None:
    assert next(wrong_in_small_cases(), None) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_generated_statements_that_skip_files_answer_as_they_do_in_full(seed: int) -> None:
    star = filed(random_star(seeded(seed)), "f1", "f2")
    statements = (random_query(star, seeded(seed, index)) for index in range(STATEMENTS_PER_SEED))
    assert next(wrong(star, list(statements)), None) is None


def test_the_small_cases_do_skip_files() -> None:
    star = filed(three_table_stars()[0], "f", partitioned=False)
    sieve = Sieve(star)
    try:
        found = [query for query in own_filters() if skipping(sieve, query) is not None]
    finally:
        sieve.close()
    assert len(found) > len(list(own_filters())) / 3
