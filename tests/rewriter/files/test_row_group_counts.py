"""Row groups that are left of files, estimated by the bounds of their runs."""

import json
import re
from collections.abc import Iterable, Mapping
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cover_strategies import laws

from rewriter.domains.cover import Cover
from rewriter.domains.domain import Domain
from rewriter.domains.keyset import KeySet
from rewriter.files import row_groups
from rewriter.files.file_index import FileIndex
from rewriter.files.row_groups import RowGroupCount, _steps_hit
from rewriter.predicates.data_columns import row_group_predicate
from rewriter.predicates.predicate import Restriction
from rewriter.vocabulary.identifiers import Column

K = Column("k", "int")
CHARS_MAX = 10_000
Run = tuple[int, int, int]


def column(low: object, high: object, runs: object, type_name: str = "int") -> dict[str, object]:
    return {"type": type_name, "low": str(low), "high": str(high), "nulls": 0, "row_groups": runs}


def of_runs(*runs: Run) -> dict[str, object]:
    """A column by runs of row groups: their least value, their greatest, their number."""
    texts = [{"low": str(low), "high": str(high), "count": count, "steps": count} for low, high, count in runs]
    return column(min(run[0] for run in runs), max(run[1] for run in runs), texts)


def index_of(*files: Mapping[str, object], type_name: str = "int", size_bytes: int = 1_000) -> FileIndex:
    rows = [(f"/{n}", size_bytes, 1, 1, json.dumps({"k": known}), None) for n, known in enumerate(files)]
    return FileIndex.of_rows(rows, {"k": type_name})


def keys(*values: int) -> Cover:
    return Cover.of_rows([K], [(value,) for value in values])


def kept(index: FileIndex, cover: Cover) -> tuple[int, int]:
    found = index.row_groups(cover)
    assert found is not None
    return found.kept, found.total


# A hundred pages from 0 to 9,999 in the order of k; the same values, in runs that repeat them; and in no order.
SORTED = of_runs(*((1_000 * n, 1_000 * n + 999, 10) for n in range(10)))
MERGED = of_runs(*((0, 9_999, 10) for _ in range(10)))
UNKNOWN = column(0, 9_999, None)


def test_a_value_of_a_sorted_file_is_in_one_of_its_row_groups() -> None:
    assert kept(index_of(SORTED), keys(5)) == (1, 100)
    assert kept(index_of(SORTED, SORTED), keys(5, 6, 7, 5_000)) == (4, 200)


def test_a_value_of_a_file_that_was_merged_of_sorted_ones_is_in_one_of_each() -> None:
    assert kept(index_of(MERGED), keys(5)) == (10, 100)


def test_a_file_with_unknown_row_groups_counts_as_one_that_is_read() -> None:
    assert index_of(UNKNOWN).row_groups(keys(5)) is None
    found = index_of(SORTED, UNKNOWN).row_groups(keys(5))
    assert found == RowGroupCount(101, 2, 2_000, 1_010, is_complete=False)


def test_row_groups_of_files_that_are_skipped_are_not_counted() -> None:
    later = of_runs((20_000, 29_999, 10))
    assert kept(index_of(SORTED, later), keys(5)) == (1, 100)


def test_the_column_that_leaves_least_is_counted() -> None:
    known = {"k": SORTED, "l": MERGED}
    index = FileIndex.of_rows([("/f", 1, 1, 1, json.dumps(known), None)], {"k": "int", "l": "int"})
    both = [K, Column("l", "int")]
    assert kept(index, Cover.of_rows(both, [(5, 5)])) == (1, 100)
    assert kept(index, Cover.of_rows(both[1:], [(5,)])) == (10, 100)


def test_nulls_may_be_in_every_row_group() -> None:
    cover = KeySet.of(("int",), [(None,), (5,)], null_safe=(True,)).cover(("k",))
    assert index_of(SORTED).row_groups(cover) is None


