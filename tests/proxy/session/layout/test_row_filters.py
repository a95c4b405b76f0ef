"""Filters for HBase: conditions that are pushed down, and that no partition is left out which satisfies them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.hbase_gateway import passes
from support.partition_strategies import VALUES, filters, name_of

from proxy.session.layout.row_filters import row_filter
from rewriter.domains.literals import Key
from rewriter.partitions.filter_text import read_filter
from rewriter.partitions.filter_tree import And, In, PartitionFilter, PartitionTest
from rewriter.partitions.index import in_order
from rewriter.partitions.key_encoding import PartitionKeys

KEYS = PartitionKeys(("d", "k", "r"), ("date", "int", "string"))


def pushed_down(text: str) -> list[str]:
    """The expressions of a condition's filter."""
    found = row_filter((read_filter(text, KEYS),), KEYS).decode("ascii")
    parts = found.split(" AND ") if found else []
    for part in parts:
        assert part.startswith("RowFilter(=, 'regexstring:")
        assert part.endswith("')")
    return [part.removeprefix("RowFilter(=, 'regexstring:").removesuffix("')") for part in parts]


OTHER = r"[^\x00-\x7f]+"


@pytest.mark.parametrize(
    ("text", "expressions"),
    [
        ("r = 'us'", [r"\x01us\x00\x01"]),
        ("r IN ('us', 'eu', NULL)", [r"\x01us\x00\x01|\x01eu\x00\x01"]),
        ("r = 'a-b'", [r"\x01a\x2db\x00\x01"]),
        ("r = 'münchen'", [rf"\x01m{OTHER}nchen\x00\x01"]),
        ("k = 65", [rf"\x01{OTHER}\x00\x00A"]),
        ("k = -1", [rf"\x01\x7f{OTHER}"]),
        ("d = '2026-11-20'", [rf"\x01{OTHER}\x0bJd"]),
        ("r LIKE 'us%'", [r"\x01us"]),
        ("r LIKE '%us'", [r"us\x00\x01"]),
        ("r LIKE 'a_b%c'", [r"\x01a", "b", r"c\x00\x01"]),
        ("r = 'us' AND k = 65 AND k > 3", [r"\x01us\x00\x01", rf"\x01{OTHER}\x00\x00A"]),
        ("r = 'us' OR r LIKE '%land%'", [r"\x01us\x00\x01|land"]),
    ],
)
def test_a_condition_that_names_bytes_is_pushed_down(text: str, expressions: list[str]) -> None:
    assert pushed_down(text) == expressions


@pytest.mark.parametrize(
    "text",
    [
        *("r > 'us'", "k BETWEEN 1 AND 3", "r <> 'us'", "r NOT LIKE '%us'", "r IS NULL", "r LIKE '%'", "r = NULL"),
        *("r = 'us' OR k > 3", "r = 'us' OR (r = 'eu' AND k > 3)", "TRUE", "FALSE"),
    ],
)
def test_any_other_condition_is_left_to_the_proxy(text: str) -> None:
    assert pushed_down(text) == []


def test_a_quote_does_not_end_the_expression() -> None:
    found = row_filter((In("r", ("it's",)),), KEYS)
    assert found == rb"RowFilter(=, 'regexstring:\x01it\x27s\x00\x01')"


def test_a_condition_of_many_values_is_left_to_the_proxy() -> None:
    many = tuple(f"value{number}" for number in range(1_000))
    assert row_filter((In("r", many[:50]),), KEYS) != b""
    assert row_filter((In("r", many),), KEYS) == b""


TYPES = ("decimal(38,0)", "string", "date", "bigint")
COLUMNS = ("a", "b", "c", "ü")
ROWS = st.lists(st.tuples(*(VALUES[one] | st.none() for one in TYPES)), max_size=12)


@given(filters(COLUMNS, TYPES), ROWS, st.binary(max_size=4))
def test_no_partition_is_left_out_that_satisfies_the_conditions(
    condition: PartitionFilter, rows: list[tuple[Key | None, ...]], prefix: bytes
) -> None:
    keys = PartitionKeys(COLUMNS, TYPES)
    entries, _ = in_order(keys, [name_of(COLUMNS, row) for row in rows])
    test, pushed = PartitionTest.of(condition, keys), row_filter((condition,), keys)
    assert all(passes(pushed, prefix + entry) for entry in entries if test.holds(entry))


@given(st.tuples(*(VALUES[one] | st.none() for one in TYPES)))
def test_a_partition_passes_the_filter_of_its_own_values(row: tuple[Key | None, ...]) -> None:
    keys = PartitionKeys(COLUMNS, TYPES)
    entries, _ = in_order(keys, [name_of(COLUMNS, row)])
    own = And(tuple(In(column, (value,)) for column, value in zip(COLUMNS, row, strict=True) if value is not None))
    pushed = row_filter((own,), keys)
    assert (pushed != b"") is bool(own.terms)
    assert all(passes(pushed, entry) for entry in entries)
