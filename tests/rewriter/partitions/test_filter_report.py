"""Reports of partition filters: markers as values, partitions looked at and kept, and causes of full scans."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.partition_strategies import VALUES, filters, is_true, name_of

from rewriter.domains.literals import Key
from rewriter.partitions.filter_report import FilterReport, Marker, report
from rewriter.partitions.filter_text import filter_sql, read_filter
from rewriter.partitions.filter_tree import And, Compare, Operator, PartitionFilter
from rewriter.partitions.index import PartitionIndex

YEARS, MONTHS, LETTERS = (255, 2019, 2020, 2021), range(1, 13), ("ab", "ac", "b")
INDEX = PartitionIndex.of(
    ["y", "m", "s"],
    ["int", "int", "string"],
    [
        *(f"y={y}/m={m}/s={s}" for y in YEARS for m in MONTHS for s in LETTERS),
        "y=__HIVE_DEFAULT_PARTITION__/m=1/s=a",
    ],
)
ALL = len(YEARS) * len(MONTHS) * len(LETTERS) + 1


def reported(text: str) -> FilterReport:
    return report(read_filter(text, INDEX.keys), INDEX)


def included(*values: Key | None) -> Marker:
    return Marker(values, is_included=True)


def excluded(*values: Key | None) -> Marker:
    return Marker(values, is_included=False)


@pytest.mark.parametrize(
    ("text", "scans"),
    [
        ("y = 2020", [(included(2020), excluded(2021), None, 36, 36)]),
        ("y = 255", [(included(255), included(255), None, 36, 36)]),
        ("y <= 254", [(excluded(None), excluded(255), None, 0, 0)]),
        ("y > 2019", [(included(2020), None, None, 72, 72)]),
        ("y IS NULL", [(None, included(None), None, 1, 1)]),
        ("y IS NOT NULL", [(excluded(None), None, None, 144, 144)]),
        ("y = 2020 AND m IS NOT NULL", [(excluded(2020, None), included(2020), None, 36, 36)]),
        ("y = 2020 AND m = 2 AND s LIKE 'a%'", [(included(2020, 2, "a"), excluded(2020, 2, "b"), None, 2, 2)]),
        ("y = 2020 AND m = 2 AND s = 'ab'", [(included(2020, 2, "ab"), included(2020, 2, "ab"), None, 1, 1)]),
        (
            "y >= 2020 AND m = 3",
            [
                (included(2020, 3), excluded(2020, 4), None, 3, 3),
                (included(2021), None, "m = 3", 36, 3),
            ],
        ),
        (
            "NOT y = 2020",
            [(excluded(None), excluded(2020), None, 72, 72), (included(2021), None, None, 36, 36)],
        ),
        ("y = 2020 AND s LIKE '%b'", [(included(2020), excluded(2021), "s LIKE '%b'", 36, 24)]),
    ],
)
def test_a_scan_is_told_by_values_with_what_it_looks_at(text: str, scans: list[object]) -> None:
    found = reported(text)
    left = [filter_sql(And(scan.residual)) if scan.residual else None for scan in found.scans]
    told = [(s.start, s.stop, rest, s.scanned, s.kept) for s, rest in zip(found.scans, left, strict=True)]
    assert told == scans
    assert (found.full_scan_cause, found.total) == (None, ALL)


ORDER = "partitions are in the order of y, and only a condition on y leaves some out without a look at them."
TOGETHER = "The conditions together leave no partition out without a look at it."


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("m = 3", f"m = 3 is a full scan: {ORDER}"),
        ("m = 3 AND s = 'b'", f"m = 3 is a full scan: {ORDER}"),
        ("y = 2020 OR m = 3", f"m = 3 is a full scan: {ORDER}"),
        ("y = 2020 OR (m = 3 AND s > 'a')", f"m = 3 is a full scan: {ORDER}"),
        ("y IS NULL OR y IS NOT NULL", TOGETHER),
        ("TRUE", TOGETHER),
    ],
)
def test_a_full_scan_has_a_cause(text: str, cause: str) -> None:
    found = reported(text)
    assert (found.full_scan_cause, found.scanned) == (cause, ALL)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("s LIKE '%b'", "s LIKE '%b' is a full scan: its pattern begins with a wildcard."),
        ("s NOT LIKE 'a%c'", "s NOT LIKE 'a%c' is a full scan: its pattern is negated."),
        ("s LIKE 'a%c'", None),
        ("s NOT LIKE 'a%'", None),
    ],
)
def test_a_pattern_that_bounds_no_text_is_the_cause_of_a_full_scan(text: str, cause: str | None) -> None:
    index = PartitionIndex.of(["s"], ["string"], ["s=a", "s=b"])
    assert report(read_filter(text, index.keys), index).full_scan_cause == cause


def test_partitions_that_cannot_be_read_are_never_left_out() -> None:
    index = PartitionIndex.of(["y"], ["int"], ["y=1", "y=2", "y=x"])
    found = report(read_filter("y = 1", index.keys), index)
    assert (found.total, found.kept, found.scanned, found.unreadable) == (3, 2, 2, 1)


TYPES = ("decimal(38,0)", "string", "tinyint")
ROWS = st.lists(st.tuples(*(VALUES[one] | st.none() for one in TYPES)), max_size=12)


@given(filters(("a", "b", "c"), TYPES), ROWS)
def test_any_filter_keeps_the_partitions_that_satisfy_it(
    condition: PartitionFilter, rows: list[tuple[Key | None, ...]]
) -> None:
    columns = ("a", "b", "c")
    index = PartitionIndex.of(columns, TYPES, [name_of(columns, row) for row in rows])
    found = report(condition, index)
    held = [
        row
        for row in set(rows)
        if is_true(condition, dict(zip(columns, zip(TYPES, row, strict=True), strict=True)))
    ]
    assert found.kept - found.unreadable <= len(held) <= found.kept
    assert found.scanned is not None
    assert found.kept <= found.scanned <= found.total
    if found.full_scan_cause is None and not found.unreadable:
        assert all(scan.start is not None or scan.stop is not None for scan in found.scans)


@given(st.sampled_from(sorted(VALUES)), st.data())
def test_a_marker_tells_the_value_that_the_filter_names(type_name: str, data: st.DataObject) -> None:
    value = data.draw(VALUES[type_name])
    index = PartitionIndex.of(["k"], [type_name], [])
    (scan,) = report(Compare("k", Operator.EQUAL, value), index).scans
    shown = index.keys.decode_field(0, index.keys.encode_field(0, value))
    assert scan.start == included(shown)
