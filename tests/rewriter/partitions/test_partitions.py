"""Which partitions a cover keeps, and where they lie."""

import pytest

from rewriter import Column, KeySet
from rewriter.domains.cover import Cover
from rewriter.domains.domain import Domain
from rewriter.domains.literals import Key
from rewriter.partitions.index import PartitionIndex
from rewriter.partitions.pruning import kept_count, partition_costs

INDEX = PartitionIndex.of(
    ("ds", "region"),
    ("string", "string"),
    (
        "ds=2026-01-01/region=north",
        "ds=2026-01-01/region=a%2Fb",
        "ds=2026-01-02/region=__HIVE_DEFAULT_PARTITION__",
        "ds=__HIVE_DEFAULT_PARTITION__/region=north",
    ),
)


def points(column: str, type_name: str, *values: Key | None) -> Cover:
    return Cover.of_rows([Column(column, type_name)], [(value,) for value in values])


def index(type_name: str, *specs: str) -> PartitionIndex:
    return PartitionIndex.of(("k",), (type_name,), specs)


def test_a_partition_is_kept_if_every_cover_holds_its_values() -> None:
    days, regions = points("ds", "string", "2026-01-01"), points("region", "string", "a/b", "south")
    assert kept_count(INDEX, [days]) == 2
    assert kept_count(INDEX, [days, regions]) == 1
    assert kept_count(INDEX, [Cover.all()]) == 4
    assert kept_count(INDEX, [Cover.none()]) == 0


def test_keys_of_two_columns_keep_the_pairs_alone() -> None:
    found = KeySet.of(("string", "string"), [("2026-01-01", "a/b"), ("2026-01-02", "north")])
    assert kept_count(INDEX, [found.cover(["ds", "region"])]) == 1


def test_the_null_partition_is_kept_for_a_null_key_alone() -> None:
    assert kept_count(INDEX, [points("ds", "string", "2026-01-01", "2026-01-02")]) == 3
    assert kept_count(INDEX, [points("ds", "string", None)]) == 1


def test_a_range_keeps_what_lies_in_it_and_not_null() -> None:
    assert kept_count(INDEX, [Cover.of_domain("ds", Domain.between("string", "2026-01-02", None))]) == 1
    assert kept_count(INDEX, [Cover.of_domain("ds", Domain.between("string", None, None))]) == 3


@pytest.mark.parametrize(
    ("type_name", "specs", "value"),
    [
        ("int", ("k=01", "k=+1", "k=2"), 1),
        ("decimal(5,2)", ("k=1.5", "k=1.50", "k=2"), "1.50"),
        ("boolean", ("k=true", "k=TRUE", "k=false"), True),
    ],
)
def test_values_are_compared_as_spark_casts_them(type_name: str, specs: tuple[str, ...], value: Key) -> None:
    assert kept_count(index(type_name, *specs), [points("k", type_name, value)]) == 2


def test_a_value_that_cannot_be_read_counts_as_kept() -> None:
    assert kept_count(index("date", "k=2026-1-1", "k=2026-01-02"), [points("k", "date", "2026-01-01")]) == 1


def test_costs_tell_where_partitions_lie_and_leave_null_out() -> None:
    found = partition_costs(index("int", "k=5", "k=7", "k=07", "k=9", "k=__HIVE_DEFAULT_PARTITION__"))["k"]
    assert list(found.below([5, 6, 8, 100])) == [0, 1, 3, 4]


def test_costs_count_the_partitions_that_share_a_value_of_any_column() -> None:
    found = partition_costs(PartitionIndex.of(("d", "h"), ("int", "int"), ["d=1/h=2", "d=1/h=3", "d=5/h=2"]))
    assert list(found["d"].below([1, 2, 5, 6])) == [0, 2, 2, 3]
    assert list(found["h"].below([2, 3, 4])) == [0, 2, 3]
