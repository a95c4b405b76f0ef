"""An event loop whose clock leaves out what the machine takes from the tests.

Both sides of most dialogues run in one loop, some with limits of tenths of a second. A process that stands still
for as long, on a busy machine, would find its timers due before it has read what the other side had long sent. By
this loop's clock a turn takes some milliseconds at most, however long it took. It is never ahead of other clocks.
"""

import asyncio
import selectors
import time
from collections.abc import Mapping
from typing import Final

import pytest

# So long a turn waits for what comes, and a sleep that lasts takes many turns.
WAIT_S: Final = 0.005
# More than a turn that waits takes where the machine has time.
TURN_S: Final = 2 * WAIT_S


class _ShortWaits(selectors.DefaultSelector):
    """Waits for as long as nothing is due, or else a few milliseconds."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(timeout if timeout is None else min(timeout, WAIT_S))


class UnhurriedLoop(asyncio.SelectorEventLoop):
    """asyncio's loop by another clock."""

    def __init__(self) -> None:
        self._now = self._seen_at = time.monotonic()
        super().__init__(_ShortWaits())

    def time(self) -> float:
        """Seconds, of which those of stalls are not counted."""
        seen_at = time.monotonic()
        self._now += min(seen_at - self._seen_at, TURN_S)
        self._seen_at = seen_at
        return self._now


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories() -> Mapping[str, type[UnhurriedLoop]]:
    """The loop of all tests that name none."""
    return {"unhurried": UnhurriedLoop}
