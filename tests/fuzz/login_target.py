"""Invariants of a login by GSSAPI and of wrapped frames, whatever bytes the client sends.

The context is played: it takes two tokens, wraps by a mark and a number, and knows every mark out of its turn.
"""

import struct

from proxy.kerberos.client_login import GssapiLogin, LoginStep
from proxy.kerberos.context import Unwrapped
from proxy.kerberos.errors import KerberosError
from proxy.kerberos.name_rules import NameRules
from proxy.kerberos.protection import Protection
from proxy.kerberos.security_layer import PIECE_BYTES_MIN, SecurityLayer
from proxy.relay.commands import Close, Command, ConnectBackend, ProtectClient, SendClient, StepLogin
from proxy.relay.handshake import HandshakeStep
from proxy.relay.sasl_termination import SaslTermination
from proxy.wire.sasl import SaslStatus, encode_sasl, plain_response
from proxy.wire.thrift.errors import RemoteProtocolError
from proxy.wire.thrift.frames import FrameReader, frame

# Small, so that short inputs reach the limits: tokens take no more than the shortest that is allowed.
DATA_BYTES_MAX = 600
TOKEN_OVERHEAD_BYTES = 2
TOKEN_BYTES_MAX = PIECE_BYTES_MIN + TOKEN_OVERHEAD_BYTES
PRINCIPAL = "anna@REALM"
FIRST, SECOND = b"first", b"second"
ENCRYPTED, SIGNED = b"E", b"S"


class PlayedContext:
    """Either side of a context."""

    can_check_integrity = can_encrypt = knows_peer = True
    initiator = PRINCIPAL
    delegated = None

    def __init__(self, awaited: tuple[bytes, ...] = (FIRST, SECOND)) -> None:
        self._awaited = list(awaited)
        self._sent = self._came = 0

    @property
    def is_complete(self) -> bool:
        return not self._awaited

    def step(self, token: bytes) -> bytes:
        if not self._awaited or token != self._awaited.pop(0):
            raise KerberosError("not that token")
        return b"answer" + token

    def wrap(self, data: bytes, *, encrypts: bool) -> bytes:
        self._sent += 1
        return (ENCRYPTED if encrypts else SIGNED) + bytes([self._sent % 256]) + data

    def unwrap(self, token: bytes) -> Unwrapped:
        self._came += 1
        if token[:1] not in (ENCRYPTED, SIGNED) or token[1:2] != bytes([self._came % 256]):
            raise KerberosError("not this token, or not now")
        return Unwrapped(token[2:], token[:1] == ENCRYPTED)

    def data_bytes_max(self, token_bytes_max: int, *, encrypts: bool) -> int:
        del encrypts
        return max(0, token_bytes_max - TOKEN_OVERHEAD_BYTES)


class Stage:
    """A connection whose client sends what the fuzzer says, and its shell."""

    def __init__(self) -> None:
        self.handshake = SaslTermination("backend:10000", self._login_by)
        self.context = PlayedContext()
        self.layer: SecurityLayer | None = None
        self.to_client = b""
        self.frames = b""
        self.complaint: str | None = None

    def _login_by(self, mechanism: bytes) -> GssapiLogin:
        if mechanism != b"GSSAPI":
            raise KerberosError("not that mechanism")
        return GssapiLogin(lambda: self.context, set(Protection), NameRules(["DEFAULT"], "REALM"), DATA_BYTES_MAX)

    def client(self, data: bytes) -> None:
        if self._has_logged_in():
            self._take_frames(data)
        elif self.handshake.turn is not HandshakeStep.REFUSED:
            self._carry_out(self.handshake.client_data(data))
            if self._has_logged_in():
                self.frames += self.handshake.client_leftover()

    def _has_logged_in(self) -> bool:
        return self.handshake.turn is HandshakeStep.FRAMES

    def _take_frames(self, data: bytes) -> None:
        if self.complaint is not None:
            return
        try:
            self.frames += data if self.layer is None else self.layer.unwrapped(data)
        except RemoteProtocolError as error:
            self.complaint = str(error)

    def _carry_out(self, commands: list[Command]) -> None:
        for command in commands:
            match command:
                case SendClient(data):
                    self.to_client += data
                case StepLogin(step):
                    self._carry_out(self.handshake.login_stepped(_outcome(step)))
                case ConnectBackend():
                    self._carry_out(self.handshake.backend_connected())
                case ProtectClient(layer):
                    self.layer = layer
                case Close():
                    assert self.handshake.turn is HandshakeStep.REFUSED
                case _:
                    raise AssertionError(command)


