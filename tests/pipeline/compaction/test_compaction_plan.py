from hypothesis import given
from hypothesis import strategies as st

from pipeline.compaction.plan import SMALL_SHARE, Candidate, FileKind, Limits, PartitionPlan, plan_partition
from pipeline.tables.storage import StoredFile

TARGET = 100


def candidates(*sizes: int, kind: FileKind | None = None) -> list[Candidate]:
    return [
        Candidate(StoredFile(f"f{number:03d}", size, number), kind or FileKind(), number)
        for number, size in enumerate(sizes)
    ]


KINDS = st.builds(
    FileKind, st.sampled_from([None, 1, 2]), st.sampled_from(["zstd", None]), st.sampled_from(["v", None])
)
FILES = st.lists(st.tuples(st.integers(0, 150), KINDS, st.integers(0, 5)), max_size=40).map(
    lambda drawn: [
        Candidate(StoredFile(f"f{number:03d}", size, number), kind, rank)
        for number, (size, kind, rank) in enumerate(drawn)
    ]
)


@given(FILES)
def test_no_file_is_lost_or_doubled_and_none_grows_past_the_target_or_mixes_kinds(files: list[Candidate]) -> None:
    plan = plan_partition("ds=a", files, TARGET)
    assert sorted(file.name for file in (*plan.merged, *plan.kept)) == [one.file.name for one in files]
    for group in plan.groups:
        assert len(group) > 1
        assert len({one.kind for one in group}) == 1
        assert sum(one.file.size_bytes for one in group) <= TARGET
        assert all(one.file.size_bytes < TARGET * SMALL_SHARE for one in group)
    assert plan.files - plan.saved == len(plan.groups) + len(plan.kept)


BOUNDS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), min_size=1, max_size=30)


@given(BOUNDS)
def test_a_value_is_between_the_bounds_of_at_most_one_file_more(drawn: list[tuple[int, int]]) -> None:
    bounds = sorted((low, low + width) for low, width in drawn)
    plan = plan_partition("", candidates(*(40 for _ in bounds)), TARGET)
    merged = [
        (min(bounds[one.rank][0] for one in group), max(bounds[one.rank][1] for one in group))
        for group in plan.groups
    ]
    merged += [bounds[file.modified_ms] for file in plan.kept]
    for value in range(82):
        before = sum(low <= value <= high for low, high in bounds)
        assert sum(low <= value <= high for low, high in merged) <= before + 1


def test_files_that_do_not_overlap_do_not_afterwards() -> None:
    plan = plan_partition("", candidates(*(30 for _ in range(10))), TARGET)
    assert [[one.rank for one in group] for group in plan.groups] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert [file.name for file in plan.kept] == ["f009"]


def plan_of(*sizes: int) -> PartitionPlan:
    return plan_partition("", candidates(*sizes), TARGET)


def test_a_partition_is_rewritten_where_files_saved_are_worth_the_bytes() -> None:
    limits = Limits(TARGET, files_min=3, worth_bytes=50)
    assert plan_of(10, 10, 10).pays(limits)
    assert not plan_of(10, 10).pays(limits), "too few files"
    assert not plan_of(10, 10, 10, 90).pays(limits), "the large one would be copied for two files saved"
    assert plan_of(*[10] * 9, 90).pays(limits)


def test_what_was_compacted_is_not_compacted_again() -> None:
    assert not plan_of(95, 90, 40).groups
