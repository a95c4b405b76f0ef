"""Every consumer is told what it digests, and no more."""

import pytest

from rewriter import Column, Statement, parse
from rewriter.domains.consumers import ACCEPTS_NOTHING, ICEBERG, METASTORES, PARQUET, halved, left_beside
from rewriter.domains.cover import Cover
from rewriter.domains.cover_sql import cover_sql
from rewriter.domains.widen import Consumer, widen

CONSUMERS = {**METASTORES, "parquet": PARQUET, "iceberg": ICEBERG}


@pytest.mark.parametrize("name", sorted(CONSUMERS))
@pytest.mark.parametrize("count", [1, 10, 11, 80, 81, 200, 201, 900, 901, 5_000])
def test_scattered_keys_are_points_as_long_as_they_are_digested_and_then_ranges(name: str, count: int) -> None:
    consumer = CONSUMERS[name]
    keys = Cover.of_rows([Column("k", "int")], [(number * 7,) for number in range(count)])
    wide = widen(keys, ["k"], consumer, {})
    assert wide.encloses(keys)
    assert (wide == keys) == (count <= max(consumer.points_max, consumer.ranges_max))
    assert cover_sql(wide).count(" AND ") <= consumer.ranges_max


def test_a_consumer_that_failed_is_sent_half_as_much() -> None:
    assert halved(METASTORES["derby"]) == Consumer(40, 20, range_partitions=40)


def test_a_consumer_that_the_statement_leaves_no_room_in_takes_nothing() -> None:
    assert ACCEPTS_NOTHING.accepts_nothing
    assert left_beside(METASTORES["derby"], 500).accepts_nothing
    assert not left_beside(METASTORES["derby"], 79).accepts_nothing


def test_what_the_statement_compares_itself_is_not_there_for_us() -> None:
    assert left_beside(METASTORES["derby"], 30) == Consumer(50, 25, range_partitions=40)
    assert left_beside(METASTORES["derby"], 500) == Consumer(0, 0, range_partitions=40)


@pytest.mark.parametrize(
    ("condition", "comparisons"),
    [
        ("d.g = 1", 0),
        ("f.k IN (1, 2, 3)", 3),
        ("d.day IN (1, 2, 3) AND d.g IN (4, 5, 6, 7)", 3),
        ("f.k BETWEEN 1 AND 2 AND d.day > 0 AND 5 < F.K", 6),
    ],
)
def test_values_count_that_are_compared_with_columns_that_joins_compare(condition: str, comparisons: int) -> None:
    statement = parse(f"SELECT 1 FROM f JOIN d ON f.k = d.day WHERE {condition}", chars_max=1_000)
    assert isinstance(statement, Statement)
    assert statement.comparisons_on_join_columns == comparisons
