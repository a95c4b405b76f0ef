"""How a process serves: alone, or as one of several workers. The rest of it need not know which."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
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

# How often a worker looks which writes that it lost have ended: the others take them for running until then.
_LOOK_S: Final = 10.0


class Role(Protocol):
    """What a process has in common with others, and whom it tells what."""

    process: ProcessScope
    writes: WriteLog
    # Whether what has to be done once is done here.
    is_first: bool
    # Whether it was started while others served, and may have missed what they were told since.
    is_late: bool

    async def start(self, stop: Callable[[], None], own_metrics: Callable[[], bytes]) -> None:
        """Signals have their handlers: take them from here on. `stop` is called when nobody wants us any more."""
        ...

    async def exposition(self) -> bytes:
        """The metrics of all processes."""
        ...

    def listens(self, line: Callable[[], str]) -> None:
        """Clients can connect; the line says where."""
        ...

    async def end(self) -> None:
        """The process is about to end."""
        ...


class SingleProcess:
    """The only process."""

    def __init__(self) -> None:
        self.process = ProcessScope()
        self.writes: WriteLog = LocalWriteLog()
        self.is_first = True
        self.is_late = False
        self._own_metrics: Callable[[], bytes] = bytes

    async def start(self, _stop: Callable[[], None], own_metrics: Callable[[], bytes]) -> None:
        """See Role."""
        self._own_metrics = own_metrics

    async def exposition(self) -> bytes:
        """See Role."""
        return self._own_metrics()

    def listens(self, line: Callable[[], str]) -> None:
        """See Role."""
        click.echo(line())

    async def end(self) -> None:
        """See Role."""


class Worker:
    """One of several processes, under a supervisor that prints where they listen."""

    def __init__(self, place: WorkerSlot, ledger: Ledger) -> None:
        digests = Digests(place.key)
        self.process = ProcessScope(
            SharedHandleOwners(ledger, digests),
            SharedOperationAliases(ledger, digests),
            shares_ports=True,
            is_first=place.slot == 0,
            connections_elsewhere=lambda: ledger.connections_elsewhere,
            count_connections=ledger.count_connections,
        )
        self._shared_writes = SharedWriteLog(ledger, digests)
        self.writes: WriteLog = self._shared_writes
        self.is_first = place.slot == 0
        self.is_late = place.is_taken_over
        self._place = place
        self._siblings: MetricsExchange | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def start(self, stop: Callable[[], None], own_metrics: Callable[[], bytes]) -> None:
        """See Role."""
        # Its other end is closed when the supervisor ends, however it does.
        loop = asyncio.get_running_loop()
        loop.add_reader(self._place.lifeline, stop)
        loop.call_later(LOST_S, self._shared_writes.end_lost)
        self._end_old_writes()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        self._siblings = MetricsExchange(self._place, own_metrics)
        await self._siblings.start()

    async def exposition(self) -> bytes:
        """See Role."""
        return b"" if self._siblings is None else await self._siblings.exposition()

    def listens(self, _line: Callable[[], str]) -> None:
        """See Role."""
        self._place.tell_ready()

    async def end(self) -> None:
        """See Role."""
        asyncio.get_running_loop().remove_reader(self._place.lifeline)
        if self._timer is not None:
            self._timer.cancel()
        if self._siblings is not None:
            await self._siblings.stop()

    def _end_old_writes(self) -> None:
        self._shared_writes.end_old()
        self._timer = asyncio.get_running_loop().call_later(_LOOK_S, self._end_old_writes)


@contextmanager
def role(place: WorkerSlot | None) -> Generator[Role]:
    """The role of the process in that place, or of the only one. Raises lmdb.Error."""
    if place is None:
        yield SingleProcess()
        return
    ledger = Ledger(place.directory, place.slot)
    try:
        yield Worker(place, ledger)
    finally:
        ledger.close()
