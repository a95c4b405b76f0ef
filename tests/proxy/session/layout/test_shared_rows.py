"""Rows of shared partition lists: their order, and what is not believed of them."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.session.layout import shared_rows
from proxy.session.layout.partition_store import ListKey
from proxy.session.layout.shared_rows import SharedHeader
from rewriter.partitions.index import PartitionIndex
from rewriter.partitions.key_encoding import DEFAULT_PARTITION, PartitionKeys

ANN = ListKey(("ann", "ann"), ("Sales", "default", "spark_catalog", "file:/sales", "2026-11-20"))
BOB = ListKey(("bob", "bob"), ANN.table)
VERSION = b"8 bytes."
COLUMNS, TYPES = ("ds", "r"), ("date", "string")
DAYS = [f"ds=2026-01-{day:02d}/r={r}" for day in range(1, 31) for r in ("eu", "us")]

# Values in their order, as Hive writes them into names of directories.
IN_ORDER = {
    "tinyint": ["-128", "-1", "0", "1", "127"],
    "smallint": ["-32768", "-1", "0", "256", "32767"],
    "int": ["-2147483648", "-256", "-1", "0", "1", "255", "65536", "2147483647"],
    "bigint": ["-9223372036854775808", "-4294967296", "-1", "0", "4294967296", "9223372036854775807"],
    "decimal(5,2)": ["-999.99", "-0.01", "0", "0.1", "0.25", "10", "999.99"],
    "date": ["0001-01-01", "1969-12-31", "1970-01-01", "2026-11-23", "9999-12-31"],
    "string": ["%01", "-", "1", "10", "9", "A", "a", "aa", "b", "ä", "日本", "\U0001f600"],
    "boolean": ["false", "true"],
}


def header_of(key: ListKey, entries: Sequence[bytes], **changes: object) -> SharedHeader:
    checksum, times = shared_rows.checksum_of(entries), (1_000.0, 1_600.0, 3_400.0)
    header = SharedHeader(key.digest, VERSION, len(entries), checksum, *times, COLUMNS, TYPES, ())
    return msgspec.structs.replace(header, **changes)


def rows_of(header: SharedHeader, entries: Sequence[bytes]) -> list[bytes]:
    return [shared_rows.entry_prefix(header.list_digest, header.version) + entry for entry in entries]


@pytest.fixture
def entries() -> list[bytes]:
    keys = PartitionKeys(COLUMNS, TYPES)
    return sorted(map(keys.entry, DAYS))


@pytest.mark.parametrize("type_name", IN_ORDER)
def test_rows_are_in_the_order_of_the_values_and_null_comes_first(type_name: str) -> None:
    keys = PartitionKeys(("k", "l"), (type_name, "int"))
    prefix = shared_rows.entry_prefix(ANN.digest, VERSION)
    rows = [
        prefix + keys.entry(f"k={value}/l={second}")
        for value in (DEFAULT_PARTITION, *IN_ORDER[type_name])
        for second in (DEFAULT_PARTITION, "-5", "0", "7")
    ]
    assert all(before < after for before, after in pairwise(rows))


@given(
    st.lists(st.tuples(st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | st.text("-a\u00e4", min_size=1)))
)
def test_the_order_of_rows_is_the_order_of_pairs_of_values(pairs: list[tuple[int | None, str | None]]) -> None:
    keys = PartitionKeys(("k", "s"), ("int", "string"))
    prefix = shared_rows.entry_prefix(ANN.digest, VERSION)
    rows = sorted({(prefix + keys.encode(pair), pair) for pair in pairs}, key=lambda row: row[0])

    def rank(pair: tuple[int | None, str | None]) -> tuple[object, ...]:
        number, text = pair
        return (number is not None, number or 0, text is not None, (text or "").encode())

    assert [pair for _, pair in rows] == sorted(set(pairs), key=rank)


def test_rows_of_lists_and_versions_are_apart() -> None:
    prefixes = [
        shared_rows.entry_prefix(key.digest, version) for key in (ANN, BOB) for version in (VERSION, b"another.")
    ]
    assert len(set(prefixes)) == 4
    assert len({len(prefix) for prefix in prefixes}) == 1, "no one is the start of another"
    assert shared_rows.header_row(ANN) != shared_rows.header_row(BOB)


def test_the_headers_of_a_table_are_one_range() -> None:
    ranges = [shared_rows.headers_of_table(name) for name in ("sale", "sales", "sales2")]
    for key in (ANN, BOB):
        row = shared_rows.header_row(key)
        assert [start <= row < stop for start, stop in ranges] == [False, True, False]


@pytest.mark.parametrize(
    "row", [shared_rows.header_row(ANN), shared_rows.header_row(ListKey(("x",), ("\U0010ffff",)))]
)
def test_headers_are_found_by_a_scan_of_all_headers(row: bytes) -> None:
    assert shared_rows.ALL_HEADERS.start <= row < shared_rows.ALL_HEADERS.stop
    assert not shared_rows.entry_prefix(ANN.digest, VERSION).startswith(shared_rows.ALL_HEADERS.start)


def test_a_list_is_read_as_it_was_written(entries: list[bytes]) -> None:
    header = header_of(ANN, entries)
    assert shared_rows.read_header(header.encode(), ANN, 60) == header
    assert shared_rows.read_entries(header, iter(rows_of(header, entries))) == entries
    assert shared_rows.read_entries(header_of(ANN, []), iter(())) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"list_digest": BOB.digest},
        {"version": b"short"},
        {"count": 61},
        {"count": -1},
        {"columns": ("ds",)},
        {"columns": (), "type_names": ()},
        {"type_names": ("date", "timestamp")},
        {"type_names": ("date", "decimal(99999999,2)")},
        {"expires_at": 999.0},
        {"expires_at": 1_000.0 + 86_401},
        {"filled_at": float("nan")},
        {"expires_at": float("inf")},
    ],
)
def test_a_header_that_no_replica_writes_for_the_list_is_none(
    entries: list[bytes], changes: dict[str, object]
) -> None:
    assert shared_rows.read_header(header_of(ANN, entries, **changes).encode(), ANN, 60) is None


@given(st.data())
def test_a_header_that_is_cut_or_changed_is_none(data: st.DataObject) -> None:
    value = header_of(ANN, [b"entry"]).encode()
    at = data.draw(st.integers(0, len(value) - 1))
    assert shared_rows.read_header(value[:at], ANN, 60) is None
    changed = value[:at] + bytes((value[at] ^ data.draw(st.integers(1, 255)),)) + value[at + 1 :]
    assert shared_rows.read_header(changed, ANN, 60) is None


@given(st.binary(max_size=200))
def test_a_value_of_somebody_else_is_no_header(value: bytes) -> None:
    assert shared_rows.read_header(value, ANN, 60) is None
    assert shared_rows.read_header(shared_rows._checksum(value) + value, ANN, 60) is None  # noqa: SLF001 - as a forger would


def test_a_header_of_the_future_or_of_the_past_is_not_believed(entries: list[bytes]) -> None:
    header = header_of(ANN, entries)
    assert header.is_believed(1_000.0)
    assert header.is_believed(990.0), "clocks of replicas differ by seconds"
    assert not header.is_believed(900.0)
    assert header.is_believed(1_599.0)
    assert not header.is_believed(1_600.0)
    assert not header_of(ANN, entries, rows_until=1_500.0).is_believed(1_500.0)


@pytest.mark.parametrize("change", ["cut", "longer", "swapped", "twice", "foreign", "forged", "short"])
def test_a_list_that_is_not_the_one_that_was_written_is_none(entries: list[bytes], change: str) -> None:
    header = header_of(ANN, entries)
    rows = rows_of(header, entries)
    forged = {
        "cut": rows[:-1],
        "longer": [*rows, rows[-1] + b"x"],
        "swapped": [rows[1], rows[0], *rows[2:]],
        "twice": [rows[0], *rows[:-1]],
        "foreign": [b"1E" + bytes(40) + rows[0][42:], *rows[1:]],
        "forged": [rows[0][:-2] + b"zz", *rows[1:]],
        "short": [rows[0][:4], *rows[1:]],
    }[change]
    assert shared_rows.read_entries(header, iter(forged)) is None


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=5, unique=True))
def test_entries_whose_bytes_are_no_partitions_are_none_though_their_checksum_fits(forged: list[bytes]) -> None:
    forged.sort()
    header = header_of(ANN, forged)
    assert shared_rows.read_entries(header, iter(rows_of(header, forged))) is None


def test_what_is_read_answers_as_the_list_in_memory_does(entries: list[bytes]) -> None:
    header, memory = header_of(ANN, entries), PartitionIndex.of(COLUMNS, TYPES, DAYS)
    found = shared_rows.read_entries(header, iter(rows_of(header, entries)))
    assert found == list(memory.entries.scan(b"", b"\x02"))
