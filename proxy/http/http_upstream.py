"""Upstreams to backends that speak HTTP: a POST for each call, with the headers of its client."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

from proxy.backends.backend import Backend
from proxy.backends.pool import BackendPool
from proxy.operations.internal_call import Call
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError, OwnLoginError, UnsentError
from proxy.upstream.http_connections import HttpConnections, HttpReply
from proxy.upstream.http_cookies import cookies_for, mark_of_backend, marks_in
from proxy.upstream.http_headers import Caller, forwarded_headers
from proxy.wire.hs2.calls import SessionHandle


class HttpUpstreams:
    """The backends of a process, and its connections to them."""

    names_user: Final = False
    has_lasting_sessions: Final = True

    def __init__(self, dialer: Dialer, backends: BackendPool, key: bytes) -> None:
        """Take `key` for the digests of credentials, so that they are of no use elsewhere."""
        # A session at a kerberized backend says for whom it is by its configuration, which doAs would overrule.
        self.takes_do_as = dialer.upstream.kerberos is None
        self.connections = HttpConnections(dialer)
        self.backends = backends
        self.key = key

    def client(self, query: str, headers: list[tuple[str, str]]) -> HttpClient:
        """The client that has sent a request with this query and these headers."""
        return HttpClient(self, query, headers)

    async def start(self) -> None:
        """Open the connections' client."""
        _ = await self.connections.__aenter__()

    async def close(self) -> None:
        """End all connections."""
        await self.connections.__aexit__()


class HttpClient:
    """The client that sent a request: all its headers go with each call of ours too."""

    def __init__(self, upstreams: HttpUpstreams, query: str, headers: list[tuple[str, str]]) -> None:
        self._upstreams = upstreams
        self._query = query
        self._headers = [*forwarded_headers(headers, to_backend=True), ("Accept-Encoding", "identity")]
        self.marks = marks_in(value for name, value in headers if name.lower() == "cookie")

    def at(self, backend: Backend) -> HttpUpstream:
        """An upstream to that backend, which is asked as this client and gets no other backend's cookies."""
        is_marked = self._upstreams.backends.has_had_several or self.marks
        mark = mark_of_backend(backend.member.name) if is_marked else None
        headers = self._headers if mark is None else list(_with_cookies_for(mark, self._headers))
        return HttpUpstream(self._upstreams, backend, self._query, headers)


class HttpUpstream:
    """One backend, asked in the name of one client."""

    def __init__(
        self, upstreams: HttpUpstreams, backend: Backend, query: str, headers: list[tuple[str, str]]
    ) -> None:
        self._upstreams = upstreams
        self._headers = headers
        self._caller = caller = Caller.from_request(query, headers)
        self.backend = backend
        self.name = caller.owner_digest_without_cookie(upstreams.key)
        self.login = caller.login
        self.names = caller.claimed_users

    @property
    def owner(self) -> str | None:
        """The owner of sessions that are opened here; None where nothing may be asked in that name."""
        return self._caller.owner_digest(self._upstreams.key) if self._caller.can_be_reused else None

    @property
    def credentials(self) -> bytes | None:
        """The name and the password, as PLAIN has them. A secret."""
        return self._caller.credentials

    async def send(self, call: Call) -> HttpReply:
        """Make a call, which has a thread of the backend's until its reply is read. Raises BackendError."""
        upstreams, address = self._upstreams, self.backend.member.address
        backends = upstreams.backends
        lease = backends.lease_for_client(self.backend)
        if lease is None:
            raise UnsentError(f"the backend {address} {backends.full_reason}")
        try:
            incoming = await upstreams.connections.post(address, call.message, self._caller.query, self._headers)
        except BaseException as error:
            if isinstance(error, BackendError) and not isinstance(error, OwnLoginError):
                lease.backend_failed(str(error))
            lease.release()
            if isinstance(error, OwnLoginError):
                raise UnsentError(str(error)) from None
            raise
        lease.backend_answered()
        incoming.call_at_end(lease.release)
        if backends.has_had_several:
            incoming.mark_cookies(mark_of_backend(self.backend.member.name))
        return incoming

    def opened(self, session: SessionHandle) -> None:
        """Do nothing: the session lives on the server, whatever becomes of connections."""

    def closed(self, session: SessionHandle) -> None:
        """Do nothing: the session has nothing here."""


def _with_cookies_for(mark: str, headers: list[tuple[str, str]]) -> Generator[tuple[str, str]]:
    for name, value in headers:
        if name.lower() != "cookie":
            yield name, value
        elif cookies := cookies_for(mark, value):
            yield name, cookies
