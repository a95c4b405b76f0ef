"""What probes tell of a backend, with hysteresis: one slow answer takes nothing down. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Thresholds:
    """How many answers in a row it takes to change one's mind."""

    # At a probe each five seconds, a backend that hangs is noticed after fifteen.
    failures_to_down: int = 3
    # The first answer may come from a server that is still starting.
    successes_to_up: int = 2


THRESHOLDS: Final = Thresholds()


class Health:
    """Up until probes say otherwise: a backend that nobody has asked is tried."""

    def __init__(self, thresholds: Thresholds) -> None:
        self.is_up = True
        self._thresholds = thresholds
        # Answers in a row that contradict `is_up`.
        self._contrary = 0

    def record_probe(self, *, answered: bool) -> bool:
        """A probe has ended. Returns whether the backend is now held to be in another state than before."""
        if answered is self.is_up:
            self._contrary = 0
            return False
        self._contrary += 1
        limits = self._thresholds
        if self._contrary < (limits.failures_to_down if self.is_up else limits.successes_to_up):
            return False
        self.is_up, self._contrary = answered, 0
        return True
