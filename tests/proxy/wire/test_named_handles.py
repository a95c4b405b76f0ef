"""Which handle a call names: the same one however it is written, and never one that the server would not take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.hs2.calls import (
    OperationHandle,
    SessionHandle,
    decode_operation_of_call,
    encode_execute,
    encode_fetch,
    encode_operation_call,
    operation_id_of,
)
from proxy.wire.hs2.handles import HandleId, handle_id_of, handle_named_by
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.messages import Message
from proxy.wire.thrift.reader import read_header
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

GUID, SECRET = bytes(range(16)), bytes(range(100, 116))
OWN = HandleId(GUID + SECRET)


def identifier(guid: bytes = GUID, secret: bytes = SECRET) -> bytes:
    return Writer().binary(1, guid).binary(2, secret).stop().to_bytes()


def handle(encoded: bytes) -> bytes:
    """An operation's handle as the server writes it."""
    return Writer().raw(1, Kind.STRUCT, encoded).i32(2, 0).boolean(3, value=True).stop().to_bytes()


def call(request: Writer, name: str = "GetOperationStatus") -> Message:
    raw = Writer().header(name, MessageType.CALL, 7).struct(1).to_bytes() + request.stop().stop().to_bytes()
    return Message(read_header(raw), raw)


def message(raw: bytes) -> Message:
    return Message(read_header(raw), raw)


OPERATION = OperationHandle(handle(identifier()))
SESSION = SessionHandle(Writer().raw(1, Kind.STRUCT, identifier()).stop().to_bytes())


@pytest.mark.parametrize(
    "raw",
    [
        encode_operation_call("GetOperationStatus", 1, OPERATION),
        encode_operation_call("AMethodOfTheFuture", 1, OPERATION),
        encode_fetch(1, OPERATION, 1_000),
        encode_execute(1, SESSION, "SELECT 1", 5),
        call(Writer().i32(9, 1).raw(1, Kind.STRUCT, OPERATION)).raw,
        call(
            Writer().raw(1, Kind.STRUCT, handle(Writer().binary(2, SECRET).binary(1, GUID).stop().to_bytes()))
        ).raw,
        call(Writer().raw(1, Kind.STRUCT, handle(Writer().i32(5, 1).to_bytes() + identifier()))).raw,
        call(Writer().raw(1, Kind.STRUCT, handle(identifier(GUID + b"x", SECRET + b"yz")))).raw,
        call(Writer().i32(1, 4).raw(1, Kind.STRUCT, OPERATION)).raw,
    ],
    ids=["status", "unknown", "fetch", "execute", "last", "swapped", "more fields", "more bytes", "another type"],
)
def test_a_handle_is_the_same_however_it_is_written(raw: bytes) -> None:
    named = handle_named_by(message(raw))
    assert named is not None
    assert named.identifier == OWN == handle_id_of(OPERATION) == handle_id_of(SESSION)
    spoiled = named.with_handle_overwritten(message(raw))
    again = handle_named_by(spoiled)
    assert again is not None
    assert len(spoiled.raw) == len(raw)
    assert not any(mine == theirs for mine, theirs in zip(OWN, again.identifier, strict=True))
    assert again.with_handle_overwritten(spoiled).raw == raw, "every other byte stays"


@pytest.mark.parametrize(
    "request_",
    [
        Writer().raw(1, Kind.STRUCT, OPERATION).raw(1, Kind.STRUCT, OPERATION),
        Writer().raw(1, Kind.STRUCT, Writer().raw(1, Kind.STRUCT, identifier()).to_bytes() + OPERATION),
        Writer().raw(1, Kind.STRUCT, handle(Writer().binary(1, GUID).to_bytes() + identifier())),
        Writer().raw(1, Kind.STRUCT, handle(Writer().binary(2, SECRET).to_bytes() + identifier())),
        Writer().raw(1, Kind.STRUCT, OPERATION).stop().struct(1).raw(1, Kind.STRUCT, OPERATION),
    ],
    ids=["handles", "identifiers", "names", "secrets", "requests"],
)
def test_a_call_with_two_handles_is_an_error_since_the_server_takes_the_last(request_: Writer) -> None:
    with pytest.raises(RemoteProtocolError, match="twice"):
        handle_named_by(call(request_))


@pytest.mark.parametrize(
    "request_",
    [
        Writer(),
        Writer().i32(1, 9),
        Writer().raw(1, Kind.STRUCT, b"\0"),
        Writer().raw(1, Kind.STRUCT, handle(b"\0")),
        Writer().raw(1, Kind.STRUCT, handle(Writer().binary(1, GUID).stop().to_bytes())),
    ],
    ids=["nothing", "a number", "an empty handle", "an empty identifier", "no secret"],
)
def test_a_call_without_a_handle_names_none(request_: Writer) -> None:
    assert handle_named_by(call(request_)) is None


@given(
    names=st.lists(st.tuples(st.integers(2, 300), st.binary(max_size=4)), max_size=4),
    guid=st.binary(min_size=16, max_size=16),
    secret=st.binary(min_size=16, max_size=16),
    rows=st.integers(-(2**63), 2**63 - 1),
)
def test_the_quick_way_finds_what_reading_field_by_field_finds(
    names: list[tuple[int, bytes]], guid: bytes, secret: bytes, rows: int
) -> None:
    quick = Writer().raw(1, Kind.STRUCT, handle(identifier(guid, secret))).i64(3, rows)
    slow = Writer().raw(1, Kind.STRUCT, handle(identifier(guid, secret))).i64(3, rows)
    for field_id, text in names:
        slow.binary(field_id, text)
    found, read = handle_named_by(call(quick)), handle_named_by(call(slow))
    assert found is not None
    assert read is not None
    assert found.identifier == read.identifier == guid + secret
    assert found.spans == read.spans
    operation, read_operation = decode_operation_of_call(call(quick)), decode_operation_of_call(call(slow))
    assert operation == read_operation
    assert operation is not None
    # An unknown field before it, so that the handle is read field by field.
    other_form = Writer().i32(9, 1).raw(1, Kind.STRUCT, identifier(guid, secret)).stop().to_bytes()
    quick_id, read_id = (operation_id_of(OperationHandle(one)) for one in (handle(operation[0]), other_form))
    assert quick_id == read_id == operation[0] == identifier(guid, secret)
    assert handle_id_of(handle(operation[0])) == handle_id_of(other_form) == guid + secret
