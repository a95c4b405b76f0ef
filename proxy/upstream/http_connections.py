"""Connections to backends that speak HTTP: a POST for each call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from http import HTTPStatus
from io import BytesIO
from typing import Final, Self

import aiohttp
from yarl import URL

from proxy.config.address import Address, why_unreachable
from proxy.net.tls import why_no_handshake
from proxy.operations.internal_call import Reply
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError, UnsentError
from proxy.upstream.http_cookies import marked
from proxy.upstream.http_headers import Headers, passing

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
    ) -> HttpReply:
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
        return HttpReply(response, address)


class HttpReply:
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
        """The parts of the body, as they come. Raises BackendError where the body is cut off."""
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
