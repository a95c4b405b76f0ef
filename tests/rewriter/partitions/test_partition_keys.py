"""The bytes of partition values: their order, what is between them, and which texts have none."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.partition_strategies import VALUES, name_of, order

from rewriter.domains.literals import Key
from rewriter.partitions.key_encoding import PartitionKeys
from rewriter.partitions.value_encoding import NotIndexableError


@st.composite
def tables(draw: st.DrawFn) -> tuple[PartitionKeys, list[tuple[Key | None, ...]]]:
    type_names = tuple(draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4)))
    columns = tuple(f"c{index}" for index in range(len(type_names)))
    row = st.tuples(*(VALUES[type_name] | st.none() for type_name in type_names))
    return PartitionKeys(columns, type_names), draw(st.lists(row, min_size=2, max_size=12))


@given(tables())
def test_the_order_of_keys_is_that_of_the_values(
    table: tuple[PartitionKeys, list[tuple[Key | None, ...]]],
) -> None:
    keys, rows = table
    by_value = sorted(rows, key=lambda row: tuple(map(order, keys.type_names, row)))
    encoded = [keys.encode(row) for row in by_value]
    assert encoded == sorted(encoded)
    for (one, key), (other, next_key) in pairwise(zip(by_value, encoded, strict=True)):
        same = list(map(order, keys.type_names, one)) == list(map(order, keys.type_names, other))
        assert (key == next_key) is same


@given(tables())
def test_a_key_holds_its_values_and_each_field_is_found_by_itself(
    table: tuple[PartitionKeys, list[tuple[Key | None, ...]]],
) -> None:
    keys, rows = table
    for row in rows:
        entry = keys.encode(row) + b"whatever follows"
        for column, type_name in enumerate(keys.type_names):
            field = keys.field(entry, column)
            assert field == keys.encode_field(column, row[column])
            assert keys.is_field(column, field)
            assert order(type_name, keys.decode_field(column, field)) == order(type_name, row[column])
            assert keys.decode(entry)[column] == keys.decode_field(column, field)


@given(tables())
def test_no_field_is_the_start_of_another_one(table: tuple[PartitionKeys, list[tuple[Key | None, ...]]]) -> None:
    keys, rows = table
    fields = {keys.encode_field(0, row[0]) for row in rows}
    assert not [(a, b) for a in fields for b in fields if a != b and b.startswith(a)]


@given(tables())
def test_a_partitions_name_comes_back_from_its_entry(
    table: tuple[PartitionKeys, list[tuple[Key | None, ...]]],
) -> None:
    keys, rows = table
    for row in rows:
        spec = name_of(keys.columns, row)
        entry = keys.entry(spec)
        assert entry.startswith(keys.encode(row))
        assert keys.spec(entry) == spec


def test_a_string_with_a_zero_byte_stands_between_its_prefix_and_longer_ones() -> None:
    keys = PartitionKeys(("s", "t"), ("string", "string"))
    rows = [("a", "z"), ("a\0", "a"), ("a\0", "\0"), ("ab", "")]
    encoded = [keys.encode(row) for row in rows]
    assert sorted(encoded) == [encoded[0], encoded[2], encoded[1], encoded[3]]


@pytest.mark.parametrize(
    ("type_name", "texts", "value"),
    [
        ("int", ("1", "01", "+1"), 1),
        ("bigint", ("-0", "0"), 0),
        ("decimal(5,2)", ("1.5", "1.50", "+1.500", "01.5"), "1.50"),
        ("decimal(5,2)", ("-0.00", "0"), "0.00"),
        ("decimal(3,3)", ("0.125", "0.1250"), "0.125"),
        ("boolean", ("true", "TRUE"), True),
        ("string", ("a%2Fb%3dc", "a%2fb%3Dc"), "a/b=c"),
        ("string", ("01",), "01"),
    ],
)
def test_different_spellings_of_a_value_have_one_key_and_entries_of_their_own(
    type_name: str, texts: tuple[str, ...], value: Key
) -> None:
    keys = PartitionKeys(("k",), (type_name,))
    entries = [keys.entry(f"k={text}") for text in texts]
    assert {keys.decode(entry) for entry in entries} == {(value,)}
    assert len({keys.field(entry, 0) for entry in entries}) == 1
    assert [keys.spec(entry) for entry in entries] == [f"k={text}" for text in texts]


@pytest.mark.parametrize(
    ("type_name", "spec"),
    [
        ("tinyint", "k=128"),
        ("int", "k=1.0"),
        ("int", "k= 1"),
        ("int", "k=\u0661"),
        ("int", "k=" + "0" * 200),
        ("bigint", f"k={1 << 63}"),
        ("boolean", "k=1"),
        ("date", "k=2026-1-1"),
        ("date", "k=2026-02-30"),
        ("date", "k=0000-01-01"),
        ("date", "k=20260101"),
        ("decimal(5,2)", "k=1.005"),
        ("decimal(5,2)", "k=1000"),
        ("decimal(5,2)", "k=1e2"),
        ("decimal(5,2)", "k=.5"),
        ("decimal(5,2)", "k=NaN"),
        ("string", "k="),
        ("string", "k=%C3%A9"),
        ("string", "k=100%"),
        ("string", "k=%zz"),
        ("string", "k=\ufffd"),
        ("string", "other=a"),
        ("string", "k=a/l=b"),
        ("string", "nothing"),
    ],
)
def test_a_name_that_cannot_be_read_with_certainty_is_refused(type_name: str, spec: str) -> None:
    with pytest.raises(NotIndexableError):
        PartitionKeys(("k",), (type_name,)).entry(spec)


@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("tinyint", 128),
        ("int", "1"),
        ("int", True),
        ("boolean", 1),
        ("date", 1),
        ("date", "2026-1-1"),
        ("decimal(5,2)", 1),
        ("decimal(5,2)", "1000.00"),
        ("string", 1),
        ("string", "\ufffd"),
    ],
)
def test_a_value_that_is_not_of_its_type_is_refused(type_name: str, value: Key) -> None:
    with pytest.raises(NotIndexableError):
        PartitionKeys(("k",), (type_name,)).encode((value,))


@pytest.mark.parametrize("type_name", ["double", "timestamp", "char(5)", "varchar(5)", "binary", "decimal"])
def test_a_type_without_a_certain_order_is_refused(type_name: str) -> None:
    with pytest.raises(NotIndexableError):
        PartitionKeys(("k",), (type_name,))


def test_columns_are_found_in_any_case_and_others_are_refused() -> None:
    keys = PartitionKeys(("Ds",), ("date",))
    assert keys.position("dS") == 0
    assert keys.decode(keys.entry("ds=2026-01-01")) == ("2026-01-01",)
    with pytest.raises(NotIndexableError):
        keys.position("x")


def test_a_string_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(NotIndexableError):
        PartitionKeys(("k",), ("string",)).entry("k=\ud800")
