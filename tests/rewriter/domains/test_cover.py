"""Covers: what several columns may hold together, asked of the covers and of every single row."""

from itertools import product

import pytest
from hypothesis import given
from support.cover_strategies import COLUMNS, ROWS, boxes, covers, held, laws, rows

from rewriter import KeySet
from rewriter.domains.cover import Box, Cover
from rewriter.domains.domain import Domain
from rewriter.domains.literals import Key
from rewriter.vocabulary.identifiers import Column

DAY_AND_REGION = (Column("day", "int"), Column("region", "string"))


def box(**domains: Domain) -> Box:
    found = Box.of(domains)
    assert found is not None
    return found


def ints(*values: int) -> Domain:
    return Domain.of("int", values)


@laws
@given(covers, covers)
def test_union_and_intersection_hold_what_either_and_what_both_hold(one: Cover, other: Cover) -> None:
    assert held(one.union(other)) == [row for row in ROWS if one.holds(row) or other.holds(row)]
    assert held(one.intersection(other)) == [row for row in ROWS if one.holds(row) and other.holds(row)]
    assert one.union(other) == other.union(one)
    assert one.intersection(other) == other.intersection(one)


@laws
@given(covers, covers, covers)
def test_the_laws_of_sets_hold_for_the_rows(a: Cover, b: Cover, c: Cover) -> None:
    assert held(a.union(b).union(c)) == held(a.union(b.union(c)))
    assert held(a.intersection(b).intersection(c)) == held(a.intersection(b.intersection(c)))
    assert held(a.intersection(b.union(c))) == held(a.intersection(b).union(a.intersection(c)))
    assert held(a.union(b.intersection(c))) == held(a.union(b).intersection(a.union(c)))
    assert held(a.union(a.intersection(b))) == held(a.intersection(a.union(b))) == held(a)


@laws
@given(covers)
def test_none_and_all_are_the_units(cover: Cover) -> None:
    assert cover.union(Cover.none()) == cover.intersection(Cover.all()) == cover.union(cover) == cover
    assert cover.intersection(Cover.none()).is_none
    assert cover.union(Cover.all()).is_all


@laws
@given(covers)
def test_no_box_is_inside_another_or_differs_from_it_in_one_column_only(cover: Cover) -> None:
    for one in cover.boxes:
        for other in cover.boxes:
            if one is not other:
                assert not one.contains(other)
                columns = {*dict(one.domains), *dict(other.domains)}
                assert sum(one.domain(column) != other.domain(column) for column in columns) > 1


@laws
@given(covers, covers)
def test_boxes_meet_if_their_intersection_is_a_box(one: Cover, other: Cover) -> None:
    for mine, theirs in product(one.boxes, other.boxes):
        assert mine.meets(theirs) == (mine.intersection(theirs) is not None)


@laws
@given(covers, covers)
def test_a_cover_that_encloses_another_holds_all_of_it(one: Cover, other: Cover) -> None:
    assert one.union(other).encloses(other)
    if one.encloses(other):
        assert all(one.holds(row) for row in held(other))


@laws
@given(boxes(), boxes())
def test_a_box_is_inside_another_exactly_if_they_meet_in_it(one: Box, other: Box) -> None:
    assert one.contains(other) == (one.intersection(other) == other)


@laws
@given(rows)
def test_the_cover_of_some_rows_holds_just_these(given_rows: list[tuple[Key | None, ...]]) -> None:
    cover = Cover.of_rows(COLUMNS, given_rows)
    names = [column.name for column in COLUMNS]
    assert held(cover) == [row for row in ROWS if tuple(row[name] for name in names) in given_rows]
    assert Cover.of(cover.boxes) == cover


def test_pairs_stay_pairs() -> None:
    cover = Cover.of_rows(DAY_AND_REGION, [(1, "a"), (2, "b")])
    assert cover.holds({"day": 1, "region": "a"})
    assert not cover.holds({"day": 1, "region": "b"})


def test_rows_with_the_same_regions_are_one_box() -> None:
    pairs = [(day, region) for day in (1, 2, 7) for region in "xy"]
    cover = Cover.of_rows(DAY_AND_REGION, [*pairs, (9, "x")])
    assert cover.boxes == (
        box(day=ints(1, 2, 7), region=Domain.of("string", ["x", "y"])),
        box(day=ints(9), region=Domain.of("string", ["x"])),
    )


def test_one_decimal_written_twice_is_one_key() -> None:
    cover = Cover.of_rows((Column("p", "decimal(5,2)"), Column("q", "int")), [("1.5", 1), ("1.50", 2)])
    assert cover.boxes == (box(p=Domain.of("decimal(5,2)", ["1.5"]), q=ints(1, 2)),)


def test_no_rows_are_none() -> None:
    assert Cover.of_rows(DAY_AND_REGION, []).is_none
    assert Cover.of_domain("day", ints()).is_none


def test_rows_of_a_single_column_are_its_domain() -> None:
    keys = KeySet.of(("int",), [(3,), (1,), (2,)])
    assert Cover.of_rows(DAY_AND_REGION[:1], keys.rows) == Cover.of_domain("day", ints(1, 2, 3))
    assert keys.cover(["day"]) == Cover.of_domain("day", ints(1, 2, 3))


def test_rows_that_are_not_as_wide_as_the_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        Cover.of_rows(DAY_AND_REGION, [(1,)])
    with pytest.raises(ValueError, match="zip"):
        Cover.of_rows(DAY_AND_REGION, [(1, "a"), (2,)])


def test_a_domain_that_holds_everything_is_no_condition() -> None:
    assert Box.of({"a": Domain.all("int"), "b": ints(1)}) == box(b=ints(1))
    assert Cover.of([box(a=ints(1)), box(a=ints(1).complement())]).is_all


def test_an_empty_domain_makes_an_empty_box() -> None:
    assert Box.of({"a": ints(1), "b": ints()}) is None
    assert box(a=ints(1)).intersection(box(a=ints(2))) is None


def test_the_union_column_by_column_is_more_than_the_union() -> None:
    pairs = Cover.of_rows(DAY_AND_REGION, [(1, "a"), (2, "b")])
    around = Cover.of([box(day=ints(1, 2), region=Domain.of("string", ["a", "b"]))])
    assert around.encloses(pairs)
    assert not pairs.encloses(around)


def test_a_box_may_be_inside_several_boxes_and_in_none_of_them() -> None:
    several = Cover.of_rows(DAY_AND_REGION, [(1, "a"), (1, "b"), (2, "a"), (2, "c")])
    assert several.encloses(Cover.of_rows(DAY_AND_REGION, [(1, "a"), (2, "a")]))
    assert not several.encloses(Cover.of_rows(DAY_AND_REGION, [(1, "a"), (2, "b")]))


def test_a_set_that_needs_two_boxes_has_several_spellings() -> None:
    one = Cover.of([box(a=ints(1, 2), b=ints(1)), box(a=ints(2), b=ints(2))])
    other = Cover.of([box(a=ints(1), b=ints(1)), box(a=ints(2), b=ints(1, 2))])
    assert one != other
    assert [one.holds({"a": a, "b": b}) for a in (1, 2) for b in (1, 2)] == [
        other.holds({"a": a, "b": b}) for a in (1, 2) for b in (1, 2)
    ]


@pytest.mark.parametrize(
    "domains", [(("a", ints()),), (("a", Domain.all("int")),), (("b", ints(1)), ("a", ints(1)))]
)
def test_a_box_that_is_not_in_its_one_form_is_refused(domains: tuple[tuple[str, Domain], ...]) -> None:
    with pytest.raises(ValueError, match="a box has"):
        Box(domains)
