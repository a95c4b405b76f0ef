"""Names of caches of our own tickets, which MIT's library keeps in memory for the process.

A cache belongs to one version of a keytab: a new file begins a new cache. So does a login that the service
refused, since a service whose key has changed cannot read a cached ticket. This happens at most once a minute: the
library frees no cache before the process ends.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from proxy.kerberos.principals import Principal

RENEWED_AFTER_S: Final = 60.0


class TicketCaches:
    """The caches of a process. Threads may use it at once: the worst is one cache more."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._generation = 0
        self._renewed_at = -RENEWED_AFTER_S

    def name_for(self, own: Principal, keytab: Path) -> str:
        """Return the cache of a principal whose key is in this file. Raises OSError."""
        found = keytab.stat()
        return f"MEMORY:starpruner-{os.getpid()}-{own}-{found.st_ino}-{found.st_mtime_ns}-{self._generation}"

    def login_refused(self) -> None:
        """Use other caches from now on."""
        now = self._clock()
        if now - self._renewed_at >= RENEWED_AFTER_S:
            self._renewed_at = now
            self._generation += 1


TICKET_CACHES: Final = TicketCaches()
