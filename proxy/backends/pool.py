"""The pool of backends: leases of connections on them, and draining. Pure: no I/O, the clock is handed in."""

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
from proxy.config.backend_list import PoolMember

# A client waits while one backend after the other is tried, each for the whole connect timeout.
TRIES_MAX: Final = 4
# The longest list of backends in a message to a client.
NAMED_MAX: Final = 3

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PoolSettings:
    """Limits for each backend."""

    # Below the server's 500 threads: the server does not refuse the 501st connection, it lets it hang.
    connections_max: int = 480
    # A login's connections stay on one backend up to this many, then they spread.
    login_together_max: int = 8
    thresholds: Thresholds = THRESHOLDS


class Lease:
    """A slot for one connection on a backend, until it is released. Only the first result and release count."""

    def __init__(self, backend: Backend, login: str | None, *, is_trial: bool, connections_max: int) -> None:
        self._backend = backend
        self._login = login
        self._is_trial = is_trial
        self._connections_max = connections_max
        self._has_result = self._is_released = False
        backend.connections += 1
        if login is not None:
            backend.logins[login] += 1

    @property
    def member(self) -> PoolMember:
        """The backend's configured address and weight."""
        return self._backend.member

    @property
    def address(self) -> Address:
        """The address to connect to."""
        return self._backend.member.address

    @property
    def takes_sessions(self) -> bool:
        """True if the backend may keep its connections: it is neither drained nor removed."""
        return self._backend.takes_sessions

    def backend_answered(self) -> None:
        """Record that the backend has answered, so it works."""
        if not self._has_result:
            self._end_trial()
            self._backend.breaker.record_success()

    def backend_failed(self, reason: str) -> None:
        """Record that the backend could not be connected, or closed the connection without an answer."""
        if not self._has_result:
            self._backend.breaker.record_failure()
            self._end_trial()
            self._backend.record_failure(reason)

    def backend_failed_alone(self, reason: str) -> None:
        """Count a failure of a lease released without a result: another backend has answered the same."""
        self._backend.breaker.record_failure()
        self._backend.record_failure(reason)

    def lease_for_proxy(self) -> Lease | None:
        """Return a lease for the proxy's own connection to the same backend, or None if it is full."""
        if self._backend.connections >= self._connections_max:
            return None
        return Lease(self._backend, None, is_trial=False, connections_max=self._connections_max)

    def release(self) -> None:
        """Free the slot: the connection has ended, or was never opened."""
        if self._is_released:
            return
        self._is_released = True
        self._end_trial()
        self._backend.connections -= 1
        if self._login is not None:
            self._backend.client_logged_out(self._login)

    def _end_trial(self) -> None:
        self._has_result = True
        if self._is_trial:
            self._is_trial = False
            self._backend.breaker.trial_ended()


