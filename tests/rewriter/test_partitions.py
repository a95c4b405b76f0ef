"""Counting the partitions that a key set keeps."""

from rewriter import KeySet
from rewriter.partitions import kept, partition_values

PARTITIONS = (
    "ds=2026-01-01/region=north",
    "ds=2026-01-01/region=a%2Fb",
    "ds=2026-01-02/region=__HIVE_DEFAULT_PARTITION__",
    "ds=__HIVE_DEFAULT_PARTITION__/region=north",
)


def test_a_partition_name_is_unescaped() -> None:
    assert partition_values("d%20s=a%2Fb%3Dc/x=__HIVE_DEFAULT_PARTITION__") == {"d s": "a/b=c", "x": None}


def test_a_partition_is_kept_if_every_restricted_column_holds_a_key() -> None:
    days, regions = KeySet.of("string", ["2026-01-01"]), KeySet.of("string", ["a/b", "south"])
    assert kept(PARTITIONS, [("DS", days)]) == 2
    assert kept(PARTITIONS, [("ds", days), ("region", regions)]) == 1


def test_the_null_partition_is_never_kept() -> None:
    assert kept(PARTITIONS, [("ds", KeySet.of("string", ["2026-01-01", "2026-01-02"]))]) == 3


def test_values_are_compared_as_spark_casts_them() -> None:
    assert kept(("k=01", "k=+1", "k=2"), [("k", KeySet.of("int", [1]))]) == 2
    assert kept(("k=1.5", "k=1.50", "k=2"), [("k", KeySet.of("decimal(5,2)", ["1.50"]))]) == 2
    assert kept(("k=TRUE", "k=false"), [("k", KeySet.of("boolean", [True]))]) == 1


def test_a_value_that_cannot_be_read_counts_as_kept() -> None:
    assert kept(("k=2026-1-1", "k=2026-01-02"), [("k", KeySet.of("date", ["2026-01-01"]))]) == 1
