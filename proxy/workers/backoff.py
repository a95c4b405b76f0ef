"""The waits before a worker that ended is started again. Pure, so that tests need no clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# A worker that crashed once is back almost at once.
FIRST_S: Final = 0.1
# A worker that always crashes costs the machine one start every half minute.
LONGEST_S: Final = 30.0
# A worker that has run for this long crashed for a new reason.
LIVED_S: Final = 60.0


@dataclass
class Backoff:
    """The waits before one worker's starts, each twice the last: 0.1 s, 0.2 s, .. 30 s."""

    _wait_s: float = FIRST_S

    def next_wait_s(self, lived_s: float) -> float:
        """Return the wait before the next start of a worker that ended after `lived_s`."""
        if lived_s >= LIVED_S:
            self._wait_s = FIRST_S
        wait_s, self._wait_s = self._wait_s, min(2 * self._wait_s, LONGEST_S)
        return wait_s
