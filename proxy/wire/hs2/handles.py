"""Which session or operation a call names, read so that the server cannot read it otherwise.

Every call of TCLIService that names one does so in the first field of its request, and a handle tells itself
apart by the two strings of its identifier. The same handle can be written in many ways: fields in another order,
unknown ones between them, bytes behind the sixteen that the server looks at. All of them are found here; what
could be read in two ways is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NewType

from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import Reader
from proxy.wire.thrift.types import Kind

# What tells a handle from all others, whoever wrote it down: the bytes that the server compares.
HandleId = NewType("HandleId", bytes)

# The server reads a UUID from each of the two strings, and nothing behind it.
_UUID_BYTES: Final = 16
_LENGTH_BYTES: Final = 4
_TWICE: Final = "a call names its session or operation twice"
_FLIPPED: Final = bytes(255 - byte for byte in range(256))

# The handle as all clients write it, in front of everything else: found in a microsecond, and field by field to
# the same end where it is not of this form.
_USUAL: Final = re.compile(
    # The request, the handle, and its identifier, each the first field of what is around it.
    rb"\x0c\0\x01\x0c\0\x01\x0c\0\x01"
    # The identifier's two strings.
    rb"\x0b\0\x01\0\0\0\x10(.{16})\x0b\0\x02\0\0\0\x10(.{16})\0"
    # What an operation's handle says of its kind, its result and its number of rows.
    rb"(?:\x08\0\x02.{4})?(?:\x02\0\x03.)?(?:\x04\0\x04.{8})?\0",
    re.DOTALL,
)
# What may follow in a request for the status, the rows or the end of an operation: numbers, never in field 1.
_NUMBERS: Final = re.compile(
    rb"(?:\x08\0[^\0\x01].{4}|\x0a\0[^\0\x01].{8}|\x06\0[^\0\x01].{2}|\x02\0[^\0\x01].)*\0\0", re.DOTALL
)


@dataclass(frozen=True)
class NamedHandle:
    """The handle that a message names, and where its identifier's strings stand."""

    identifier: HandleId = field(repr=False)
    spans: tuple[tuple[int, int], ...]

    def with_handle_overwritten(self, message: Message) -> Message:
        """The same message about a handle that nobody has; every other byte stays."""
        raw = bytearray(message.raw)
        for start, stop in self.spans:
            raw[start:stop] = raw[start:stop].translate(_FLIPPED)
        return Message(message.header, bytes(raw))


def handle_named_by(message: Message) -> NamedHandle | None:
    """The handle that a call names, or None where it names none. Raises RemoteProtocolError where it names two."""
    raw, body = message.raw, message.header.body_offset
    usual = _USUAL.match(raw, body)
    if usual is not None:
        if _NUMBERS.fullmatch(raw, usual.end()) is None:
            _expect_no_second(Reader(raw, usual.end()))
        return NamedHandle(HandleId(usual[1] + usual[2]), (usual.span(1), usual.span(2)))
    request = _first_struct(raw, body)
    handle = None if request is None else _first_struct(raw, request)
    return None if handle is None else _handle(raw, handle)


def handle_id_of(handle: bytes) -> HandleId | None:
    """What identifies a handle that the server gave out, or None where it is not as we know it."""
    found = _handle(handle, 0)
    return None if found is None else found.identifier


def _expect_no_second(reader: Reader) -> None:
    """What is left of the request, and of what is around it."""
    for _ in range(2):
        for field_id, kind in reader.fields():
            if (field_id, kind) == (1, Kind.STRUCT):
                raise RemoteProtocolError(_TWICE)
            reader.skip(kind)


def _handle(raw: bytes, position: int) -> NamedHandle | None:
    identifier = _first_struct(raw, position)
    spans = {} if identifier is None else _strings(raw, identifier)
    if spans.keys() != {1, 2}:
        # The server takes it for an error too.
        return None
    ordered = (spans[1], spans[2])
    compared = b"".join(raw[start : min(stop, start + _UUID_BYTES)] for start, stop in ordered)
    return NamedHandle(HandleId(compared), ordered)


def _first_struct(raw: bytes, position: int) -> int | None:
    """Where the struct in field 1 of a struct begins. Of two, the server would take the last one."""
    reader = Reader(raw, position)
    found = None
    for field_id, kind in reader.fields():
        if (field_id, kind) == (1, Kind.STRUCT):
            if found is not None:
                raise RemoteProtocolError(_TWICE)
            found = reader.position
        reader.skip(kind)
    return found


def _strings(raw: bytes, position: int) -> dict[int, tuple[int, int]]:
    """Where the strings of a struct stand, by their fields."""
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
