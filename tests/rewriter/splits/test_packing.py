"""Splits: Spark's own packing, and groups of it that lose nothing and are never too large."""

from hypothesis import given
from hypothesis import strategies as st

from rewriter.splits.packing import Grouping, GroupLimits, IcebergPacking, Packing, grouping, packed, runs

MIB = 1 << 20
DEFAULT = Packing(slots=2)
LIMITS = GroupLimits()

# Sizes from nothing to some splits, most of them small.
SIZES = st.lists(st.one_of(st.integers(0, 10_000), st.integers(0, 500 * MIB)), max_size=300)
PACKINGS = st.builds(
    lambda kind, **settings: kind(**settings),
    st.sampled_from([Packing, IcebergPacking]),
    slots=st.integers(1, 64),
    split_bytes_max=st.sampled_from([MIB, 16 * MIB, 128 * MIB]),
    open_cost_bytes=st.sampled_from([0, 64 * 1024, 4 * MIB]),
)
GROUP_LIMITS = st.builds(GroupLimits, splits_grouped_max=st.integers(1, 40), splits_saved_min=st.integers(1, 40))


def test_spark_packs_four_thousand_small_files_into_125_splits() -> None:
    # 4 MiB are added for each, and the last one is let in while there is room for its own bytes.
    splits = packed([5_000] * 4_000, DEFAULT)
    assert len(splits) == 125
    assert {len(split) for split in splits} == {32}


def test_iceberg_packs_them_into_a_thousand() -> None:
    assert len(packed([5_000] * 4_000, IcebergPacking(slots=2))) == 1_000
    assert grouping([5_000] * 4_000, IcebergPacking(slots=2), LIMITS) == Grouping(before=1_000, after=100)


def test_iceberg_keeps_its_split_size_where_there_is_enough_for_every_slot() -> None:
    assert len(packed([128 * MIB] * 3, IcebergPacking(slots=2))) == 3
    assert len(packed([100 * MIB], IcebergPacking(slots=4))) == 4


def test_what_is_little_is_split_so_that_every_slot_has_some() -> None:
    assert len(packed([64 * MIB], Packing(slots=4))) == 4


def test_small_splits_are_grouped_ten_at_a_time() -> None:
    assert grouping([5_000] * 4_000, DEFAULT, LIMITS) == Grouping(before=125, after=14)


def test_slots_are_never_left_without_work() -> None:
    assert grouping([5_000] * 4_000, Packing(slots=40), LIMITS) == Grouping(before=125, after=40)


def test_all_slots_have_equally_many_groups() -> None:
    assert grouping([5_000] * 4_000, Packing(slots=12), LIMITS) == Grouping(before=125, after=24)
    # A hundred groups would be 25 saved.
    assert grouping([5_000] * 4_000, Packing(slots=100), LIMITS) == Grouping(before=125, after=125)


def test_files_that_are_large_are_left_to_spark() -> None:
    found = grouping([128 * MIB] * 200, DEFAULT, LIMITS)
    assert found == Grouping(before=200, after=200)
    assert found.hint is None


def test_few_splits_are_left_to_spark() -> None:
    assert grouping([5_000] * 900, DEFAULT, LIMITS) == Grouping(before=29, after=29)
    assert grouping([5_000] * 1_000, DEFAULT, LIMITS) == Grouping(before=32, after=4)


def test_splits_of_many_rows_are_left_to_spark() -> None:
    sizes, few = [5_000] * 4_000, 111 * LIMITS.rows_per_saved_max
    assert grouping(sizes, DEFAULT, LIMITS, rows=few) == Grouping(before=125, after=14)
    assert grouping(sizes, DEFAULT, LIMITS, rows=few + 1) == Grouping(before=125, after=125)


def test_one_split_for_everything_is_never_asked_for() -> None:
    found = grouping([5_000] * 4_000, Packing(slots=1), GroupLimits(splits_grouped_max=1_000))
    assert found == Grouping(before=125, after=2)


def test_a_size_that_no_file_has_is_not_split_in_thought() -> None:
    assert grouping([1 << 62], DEFAULT, LIMITS) is None


@given(SIZES, PACKINGS)
def test_packing_loses_and_doubles_no_byte(sizes: list[int], packing: Packing) -> None:
    chunks = sorted(chunk for split in packed(sizes, packing) for chunk in split)
    ends = dict.fromkeys(range(len(sizes)), 0)
    for chunk in chunks:
        assert chunk.start == ends[chunk.file]
        ends[chunk.file] += chunk.size_bytes
    assert list(ends.values()) == sizes


@given(SIZES, PACKINGS)
def test_no_split_is_larger_than_it_may_be(sizes: list[int], packing: Packing) -> None:
    splits = packed(sizes, packing)
    assert all(sum(chunk.size_bytes for chunk in split) <= packing.split_bytes_max for split in splits)


@given(SIZES, PACKINGS, GROUP_LIMITS)
def test_groups_lose_no_split_and_keep_their_bounds(
    sizes: list[int], packing: Packing, limits: GroupLimits
) -> None:
    found = grouping(sizes, packing, limits)
    splits = packed(sizes, packing)
    assert found is not None
    assert found.before == len(splits)
    if found.hint is None:
        return
    groups = list(runs(splits, found.hint))
    assert [split for group in groups for split in group] == splits
    assert len(groups) == found.hint >= packing.slots
    assert found.hint % packing.slots == 0
    assert found.before - found.hint >= limits.splits_saved_min
    for group in groups:
        assert 1 <= len(group) <= limits.splits_grouped_max
        size_bytes = sum(chunk.size_bytes for split in group for chunk in split)
        assert size_bytes <= packing.split_bytes_max
