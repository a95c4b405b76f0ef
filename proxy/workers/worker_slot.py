"""One worker's place: what the supervisor gives it as it starts."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

# Those that the supervisor takes for all, and sends on.
SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD})


@dataclass(frozen=True)
class WorkerSlot:
    """What a worker is told."""

    slot: int
    # Whether another one was here before.
    is_taken_over: bool
    count: int
    directory: Path
    key: bytes = field(repr=False)
    # The reading end of a pipe whose other end the supervisor alone holds: it ends when that does.
    lifeline: int
    # The writing end of a pipe that says who listens.
    ready: int

    def tell_ready(self) -> None:
        """Let the supervisor know that clients can connect."""
        os.write(self.ready, bytes((self.slot,)))

    def socket_path(self, slot: int) -> Path:
        """Where a worker answers the others."""
        return self.directory / f"{slot}.sock"
