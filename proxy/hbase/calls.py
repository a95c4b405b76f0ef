"""Calls of HBase's Thrift gateway as bytes, and the results in its replies. Pure: no socket is used here.

The field numbers are those of Hbase.thrift ("Thrift 1"), which HBase 0.92 to 2.6 speak. A row's cells have one
family, and names of two characters at most: `l:h`.
"""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from proxy.hbase.errors import HBaseError, TableExistsError
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import Reader
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

_LENGTH: Final = struct.Struct(">i")
_LIST: Final = struct.Struct(">Bi")
# TRowResult.
_ROW_KEY, _ROW_CELLS = 1, 2
# A line for the log.
_MESSAGE_CHARS_MAX: Final = 300
# Hbase.thrift: each operation can fail by these, and createTable by the third too.
_RESULT, _ALREADY_EXISTS = 0, 3
# The attribute of a mutation that is its time to live: 8 bytes of milliseconds (Mutation.OP_ATTRIBUTE_TTL).
_TTL_ATTRIBUTE: Final = b"_ttl"
# The cells' names and times alone come back, not their values (filters are written as in HBase's shell).
KEYS_ONLY: Final = b"KeyOnlyFilter()"


@dataclass(frozen=True)
class Cell:
    """One cell of a row. `column` is its family and name: `b"l:h"`."""

    row: bytes
    column: bytes
    value: bytes


