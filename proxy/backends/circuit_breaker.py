"""A backend's circuit breaker, driven by the results of clients' connections. Pure: the clock is handed in."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

# One refused connection may be an accident; three in a row, without a success between them, are not.
FAILURES_MAX: Final = 3
# About as long as a restarted server needs, and no longer than clients are willing to wait.
OPEN_S: Final = 5.0
# A backend that never returns costs one client a failed try each minute; that client then gets another backend.
OPEN_S_MAX: Final = 60.0


class BreakerState(Enum):
    """The connections that may go to the backend."""

    CLOSED = "closed"  # All.
    HALF_OPEN = "half-open"  # One trial connection, which shows whether the backend works again.
    OPEN = "open"  # None, unless there is no other backend.


class CircuitBreaker:
    """Opens after failures in a row. Each trial that fails doubles the time that it stays open.

    Example: after three failures it is open for 5 s, then half-open; if the trial fails, open for 10 s, and so on.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._open_s = OPEN_S
        # None: closed. Open until this time, half-open from then on.
        self._open_until: float | None = None
        self._is_on_trial = False

    @property
    def state(self) -> BreakerState:
        """The state at this moment."""
        if self._open_until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self._clock() < self._open_until else BreakerState.HALF_OPEN

    @property
    def admits(self) -> bool:
        """True if another connection may go to the backend while there are other backends."""
        state = self.state
        return state is BreakerState.CLOSED or (state is BreakerState.HALF_OPEN and not self._is_on_trial)

    def begin_connection(self) -> bool:
        """Begin a connection. Returns whether it is the trial; the caller then calls `trial_ended` in any case."""
        is_trial = self.state is BreakerState.HALF_OPEN and not self._is_on_trial
        self._is_on_trial |= is_trial
        return is_trial

    def trial_ended(self) -> None:
        """End the trial, also one without a result because its client left before the backend answered."""
        self._is_on_trial = False

    def record_success(self) -> None:
        """Record that the backend answered a client, which closes the breaker."""
        self._failures = 0
        self._open_s = OPEN_S
        self._open_until = None

    def record_probe_success(self) -> None:
        """Record that the backend answered a probe. If a trial is due, the probe is the trial.

        A login may fail where a probe does not, so the next failure opens the breaker again, for twice as long.
        """
        if self.state is BreakerState.HALF_OPEN:
            self._failures = FAILURES_MAX - 1
            self._open_s = min(2 * self._open_s, OPEN_S_MAX)
            self._open_until = None

    def record_failure(self) -> None:
        """Record that the backend did not answer a client."""
        self._failures += 1
        match self.state:
            case BreakerState.CLOSED if self._failures >= FAILURES_MAX:
                self._open_until = self._clock() + self._open_s
            case BreakerState.HALF_OPEN:
                self._open_s = min(2 * self._open_s, OPEN_S_MAX)
                self._open_until = self._clock() + self._open_s
            case _:
                # While open: the failed connection began before, or there was no other backend.
                pass
