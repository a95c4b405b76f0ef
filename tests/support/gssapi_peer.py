"""A client and a backend that log in by GSSAPI, made of python-gssapi and RFC 4752 without the proxy's code."""

import asyncio
import struct
from typing import Any

import gssapi

from support.scripted_session import PATIENCE_S, Peer

START, OK, BAD, ERROR, COMPLETE = range(1, 6)
QOPS = {"auth": 1, "auth-int": 2, "auth-conf": 4}
MAXIMUM = 0x10000


class RefusedError(Exception):
    """The other side said why not."""


def name(principal: str) -> Any:
    return gssapi.Name(principal, gssapi.NameType.kerberos_principal)


def initiator(ccache: str, service: str) -> Any:
    """A client's context, by the tickets in a cache."""
    credentials = gssapi.Credentials(usage="initiate", store={"ccache": ccache})
    flags = gssapi.RequirementFlag
    wanted: Any = [
        flags.mutual_authentication,
        flags.integrity,
        flags.confidentiality,
        flags.out_of_sequence_detection,
    ]
    return gssapi.SecurityContext(name=name(service), creds=credentials, usage="initiate", flags=wanted)


class GssPeer:
    """One end of a connection, which speaks frames once it has logged in."""

    def __init__(self, peer: Peer, context: Any) -> None:
        self.peer = peer
        self.context = context
        self.bits = 1
        self._read = b""

    # --- the login

    async def log_in(self, qop: str = "auth", authorization: bytes = b"", mechanism: bytes = b"GSSAPI") -> None:
        """As a client. Raises RefusedError."""
        token = await asyncio.to_thread(self.context.step)
        self.say(START, mechanism)
        self.say(OK, token)
        while not self.context.complete:
            _, token = await self.hear()
            answer = await asyncio.to_thread(self.context.step, token)
            self.say(OK, answer or b"")
        _, offer = await self.hear()
        (self.offered,) = struct.unpack(">I", self.context.unwrap(offer).message)
        self.bits = QOPS[qop]
        chosen = struct.pack(">I", self.bits << 24 | (MAXIMUM if self.bits > 1 else 0)) + authorization
        self.say(COMPLETE, self.context.wrap(chosen, False).message)  # noqa: FBT003
        status, _ = await self.hear()
        assert status == COMPLETE

    async def take_login(self, *qops: str) -> None:
        """As a server."""
        assert await self.hear() == (START, b"GSSAPI")
        _, token = await self.hear()
        answer = await asyncio.to_thread(self.context.step, token)
        assert self.context.complete
        self.say(OK, answer)
        assert await self.hear() == (OK, b"")
        bits = sum(QOPS[qop] for qop in qops)
        self.say(OK, self.context.wrap(struct.pack(">I", bits << 24 | MAXIMUM), False).message)  # noqa: FBT003
        _, token = await self.hear()
        chosen = self.context.unwrap(token).message
        assert len(chosen) == 4
        self.bits = chosen[0]
        self.say(COMPLETE, b"")

    def say(self, status: int, body: bytes) -> None:
        self.peer.send(struct.pack(">BI", status, len(body)) + body)

    async def hear(self) -> tuple[int, bytes]:
        async with asyncio.timeout(PATIENCE_S):
            status, length = struct.unpack(">BI", await self.peer.reader.readexactly(5))
            body = await self.peer.reader.readexactly(length)
        if status in (BAD, ERROR):
            raise RefusedError(body.decode())
        return status, body

    # --- frames

    def send(self, *frames: bytes) -> None:
        """Frames as they stand, or each one's body in a token."""
        for frame in frames:
            self.peer.send(frame if self.bits == 1 else self.wrapped(frame[4:]))

    def wrapped(self, body: bytes, *, encrypts: bool | None = None) -> bytes:
        token = self.context.wrap(body, self.bits == QOPS["auth-conf"] if encrypts is None else encrypts).message
        return struct.pack(">I", len(token)) + bytes(token)

    async def expect(self, frame: bytes) -> None:
        body = await self.read_body(len(frame) - 4)
        assert body == frame[4:]

    async def read_body(self, count: int) -> bytes:
        """So many bytes of messages, from however many frames."""
        while len(self._read) < count:
            body = await self.peer.read_frame()
            if self.bits > 1:
                unwrapped = self.context.unwrap(body)
                assert unwrapped.encrypted is (self.bits == QOPS["auth-conf"])
                assert len(body) <= MAXIMUM
                body = unwrapped.message
            self._read += body
        body, self._read = self._read[:count], self._read[count:]
        return body

    async def read_message(self) -> bytes:
        """The body of one frame that comes."""
        body = await self.peer.read_frame()
        return body if self.bits == 1 else bytes(self.context.unwrap(body).message)
