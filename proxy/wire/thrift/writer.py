"""A writer of the few Thrift messages that the proxy sends itself."""

from __future__ import annotations

import struct

from proxy.wire.thrift.types import Kind, MessageType

VERSION_1 = 0x8001_0000

_U8 = struct.Struct(">B")
_I32 = struct.Struct(">i")
_U32 = struct.Struct(">I")
_I64 = struct.Struct(">q")
_FIELD = struct.Struct(">Bh")
_MAP = struct.Struct(">BBi")


class Writer:
    """Builds one message. Methods return the writer, so that a struct reads as one chain."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def header(self, name: str, message_type: MessageType, seqid: int) -> Writer:
        """Write the start of a message."""
        self._parts += [_U32.pack(VERSION_1 | message_type), _prefixed(name.encode()), _I32.pack(seqid)]
        return self

    def struct(self, field_id: int) -> Writer:
        """Open a struct field; `stop` closes it."""
        return self.raw(field_id, Kind.STRUCT, b"")

    def stop(self) -> Writer:
        """Close the innermost struct."""
        self._parts.append(_U8.pack(Kind.STOP))
        return self

    def raw(self, field_id: int, kind: Kind, encoded: bytes) -> Writer:
        """Write a field whose value is already encoded."""
        self._parts += [_FIELD.pack(kind, field_id), encoded]
        return self

    def binary(self, field_id: int, value: bytes) -> Writer:
        """Write a string or binary field."""
        return self.raw(field_id, Kind.STRING, _prefixed(value))

    def boolean(self, field_id: int, value: bool) -> Writer:  # noqa: FBT001 - a field's value
        """Write a bool field."""
        return self.raw(field_id, Kind.BOOL, _U8.pack(value))

    def i32(self, field_id: int, value: int) -> Writer:
        """Write an i32 or enum field."""
        return self.raw(field_id, Kind.I32, _I32.pack(value))

    def i64(self, field_id: int, value: int) -> Writer:
        """Write an i64 field."""
        return self.raw(field_id, Kind.I64, _I64.pack(value))

    def string_map(self, field_id: int, entries: dict[str, str]) -> Writer:
        """Write a map<string, string> field."""
        body = b"".join(_prefixed(text.encode()) for entry in entries.items() for text in entry)
        return self.raw(field_id, Kind.MAP, _MAP.pack(Kind.STRING, Kind.STRING, len(entries)) + body)

    def map_header(self, key: Kind, value: Kind, count: int) -> Writer:
        """Write the start of a map's value; its entries follow."""
        self._parts.append(_MAP.pack(key, value, count))
        return self

    def entry(self, key: str, value: str) -> Writer:
        """Write an entry of a map of strings."""
        self._parts += [_prefixed(key.encode()), _prefixed(value.encode())]
        return self

    def to_bytes(self) -> bytes:
        """Return the bytes written."""
        return b"".join(self._parts)


def _prefixed(value: bytes) -> bytes:
    return _I32.pack(len(value)) + value
