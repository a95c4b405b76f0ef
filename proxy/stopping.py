"""Requests to stop, as PgBouncer takes them: SIGTERM waits for sessions, SIGINT for statements, a second for none.

Containers and service managers send SIGTERM, a terminal sends SIGINT.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Final

# Sent by `docker stop`, systemd and Kubernetes, and by Ctrl-C.
STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

# A terminal and a service manager send one request to a worker and to its supervisor, which passes it on.
_SAME_REQUEST_S: Final = 1.0


class StopRequests:
    """The stop signals that a process has got."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._requested_at = 0.0
        self.waits_for_sessions = True
        # Set by the first request.
        self.stopping = asyncio.Event()
        # Set by the second.
        self.at_once = asyncio.Event()

    def request(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Take a signal. A signal within a second of the first one is the same request, passed on."""
        if not self.stopping.is_set():
            self._requested_at = self._clock()
            self.waits_for_sessions = number == signal.SIGTERM
            self.stopping.set()
        elif self._clock() - self._requested_at >= _SAME_REQUEST_S:
            self.at_once.set()
