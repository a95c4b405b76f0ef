"""Backends that speak HTTP: a POST for each call, with what its client said of itself."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from proxy.backends.backend import Backend
from proxy.backends.pool import BackendPool
from proxy.operations.internal_call import Call
from proxy.upstream.errors import BackendError, UnsentError
from proxy.upstream.http_connections import HttpConnections, HttpReply
from proxy.upstream.http_cookies import cookies_for, mark_of_backend, marks_in
from proxy.upstream.http_headers import Caller, forwarded_headers
from proxy.wire.hs2.calls import SessionHandle


@dataclass(frozen=True)
class HttpReach:
    """How clients get to the backends."""

    connections: HttpConnections
    backends: BackendPool
    # Makes digests of credentials of no use to anybody else.
    key: bytes = field(repr=False)


class HttpClient:
    """Whoever sent a request: all its headers go with each call of ours too."""

    def __init__(self, reach: HttpReach, query: str, headers: list[tuple[str, str]]) -> None:
        self._reach = reach
        self._query = query
        self._headers = [*forwarded_headers(headers, to_backend=True), ("Accept-Encoding", "identity")]
        self.marks = marks_in(value for name, value in headers if name.lower() == "cookie")

    def at(self, backend: Backend) -> HttpUpstream:
        """An upstream to that backend, which is asked as this client and gets no other backend's cookies."""
        mark = mark_of_backend(backend.member.name) if self._reach.backends.has_had_several or self.marks else None
        headers = self._headers if mark is None else list(_with_cookies_for(mark, self._headers))
        return HttpUpstream(self._reach, backend, self._query, headers)


class HttpUpstream:
    """One backend, asked in the name of one client."""

    def __init__(self, reach: HttpReach, backend: Backend, query: str, headers: list[tuple[str, str]]) -> None:
        self._reach = reach
        self._headers = headers
        self._caller = caller = Caller.from_request(query, headers)
        self.backend = backend
        self.name = caller.owner_digest_without_cookie(reach.key)
        self.login = caller.login
        self.names = caller.claimed_users

    @property
    def owner(self) -> str | None:
        """Whom a session opened here belongs to; None where nothing may be asked in that name."""
        return self._caller.owner_digest(self._reach.key) if self._caller.can_be_reused else None

    @property
    def credentials(self) -> bytes | None:
        """The name and the password, as PLAIN has them. A secret."""
        return self._caller.credentials

    async def send(self, call: Call) -> HttpReply:
        """Make a call, which has a thread of the backend's until its reply is read. Raises BackendError."""
        backends, address = self._reach.backends, self.backend.member.address
        lease = backends.lease_for_client(self.backend)
        if lease is None:
            raise UnsentError(f"the backend {address} {backends.full_reason}")
        try:
            incoming = await self._reach.connections.post(address, call.message, self._caller.query, self._headers)
        except BaseException as error:
            if isinstance(error, BackendError):
                lease.backend_failed(str(error))
            lease.release()
            raise
        lease.backend_answered()
        incoming.call_at_end(lease.release)
        if backends.has_had_several:
            incoming.mark_cookies(mark_of_backend(self.backend.member.name))
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
