"""Backends that speak HTTP: a POST for each call, with what its client said of itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from io import BytesIO
from typing import Final, Self

import aiohttp
from yarl import URL

from proxy.backend_link import BackendError
from proxy.backends.backend import Backend
from proxy.backends.pool import Backends
from proxy.config.address import Address, why_unreachable
from proxy.dial import Dialer
from proxy.http.cookies import cookies_for, mark_of, marked, marks_in
from proxy.http.headers import Caller, Headers, passing
from proxy.http.incoming import UnsentError
from proxy.net.tls import why_no_handshake
from proxy.operations.internal_call import Call, Reply
from proxy.wire.hs2.calls import SessionHandle

# A cookie and a Kerberos ticket stand in one header each. Jetty's own limit is 8 KB, or 6 KB as Spark sets it.
HEADER_BYTES_MAX: Final = 64 * 1024
# What may be read ahead of a slow client: from twice as much on the backend is read no further.
READ_AHEAD_BYTES: Final = 64 * 1024
# How long an unused connection is kept. The server closes it after half an hour
# (hive.server2.thrift.http.max.idle.time). A call that goes out at that moment is lost, so this stays far below.
KEEP_ALIVE_S: Final = 30.0
# From here on a message goes out piece by piece: aiohttp writes bytes at once, all of them.
_IN_PIECES_BYTES: Final = 256 * 1024
# What aiohttp would add of its own.
_NOT_ADDED: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")

# Sessions that are being closed, which the event loop alone would not keep.
_CLOSING: Final[set[asyncio.Task[None]]] = set()


class HttpConnections:
    """The connections to all backends: `async with HttpConnections(..) as connections`."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        # No limit of its own: every client has one call under way at most, and clients are limited.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S)
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=_NOT_ADDED,
            auto_decompress=False,
            # A call may wait for hours for its statement's end.
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._dialer.timeout_s),
            read_bufsize=READ_AHEAD_BYTES,
            max_line_size=HEADER_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
        )
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._session.close()

    def abandon(self) -> None:
        """Close the connections and wait for nothing."""
        task = asyncio.get_running_loop().create_task(self._session.close())
        _CLOSING.add(task)
        task.add_done_callback(_CLOSING.discard)

    async def post(
        self, address: Address, message: bytes, query: str, headers: list[tuple[str, str]]
    ) -> HttpIncoming:
        """Make a call. Raises BackendError."""
        upstream = self._dialer.upstream
        url = f"{'http' if upstream.tls is None else 'https'}://{address}{upstream.path}"
        # Asked anew for each call, since certificates may change meanwhile.
        tls = self._dialer.tls(address)
        with _failures(address):
            response = await self._session.post(
                URL(f"{url}?{query}" if query else url, encoded=True),
                data=message if len(message) < _IN_PIECES_BYTES else BytesIO(message),
                headers=headers,
                allow_redirects=False,
                ssl=tls.get("ssl", True),
                server_hostname=tls.get("server_hostname"),
            )
        return HttpIncoming(response, address)


@dataclass(frozen=True)
class HttpReach:
    """How clients get to the backends."""

    connections: HttpConnections
    backends: Backends
    # Makes digests of credentials of no use to anybody else.
    key: bytes = field(repr=False)


class HttpClient:
    """Whoever sent a request: all its headers go with each call of ours too."""

    def __init__(self, reach: HttpReach, query: str, headers: list[tuple[str, str]]) -> None:
        self._reach = reach
        self._query = query
        self._headers = [*passing(headers, to_backend=True), ("Accept-Encoding", "identity")]
        self.marks = marks_in(value for name, value in headers if name.lower() == "cookie")

    def at(self, backend: Backend) -> HttpUpstream:
        """That backend, asked in its name, and shown no other backend's cookies."""
        mark = mark_of(backend.member.name) if self._reach.backends.have_been_several or self.marks else None
        headers = self._headers if mark is None else list(_with_cookies_for(mark, self._headers))
        return HttpUpstream(self._reach, backend, self._query, headers)


