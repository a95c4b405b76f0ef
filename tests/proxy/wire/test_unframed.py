import struct
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.wire_vectors import CLIENTS, byte_by_byte, captured, every_chunking, read_all

from proxy.wire.reply_stream import (
    Forward,
    FramedReplyStream,
    Handling,
    PendingCall,
    ReplyEnd,
    ReplyEvent,
    ReplyStream,
    SyncLost,
)
from proxy.wire.sasl import SaslReader
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.frames import FrameReader, frame
from proxy.wire.thrift.messages import CALL_VALUES_MAX, FramedMessageReader, UnframedMessageReader
from proxy.wire.thrift.skip import ValueSkipper
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer
from proxy.wire.unframed_reply_stream import UnframedReplyStream

Chunks = Callable[[bytes], Iterator[bytes]]


def bodies(client: str, side: str) -> list[bytes]:
    """The messages of a captured connection, without its negotiation and without their frames."""
    sasl, frames = SaslReader(), FrameReader(frame_bytes_max=10_000)
    sasl.feed(captured(f"{client}_{side}"))
    for _ in range(1 if side == "server" else 2):
        sasl.next_message()
    return read_all(iter([sasl.leftover()]), frames.feed, frames.next_frame)


def column(strings: int, width: int) -> bytes:
    """A reply with one column of text, as FetchResults has them."""
    text = struct.pack(">i", width) + b"x" * width
    listed = struct.pack(">Bi", Kind.STRING, strings) + text * strings
    reply = Writer().header("FetchResults", MessageType.REPLY, 1).struct(0)
    return reply.raw(1, Kind.LIST, listed).stop().stop().to_bytes()


def follow(
    follower: ReplyStream, handling: Handling, *chunks: bytes, copy_bytes_max: int = 10_000
) -> list[ReplyEvent]:
    follower.expect(PendingCall(handling, "FetchResults", 1, copy_bytes_max))
    return [event for chunk in chunks for event in follower.feed(chunk)]


def forwarded(events: list[ReplyEvent]) -> bytes:
    return b"".join(event.data for event in events if isinstance(event, Forward))


@every_chunking
@pytest.mark.parametrize("client", CLIENTS)
def test_a_clients_calls_without_frames_read_the_same_in_any_chunks(client: str, chunks: Chunks) -> None:
    reader, raw = UnframedMessageReader(message_bytes_max=1000), bodies(client, "client")
    messages = read_all(chunks(b"".join(raw)), reader.feed, reader.next_message)
    assert [message.raw for message in messages] == raw
    assert reader.is_between_messages


def bare(message: bytes) -> bytes:
    return message


# A stream of replies, how the server writes each of them, and how the client gets it.
each_stream = pytest.mark.parametrize(
    ("make", "written", "got"),
    [
        (UnframedReplyStream, bare, bare),
        (FramedReplyStream, frame, frame),
        # A server may send empty frames.
        (partial(FramedReplyStream, strips_headers=True), lambda body: frame(b"") + frame(body), bare),
    ],
    ids=["unframed", "framed", "stripped"],
)
Written = Callable[[bytes], bytes]


def handled(follower: ReplyStream, handlings: list[Handling], chunks: Iterator[bytes]) -> list[ReplyEvent]:
    for handling in handlings:
        follower.expect(PendingCall(handling, "any", 0, copy_bytes_max=1000))
    return [event for chunk in chunks for event in follower.feed(chunk)]


@each_stream
@every_chunking
@pytest.mark.parametrize("client", CLIENTS)
def test_replies_are_forwarded_and_watched_ones_also_read(
    client: str, chunks: Chunks, make: Callable[[], ReplyStream], written: Written, got: Written
) -> None:
    raw, follower = bodies(client, "server"), make()
    handlings = [Handling.WATCH if place % 2 else Handling.RELAY for place in range(len(raw))]
    events = handled(follower, handlings, chunks(b"".join(map(written, raw))))
    assert forwarded(events) == b"".join(map(got, raw))
    assert [event.raw for event in events if isinstance(event, ReplyEnd)] == raw[1::2]
    assert follower.pending_count == 0


