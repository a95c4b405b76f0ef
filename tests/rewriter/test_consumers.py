"""Every consumer is told what it digests, and no more."""

import pytest

from rewriter import Column
from rewriter.consumers import ICEBERG, LEAST, METASTORES, PARQUET, halved
from rewriter.cover import Cover
from rewriter.predicate import cover_sql
from rewriter.widen import Consumer, widen

CONSUMERS = {**METASTORES, "parquet": PARQUET, "iceberg": ICEBERG, "least": LEAST}


@pytest.mark.parametrize("name", sorted(CONSUMERS))
@pytest.mark.parametrize("count", [1, 10, 11, 100, 101, 200, 201, 900, 901, 5_000])
def test_scattered_keys_are_points_as_long_as_they_are_digested_and_then_ranges(name: str, count: int) -> None:
    consumer = CONSUMERS[name]
    keys = Cover.of_rows([Column("k", "int")], [(number * 7,) for number in range(count)])
    wide = widen(keys, ["k"], consumer, {})
    assert wide.encloses(keys)
    assert (wide == keys) == (count <= max(consumer.points_max, consumer.ranges_max))
    assert cover_sql(wide).count(" AND ") <= consumer.ranges_max


def test_a_consumer_that_failed_is_sent_half_as_much_and_at_last_next_to_nothing() -> None:
    assert halved(METASTORES["derby"]) == Consumer(50, 20)
    consumer = METASTORES["derby"]
    for _ in range(10):
        consumer = halved(consumer)
    assert consumer == LEAST
