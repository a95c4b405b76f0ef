"""The types of Thrift's binary protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Final, TypeAlias, TypeVar

from proxy.wire.thrift.errors import RemoteProtocolError

Buffer: TypeAlias = bytes | bytearray | memoryview


class Kind(IntEnum):
    """The encoding of a value: Thrift's TType."""

    STOP = 0
    BOOL = 2
    BYTE = 3
    DOUBLE = 4
    I16 = 6
    I32 = 8
    I64 = 10
    STRING = 11
    STRUCT = 12
    MAP = 13
    SET = 14
    LIST = 15


class MessageType(IntEnum):
    """The type of a message: Thrift's TMessageType."""

    CALL = 1
    REPLY = 2
    EXCEPTION = 3
    ONEWAY = 4


# Looked up for every field that passes: three times as fast as a call of the enum.
_KINDS: Final = {kind.value: kind for kind in Kind}
FIXED_BYTES: Final = {Kind.BOOL: 1, Kind.BYTE: 1, Kind.I16: 2, Kind.I32: 4, Kind.I64: 8, Kind.DOUBLE: 8}

_Entry = TypeVar("_Entry")


def table_by_kind(entries: Mapping[Kind, _Entry], other: _Entry) -> Sequence[_Entry]:
    """Return a table indexed by a kind: a dictionary would call the hash of the enum, which is Python."""
    return tuple(entries.get(_KINDS.get(number, Kind.STOP), other) for number in range(max(Kind) + 1))


# Zero for kinds of no fixed width.
WIDTHS: Final = table_by_kind(FIXED_BYTES, 0)


def kind_of(number: int) -> Kind:
    """Return the kind that a type byte names."""
    try:
        return _KINDS[number]
    except KeyError:
        raise RemoteProtocolError(f"{number} is not a Thrift type") from None
