"""A scripted backend and a client on real sockets, for what only sockets can show."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from proxy.config.address import Address
from proxy.config.endpoints import Listener
from proxy.config.memory_shares import AMPLE, MemoryShares
from proxy.frontend.process_scope import ProcessScope
from proxy.operations.dispatch import Dispatch, Outcome, Premises, WriteUnderWay
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.operations.query import Query, QueryResult, ask_driver
from proxy.operations.session_port import KnownState, SessionOpening, SessionPort
from proxy.server import Proxy
from proxy.statements.statement_class import StatementClass
from support.relay_dialogue import ACCEPTED, LOGIN, open_session, session_opened
from support.server_config import server_config

HOST = "127.0.0.1"
# Far above what any step here takes on a busy machine, so that only a hang reaches it.
PATIENCE_S = 30.0
PREMISES = Premises()


class Peer:
    """One end of a connection, read by what is expected next."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def expect(self, data: bytes) -> None:
        async with asyncio.timeout(PATIENCE_S):
            assert await self.reader.readexactly(len(data)) == data

    async def read_frame(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            header = await self.reader.readexactly(4)
            return await self.reader.readexactly(int.from_bytes(header))

    async def rest(self) -> bytes:
        """Everything up to the end of the stream, which has to come."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""

    def close(self) -> None:
        self.writer.close()

    async def closed(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


class StandInServer:
    """A server that plays a backend, and closes each connection when the loop ends, also one that is being opened.

    asyncio's own leaves one open that the loop has accepted when the server is closed (``Server._attach``), and
    before Python 3.12 one whose handler is cancelled before it has begun. pytest then fails whichever test runs
    when such a connection is collected.
    """

    def __init__(
        self,
        meet: Callable[[Peer], Coroutine[Any, Any, None]],
        port: int = 0,
        *,
        limit: int = 64 * 1024,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._meet = meet
        self._limit = limit
        self._tls = tls
        self._meetings: set[asyncio.Task[None]] = set()
        self._listener = socket.create_server((HOST, port), backlog=100)
        self._listener.settimeout(0)
        self.port = int(self._listener.getsockname()[1])
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    @property
    def address(self) -> Address:
        return Address(HOST, self.port)

    def close(self) -> None:
        """Listen no more. Connections stay."""
        if self._listener.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            connection, _ = self._listener.accept()
            meeting = asyncio.create_task(self._serve(connection))
            self._meetings.add(meeting)
            meeting.add_done_callback(self._meetings.discard)
            meeting.add_done_callback(lambda ended: connection.close() if ended.cancelled() else None)

    async def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(0)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(self._limit)
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=self._tls)
        except OSError:
            return  # The handshake of TLS has failed.
        try:
            await self._meet(Peer(reader, asyncio.StreamWriter(transport, protocol, reader, loop)))
        except asyncio.CancelledError:
            transport.abort()
            raise


class Rewriter:
    """A session that answers with whatever the test says, after asking what the test says."""

    def __init__(  # noqa: PLR0913 - the dispatch, and what goes wrong
        self,
        text: str | None = None,
        queries: tuple[Query, ...] = (),
        *,
        fails: bool = False,
        fails_at_the_end: bool = False,
        may_fall_back: bool = False,
        premises: Premises = PREMISES,
        write: WriteUnderWay | None = None,
    ) -> None:
        self.text = text
        self.queries = queries
        self.fails = fails
        self.results: list[QueryResult] = []
        self.fails_at_the_end = fails_at_the_end
        self.may_fall_back = may_fall_back
        self.premises = premises
        self.write = write
        self.outcomes: list[Outcome] = []
        self.has_closed = False
        self.is_used_elsewhere = False

    async def rewrite(self, statement: StatementClass, _keys: KeyTerms = ASK_FIRST) -> Dispatch:
        if self.fails:
            raise RuntimeError(statement.text)
        for query in self.queries:
            self.results.append(await ask_driver(query))
        text = statement.text if self.text is None else self.text
        return Dispatch(text, self.may_fall_back, premises=self.premises, write=self.write, on_outcome=self.ended)

    def known_state(self) -> KnownState | None:
        return None

    def is_quick(self, statement: StatementClass) -> bool:
        return not statement.may_have_a_join

    def forward_unchanged(self, statement: StatementClass) -> Dispatch:
        return Dispatch(statement.text, on_outcome=self.ended)

    def writes_before(self, statement: StatementClass) -> Sequence[WriteUnderWay]:
        if self.write is None or self.write.is_over or not statement.text.startswith("USE"):
            return ()
        return (self.write,)

    def ended(self, outcome: Outcome) -> None:
        if self.fails_at_the_end:
            raise RuntimeError(outcome.message)
        if self.write is not None:
            self.write.is_over = True
        self.outcomes.append(outcome)

    def used_elsewhere(self) -> None:
        self.is_used_elsewhere = True

    def closed(self, *, is_forgotten: bool = False) -> None:  # noqa: ARG002 - equal here
        self.has_closed = True


class Stage:
    """A proxy between a client and a backend that the test plays."""

    def __init__(
        self, proxy: Proxy, backends: "asyncio.Queue[Peer]", port: int, stop_backend: Callable[[], None]
    ) -> None:
        self.proxy = proxy
        self.backend_port = port
        self.clients: list[Peer] = []
        self._backends = backends
        self.stop_backend = stop_backend

    async def connect(self) -> Peer:
        self.clients.append(Peer(*await asyncio.open_connection(HOST, self.proxy.port)))
        return self.clients[-1]

    async def backend(self) -> Peer:
        """The proxy's next connection to the backend."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._backends.get()

    async def log_in(self) -> tuple[Peer, Peer]:
        client = await self.connect()
        client.send(LOGIN)
        backend = await self.backend()
        await backend.expect(LOGIN)
        backend.send(ACCEPTED)
        await client.expect(ACCEPTED)
        return client, backend

    async def open_session(self, version: int = 9) -> tuple[Peer, Peer]:
        client, backend = await self.log_in()
        client.send(open_session())
        await backend.expect(open_session())
        backend.send(session_opened(version=version))
        await client.expect(session_opened(version=version))
        return client, backend

    async def all_gone(self) -> None:
        await eventually(lambda: self.proxy.connection_count == 0)


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.01)


@asynccontextmanager
async def stage(  # noqa: PLR0913 - a proxy, and all that it may be told
    rewriter: Rewriter | None = None,
    *,
    open_port: Callable[[SessionOpening], SessionPort] | None = None,
    listeners: tuple[Listener, ...] = (Listener(Address(HOST, 0)),),
    backend_port: int | None = None,
    process: ProcessScope | None = None,
    memory: MemoryShares = AMPLE,
    **keys: Any,
) -> AsyncIterator[Stage]:
    backends: asyncio.Queue[Peer] = asyncio.Queue()
    peers: list[Peer] = []

    async def meet(peer: Peer) -> None:
        peers.append(peer)
        backends.put_nowait(peer)

    server = StandInServer(meet, limit=1024)
    port = server.port
    config = server_config(listeners, f"{HOST}:{backend_port or port}", **keys)
    proxy = Proxy(config, open_port or (lambda _opened: rewriter or Rewriter()), process=process, memory=memory)
    await proxy.start()
    on = Stage(proxy, backends, port, server.close)
    try:
        yield on
    finally:
        server.close()
        await proxy.close()
        for peer in (*on.clients, *peers):
            await peer.closed()
