"""Counting the partitions that a key set keeps."""

from rewriter import KeySet
from rewriter.keys import Key
from rewriter.partitions import kept, partition_values

PARTITIONS = (
    "ds=2026-01-01/region=north",
    "ds=2026-01-01/region=a%2Fb",
    "ds=2026-01-02/region=__HIVE_DEFAULT_PARTITION__",
    "ds=__HIVE_DEFAULT_PARTITION__/region=north",
)


def keys(type_name: str, *values: Key) -> KeySet:
    return KeySet.of((type_name,), [(value,) for value in values])


def test_a_partition_name_is_unescaped() -> None:
    assert partition_values("d%20s=a%2Fb%3Dc/x=__HIVE_DEFAULT_PARTITION__") == {"d s": "a/b=c", "x": None}


def test_a_partition_is_kept_if_every_restricted_column_holds_a_key() -> None:
    days, regions = keys("string", "2026-01-01"), keys("string", "a/b", "south")
    assert kept(PARTITIONS, [(("DS",), days)]) == 2
    assert kept(PARTITIONS, [(("ds",), days), (("region",), regions)]) == 1


def test_keys_of_two_columns_keep_the_pairs_alone() -> None:
    found = KeySet.of(("string", "string"), [("2026-01-01", "a/b"), ("2026-01-02", "north")])
    assert kept(PARTITIONS, [(("ds", "region"), found)]) == 1


def test_the_null_partition_is_kept_for_a_null_key_alone() -> None:
    assert kept(PARTITIONS, [(("ds",), keys("string", "2026-01-01", "2026-01-02"))]) == 3
    assert kept(PARTITIONS, [(("ds",), KeySet.of(("string",), [(None,)], null_safe=(True,)))]) == 1


def test_values_are_compared_as_spark_casts_them() -> None:
    assert kept(("k=01", "k=+1", "k=2"), [(("k",), keys("int", 1))]) == 2
    assert kept(("k=1.5", "k=1.50", "k=2"), [(("k",), keys("decimal(5,2)", "1.50"))]) == 2
    assert kept(("k=TRUE", "k=false"), [(("k",), keys("boolean", *[True]))]) == 1


def test_a_value_that_cannot_be_read_counts_as_kept() -> None:
    assert kept(("k=2026-1-1", "k=2026-01-02"), [(("k",), keys("date", "2026-01-01"))]) == 1
