"""Connections to backends that speak HTTP: a POST for each call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager
from http import HTTPStatus
from io import BytesIO
from typing import Final

import aiohttp
from yarl import URL

from proxy.config.address import Address, why_unreachable
from proxy.kerberos.errors import KerberosError
from proxy.kerberos.ticket_caches import TICKET_CACHES
from proxy.net.login_threads import step_within_s
from proxy.net.tls import why_no_handshake
from proxy.operations.internal_call import Reply
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError, OwnLoginError, UnsentError
from proxy.upstream.http_cookies import with_mark
from proxy.upstream.http_headers import OF_A_LOGIN, Headers, forwarded_headers
from proxy.upstream.kerberos_login import negotiate_authorization, principal_of_login
from proxy.upstream.login_cookies import LoginCookie

# A cookie and a Kerberos ticket fill one header each. Jetty's own limit is 8 KB, or 6 KB as Spark sets it.
HEADER_BYTES_MAX: Final = 64 * 1024
# Bytes to read ahead of a slow client: at twice as many the proxy stops reading from the backend.
READ_AHEAD_BYTES: Final = 64 * 1024
# The time that an unused connection is kept. The server closes it after half an hour
# (hive.server2.thrift.http.max.idle.time). A call sent at that moment is lost, so this stays far below.
KEEP_ALIVE_S: Final = 30.0
# Messages from this size on are sent in pieces: aiohttp writes all of a bytes object at once.
_IN_PIECES_BYTES: Final = 256 * 1024
# Headers that aiohttp would add by itself.
_NOT_ADDED: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")

# The server's cookie would let a client in as the proxy.
_OF_OUR_LOGIN: Final = frozenset({"set-cookie", "www-authenticate"})

# Tasks that close aiohttp sessions: the event loop keeps no strong reference to a task.
_CLOSING: Final[set[asyncio.Task[None]]] = set()


class HttpConnections:
    """The connections to all backends. Whoever makes it closes it, in the same event loop."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        # No limit on connections here: every client has one call under way at most, and clients are limited.
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

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()

    def abandon(self) -> None:
        """Close the connections without waiting."""
        task = asyncio.get_running_loop().create_task(self._session.close())
        _CLOSING.add(task)
        task.add_done_callback(_CLOSING.discard)

    def principal_at(self, address: Address, credentials: bytes) -> str | None:
        """The principal of calls with these credentials; None without Kerberos. Raises OwnLoginError."""
        kerberos = self._dialer.upstream.kerberos
        try:
            return None if kerberos is None else principal_of_login(kerberos, credentials)
        except KerberosError as error:
            raise OwnLoginError(f"the backend {address}: {error}") from None

    async def post(  # noqa: PLR0913, PLR0917 - a request, and as whom it is made
        self,
        address: Address,
        message: bytes,
        query: str,
        headers: list[tuple[str, str]],
        credentials: bytes = b"",
        cookie: LoginCookie | None = None,
    ) -> HttpReply:
        """Make a call. Raises BackendError.

        If the backend asks for Kerberos, the call is made as the proxy itself, and its message says for whom; or
        by the tickets that come with `credentials`: the caller has checked whose these are. The client's query is
        not sent then, since a `doAs` in it would count with these rights. `cookie` is that of the call's session.
        """
        kerberos = self._dialer.upstream.kerberos
        if kerberos is None:
            return HttpReply(await self._send(address, message, query, headers), address)
        others = [pair for pair in headers if pair[0].lower() not in OF_A_LOGIN]
        try:
            principal = principal_of_login(kerberos, credentials)
            login = cookie or LoginCookie(principal)
            response = await self._send_with_cookie(address, message, others, login, principal)
            if response is None:
                step_s = step_within_s(self._dialer.timeout_s)
                own = await negotiate_authorization(kerberos, address, credentials, step_s)
                response = await self._send_with_ticket(address, message, [*others, ("Authorization", own)])
                set_cookies = response.headers.getall("Set-Cookie", ())
                is_encrypted = self._dialer.upstream.tls is not None
                login.login_accepted(principal, set_cookies, is_encrypted=is_encrypted)
        except KerberosError as error:
            raise OwnLoginError(f"the backend {address}: {error}") from None
        return HttpReply(response, address, without=_OF_OUR_LOGIN)

    async def _send_with_cookie(
        self,
        address: Address,
        message: bytes,
        headers: list[tuple[str, str]],
        cookie: LoginCookie,
        principal: str,
    ) -> aiohttp.ClientResponse | None:
        """Make a call with the cookie; None where there is none, or where it has expired: nothing has run then."""
        pair = cookie.pair_for(principal)
        if pair is None:
            return None
        try:
            response = await self._send(address, message, "", [*headers, ("Cookie", pair)])
        except BackendError:
            # A server that no longer takes the cookie may answer before it has read a long call, and close: then
            # its 401 is lost. The call is not made again, since it may have run; the next one has a ticket.
            cookie.drop(pair)
            raise
        if response.status != HTTPStatus.UNAUTHORIZED:
            cookie.accepted()
            return response
        response.close()
        cookie.refused(pair)
        return None

    async def _send_with_ticket(
        self, address: Address, message: bytes, headers: list[tuple[str, str]]
    ) -> aiohttp.ClientResponse:
        response = await self._send(address, message, "", headers)
        if response.status != HTTPStatus.UNAUTHORIZED:
            return response
        response.close()
        kerberos = self._dialer.upstream.kerberos
        if kerberos is not None and kerberos.delegates:
            raise OwnLoginError(f"the backend {address} refused the login of the client by delegation")
        TICKET_CACHES.login_refused()
        raise OwnLoginError(f"the backend {address} refused the proxy's own login by Kerberos")

    async def _send(
        self, address: Address, message: bytes, query: str, headers: list[tuple[str, str]]
    ) -> aiohttp.ClientResponse:
        upstream = self._dialer.upstream
        url = f"{'http' if upstream.tls is None else 'https'}://{address}{upstream.path}"
        # Computed for each call, since certificates may change.
        tls = self._dialer.tls_arguments(address)
        with _mapped_errors(address):
            return await self._session.post(
                URL(f"{url}?{query}" if query else url, encoded=True),
                data=message if len(message) < _IN_PIECES_BYTES else BytesIO(message),
                headers=headers,
                allow_redirects=False,
                ssl=tls.get("ssl", True),
                server_hostname=tls.get("server_hostname"),
            )


