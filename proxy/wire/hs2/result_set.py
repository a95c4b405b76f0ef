"""Result sets as HiveServer2 sends them from protocol V6 on: a schema, then batches column by column."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from proxy.wire.hs2.replies import Status, read_status
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.reader import Reader
from proxy.wire.thrift.types import FIXED_BYTES, Kind

# A decoded value of a column: structurally `proxy.operations.query.Value`, which the wire must not import.
Cell: TypeAlias = str | int | bool | float | bytes | None

_TYPE_NAMES: Final = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "timestamp", "binary"),
    *("array", "map", "struct", "uniontype", "user_defined", "decimal", "void", "date", "varchar", "char"),
    *("interval_year_month", "interval_day_time"),
)
_DECIMAL: Final = "decimal"


class UnreadableError(Exception):
    """The result is well formed, but of a kind that the proxy does not read."""


@dataclass(frozen=True)
class ColumnType:
    """A column's name and Spark SQL type."""

    name: str
    type_name: str


@dataclass(frozen=True)
class MetadataReply:
    """The reply to GetResultSetMetadata."""

    status: Status
    columns: tuple[ColumnType, ...]


@dataclass(frozen=True)
class FetchReply:
    """The reply to FetchResults: one batch, as columns of equal length."""

    status: Status
    columns: tuple[tuple[Cell, ...], ...]

    @property
    def row_count(self) -> int:
        """The number of rows in the batch."""
        return len(self.columns[0]) if self.columns else 0


def decode_metadata_reply(reader: Reader) -> MetadataReply:
    """Decode TGetResultSetMetadataResp."""
    status = Status(-1, "the reply carries no status")
    columns: tuple[ColumnType, ...] = ()
    for field_id, kind in reader.fields():
        match (field_id, kind):
            case (1, Kind.STRUCT):
                status = read_status(reader)
            case (2, Kind.STRUCT):
                columns = _schema(reader)
            case _:
                reader.skip(kind)
    return MetadataReply(status, columns)


def _schema(reader: Reader) -> tuple[ColumnType, ...]:
    columns: tuple[ColumnType, ...] = ()
    for field_id, kind in reader.fields():
        if (field_id, kind) == (1, Kind.LIST):
            columns = tuple(_column(reader, item) for item in reader.items())
        else:
            reader.skip(kind)
    return columns


def _column(reader: Reader, item: Kind) -> ColumnType:
    _expect(item, Kind.STRUCT, "a column's description")
    name, type_name = "", ""
    for field_id, kind in reader.fields():
        match (field_id, kind):
            case (1, Kind.STRING):
                name = reader.text()
            case (2, Kind.STRUCT):
                type_name = _type_name(reader)
            case _:
                reader.skip(kind)
    return ColumnType(name, type_name)


def _type_name(reader: Reader) -> str:
    names: list[str] = []
    for field_id, kind in reader.fields():
        if (field_id, kind) == (1, Kind.LIST):
            names = [_type_entry(reader, item) for item in reader.items()]
        else:
            reader.skip(kind)
    if not names:
        raise UnreadableError("a column has no type")
    return names[0]


def _type_entry(reader: Reader, item: Kind) -> str:
    _expect(item, Kind.STRUCT, "a type entry")
    name = "unknown"
    for field_id, kind in reader.fields():
        if (field_id, kind) == (1, Kind.STRUCT):
            name = _primitive_type(reader)
        else:
            reader.skip(kind)
    return name


def _primitive_type(reader: Reader) -> str:
    number, qualifiers = -1, {}
    for field_id, kind in reader.fields():
        match (field_id, kind):
            case (1, Kind.I32):
                number = reader.i32()
            case (2, Kind.STRUCT):
                qualifiers = _qualifiers(reader)
            case _:
                reader.skip(kind)
    if not 0 <= number < len(_TYPE_NAMES):
        return "unknown"
    name = _TYPE_NAMES[number]
    if name == _DECIMAL and {"precision", "scale"} <= qualifiers.keys():
        return f"{name}({qualifiers['precision']},{qualifiers['scale']})"
    return name


def _qualifiers(reader: Reader) -> dict[str, int]:
    found: dict[str, int] = {}
    for field_id, kind in reader.fields():
        if (field_id, kind) == (1, Kind.MAP):
            for name in reader.map_keys(Kind.STRUCT):
                for value_id, value_kind in reader.fields():
                    if (value_id, value_kind) == (1, Kind.I32):
                        found[name] = reader.i32()
                    else:
                        reader.skip(value_kind)
        else:
            reader.skip(kind)
    return found


