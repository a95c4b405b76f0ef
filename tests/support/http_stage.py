"""The proxy between a client and a backend that the test plays, either of which may speak HTTP."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Self

import aiohttp
from yarl import URL

from proxy.config.address import Address
from proxy.config.endpoints import Listener, ListenerTls, Transport, UpstreamSection, UpstreamTls
from proxy.config.memory_shares import AMPLE, MemoryShares
from proxy.operations.session_port import SessionOpening, SessionPort
from proxy.server import Proxy
from support.scripted_session import HOST, PATIENCE_S, Peer, Rewriter, StandInServer
from support.server_config import server_config

PATH = "/cliservice"
# What the client speaks, and what the backend does.
HTTP_TO_BINARY = (Transport.HTTP, Transport.SASL)


def basic(user: str = "user", password: str = "password") -> dict[str, str]:  # noqa: S107 - a test's
    return {"Authorization": "Basic " + b64encode(f"{user}:{password}".encode()).decode()}


def message(framed: bytes) -> bytes:
    """What `relay_dialogue` writes, as HTTP carries it."""
    return framed[4:]


def ok(body: bytes, *headers: str) -> bytes:
    return response(200, body, *headers)


def response(status: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def chunked(body: bytes, chunk_bytes: int) -> bytes:
    pieces = (body[start : start + chunk_bytes] for start in range(0, len(body), chunk_bytes))
    return CHUNKED_HEAD + b"".join(map(chunk, pieces)) + chunk(b"")


@dataclass
class Asked:
    """A request that the backend has been sent, and the connection on which it is to be answered."""

    peer: Peer
    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def answer(self, data: bytes) -> None:
        self.peer.send(data)


@dataclass
class HttpBackend:
    """A backend whose requests the test answers, in any bytes."""

    asked: asyncio.Queue[Asked] = field(default_factory=asyncio.Queue)
    peers: list[Peer] = field(default_factory=list)

    async def meet(self, peer: Peer) -> None:
        reader = peer.reader
        self.peers.append(peer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = [(name, value) for name, _, value in (line.partition(": ") for line in head[1:-2])]
                length = next(int(value) for name, value in headers if name.lower() == "content-length")
                self.asked.put_nowait(Asked(peer, head[0], headers, await reader.readexactly(length)))
        except (asyncio.IncompleteReadError, ConnectionError):
            return

    async def next(self) -> Asked:
        async with asyncio.timeout(PATIENCE_S):
            return await self.asked.get()

    async def answer(self, call: bytes, body: bytes) -> Asked:
        """Answer the next request, which has to be this call."""
        asked = await self.next()
        assert asked.body == call
        asked.answer(ok(body))
        return asked


def request(body: bytes, *headers: str) -> bytes:
    """A client's call as it goes over the wire."""
    lines = [f"POST {PATH} HTTP/1.1", "Host: here", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@dataclass(frozen=True)
class Tls:
    """What each of the four ends makes of TLS; None is none."""

    client: ssl.SSLContext | None = None
    listener: ListenerTls | None = None
    upstream: UpstreamTls | None = None
    backend: ssl.SSLContext | None = None


class Stage:
    """A proxy, and whom it talks to."""

    def __init__(
        self, proxy: Proxy, backend: HttpBackend, links: "asyncio.Queue[Peer]", tls: ssl.SSLContext | None
    ) -> None:
        self._tls = tls
        self.proxy = proxy
        self.backend = backend
        self._links = links
        self._session: aiohttp.ClientSession
        self.clients: list[Peer] = []
        self.stop_backend: Callable[[], None]

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._tls or True)
        self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._session.close()

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{HOST}:{self.proxy.port}"

    async def link(self) -> Peer:
        """The proxy's next connection to a backend that does not speak HTTP."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._links.get()

    async def connect(self) -> Peer:
        self.clients.append(Peer(*await asyncio.open_connection(HOST, self.proxy.port)))
        return self.clients[-1]

    async def post(
        self, body: bytes, headers: dict[str, str] | None = None, path: str = PATH
    ) -> tuple[int, bytes, aiohttp.ClientResponse]:
        """A client's call. Returns what it got."""
        sent = basic() if headers is None else headers
        async with (
            asyncio.timeout(PATIENCE_S),
            self._session.post(URL(self.url + path, encoded=True), data=BytesIO(body), headers=sent) as got,
        ):
            return got.status, await got.read(), got

    def start(self, body: bytes, headers: dict[str, str] | None = None, path: str = PATH) -> "Post":
        return asyncio.create_task(self.post(body, headers, path))


Post = asyncio.Task[tuple[int, bytes, aiohttp.ClientResponse]]


async def body_of(post: Post) -> bytes:
    """What a client got, which has to be a reply."""
    status, body, _ = await post
    assert status == 200
    return body


@asynccontextmanager
async def stage(
    rewriter: Rewriter | None = None,
    sides: tuple[Transport, Transport] = (Transport.HTTP, Transport.HTTP),
    open_port: Callable[[SessionOpening], SessionPort] | None = None,
    tls: Tls | None = None,
    memory: MemoryShares = AMPLE,
    **keys: Any,
) -> AsyncIterator[Stage]:
    (client, backend), secured = sides, tls or Tls()
    played, links, peers = HttpBackend(), asyncio.Queue[Peer](), list[Peer]()

    async def meet_link(peer: Peer) -> None:
        peers.append(peer)
        links.put_nowait(peer)

    meet = played.meet if backend is Transport.HTTP else meet_link
    server = StandInServer(meet, limit=1024 * 1024, tls=secured.backend)
    port = server.port
    listener, upstream = (
        Listener(Address(HOST, 0), client, secured.listener),
        UpstreamSection(backend, secured.upstream),
    )
    config = server_config((listener,), f"{HOST}:{port}", upstream, **keys)
    proxy = Proxy(config, open_port or (lambda _opened: rewriter or Rewriter()), memory=memory)
    await proxy.start()
    try:
        async with Stage(proxy, played, links, secured.client) as on:
            on.stop_backend = server.close
            yield on
            for peer in on.clients:
                await peer.closed()
    finally:
        await proxy.close()
        server.close()
        for peer in (*peers, *played.peers):
            await peer.closed()