def test_texts_are_told_apart_by_their_first_letters() -> None:
    runs = [{"low": f"user-{n}0", "high": f"user-{n}9", "count": 10, "steps": 10} for n in range(10)]
    index = index_of(column("user-00", "user-99", runs, "string"), type_name="string")
    found = index.row_groups(Cover.of_rows([Column("k", "string")], [("user-42",)]))
    assert found is not None
    assert 0 < found.kept <= 2


def test_days_and_decimals_lie_on_lines_too() -> None:
    for type_name, low, high, key in (
        ("date", "2026-01-01", "2026-12-31", "2026-03-04"),
        ("decimal(9,2)", "0.00", "99.99", "7.50"),
        ("bigint", "0", "9999", 5),
    ):
        runs = [{"low": low, "high": high, "count": 10, "steps": 10}]
        index = index_of(column(low, high, runs, type_name), type_name=type_name)
        assert kept(index, Cover.of_rows([Column("k", type_name)], [(key,)])) == (1, 10)


@pytest.mark.parametrize(
    "runs",
    [
        "many",
        7.5,
        [7],
        [{"low": "0", "high": "9"}],
        [{"low": "x", "high": "9", "count": 3, "steps": 3}],
        [{"low": "0", "high": "9", "count": 0, "steps": 0}],
        [{"low": "0", "high": "9", "count": True, "steps": 1}],
        [{"low": "0", "high": "9", "count": 10**9, "steps": 1}],
        0,
        -1,
    ],
)
def test_what_is_no_run_of_row_groups_is_not_known(runs: object) -> None:
    index = index_of(column(0, 9_999, runs))
    assert index.row_groups(keys(5)) is None
    assert kept(index_of(SORTED, column(0, 9_999, runs)), keys(5))[1] == 101


def test_bounds_in_the_wrong_order_skip_nothing() -> None:
    assert kept(index_of(of_runs((9_999, 0, 10))), keys(5)) in {(10, 10), (1, 10)}


def test_an_index_keeps_no_more_runs_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rewriter.files.file_facts._RUNS_KEPT_MAX", 10)
    assert [len(facts.bounds["k"].row_groups) for facts in index_of(SORTED, SORTED).files] == [10, 0]


def test_runs_count_in_the_memory_that_an_index_takes() -> None:
    assert (index_of(UNKNOWN, UNKNOWN).weight, index_of(SORTED, SORTED, UNKNOWN).weight) == (2, 5)


def test_of_very_many_row_groups_a_part_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    index = index_of(*[SORTED] * 8)
    exactly = index.row_groups(keys(5))
    monkeypatch.setattr(row_groups, "STEPS_MAX", 200)
    assert index.row_groups(keys(5)) == exactly
    monkeypatch.setattr(row_groups, "FILES_MAX", 2)
    assert index.row_groups(keys(5)) == exactly


_ends = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted)


