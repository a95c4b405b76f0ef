"""Time in tests: a clock that is set by hand, and patience with what another thread does."""

import time
from collections.abc import Callable
from dataclasses import dataclass

# More than that takes no thread, on a busy machine and with a real HBase either.
PATIENCE_S = 120.0


@dataclass
class Clock:
    """Says what the test has set."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def eventually(holds: Callable[[], bool]) -> None:
    """Waits until another thread or process has brought something about."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "it never came to be so"
        time.sleep(0.01)
