"""What is known of one backend: its load, how it is, and what went wrong last. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proxy.backends.circuit_breaker import BreakerState, CircuitBreaker
from proxy.backends.health import Health, Thresholds
from proxy.config.backend_list import Member

# Enough to see whether all are of one kind.
ERRORS_KEPT: Final = 5
# Queries are asked so rarely that each counts for more.
QUERY_THRESHOLDS: Final = Thresholds(failures_to_down=2, successes_to_up=1)
# A backend's own words may be a stack trace.
ERROR_CHARACTERS_MAX: Final = 300


@dataclass(frozen=True)
class Failure:
    """Something that went wrong with a backend, and how long ago."""

    reason: str
    seconds_ago: float


@dataclass(frozen=True)
class BackendView:
    """A backend as the admin port shows it."""

    name: str
    # Whether it takes new sessions as a matter of course.
    healthy: bool
    draining: bool
    probes: str
    breaker: str
    connections: int
    connections_max: int
    # Those over HTTP, which have no connection of their own.
    sessions: int
    weight: int
    failures: int
    last_failures: tuple[Failure, ...]


class Backend:
    """One backend. Counts are kept by its leases."""

    def __init__(self, member: Member, thresholds: Thresholds, clock: Callable[[], float]) -> None:
        self.member = member
        # What logins tell, and what queries do. A server may answer the one and not the other.
        self.logins_work = Health(thresholds)
        self.queries_work = Health(QUERY_THRESHOLDS)
        self.breaker = CircuitBreaker(clock)
        # Connections of clients and of ours: each has one of the server's threads.
        self.connections = 0
        # Sessions of clients that have no connection of their own: over HTTP a call has one while it runs.
        self.sessions = 0
        # Those of clients by who logged in, for as long as they last.
        self.logins: Counter[str] = Counter()
        self.is_drained = False
        # No longer configured: it stays until its last connection ends, and its last session.
        self.is_removed = False
        self.failures = 0
        self._clock = clock
        self._errors: deque[tuple[float, str]] = deque(maxlen=ERRORS_KEPT)

    @property
    def takes_sessions(self) -> bool:
        """Whether somebody wants new sessions on it."""
        return not self.is_drained and not self.is_removed

    @property
    def is_up(self) -> bool:
        """Whether probes have nothing against it."""
        return self.logins_work.is_up and self.queries_work.is_up

    @property
    def is_healthy(self) -> bool:
        """Whether there is nothing against another connection."""
        return self.is_up and self.breaker.admits

    @property
    def load(self) -> float:
        """Its connections and sessions, as many as one of weight 1 would have."""
        return (self.connections + self.sessions) / self.member.weight

    def logged_out(self, login: str) -> None:
        """A client's connection has ended."""
        self.logins[login] -= 1
        # A count of zero would stay, one for each login that there ever was.
        if not self.logins[login]:
            del self.logins[login]

    def failed(self, reason: str) -> None:
        """Something went wrong."""
        self.failures += 1
        self._errors.append((self._clock(), reason[:ERROR_CHARACTERS_MAX]))

    def view(self, connections_max: int) -> BackendView:
        """As it is now."""
        now = self._clock()
        return BackendView(
            name=self.member.name,
            # A trial that is under way says nothing against it: it is what will tell.
            healthy=self.takes_sessions and self.is_up and self.breaker.state is not BreakerState.OPEN,
            draining=not self.takes_sessions,
            probes="up" if self.is_up else "down",
            breaker=self.breaker.state.value,
            connections=self.connections,
            connections_max=connections_max,
            sessions=self.sessions,
            weight=self.member.weight,
            failures=self.failures,
            last_failures=tuple(Failure(reason, round(now - at, 1)) for at, reason in reversed(self._errors)),
        )