def decode_fetch_reply(reader: Reader) -> FetchReply:
    """Decode TFetchResultsResp. Its hasMoreRows is not read: Spark always sends false."""
    status = Status(-1, "the reply carries no status")
    columns: tuple[tuple[Cell, ...], ...] = ()
    for field_id, kind in reader.fields():
        match (field_id, kind):
            case (1, Kind.STRUCT):
                status = read_status(reader)
            case (3, Kind.STRUCT):
                columns = _row_set(reader)
            case _:
                reader.skip(kind)
    if len({len(column) for column in columns}) > 1:
        raise RemoteProtocolError("the columns of a batch differ in length")
    return FetchReply(status, columns)


def _row_set(reader: Reader) -> tuple[tuple[Cell, ...], ...]:
    columns: tuple[tuple[Cell, ...], ...] = ()
    for field_id, kind in reader.fields():
        match (field_id, kind):
            case (2, Kind.LIST):
                _expect_no_row_list(reader)
            case (3, Kind.LIST):
                columns = tuple(_values(reader, item) for item in reader.items())
            case (4, Kind.STRING):
                raise UnreadableError("the batch is in the compressed binary format")
            case _:
                reader.skip(kind)
    return columns


def _expect_no_row_list(reader: Reader) -> None:
    """Raise UnreadableError for rows in the row list, a required field that columnar batches leave empty."""
    _, count = reader.list_header()
    if count:
        raise UnreadableError("the batch is row by row, as before protocol V6")


def _values(reader: Reader, item: Kind) -> tuple[Cell, ...]:
    """Decode TColumn: a union whose field number gives the type of the values."""
    _expect(item, Kind.STRUCT, "a column")
    values: tuple[Cell, ...] | None = None
    for field_id, kind in reader.fields():
        decode = _DECODERS.get(field_id)
        if decode is None or kind is not Kind.STRUCT:
            raise UnreadableError(f"a column of the unknown kind {field_id}")
        values = _typed_column(reader, decode)
    if values is None:
        raise RemoteProtocolError("a column has no values")
    return values


def _typed_column(reader: Reader, decode: Callable[[Reader, Kind, int], list[Cell]]) -> tuple[Cell, ...]:
    values: list[Cell] = []
    nulls = b""
    for field_id, kind in reader.fields():
        match (field_id, kind):
            case (1, Kind.LIST):
                values = decode(reader, *reader.list_header())
            case (2, Kind.STRING):
                nulls = bytes(reader.binary())
            case _:
                reader.skip(kind)
    _set_nulls(values, nulls)
    return tuple(values)


def _set_nulls(values: list[Cell], nulls: bytes) -> None:
    """Set nulls: bit i of the bitmap, lowest first, marks value i as null. Missing bytes are zeros."""
    for byte_index, byte in enumerate(nulls[: (len(values) + 7) // 8]):
        if byte:
            start = byte_index * 8
            for index in range(start, min(start + 8, len(values))):
                if byte >> (index - start) & 1:
                    values[index] = None


def _numbers(letter: str, expected: Kind) -> Callable[[Reader, Kind, int], list[Cell]]:
    def decode(reader: Reader, item: Kind, count: int) -> list[Cell]:
        _expect_items(item, expected, count)
        return list(struct.unpack(f">{count}{letter}", reader.array(count, FIXED_BYTES[expected])))

    return decode


def _strings(reader: Reader, item: Kind, count: int) -> list[Cell]:
    _expect_items(item, Kind.STRING, count)
    try:
        return [str(reader.binary(), "utf-8") for _ in range(count)]
    except UnicodeDecodeError:
        raise UnreadableError("a string value is not UTF-8") from None


def _binaries(reader: Reader, item: Kind, count: int) -> list[Cell]:
    _expect_items(item, Kind.STRING, count)
    return [bytes(reader.binary()) for _ in range(count)]


_DECODERS: Final[dict[int, Callable[[Reader, Kind, int], list[Cell]]]] = {
    1: _numbers("?", Kind.BOOL),
    2: _numbers("b", Kind.BYTE),
    3: _numbers("h", Kind.I16),
    4: _numbers("i", Kind.I32),
    5: _numbers("q", Kind.I64),
    6: _numbers("d", Kind.DOUBLE),
    7: _strings,
    8: _binaries,
}


def _expect_items(item: Kind, expected: Kind, count: int) -> None:
    if count:  # an empty list may name any kind
        _expect(item, expected, "a column's values")


def _expect(item: Kind, expected: Kind, what: str) -> None:
    if item is not expected:
        raise RemoteProtocolError(f"expected {what} as {expected.name}, got {item.name}")
