"""Statements by the thousand on DuckDB: a narrowed one answers as the original does."""

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import islice

import pytest
from grammar import Query, random_query, random_view_query
from seeding import seeded, seeds
from sieve import STATEMENTS_PER_SEED, Sieve, check, check_seed
from small_scopes import (
    joins_of_two_types,
    star_of_two_types,
    three_table_stars,
    three_table_statements,
    two_table_stars,
    two_table_statements,
)
from snapshot_tables import of_iceberg
from star_tables import Star, random_star
from support.profile import DEEP
from tally import FAILURES_MAX, Tally

pytestmark = pytest.mark.costly

# 200 statements, and 200,000.
SEEDS = seeds(quick=5, deep=5_000)
# With all tables of Iceberg's, every column of a fact can have keys.
SEEDS_OF_ICEBERG = seeds(quick=4, deep=200)
SEEDS_OF_VIEWS = seeds(quick=3, deep=400)
# A quick run takes one statement of 50 or 100, other ones for each of the tables.
TWO_TABLE_STEP, THREE_TABLE_STEP = (1, 1) if DEEP else (50, 100)


def tallies(chosen: Sequence[int]) -> Iterator[Tally]:
    if not DEEP:
        yield from map(check_seed, chosen)
        return
    # Spawned, since DuckDB's threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        yield from pool.map(check_seed, chosen, chunksize=10)


def test_a_narrowed_statement_answers_as_the_original(capsys: pytest.CaptureFixture[str]) -> None:
    total = Tally()
    for tally in tallies(SEEDS):
        total.add(tally)
        if len(total.failures) >= FAILURES_MAX:
            break
    with capsys.disabled():
        print(f"\n\n{total}\n")  # noqa: T201 - the report of the run
    assert not total.failures, "\n\n=====\n".join(total.failures)
    assert total.outcomes["compared, not empty"] > 0


def test_a_narrowed_statement_over_views_that_join_answers_as_the_original() -> None:
    total = Tally()
    for seed in SEEDS_OF_VIEWS:
        total.add(check_seed(seed, make=random_view_query))
    assert not total.failures, "\n\n=====\n".join(total.failures)
    assert total.narrowed_share > 0.4
    assert total.outcomes["compared, not empty"] > 0


@pytest.mark.parametrize("seed", SEEDS_OF_ICEBERG)
def test_a_narrowed_statement_over_iceberg_tables_answers_as_the_original(seed: int) -> None:
    star = of_iceberg(random_star(seeded(seed)))
    sieve, tally = Sieve(star), Tally()
    try:
        for index in range(STATEMENTS_PER_SEED):
            # A statement can be made again without those before it.
            rng = seeded(seed, index)
            failures = list(check(sieve, random_query(star, rng), rng, tally))
            assert not failures, f"statement {index}\n{failures[0]}\n\n{star}"
    finally:
        sieve.close()


def test_keys_of_two_types_answer_alike() -> None:
    assert_alike(star_of_two_types(), list(joins_of_two_types()))


def test_two_tables_answer_alike_in_every_small_case() -> None:
    for offset, star in enumerate(two_table_stars()):
        chosen = islice(two_table_statements(), offset % TWO_TABLE_STEP, None, TWO_TABLE_STEP)
        assert_alike(star, list(chosen))


def test_three_tables_answer_alike_in_every_small_case() -> None:
    for offset, star in enumerate(three_table_stars()):
        chosen = islice(three_table_statements(), offset % THREE_TABLE_STEP, None, THREE_TABLE_STEP)
        assert_alike(star, list(chosen))


def assert_alike(star: Star, statements: Sequence[Query]) -> None:
    tally = Tally()
    sieve = Sieve(star)
    for query in statements:
        failures = list(check(sieve, query, seeded(0), tally))
        assert not failures, f"{failures[0]}\n\n{star}"
    sieve.close()
    assert tally.not_run == {}
