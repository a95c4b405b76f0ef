"""Replies that no server in its right mind would give, and some that a broken one does."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from proxy.wire.hs2.calls import GET_OPERATION_STATUS, OperationState
from proxy.wire.hs2.replies import StatusCode
from proxy.wire.thrift.reader import Header
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

# TStatus, as each reply carries it.
_STATUS: Final = 1
_UNKNOWN_METHOD: Final = 1

# A column of the wire: its number in the TColumn union, the kind of an item, and the items' bytes.
WireColumn: TypeAlias = tuple[int, Kind, Sequence[bytes]]

_STOPS: Final = b"\0\0"


def refused(call: Header, message: str, sql_state: str) -> bytes:
    """The server says no. Where an operation runs already, it is the operation that has failed."""
    if call.name == GET_OPERATION_STATUS:
        state = Writer().i32(2, OperationState.ERROR).binary(3, sql_state.encode()).i32(4, 0)
        return _reply(call, _ok(), state.binary(5, message.encode()))
    status = Writer().i32(1, StatusCode.ERROR).binary(3, sql_state.encode()).i32(4, 0)
    return _reply(call, status.binary(5, message.encode()), Writer())


def thrown(call: Header, message: str) -> bytes:
    """What Thrift itself answers where the handler has thrown: a TApplicationException."""
    writer = Writer().header(call.name, MessageType.EXCEPTION, call.seqid)
    return writer.binary(1, message.encode()).i32(2, _UNKNOWN_METHOD).stop().to_bytes()


def batch(call: Header, *columns: WireColumn) -> bytes:
    """A batch of rows in the given columns, whatever was asked."""
    encoded = b"".join(_column(*column) for column in columns)
    listed = bytes([Kind.STRUCT]) + len(columns).to_bytes(4) + encoded
    rows = Writer().i64(1, 0).raw(2, Kind.LIST, bytes([Kind.STRUCT]) + bytes(4)).raw(3, Kind.LIST, listed)
    return _reply(call, _ok(), Writer().boolean(2, value=False).raw(3, Kind.STRUCT, rows.stop().to_bytes()))


def strings(values: Sequence[bytes]) -> WireColumn:
    """A column of strings."""
    return 7, Kind.STRING, [len(value).to_bytes(4) + value for value in values]


def doubles(values: Sequence[bytes]) -> WireColumn:
    """A column of doubles, each as its eight bytes."""
    return 6, Kind.DOUBLE, values


def _ok() -> Writer:
    return Writer().i32(1, StatusCode.SUCCESS)


def _reply(call: Header, status: Writer, fields: Writer) -> bytes:
    writer = Writer().header(call.name, MessageType.REPLY, call.seqid).struct(0)
    return writer.raw(_STATUS, Kind.STRUCT, status.stop().to_bytes()).to_bytes() + fields.to_bytes() + _STOPS


def _column(number: int, kind: Kind, items: Sequence[bytes]) -> bytes:
    values = bytes([kind]) + len(items).to_bytes(4) + b"".join(items)
    typed = Writer().raw(1, Kind.LIST, values).binary(2, b"").stop().to_bytes()
    return Writer().raw(number, Kind.STRUCT, typed).stop().to_bytes()
