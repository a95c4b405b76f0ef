"""Partition lists as rows of a table that all replicas share: keys of rows, headers, and checks of both.

The keys are bytes in the order of the values (rewriter/partitions/key_encoding.py), as in the design of a
metastore in HBase (HIVE-9452): a filter is a few scans from a start to a stop.

    1L <table> 0 <list>              the header of a list: its version, size, times, columns, checksum
    1E <list> <version> <entry>      a partition: the entry is its key with its own name behind it
    1F <table>                       a mark, another one each time that the lists of the table were dropped
    1Q .., 1R ..                     lessons of statements (proxy/session/sharing/lesson_rows.py)

`1` is the version of this layout: rows of another one are never scanned. A list is written under a new version,
and found as soon as its header names that: it is replaced as a whole or not at all. No row is believed unchecked.
A header has a checksum of its own and names its list. A list has as many entries as the header says, in order,
with the checksum in the header, and each entry is byte for byte that of its partition's name.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final

import msgspec

from proxy.session.layout.partition_store import ListKey
from rewriter.partitions.byte_ranges import ByteRange
from rewriter.partitions.key_encoding import PartitionKeys
from rewriter.partitions.value_encoding import NotIndexableError

_HEADERS: Final = b"1L"
_ENTRIES: Final = b"1E"
_MARKS: Final = b"1F"
# Names of columns of the rows.
HEADER_COLUMN: Final = b"l:h"
ENTRY_COLUMN: Final = b"l:e"
MARK_COLUMN: Final = b"l:m"

ALL_HEADERS: Final = ByteRange.of_prefix(_HEADERS)

_LIST_BYTES: Final = 16
VERSION_BYTES: Final = 8
_CHECKSUM_BYTES: Final = 32
# A key of HBase has 32,767 bytes at most, and names of tables some hundreds.
TABLE_BYTES_MAX: Final = 1_000
# The header names the partitions that have no place in the order: a few, unless none has.
HEADER_BYTES_MAX: Final = 1024 * 1024
_TTL_S_MAX: Final = 86_400.0
# Clocks of replicas differ. A list of a replica whose clock is ahead by more is not believed.
_CLOCK_SKEW_S: Final = 60.0


class SharedHeader(msgspec.Struct, frozen=True):
    """The properties of one version of a list."""

    # The digest of its key: a header that was copied to another row is no header there.
    list_digest: bytes
    version: bytes
    count: int
    checksum: bytes
    filled_at: float
    expires_at: float
    # The time until which HBase keeps the entries.
    rows_until: float
    columns: tuple[str, ...]
    type_names: tuple[str, ...]
    unreadable: tuple[str, ...]

    def is_believed(self, now: float) -> bool:
        """True if the list is current."""
        return self.filled_at <= now + _CLOCK_SKEW_S and now < min(self.expires_at, self.rows_until)

    def encode(self) -> bytes:
        """The value of the header's cell."""
        payload = msgspec.msgpack.encode(self)
        return _checksum(payload) + payload


def new_version() -> bytes:
    """A version that no other writer uses."""
    return secrets.token_bytes(VERSION_BYTES)


def header_row(key: ListKey) -> bytes:
    """The row of a list's header."""
    return _HEADERS + _table(key.name) + b"\x00" + key.digest


def headers_of_table(table: str) -> ByteRange:
    """The rows of the headers of everyone's lists of a table's name."""
    return ByteRange.of_prefix(_HEADERS + _table(table) + b"\x00")


def mark_row(table: str) -> bytes:
    """The row of the mark of a table's name."""
    return _MARKS + _table(table)


def is_named(table: str) -> bool:
    """True if the name of a table is short enough for the keys of rows."""
    return len(_table(table)) <= TABLE_BYTES_MAX


def entry_prefix(list_digest: bytes, version: bytes) -> bytes:
    """The first bytes of the rows of one version of a list."""
    return _ENTRIES + list_digest[:_LIST_BYTES] + list_digest[-_LIST_BYTES:] + version


def checksum_of(entries: Iterable[bytes]) -> bytes:
    """The checksum of entries in their order."""
    digest = sha256()
    for entry in entries:
        digest.update(len(entry).to_bytes(4) + entry)
    return digest.digest()


def is_short(value: bytes) -> bool:
    """True if a header is short enough to be written and read."""
    return len(value) <= HEADER_BYTES_MAX


def read_header(value: bytes, key: ListKey, partitions_max: int) -> SharedHeader | None:
    """The header in a cell, or None where that is cut, of another list, or not one that a replica writes."""
    if not is_short(value):
        return None
    payload = value[_CHECKSUM_BYTES:]
    if value[:_CHECKSUM_BYTES] != _checksum(payload):
        return None
    try:
        header = msgspec.msgpack.decode(payload, type=SharedHeader)
        _ = PartitionKeys(header.columns, header.type_names)
    except (msgspec.DecodeError, UnicodeDecodeError, NotIndexableError):
        return None
    is_whole = (
        header.list_digest == key.digest
        and len(header.version) == VERSION_BYTES
        and 0 <= header.count <= partitions_max
        and len(header.columns) == len(header.type_names) > 0
        and header.filled_at <= header.expires_at <= header.filled_at + _TTL_S_MAX
    )
    return header if is_whole else None


def read_entries(header: SharedHeader, rows: Iterator[bytes]) -> list[bytes] | None:
    """The entries of a list from the keys of its rows, or None where they are not those that were written."""
    keys = PartitionKeys(header.columns, header.type_names)
    prefix = entry_prefix(header.list_digest, header.version)
    entries: list[bytes] = []
    last = b""
    for row in rows:
        entry = row[len(prefix) :]
        if not row.startswith(prefix) or len(entries) >= header.count or not last < entry:
            return None
        if not is_entry(keys, entry):
            return None
        entries.append(entry)
        last = entry
    return entries if len(entries) == header.count and checksum_of(entries) == header.checksum else None


def is_entry(keys: PartitionKeys, entry: bytes) -> bool:
    """True if this is the entry of the partition that it names."""
    try:
        return keys.entry(keys.spec(entry)) == entry
    except (NotIndexableError, ValueError, IndexError):
        return False


def _table(name: str) -> bytes:
    return name.encode("utf-8", "backslashreplace").replace(b"\x00", b"")


def _checksum(payload: bytes) -> bytes:
    return sha256(payload).digest()
