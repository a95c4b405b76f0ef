"""One worker's place: what the supervisor gives it, and what it has in common with the others."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from proxy.ground import Ground
from proxy.handles import Digests
from proxy.workers.ledger import Ledger
from proxy.workers.shared_handles import SharedHandles
from proxy.workers.shared_successors import SharedSuccessors
from proxy.workers.shared_writes import SharedWrites
from proxy.writes import WriteLog

# Those that the supervisor takes for all, and that a worker is sent by it.
SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD})


@dataclass(frozen=True)
class Place:
    """What a worker is told as it starts."""

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

    def listens(self) -> None:
        """Let the supervisor know."""
        os.write(self.ready, bytes((self.slot,)))

    def socket_path(self, slot: int) -> Path:
        """Where a worker answers the others."""
        return self.directory / f"{slot}.sock"


@dataclass(frozen=True)
class Common:
    """What a worker has in common with the others."""

    ground: Ground
    writes: WriteLog


@contextmanager
def common(place: Place) -> Generator[Common]:
    """Open it. Raises lmdb.Error."""
    ledger, digests = Ledger(place.directory, place.slot), Digests(place.key)
    ground = Ground(
        SharedHandles(ledger, digests),
        SharedSuccessors(ledger, digests),
        shares_ports=True,
        connections_elsewhere=lambda: ledger.connections_elsewhere,
        count_connections=ledger.count_connections,
    )
    try:
        yield Common(ground, SharedWrites(ledger, digests))
    finally:
        ledger.close()
