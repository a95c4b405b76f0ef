import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.messages import FramedMessageReader
from proxy.wire.thrift.reader import Reader, read_header
from proxy.wire.thrift.skip import NESTING_MAX, ValueSkipper
from proxy.wire.thrift.types import Kind
from proxy.wire.thrift.writer import Writer

# One of everything that may nest, as the value of a struct field.
NESTED = (
    Writer()
    .i32(1, -7)
    .binary(2, "é".encode())
    .string_map(3, {"a": "b", "c": ""})
    .raw(4, Kind.LIST, struct.pack(">Bi", Kind.I64, 2) + bytes(16))
    .raw(5, Kind.LIST, struct.pack(">Bi", Kind.STRUCT, 2) + Writer().i32(1, 5).stop().to_bytes() + b"\0")
    .raw(6, Kind.MAP, struct.pack(">BBi", 0, 0, 0))
    .raw(7, Kind.SET, struct.pack(">Bi", Kind.STRING, 1) + b"\0\0\0\1x")
    .raw(
        8,
        Kind.MAP,
        struct.pack(">BBi", Kind.I32, Kind.LIST, 1) + b"\0\0\0\1" + struct.pack(">Bi", 3, 2) + b"xy",
    )
    .struct(9)
    .boolean(1, value=True)
    .stop()
    .stop()
    .to_bytes()
)


def test_a_walk_ends_where_the_value_ends_whatever_follows() -> None:
    assert ValueSkipper(Kind.STRUCT, 0).advance(NESTED + b"the next message") == len(NESTED)


def test_a_walk_goes_on_where_the_bytes_ended() -> None:
    walk = ValueSkipper(Kind.STRUCT, 0)
    ends = [walk.advance(NESTED[:length]) for length in range(len(NESTED) + 1)]
    assert ends == [None] * len(NESTED) + [len(NESTED)]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (b"\x0b\0\1\xff\xff\xff\xff", "a string announces -1 bytes"),
        (b"\x0f\0\1\x0b\0\0\0\1\xff\xff\xff\xff", "a string announces -1 bytes"),
        (b"\x0f\0\1\x0b\xff\xff\xff\xff", "announces -1 items"),
        (b"\x0d\0\1\x0b\x0b\x80\0\0\0", "announces -2147483648 items"),
        (b"\x0f\0\1\0\0\0\0\1", "items of type 0"),
        (b"\x07\0\1", "7 is not a Thrift type"),
        # The number of the field is yet to come.
        (b"\x07", "7 is not a Thrift type"),
        (b"\x0c\0\1" * (NESTING_MAX + 1), f"deeper than {NESTING_MAX} levels"),
        ((b"\x0f\0\1" + b"\x0f\0\0\0\1" * NESTING_MAX), f"deeper than {NESTING_MAX} levels"),
    ],
)
def test_a_malformed_value_is_refused_at_once(value: bytes, complaint: str) -> None:
    with pytest.raises(RemoteProtocolError, match=complaint):
        ValueSkipper(Kind.STRUCT, 0).advance(value)


def test_a_list_that_announces_more_than_has_come_waits_and_allocates_nothing() -> None:
    announced = b"\x0f\0\1\x0c\x7f\xff\xff\xff"
    assert ValueSkipper(Kind.STRUCT, 0).advance(announced) is None
    reader = Reader(announced, 3)
    with pytest.raises(IncompleteError):
        reader.list_header()


@given(st.binary(max_size=300))
def test_garbage_ends_in_a_value_a_wait_or_a_complaint(garbage: bytes) -> None:
    reader = FramedMessageReader(message_bytes_max=200)
    reader.feed(garbage)
    with suppress(RemoteProtocolError):
        while reader.next_message() is not None:
            pass


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (b"\0\0\0\x0bOpenSession\1\0\0\0\0\0", "expected a strict binary Thrift message"),
        (b"\x80\x01\x00\x09\0\0\0\1x\0\0\0\0", "message type of 1 to 4, got 9"),
        (b"\x80\x01\x00\x01\x7f\xff\xff\xff", "a string announces 2147483647 bytes, at most 128"),
    ],
)
def test_a_header_of_another_protocol_is_refused(message: bytes, complaint: str) -> None:
    with pytest.raises(RemoteProtocolError, match=complaint):
        read_header(message)
