"""A pool of logged-in binary connections, for clients over HTTP before a backend that speaks the binary protocol.

A session lives as long as the connection that opened it, so that connection is kept while its user is active.
Handles work from any connection of the user, so concurrent calls take others, logged in by the same credentials.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from proxy.backends.backend import Backend
from proxy.backends.pool import BackendPool, Lease
from proxy.config.config import Config
from proxy.config.endpoints import Transport
from proxy.upstream.binary_link import BinaryLink
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError, LoginError, OwnLoginError, RefusedError, UnsentError
from proxy.wire.hs2.calls import SessionHandle

log = logging.getLogger(__name__)

# How often to look for unused connections.
SWEEP_S: Final = 5.0
# How long a connection without sessions is kept for the next call: clients call again within milliseconds.
UNUSED_S: Final = 15.0


class PoolKey(NamedTuple):
    """The backend of a connection, and the user who may use it."""

    backend: str
    user: str


@dataclass(eq=False)
class PooledConnection:
    """One connection, and the sessions that end with it."""

    wire: BinaryLink
    owner: PoolKey
    lease: Lease
    sessions: set[SessionHandle] = field(default_factory=set, repr=False)
    is_busy: bool = True
    idle_since: float = 0.0


class BinaryPool:
    """The pool of a process. `on_lost` is told of sessions that have ended with their connection."""

    def __init__(
        self,
        config: Config,
        dialer: Dialer,
        backends: BackendPool,
        on_lost: Callable[[Iterable[SessionHandle]], None],
    ) -> None:
        # A login waits for a directory service at most.
        self._login_timeout_s = config.proxy.handshake_timeout_s
        self._links_max = config.proxy.connections_max
        self._session_idle_s = config.http.session_idle_s
        self._dialer = dialer
        self._backends = backends
        self._on_lost = on_lost
        self._links: dict[PoolKey, list[PooledConnection]] = {}
        self._count = 0
        # The time of the last call of each user with connections.
        self._heard: dict[PoolKey, float] = {}
        self._tails: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def count(self) -> int:
        """The number of connections."""
        return self._count

    async def take(self, backend: Backend, user: str, credentials: bytes | None) -> PooledConnection:
        """A connection to that backend for one call, logged in by these credentials. Raises BackendError."""
        if credentials is None and self._dialer.upstream.transport is not Transport.NOSASL:
            raise RefusedError("the backend takes a name and a password, and the request has none (basic)")
        owner = PoolKey(backend.member.name, user)
        for link in self._links.get(owner, ()):
            if not link.is_busy and not link.wire.is_closed:
                link.is_busy = True
                self._heard[owner] = _now()
                return link
        return await self._open(owner, backend, credentials or b"")

    def give_back(self, link: PooledConnection) -> None:
        """Take back a connection whose reply has been read to its end."""
        link.is_busy = False
        link.idle_since = _now()
        if link.owner in self._links:
            self._heard[link.owner] = link.idle_since

    def read_past(self, link: PooledConnection) -> None:
        """Read the rest of a reply that nobody wants, so that the sessions live on."""
        task = asyncio.get_running_loop().create_task(self._read_past(link))
        self._tails.add(task)
        task.add_done_callback(self._tails.discard)

    def end(self, link: PooledConnection) -> None:
        """Close a connection: the sessions that were opened on it have ended."""
        mine = self._links.get(link.owner, [])
        if link not in mine:
            return
        mine.remove(link)
        if not mine:
            del self._links[link.owner]
            self._heard.pop(link.owner, None)
        self._count -= 1
        link.wire.close()
        link.lease.release()
        self._on_lost(link.sessions)

    def closed(self, session: SessionHandle, backend: Backend, user: str) -> None:
        """Note that a client closes its session: its connection may go too."""
        for link in self._links.get(PoolKey(backend.member.name, user), ()):
            link.sessions.discard(session)

    def close(self) -> None:
        """End all of them."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for task in self._tails:
            task.cancel()
        for link in [link for links in self._links.values() for link in links]:
            self.end(link)

    async def _open(self, owner: PoolKey, backend: Backend, credentials: bytes) -> PooledConnection:
        if self._count >= self._links_max:
            raise UnsentError(
                f"Starpruner has {self._count} connections to the backend already (connections_max); "
                "try again later"
            )
        lease = self._backends.lease_for_client(backend)
        if lease is None:
            raise UnsentError(f"the backend {backend.member.name} {self._backends.full_reason}")
        self._count += 1
        wire = BinaryLink(backend.member.address, self._dialer, self._login_timeout_s)
        try:
            await wire.open(credentials, "a client")
        except BaseException as error:
            self._count -= 1
            _judge(lease, error)
            lease.release()
            if isinstance(error, LoginError):
                raise RefusedError(str(error)) from None
            if isinstance(error, BackendError):
                raise UnsentError(str(error)) from None
            raise
        link = PooledConnection(wire, owner, lease)
        self._links.setdefault(owner, []).append(link)
        self._heard[owner] = _now()
        if self._sweeper is None:
            self._sweep()
        return link

    async def _read_past(self, link: PooledConnection) -> None:
        try:
            while link.wire.awaits_reply:
                _ = await link.wire.next_chunk()
        except BackendError:
            self.end(link)
        else:
            self.give_back(link)

    def _sweep(self) -> None:
        now = _now()
        for link in [link for links in self._links.values() for link in links]:
            if link.wire.is_closed or (not link.is_busy and self._is_unused(link, now)):
                self.end(link)
        self._sweeper = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)

    def _is_unused(self, link: PooledConnection, now: float) -> bool:
        if link.sessions:
            return now - self._heard[link.owner] > self._session_idle_s
        return now - link.idle_since > UNUSED_S


def _judge(lease: Lease, error: BaseException) -> None:
    """Record a login's end. A refused one is an answer; our own failure, or a client that left, says nothing."""
    if isinstance(error, LoginError):
        lease.backend_answered()
    elif isinstance(error, BackendError) and not isinstance(error, OwnLoginError):
        lease.backend_failed(str(error))


def _now() -> float:
    return asyncio.get_running_loop().time()