@dataclass(frozen=True)
class Row:
    """A row that was read: its key, and its cells by column."""

    key: bytes
    cells: Mapping[bytes, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class GatewayCall:
    """One call, without its seqid: a connection numbers its calls."""

    name: str
    body: bytes

    def to_bytes(self, seqid: int) -> bytes:
        """The message."""
        return Writer().header(self.name, MessageType.CALL, seqid).to_bytes() + self.body


def create_table(table: str, family: bytes, ttl_s: int) -> GatewayCall:
    """Make a table of one family that keeps one version of each cell for `ttl_s`."""
    column = Writer().binary(1, family).i32(2, 1).i32(9, ttl_s).stop().to_bytes()
    families = _sequence(Kind.STRUCT, [column])
    return GatewayCall(
        "createTable", Writer().binary(1, table.encode()).raw(2, Kind.LIST, families).stop().to_bytes()
    )


def get_rows(table: str, rows: Sequence[bytes]) -> GatewayCall:
    """Read rows by their keys."""
    writer = Writer().binary(1, table.encode()).raw(2, Kind.LIST, _sequence(Kind.STRING, [*map(_text, rows)]))
    return GatewayCall("getRows", writer.raw(3, Kind.MAP, _attributes({})).stop().to_bytes())


def put_cells(table: str, cells: Sequence[Cell], ttl_s: float) -> GatewayCall:
    """Write cells, each of which lives for `ttl_s`. Each row is written as a whole or not at all."""
    batches = [_batch(cell.row, Writer().binary(2, cell.column).binary(3, cell.value)) for cell in cells]
    ttl = {_TTL_ATTRIBUTE: int(ttl_s * 1_000).to_bytes(8)}
    return _mutate_rows(table, batches, ttl)


def delete_rows(table: str, rows: Sequence[bytes], column: bytes) -> GatewayCall:
    """Delete one column of rows."""
    return _mutate_rows(
        table, [_batch(row, Writer().boolean(1, value=True).binary(2, column)) for row in rows], {}
    )


def open_scan(table: str, start: bytes, stop: bytes, page_rows: int, filter_text: bytes = b"") -> GatewayCall:
    """Begin a scan of the rows from `start` up to `stop`, which is not one of them. Its answer is an id."""
    scan = Writer().binary(1, start).binary(2, stop).i32(5, page_rows)
    if filter_text:
        scan.binary(6, filter_text)
    writer = Writer().binary(1, table.encode()).raw(2, Kind.STRUCT, scan.stop().to_bytes())
    return GatewayCall("scannerOpenWithScan", writer.raw(3, Kind.MAP, _attributes({})).stop().to_bytes())


def next_rows(scanner: int, count: int) -> GatewayCall:
    """Read the next rows of a scan: none at its end."""
    return GatewayCall("scannerGetList", Writer().i32(1, scanner).i32(2, count).stop().to_bytes())


def close_scan(scanner: int) -> GatewayCall:
    """End a scan."""
    return GatewayCall("scannerClose", Writer().i32(1, scanner).stop().to_bytes())


def read_nothing(reply: Message) -> None:
    """Check the reply to a call without a result. Raises HBaseError."""
    with _result(reply, None):
        pass


def read_number(reply: Message) -> int:
    """The number that the reply has. Raises HBaseError."""
    with _result(reply, Kind.I32) as reader:
        return reader.i32()


def read_rows(reply: Message) -> list[Row]:
    """The rows that the reply has. Raises HBaseError."""
    with _result(reply, Kind.LIST) as reader:
        return [_row(reader) for _ in reader.items()]


@contextmanager
def _result(reply: Message, wanted: Kind | None) -> Generator[Reader]:
    """The reader of a reply, at the start of its result. Raises HBaseError, also for errors inside the context."""
    name, reader = reply.header.name, Reader(reply.raw, reply.header.body_offset)
    try:
        if reply.header.type is MessageType.EXCEPTION:
            raise HBaseError(f"{name}: {_message(reader)}")
        for number, kind in reader.fields():
            if number == _RESULT and kind is wanted:
                yield reader
                return
            if number != _RESULT and kind is Kind.STRUCT:
                error = TableExistsError if number == _ALREADY_EXISTS else HBaseError
                raise error(f"{name}: {_message(reader)}")
            reader.skip(kind)
    except (IncompleteError, RemoteProtocolError) as error:
        raise HBaseError(f"the reply to {name} is not understood: {error}") from error
    if wanted is not None:
        raise HBaseError(f"{name} was answered without a result")
    yield reader


def _message(reader: Reader) -> str:
    """The first line of an error's message: HBase adds Java's stack."""
    for number, kind in reader.fields():
        if number == 1 and kind is Kind.STRING:
            return (reader.text().splitlines() or [""])[0][:_MESSAGE_CHARS_MAX]
        reader.skip(kind)
    return "no message"


def _row(reader: Reader) -> Row:
    key, cells = b"", {}
    for number, kind in reader.fields():
        if number == _ROW_KEY and kind is Kind.STRING:
            key = bytes(reader.binary())
        elif number == _ROW_CELLS and kind is Kind.MAP:
            cells = dict(_cells(reader))
        else:
            reader.skip(kind)
    return Row(key, cells)


def _cells(reader: Reader) -> Iterable[tuple[bytes, bytes]]:
    for column in reader.binary_map_keys(Kind.STRUCT):
        value = b""
        for number, kind in reader.fields():
            if number == 1 and kind is Kind.STRING:
                value = bytes(reader.binary())
            else:
                reader.skip(kind)
        yield column, value


def _mutate_rows(table: str, batches: Sequence[bytes], attributes: Mapping[bytes, bytes]) -> GatewayCall:
    writer = Writer().binary(1, table.encode()).raw(2, Kind.LIST, _sequence(Kind.STRUCT, batches))
    return GatewayCall("mutateRows", writer.raw(3, Kind.MAP, _attributes(attributes)).stop().to_bytes())


def _batch(row: bytes, mutation: Writer) -> bytes:
    mutations = _sequence(Kind.STRUCT, [mutation.stop().to_bytes()])
    return Writer().binary(1, row).raw(2, Kind.LIST, mutations).stop().to_bytes()


def _attributes(attributes: Mapping[bytes, bytes]) -> bytes:
    header = Writer().map_header(Kind.STRING, Kind.STRING, len(attributes)).to_bytes()
    return header + b"".join(_text(part) for entry in attributes.items() for part in entry)


def _sequence(kind: Kind, items: Sequence[bytes]) -> bytes:
    return _LIST.pack(kind, len(items)) + b"".join(items)


def _text(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value
