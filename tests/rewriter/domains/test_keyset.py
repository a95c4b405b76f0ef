"""Key sets: order, literals, and what is no key."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewriter import KeySet, UnreadableKeyError
from rewriter.domains.literals import Key, is_key_type


def keys(type_name: str, *values: Key | None) -> tuple[Key | None, ...]:
    """The keys of one column."""
    return tuple(value for (value,) in KeySet.of((type_name,), [(value,) for value in values]).rows)


@pytest.mark.parametrize(
    ("type_name", "value", "literal"),
    [
        ("tinyint", -128, "-128Y"),
        ("smallint", 7, "7S"),
        ("int", -2147483648, "-2147483648"),
        ("bigint", 9223372036854775807, "9223372036854775807L"),
        ("boolean", True, "TRUE"),
        ("date", "2026-11-20", "DATE'2026-11-20'"),
        ("decimal(5,2)", "-999.99", "CAST('-999.99' AS DECIMAL(5,2))"),
        ("string", "plain é中😀", "'plain é中😀'"),
        ("string", "it's", "CAST(X'69742773' AS STRING)"),
        ("string", "a\\b", "CAST(X'615C62' AS STRING)"),
        ("string", "${x}", "CAST(X'247B787D' AS STRING)"),
        ("string", "two\nlines", "CAST(X'74776F0A6C696E6573' AS STRING)"),
        ("string", "", "''"),
    ],
)
def test_a_key_is_written_in_its_own_type(type_name: str, value: Key, literal: str) -> None:
    assert KeySet.of((type_name,), [(value,)]).literals == ((literal,),)


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("tinyint", 128),
        ("int", True),
        ("int", "1"),
        ("bigint", 1 << 63),
        ("boolean", 1),
        ("date", "2026-1-1"),
        ("date", "+12026-01-01"),
        ("date", "2026-01-01' OR '1'='1"),
        ("decimal(5,2)", "1e3"),
        ("string", 1),
        ("string", "not UTF-8 \ufffd"),
    ],
)
def test_a_value_that_is_not_of_its_type_is_refused(type_name: str, value: Key) -> None:
    with pytest.raises(UnreadableKeyError):
        _ = KeySet.of((type_name,), [(value,)]).literals


@pytest.mark.parametrize(
    "type_name",
    [
        *"double float binary char(5) varchar(5) timestamp timestamp_ntz".split(),
        *"array<int> map<int,int> struct<a:int> variant void decimal".split(),
        *("string collate utf8_lcase", "interval day"),
    ],
)
def test_types_without_a_certain_equality_have_no_keys(type_name: str) -> None:
    assert not is_key_type(type_name)


def test_nulls_and_duplicates_are_dropped() -> None:
    assert keys("int", 3, None, 1, 3) == (1, 3)


def test_a_null_counts_in_the_column_that_is_compared_with_nulls() -> None:
    rows = [(None, 1), (2, None), (None, None), (2, 1)]
    found = KeySet.of(("int", "int"), rows, null_safe=(True, False))
    assert found.rows == ((None, 1), (2, 1))
    assert found.has_null


def test_pairs_are_ordered_by_their_first_column() -> None:
    found = KeySet.of(("int", "string"), [(2, "a"), (1, "b"), (1, "a"), (2, "a")])
    assert found.rows == ((1, "a"), (1, "b"), (2, "a"))
    assert found.literals == (("1", "'a'"), ("1", "'b'"), ("2", "'a'"))


def test_strings_are_ordered_by_their_bytes() -> None:
    assert keys("string", "é", "z", "Z", "😀", "\uffee") == ("Z", "z", "é", "\uffee", "😀")


def test_decimals_are_ordered_by_value() -> None:
    assert keys("decimal(5,2)", "10.00", "-1.50", "9.00") == ("-1.50", "9.00", "10.00")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd"))))
def test_a_string_literal_holds_nothing_that_could_end_it(values: list[str]) -> None:
    for (literal,) in KeySet.of(("string",), [(value,) for value in values]).literals:
        inside = literal.removeprefix("'").removesuffix("'")
        assert literal.startswith("CAST(X'") or not set(inside) & set("'\"\\$")


@pytest.mark.parametrize("rows", [[(1,), (22,)], [(1, 22), (333, 4)]])
def test_keys_are_listed_if_their_list_is_no_longer_than_allowed(rows: list[tuple[int, ...]]) -> None:
    found = KeySet.of(("int",) * len(rows[0]), rows)
    listed = ", ".join(str(row[0]) if len(row) == 1 else f"({row[0]}, {row[1]})" for row in rows)
    columns = ["k", "l"][: len(rows[0])]
    assert listed in (found.exact(columns, len(listed)) or "")
    assert found.exact(columns, len(listed) - 1) is None