class BackendPool:
    """All backends. A backend that is not configured any more stays until its connections have ended."""

    def __init__(
        self,
        members: Iterable[PoolMember],
        clock: Callable[[], float],
        settings: PoolSettings | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._settings = settings or PoolSettings()
        self._clock = clock
        self._chance = chance
        self._backends: dict[Address, Backend] = {}
        # Ends a session of the proxy's own at the backend of that name, to make room for a client. False if none.
        self.make_room: Callable[[str], bool] = lambda _name: False
        # Called for each client that is not let in.
        self.login_refused: Callable[[], None] = lambda: None
        # True if there was ever more than one: then a client's cookie may be from another backend.
        self.has_had_several = False
        self.configure(members)

    @property
    def configured(self) -> tuple[Backend, ...]:
        """The backends that are configured."""
        return tuple(backend for backend in self._backends.values() if not backend.is_removed)

    @property
    def display_name(self) -> str:
        """The backends' names in messages to users."""
        if not self.configured:
            return "that is configured"
        names = [backend.member.name for backend in self.configured]
        more = len(names) - NAMED_MAX
        return ", ".join(names[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")

    @property
    def is_any_healthy(self) -> bool:
        """True if a new session would find a healthy backend."""
        return any(view.healthy for view in self.views())

    def configure(self, members: Iterable[PoolMember]) -> None:
        """Replace the members. A backend that stays keeps its state.

        Removed backends stay only while they have connections or sessions, which bounds their number.
        """
        named = {member.address: member for member in members}
        for address, member in named.items():
            if (known := self._backends.get(address)) is not None:
                known.member, known.is_removed = member, False
            else:
                self._backends[address] = Backend(member, self._settings.thresholds, self._clock)
        for address, backend in self._backends.items():
            backend.is_removed = address not in named
        self.has_had_several |= len(self._backends) > 1
        self._forget_unused_backends()

    def drain(self, name: str, *, on: bool) -> bool:
        """Stop or resume giving new sessions to a backend. False if there is no backend of that name."""
        for backend in self.configured:
            if backend.member.name == name:
                backend.is_drained = on
                log.info("the backend %s takes %s", name, "no more sessions" if on else "sessions again")
                return True
        return False

    def search(self, login: str | None = None) -> BackendSearch:
        """Return a search for a backend for a new connection, best first."""
        return BackendSearch(self, login)

    def backend_named(self, name: str) -> Backend | None:
        """Return the backend of that name, also one that is drained or removed, for the sessions already on it."""
        return next((one for one in self._backends.values() if one.member.name == name), None)

    def choose(self, login: str | None = None, tried: frozenset[Address] = frozenset()) -> Backend | None:
        """Return the best backend that takes sessions and has room, except those already tried."""
        self._forget_unused_backends()
        taking = self._taking_sessions(tried)
        free = [one for one in taking if one.connections < self._settings.connections_max]
        if not free:
            # One backend is enough: the client needs room for one connection.
            made = next((one for one in taking if self.make_room(one.member.name)), None)
            free = [] if made is None else [made]
        return choose(free, login, self._settings.login_together_max, self._chance)

    def lease(self, login: str | None, tried: frozenset[Address] = frozenset()) -> Lease | None:
        """Return a lease on the best backend, except those already tried."""
        chosen = self.choose(login, tried)
        return None if chosen is None else self.lease_for_client(chosen, login)

    def lease_for_client(self, backend: Backend, login: str | None = None) -> Lease | None:
        """Return a lease for a client's connection to this backend, or None if it is full."""
        limit = self._settings.connections_max
        if backend.connections >= limit and not self.make_room(backend.member.name):
            return None
        return Lease(backend, login, is_trial=backend.breaker.begin_connection(), connections_max=limit)

    def lease_on_backend_named(self, name: str, login: str | None) -> Lease | None:
        """Return a lease for a client's connection to the backend of its session, None if that is impossible."""
        backend = self.backend_named(name)
        return None if backend is None or not backend.breaker.admits else self.lease_for_client(backend, login)

    def lease_for_proxy(self, backend: Backend) -> Lease | None:
        """Return a lease for the proxy's own connection to this backend, healthy or not; None if it is full."""
        limit = self._settings.connections_max
        if backend.connections >= limit:
            return None
        return Lease(backend, None, is_trial=False, connections_max=limit)

    def why_no_room(self) -> str:
        """Return why no backend has room."""
        if not self.configured:
            return "its name has no address that is known"
        if not self._taking_sessions(frozenset()):
            return "it is being drained and takes no new sessions"
        return f"each backend {self.full_reason}"

    @property
    def full_reason(self) -> str:
        """The words that follow the name of a backend without room."""
        limit = self._settings.connections_max
        return f"has {limit} connections already (proxy.backend_connections_max); try again later"

    def views(self) -> tuple[BackendView, ...]:
        """Return the states of all backends, with those that are removed and still have connections."""
        return tuple(backend.view(self._settings.connections_max) for backend in self._backends.values())

    def _taking_sessions(self, tried: frozenset[Address]) -> list[Backend]:
        return [one for address, one in self._backends.items() if one.takes_sessions and address not in tried]

    def _forget_unused_backends(self) -> None:
        unused = {address: not (one.connections or one.sessions) for address, one in self._backends.items()}
        gone = [address for address, one in self._backends.items() if one.is_removed and unused[address]]
        for address in gone:
            del self._backends[address]


class BackendSearch:
    """The search of one client's connection for a backend, best first."""

    def __init__(self, backends: BackendPool, login: str | None) -> None:
        self._backends = backends
        self._login = login
        self._failures: dict[Address, str] = {}
        self._lease: Lease | None = None
        # Backends that closed the connection without an answer, after another one had done so.
        self._unjudged: list[Lease] = []
        self._is_any_unanswered = False

    def next_lease(self) -> Lease | None:
        """Return a lease on the next backend, or None if the client has to be refused."""
        if len(self._failures) >= TRIES_MAX:
            return None
        self._lease = self._backends.lease(self._login, frozenset(self._failures))
        return self._lease

    def lease_failed(self, reason: str) -> None:
        """Record that the backend of the last lease could not be connected.

        It counts against the backend, unless the lease has been released: a released lease has its result.
        """
        if self._lease is not None:
            self._failures[self._lease.address] = reason
            self._lease.backend_failed(reason)
            self._lease.release()

    def login_unanswered(self, reason: str) -> None:
        """Record that the backend of the last lease has closed the connection without a word about the login.

        Something in the login may be the reason. So the first such backend counts at once, and the others only
        when another backend has answered: one login cannot open all circuit breakers.
        """
        if self._lease is None:
            return
        if self._is_any_unanswered:
            self._unjudged.append(self._lease)
            self._lease.release()
        self._is_any_unanswered = True
        self.lease_failed(reason)

    def time_is_up(self, reason: str) -> str:
        """Return the reason for a client that waits no longer for the last lease.

        It does not count against the backend: those before it have used up a part of the time.
        """
        if self._lease is not None:
            _ = self._failures.setdefault(self._lease.address, reason)
        return self.reason

    def login_answered(self) -> None:
        """Count the backends that have not answered the login, since another one has."""
        while self._unjudged:
            lease = self._unjudged.pop()
            lease.backend_failed_alone(self._failures[lease.address])

    @property
    def reason(self) -> str:
        """The reason why no backend was found, for the client."""
        if not self._failures:
            return self._backends.why_no_room()
        if len(self._failures) == 1:
            return next(iter(self._failures.values()))
        return "; ".join(f"{address}: {reason}" for address, reason in self._failures.items())