@laws
@given(st.sets(st.integers(-5, 65), min_size=1), _ends, st.integers(1, 9))
def test_every_step_that_holds_a_value_is_counted_once(values: set[int], ends: list[int], steps: int) -> None:
    low, high = ends
    # A run has no more steps than values.
    steps = min(steps, high + 1 - low)
    cuts = Domain.of("int", values).cuts
    inside = {(value - low) * steps // (high + 1 - low) for value in values if low <= value <= high}
    assert _steps_hit(cuts[::2], [cut - 1 for cut in cuts[1::2]], low, high, steps) == len(inside)


def said(index: FileIndex, values: Iterable[int]) -> str | None:
    keyed = Restriction((K,), KeySet.of(("int",), [(value,) for value in values]))
    found = row_group_predicate(keyed, index, CHARS_MAX)
    return found.sql if found is not None else None


def test_keys_are_said_where_row_groups_differ_though_each_file_holds_all_values() -> None:
    assert said(index_of(SORTED, SORTED, SORTED), [5, 7_000]) == "(`k` IN (5, 7000) OR typeof(`k`) <> 'int')"
    assert said(index_of(UNKNOWN, UNKNOWN, UNKNOWN), [5, 7_000]) is None


def test_keys_in_every_row_group_are_not_said() -> None:
    assert said(index_of(SORTED, SORTED), range(0, 10_000, 97)) is None


def test_a_few_files_with_unknown_row_groups_do_not_hide_the_others() -> None:
    assert said(index_of(SORTED, SORTED, UNKNOWN), [5]) is not None
    assert said(index_of(SORTED, *[UNKNOWN] * 20), [5]) is None


def test_a_file_without_runs_does_not_make_an_unordered_table_ordered() -> None:
    everywhere = range(0, 10_000, 97)
    assert said(index_of(*[SORTED] * 20), everywhere) is None
    assert said(index_of(*[SORTED] * 20, UNKNOWN), everywhere) is None


def test_a_range_that_spares_whole_files_is_said_though_those_it_holds_are_read() -> None:
    files = [of_runs(*((1_000 * n + 100 * m, 1_000 * n + 100 * m + 99, 1) for m in range(10))) for n in range(100)]
    text = said(index_of(*files), range(10_007, 34_990, 11))
    assert text is not None
    assert "BETWEEN 10007 AND " in text


def a_run(low: str, high: str, count: int, type_name: str = "int") -> FileIndex:
    return index_of(column(low, high, count, type_name), type_name=type_name)


def test_a_value_that_fills_several_row_groups_is_in_all_of_them() -> None:
    assert kept(a_run("5", "5", 10), keys(5)) == (10, 10)
    assert kept(a_run("1", "3", 100), keys(1, 2, 3)) == (100, 100)
    assert kept(a_run("1", "3", 99), keys(2)) == (33, 99)


@pytest.mark.parametrize("last", ["a", "z"])
def test_texts_that_begin_alike_are_in_all_row_groups(last: str) -> None:
    start = "https://example.org/"
    index = a_run(f"{start}a", f"{start}{last}", 40, "string")
    assert kept(index, Cover.of_rows([Column("k", "string")], [(f"{start}{last}",)])) == (40, 40)


_runs = st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400), st.integers(1, 50)), min_size=1, max_size=6)


@laws
@given(st.sets(st.integers(0, 400), min_size=1, max_size=200), st.lists(_runs, min_size=1, max_size=4))
def test_every_key_is_in_what_is_said_whatever_is_told_of_row_groups(
    values: set[int], files: list[list[Run]]
) -> None:
    # As an index that anyone may write tells it: ends in any order, values that are elsewhere.
    told = [column(0, 400, [_told(run) for run in runs]) for runs in files]
    found = row_group_predicate(
        Restriction((K,), KeySet.of(("int",), [(value,) for value in values])), index_of(*told), CHARS_MAX
    )
    for text in [found.sql] if found is not None else []:
        listed = {int(number) for numbers in re.findall(r"IN \(([^)]*)\)", text) for number in numbers.split(",")}
        ranges = [(int(low), int(high)) for low, high in re.findall(r"BETWEEN (\d+) AND (\d+)", text)]
        assert all(value in listed or any(low <= value <= high for low, high in ranges) for value in values)


def _told(run: Run) -> dict[str, object]:
    return {"low": str(run[0]), "high": str(run[1]), "count": run[2], "steps": run[2]}


def test_ranges_leave_out_the_gaps_in_which_row_groups_have_most_bytes() -> None:
    # Between 2,000 and 8,999 lie nine tenths of the row groups.
    lying = of_runs((0, 1_999, 5), (2_000, 8_999, 90), (9_000, 9_999, 5))
    scattered = chain(range(0, 2_000, 20), range(9_000, 10_000, 20))
    text = said(index_of(lying, lying), scattered)
    assert text is not None
    assert "BETWEEN 9000 AND" in text or "BETWEEN 9000 " in text
