"""The health of a backend by its probes, with hysteresis: one slow answer does not take it down. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Thresholds:
    """The numbers of equal results in a row that change a backend's health, once it has answered and before."""

    # With a probe every five seconds, a backend that hangs counts as down after fifteen.
    failures_to_down: int = 3
    # The first answer may come from a server that is still starting.
    successes_to_up: int = 2
    # Before the first answer, nothing has shown that the backend works.
    first_failures_to_down: int = 1


THRESHOLDS: Final = Thresholds()


class Health:
    """One kind of health. It is up until probes fail: a backend that was never probed may be tried."""

    def __init__(self, thresholds: Thresholds) -> None:
        self.is_up = True
        self._thresholds = thresholds
        self._failures_to_down = thresholds.first_failures_to_down
        # Results in a row that contradict `is_up`.
        self._contrary = 0

    def record_probe(self, *, answered: bool) -> bool:
        """Record the result of a probe. Returns whether the state has changed."""
        if answered:
            self._failures_to_down = self._thresholds.failures_to_down
        if answered is self.is_up:
            self._contrary = 0
            return False
        self._contrary += 1
        if self._contrary < (self._failures_to_down if self.is_up else self._thresholds.successes_to_up):
            return False
        self.is_up, self._contrary = answered, 0
        return True
