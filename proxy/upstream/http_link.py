"""The proxy's own calls to a backend that speaks HTTP, as `BinaryLink` makes them over the binary protocol."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import NoReturn, TypeAlias

from proxy.config.address import Address
from proxy.config.endpoints import Transport
from proxy.operations.internal_call import CONTROL_REPLY_BYTES_MAX, Call, Reply
from proxy.upstream.binary_link import BinaryLink
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError, LoginError
from proxy.upstream.http_connections import HttpConnections, HttpReply
from proxy.upstream.http_headers import THRIFT_HEADERS, basic_authorization
from proxy.upstream.login_cookies import LoginCookie
from proxy.upstream.reply import ask
from proxy.wire.hs2.calls import encode_unknown_call


class HttpLink:
    """HTTP connections of its own, and the credentials for calls over them."""

    def __init__(self, address: Address, dialer: Dialer, reply_timeout_s: float) -> None:
        self._address = address
        self._dialer = dialer
        self._reply_s = reply_timeout_s
        self._login_owner = ""
        self._connections: HttpConnections | None = None
        self._upstream: _InternalUpstream | None = None

    async def open(self, credentials: bytes, login_owner: str) -> None:
        """Use this PLAIN response for the calls that follow; the backend checks it at the first of them.

        Raises BackendError where it cannot be used.
        """
        authorization = basic_authorization(credentials)
        if authorization is None:
            raise LoginError(f"the backend {self._address} needs a name and a password: {login_owner} gave none")
        self._login_owner = login_owner
        self._connections = HttpConnections(self._dialer)
        self._upstream = _InternalUpstream(self._connections, self._address, authorization, credentials)

    @property
    def is_closed(self) -> bool:
        """Never: each call may have a connection of its own, and the session outlives them."""
        return False

    async def check_login(self) -> None:
        """Let the backend check the login now. Raises BackendError."""
        # A call that no server knows: the server checks the credentials, does nothing, and logs nothing.
        _ = await self.ask(Call("", 1, encode_unknown_call(), CONTROL_REPLY_BYTES_MAX))

    async def ask(self, call: Call) -> Reply:
        """Make a call and wait for its reply. Raises BackendError, which names the user of a refused login."""
        assert self._upstream is not None  # noqa: S101 - open() comes first
        try:
            async with asyncio.timeout(self._reply_s):
                return await ask(self._upstream, call)
        except TimeoutError:
            raise BackendError(
                f"the backend {self._address} did not answer {call.name} within {self._reply_s:g} s"
            ) from None
        except BackendError:
            if self._upstream.was_refused:
                raise LoginError(f"the backend {self._address} refused the login of {self._login_owner}") from None
            raise

    def close(self) -> None:
        """Close the connections."""
        if self._connections is not None:
            self._connections.abandon()

    def not_hiveserver2(self, what: str) -> NoReturn:
        """Raise the BackendError for a peer that speaks something else."""
        raise BackendError(f"the backend {self._address} does not speak HiveServer2's protocol over HTTP: {what}")


class _InternalUpstream:
    """Sends calls with the login, and remembers whether the backend refused it."""

    def __init__(
        self, connections: HttpConnections, address: Address, authorization: str, credentials: bytes
    ) -> None:
        self._connections = connections
        self._address = address
        self._credentials = credentials
        self._headers = [("Authorization", authorization), *THRIFT_HEADERS, ("Accept-Encoding", "identity")]
        # Its calls are about one session, of one client or of our own.
        principal = connections.principal_at(address, credentials)
        self._cookie = None if principal is None else LoginCookie(principal)
        self.was_refused = False

    async def send(self, call: Call) -> HttpReply:
        """Make a call. Raises BackendError."""
        incoming = await self._connections.post(
            self._address, call.message, "", self._headers, self._credentials, self._cookie
        )
        self.was_refused = incoming.status == HTTPStatus.UNAUTHORIZED
        return incoming


Link: TypeAlias = BinaryLink | HttpLink


def link_to(address: Address, dialer: Dialer, reply_timeout_s: float) -> Link:
    """Return a connection of the proxy's own over the transport that the backend speaks."""
    over_http = dialer.upstream.transport is Transport.HTTP
    return (HttpLink if over_http else BinaryLink)(address, dialer, reply_timeout_s)