def _outcome(step: object) -> LoginStep | KerberosError:
    assert callable(step)
    try:
        result: LoginStep = step()
    except KerberosError as error:
        return error
    return result


def login(data: bytes) -> None:
    """A login and what follows, in pieces of two sizes."""
    size, stream = 1 + (data[0] if data else 0) % 16, data[1:]
    whole, cut = Stage(), Stage()
    whole.client(stream)
    for start in range(0, len(stream), size):
        cut.client(stream[start : start + size])
    if cut.complaint is None:
        # A wrong frame that comes in one piece with the last response is complained of in the negotiation.
        assert (whole.to_client, whole.handshake.turn) == (cut.to_client, cut.handshake.turn)
        assert whole.frames == cut.frames
    for stage in (whole, cut):
        if stage.handshake.turn is HandshakeStep.FRAMES:
            assert stage.context.is_complete
            assert stage.handshake.credentials == plain_response("anna", "anonymous")
            assert stage.to_client.endswith(encode_sasl(SaslStatus.COMPLETE))
        else:
            assert stage.handshake.credentials is None or stage.handshake.turn is HandshakeStep.REFUSED
            assert not stage.frames
            assert stage.layer is None


def wrapped(data: bytes) -> None:
    """Tokens that come in pieces of a size, and plain frames that go in such pieces."""
    size, stream = 1 + (data[0] if data else 0) % 32, data[1:]
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert _unwrapped([stream]) == _unwrapped(pieces)
    layer = _layer(PlayedContext())
    going: list[bytes] = []
    try:
        going += [layer.wrapped(piece) for piece in pieces]
    except RemoteProtocolError:
        return
    assert _bodies(b"".join(going)) == _plain_bodies(stream)


def _layer(context: PlayedContext) -> SecurityLayer:
    return SecurityLayer(
        context, encrypts=True, peer_token_bytes_max=TOKEN_BYTES_MAX, data_bytes_max=DATA_BYTES_MAX
    )


def _unwrapped(pieces: list[bytes]) -> bytes:
    """All frames up to the first complaint."""
    layer, frames = _layer(PlayedContext()), b""
    for piece in pieces:
        # Byte by byte: a complaint takes the frames of its own piece along.
        for byte in piece:
            try:
                frames += layer.unwrapped(bytes([byte]))
            except RemoteProtocolError:
                return frames
    return frames


def _bodies(stream: bytes) -> bytes:
    """The bodies that the peer reads: every token in its turn, encrypted, none longer than it takes."""
    tokens, context, found = FrameReader(TOKEN_BYTES_MAX), PlayedContext(), b""
    tokens.feed(stream)
    while (token := tokens.next_frame()) is not None:
        content = context.unwrap(token)
        assert content.was_encrypted
        found += content.data
    assert tokens.is_empty
    return found


def _plain_bodies(stream: bytes) -> bytes:
    """The bodies of plain frames, also of the one that is cut."""
    found = b""
    while len(stream) >= 4:
        (length,) = struct.unpack_from(">I", stream)
        found += stream[4 : 4 + length]
        stream = stream[4 + length :]
    return found


def wrapped_by_peer(frames: bytes) -> bytes:
    """Frames that were captured, each in a token."""
    context, going = PlayedContext(), b""
    while len(frames) >= 4:
        (length,) = struct.unpack_from(">I", frames)
        going += frame(context.wrap(frames[4 : 4 + length], encrypts=True))
        frames = frames[4 + length :]
    return going


def _honest(protection: Protection) -> bytes:
    """A whole login, and two frames behind it."""
    context = PlayedContext()
    selection = struct.pack(">I", protection.bit << 24 | (TOKEN_BYTES_MAX if protection.bit > 1 else 0))
    said = encode_sasl(SaslStatus.START, b"GSSAPI") + encode_sasl(SaslStatus.OK, FIRST)
    said += encode_sasl(SaslStatus.OK, SECOND) + encode_sasl(SaslStatus.OK)
    said += encode_sasl(SaslStatus.COMPLETE, context.wrap(selection, encrypts=False))
    for body in (b"one call", b"another"):
        said += frame(body if protection is Protection.AUTH else context.wrap(body, encrypts=protection.encrypts))
    return said


LOGINS = [b"\x05" + _honest(protection) for protection in Protection]
