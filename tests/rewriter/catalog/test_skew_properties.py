"""The table properties that keep skewed columns and values."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriter.catalog.skewed_by import (
    COLUMNS_PROPERTY,
    OWN_FILES_PROPERTY,
    PROPERTIES,
    PROPERTY_CHARS_MAX,
    VALUES_PROPERTY,
    SkewedBy,
    SkewPropertyError,
    skewed_by,
)

TEXTS = st.text(max_size=5)


@st.composite
def skews(draw: st.DrawFn) -> SkewedBy:
    columns = tuple(draw(st.lists(TEXTS, min_size=1, max_size=3)))
    values = st.tuples(*[st.none() | TEXTS for _ in columns])
    return SkewedBy(columns, tuple(draw(st.lists(values, max_size=4))), draw(st.booleans()))


@given(skews())
def test_what_is_kept_is_read_back_as_it_was_and_has_no_character_that_a_setting_reads(skew: SkewedBy) -> None:
    try:
        kept = skew.properties()
    except SkewPropertyError:
        return
    assert skewed_by(kept) == skew
    assert tuple(kept) == PROPERTIES
    assert not set("\\'$") & set("".join(kept.values()))


@pytest.mark.parametrize("text", ["it's", 'a"b', "a\\b", "${x}", "a\nb", "\ufffd"])
def test_texts_that_settings_read_differently_are_refused(text: str) -> None:
    with pytest.raises(SkewPropertyError):
        SkewedBy(("x",), ((text,),)).properties()


def test_more_values_than_a_property_holds_are_refused() -> None:
    values = tuple((str(number),) for number in range(PROPERTY_CHARS_MAX))
    with pytest.raises(SkewPropertyError, match="a table property holds 4000"):
        SkewedBy(("x",), values).properties()


def test_a_table_without_the_property_is_not_skewed() -> None:
    assert skewed_by({VALUES_PROPERTY: '[["1"]]', OWN_FILES_PROPERTY: "true"}) is None


def test_columns_without_values_and_a_list_that_is_switched_off_are_read() -> None:
    assert skewed_by({COLUMNS_PROPERTY: '["x"]'}) == SkewedBy(("x",), ())
    assert skewed_by({COLUMNS_PROPERTY: '["x"]', OWN_FILES_PROPERTY: "FALSE"}) == SkewedBy(
        ("x",), (), has_own_files=False
    )


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ("x", "[]"),
        ('"x"', "[]"),
        ("[]", "[]"),
        ("[1]", "[]"),
        ('["x", null]', "[]"),
        ('["x"]', "30"),
        ('["x"]', "[30]"),
        ('["x"]', "[[30]]"),
        ('["x"]', '[["30", "40"]]'),
        ('["x", "y"]', '[["30"]]'),
        ('["x"]', '{"x": "30"}'),
        ("[" * 100_000, "[]"),
    ],
)
def test_properties_of_another_form_are_refused(columns: str, values: str) -> None:
    with pytest.raises(SkewPropertyError):
        skewed_by({COLUMNS_PROPERTY: columns, VALUES_PROPERTY: values})


def test_values_are_readable_where_properties_are_shown() -> None:
    kept = SkewedBy(("x", "größe"), (("1", "ß"), ("2", None))).properties()
    assert kept[COLUMNS_PROPERTY] == '["x", "größe"]'
    assert json.loads(kept[VALUES_PROPERTY]) == [["1", "ß"], ["2", None]]