class HttpUpstream:
    """One backend, asked in the name of one client."""

    def __init__(self, reach: HttpReach, backend: Backend, query: str, headers: list[tuple[str, str]]) -> None:
        self._reach = reach
        self._headers = headers
        self._caller = caller = Caller.of(query, headers)
        self.backend = backend
        self.name = caller.name(reach.key)
        self.login = caller.login
        self.names = caller.names

    @property
    def owner(self) -> str | None:
        """Whom a session opened here belongs to; None where nothing may be asked in that name."""
        return self._caller.owner(self._reach.key) if self._caller.may_be_asked_for else None

    @property
    def credentials(self) -> bytes | None:
        """The name and the password, as PLAIN has them. A secret."""
        return self._caller.credentials

    async def send(self, call: Call) -> HttpIncoming:
        """Make a call, which has a thread of the backend's until its reply is read. Raises BackendError."""
        backends, address = self._reach.backends, self.backend.member.address
        lease = backends.lease_at(self.backend)
        if lease is None:
            raise UnsentError(f"the backend {address} {backends.full}")
        try:
            incoming = await self._reach.connections.post(address, call.message, self._caller.query, self._headers)
        except BaseException as error:
            if isinstance(error, BackendError):
                lease.failed(str(error))
            lease.release()
            raise
        lease.answered()
        incoming.ends_with(lease.release)
        if backends.have_been_several:
            incoming.mark_cookies(mark_of(self.backend.member.name))
        return incoming

    def opened(self, session: SessionHandle) -> None:
        """It lives on the server, whatever becomes of connections."""

    def closed(self, session: SessionHandle) -> None:
        """There is nothing here that it had."""


def _with_cookies_for(mark: str, headers: list[tuple[str, str]]) -> Generator[tuple[str, str]]:
    for name, value in headers:
        if name.lower() != "cookie":
            yield name, value
        elif cookies := cookies_for(mark, value):
            yield name, cookies


class HttpIncoming:
    """The answer to one POST."""

    def __init__(self, response: aiohttp.ClientResponse, address: Address) -> None:
        self._response = response
        self._address = address
        self._read: list[bytes] = []
        self._on_end: Callable[[], None] = lambda: None
        self.status = response.status
        self.headers: Headers = tuple(passing(response.headers.items(), to_backend=False))
        self.length = response.content_length
        coding = response.headers.get("Content-Encoding", "identity").lower()
        self.is_reply = self.status == HTTPStatus.OK and coding == "identity"

    def ends_with(self, on_end: Callable[[], None]) -> None:
        """What is to be done when it has been read to its end, or dropped."""
        self._on_end = on_end

    def mark_cookies(self, mark: str) -> None:
        """Of several backends this is the one whose cookies these are."""
        self.headers = tuple(
            (name, marked(value, mark) if name.lower() == "set-cookie" else value) for name, value in self.headers
        )

    async def whole(self, bytes_max: int) -> Reply:
        """All of it; None if it is longer or no reply, and `pieces` still has everything. Raises BackendError."""
        if not self.is_reply or bytes_max < (self.length or 1):
            return None
        count = 0
        with _failures(self._address):
            async for piece in self._response.content.iter_any():
                self._read.append(piece)
                count += len(piece)
                if count > bytes_max:
                    return None
        self._on_end()
        return b"".join(self._read)

    async def pieces(self) -> AsyncIterator[bytes]:
        """What there is of it, as it comes. Raises BackendError where it is cut off."""
        for piece in self._read:
            yield piece
        with _failures(self._address):
            async for piece in self._response.content.iter_any():
                yield piece
        self._on_end()

    def drop(self) -> None:
        """The rest is of no use: a connection with something left to read is closed."""
        self._response.close()
        self._on_end()


@contextmanager
def _failures(address: Address) -> Generator[None]:
    """Turn what aiohttp raises into BackendError, whose sentence names no header and no statement."""
    try:
        yield
    except aiohttp.ClientConnectorCertificateError as error:
        why = why_no_handshake(error.certificate_error)
        raise UnsentError(f"cannot reach the backend {address}: no TLS: {why}") from None
    except aiohttp.ClientConnectorSSLError as error:
        raise UnsentError(
            f"cannot reach the backend {address}: no TLS: {why_no_handshake(error.os_error)}"
        ) from None
    except aiohttp.ConnectionTimeoutError:
        raise UnsentError(f"cannot reach the backend {address}: no connection in time") from None
    except aiohttp.ClientConnectorError as error:
        raise UnsentError(f"cannot reach the backend {address}: {why_unreachable(error.os_error)}") from None
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise BackendError(f"the backend {address} broke off its answer: {type(error).__name__}") from None
