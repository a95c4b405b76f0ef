"""A socket behind a security layer: its users write and read plain frames, the peer sees wrapped ones.

Short messages are wrapped and unwrapped on the event loop, long ones in a thread. At most one thread at a time
uses a layer, and never beside the loop: writes and tokens that come meanwhile wait in their order. Both waits are
bounded: writers are paused as by a full socket, and the socket is not read. The socket is not read either while a
long token has no room (`proxy.net.reply_room`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, cast

from proxy.kerberos.errors import KerberosError
from proxy.kerberos.security_layer import SecurityLayer
from proxy.net.reply_room import UNBOUNDED, NoReplyRoomError, ReplyPlace, ReplyRoom
from proxy.net.sockets import peer_name
from proxy.net.wrapping_threads import THREAD_BYTES_MIN, wrapping_threads
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.frames import HEADER, frame

log = logging.getLogger(__name__)

# Plain bytes that one thread wraps at once, and that the protocol gets in one turn of the loop. As much comes from
# a socket in one read.
PIECE_BYTES_MAX: Final = 256 * 1024
# asyncio's own, until a user sets another.
_UNSENT_BYTES_MAX: Final = 64 * 1024


class ProtectedTransport(asyncio.Transport):
    """Takes a transport's place from the moment on at which both sides wrap."""

    def __init__(
        self,
        inner: asyncio.Transport,
        layer: SecurityLayer,
        on_wrapped_bytes: Callable[[int], None] = lambda _: None,
        room: ReplyRoom = UNBOUNDED,
    ) -> None:
        """`on_wrapped_bytes` is told how many bytes have come; `room` is for long tokens."""
        super().__init__()
        self._on_wrapped_bytes = on_wrapped_bytes
        self._loop = asyncio.get_running_loop()
        self._inner = inner
        self._layer = layer
        self._protocol = inner.get_protocol()
        # True while a thread uses the layer.
        self._is_busy = False
        # Plain bytes that wait to be wrapped; the count includes those that a thread wraps now.
        self._unsent: deque[bytes | memoryview] = deque()
        self._unsent_bytes = 0
        self._unsent_bytes_max = _UNSENT_BYTES_MAX
        self._inner_is_full = self._writer_is_paused = False
        # Called once these bytes are written, to end the writing.
        self._end_of_writing: Callable[[], None] | None = None
        # A long plain frame, in pieces that wait to be read.
        self._unread: deque[memoryview] = deque()
        self._unread_piece_bytes = 0
        # The token that a thread unwraps.
        self._token_bytes = 0
        self._place = ReplyPlace(room, self._go_on_soon, self._give_up)
        self._next_turn: asyncio.Handle | None = None
        self._is_paused = not inner.is_reading()
        self._inner_is_paused = self._is_paused
        # Events of the socket that the protocol is told after what came before them.
        self._has_left = self._has_eof = self._is_lost = self._is_lost_told = False
        # The reason of its end, where there is one.
        self.failure: Exception | None = None
        inner.set_protocol(_Unwrapping(self))

    # --- writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes of plain frames, cut anywhere."""
        if self._is_busy or self._unsent or len(data) > THREAD_BYTES_MIN:
            self._write_later(data)
            return
        try:
            wrapped = self._layer.wrapped(memoryview(data))
        except (KerberosError, RemoteProtocolError) as error:
            self._give_up(_unwrappable(error))
            return
        if wrapped:
            self._inner.write(wrapped)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Write several buffers."""
        for data in list_of_data:
            self.write(data)

    def _write_later(self, data: bytes | bytearray | memoryview) -> None:
        if self._has_left or self._is_lost or not data:
            return
        # A buffer of the caller's may change; bytes and views of bytes do not.
        kept = data if isinstance(data, memoryview) and data.readonly else bytes(data)
        self._unsent.append(kept)
        self._unsent_bytes += len(kept)
        self._pause_or_resume_writer()
        self._wrap_unsent()

    def _wrap_unsent(self) -> None:
        while self._unsent and not self._is_busy:
            view = memoryview(self._unsent.popleft())
            if len(view) > PIECE_BYTES_MAX:
                self._unsent.appendleft(view[PIECE_BYTES_MAX:])
                view = view[:PIECE_BYTES_MAX]
            if len(view) > THREAD_BYTES_MIN:
                self._run(partial(self._layer.wrapped, view), partial(self._wrapped, len(view)))
                return
            try:
                self._wrapped(len(view), self._layer.wrapped(view))
            except (KerberosError, RemoteProtocolError) as error:
                self._give_up(_unwrappable(error))

    def _wrapped(self, plain_bytes: int, wrapped: bytes) -> None:
        if self._inner.is_closing():
            return
        self._unsent_bytes -= plain_bytes
        if wrapped:
            self._inner.write(wrapped)
        self._pause_or_resume_writer()
        if self._end_of_writing is not None and not self._unsent_bytes:
            self._end_of_writing()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set both limits, of bytes before and behind the layer."""
        self._inner.set_write_buffer_limits(high, low)
        self._unsent_bytes_max = _UNSENT_BYTES_MAX if high is None else high

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that wait."""
        return self._unsent_bytes + self._inner.get_write_buffer_size()

    def inner_writable(self, *, on: bool) -> None:
        """The socket takes bytes, or has too many."""
        self._inner_is_full = not on
        self._pause_or_resume_writer()

    def _pause_or_resume_writer(self) -> None:
        limit = self._unsent_bytes_max // 4 if self._writer_is_paused else self._unsent_bytes_max
        pauses = self._inner_is_full or self._unsent_bytes > limit
        if pauses != self._writer_is_paused and not self._is_lost_told:
            self._writer_is_paused = pauses
            (self._protocol.pause_writing if pauses else self._protocol.resume_writing)()

    def can_write_eof(self) -> bool:
        """Pass on."""
        return self._inner.can_write_eof()

    def write_eof(self) -> None:
        """End the stream behind all that has been written."""
        self._end_writing(self._inner.write_eof)

    def _end_writing(self, end: Callable[[], None]) -> None:
        if self._unsent_bytes:
            self._end_of_writing = end
        else:
            end()

    # --- reading

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand plain frames to another protocol from now on."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol that gets plain frames."""
        return self._protocol

    def is_reading(self) -> bool:
        """Return whether the protocol gets what comes."""
        return not self._is_paused and not self.is_closing()

    def pause_reading(self) -> None:
        """Hand over no more."""
        self._is_paused = True
        self._pause_or_resume_inner()

    def resume_reading(self) -> None:
        """Go on. The first bytes come in a later iteration of the loop."""
        self._is_paused = False
        self._go_on_soon()

    @property
    def unread_bytes(self) -> int:
        """Bytes that came and that the protocol has not got: of unfinished tokens, whole ones, and long frames."""
        return self._layer.waiting_bytes + self._token_bytes + self._unread_piece_bytes

    def bytes_came(self, data: bytes) -> None:
        """Wrapped bytes came from the socket."""
        if not self._has_left:
            self._layer.feed(data)
            self._place.moved()
            self._go_on()
            self._on_wrapped_bytes(len(data))

    @property
    def _holds_back(self) -> bool:
        # The last bytes of a lost socket have been read already: a pause cannot keep them for later.
        return self._is_paused and not self._is_lost

    def _go_on_soon(self) -> None:
        if self._next_turn is None:
            self._next_turn = self._loop.call_soon(self._turn_came)

    def _turn_came(self) -> None:
        self._next_turn = None
        self._go_on()

    def _go_on(self) -> None:
        """Do all that can be done now. The protocol must not be the caller: its bytes could lose their order."""
        try:
            if self._unread:
                self._hand_over_a_piece()
            elif not (self._is_busy or self._holds_back or self._has_left):
                self._unwrap_tokens()
        except (RemoteProtocolError, NoReplyRoomError) as error:
            self._give_up(error)
        self._wrap_unsent()
        self._pause_or_resume_inner()
        self._tell_end()

    def _hand_over_a_piece(self) -> None:
        if self._has_left:
            self._unread.clear()
            self._unread_piece_bytes = 0
        elif not self._holds_back:
            piece = bytes(self._unread.popleft())
            self._unread_piece_bytes -= len(piece)
            if self._unread:
                self._place.moved()
            else:
                self._place.leave()
            self._go_on_soon()
            self._hand_over(piece)

    def _unwrap_tokens(self) -> None:
        frames: list[bytes] = []
        while not self._is_busy and self._has_room() and (token := self._layer.next_token()) is not None:
            if len(token) > THREAD_BYTES_MIN:
                self._token_bytes = len(token)
                self._place.rests_with_us()
                self._run(partial(self._layer.content, token), self._unwrapped)
            else:
                frames.append(frame(self._layer.content(token)))
        if frames:
            self._hand_over(b"".join(frames))

    def _has_room(self) -> bool:
        # The last bytes of a lost socket have been read already.
        return self._is_lost or self._place.has_room_for(self._layer.announced_bytes)

    def _unwrapped(self, body: bytes) -> None:
        self._place.unwrapped()
        view = memoryview(body)
        self._unread_piece_bytes += HEADER.size + len(view)
        # The header is joined to the first bytes of the body; the rest is not copied before it is read.
        self._unread.append(memoryview(HEADER.pack(len(body)) + bytes(view[:PIECE_BYTES_MAX])))
        for start in range(PIECE_BYTES_MAX, len(view), PIECE_BYTES_MAX):
            self._unread.append(view[start : start + PIECE_BYTES_MAX])

    def _hand_over(self, frames: bytes) -> None:
        if isinstance(self._protocol, asyncio.Protocol):
            try:
                self._protocol.data_received(frames)
            except BaseException:
                # As the socket's own transport does after a fault of its protocol.
                self.abort()
                raise

    def _pause_or_resume_inner(self) -> None:
        has_enough = bool(self._unread) or (self._is_busy and self._layer.waiting_bytes > 0)
        pauses = self._is_paused or has_enough or self._place.is_waiting
        if pauses != self._inner_is_paused and not self._inner.is_closing():
            self._inner_is_paused = pauses
            (self._inner.pause_reading if pauses else self._inner.resume_reading)()

    # --- threads

    def _run(self, work: Callable[[], bytes], take: Callable[[bytes], None]) -> None:
        """Run something with the layer in a thread, and take its result. The layer is busy until then."""
        self._is_busy = True
        future = self._loop.run_in_executor(wrapping_threads(), work)
        future.add_done_callback(partial(self._ran, take))

    def _ran(self, take: Callable[[bytes], None], done: asyncio.Future[bytes]) -> None:
        self._is_busy = False
        self._token_bytes = 0
        if self._is_lost_told:
            _ = done.cancelled() or done.exception()
            return
        try:
            take(done.result())
        except RemoteProtocolError as error:
            self._give_up(error)
        except KerberosError as error:
            self._give_up(_unwrappable(error))
        except BaseException:
            self.abort()
            raise
        self._go_on()

    # --- the end

    def is_closing(self) -> bool:
        """Return whether it ends."""
        return self._has_left or self._inner.is_closing()

    def close(self) -> None:
        """Send all that has been written, then close."""
        self._leave()
        self._end_writing(self._inner.close)

    def abort(self) -> None:
        """Drop what has not been sent, and close."""
        self._leave()
        self._drop_unsent()
        if not self._is_lost:
            self._inner.abort()

    def _leave(self) -> None:
        """Nothing more is read."""
        self._has_left = True
        self._place.leave()

    def _give_up(self, error: Exception) -> None:
        """End the connection: its layer cannot go on."""
        log.warning("the connection with %s ends: %s", peer_name(self._inner), error)
        self.failure = error
        self.abort()

    def eof_came(self) -> bool:
        """The peer has ended its stream. Returns False once the protocol has read all and ends its own."""
        self._has_eof = True
        self._go_on()
        return not self.is_closing()

    def socket_lost(self, error: Exception | None) -> None:
        """The socket is closed, by either side."""
        self._is_lost = True
        if self._place.is_waiting:
            self._place.leave()
        self.failure = self.failure or error
        self._drop_unsent()
        self._go_on()

    def _drop_unsent(self) -> None:
        self._unsent.clear()
        self._unsent_bytes = 0

    def _tell_end(self) -> None:
        holds_back = self._holds_back or self._place.is_waiting
        waits = self._unread or self._is_busy or self._next_turn or (holds_back and self._layer.waiting_bytes)
        if waits and not self._has_left:
            return
        if self._has_eof and not self.is_closing():
            self._has_eof = False
            if not (isinstance(self._protocol, asyncio.Protocol) and self._protocol.eof_received()):
                self.close()
        if self._is_lost and not self._is_lost_told:
            self._is_lost_told = True
            self._place.leave()
            self._protocol.connection_lost(self.failure)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Pass on."""
        return self._inner.get_extra_info(name, default)


def _unwrappable(error: Exception) -> Exception:
    return KerberosError(f"a frame cannot be wrapped: {error}")


class _Unwrapping(asyncio.Protocol):
    """The socket's own protocol: passes its events on."""

    def __init__(self, transport: ProtectedTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        self._transport.bytes_came(data)

    def eof_received(self) -> bool:
        """The peer has ended its stream."""
        return self._transport.eof_came()

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is closed, by either side."""
        self._transport.socket_lost(error)

    def pause_writing(self) -> None:
        """More bytes than the limit wait to be written."""
        self._transport.inner_writable(on=False)

    def resume_writing(self) -> None:
        """The waiting bytes have been written."""
        self._transport.inner_writable(on=True)


def protected_streams(
    writer: asyncio.StreamWriter, layer: SecurityLayer, room: ReplyRoom = UNBOUNDED
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return streams of plain frames in the place of a writer and its reader, which has been read to its end."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport = ProtectedTransport(cast("asyncio.Transport", writer.transport), layer, room=room)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)
