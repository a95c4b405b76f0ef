"""What must hold of the parsers of the wire, whatever bytes they are given.

A target takes bytes and raises where a parser is at fault: an error that is not declared, an answer that depends
on the pieces that the bytes came in, a byte lost, or more kept than has come.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from proxy.wire.hs2.result_set import UnreadableError, decode_fetch_reply, decode_metadata_reply
from proxy.wire.reply_stream import (
    Forward,
    FramedReplyStream,
    Handling,
    PendingCall,
    ReplyEnd,
    ReplyEvent,
    ReplyStream,
    ReplyTooLong,
    SyncLost,
)
from proxy.wire.sasl import SaslReader, encode_sasl
from proxy.wire.thrift.errors import IncompleteError, RemoteProtocolError
from proxy.wire.thrift.frames import HEADER_BYTES, FrameReader, frame
from proxy.wire.thrift.messages import FramedMessageReader, UnframedMessageReader
from proxy.wire.thrift.reader import Reader
from proxy.wire.thrift.skip import ValueSkipper
from proxy.wire.thrift.types import Kind
from proxy.wire.unframed_reply_stream import UnframedReplyStream

# Small, so that short inputs reach the limits.
FRAME_BYTES_MAX = 600
COPY_BYTES_MAX = 100
CALLS_MAX = 8

_HANDLINGS = tuple(Handling)


class _Reader(Protocol):
    def feed(self, data: bytes) -> None: ...

    def leftover(self) -> bytes: ...


AnyReader = TypeVar("AnyReader", bound=_Reader)


def pieces(data: bytes) -> Iterator[bytes]:
    """The bytes behind the first one, in pieces of a size that the first one says."""
    size = 1 + data[0] % 32 if data else 1
    for start in range(1, len(data), size):
        yield data[start : start + size]


def _read(
    reader: AnyReader, next_one: Callable[[AnyReader], bytes | None], chunks: Iterable[bytes]
) -> tuple[list[bytes], str | None]:
    """What a reader hands out, and the complaint that ended it."""
    found: list[bytes] = []
    fed_bytes = 0
    for chunk in chunks:
        reader.feed(chunk)
        fed_bytes += len(chunk)
        try:
            while (one := next_one(reader)) is not None:
                found.append(one)
        except RemoteProtocolError as error:
            return found, str(error)
        assert len(reader.leftover()) <= fed_bytes + HEADER_BYTES, "more is kept than has come"
    return found, None


def _read_in_any_pieces(
    make: Callable[[], AnyReader], next_one: Callable[[AnyReader], bytes | None], data: bytes
) -> tuple[list[bytes], bytes | None]:
    """What a reader hands out of the bytes at once, which has to be the same in pieces, and what it keeps."""
    at_once, in_pieces = make(), make()
    found, complaint = _read(at_once, next_one, [data[1:]])
    found_in_pieces, other_complaint = _read(in_pieces, next_one, pieces(data))
    # What is wrong in two ways may be told by either.
    assert (found, complaint is None) == (found_in_pieces, other_complaint is None)
    if complaint is not None:
        return found, None
    assert at_once.leftover() == in_pieces.leftover()
    return found, at_once.leftover()


def _sasl_message(reader: SaslReader) -> bytes | None:
    message = reader.next_message()
    return None if message is None else encode_sasl(message.status, message.body)


def sasl(data: bytes) -> None:
    """Messages are the bytes that came, in order."""
    found, rest = _read_in_any_pieces(SaslReader, _sasl_message, data)
    assert rest is None or b"".join(found) + rest == data[1:]


def frames(data: bytes) -> None:
    """Frames are the bytes that came, in order, and none is too long."""
    found, rest = _read_in_any_pieces(lambda: FrameReader(FRAME_BYTES_MAX), FrameReader.next_frame, data)
    assert all(len(body) <= FRAME_BYTES_MAX for body in found)
    assert rest is None or b"".join(map(frame, found)) + rest == data[1:]


def _message(reader: FramedMessageReader | UnframedMessageReader) -> bytes | None:
    message = reader.next_message()
    return None if message is None else message.raw


def messages(data: bytes) -> None:
    """Messages are what the frames hold, in order, and none is too long."""
    found, rest = _read_in_any_pieces(lambda: FramedMessageReader(FRAME_BYTES_MAX), _message, data)
    assert all(len(raw) <= FRAME_BYTES_MAX for raw in found)
    assert rest is None or b"".join(found) + _bodies(rest) == _bodies(data[1:])


def plain_messages(data: bytes) -> None:
    """The same without frames."""
    found, rest = _read_in_any_pieces(lambda: UnframedMessageReader(FRAME_BYTES_MAX), _message, data)
    assert all(len(raw) <= FRAME_BYTES_MAX for raw in found)
    assert rest is None or b"".join(found) + rest == data[1:]


def _bodies(stream: bytes) -> bytes:
    """What is in the whole frames of a stream, and the frame that is left unfinished."""
    reader = FrameReader(len(stream) + (1 << 31))
    found, _ = _read(reader, FrameReader.next_frame, [stream])
    return b"".join((*found, reader.leftover()))


def walk(data: bytes) -> None:
    """A value ends at the same place, whether its bytes come at once or one after the other."""
    end = _walked([data])
    assert end == _walked(data[:stop] for stop in range(len(data) + 1))
    if isinstance(end, int):
        assert Reader(data).skip(Kind.STRUCT) == data[:end]


def _walked(growing: Iterable[bytes]) -> int | str | None:
    walk = ValueSkipper(Kind.STRUCT, 0)
    try:
        return next((end for view in growing if (end := walk.advance(view)) is not None), None)
    except RemoteProtocolError as error:
        return str(error)


def rows(data: bytes) -> None:
    """A batch is read or refused, and has no more values than there are bytes."""
    try:
        batch = decode_fetch_reply(Reader(data))
    except (RemoteProtocolError, IncompleteError, UnreadableError):
        return
    assert sum(map(len, batch.columns)) <= len(data)


def metadata(data: bytes) -> None:
    """A schema is read or refused, and has no more columns than there are bytes."""
    try:
        schema = decode_metadata_reply(Reader(data))
    except (RemoteProtocolError, IncompleteError, UnreadableError):
        return
    assert len(schema.columns) <= len(data)


def follower(data: bytes) -> None:
    """Replies reach the client whole and in order, but for ours, whatever is in them."""
    _follow(FramedReplyStream, frame, data)


def plain_follower(data: bytes) -> None:
    """The same without frames."""
    _follow(UnframedReplyStream, bytes, data)


def _follow(make: Callable[[], ReplyStream], sent: Callable[[bytes], bytes], data: bytes) -> None:
    count = data[0] % CALLS_MAX if data else 0
    calls, stream = data[1 : 1 + count], data[1 + count :]
    at_once, in_pieces = _expecting(make(), calls), _expecting(make(), calls)
    events = at_once.feed(stream)
    if at_once.awaits_own_reply() and any(isinstance(event, SyncLost) for event in events):
        return  # the connection is closed, and no more of it reaches the client
    assert _told(events) == _told(
        [event for piece in pieces(data[:1] + stream) for event in in_pieces.feed(piece)]
    )
    assert at_once.pending_count == in_pieces.pending_count
    assert at_once.stop_following() == in_pieces.stop_following()
    _check_nothing_is_lost(events, sent, stream)


def _expecting(found: ReplyStream, calls: bytes) -> ReplyStream:
    for number in calls:
        found.expect(PendingCall(_HANDLINGS[number % len(_HANDLINGS)], "any", number, COPY_BYTES_MAX))
    return found


def _told(events: list[ReplyEvent]) -> tuple[bytes, list[tuple[ReplyEvent, int | None]]]:
    """The events without their cuts: what is forwarded, and the rest with where it was told.

    What makes no sense in the middle of a message is noticed before or after what stands ahead of it has passed,
    or would have been too long to be kept.
    """
    forwarded, is_lost = b"", any(isinstance(event, SyncLost) for event in events)
    told: list[tuple[ReplyEvent, int | None]] = []
    for event in events:
        if isinstance(event, Forward):
            forwarded += bytes(event.data)
        elif not (is_lost and isinstance(event, ReplyTooLong)):
            told.append((event, None if isinstance(event, SyncLost) else len(forwarded)))
    return forwarded, told


def _check_nothing_is_lost(events: list[ReplyEvent], sent: Callable[[bytes], bytes], stream: bytes) -> None:
    """What was forwarded and what was kept back make up the stream, as far as it has been followed."""
    passed = b""
    for event in events:
        match event:
            case Forward(passing):
                passed += bytes(passing)
            case ReplyEnd(call, None) if call.handling is Handling.OURS:
                return  # too long to be copied, and gone
            case ReplyEnd(call, bytes() as raw) if call.handling is Handling.WATCH:
                assert passed.endswith(sent(raw))
            case ReplyEnd(_, bytes() as raw):
                assert len(raw) <= COPY_BYTES_MAX
                passed += sent(raw)
    assert stream.startswith(passed)
