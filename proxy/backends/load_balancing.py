"""Which backend a new session goes to. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from proxy.backends.backend import Backend
from proxy.backends.circuit_breaker import BreakerState


def choose(
    free: Sequence[Backend], login: str | None, together_max: int, chance: Callable[[], float]
) -> Backend | None:
    """The best of those that take sessions and have room: their own login's, or the least loaded.

    Where none is healthy, the one with the least against it is tried all the same: to be refused by it is no worse
    than to be refused by us, and it may just have come back.
    """
    healthy = [backend for backend in free if backend.is_healthy]
    if healthy:
        return _home(healthy, login, together_max) or min(healthy, key=lambda one: (one.load, chance()))
    return min(free, key=lambda one: (_what_is_against(one), one.load, chance()), default=None)


def _home(healthy: Sequence[Backend], login: str | None, together_max: int) -> Backend | None:
    """Where this login is already: a session's handle works from any connection, but on its own server alone."""
    if login is None:
        return None
    home = max(healthy, key=lambda one: one.logins[login])
    return home if 0 < home.logins[login] < together_max else None


def _what_is_against(backend: Backend) -> int:
    return (not backend.is_up) + (backend.breaker.state is BreakerState.OPEN)