@each_stream
@every_chunking
def test_a_reply_of_ours_is_taken_out_from_between_two_of_the_clients(
    chunks: Chunks, make: Callable[[], ReplyStream], written: Written, got: Written
) -> None:
    first, ours, third = column(3, 5), column(1, 1), column(0, 0)
    stream = b"".join(map(written, (first, ours, third)))
    events = handled(make(), [Handling.RELAY, Handling.OURS, Handling.RELAY], chunks(stream))
    assert forwarded(events) == got(first) + got(third)
    assert [event.raw for event in events if isinstance(event, ReplyEnd)] == [ours]


@every_chunking
def test_a_reply_that_is_kept_back_reaches_nobody(chunks: Chunks) -> None:
    kept = column(3, 5)
    events = follow(UnframedReplyStream(), Handling.KEEP, *chunks(kept))
    assert events == [ReplyEnd(PendingCall(Handling.KEEP, "FetchResults", 1, 10_000), kept, 0)]


@pytest.mark.parametrize("handling", [Handling.KEEP, Handling.WATCH, Handling.OURS])
def test_a_reply_that_is_too_long_to_be_read_is_forwarded_whole_unless_it_is_ours(handling: Handling) -> None:
    long = column(30, 5)
    events = follow(UnframedReplyStream(), handling, *byte_by_byte(long), copy_bytes_max=100)
    assert forwarded(events) == (b"" if handling is Handling.OURS else long)
    assert events[-1] == ReplyEnd(PendingCall(handling, "FetchResults", 1, 100), None, 0)


@pytest.mark.parametrize(
    ("follower", "surprise"), [(UnframedReplyStream(), column(1, 1)), (FramedReplyStream(), frame(b"x"))]
)
def test_a_message_that_answers_no_call_ends_the_following_but_not_the_forwarding(
    follower: ReplyStream, surprise: bytes
) -> None:
    lost, forward = follower.feed(surprise)
    assert isinstance(lost, SyncLost)
    assert forward == Forward(surprise)
    assert follower.feed(b"more") == [Forward(b"more")]


def test_what_was_kept_back_goes_first_where_the_rest_of_it_cannot_be_followed() -> None:
    # A struct's first field has a type that there is not.
    start, rest = column(1, 1)[:24], b"\x63 and more"
    events = follow(UnframedReplyStream(), Handling.KEEP, start, rest)
    assert isinstance(events[0], SyncLost)
    assert forwarded(events) == start + rest


def test_bytes_of_a_long_value_take_the_fast_path_up_to_its_last() -> None:
    follower, message = UnframedReplyStream(), column(1, 1000)
    follow(follower, Handling.RELAY, message[:100])
    left = len(message) - 100 - 2
    assert follower.try_pass(left - 1)
    assert not follower.try_pass(1), "behind the value stands what ends the message"
    assert follower.feed(message[-3:]) == [Forward(message[-3:])]
    assert follower.pending_count == 0


def test_a_column_of_ten_megabytes_goes_on_as_it_comes() -> None:
    follower, message = UnframedReplyStream(), column(1_000_000, 6)
    follower.expect(PendingCall(Handling.RELAY, "FetchResults", 1))
    behind = passed = 0
    for start in range(0, len(message), 65_521):
        chunk = message[start : start + 65_521]
        passed += len(chunk) if follower.try_pass(len(chunk)) else len(forwarded(follower.feed(chunk)))
        behind = max(behind, start + len(chunk) - passed)
    assert passed == len(message)
    assert behind <= 5, "no more than the start of a length waits"


