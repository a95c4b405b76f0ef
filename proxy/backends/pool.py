"""The backends as one: leases of connections on them, and their drain. Pure: no I/O, the clock is handed in."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from proxy.backends.backend import Backend, BackendView
from proxy.backends.health import THRESHOLDS, Thresholds
from proxy.backends.load_balancing import choose
from proxy.config.address import Address
from proxy.config.backend_list import Member

# A client waits while one after the other is tried, each for as long as a connection may take.
TRIES_MAX: Final = 4
# What a client is told names the backends, but no long list.
NAMED_MAX: Final = 3

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PoolSettings:
    """Limits of each backend."""

    # Below the server's 500 threads: the 501st connection would not be refused, it would hang.
    connections_max: int = 480
    # A login's connections stay on one backend up to this many, then they spread.
    login_together_max: int = 8
    thresholds: Thresholds = THRESHOLDS


class Lease:
    """Room for one connection on a backend, until it is released. Every call but the first says nothing new."""

    def __init__(self, backend: Backend, login: str | None, *, is_trial: bool, connections_max: int) -> None:
        self._backend = backend
        self._login = login
        self._is_trial = is_trial
        self._connections_max = connections_max
        self._is_judged = self._is_released = False
        backend.connections += 1
        if login is not None:
            backend.logins[login] += 1

    @property
    def member(self) -> Member:
        """Whose room it is."""
        return self._backend.member

    @property
    def address(self) -> Address:
        """Where to connect."""
        return self._backend.member.address

    def answered(self) -> None:
        """The backend has said something: it works."""
        if not self._is_judged:
            self._judge()
            self._backend.breaker.succeeded()

    def failed(self, reason: str) -> None:
        """The backend could not be connected, or has gone without a word."""
        if not self._is_judged:
            self._backend.breaker.failed()
            self._judge()
            self._backend.failed(reason)

    def beside(self) -> Lease | None:
        """Room for a connection of our own on the same backend, or None where it is full."""
        if self._backend.connections >= self._connections_max:
            return None
        return Lease(self._backend, None, is_trial=False, connections_max=self._connections_max)

    def release(self) -> None:
        """The connection has ended, or never came to be."""
        if self._is_released:
            return
        self._is_released = True
        self._judge()
        self._backend.connections -= 1
        if self._login is not None:
            self._backend.logged_out(self._login)

    def _judge(self) -> None:
        self._is_judged = True
        if self._is_trial:
            self._is_trial = False
            self._backend.breaker.trial_ended()


class BackendPool:
    """All of them. Those that are configured no longer stay for as long as they have connections."""

    def __init__(
        self,
        members: Iterable[Member],
        clock: Callable[[], float],
        settings: PoolSettings | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings or PoolSettings()
        self._clock = clock
        self._chance = chance
        self._backends: dict[Address, Backend] = {}
        # Whether there has ever been more than one: what a backend has told a client may then be for another.
        self.have_been_several = False
        self.configure(members)

    @property
    def all(self) -> tuple[Backend, ...]:
        """Those that are configured."""
        return tuple(backend for backend in self._backends.values() if not backend.is_removed)

    @property
    def name(self) -> str:
        """What they are called to users."""
        if not self.all:
            return "that is configured"
        names = [backend.member.name for backend in self.all]
        more = len(names) - NAMED_MAX
        return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")

    @property
    def is_any_healthy(self) -> bool:
        """Whether a new session would find a backend that works, as far as is known."""
        return any(view.healthy for view in self.views())

    def configure(self, members: Iterable[Member]) -> None:
        """From now on there are these. What a known one has told of itself is kept.

        Those that are removed are bounded by the connections and sessions that they still have.
        """
        named = {member.address: member for member in members}
        for address, member in named.items():
            if (known := self._backends.get(address)) is not None:
                known.member, known.is_removed = member, False
            else:
                self._backends[address] = Backend(member, self._settings.thresholds, self._clock)
        for address, backend in self._backends.items():
            backend.is_removed = address not in named
        self.have_been_several |= len(self._backends) > 1
        self._forget()

    def drain(self, name: str, *, on: bool) -> bool:
        """Give the backend no more sessions, or give it some again. False where there is none of the name."""
        for backend in self.all:
            if backend.member.name == name:
                backend.is_drained = on
                log.info("the backend %s takes %s", name, "no more sessions" if on else "sessions again")
                return True
        return False

    def search(self, login: str | None = None) -> BackendSearch:
        """A place for a new connection: best first, until one can be had."""
        return BackendSearch(self, login)

    def named(self, name: str) -> Backend | None:
        """The backend of that name, be it drained or removed, for what is on it already."""
        return next((one for one in self._backends.values() if one.member.name == name), None)

    def choose(self, login: str | None = None, besides: frozenset[Address] = frozenset()) -> Backend | None:
        """The best of them that takes sessions and has room, besides those that were tried already."""
        self._forget()
        free = [one for one in self._wanted(besides) if one.connections < self._settings.connections_max]
        return choose(free, login, self._settings.login_together_max, self._chance)

    def lease(self, login: str | None, besides: frozenset[Address] = frozenset()) -> Lease | None:
        """Room on the best of them, besides those that were tried already."""
        chosen = self.choose(login, besides)
        return None if chosen is None else self.lease_at(chosen, login)

    def lease_at(self, backend: Backend, login: str | None = None) -> Lease | None:
        """Room on this one for a client's connection, or None where it is full."""
        limit = self._settings.connections_max
        if backend.connections >= limit:
            return None
        return Lease(backend, login, is_trial=backend.breaker.begin(), connections_max=limit)

    def lease_named(self, name: str, login: str | None) -> Lease | None:
        """Room for a client's connection where a session of his is, or None where it is not to be had."""
        backend = self.named(name)
        return None if backend is None or not backend.breaker.admits else self.lease_at(backend, login)

    def lease_on(self, backend: Backend) -> Lease | None:
        """Room on this one for a connection of our own, whatever is against it, or None where it is full."""
        limit = self._settings.connections_max
        if backend.connections >= limit:
            return None
        return Lease(backend, None, is_trial=False, connections_max=limit)

    def why_none(self) -> str:
        """Why there is no room."""
        if not self.all:
            return "its name has no address that is known"
        if not self._wanted(frozenset()):
            return "it is being drained and takes no new sessions"
        return f"each backend {self.full}"

    @property
    def full(self) -> str:
        """What is to be said of a backend without room."""
        limit = self._settings.connections_max
        return f"has {limit} connections already (proxy.backend_connections_max); try again later"

    def views(self) -> tuple[BackendView, ...]:
        """All of them, those included that are removed and still have connections."""
        return tuple(backend.view(self._settings.connections_max) for backend in self._backends.values())

    def _wanted(self, besides: frozenset[Address]) -> list[Backend]:
        return [one for address, one in self._backends.items() if one.takes_sessions and address not in besides]

    def _forget(self) -> None:
        unused = {address: not (one.connections or one.sessions) for address, one in self._backends.items()}
        gone = [address for address, one in self._backends.items() if one.is_removed and unused[address]]
        for address in gone:
            del self._backends[address]


class BackendSearch:
    """The backends that one client's connection tries, best first."""

    def __init__(self, backends: BackendPool, login: str | None) -> None:
        self._backends = backends
        self._login = login
        self._failures: dict[Address, str] = {}
        self._lease: Lease | None = None

    def next(self) -> Lease | None:
        """Room on the next one, or None when the client has to be told."""
        if len(self._failures) >= TRIES_MAX:
            return None
        self._lease = self._backends.lease(self._login, frozenset(self._failures))
        return self._lease

    def failed(self, reason: str) -> None:
        """The last one could not be connected."""
        if self._lease is not None:
            self._failures[self._lease.address] = reason
            self._lease.failed(reason)
            self._lease.release()

    @property
    def reason(self) -> str:
        """Why no backend was found, for the client."""
        if not self._failures:
            return self._backends.why_none()
        if len(self._failures) == 1:
            return next(iter(self._failures.values()))
        return "; ".join(f"{address}: {reason}" for address, reason in self._failures.items())
