"""Domains: the laws of sets, asked of the domains and of every single value."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.cover_strategies import WORLDS, laws, members, order, several_domains, types

from rewriter import KeySet, UnreadableKeyError
from rewriter.domains.domain import Domain
from rewriter.domains.literals import Key, is_data_key_type, is_key_type
from rewriter.domains.positions import Bound, differ_in_digits_only, line

TYPE_NAMES = sorted(WORLDS)
EVERY_TYPE_WITH_KEYS = [
    *"tinyint smallint int bigint boolean date string".split(),
    *"decimal(1,0) decimal(1,1) decimal(38,0) decimal(38,38)".split(),
]


def everything(type_name: str) -> set[Key | None]:
    return {*WORLDS[type_name], None}


@laws
@given(several_domains(2))
def test_union_and_intersection_hold_what_either_and_what_both_hold(pair: tuple[Domain, Domain]) -> None:
    one, other = pair
    assert members(one.union(other)) == members(one) | members(other)
    assert members(one.intersection(other)) == members(one) & members(other)
    assert members(one.complement()) == everything(one.type_name) - members(one)


@laws
@given(several_domains(2))
def test_the_order_of_two_domains_does_not_matter(pair: tuple[Domain, Domain]) -> None:
    one, other = pair
    assert one.union(other) == other.union(one)
    assert one.intersection(other) == other.intersection(one)


@laws
@given(several_domains(3))
def test_the_grouping_of_three_domains_does_not_matter(three: tuple[Domain, Domain, Domain]) -> None:
    a, b, c = three
    assert a.union(b).union(c) == a.union(b.union(c)) == Domain.union_of(a.type_name, three)
    assert a.intersection(b).intersection(c) == a.intersection(b.intersection(c))


@laws
@given(several_domains(3))
def test_union_and_intersection_distribute_over_each_other(three: tuple[Domain, Domain, Domain]) -> None:
    a, b, c = three
    assert a.intersection(b.union(c)) == a.intersection(b).union(a.intersection(c))
    assert a.union(b.intersection(c)) == a.union(b).intersection(a.union(c))


@laws
@given(several_domains(2))
def test_a_domain_absorbs_what_it_already_holds(pair: tuple[Domain, Domain]) -> None:
    one, other = pair
    assert one.union(one) == one.intersection(one) == one
    assert one.union(one.intersection(other)) == one
    assert one.intersection(one.union(other)) == one


@laws
@given(several_domains(2))
def test_de_morgans_laws_hold(pair: tuple[Domain, Domain]) -> None:
    one, other = pair
    assert one.union(other).complement() == one.complement().intersection(other.complement())
    assert one.intersection(other).complement() == one.complement().union(other.complement())
    assert one.complement().complement() == one


@laws
@given(several_domains(1))
def test_none_and_all_are_the_units(single: tuple[Domain]) -> None:
    domain = single[0]
    none, everything = Domain.none(domain.type_name), Domain.all(domain.type_name)
    assert domain.union(none) == domain.intersection(everything) == domain
    assert domain.intersection(none) == none == domain.intersection(domain.complement())
    assert domain.union(everything) == everything == domain.union(domain.complement())
    assert domain.is_none == (domain == none)
    assert domain.is_all == (domain == everything)


@laws
@given(several_domains(2))
def test_a_domain_contains_another_if_their_union_is_itself(pair: tuple[Domain, Domain]) -> None:
    one, other = pair
    assert one.contains(other) == (one.union(other) == one)


@laws
@given(several_domains(2))
def test_domains_meet_if_their_intersection_holds_anything(pair: tuple[Domain, Domain]) -> None:
    one, other = pair
    assert one.meets(other) == (not one.intersection(other).is_none)


@laws
@given(several_domains(1))
def test_intervals_are_the_domain_in_values(single: tuple[Domain]) -> None:
    domain = single[0]
    by_order = order(domain.type_name)

    def is_within(low: Bound | None, value: Key, high: Bound | None) -> bool:
        at = by_order(value)
        above = low is None or by_order(low.value) < at or (low.inclusive and low.value == value)
        return above and (high is None or at < by_order(high.value) or (high.inclusive and high.value == value))

    for value in WORLDS[domain.type_name]:
        found = [interval for interval in domain.intervals if is_within(interval.low, value, interval.high)]
        assert len(found) == domain.holds(value)
        assert not found or not found[0].is_point or found[0].low == Bound(value, inclusive=True)


@laws
@given(types.flatmap(lambda name: st.tuples(st.just(name), st.lists(st.sampled_from(WORLDS[name])))))
def test_the_domain_of_some_values_holds_just_these(given_values: tuple[str, list[Key]]) -> None:
    type_name, values = given_values
    domain = Domain.of(type_name, values)
    assert domain.values == tuple(
        value for (value,) in KeySet.of((type_name,), [(value,) for value in values]).rows
    )
    assert domain.width == len(domain.values)
    assert members(domain) == set(values)


@pytest.mark.parametrize("type_name", TYPE_NAMES)
def test_positions_are_ordered_as_keys_are(type_name: str) -> None:
    values = WORLDS[type_name]
    positions = line(type_name).positions(values)
    assert all(low < high for low, high in pairwise(positions))
    assert list(values) == sorted(values, key=order(type_name))
    assert [line(type_name).value(position) for position in positions] == list(values)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd")), min_size=2))
def test_strings_stand_in_the_order_of_their_bytes(values: list[str]) -> None:
    on = line("string")
    assert sorted(values, key=lambda value: on.positions([value])[0]) == sorted(values, key=order("string"))
    assert all(on.bottom <= position < on.top for position in on.positions(values))


@pytest.mark.parametrize("type_name", EVERY_TYPE_WITH_KEYS)
def test_every_type_with_keys_has_a_line(type_name: str) -> None:
    assert is_key_type(type_name)
    assert Domain.of(type_name, []).is_none
    assert Domain.all(type_name).is_all


@pytest.mark.parametrize("type_name", ["timestamp", "timestamp_ntz"])
def test_times_have_a_line_and_are_keys_of_data_columns_alone(type_name: str) -> None:
    assert is_data_key_type(type_name)
    assert not is_key_type(type_name)
    domain = Domain.of(type_name, [-1, 0, 7])
    assert domain.complement().complement() == domain
    assert domain.width == 3
    assert Domain.all(type_name).is_all


@pytest.mark.parametrize("type_name", ["double", "float", "char(3)", "binary", "string collate utf8_lcase"])
def test_a_type_without_keys_has_no_line(type_name: str) -> None:
    assert not is_key_type(type_name)
    with pytest.raises(UnreadableKeyError, match=type_name.replace("(", r"\(").replace(")", r"\)")):
        line(type_name)


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        *(("tinyint", 128), ("tinyint", -129), ("int", True), ("int", "1"), ("bigint", 1 << 63)),
        *(("boolean", 1), ("boolean", "true")),
        *(("date", "2026-1-1"), ("date", "20260101"), ("date", "2026-W01-1"), ("date", "2026-02-30")),
        *(
            ("date", "0000-01-01"),
            ("date", "+12026-01-01"),
            ("date", "\uff12\uff10\uff12\uff16-01-01"),
            ("date", 1),
        ),
        *(
            ("decimal(3,1)", "1.55"),
            ("decimal(3,1)", "100.0"),
            ("decimal(3,1)", "1e1"),
            ("decimal(3,1)", "\u0663.1"),
        ),
        *(("string", 1), ("string", "not UTF-8 \ufffd"), ("string", "half a pair \ud83d")),
    ],
)
def test_a_value_that_is_not_of_its_type_is_refused(type_name: str, value: Key) -> None:
    with pytest.raises(UnreadableKeyError):
        Domain.of(type_name, [value])


@pytest.mark.parametrize("odd", ["2026-1-1", "2026-W01-1", "2026-01-011", "\uff12\uff10\uff12\uff16-01-01", ""])
def test_a_date_of_another_form_is_refused_among_others_too(odd: str) -> None:
    for dates in (["2026-01-01", odd], [odd, "2026-01-01"]):
        with pytest.raises(UnreadableKeyError):
            Domain.of("date", dates)


@example(["a,a", "a", "a,a,a"])
@example(["1-12", "12-1"])
@given(st.lists(st.text("0189a-\u0663\u00e9", max_size=3), max_size=3))
def test_texts_differ_in_digits_only_if_they_are_one_text_with_every_digit_as_a_zero(texts: list[str]) -> None:
    zeros = str.maketrans("0123456789", "0000000000")
    assert differ_in_digits_only(texts) == (len({text.translate(zeros) for text in texts}) <= 1)


def test_one_decimal_has_one_place_however_it_is_written() -> None:
    assert Domain.of("decimal(5,2)", ["1.5", "1.50", "-0.00"]).values == ("0.00", "1.50")
    assert Domain.of("decimal(38,38)", ["-0." + "9" * 38]).values == ("-0." + "9" * 38,)


def test_neighbours_of_a_type_that_counts_are_one_range() -> None:
    assert Domain.of("int", [6, 9, 5]).cuts == (5, 7, 9, 10)
    (february,) = Domain.of("date", ["2024-02-29", "2024-02-28", "2024-03-01"]).intervals
    assert (february.low, february.high) == (
        Bound("2024-02-28", inclusive=True),
        Bound("2024-03-01", inclusive=True),
    )
    assert Domain.of("boolean", [True, False], nullable=True).is_all
    assert len(Domain.of("string", ["a", "b"]).intervals) == 2


def test_a_bound_at_the_end_of_its_type_is_no_bound() -> None:
    (interval,) = Domain.between("tinyint", -128, 5).intervals
    assert (interval.low, interval.high) == (None, Bound(5, inclusive=True))


def test_days_outside_the_years_that_literals_have_are_bounded_by_those_inside() -> None:
    before, between, after = Domain.of("date", ["0001-01-01", "9999-12-31"]).complement().intervals
    assert before.high == Bound("0001-01-01", inclusive=False)
    assert (between.low, between.high) == (
        Bound("0001-01-02", inclusive=True),
        Bound("9999-12-30", inclusive=True),
    )
    assert after.low == Bound("9999-12-31", inclusive=False)


def test_a_range_whose_ends_are_the_wrong_way_round_is_empty() -> None:
    assert Domain.between("int", 5, 4).is_none


def test_a_range_of_strings_has_no_end_of_values() -> None:
    assert Domain.between("string", "a", "b").width == float("inf")
    with pytest.raises(ValueError, match="no end"):
        _ = Domain.between("string", "a", "b").values


def test_domains_of_two_types_cannot_be_joined() -> None:
    with pytest.raises(ValueError, match="other types than int"):
        Domain.of("int", [1]).union(Domain.of("bigint", [1]))


@pytest.mark.parametrize("cuts", [(1,), (2, 1), (1, 1), (1, 3, 3, 4)])
def test_cuts_that_are_no_set_are_refused(cuts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="ascending"):
        Domain("int", cuts)
