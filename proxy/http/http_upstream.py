"""Upstreams to backends that speak HTTP: a POST for each call, with the headers of its client."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Final

from proxy.backends.backend import Backend
from proxy.backends.pool import BackendPool
from proxy.kerberos.delegation import login_of
from proxy.operations.internal_call import Call
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError, OwnLoginError, UnsentError
from proxy.upstream.http_connections import HttpConnections, HttpReply
from proxy.upstream.http_cookies import cookies_for, mark_of_backend, marks_in
from proxy.upstream.http_headers import CallerHeaders, forwarded_headers, proxy_users_of
from proxy.upstream.login_cookies import CookieOwner, LoginCookie, SessionCookies
from proxy.wire.hs2.calls import CLOSE_SESSION, SessionHandle
from proxy.wire.sasl import plain_user


class HttpUpstreams:
    """The backends of a process, and its connections to them."""

    names_user: Final = False
    has_lasting_sessions: Final = True

    def __init__(self, dialer: Dialer, backends: BackendPool, key: bytes) -> None:
        """Take `key` for the digests of credentials, so that they are of no use elsewhere."""
        # At a kerberized backend the configuration of a session names its user, and doAs would overrule that.
        self.takes_do_as = dialer.upstream.kerberos is None
        self._dialer = dialer
        self.connections: HttpConnections
        self.cookies = SessionCookies()
        self.backends = backends
        self.key = key

    def client(self, query: str, headers: list[tuple[str, str]], proven: bytes | None) -> HttpClient:
        """See Upstreams."""
        return HttpClient(self, query, headers, proven)

    async def start(self) -> None:
        """Open the connections' client."""
        self.connections = HttpConnections(self._dialer)

    async def close(self) -> None:
        """End all connections."""
        await self.connections.close()


class HttpClient:
    """The client that sent a request: all its headers go with each call of ours too."""

    def __init__(
        self, upstreams: HttpUpstreams, query: str, headers: list[tuple[str, str]], proven: bytes | None
    ) -> None:
        self._upstreams = upstreams
        self._query = query
        self._proven = proven
        self._headers = [*forwarded_headers(headers, to_backend=True), ("Accept-Encoding", "identity")]
        self.marks = marks_in(value for name, value in headers if name.lower() == "cookie")

    def at(self, backend: Backend) -> HttpUpstream:
        """An upstream to that backend, which is asked as this client and gets no other backend's cookies."""
        is_marked = self._upstreams.backends.has_had_several or self.marks
        mark = mark_of_backend(backend.member.name) if is_marked else None
        headers = self._headers if mark is None else list(_with_cookies_for(mark, self._headers))
        caller = CallerHeaders.from_request(self._query, headers, self._proven)
        return HttpUpstream(self._upstreams, backend, caller, headers)


class HttpUpstream:
    """One backend, asked in the name of one client."""

    def __init__(
        self, upstreams: HttpUpstreams, backend: Backend, caller: CallerHeaders, headers: list[tuple[str, str]]
    ) -> None:
        self._upstreams = upstreams
        self._headers = headers
        self._caller = caller
        self.backend = backend
        self.name = caller.owner_digest_without_cookie(upstreams.key)
        self.login = caller.login
        self.names = caller.claimed_users
        self.who = "\0".join((*sorted(self.names), "", *proxy_users_of(caller.query))) if self.names else ""
        # The owner of the cookie of our login at the backend, if it asks for Kerberos, and the cookie used last.
        self._owner: CookieOwner | None = None
        self._cookie: LoginCookie | None = None

    @property
    def owner(self) -> str | None:
        """The owner of sessions that are opened here; None where nothing may be asked in that name."""
        return self._caller.owner_digest(self._upstreams.key) if self._caller.can_be_reused else None

    @property
    def own_login(self) -> str:
        """See Upstream. Empty if the session is that of a cookie's user, or of a user that the query names."""
        credentials = self.credentials
        if credentials is None or self._caller.query or plain_user(credentials) != self.login:
            return ""
        return login_of(credentials)

    @property
    def credentials(self) -> bytes | None:
        """See Upstream."""
        return self._caller.credentials

    async def send(self, call: Call) -> HttpReply:
        """Make a call, which occupies a thread of the backend until its reply is read. Raises BackendError."""
        upstreams, address = self._upstreams, self.backend.member.address
        backends = upstreams.backends
        lease = backends.lease_for_client(self.backend)
        if lease is None:
            raise UnsentError(f"the backend {address} {backends.full_reason}")
        try:
            cookie = self._cookie_for(call)
            incoming = await upstreams.connections.post(
                address, call.message, self._caller.query, self._headers, self.credentials or b"", cookie
            )
        except BaseException as error:
            if isinstance(error, BackendError) and not isinstance(error, OwnLoginError):
                lease.backend_failed(str(error))
            lease.release()
            if isinstance(error, OwnLoginError):
                raise UnsentError(str(error)) from None
            raise
        lease.backend_answered()
        incoming.call_at_end(lease.release)
        if cookie is not None and self._owner is not None:
            if call.name == CLOSE_SESSION:
                cookie.session_closed()
            incoming.call_when_read(partial(upstreams.cookies.reply_came, self._owner, call, cookie))
        if backends.has_had_several:
            incoming.mark_cookies(mark_of_backend(self.backend.member.name))
        return incoming

    def _cookie_for(self, call: Call) -> LoginCookie | None:
        upstreams, member = self._upstreams, self.backend.member
        principal = upstreams.connections.principal_at(member.address, self.credentials or b"")
        if principal is None:
            return None
        self._owner = CookieOwner(member.name, "\0".join(sorted(self.names)), principal)
        self._cookie = upstreams.cookies.cookie_for(self._owner, call)
        return self._cookie

    def opened(self, session: SessionHandle) -> None:
        """The last call has opened this session. It lives on the server, whatever becomes of connections."""
        if self._owner is not None and self._cookie is not None:
            self._upstreams.cookies.session_opened(self._owner, session, self._cookie)

    def closed(self, session: SessionHandle) -> None:
        """Do nothing: nothing is kept here for a session."""


def _with_cookies_for(mark: str, headers: list[tuple[str, str]]) -> Generator[tuple[str, str]]:
    for name, value in headers:
        if name.lower() != "cookie":
            yield name, value
        elif cookies := cookies_for(mark, value):
            yield name, cookies
