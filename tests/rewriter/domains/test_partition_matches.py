"""Covers of lists of partitions: every row but those of the partitions that were asked about and miss."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from rewriter.domains.literals import Key
from rewriter.domains.partition_matches import PartitionMatches, PartitionRow

VALUES: dict[str, tuple[Key | None, ...]] = {
    "int": (None, -1, 0, 1, 7),
    "string": (None, "", "a", "a\0", "b"),
    "boolean": (None, True, False),
    "date": (None, "2025-12-31", "2026-01-01", "2026-01-02"),
}
TYPES = st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3).map(tuple)


@st.composite
def matches(draw: st.DrawFn) -> PartitionMatches:
    types = draw(TYPES)
    rows = st.tuples(*(st.sampled_from(VALUES[name]) for name in types))
    asked: frozenset[PartitionRow] = draw(st.frozensets(rows, max_size=12))
    return PartitionMatches(types, asked, frozenset(row for row in asked if draw(st.booleans())))


@given(matches())
def test_the_cover_holds_every_row_but_those_of_misses(found: PartitionMatches) -> None:
    names = [f"c{number}" for number in range(len(found.type_names))]
    cover = found.cover(names)
    for row in product(*(VALUES[name] for name in found.type_names)):
        assert cover.holds(dict(zip(names, row, strict=True))) is (row not in found.misses)


def test_partitions_of_days_of_which_one_month_matches_are_few_boxes() -> None:
    asked = frozenset((year, month) for year in range(2000, 2030) for month in range(1, 13))
    found = PartitionMatches(("int", "int"), asked, frozenset({(2026, 5), (2026, 6)}))
    assert len(found.cover(["y", "m"]).boxes) == 3
