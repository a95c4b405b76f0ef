"""The transport behind a security layer: long messages in threads, in order and bounded, and both ends."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from proxy.config.memory_shares import REPLY_COPIES
from proxy.kerberos.context import Unwrapped
from proxy.kerberos.errors import KerberosError
from proxy.kerberos.security_layer import SecurityLayer
from proxy.net import reply_room
from proxy.net.protected_transport import PIECE_BYTES_MAX, ProtectedTransport, protected_streams
from proxy.net.reply_room import UNBOUNDED, NoReplyRoomError, ReplyPlace, ReplyRoom
from proxy.net.wrapping_threads import THREAD_BYTES_MIN
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.frames import frame

PATIENCE_S = 30.0
LONG = 3 * PIECE_BYTES_MAX
DATA_BYTES_MAX = 64 * 1024 * 1024


@dataclass
class PlayedContext:
    """Marks tokens by their number. Its calls with long data wait for `may_go_on`."""

    is_complete = can_check_integrity = can_encrypt = knows_peer = True
    initiator = ""
    delegated = None
    sent: int = 0
    came: int = 0
    may_go_on: threading.Event = field(default_factory=threading.Event)
    has_begun: threading.Event = field(default_factory=threading.Event)
    users: threading.Lock = field(default_factory=threading.Lock)

    def step(self, token: bytes) -> bytes:
        raise AssertionError(token)

    def wrap(self, data: bytes, *, encrypts: bool) -> bytes:
        assert encrypts
        self._use(data)
        self.sent += 1
        return self.sent.to_bytes(4) + data

    def unwrap(self, token: bytes) -> Unwrapped:
        self._use(token)
        self.came += 1
        if token[:4] != self.came.to_bytes(4):
            raise KerberosError("not this token, or not now")
        return Unwrapped(token[4:], was_encrypted=True)

    def data_bytes_max(self, token_bytes_max: int, *, encrypts: bool) -> int:
        del encrypts
        return token_bytes_max - 4

    def _use(self, data: bytes) -> None:
        assert self.users.acquire(blocking=False), "two use it at once"
        try:
            is_long = len(data) > THREAD_BYTES_MIN + 4
            assert not is_long or threading.current_thread() is not threading.main_thread()
            if is_long:
                self.has_begun.set()
                assert self.may_go_on.wait(PATIENCE_S)
        finally:
            self.users.release()


class User(asyncio.Protocol):
    """The user of the transport."""

    def __init__(self) -> None:
        self.read = bytearray()
        self.events: list[object] = []
        self.on_data: Callable[[bytes], None] = self.read.extend

    def data_received(self, data: bytes) -> None:
        self.on_data(data)

    def has_read(self, count: int) -> bool:
        return len(self.read) >= count

    def has_lost(self) -> bool:
        return any(isinstance(each, tuple) and each[0] == "lost" for each in self.events)

    def eof_received(self) -> None:
        self.events.append(("eof", len(self.read)))

    def connection_lost(self, error: Exception | None) -> None:
        self.events.append(("lost", len(self.read), error))

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")


class Stage:
    """A protected end with its user, and the peer's plain socket with the tokens."""

    def __init__(self, transport: ProtectedTransport, user: User, context: PlayedContext, peer: Any) -> None:
        self.transport, self.user, self.context = transport, user, context
        self.reader, self.writer = peer
        self.tokens = PlayedContext()

    def send(self, *bodies: bytes) -> None:
        """Wrapped as the peer does it."""
        for body in bodies:
            self.tokens.sent += 1
            self.writer.write(frame(self.tokens.sent.to_bytes(4) + body))

    async def read_plain(self, count: int) -> bytes:
        """So many bytes of unwrapped tokens."""
        found = bytearray()
        while len(found) < count:
            token = await self.reader.readexactly(int.from_bytes(await self.reader.readexactly(4)))
            self.tokens.came += 1
            assert token[:4] == self.tokens.came.to_bytes(4)
            found += token[4:]
        return bytes(found)


@asynccontextmanager
async def stage(
    *,
    is_slow: bool = False,
    on_wrapped_bytes: Callable[[int], None] = lambda _: None,
    room: ReplyRoom = UNBOUNDED,
) -> AsyncIterator[Stage]:
    ours, theirs = socket.socketpair()
    user, context = User(), PlayedContext()
    if not is_slow:
        context.may_go_on.set()
    loop = asyncio.get_running_loop()
    inner, _ = await loop.create_connection(lambda: user, sock=ours)
    layer = SecurityLayer(context, encrypts=True, peer_token_bytes_max=1024 * 1024, data_bytes_max=DATA_BYTES_MAX)
    transport = ProtectedTransport(inner, layer, on_wrapped_bytes, room)
    peer = await asyncio.open_connection(sock=theirs, limit=1024)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield Stage(transport, user, context, peer)
    finally:
        context.may_go_on.set()
        transport.abort()
        peer[1].close()
        with suppress(ConnectionError):
            await peer[1].wait_closed()


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - what is waited for tells nobody
        await asyncio.sleep(0.001)


