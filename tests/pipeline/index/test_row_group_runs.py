"""Runs of row groups, as the index keeps them for a file."""

import random
from typing import cast

import pytest

from pipeline.index.footers import _with_row_groups
from pipeline.index.parquet_bounds import ParquetFooter
from pipeline.index.row_groups import RUNS_MAX, RowGroupRun, row_group_runs
from pipeline.index.rows import FileColumnBounds, IndexedFile, _columns, _row


def pages(count: int, rows: int = 100) -> list[tuple[str, str]]:
    """The bounds of pages of a file that is sorted."""
    return [(f"{number * rows}", f"{number * rows + rows - 1}") for number in range(count)]


def test_neighbours_become_runs() -> None:
    found = row_group_runs("int", pages(80))
    assert len(found) == RUNS_MAX
    assert found[0] == RowGroupRun("0", "999", 10, 10)
    assert sum(run.count for run in found) == 80


def test_few_row_groups_are_runs_of_their_own() -> None:
    assert row_group_runs("int", pages(3)) == (
        RowGroupRun("0", "99", 1, 1),
        RowGroupRun("100", "199", 1, 1),
        RowGroupRun("200", "299", 1, 1),
    )


def test_a_falling_order_is_an_order() -> None:
    found = row_group_runs("int", pages(80)[::-1])
    assert found[0] == RowGroupRun("7000", "7999", 10, 10)


def test_a_file_of_sorted_parts_has_row_groups_that_span_a_part_of_a_run() -> None:
    found = row_group_runs("int", pages(10) * 16)
    assert {(run.low, run.high, run.count, run.steps) for run in found} == {("0", "999", 20, 10)}


@pytest.mark.parametrize("row_groups", [[], pages(1), [("0", "99")] * 50])
def test_row_groups_that_all_span_the_same_are_in_no_order(row_groups: list[tuple[str, str]]) -> None:
    assert row_group_runs("int", row_groups) == ()


def test_row_groups_of_random_rows_are_in_no_order() -> None:
    chance = random.Random(7)  # noqa: S311 - for data
    found = [sorted(chance.choices(range(100_000), k=100)) for _ in range(50)]
    assert row_group_runs("int", [(str(values[0]), str(values[-1])) for values in found]) == ()


@pytest.mark.parametrize(
    ("type_name", "row_groups"),
    [
        ("string", [("user-10", "user-19"), ("user-20", "user-29"), ("user-30", "user-39")]),
        ("date", [("2026-01-01", "2026-01-31"), ("2026-02-01", "2026-02-28"), ("2026-03-01", "2026-03-31")]),
        ("decimal(9,2)", [("0.00", "9.99"), ("10.00", "19.99"), ("20.00", "29.99")]),
    ],
)
def test_values_of_other_types_have_an_order_too(type_name: str, row_groups: list[tuple[str, str]]) -> None:
    assert [(run.low, run.high) for run in row_group_runs(type_name, row_groups)] == row_groups


@pytest.mark.parametrize(
    ("type_name", "unknown"),
    [("int", ("x", "9")), ("int", ("9", "1")), ("string", ("a" * 300, "b")), ("date", ("-", "2026-01-01"))],
)
def test_a_row_group_without_proper_bounds_is_left_out(type_name: str, unknown: tuple[str, str]) -> None:
    known = {"int": pages(4), "string": [("a", "b"), ("c", "d"), ("e", "f")]}.get(
        type_name, [("2026-01-01", "2026-01-31"), ("2026-02-01", "2026-02-28")]
    )
    assert row_group_runs(type_name, [*known, unknown]) == row_group_runs(type_name, known)


@pytest.mark.parametrize("error", [ValueError("non-hexadecimal number"), OverflowError(), LookupError()])
def test_row_groups_that_cannot_be_read_leave_the_bounds_alone(error: Exception) -> None:
    class OddFooter:
        def row_groups(self, _name: str, _type_name: str) -> list[tuple[str, str]]:
            raise error

    known = FileColumnBounds("int", "1", "9", 0)
    assert _with_row_groups(cast("ParquetFooter", OddFooter()), "x", known) == known


@pytest.mark.parametrize(("columns", "are_kept"), [(100, True), (300, False)])
def test_a_row_that_is_too_large_with_runs_is_written_without(columns: int, *, are_kept: bool) -> None:
    low, high = "a" * 256, "z" * 256
    known = FileColumnBounds("string", low, high, 0, (RowGroupRun(low, high, 9, 9),) * RUNS_MAX)
    file = IndexedFile("/f", 1, 1, 1, {f"c{number}": known for number in range(columns)})
    bounds_alone = {name: {**column, "row_groups": None} for name, column in _columns(file).items()}
    assert _row(file)["columns"] == (_columns(file) if are_kept else bounds_alone)
