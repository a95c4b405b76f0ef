"""The session or operation that a call names, read exactly as the server reads it.

Every call of TCLIService that names one does so in the first field of its request, and the two strings of a
handle's identifier distinguish it from others. The same handle can be encoded in many ways: fields in another
order, unknown fields between them, bytes after the sixteen that the server reads. This module recognises all of
them; a call that could be read in two ways is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple, NewType
from uuid import UUID

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

# The handle as the server and all clients encode it: this matches in a microsecond. A handle of another form is
# read field by field, with the same result.
USUAL_HANDLE: Final = re.compile(
    # Its identifier, the first field, a struct of two strings.
    rb"\x0c\0\x01(?P<encoded>\x0b\0\x01\0\0\0\x10(?P<first>.{16})\x0b\0\x02\0\0\0\x10(?P<second>.{16})\0)"
    # The other fields of an operation's handle: its kind, whether it has a result, its number of rows.
    rb"(?:\x08\0\x02.{4})?(?:\x02\0\x03(?P<has_result_set>.))?(?:\x04\0\x04.{8})?\0",
    re.DOTALL,
)
# In a call it is the first field of the request, which is the first field of the call.
_USUAL: Final = re.compile(rb"\x0c\0\x01\x0c\0\x01(?P<handle>" + USUAL_HANDLE.pattern + rb")", re.DOTALL)
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
        return NamedHandle(HandleId(usual["first"] + usual["second"]), (usual.span("first"), usual.span("second")))
    request = _first_struct_start(raw, body)
    handle = None if request is None else _first_struct_start(raw, request)
    return None if handle is None else _handle(raw, handle)


def handle_id_of(handle: bytes) -> HandleId | None:
    """Return the identifier of a handle that the server gave out, or None if the handle has an unknown form."""
    usual = USUAL_HANDLE.fullmatch(handle)
    if usual is not None:
        return HandleId(usual["first"] + usual["second"])
    found = _handle(handle, 0)
    return None if found is None else found.identifier


def public_id_of(handle: bytes) -> str | None:
    """Return the half of a handle's identifier that is no secret: Spark's UI shows an operation by it.

    None for a handle that is not encoded as usual.
    """
    usual = USUAL_HANDLE.fullmatch(handle)
    return None if usual is None else str(UUID(bytes=usual["first"]))


class UsualHandle(NamedTuple):
    """An operation's handle in the usual form."""

    # The span of its identifier, as it is encoded.
    identifier: tuple[int, int]
    # None if the handle does not say it.
    has_result_set: bool | None


def usual_handle_of_call(message: Message) -> UsualHandle | None:
    """Return the handle of a call with the usual handle and numbers alone behind it, else None."""
    usual = _USUAL.match(message.raw, message.header.body_offset)
    if usual is None or _NUMBERS.fullmatch(message.raw, usual.end()) is None:
        return None
    said = usual["has_result_set"]
    return UsualHandle(usual.span("encoded"), None if said is None else said != b"\0")


def usual_first_handle(message: Message) -> tuple[int, int] | None:
    """Return the span of the usual handle at the start of a call's request, whatever follows it, else None."""
    usual = _USUAL.match(message.raw, message.header.body_offset)
    return None if usual is None else (usual.start("handle"), usual.end())


def usual_identifier_of(handle: bytes) -> bytes | None:
    """Return the encoded identifier in a handle of the usual form, else None."""
    usual = USUAL_HANDLE.fullmatch(handle)
    return None if usual is None else usual["encoded"]


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