def taking_one(on: Stage) -> Callable[[bytes], None]:
    """A user who pauses after each piece."""

    def take(data: bytes) -> None:
        on.user.read += data
        on.transport.pause_reading()

    return take


def body(number: int, size: int) -> bytes:
    return bytes([number % 256]) * size


SIZES = [5, LONG, 7, 0, THREAD_BYTES_MIN, THREAD_BYTES_MIN + 1, LONG + 1, 1, 1, LONG, 9]


async def test_long_and_short_frames_keep_their_order_both_ways_at_once() -> None:
    frames = [body(number, size) for number, size in enumerate(SIZES)]
    plain = b"".join(map(frame, frames))
    async with stage() as on:
        on.send(*frames)
        for each in frames:
            on.transport.write(frame(each))
        assert await on.read_plain(sum(SIZES)) == b"".join(frames)
        await until(lambda: len(on.user.read) == len(plain))
        assert on.user.read == plain


async def test_the_event_loop_goes_on_while_a_thread_has_a_long_message() -> None:
    async with stage(is_slow=True) as on:
        on.transport.write(frame(body(1, LONG)))
        await until(on.context.has_begun.is_set)
        on.transport.write(frame(b"behind it"))
        on.send(b"a short one")
        await asyncio.sleep(0.05)
        assert not on.user.read, "the layer has one user at a time"
        assert on.transport.get_write_buffer_size() == LONG + 4 + len(frame(b"behind it"))
        on.context.may_go_on.set()
        assert await on.read_plain(LONG + 9) == body(1, LONG) + b"behind it"
        await until(lambda: on.user.read == frame(b"a short one"))


async def test_a_user_that_pauses_gets_a_piece_at_a_time() -> None:
    async with stage() as on:
        on.user.on_data = taking_one(on)
        on.send(body(1, LONG), b"short")
        for pieces in range(1, 4):
            await until(partial(on.user.has_read, pieces * PIECE_BYTES_MAX))
            await asyncio.sleep(0.02)
            assert len(on.user.read) == 4 + pieces * PIECE_BYTES_MAX
            assert not on.transport.is_reading()
            on.transport.resume_reading()
        await until(lambda: on.user.read.endswith(frame(b"short")))


