"""The security layer of one side of a connection: plain frames to wrapped frames, and back.

After a login with QOP auth-int or auth-conf each frame holds one token of GSSAPI. The proxy works on plain frames:
tokens that come are unwrapped, one frame each, and frames that go are cut into tokens that the other side takes.
Hive's transport reads the tokens of a message as one stream, however many they are.

`content` and `wrapped` use the login's context: one thread at a time may be in either. Meanwhile, another thread
may take tokens from the bytes that came.
"""

from __future__ import annotations

from typing import Final

from proxy.kerberos.context import Context
from proxy.kerberos.errors import KerberosError
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.frames import HEADER_BYTES, FrameReader, frame, frame_length

# The data of one token that is sent: long enough that its header hardly counts, short enough that wrapping it
# takes the event loop less than a millisecond.
PIECE_BYTES_MAX: Final = 256 * 1024
# A token is at most this much longer than its data: header, checksum and padding have below 100 bytes with each
# encryption type of RFC 3961, 3962 and 8009.
TOKEN_OVERHEAD_BYTES_MAX: Final = 1024
# With less data in a token the other side could have each reply wrapped byte by byte, at the cost of the event
# loop. Clients take 64 KiB and more (Java, Cyrus).
PIECE_BYTES_MIN: Final = 4 * 1024


class SecurityLayer:
    """Wraps and unwraps the frames of one connection's side."""

    def __init__(
        self, context: Context, *, encrypts: bool, peer_token_bytes_max: int, data_bytes_max: int
    ) -> None:
        """`peer_token_bytes_max` is the longest token for the peer, `data_bytes_max` the most data of one from it.

        Raises KerberosError if the peer's tokens are too short for any use.
        """
        self._context = context
        self._encrypts = encrypts
        fitting = context.data_bytes_max(peer_token_bytes_max, encrypts=encrypts)
        if fitting < PIECE_BYTES_MIN:
            raise KerberosError(
                f"the other side takes tokens of {peer_token_bytes_max} bytes, which is too short: "
                f"{PIECE_BYTES_MIN} bytes of data have to fit into one"
            )
        self._piece_bytes = min(fitting, PIECE_BYTES_MAX)
        self._tokens = FrameReader(data_bytes_max + TOKEN_OVERHEAD_BYTES_MAX)
        # Plain frames that are sent: a header that is cut, and the bytes left of the current frame's body.
        self._header = b""
        self._body_left = 0

    def unwrapped(self, data: bytes) -> bytes:
        """Take bytes that came, cut anywhere, and return the plain frames that they complete.

        Raises RemoteProtocolError for bytes that the other side has not wrapped as agreed, or not now.
        """
        self.feed(data)
        frames: list[bytes] = []
        while (token := self.next_token()) is not None:
            frames.append(frame(self.content(token)))
        return b"".join(frames)

    def feed(self, data: bytes) -> None:
        """Take bytes that came, cut anywhere."""
        self._tokens.feed(data)

    def next_token(self) -> bytes | None:
        """Return the next whole token that came, for `content`. Raises RemoteProtocolError for a false length."""
        return self._tokens.next_frame()

    @property
    def announced_bytes(self) -> int:
        """The length of the next token, as soon as that is known; else 0. Raises RemoteProtocolError as above."""
        return self._tokens.announced_bytes

    @property
    def waiting_bytes(self) -> int:
        """The bytes that came and are in no token yet."""
        return self._tokens.waiting_bytes

    def wrapped(self, data: bytes | memoryview) -> bytes:
        """Take bytes of plain frames, cut anywhere, and return them wrapped. Raises KerberosError."""
        view = memoryview(data)
        if self._header:
            view = memoryview(self._header + bytes(data))
            self._header = b""
        pieces: list[bytes] = []
        while view:
            if not self._body_left:
                if len(view) < HEADER_BYTES:
                    self._header = bytes(view)
                    break
                self._body_left = frame_length(view)
                view = view[HEADER_BYTES:]
                continue
            piece = view[: min(self._body_left, self._piece_bytes)]
            pieces.append(frame(self._context.wrap(bytes(piece), encrypts=self._encrypts)))
            self._body_left -= len(piece)
            view = view[len(piece) :]
        return b"".join(pieces)

    def content(self, token: bytes) -> bytes:
        """Return the data of a token, the body of a plain frame. Raises RemoteProtocolError as `unwrapped`."""
        try:
            data, was_encrypted = self._context.unwrap(token)
        except KerberosError as error:
            raise RemoteProtocolError(f"a frame is not wrapped as the login agreed: {error}") from None
        if self._encrypts and not was_encrypted:
            raise RemoteProtocolError("a frame is not encrypted, although the login agreed on auth-conf")
        return data
