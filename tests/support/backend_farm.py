"""Backends on real sockets that answer, hang, close or refuse as the test says, and a proxy in front of them."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from enum import Enum
from typing import Any

from proxy.backends.pool import BackendPool, PoolSettings
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember
from proxy.config.endpoints import Listener, Transport
from proxy.operations.session_port import SessionOpening
from proxy.server import Proxy
from proxy.wire.sasl import SaslReader, SaslStatus, encode_sasl, plain_start
from proxy.wire.thrift.reader import read_header
from support.relay_dialogue import ACCEPTED, close_session, open_session, reply, session_opened
from support.scripted_session import HOST, PATIENCE_S, Peer, Rewriter, StandInServer, eventually
from support.server_config import server_config


class Mood(Enum):
    """How a backend meets whoever connects."""

    WORKS = "answers"
    HANGS = "accepts and says nothing"
    FROZEN = "accepts, as the kernel does for a process that is stopped"
    CLOSES = "accepts and closes"
    HANGS_UP = "reads a login and closes"
    STALLS = "answers everything but statements"
    REFUSES_LOGINS = "says that the password is wrong"


class StandIn:
    """A backend that answers every call, in as few words as it can."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.mood = Mood.WORKS
        self._tls = tls
        self.peers: list[Peer] = []
        self.calls: list[str] = []
        # The number of connections so far.
        self.met = 0
        self._server: StandInServer | None = None
        self._port = 0
        self._died = asyncio.Event()

    @property
    def member(self) -> PoolMember:
        return PoolMember(Address(HOST, self._port))

    @property
    def connections(self) -> int:
        return len(self.peers)

    async def listen(self) -> None:
        self._died.clear()
        self._server = StandInServer(self._serve, self._port, tls=self._tls)
        self._port = self._server.port

    async def die(self) -> None:
        """As its process would: nobody listens, and every connection is gone."""
        if self._server is not None:
            self._server.close()
        self._died.set()
        for peer in list(self.peers):
            peer.writer.transport.abort()
        await eventually(lambda: not self.peers)

    async def _serve(self, peer: Peer) -> None:
        self.peers.append(peer)
        self.met += 1
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._meet(peer)
        finally:
            self.peers.remove(peer)
            await peer.closed()

    async def _meet(self, peer: Peer) -> None:
        if self.mood is Mood.CLOSES:
            return
        if self.mood is Mood.FROZEN:
            await self._died.wait()
            return
        if self.mood is Mood.HANGS:
            await peer.reader.read()
            return
        sasl = SaslReader()
        for _ in ("START", "response"):
            while sasl.next_message() is None:
                if not (data := await peer.reader.read(4096)):
                    return
                sasl.feed(data)
        if self.mood is Mood.HANGS_UP:
            return
        if self.mood is Mood.REFUSES_LOGINS:
            peer.send(encode_sasl(SaslStatus.BAD, b"wrong password"))
            return
        peer.send(ACCEPTED)
        while True:
            length = int.from_bytes(await peer.reader.readexactly(4))
            self._answer(peer, await peer.reader.readexactly(length))

    def _answer(self, peer: Peer, message: bytes) -> None:
        header = read_header(message)
        self.calls.append(header.name)
        if header.name == "OpenSession":
            peer.send(session_opened(header.seqid))
        elif header.name != "ExecuteStatement" or self.mood is not Mood.STALLS:
            peer.send(reply(header.name, header.seqid))


class Client:
    """Logs in and opens a session, and says which backend answered by asking it."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    async def open_session(self) -> None:
        self.peer.send(open_session())
        await self.peer.expect(session_opened())

    async def is_served(self) -> bool:
        self.peer.send(close_session(7))
        try:
            return await self.peer.read_frame() == reply("CloseSession", 7)[4:]
        except (OSError, asyncio.IncompleteReadError):
            return False


class Several:
    """A proxy and the backends behind it."""

    def __init__(self, proxy: Proxy, backends: BackendPool, servers: Sequence[StandIn]) -> None:
        self.proxy = proxy
        self.backends = backends
        self.servers = servers
        self.clients: list[Client] = []
        # How sessions were opened.
        self.opened: list[SessionOpening] = []
        self.rewriter = Rewriter()

    @property
    def loads(self) -> list[int]:
        """The connections that the proxy has leased, backend by backend."""
        return [view.connections for view in self.backends.views()]

    async def connect(self, login: str = "user") -> Peer:
        peer = Peer(*await asyncio.open_connection(HOST, self.proxy.port))
        self.clients.append(Client(peer))
        peer.send(plain_start(login, "password"))
        return peer

    async def log_in(self, login: str = "user") -> Client:
        peer = await self.connect(login)
        await peer.expect(ACCEPTED)
        return self.clients[-1]

    async def refusal(self, login: str = "user") -> str:
        """What a client is told that gets no backend."""
        peer = await self.connect(login)
        async with asyncio.timeout(PATIENCE_S):
            status, *_ = header = await peer.reader.readexactly(5)
            assert status == SaslStatus.ERROR
            return (await peer.reader.readexactly(int.from_bytes(header[1:]))).decode()

    async def all_gone(self) -> None:
        for client in self.clients:
            await client.peer.closed()
        await eventually(lambda: self.proxy.connection_count == 0)


@asynccontextmanager
async def several(
    count: int,
    limits: PoolSettings | None = None,
    *,
    clock: "Clock | None" = None,
    transport: Transport = Transport.SASL,
    **keys: Any,
) -> AsyncIterator[Several]:
    servers = [StandIn() for _ in range(count)]
    async with AsyncExitStack() as stack:
        for server in servers:
            await server.listen()
            stack.push_async_callback(server.die)
        backends = BackendPool([server.member for server in servers], clock or Clock(), limits)
        listener = Listener(Address(HOST, 0), transport)

        def open_port(opened: SessionOpening) -> Rewriter:
            on.opened.append(opened)
            return on.rewriter

        proxy = Proxy(server_config((listener,), **keys), open_port, backends)
        on = Several(proxy, backends, servers)
        await proxy.start()
        stack.push_async_callback(proxy.close)
        yield on
        await on.all_gone()


class Clock:
    """Time that goes by when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now
