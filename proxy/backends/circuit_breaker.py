"""A circuit breaker: what clients' connections tell of a backend. Pure: the clock is handed in."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

# One refused connection may be a hiccup; three in a row, with none between them that worked, are not.
FAILURES_MAX: Final = 3
# As long as a server takes to notice that it is up again, and no longer than its clients like to wait.
OPEN_S: Final = 5.0
# A backend that is gone for good costs one client each minute a try that fails, and that client goes elsewhere.
OPEN_S_MAX: Final = 60.0


class BreakerState(Enum):
    """What may go to the backend."""

    CLOSED = "closed"  # Everything.
    HALF_OPEN = "half-open"  # One connection, which says whether it works again.
    OPEN = "open"  # Nothing, unless there is no other backend.


class CircuitBreaker:
    """Opens after failures in a row, for longer each time that the trial which follows fails too."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._open_s = OPEN_S
        # None: closed. From this time on it is half-open.
        self._opens_until: float | None = None
        self._is_on_trial = False

    @property
    def state(self) -> BreakerState:
        """As it is now."""
        if self._opens_until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self._clock() < self._opens_until else BreakerState.HALF_OPEN

    @property
    def admits(self) -> bool:
        """Whether another connection may go to the backend though there are others."""
        state = self.state
        return state is BreakerState.CLOSED or (state is BreakerState.HALF_OPEN and not self._is_on_trial)

    def begin(self) -> bool:
        """A connection goes to the backend; whether it is the trial, whose end is to be told in any case."""
        is_trial = self.state is BreakerState.HALF_OPEN and not self._is_on_trial
        self._is_on_trial |= is_trial
        return is_trial

    def trial_ended(self) -> None:
        """The trial is over, and may have shown nothing: its client left before the backend answered."""
        self._is_on_trial = False

    def succeeded(self) -> None:
        """The backend answered somebody."""
        self._failures = 0
        self._open_s = OPEN_S
        self._opens_until = None

    def failed(self) -> None:
        """The backend did not answer somebody."""
        self._failures += 1
        match self.state:
            case BreakerState.CLOSED if self._failures >= FAILURES_MAX:
                self._opens_until = self._clock() + self._open_s
            case BreakerState.HALF_OPEN:
                self._open_s = min(2 * self._open_s, OPEN_S_MAX)
                self._opens_until = self._clock() + self._open_s
            case _:
                # While it is open, what still fails was begun before, or had nowhere else to go.
                pass