values = st.recursive(
    st.sampled_from([(Kind.I32, b"\0\0\0\7"), (Kind.BOOL, b"\1"), (Kind.I64, b"12345678")])
    | st.binary(max_size=40).map(lambda text: (Kind.STRING, struct.pack(">i", len(text)) + text)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(
            lambda fields: (
                Kind.STRUCT,
                b"".join(struct.pack(">Bh", kind, 9) + encoded for kind, encoded in fields) + b"\0",
            )
        ),
        st.tuples(inner, st.integers(0, 5)).map(
            lambda item: (Kind.LIST, struct.pack(">Bi", item[0][0], item[1]) + item[0][1] * item[1])
        ),
        st.tuples(inner, inner, st.integers(0, 4)).map(
            lambda entry: (
                Kind.MAP,
                struct.pack(">BBi", entry[0][0], entry[1][0], entry[2]) + (entry[0][1] + entry[1][1]) * entry[2],
            )
        ),
    ),
    max_leaves=12,
)


@given(st.lists(values, min_size=1, max_size=4), st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_messages_of_any_shape_end_where_they_end_in_any_chunks(
    shapes: list[tuple[Kind, bytes]], sizes: list[int]
) -> None:
    raw = [
        Writer().header("any", MessageType.REPLY, 1).raw(1, kind, encoded).stop().to_bytes()
        for kind, encoded in shapes
    ]
    stream, start = b"".join(raw), 0
    chunks: list[bytes] = []
    while start < len(stream):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(stream[start : start + size])
        start += size
    follower, reader = UnframedReplyStream(), UnframedMessageReader(message_bytes_max=len(stream))
    for _ in raw:
        follower.expect(PendingCall(Handling.WATCH, "any", 1, copy_bytes_max=len(stream)))
    events = [event for chunk in chunks for event in follower.feed(chunk)]
    assert [event.raw for event in events if isinstance(event, ReplyEnd)] == raw
    assert forwarded(events) == stream
    assert [message.raw for message in read_all(iter(chunks), reader.feed, reader.next_message)] == raw


@given(st.lists(st.binary(max_size=200), max_size=8))
def test_garbage_from_a_backend_without_frames_is_forwarded_whole(chunks: list[bytes]) -> None:
    follower = UnframedReplyStream()
    events = follow(follower, Handling.KEEP, *chunks)
    assert forwarded(events) + follower.stop_following() == b"".join(chunks)


@pytest.mark.parametrize(
    "reader", [FramedMessageReader(1000), UnframedMessageReader(1000)], ids=["framed", "unframed"]
)
def test_a_string_that_a_message_has_no_room_for_is_refused_before_it_comes(
    reader: FramedMessageReader | UnframedMessageReader,
) -> None:
    call = Writer().header("ExecuteStatement", MessageType.CALL, 1).to_bytes() + b"\x0b\0\1\0\0\x10\0"
    reader.feed(frame(call) if isinstance(reader, FramedMessageReader) else call)
    with pytest.raises(RemoteProtocolError, match="grew past the 1000 bytes"):
        reader.next_message()


@pytest.mark.parametrize(
    "announced",
    [
        b"\x0f\0\1" + struct.pack(">Bi", Kind.STRUCT, CALL_VALUES_MAX + 1),
        b"\x0d\0\1" + struct.pack(">BBi", Kind.STRING, Kind.STRING, CALL_VALUES_MAX // 2 + 1),
        b"\x0e\0\1" + struct.pack(">Bi", Kind.STRING, 0x7FFF_FFFF),
    ],
    ids=["list", "map", "set"],
)
def test_more_values_than_a_call_may_have_are_refused_as_they_are_announced(announced: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="more values than"):
        ValueSkipper(Kind.STRUCT, 0, CALL_VALUES_MAX).advance(announced)


def test_a_call_made_of_fields_alone_is_refused_where_they_are_too_many() -> None:
    with pytest.raises(RemoteProtocolError, match="more values than"):
        ValueSkipper(Kind.STRUCT, 0, 100).advance(b"\2\0\1\1" * 101)
