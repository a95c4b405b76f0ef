"""Filters on partition columns as range scans: the plans that HIVE-9452 lists, and plans against brute force."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.partition_strategies import PATTERNS, VALUES, filters, is_true, like, name_of

from rewriter.domains.literals import Key
from rewriter.partitions.byte_ranges import ByteRange, ByteRanges, successor
from rewriter.partitions.filter_tree import And, Compare, In, IsNull, Like, Operator, Or, PartitionFilter
from rewriter.partitions.index import PartitionIndex, SortedEntries, in_order, matching
from rewriter.partitions.key_encoding import END, VALUE, PartitionKeys
from rewriter.partitions.like import LikePattern
from rewriter.partitions.scan_plan import (
    COMBINED_SCANS_MAX,
    INTERSECTIONS_MAX,
    LEVELS_MAX,
    Scan,
    ScanPlan,
    plan_scans,
)
from rewriter.partitions.value_encoding import NotIndexableError

KEYS = PartitionKeys(("p1", "c1", "c2"), ("int", "int", "string"))
ALONE = PartitionKeys(("p1",), ("int",))

_OPERATORS = {operator.value: operator for operator in Operator}


def compare(text: str) -> PartitionFilter:
    """`p1 > 10` as a condition."""
    column, operator, value = text.split()
    return Compare(column, _OPERATORS[operator], value if column == "c2" else int(value))


def all_of(*texts: str) -> And:
    return And(tuple(map(compare, texts)))


def any_of(*texts: str) -> Or:
    return Or(tuple(map(compare, texts)))


def at(*values: Key) -> bytes:
    """The key that starts with the values."""
    return KEYS.encode(values)


def behind(*values: Key) -> bytes:
    """Behind all keys that start with the values."""
    return successor(KEYS.encode(values))


C1, C1_OR_C2, OVER_20 = compare("c1 = 5"), any_of("c1 = 5", "c2 = x"), any_of("p1 > 20", "c1 = 5")
MIXED = any_of("p1 > 20", "c1 > 5")


@pytest.mark.parametrize(
    ("condition", "scans"),
    [
        pytest.param(all_of("p1 > 10", "p1 < 20"), [Scan(behind(10), at(20))], id="p1 > 10 AND p1 < 20"),
        pytest.param(compare("p1 = 10"), [Scan(at(10), behind(10))], id="p1 = 10, of several columns"),
        pytest.param(any_of("p1 = 9", "p1 = 10"), [Scan(at(9), behind(10))], id="p1 = 9 OR p1 = 10, neighbours"),
        pytest.param(
            any_of("p1 = 9", "p1 = 11"),
            [Scan(at(9), behind(9)), Scan(at(11), behind(11))],
            id="p1 = 9 OR p1 = 11, apart",
        ),
        pytest.param(C1, [Scan(b"", END, (C1,))], id="a condition on a later column only"),
        pytest.param(And((compare("p1 > 10"), C1)), [Scan(behind(10), END, (C1,))], id="p1 > 10 AND c1"),
        pytest.param(And((compare("p1 < 20"), C1)), [Scan(VALUE, at(20), (C1,))], id="p1 < 20 AND c1"),
        pytest.param(
            all_of("p1 > 10", "p1 > 20", "p1 < 30", "p1 < 40"),
            [Scan(behind(20), at(30))],
            id="p1 > 10 AND p1 > 20 AND p1 < 30 AND p1 < 40",
        ),
        pytest.param(all_of("p1 > 20", "p1 < 10"), [], id="nothing can match"),
        pytest.param(all_of("p1 = 10", "c1 > 5"), [Scan(behind(10, 5), at(10) + END)], id="p1 = 10 AND c1 > 5"),
        pytest.param(
            all_of("p1 = 10", "c1 = 5", "c2 = x"),
            [Scan(at(10, 5, "x"), behind(10, 5, "x"))],
            id="all columns",
        ),
    ],
)
def test_a_plan_is_the_one_that_the_design_of_hive_9452_lists(
    condition: PartitionFilter, scans: list[Scan]
) -> None:
    assert list(plan_scans(condition, KEYS).scans) == scans


def test_the_value_of_the_only_column_is_one_range() -> None:
    plan = plan_scans(compare("p1 = 10"), ALONE)
    assert plan.scans == (Scan(ALONE.encode((10,)), successor(ALONE.encode((10,)))),)


def test_overlapping_scans_merge_and_test_the_or_that_they_came_from() -> None:
    """p1 > 10 AND (p1 > 20 OR c1 = 5)."""
    (scan,) = plan_scans(And((compare("p1 > 10"), OVER_20)), KEYS).scans
    assert (scan.start, scan.stop) == (behind(10), END)
    assert scan.residual == (OVER_20,)


def test_a_branch_without_a_bound_makes_an_or_a_full_scan_that_tests_all_of_it() -> None:
    plan = plan_scans(OVER_20, KEYS)
    assert plan.scans == (Scan(b"", END, (OVER_20,)),)


def test_a_condition_and_an_or_of_others() -> None:
    """c1 AND (c2 OR c3), where c1 has a range and where it has none."""
    (scan,) = plan_scans(And((compare("p1 = 10"), C1_OR_C2)), KEYS).scans
    assert (scan.start, scan.stop, scan.residual) == (at(10), behind(10), (C1_OR_C2,))
    (full,) = plan_scans(And((C1, any_of("c2 = x", "c2 = y"))), KEYS).scans
    assert (full.start, full.stop) == (b"", END)


def test_an_and_of_ors_over_leading_columns_is_what_they_share() -> None:
    """(c1 OR c2) AND (c3 OR c4), over one column, over two, and with branches that have no range."""
    ranges = [any_of("p1 < 5", "p1 > 10"), any_of("p1 = 3", "p1 = 7")]
    assert plan_scans(And(tuple(ranges)), KEYS).scans == (Scan(at(3), behind(3)),)
    points = And((any_of("p1 = 1", "p1 = 3"), any_of("c1 = 1", "c1 = 3")))
    assert [scan.start for scan in plan_scans(points, KEYS).scans] == [at(1, 1), at(1, 3), at(3, 1), at(3, 3)]
    assert plan_scans(And((OVER_20, MIXED)), KEYS).scans == (Scan(b"", END, (OVER_20, MIXED)),)


def test_scans_of_an_or_keep_their_own_residuals_while_they_are_apart() -> None:
    condition = Or((compare("p1 = 9"), And((compare("p1 = 10"), compare("c2 = x")))))
    assert plan_scans(condition, KEYS).scans == (
        Scan(at(9), behind(9)),
        Scan(at(10), behind(10), (compare("c2 = x"),)),
    )


def test_a_like_with_a_prefix_is_a_range() -> None:
    keys = PartitionKeys(("s",), ("string",))
    start, stop = VALUE + b"ab", VALUE + b"ac"
    exact, tested = Like("s", "ab%"), Like("s", "ab%c")
    assert plan_scans(exact, keys).scans == (Scan(start, stop),)
    assert plan_scans(tested, keys).scans == (Scan(start, stop, (tested,)),)
    assert plan_scans(Like("s", "a\\%"), keys).scans == plan_scans(Compare("s", Operator.EQUAL, "a%"), keys).scans
    (scan,) = plan_scans(Like("s", "%c"), keys).scans
    assert (scan.start, scan.stop) == (VALUE, END)


def names(condition: PartitionFilter, *specs: str) -> list[str]:
    """Which of the partitions match."""
    columns = tuple(part.partition("=")[0] for part in specs[0].split("/"))
    return list(PartitionIndex.of(columns, ("string",) * len(columns), specs).matching(condition))


def test_an_or_of_patterns_tests_what_their_prefixes_let_in() -> None:
    condition = Or((Like("s", "a%z"), Like("s", "b%z"), Compare("s", Operator.EQUAL, "c")))
    assert names(condition, "s=ay", "s=az", "s=bz", "s=c", "s=cz") == ["s=az", "s=bz", "s=c"]


def test_a_prefix_is_no_value_that_a_later_column_could_follow() -> None:
    condition = And((Like("s", "ab%"), Compare("t", Operator.EQUAL, "x")))
    assert names(condition, "s=ab/t=x", "s=abc/t=x", "s=abc/t=y", "s=a/t=x") == ["s=ab/t=x", "s=abc/t=x"]


def test_an_and_of_more_ors_than_are_intersected_tests_the_rest() -> None:
    lets_x_in = Or((Compare("s", Operator.NOT_EQUAL, "y"), Compare("t", Operator.EQUAL, "y")))
    lets_y_in = Or((Compare("s", Operator.NOT_EQUAL, "x"), Compare("t", Operator.EQUAL, "y")))
    condition = And(((lets_x_in,) * (INTERSECTIONS_MAX + 1)) + (lets_y_in,))
    assert names(condition, "s=x/t=x", "s=y/t=y", "s=y/t=x", "s=z/t=z") == ["s=y/t=y", "s=z/t=z"]


@st.composite
def questions(draw: st.DrawFn) -> tuple[PartitionKeys, list[tuple[Key | None, ...]], PartitionFilter]:
    type_names = tuple(draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3)))
    keys = PartitionKeys(tuple(f"c{index}" for index in range(len(type_names))), type_names)
    row = st.tuples(*(VALUES[type_name] | st.none() for type_name in type_names))
    return keys, draw(st.lists(row, max_size=12, unique=True)), draw(filters(keys.columns, type_names))


@given(questions())
def test_a_plan_finds_what_the_filter_is_true_of_and_nothing_else(
    question: tuple[PartitionKeys, list[tuple[Key | None, ...]], PartitionFilter],
) -> None:
    keys, rows, condition = question
    index = PartitionIndex.of(keys.columns, keys.type_names, [name_of(keys.columns, row) for row in rows])
    expected = [row for row in rows if is_true(condition, described(keys, row)) is True]
    found = list(index.matching(condition))
    assert sorted(found) == sorted(name_of(keys.columns, row) for row in expected)
    starts = [keys.entry(spec) for spec in found]
    assert starts == sorted(starts)


@given(questions())
def test_scans_ascend_and_do_not_overlap(
    question: tuple[PartitionKeys, list[tuple[Key | None, ...]], PartitionFilter],
) -> None:
    scans = plan_scans(question[2], question[0]).scans
    places = [place for scan in scans for place in (scan.start, scan.stop)]
    assert places == sorted(places)
    assert all(scan.start < scan.stop for scan in scans)


def described(keys: PartitionKeys, row: tuple[Key | None, ...]) -> dict[str, tuple[str, Key | None]]:
    return {
        name: (type_name, value) for name, type_name, value in zip(keys.columns, keys.type_names, row, strict=True)
    }


@given(PATTERNS, st.text(st.sampled_from("ab\0é%_\\"), max_size=8))
def test_like_matches_as_one_expression_would(pattern: str, text: str) -> None:
    assert LikePattern.of(pattern).matches(text) is like(text, pattern)


def test_the_ends_of_a_pattern_do_not_share_a_character() -> None:
    assert not LikePattern.of("a%a").matches("a")
    assert not LikePattern.of("a%b%ba").matches("aba")
    assert LikePattern.of("a%a").matches("aa")


def test_a_like_pattern_of_many_wildcards_takes_no_time() -> None:
    assert not LikePattern.of("%a" * 200 + "b").matches("a" * 5_000)


def test_another_escape_makes_wildcards_plain() -> None:
    pattern = LikePattern.of("a!%_\\", "!")
    assert pattern.matches("a%x\\")
    assert not pattern.matches("abx\\")


@pytest.mark.parametrize(("pattern", "escape"), [("a\\", "\\"), ("\\a", "\\"), ("a", ""), ("a", "ab")])
def test_a_pattern_that_spark_rejects_is_refused(pattern: str, escape: str) -> None:
    with pytest.raises(NotIndexableError):
        plan_scans(Like("c2", pattern, escape), KEYS)


def test_like_on_another_type_is_refused() -> None:
    with pytest.raises(NotIndexableError):
        plan_scans(Like("p1", "1%"), KEYS)


ranges = st.lists(st.tuples(st.binary(max_size=2), st.binary(max_size=2)).map(lambda ends: ByteRange(*ends)))


@given(st.lists(ranges, min_size=1, max_size=4), st.binary(max_size=3))
def test_ranges_unite_and_intersect_as_sets(lists: list[list[ByteRange]], place: bytes) -> None:
    sets = [ByteRanges.union(found) for found in lists]
    in_each = [any(start <= place < stop for start, stop in found) for found in lists]
    assert [place in found for found in sets] == in_each
    assert (place in ByteRanges.intersection(sets)) is all(in_each)
    assert (place in ByteRanges.union(r for found in sets for r in found.ranges)) is any(in_each)


def chain(kind: type[And | Or], terms: list[PartitionFilter]) -> PartitionFilter:
    """The left-deep tree that a parser makes."""
    root = terms[0]
    for term in terms[1:]:
        root = kind((root, term))
    return root


TERMS = 10_000


@pytest.mark.parametrize(
    "condition",
    [
        chain(Or, [Compare("p1", Operator.EQUAL, 2 * value) for value in range(TERMS)]),
        chain(And, [Compare("p1", Operator.NOT_EQUAL, 2 * value + 1) for value in range(TERMS)]),
        chain(Or, [all_of(f"p1 = {value}", f"c1 = {value}") for value in range(TERMS)]),
        chain(And, [any_of(f"p1 != {value}", f"c1 = {value}") for value in range(TERMS)]),
        Or(tuple(And((In("p1", tuple(range(TERMS))), compare(f"c1 = {value}"))) for value in range(5))),
        Or(tuple(And((In("p1", tuple(range(TERMS))), compare(f"c2 = {value}"))) for value in range(5))),
        And(tuple(any_of(f"p1 = {value}", f"c2 = {value}") for value in range(TERMS))),
        And((In("p1", tuple(range(0, TERMS, 2))), In("c1", tuple(range(TERMS))))),
    ],
    ids=["or", "and", "pairs", "ors", "disjoint", "spread", "unbounded", "product"],
)
def test_ten_thousand_terms_are_planned_and_asked_without_recursion_or_a_blow_up(
    condition: PartitionFilter,
) -> None:
    entries, _ = in_order(KEYS, [f"p1={value}/c1={value}/c2=x" for value in range(100)])
    start = time.process_time()
    plan = plan_scans(condition, KEYS)
    found = list(matching(plan, KEYS, SortedEntries(entries)))
    assert len(plan.scans) <= 2 * TERMS + COMBINED_SCANS_MAX
    assert len(found) <= len(entries)
    assert time.process_time() - start < 10, "quadratic"


def test_a_tree_that_is_nested_deeper_than_is_planned_is_tested() -> None:
    condition: PartitionFilter = compare("p1 = 3")
    for value in range(10, TERMS):
        kind = And if value % 2 else Or
        condition = kind((condition, compare(f"p1 {'!=' if value % 2 else '='} {value}")))
    index = PartitionIndex.of(KEYS.columns, KEYS.type_names, [f"p1={p}/c1=1/c2=x" for p in (3, 4, 9_998, 9_999)])
    assert TERMS > LEVELS_MAX
    assert list(index.matching(condition)) == ["p1=3/c1=1/c2=x", "p1=9998/c1=1/c2=x"]


def test_more_combinations_than_are_looked_up_leave_the_later_column_to_test() -> None:
    later = In("c1", tuple(range(0, 2_000, 2)))
    plan = plan_scans(And((In("p1", tuple(range(0, 2_000, 2))), later)), KEYS)
    assert len(plan.scans) == 1_000
    assert {scan.residual for scan in plan.scans} == {(later,)}


def test_partitions_that_cannot_be_read_are_always_among_the_matching() -> None:
    index = PartitionIndex.of(("d",), ("date",), ["d=2026-1-1", "d=2026-01-02", "d=2026-01-03"])
    assert list(index.matching(Compare("d", Operator.EQUAL, "2026-01-02"))) == ["d=2026-01-02", "d=2026-1-1"]
    assert list(index.matching(Or(()))) == ["d=2026-1-1"]
    assert len(list(index.matching(And(())))) == 3


def test_null_partitions_are_found_by_is_null_alone() -> None:
    index = PartitionIndex.of(("d",), ("int",), ["d=__HIVE_DEFAULT_PARTITION__", "d=1"])
    assert list(index.matching(IsNull("d"))) == ["d=__HIVE_DEFAULT_PARTITION__"]
    assert list(index.matching(IsNull("d", negated=True))) == ["d=1"]
    assert list(index.matching(Compare("d", Operator.NOT_EQUAL, 5))) == ["d=1"]
    assert list(index.matching(In("d", (None, 2)))) == []


def test_the_values_of_a_column_are_counted_in_order() -> None:
    specs = [f"p1={p}/c1={c}/c2=x" for p in (1, 2, 5) for c in (7, 8)]
    index = PartitionIndex.of(KEYS.columns, KEYS.type_names, [*specs, "p1=__HIVE_DEFAULT_PARTITION__/c1=9/c2=x"])
    assert list(index.counts("p1")) == [(None, 1), (1, 2), (2, 2), (5, 2)]
    assert list(index.counts("C1")) == [(7, 3), (8, 3), (9, 1)]


def test_an_empty_and_is_true_and_an_empty_or_is_false() -> None:
    assert plan_scans(And(()), KEYS) == ScanPlan((Scan(b"", END),))
    assert plan_scans(Or(()), KEYS) == ScanPlan(())
