"""The role of a process: the only one, or one of several workers. Its other parts do not know which."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Final, Protocol

import click

from proxy.access.handle_owners import Digests
from proxy.frontend.process_scope import ProcessScope
from proxy.session.consistency.write_fence import LOST_S, LocalWriteLog, WriteLog
from proxy.workers.ledger import Ledger
from proxy.workers.metrics_exchange import MetricsExchange
from proxy.workers.shared_aliases import SharedOperationAliases
from proxy.workers.shared_handle_owners import SharedHandleOwners
from proxy.workers.shared_write_log import SharedWriteLog
from proxy.workers.worker_slot import SIGNALS, WorkerSlot

# The time between two checks for lost writes that have ended: until then all workers count them as running.
_LOOK_S: Final = 10.0
_PAGE_KEY_BYTES: Final = 32


class ProcessRole(Protocol):
    """The state that a process shares with others, and the reports that it sends them."""

    process: ProcessScope
    writes: WriteLog
    # True if this process does the work that only one of them does.
    is_first: bool
    # True if it was started while others served, and may have missed a reload.
    is_late: bool
    # Signs the cookies of the admin port, which workers share.
    page_key: bytes

    async def start(self, stop: Callable[[], None], own_metrics: Callable[[], bytes]) -> None:
        """Accept signals from here on: their handlers are set. `stop` is called when the supervisor has ended."""
        ...

    async def exposition(self) -> bytes:
        """Return the metrics of all processes."""
        ...

    def report_listening(self, line: Callable[[], str]) -> None:
        """Report that clients can connect; the line says where."""
        ...

    async def stop(self) -> None:
        """Stop: the process is about to end."""
        ...


class SingleProcess:
    """The role of the only process."""

    def __init__(self) -> None:
        self.process = ProcessScope()
        self.writes: WriteLog = LocalWriteLog()
        self.is_first = True
        self.is_late = False
        self.page_key = os.urandom(_PAGE_KEY_BYTES)
        self._own_metrics: Callable[[], bytes] = bytes

    async def start(self, _stop: Callable[[], None], own_metrics: Callable[[], bytes]) -> None:
        """See ProcessRole."""
        self._own_metrics = own_metrics

    async def exposition(self) -> bytes:
        """See ProcessRole."""
        return self._own_metrics()

    def report_listening(self, line: Callable[[], str]) -> None:
        """See ProcessRole."""
        click.echo(line())

    async def stop(self) -> None:
        """See ProcessRole."""


class Worker:
    """The role of one of several processes, under a supervisor that prints where they listen."""

    def __init__(self, worker_slot: WorkerSlot, ledger: Ledger) -> None:
        digests = Digests(worker_slot.key)
        self.process = ProcessScope(
            SharedHandleOwners(ledger, digests),
            SharedOperationAliases(ledger, digests),
            shares_ports=True,
            is_first=worker_slot.number == 0,
            connections_elsewhere=lambda: ledger.connections_elsewhere,
            count_connections=ledger.set_connection_count,
        )
        self._shared_writes = SharedWriteLog(ledger, digests)
        self.writes: WriteLog = self._shared_writes
        self.is_first = worker_slot.number == 0
        self.is_late = worker_slot.is_taken_over
        self.page_key = blake2b(b"pages", key=worker_slot.key, digest_size=_PAGE_KEY_BYTES).digest()
        self._worker_slot = worker_slot
        self._metrics_exchange: MetricsExchange | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def start(self, stop: Callable[[], None], own_metrics: Callable[[], bytes]) -> None:
        """See ProcessRole."""
        # The pipe's other end is closed when the supervisor ends, also if it is killed.
        loop = asyncio.get_running_loop()
        loop.add_reader(self._worker_slot.supervisor_pipe, stop)
        loop.call_later(LOST_S, self._shared_writes.end_lost)
        self._end_old_writes()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        self._metrics_exchange = MetricsExchange(self._worker_slot, own_metrics)
        await self._metrics_exchange.start()

    async def exposition(self) -> bytes:
        """See ProcessRole."""
        return b"" if self._metrics_exchange is None else await self._metrics_exchange.exposition()

    def report_listening(self, _line: Callable[[], str]) -> None:
        """See ProcessRole."""
        self._worker_slot.report_ready()

    async def stop(self) -> None:
        """See ProcessRole."""
        asyncio.get_running_loop().remove_reader(self._worker_slot.supervisor_pipe)
        if self._timer is not None:
            self._timer.cancel()
        if self._metrics_exchange is not None:
            await self._metrics_exchange.stop()

    def _end_old_writes(self) -> None:
        self._shared_writes.end_old()
        self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._end_old_writes)


@contextmanager
def process_role(worker_slot: WorkerSlot | None) -> Generator[ProcessRole]:
    """Return the role of the worker in that slot, or of the only process. Raises lmdb.Error."""
    if worker_slot is None:
        yield SingleProcess()
        return
    ledger = Ledger(worker_slot.directory, worker_slot.number)
    try:
        yield Worker(worker_slot, ledger)
    finally:
        ledger.close()
