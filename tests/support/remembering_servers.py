"""Backends over HTTP or SASL, each of which knows its own sessions alone, and a proxy in front of them."""

import asyncio
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import count
from typing import Any

from proxy.backends.pool import BackendPool, PoolSettings
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember
from proxy.config.endpoints import Listener, Transport, UpstreamSection
from proxy.http.exchange import message_of
from proxy.operations.session_port import SessionOpening
from proxy.server import Proxy
from proxy.wire.hs2.calls import OperationHandle, SessionHandle
from proxy.wire.hs2.handles import HandleId, handle_id_of, handle_named_by
from proxy.wire.hs2.replies import decode_session_reply, expect_reply, open_reply
from proxy.wire.sasl import SaslStatus, plain_start
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.writer import Writer
from support.backend_farm import Clock, Mood, StandIn
from support.http_stage import Asked, HttpBackend, Stage, Tls, basic, message, ok, response
from support.relay_dialogue import ACCEPTED, close_session, execute, executed, open_session, reply, session_opened
from support.scripted_session import HOST, Peer, Rewriter, StandInServer
from support.server_config import server_config

UNKNOWN = 3
_NUMBERS = count(1)


def new_handle() -> bytes:
    """One as servers give them: two times sixteen bytes, never twice the same."""
    guid = next(_NUMBERS).to_bytes(16)
    return Writer().struct(1).binary(1, guid).binary(2, b"a secret of 16 b").stop().i32(2, 1).stop().to_bytes()


def session_in(framed: bytes) -> SessionHandle:
    """The session that a reply to OpenSession tells of."""
    raw = framed[4:]
    session = decode_session_reply(open_reply(raw, expect_reply(raw, "OpenSession", 1))).session
    assert session is not None
    return session


class Known:
    """What a server has given out, and what it has been asked about."""

    def __init__(self) -> None:
        self.handles: set[HandleId] = set()
        self.calls: list[str] = []
        self.strangers = 0

    def answer(self, raw: bytes) -> bytes:
        """The reply to a call, in a frame."""
        call = message_of(raw)
        name, seqid = call.header.name, call.header.seqid
        self.calls.append(name)
        if name == "OpenSession":
            session = SessionHandle(new_handle())
            self._give(session)
            return session_opened(seqid, session=session)
        named = handle_named_by(call)
        if named is not None and named.identifier not in self.handles:
            self.strangers += 1
            return reply(name, seqid, status=UNKNOWN, message="Invalid SessionHandle")
        if name == "CloseSession" and named is not None:
            self.handles.discard(named.identifier)
        if name == "ExecuteStatement":
            operation = OperationHandle(new_handle())
            self._give(operation)
            return executed(seqid, operation)
        return reply(name, seqid)

    def _give(self, handle: bytes) -> None:
        identifier = handle_id_of(handle)
        assert identifier is not None
        self.handles.add(identifier)


class HttpServer:
    """One that speaks HTTP, takes every password but "wrong", and gives each login a cookie of its own."""

    def __init__(self) -> None:
        self.known = Known()
        self.asked: list[Asked] = []
        # Reads and says nothing.
        self.is_slow = False
        self._played = HttpBackend()
        self._server: StandInServer | None = None
        self._answering: asyncio.Task[None] | None = None
        self._port = 0

    @property
    def member(self) -> PoolMember:
        return PoolMember(Address(HOST, self._port))

    @property
    def cookie(self) -> str:
        return f"hive.server2.auth=cu=user&rn={self._port}&s=x="

    async def listen(self) -> None:
        self._server = StandInServer(self._played.meet, self._port)
        self._port = self._server.port
        self._answering = asyncio.create_task(self._answer())

    async def die(self) -> None:
        if self._server is not None and self._answering is not None:
            self._server.close()
            self._answering.cancel()
        for peer in self._played.peers:
            peer.writer.transport.abort()
            await peer.closed()

    async def _answer(self) -> None:
        while True:
            asked = await self._played.asked.get()
            self.asked.append(asked)
            if self.is_slow:
                continue
            if asked.header("Cookie") == [self.cookie]:
                asked.answer(ok(message(self.known.answer(asked.body))))
            elif asked.header("Authorization") and b"wrong" not in b64decode(asked.header("Authorization")[0][6:]):
                cookie = f"Set-Cookie: {self.cookie}; Path=/; HttpOnly"
                asked.answer(ok(message(self.known.answer(asked.body)), cookie))
            else:
                asked.answer(response(401, b"who are you?"))


