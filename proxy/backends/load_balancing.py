"""The choice of a backend for a new session. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from proxy.backends.backend import Backend
from proxy.backends.circuit_breaker import BreakerState


def choose(
    free: Sequence[Backend], login: str | None, together_max: int, chance: Callable[[], float]
) -> Backend | None:
    """Choose among backends that take sessions and have room: the one that this login is on, or the least loaded.

    If none is eligible, the one with the fewest problems is tried all the same: its refusal is no worse for the
    client than the proxy's, and the backend may just have come back.
    """
    eligible = [backend for backend in free if backend.is_eligible]
    if eligible:
        return _backend_of_login(eligible, login, together_max) or min(
            eligible, key=lambda one: (one.load, chance())
        )
    return min(free, key=lambda one: (_problem_count(one), one.load, chance()), default=None)


def _backend_of_login(eligible: Sequence[Backend], login: str | None, together_max: int) -> Backend | None:
    """Return the backend that this login is already on: a session's handle works only on its own server."""
    if login is None:
        return None
    most = max(eligible, key=lambda one: one.logins[login])
    return most if 0 < most.logins[login] < together_max else None


def _problem_count(backend: Backend) -> int:
    return (not backend.is_up) + (backend.breaker.state is BreakerState.OPEN)
