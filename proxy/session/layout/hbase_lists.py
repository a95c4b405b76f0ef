"""Partition lists in a table of HBase: reads a header, loads, publishes and drops lists.

Each function runs in a thread of the gateway and raises HBaseError where a call fails. Nothing is half done then:
a list is found by its header alone, which is written last.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from msgspec.structs import replace

from proxy.hbase.calls import KEYS_ONLY, Cell
from proxy.hbase.table import PAGE_ROWS, HBaseTable
from proxy.session.layout import shared_rows
from proxy.session.layout.lmdb_store import StoredList
from proxy.session.layout.partition_store import ListKey
from proxy.session.layout.shared_rows import SharedHeader
from rewriter.partitions.key_encoding import END

# A table's rows live for two days at most, whatever their own time to live: the longest is that of lists that are
# believed for half a day.
TABLE_TTL_S: Final = 2 * 86_400
# Entries live so many times as long as their list: an unchanged list gets a new header and no new rows.
_ROWS_LIVE: Final = 4
# A mark has to outlive the writing of the longest list.
_MARK_TTL_S: Final = 3_600.0
_MARK_BYTES: Final = 16


@dataclass(frozen=True)
class ReadHeader:
    """A list's header as HBase has it. If `is_there` without a header, it is not understood."""

    header: SharedHeader | None
    is_there: bool


def read_header(table: HBaseTable, key: ListKey, partitions_max: int) -> ReadHeader:
    """The header of a list."""
    return read_headers(table, [key], partitions_max)[key]


def read_headers(table: HBaseTable, keys: Sequence[ListKey], partitions_max: int) -> dict[ListKey, ReadHeader]:
    """The headers of a few lists, by one call."""
    rows = {key: shared_rows.header_row(key) for key in keys}
    found = table.rows([*rows.values()])
    values = {key: found[row].cells.get(shared_rows.HEADER_COLUMN) for key, row in rows.items() if row in found}
    return {key: _read_header(values.get(key), key, partitions_max) for key in keys}


def _read_header(value: bytes | None, key: ListKey, partitions_max: int) -> ReadHeader:
    if value is None:
        return ReadHeader(None, is_there=False)
    return ReadHeader(shared_rows.read_header(value, key, partitions_max), is_there=True)


def scan(
    table: HBaseTable, header: SharedHeader, start: bytes = b"", stop: bytes = END, pushed_down: bytes = b""
) -> Iterator[bytes]:
    """The entries of a list from `start` up to `stop`, which is not one of them: one range scan of HBase.

    `pushed_down` is a filter that HBase tests on each of them.
    """
    prefix = shared_rows.entry_prefix(header.list_digest, header.version)
    return (row[len(prefix) :] for row in _rows(table, prefix + start, prefix + stop, pushed_down))


def load(table: HBaseTable, header: SharedHeader) -> list[bytes] | None:
    """All entries of a list, or None where they are not those that were written."""
    prefix = shared_rows.entry_prefix(header.list_digest, header.version)
    return shared_rows.read_entries(header, _rows(table, prefix, prefix + END))


def _rows(table: HBaseTable, start: bytes, stop: bytes, pushed_down: bytes = b"") -> Iterator[bytes]:
    filter_text = b"%s AND %s" % (pushed_down, KEYS_ONLY) if pushed_down else KEYS_ONLY
    return (row.key for row in table.scan(start, stop, filter_text=filter_text))


def publish(
    table: HBaseTable, key: ListKey, kept: StoredList, now: float, is_dropped: Callable[[], bool]
) -> bytes | None:
    """Let other replicas find a list. Returns its version, None if there is a newer one, or the table was written.

    A list that equals the published one gets that one's version, and its rows are left as they are.
    """
    header_row, mark_row = shared_rows.header_row(key), shared_rows.mark_row(key.name)
    found = table.rows([header_row, mark_row])
    before = found.get(mark_row)
    there = _header_in(found[header_row].cells, key) if header_row in found else None
    if there is not None and there.is_believed(now) and there.filled_at > kept.times.filled_at:
        return None
    header = _renewed(there, kept) if there is not None else None
    if header is None:
        header = _header(key, kept, now)
        prefix = shared_rows.entry_prefix(header.list_digest, header.version)
        cells = (Cell(prefix + entry, shared_rows.ENTRY_COLUMN, b"") for entry in kept.entries)
        table.put(cells, header.rows_until - now)
    value = header.encode()
    if is_dropped() or table.rows([mark_row]).get(mark_row) != before or not shared_rows.is_short(value):
        return None
    table.put(iter([Cell(header_row, shared_rows.HEADER_COLUMN, value)]), header.rows_until - now)
    return header.version


def drop(table: HBaseTable, names: frozenset[str] | None) -> int:
    """Drop everyone's lists of the tables of these names, or all. Returns their number. Rows expire by themselves.

    The marks come first: a list that is being written then is not published any more.
    """
    marks = (Cell(shared_rows.mark_row(name), shared_rows.MARK_COLUMN, _mark()) for name in names or ())
    table.put(marks, _MARK_TTL_S)
    ranges = [shared_rows.ALL_HEADERS] if names is None else map(shared_rows.headers_of_table, sorted(names))
    dropped = (row.key for rows in ranges for row in table.scan(*rows))
    count = 0
    while page := list(islice(dropped, PAGE_ROWS)):
        table.delete(page, shared_rows.HEADER_COLUMN)
        count += len(page)
    return count


def _header_in(cells: Mapping[bytes, bytes], key: ListKey) -> SharedHeader | None:
    return shared_rows.read_header(cells.get(shared_rows.HEADER_COLUMN, b""), key, sys.maxsize)


def _renewed(header: SharedHeader, kept: StoredList) -> SharedHeader | None:
    """The header of an equal list that is there, with the times of this one; None for another list."""
    if header.rows_until < kept.times.expires_at:
        return None
    is_equal = (
        (header.columns, header.type_names) == (kept.keys.columns, kept.keys.type_names)
        and header.unreadable == tuple(kept.unreadable)
        and header.count == len(kept.entries)
        and header.checksum == shared_rows.checksum_of(kept.entries)
    )
    return replace(header, filled_at=kept.times.filled_at, expires_at=kept.times.expires_at) if is_equal else None


def _header(key: ListKey, kept: StoredList, now: float) -> SharedHeader:
    times = kept.times
    return SharedHeader(
        list_digest=key.digest,
        version=times.version,
        count=len(kept.entries),
        checksum=shared_rows.checksum_of(kept.entries),
        filled_at=times.filled_at,
        expires_at=times.expires_at,
        rows_until=min(now + TABLE_TTL_S, times.filled_at + _ROWS_LIVE * (times.expires_at - times.filled_at)),
        columns=kept.keys.columns,
        type_names=kept.keys.type_names,
        unreadable=tuple(kept.unreadable),
    )


def _mark() -> bytes:
    return secrets.token_bytes(_MARK_BYTES)
