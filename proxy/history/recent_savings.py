"""Savings of the last 24 hours for the metrics, computed in a thread: to query a large file takes seconds."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable
from typing import Final

from proxy.history.history import History
from proxy.history.queries import DAY_S, HistoryError, HistoryReader
from proxy.history.savings import Savings, total

# The savings are computed no more often, and take one hundredth of a core's time at most.
EVERY_S: Final = 60.0
_REST: Final = 100


class RecentSavings:
    """The savings as a thread computed them last. A new thread begins if they are asked for after a while."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._found: Savings | None = None
        self._due_at = -math.inf

    def by_kind(self) -> Iterable[tuple[str, float]]:
        """Seconds; nothing where none are known yet. Called by the event loop."""
        found = self._found
        if self._history.path is not None and time.monotonic() >= self._due_at:
            self._due_at = math.inf
            threading.Thread(target=self._compute, name="savings", daemon=True).start()
        if found is None:
            return ()
        return ("measured", found.measured_s), ("estimated", found.estimated_s), ("spent", found.spent_s)

    def _compute(self) -> None:
        assert self._history.path is not None  # noqa: S101 - `by_kind` has looked
        began = time.monotonic()
        try:
            found = HistoryReader(self._history.path).savings(time.time() - DAY_S)
            self._found = total(found.values())
        except HistoryError:
            # An old number would pass for a new one.
            self._found = None
        finally:
            ended = time.monotonic()
            self._due_at = ended + max(EVERY_S, _REST * (ended - began))