class HttpReply:
    """The answer to one POST."""

    def __init__(
        self, response: aiohttp.ClientResponse, address: Address, without: frozenset[str] = frozenset()
    ) -> None:
        """`without` names headers that the client must not see."""
        self._response = response
        self._address = address
        self._read: list[bytes] = []
        self._on_end: Callable[[], None] = lambda: None
        self._on_read: Callable[[bytes], None] = lambda _: None
        self.status = response.status
        passing = forwarded_headers(response.headers.items(), to_backend=False)
        self.headers: Headers = tuple(pair for pair in passing if pair[0].lower() not in without)
        self.length = response.content_length
        coding = response.headers.get("Content-Encoding", "identity").lower()
        self.is_reply = self.status == HTTPStatus.OK and coding == "identity"

    def call_at_end(self, on_end: Callable[[], None]) -> None:
        """Call this function when the reply has been read to its end, or dropped."""
        self._on_end = on_end

    def call_when_read(self, on_read: Callable[[bytes], None]) -> None:
        """Call this function with the body where all of it is read at once."""
        self._on_read = on_read

    def mark_cookies(self, mark: str) -> None:
        """Put this backend's mark on the cookies of the reply, if there are several backends."""
        self.headers = tuple(
            (name, with_mark(value, mark) if name.lower() == "set-cookie" else value)
            for name, value in self.headers
        )

    async def read_all(self, bytes_max: int) -> Reply:
        """See UpstreamReply."""
        if not self.is_reply or bytes_max < (self.length or 1):
            return None
        count = 0
        with _mapped_errors(self._address):
            async for piece in self._response.content.iter_any():
                self._read.append(piece)
                count += len(piece)
                if count > bytes_max:
                    return None
        self._on_end()
        raw = b"".join(self._read)
        self._on_read(raw)
        return raw

    async def chunks(self) -> AsyncIterator[bytes]:
        """See UpstreamReply."""
        for piece in self._read:
            yield piece
        with _mapped_errors(self._address):
            async for piece in self._response.content.iter_any():
                yield piece
        self._on_end()

    def drop(self) -> None:
        """See UpstreamReply. Closes the connection if bytes of the reply are left to read."""
        self._response.close()
        self._on_end()


@contextmanager
def _mapped_errors(address: Address) -> Generator[None]:
    """Map aiohttp's errors to BackendError, with a sentence that names no header and no statement."""
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
