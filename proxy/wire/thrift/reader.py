"""A reader of Thrift's strict binary protocol for a relay: it decodes a few fields and skips the rest."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.skip import ValueSkipper
from proxy.wire.thrift.types import FIXED_BYTES, WIDTHS, Buffer, Kind, MessageType, kind_of
from proxy.wire.thrift.writer import VERSION_1

# The longest method name of TCLIService has 22 characters.
METHOD_NAME_BYTES_MAX: Final = 128
# The version and type, the name behind its length, and the seqid.
HEADER_BYTES_MAX: Final = 4 + 4 + METHOD_NAME_BYTES_MAX + 4

_VERSION_MASK: Final = 0xFFFF_0000
_U8 = struct.Struct(">B")
_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")
_U32 = struct.Struct(">I")


@dataclass(frozen=True)
class Header:
    """The start of a message. Its seqid begins at `seqid_offset`, its body at `body_offset`."""

    name: str
    type: MessageType
    seqid: int
    seqid_offset: int
    body_offset: int


def read_header(message: Buffer) -> Header:
    """Return the header of a message; raises IncompleteError until all of it has come."""
    reader = Reader(message)
    word = reader.take(_U32)
    if word & _VERSION_MASK != VERSION_1:
        raise RemoteProtocolError(f"expected a strict binary Thrift message (0x8001....), got 0x{word:08x}")
    message_type = _message_type(word & 0xFF)
    name = bytes(reader.binary(METHOD_NAME_BYTES_MAX)).decode("ascii", "backslashreplace")
    seqid_offset = reader.position
    return Header(name, message_type, reader.i32(), seqid_offset, reader.position)


def _message_type(number: int) -> MessageType:
    try:
        return MessageType(number)
    except ValueError:
        raise RemoteProtocolError(f"expected a Thrift message type of 1 to 4, got {number}") from None


class Reader:
    """A cursor over the bytes of a message."""

    def __init__(self, message: Buffer, position: int = 0) -> None:
        self._view = memoryview(message)
        self.position = position

    def take(self, layout: struct.Struct) -> int:
        """Read one number."""
        start, end = self.position, self.position + layout.size
        if end > len(self._view):
            raise IncompleteError
        self.position = end
        value: int = layout.unpack_from(self._view, start)[0]
        return value

    def boolean(self) -> bool:
        """Read a bool field."""
        return self.take(_U8) != 0

    def i32(self) -> int:
        """Read an i32 or enum field."""
        return self.take(_I32)

    def binary(self, bytes_max: int | None = None) -> memoryview:
        """Read a string or binary field without copying it."""
        length = self.take(_I32)
        if length < 0 or (bytes_max is not None and length > bytes_max):
            raise RemoteProtocolError(f"a string announces {length} bytes, at most {bytes_max} are accepted")
        return self._bytes(length)

    def text(self) -> str:
        """Read a string field as text: bytes that are not UTF-8 become replacement characters."""
        return bytes(self.binary()).decode("utf-8", "replace")

    def fields(self) -> Iterator[tuple[int, Kind]]:
        """Yield the fields of a struct. The caller reads or skips each value before it takes the next field."""
        view = self._view
        while self.position < len(view):
            kind = kind_of(view[self.position])
            self.position += 1
            if kind is Kind.STOP:
                return
            yield self.take(_I16), kind
        raise IncompleteError

    def items(self) -> Iterator[Kind]:
        """Yield the kind of a list's items, once for each item; the caller reads or skips the value."""
        kind, count = self.list_header()
        for _ in range(count):
            yield kind

    def list_header(self) -> tuple[Kind, int]:
        """Read the kind and number of a list's items. Raises IncompleteError if the bytes are too few for them."""
        kind, count = kind_of(self.take(_U8)), self.take(_I32)
        if count < 0:
            raise RemoteProtocolError(f"a list announces {count} items")
        if count * FIXED_BYTES.get(kind, 1) > len(self._view) - self.position:
            raise IncompleteError
        return kind, count

    def array(self, count: int, item_bytes: int) -> memoryview:
        """Return the bytes of `count` items of fixed width."""
        return self._bytes(count * item_bytes)

    def map_keys(self, value: Kind) -> Iterator[str]:
        """Yield the keys of a map from strings; the caller reads or skips each value."""
        for key in self.binary_map_keys(value):
            yield key.decode("utf-8", "replace")

    def binary_map_keys(self, value: Kind) -> Iterator[bytes]:
        """Yield the keys of a map from binary strings; the caller reads or skips each value."""
        key, found, count = kind_of(self.take(_U8)), kind_of(self.take(_U8)), self.take(_I32)
        if count and (key, found) != (Kind.STRING, value):
            raise RemoteProtocolError(f"expected a map of strings to {value.name}, got {key.name} to {found.name}")
        for _ in range(count):
            yield bytes(self.binary())

    def skip(self, kind: Kind) -> memoryview:
        """Skip a value and return its encoded bytes."""
        width = WIDTHS[kind]
        if width:
            return self._bytes(width)
        start = self.position
        end = ValueSkipper(kind, start).advance(self._view)
        if end is None:
            raise IncompleteError
        self.position = end
        return self._view[start:end]

    def skip_usual(self, kind: Kind, usual: re.Pattern[bytes]) -> memoryview:
        """Skip a value whose usual form a pattern finds, which is quicker; else do as `skip`."""
        found = usual.match(self._view, self.position)
        return self.skip(kind) if found is None else self._bytes(found.end() - self.position)

    def _bytes(self, count: int) -> memoryview:
        start, end = self.position, self.position + count
        if end > len(self._view):
            raise IncompleteError
        self.position = end
        return self._view[start:end]
