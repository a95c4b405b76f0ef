"""How long a worker that ended stays away: pure, so that its waits need no clock to be tested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# One that fell over once is back before anybody notices.
FIRST_S: Final = 0.1
# One that cannot live takes no more of the machine than a start every half minute.
LONGEST_S: Final = 30.0
# One that has lived for this long fell over something new.
LIVED_S: Final = 60.0


@dataclass
class Backoff:
    """The waits before one worker's starts."""

    _wait_s: float = FIRST_S

    def next_wait_s(self, lived_s: float) -> float:
        """It has ended after so long. Returns how long to wait before it is started again."""
        if lived_s >= LIVED_S:
            self._wait_s = FIRST_S
        wait_s, self._wait_s = self._wait_s, min(2 * self._wait_s, LONGEST_S)
        return wait_s
