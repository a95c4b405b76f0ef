"""The state of one backend: its load, its health and its last failures. Pure."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proxy.backends.circuit_breaker import BreakerState, CircuitBreaker
from proxy.backends.health import Health, Thresholds
from proxy.config.backend_list import PoolMember

# Enough to see whether all failures are of one kind.
ERRORS_KEPT: Final = 5
# Health-check queries run so rarely that each counts for more.
QUERY_THRESHOLDS: Final = Thresholds(failures_to_down=2, successes_to_up=1, first_failures_to_down=2)
# A backend's error message may be a stack trace.
ERROR_CHARACTERS_MAX: Final = 300


@dataclass(frozen=True)
class BackendFailure:
    """A failure of a backend, and how long ago it happened."""

    reason: str
    seconds_ago: float


@dataclass(frozen=True)
class BackendView:
    """A backend as the admin port shows it."""

    name: str
    # True if it takes new sessions and is healthy.
    healthy: bool
    draining: bool
    probes: str
    breaker: str
    connections: int
    connections_max: int
    # Sessions over HTTP, which have no connection of their own.
    sessions: int
    weight: int
    failures: int
    last_failures: tuple[BackendFailure, ...]


class Backend:
    """One backend. Its leases keep the counts."""

    def __init__(self, member: PoolMember, thresholds: Thresholds, clock: Callable[[], float]) -> None:
        self.member = member
        # Health by logins, and health by queries. A server may answer the one and not the other.
        self.login_health = Health(thresholds)
        self.query_health = Health(QUERY_THRESHOLDS)
        self.breaker = CircuitBreaker(clock)
        # Connections of clients and of the proxy: each takes one of the server's threads.
        self.connections = 0
        # Sessions of clients over HTTP, which have a connection only while a call runs.
        self.sessions = 0
        # Open connections of clients, by login.
        self.logins: Counter[str] = Counter()
        self.is_drained = False
        # Not configured any more: the backend stays until its last connection and its last session end.
        self.is_removed = False
        self.failures = 0
        self._clock = clock
        self._errors: deque[tuple[float, str]] = deque(maxlen=ERRORS_KEPT)

    @property
    def takes_sessions(self) -> bool:
        """True if the configuration and the operator allow new sessions on it."""
        return not self.is_drained and not self.is_removed

    @property
    def is_up(self) -> bool:
        """True if health checks pass."""
        return self.login_health.is_up and self.query_health.is_up

    @property
    def is_healthy(self) -> bool:
        """True if nothing is known against it: health checks pass, and connections have not failed in a row.

        Half-open is not healthy: time alone shows nothing. The pages, the metrics and /readyz say this.
        """
        return self.is_up and self.breaker.state is BreakerState.CLOSED

    @property
    def is_eligible(self) -> bool:
        """True if it is healthy, or due for the trial that shows whether it is again."""
        return self.is_up and self.breaker.admits

    @property
    def load(self) -> float:
        """Its connections and sessions, divided by its weight."""
        return (self.connections + self.sessions) / self.member.weight

    def client_logged_out(self, login: str) -> None:
        """Note that a client's connection has ended."""
        self.logins[login] -= 1
        # Counter keeps zeros: without this, one would stay for each login that there ever was.
        if not self.logins[login]:
            del self.logins[login]

    def record_probe(self, health: Health, reason: str | None) -> bool:
        """Record the result of a probe, and return whether its health has changed. None: it answered."""
        if reason is not None:
            self.record_failure(f"probe: {reason}")
        has_changed = health.record_probe(answered=reason is None)
        if reason is None:
            if has_changed:
                # A server that was down and is back: what clients met before is no longer true.
                self.breaker.record_success()
            self.breaker.record_probe_success()
        return has_changed

    def record_failure(self, reason: str) -> None:
        """Record a failure, to be shown on the admin port."""
        self.failures += 1
        self._errors.append((self._clock(), reason[:ERROR_CHARACTERS_MAX]))

    def view(self, connections_max: int) -> BackendView:
        """Return the state for the admin port."""
        now = self._clock()
        return BackendView(
            name=self.member.name,
            healthy=self.takes_sessions and self.is_healthy,
            draining=not self.takes_sessions,
            probes="up" if self.is_up else "down",
            breaker=self.breaker.state.value,
            connections=self.connections,
            connections_max=connections_max,
            sessions=self.sessions,
            weight=self.member.weight,
            failures=self.failures,
            last_failures=tuple(
                BackendFailure(reason, round(now - at, 1)) for at, reason in reversed(self._errors)
            ),
        )