async def test_the_socket_is_not_read_while_a_long_message_waits() -> None:
    async with stage() as on:
        on.transport.pause_reading()
        on.transport.resume_reading()
        on.user.on_data = taking_one(on)
        on.send(body(1, LONG))
        await until(lambda: bool(on.user.read))
        sent = 0
        while sent < DATA_BYTES_MAX and not on.writer.transport.get_write_buffer_size() > 1024 * 1024:
            on.send(body(2, PIECE_BYTES_MAX))
            sent += PIECE_BYTES_MAX
            await asyncio.sleep(0)
        assert sent < DATA_BYTES_MAX / 2
        on.user.on_data = on.user.read.extend
        on.transport.resume_reading()
        await until(lambda: len(on.user.read) == 4 + LONG + sent + 4 * sent // PIECE_BYTES_MAX)


async def test_a_writer_is_paused_by_what_waits_for_a_thread() -> None:
    async with stage(is_slow=True) as on:
        on.transport.set_write_buffer_limits(high=LONG)
        on.transport.write(frame(body(1, LONG - 4)))
        assert on.user.events == []
        on.transport.write(b"\0")
        assert on.user.events == ["pause"]
        on.transport.write(b"\0\0\0")
        on.context.may_go_on.set()
        await on.read_plain(LONG - 4)
        await until(lambda: on.user.events == ["pause", "resume"])


@pytest.mark.parametrize("end", ["close", "write_eof"])
async def test_an_end_comes_behind_all_that_was_written(end: str) -> None:
    async with stage(is_slow=True) as on:
        on.transport.write(frame(body(1, LONG)))
        getattr(on.transport, end)()
        assert on.transport.is_closing() == (end == "close")
        on.context.may_go_on.set()
        assert await on.read_plain(LONG) == body(1, LONG)
        assert await on.reader.read() == b""


async def test_an_abort_waits_for_no_thread() -> None:
    async with stage(is_slow=True) as on:
        on.transport.write(frame(body(1, LONG)))
        await until(on.context.has_begun.is_set)
        on.transport.abort()
        await until(lambda: on.user.events == ["pause", ("lost", 0, None)])
        assert not on.transport.get_write_buffer_size()


@pytest.mark.parametrize("pauses", [False, True])
async def test_the_last_words_of_a_peer_come_before_its_end(pauses: bool) -> None:  # noqa: FBT001
    async with stage(is_slow=True) as on:
        on.send(body(1, LONG), b"last")
        on.writer.close()
        await until(on.context.has_begun.is_set)
        if pauses:
            on.transport.pause_reading()
        on.context.may_go_on.set()
        await asyncio.sleep(0.05)
        assert bool(on.user.read) is not pauses
        on.transport.resume_reading()
        await until(lambda: len(on.user.events) == 2)
        whole = 4 + LONG + 4 + len(b"last")
        assert on.user.events == [("eof", whole), ("lost", whole, None)]


async def test_a_long_token_that_is_wrong_ends_the_connection() -> None:
    async with stage() as on:
        on.tokens.sent = 7
        on.send(body(1, LONG), b"short")
        await until(on.user.has_lost)
        assert not on.user.read
        assert "not this token" in str(on.user.events[0])


async def test_a_frame_that_cannot_be_wrapped_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> bytes:
        raise KerberosError("no key")

    for size in (1, LONG):
        async with stage() as on:
            monkeypatch.setattr(on.context, "wrap", fails)
            on.transport.write(frame(body(1, size)))
            await until(on.user.has_lost)
            assert "cannot be wrapped: no key" in str(on.user.events[-1])


async def test_bytes_that_wait_are_told_until_the_user_has_them() -> None:
    told: list[int] = []
    async with stage(is_slow=True, on_wrapped_bytes=told.append) as on:
        assert on.transport.unread_bytes == 0
        wrapped = frame(b"\0\0\0\1" + body(1, LONG))
        on.tokens.sent = 1
        # The beginning of a token, which nobody can read.
        on.writer.write(wrapped[:1000])
        await until(lambda: on.transport.unread_bytes == 1000)
        on.writer.write(wrapped[1000:])
        await until(on.context.has_begun.is_set)
        assert on.transport.unread_bytes == len(wrapped) - 4, "a thread has the token"
        on.send(b"behind it")
        await until(lambda: sum(told) == len(wrapped) + len(frame(b"\0\0\0\2behind it")))
        on.user.on_data = taking_one(on)
        on.context.may_go_on.set()
        await until(lambda: bool(on.user.read))
        whole = len(frame(body(1, LONG)))
        assert on.transport.unread_bytes == whole - len(on.user.read) + len(frame(b"\0\0\0\2behind it"))
        on.user.on_data = on.user.read.extend
        on.transport.resume_reading()
        await until(lambda: on.user.read.endswith(frame(b"behind it")))
        assert on.transport.unread_bytes == 0


async def test_bytes_of_a_connection_that_ends_wait_no_longer() -> None:
    async with stage() as on:
        on.user.on_data = taking_one(on)
        on.send(body(1, LONG))
        await until(lambda: bool(on.user.read))
        assert on.transport.unread_bytes > PIECE_BYTES_MAX
        on.transport.abort()
        await until(on.user.has_lost)
        assert on.transport.unread_bytes == 0


# --- room for long tokens

# For one token with a long body.
ROOM = REPLY_COPIES * (LONG + 4)


def another_in(room: ReplyRoom, count: int = LONG) -> ReplyPlace:
    """The place of another connection, which has the room."""
    place = ReplyPlace(room, lambda: None, lambda _: None)
    assert place.has_room_for(count)
    return place


async def test_a_long_token_is_not_read_before_it_has_room() -> None:
    room = ReplyRoom(ROOM)
    async with stage(room=room) as on:
        other = another_in(room)
        on.send(b"short", body(1, LONG), b"behind it")
        await until(lambda: bool(on.user.read))
        await asyncio.sleep(0.05)
        assert on.user.read == frame(b"short")
        assert on.transport.unread_bytes <= 2 * PIECE_BYTES_MAX, "TCP has the rest"
        other.leave()
        await until(lambda: on.user.read.endswith(frame(b"behind it")))
        assert room.held_bytes == 0


async def test_a_token_has_room_until_its_user_has_the_last_of_it() -> None:
    room = ReplyRoom(ROOM)
    async with stage(room=room) as on:
        on.user.on_data = taking_one(on)
        on.send(body(1, LONG), body(2, LONG))
        pieces_held = []
        for pieces in range(1, 4):
            await until(partial(on.user.has_read, pieces * PIECE_BYTES_MAX))
            pieces_held.append(room.held_bytes)
            on.transport.resume_reading()
        assert pieces_held == [LONG + 4, LONG + 4, 0]
        on.user.on_data = on.user.read.extend
        on.transport.resume_reading()
        await until(lambda: len(on.user.read) == 2 * (4 + LONG))
        assert room.held_bytes == 0


async def test_a_token_takes_no_room_while_its_user_is_paused() -> None:
    room = ReplyRoom(ROOM)
    async with stage(room=room) as on:
        on.transport.pause_reading()
        on.send(body(1, LONG))
        await asyncio.sleep(0.05)
        assert room.held_bytes == 0


async def test_a_token_that_can_have_no_room_ends_the_connection() -> None:
    async with stage(room=ReplyRoom(ROOM)) as on:
        on.send(body(1, LONG + 1))
        await until(on.user.has_lost)
        assert not on.user.read
        assert isinstance(on.transport.failure, NoReplyRoomError)


@pytest.mark.parametrize("taken", [0, 1])
async def test_a_token_that_stands_still_is_ended_where_another_waits(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_room, "STALLED_S", 0.1)
    room = ReplyRoom(ROOM)
    async with stage(room=room) as on:
        on.user.on_data = taking_one(on)
        if taken:
            on.send(body(1, LONG))
            await until(lambda: bool(on.user.read))
        else:
            on.writer.write(frame(b"\0\0\0\1" + body(1, LONG))[:1000])
            await until(lambda: room.held_bytes > 0)
        await asyncio.sleep(0.2)
        assert not on.user.has_lost()
        other = ReplyPlace(room, lambda: None, lambda _: None)
        assert not other.has_room_for(LONG)
        await until(lambda: other.has_room_for(LONG))
        await until(on.user.has_lost)
        assert isinstance(on.transport.failure, NoReplyRoomError)


@pytest.mark.parametrize("moment", ["waiting", "coming", "unwrapping", "unwrapped"])
@pytest.mark.parametrize("end", ["close", "abort", "gone"])
async def test_a_connection_that_ends_leaves_its_room(moment: str, end: str) -> None:
    room = ReplyRoom(ROOM)
    async with stage(room=room, is_slow=moment == "unwrapping") as on:
        others = [another_in(room)] if moment == "waiting" else []
        on.user.on_data = taking_one(on)
        wrapped = frame(b"\0\0\0\1" + body(1, LONG))
        on.writer.write(wrapped if moment in ("unwrapping", "unwrapped") else wrapped[:1000])
        await until(
            {
                "waiting": lambda: room.waited > 0,
                "coming": lambda: room.held_bytes > 0,
                "unwrapping": on.context.has_begun.is_set,
                "unwrapped": lambda: bool(on.user.read),
            }[moment]
        )
        if end == "gone":
            on.writer.transport.abort()
            on.context.may_go_on.set()
            # The end of a socket that is not read is seen by nobody.
            on.user.on_data = on.user.read.extend
            on.transport.resume_reading()
            for other in others:
                other.leave()
        else:
            getattr(on.transport, end)()
        await until(on.user.has_lost)
        for other in others:
            other.leave()
        assert room.held_bytes == 0
        _ = another_in(room)


async def test_a_connection_that_is_lost_while_its_token_waits_is_told_so() -> None:
    room = ReplyRoom(ROOM)
    async with stage(room=room) as on:
        other = another_in(room)
        on.writer.write(frame(b"\0\0\0\1" + body(1, LONG))[:1000])
        await until(lambda: room.waited > 0)
        on.writer.transport.abort()

        def has_lost() -> bool:
            # Its socket is not read: a write finds out.
            on.transport.write(frame(b"call"))
            return on.user.has_lost()

        await until(has_lost)
        other.leave()
        assert room.held_bytes == 0


async def test_streams_read_and_write_plain_frames() -> None:
    ours, theirs = socket.socketpair()
    _, writer = await asyncio.open_connection(sock=ours)
    peer_reader, peer_writer = await asyncio.open_connection(sock=theirs)
    context = PlayedContext()
    context.may_go_on.set()
    layer = SecurityLayer(context, encrypts=True, peer_token_bytes_max=1024 * 1024, data_bytes_max=DATA_BYTES_MAX)
    reader, plain_writer = protected_streams(writer, layer)
    async with asyncio.timeout(PATIENCE_S):
        plain_writer.write(frame(b"call"))
        await plain_writer.drain()
        assert await peer_reader.readexactly(12) == frame(b"\0\0\0\1call")
        peer_writer.write(frame(b"\0\0\0\1" + body(1, LONG)))
        assert await reader.readexactly(4 + LONG) == frame(body(1, LONG))
        peer_writer.write(frame(b"\0\0\0\1replayed"))
        with pytest.raises(RemoteProtocolError, match="not this token"):
            await reader.read()
        for each in (plain_writer, peer_writer):
            each.close()
        await peer_writer.wait_closed()
    assert writer.is_closing()
