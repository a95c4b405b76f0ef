from collections.abc import Callable, Iterator

import pytest
from support.split_streams import NEGOTIATION, split_client
from support.wire_vectors import CLIENTS, every_chunking, read_all

from proxy.wire.reply_stream import FramedReplyStream, Handling, PendingCall, ReplyEnd
from proxy.wire.sasl import SASL_BODY_BYTES_MAX, SaslReader
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.frames import FrameReader, frame
from proxy.wire.thrift.messages import FramedMessageReader

Chunks = Callable[[bytes], Iterator[bytes]]

CALLS = {
    "pyhive": [
        *("OpenSession", "ExecuteStatement", "CloseOperation", "ExecuteStatement", "FetchResults"),
        *("GetResultSetMetadata", "FetchResults", "CloseSession"),
    ],
    "beeline": [
        *("OpenSession", "GetInfo", "GetInfo", "ExecuteStatement", "GetOperationStatus"),
        *("GetResultSetMetadata", "GetOperationStatus", "FetchResults", "GetOperationStatus"),
        *("GetOperationStatus", "GetOperationStatus", "FetchResults", "CloseOperation", "CloseSession"),
    ],
}


@every_chunking
@pytest.mark.parametrize("client", CLIENTS)
def test_a_clients_negotiation_reads_the_same_in_any_chunks(client: str, chunks: Chunks) -> None:
    reader = SaslReader()
    sasl, _ = split_client(client)
    messages = read_all(chunks(sasl), reader.feed, reader.next_message)
    assert [(message.status, message.body) for message in messages] == NEGOTIATION[client]
    assert reader.leftover() == b""


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_glued_to_the_negotiation_is_left_over(client: str) -> None:
    reader = SaslReader()
    sasl, frames = split_client(client)
    reader.feed(sasl + frames)
    assert [reader.next_message() is not None for _ in NEGOTIATION[client]] == [True, True]
    assert reader.leftover() == frames


@every_chunking
@pytest.mark.parametrize("client", CLIENTS)
def test_a_clients_calls_read_the_same_in_any_chunks(client: str, chunks: Chunks) -> None:
    reader = FramedMessageReader(message_bytes_max=1000)
    _, frames = split_client(client)
    messages = read_all(chunks(frames), reader.feed, reader.next_message)
    assert [message.header.name for message in messages] == CALLS[client]
    assert b"".join(frame(message.raw) for message in messages) == frames


@every_chunking
@pytest.mark.parametrize("client", CLIENTS)
def test_messages_need_not_match_frames(client: str, chunks: Chunks) -> None:
    _, frames = split_client(client)
    reader = FramedMessageReader(message_bytes_max=1000)
    raw = [message.raw for message in read_all(iter([frames]), reader.feed, reader.next_message)]
    glued = b"".join(raw)
    for frame_bytes in (len(glued), 5):
        cut = [glued[start : start + frame_bytes] for start in range(0, len(glued), frame_bytes)]
        stream = b"".join(frame(part) for part in cut)
        reader = FramedMessageReader(message_bytes_max=len(glued))
        messages = read_all(chunks(stream), reader.feed, reader.next_message)
        assert [message.raw for message in messages] == raw


def test_a_reply_longer_than_its_copy_may_be_is_followed_without_a_copy() -> None:
    follower = FramedReplyStream()
    follower.expect(PendingCall(Handling.OURS, "any", 0, copy_bytes_max=3))
    (event,) = follower.feed(frame(b"long"))
    assert isinstance(event, ReplyEnd)
    assert event.raw is None


def test_an_empty_frame_answers_no_call() -> None:
    follower = FramedReplyStream()
    follower.expect(PendingCall(Handling.WATCH, "any", 0, copy_bytes_max=100))
    follower.feed(frame(b""))
    assert follower.pending_count == 1
    assert follower.feed(frame(b"it"))[-1] == ReplyEnd(PendingCall(Handling.WATCH, "any", 0, 100), b"it", 0)


def test_only_the_middle_of_a_relayed_frame_takes_the_fast_path() -> None:
    follower = FramedReplyStream()
    follower.expect(PendingCall(Handling.RELAY, "any", 0))
    assert not follower.try_pass(1)
    follower.feed(frame(b"x" * 100)[:50])
    assert follower.try_pass(53)
    assert not follower.try_pass(1), "the last byte ends the frame, which has to be noticed"


@pytest.mark.parametrize("header", [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x0b"])
def test_a_frame_length_past_the_limit_is_refused_before_its_body_comes(header: bytes) -> None:
    reader = FrameReader(frame_bytes_max=10)
    reader.feed(header)
    with pytest.raises(RemoteProtocolError, match="a frame announces"):
        reader.next_frame()


def test_a_message_over_many_frames_has_the_same_limit() -> None:
    reader = FramedMessageReader(message_bytes_max=20)
    reader.feed(frame(b"\x80\x01\x00\x01\x00\x00\x00\x40") + frame(b"x" * 13))
    with pytest.raises(RemoteProtocolError, match="grew past the 20 bytes"):
        reader.next_message()


@pytest.mark.parametrize(
    ("received", "complaint"),
    [
        (b"GET / HTTP/1.1\r\n", "got a first byte of 0x47"),
        (b"\x01\x7f\xff\xff\xff", f"at most {SASL_BODY_BYTES_MAX} are accepted"),
    ],
)
def test_what_is_no_sasl_message_is_refused_with_a_sentence(received: bytes, complaint: str) -> None:
    reader = SaslReader()
    reader.feed(received)
    with pytest.raises(RemoteProtocolError, match=complaint):
        reader.next_message()
