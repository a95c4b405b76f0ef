"""A worker's slot: its number, and the resources that it gets from the supervisor."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

# Signals that the supervisor handles, and forwards to the workers.
SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD})


@dataclass(frozen=True)
class WorkerSlot:
    """One worker's number, directory, key and pipes."""

    number: int
    # True if another worker had this slot before.
    is_taken_over: bool
    count: int
    directory: Path
    key: bytes = field(repr=False)
    # The read end of a pipe whose write end only the supervisor has: it is closed when the supervisor ends.
    supervisor_pipe: int
    # The write end of a pipe in which workers report that they listen.
    ready_pipe: int

    def report_ready(self) -> None:
        """Report to the supervisor that clients can connect."""
        os.write(self.ready_pipe, bytes((self.number,)))

    def socket_path(self, slot: int) -> Path:
        """Return the Unix socket on which a worker answers the others."""
        return self.directory / f"{slot}.sock"
