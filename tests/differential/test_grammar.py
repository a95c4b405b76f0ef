"""The generator itself: it reaches what it names, it can be repeated, and what it makes runs."""

from collections import Counter

from grammar import Query, random_query
from seeding import seeded
from sieve import Answer, NotRunError, Sieve
from star_tables import KEY_TYPES, REFUSED_TYPES, random_star
from support.small_shapes import SHAPES

SEEDS = 60
STATEMENTS = 25


def statements(seed: int) -> list[Query]:
    star = random_star(seeded(seed))
    return [random_query(star, seeded(seed, index)) for index in range(STATEMENTS)]


def test_every_named_shape_is_reached_and_every_reached_shape_has_a_name() -> None:
    reached = Counter(shape for seed in range(SEEDS) for query in statements(seed) for shape in query.shapes)
    assert set(reached) == SHAPES, f"never reached: {SHAPES - set(reached)}; not named: {set(reached) - SHAPES}"


def test_a_fact_is_partitioned_by_every_type() -> None:
    stars = [random_star(seeded(seed)) for seed in range(300)]
    facts = [table for star in stars for table in star.tables if table.is_fact]
    types = {table.column(name).type_name for table in facts for name in table.partition_columns}
    assert types == {*KEY_TYPES, *REFUSED_TYPES}


def test_tables_hold_nulls_and_duplicates_and_may_be_empty() -> None:
    tables = [table for seed in range(50) for table in random_star(seeded(seed)).tables]
    assert any(not table.rows for table in tables)
    assert any(None in row for table in tables for row in table.rows)
    assert any(len({row[0] for row in t.rows}) < len(t.rows) for t in tables)


def test_a_seed_always_gives_the_same_statements() -> None:
    assert [query.sql for query in statements(3)] == [query.sql for query in statements(3)]


def test_almost_every_statement_runs_and_one_in_four_answers_with_rows() -> None:
    answers = [answer for seed in range(8) for answer in answers_of(seed)]
    ran = [answer for answer in answers if answer is not None]
    assert len(ran) >= len(answers) * 0.97
    assert sum(map(bool, ran)) >= len(ran) / 4


def answers_of(seed: int) -> list[Answer | None]:
    """The answer to each statement of the seed, None for one that DuckDB does not run."""
    sieve = Sieve(random_star(seeded(seed)))
    answers: list[Answer | None] = []
    for query in statements(seed):
        try:
            answers.append(sieve.answer(query.sql, query))
        except NotRunError:
            answers.append(None)
    sieve.close()
    return answers