class BinaryServer(StandIn):
    """One that speaks SASL: a session ends with the connection that has opened it."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(tls)
        self.known = Known()
        self._opened: dict[Peer, set[HandleId]] = {}

    async def _meet(self, peer: Peer) -> None:
        self._opened[peer] = set()
        try:
            await super()._meet(peer)
        finally:
            self.known.handles -= self._opened.pop(peer)

    def _answer(self, peer: Peer, message: bytes) -> None:
        before = set(self.known.handles)
        self.calls.append(message_of(message).header.name)
        said = self.known.answer(message)
        if self.mood is not Mood.STALLS or self.calls[-1] != "ExecuteStatement":
            peer.send(said)
        if self.calls[-1] == "OpenSession":
            self._opened[peer] |= self.known.handles - before


Server = HttpServer | BinaryServer


class Servers(Stage):
    """A proxy and the servers behind it. Clients speak what the listener does."""

    def __init__(self, proxy: Proxy, servers: Sequence[Server], backends: BackendPool, to: Transport) -> None:
        super().__init__(proxy, HttpBackend(), asyncio.Queue(), None)
        self._is_over_http = to is Transport.HTTP
        # The connections over SASL that have opened a session.
        self._peers: dict[SessionHandle, Peer] = {}
        self.servers = servers
        self.backends = backends
        # How sessions were opened.
        self.opened: list[SessionOpening] = []
        self.rewriter = Rewriter()

    @property
    def sessions(self) -> list[int]:
        """The sessions that the proxy counts, backend by backend."""
        return [view.sessions for view in self.backends.views()]

    @property
    def loads(self) -> list[int]:
        return [view.connections for view in self.backends.views()]

    def home(self, session: SessionHandle) -> Server:
        identifier = handle_id_of(session)
        return next(server for server in self.servers if identifier in server.known.handles)

    async def open_session(self, headers: dict[str, str] | None = None) -> SessionHandle:
        status, body, _ = await self.post(message(open_session()), headers)
        assert status == 200
        return session_in(b"\0\0\0\0" + body)

    async def is_known(self, call: bytes, headers: dict[str, str] | None = None) -> bool:
        """Whether a call reaches the server that knows what it is about."""
        status, body, _ = await self.post(message(call), headers)
        assert status == 200
        return b"Invalid" not in body

    async def opens(self, user: str = "user") -> SessionHandle:
        """A session of a user who comes by what the listener speaks."""
        if self._is_over_http:
            return await self.open_session(basic(user))
        peer = await log_in(self, user)
        session = session_in(await call(peer, open_session()))
        self._peers[session] = peer
        return session

    async def serves(self, session: SessionHandle, user: str = "user") -> bool:
        return await self._passes(execute("SELECT 1", session=session), session, user)

    async def closes(self, session: SessionHandle, user: str = "user") -> bool:
        return await self._passes(close_session(7, session), session, user)

    async def _passes(self, framed: bytes, session: SessionHandle, user: str) -> bool:
        if self._is_over_http:
            return await self.is_known(framed, basic(user))
        return b"Invalid" not in await call(self._peers[session], framed)

    async def refusal(self, user: str = "user") -> str:
        """The error of a client that gets no backend."""
        if self._is_over_http:
            status, body, _ = await self.post(message(open_session()), basic(user))
            assert status == 503
            return body.decode()
        peer = await self.connect()
        peer.send(plain_start(user, "password"))
        said = await peer.rest()
        assert said[0] == SaslStatus.ERROR
        return said[5:].decode()


@asynccontextmanager
async def servers(
    speaking: Transport,
    to: Transport = Transport.HTTP,
    count: int = 2,
    limits: PoolSettings | None = None,
    tls: Tls | None = None,
    **keys: Any,
) -> AsyncIterator[Servers]:
    """`to` is what clients speak. TLS is for backends that do not speak HTTP."""
    secured, over_http = tls or Tls(), speaking is Transport.HTTP
    all_servers: list[Server] = [
        HttpServer() if over_http else BinaryServer(secured.backend) for _ in range(count)
    ]
    async with AsyncExitStack() as stack:
        for server in all_servers:
            await server.listen()
            stack.push_async_callback(server.die)
        backends = BackendPool([server.member for server in all_servers], Clock(), limits)
        listener = Listener(Address(HOST, 0), to)
        config = server_config((listener,), upstream=UpstreamSection(speaking, secured.upstream), **keys)

        def open_port(opened: SessionOpening) -> Rewriter:
            on.opened.append(opened)
            return on.rewriter

        proxy = Proxy(config, open_port, backends)
        on = Servers(proxy, all_servers, backends, to)
        await proxy.start()
        stack.push_async_callback(proxy.close)
        async with on:
            yield on
            for peer in on.clients:
                with suppress(OSError):
                    await peer.closed()


async def log_in(on: Servers, user: str = "user") -> Peer:
    """Over SASL."""
    peer = await on.connect()
    peer.send(plain_start(user, "password"))
    await peer.expect(ACCEPTED)
    return peer


async def call(peer: Peer, framed: bytes) -> bytes:
    """A call over SASL. Its reply, in one frame or in several."""
    peer.send(framed)
    return frame(await peer.read_frame())
