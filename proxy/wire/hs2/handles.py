"""The session or operation that a call names, read exactly as the server reads it.

Every call of TCLIService that names one does so in the first field of its request, and the two strings of a
handle's identifier distinguish it from others. The same handle can be encoded in many ways: fields in another
order, unknown fields between them, bytes after the sixteen that the server reads. This module recognises all of
them; a call that could be read in two ways is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NewType

from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import Reader
from proxy.wire.thrift.types import Kind

# The bytes of a handle that the server compares, equal however the handle is encoded.
HandleId = NewType("HandleId", bytes)

# The server reads a UUID from each of the two strings, and ignores the bytes after it.
_UUID_BYTES: Final = 16
_LENGTH_BYTES: Final = 4
_TWICE: Final = "a call names its session or operation twice"
_FLIPPED: Final = bytes(255 - byte for byte in range(256))

# The handle as all clients encode it, before everything else: this matches in a microsecond. A handle of another
# form is read field by field, with the same result.
_USUAL: Final = re.compile(
    # The request, the handle, and its identifier, each the first field of the struct around it.
    rb"\x0c\0\x01\x0c\0\x01\x0c\0\x01"
    # The identifier's two strings.
    rb"\x0b\0\x01\0\0\0\x10(.{16})\x0b\0\x02\0\0\0\x10(.{16})\0"
    # The other fields of an operation's handle: its kind, whether it has a result, its number of rows.
    rb"(?:\x08\0\x02.{4})?(?:\x02\0\x03.)?(?:\x04\0\x04.{8})?\0",
    re.DOTALL,
)
# Fields that may follow in a request for the status, the rows or the end of an operation: numbers, never field 1.
_NUMBERS: Final = re.compile(
    rb"(?:\x08\0[^\0\x01].{4}|\x0a\0[^\0\x01].{8}|\x06\0[^\0\x01].{2}|\x02\0[^\0\x01].)*\0\0", re.DOTALL
)


@dataclass(frozen=True)
class NamedHandle:
    """The handle that a message names, and the spans of its identifier's two strings."""

    identifier: HandleId = field(repr=False)
    spans: tuple[tuple[int, int], ...]

    def with_handle_overwritten(self, message: Message) -> Message:
        """Return the message with its identifier's bytes inverted: it names no handle. Other bytes stay."""
        raw = bytearray(message.raw)
        for start, stop in self.spans:
            raw[start:stop] = raw[start:stop].translate(_FLIPPED)
        return Message(message.header, bytes(raw))


def handle_named_by(message: Message) -> NamedHandle | None:
    """Return the handle that a call names, None if it names none. Raises RemoteProtocolError if it names two."""
    raw, body = message.raw, message.header.body_offset
    usual = _USUAL.match(raw, body)
    if usual is not None:
        if _NUMBERS.fullmatch(raw, usual.end()) is None:
            _expect_no_second(Reader(raw, usual.end()))
        return NamedHandle(HandleId(usual[1] + usual[2]), (usual.span(1), usual.span(2)))
    request = _first_struct_start(raw, body)
    handle = None if request is None else _first_struct_start(raw, request)
    return None if handle is None else _handle(raw, handle)


def handle_id_of(handle: bytes) -> HandleId | None:
    """Return the identifier of a handle that the server gave out, or None if the handle has an unknown form."""
    found = _handle(handle, 0)
    return None if found is None else found.identifier


def _expect_no_second(reader: Reader) -> None:
    """Raise RemoteProtocolError if the rest of the request, or of the struct around it, names a handle too."""
    for _ in range(2):
        for field_id, kind in reader.fields():
            if (field_id, kind) == (1, Kind.STRUCT):
                raise RemoteProtocolError(_TWICE)
            reader.skip(kind)


def _handle(raw: bytes, position: int) -> NamedHandle | None:
    identifier = _first_struct_start(raw, position)
    spans = {} if identifier is None else _string_spans(raw, identifier)
    if spans.keys() != {1, 2}:
        # The server rejects it too.
        return None
    ordered = (spans[1], spans[2])
    compared = b"".join(raw[start : min(stop, start + _UUID_BYTES)] for start, stop in ordered)
    return NamedHandle(HandleId(compared), ordered)


def _first_struct_start(raw: bytes, position: int) -> int | None:
    """Return the start of the struct in field 1. Two are an error here; the server would take the last one."""
    reader = Reader(raw, position)
    found = None
    for field_id, kind in reader.fields():
        if (field_id, kind) == (1, Kind.STRUCT):
            if found is not None:
                raise RemoteProtocolError(_TWICE)
            found = reader.position
        reader.skip(kind)
    return found


def _string_spans(raw: bytes, position: int) -> dict[int, tuple[int, int]]:
    """Return the spans of a struct's strings, by field number."""
    reader = Reader(raw, position)
    spans: dict[int, tuple[int, int]] = {}
    for field_id, kind in reader.fields():
        start = reader.position
        reader.skip(kind)
        if kind is Kind.STRING:
            if field_id in spans:
                raise RemoteProtocolError(_TWICE)
            spans[field_id] = (start + _LENGTH_BYTES, reader.position)
    return spans
