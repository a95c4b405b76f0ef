"""Upstreams of clients over HTTP to backends that speak the binary protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from proxy.backends.backend import Backend
from proxy.config.endpoints import Transport
from proxy.http.binary_pool import BinaryPool, PooledConnection
from proxy.kerberos.delegation import login_of, name_of_owner
from proxy.operations.internal_call import Call, Reply
from proxy.upstream.errors import BackendError, OwnLimitError
from proxy.upstream.http_headers import CallerHeaders, Headers
from proxy.wire.hs2.calls import SessionHandle
from proxy.wire.sasl import plain_user


class BinaryUpstreams:
    """The backends of a process, and the pool of its connections to them."""

    takes_do_as: Final = False
    # The connection that opened a session counts as load, not the session.
    has_lasting_sessions: Final = False

    def __init__(self, pool: BinaryPool, transport: Transport, key: bytes) -> None:
        """Take `key` for the digests of credentials, so that they are of no use elsewhere."""
        self.names_user = transport is Transport.NOSASL
        self._links = pool
        self._key = key

    def client(self, query: str, headers: list[tuple[str, str]], proven: bytes | None) -> PooledClient:
        """See Upstreams."""
        return PooledClient(self._links, CallerHeaders.from_request(query, headers, proven), self._key)

    async def start(self) -> None:
        """Nothing is connected before there is a call to make."""

    async def close(self) -> None:
        """End all connections."""
        self._links.close()


class PooledClient:
    """The client that sent a request."""

    # These backends give no cookies.
    marks: Final[frozenset[str]] = frozenset()

    def __init__(self, links: BinaryPool, caller: CallerHeaders, key: bytes) -> None:
        self._links = links
        self._caller = caller
        self._key = key

    def at(self, backend: Backend) -> BinaryUpstream:
        """An upstream to that backend, which is asked as this client."""
        return BinaryUpstream(self._links, backend, self._caller, self._key)


class BinaryUpstream:
    """One backend, asked in the name of one client."""

    def __init__(self, links: BinaryPool, backend: Backend, caller: CallerHeaders, key: bytes) -> None:
        self._links = links
        self.backend = backend
        self.credentials = caller.credentials
        # The backend knows a client by name and password: equal ones are one client. With tickets, equal
        # principals are: each request has a ticket of its own, and one of them opens the connection.
        self.name = caller.owner_digest_without_cookie(key)
        self.owner = None if self.credentials is None else self.name
        self.login = None if self.credentials is None else plain_user(self.credentials)
        self.names = frozenset(
            () if self.credentials is None else (name_of_owner(self.credentials).decode("utf-8", "replace"),)
        )
        self.own_login = "" if self.credentials is None else login_of(self.credentials)
        self.who = "\0".join(self.names)
        self._last: PooledConnection | None = None

    async def send(self, call: Call) -> PooledReply:
        """Make a call. Raises BackendError."""
        link = self._last = await self._links.take(self.backend, self.name, self.credentials)
        incoming = PooledReply(self._links, link)
        try:
            await incoming.begin(call)
        except BackendError:
            self._links.end(link)
            raise
        except BaseException:
            # The client has left. Its call is on the way, and the reply to it will come.
            incoming.drop()
            raise
        return incoming

    def opened(self, session: SessionHandle) -> None:
        """Note that the last call has opened this session, which ends with that call's connection."""
        if self._last is not None:
            self._last.sessions.add(session)

    def closed(self, session: SessionHandle) -> None:
        """The client closes the session."""
        self._links.closed(session, self.backend, self.name)


class PooledReply:
    """The reply to one call. Its length is not known before its end."""

    status: Final = 200
    headers: Final[Headers] = ()
    length: Final = None
    is_reply: Final = True

    def __init__(self, links: BinaryPool, link: PooledConnection) -> None:
        self._links = links
        self._link = link
        # Bytes that have come and were not handed out, and the number of all bytes so far.
        self._read: list[bytes] = []
        self._count = 0
        self._is_done = False

    async def begin(self, call: Call) -> None:
        """Make the call, and wait until its reply begins. Raises BackendError."""
        await self._link.wire.send(call.name, call.seqid, call.message)
        await self._more()

    async def read_all(self, bytes_max: int) -> Reply:
        """All of it; None if it is longer, and `chunks` still has everything. Raises BackendError."""
        while self._count <= bytes_max:
            if self._is_done:
                return b"".join(self._read)
            await self._more()
        return None

    async def chunks(self) -> AsyncIterator[bytes]:
        """The parts of the body, as they come. Raises BackendError where the body is cut off."""
        while self._read or not self._is_done:
            if not self._read:
                await self._more()
            kept, self._read = self._read, []
            for piece in kept:
                yield piece

    def drop(self) -> None:
        """Drop the rest of the reply. The connection is still of use, so the pool reads past the rest."""
        if not self._is_done:
            self._is_done = True
            self._links.read_past(self._link)

    async def _more(self) -> None:
        wire = self._link.wire
        try:
            piece = await wire.next_chunk()
        except BackendError as error:
            self._is_done = True
            if not isinstance(error, OwnLimitError):
                self._link.lease.backend_failed("closed the connection without a word")
            self._links.end(self._link)
            raise
        self._link.lease.backend_answered()
        self._read.append(piece)
        self._count += len(piece)
        if not wire.awaits_reply:
            self._is_done = True
            self._links.give_back(self._link)
