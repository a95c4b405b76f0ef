"""Periodic tasks for the backends while the proxy serves: DNS lookups and health checks. Shell."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Final, TypeAlias

from proxy.backends.dns import DnsNames
from proxy.config.backend_list import BackendEntry

# A random part of each interval, so that proxies started together do not stay in step.
_JITTER: Final = 0.2

log = logging.getLogger(__name__)

# A function, and the seconds between its calls.
PeriodicTask: TypeAlias = tuple[Callable[[], Awaitable[None]], float]


class Maintenance:
    """Runs the periodic tasks from `start` to `close`."""

    def __init__(
        self,
        names: DnsNames,
        periodic_tasks: Sequence[PeriodicTask],
        first: Callable[[], Awaitable[None]],
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`first` is done once at the start."""
        self._names = names
        self.periodic_tasks = periodic_tasks
        self._first = first
        self._chance = chance
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Do the first task, then start the periodic ones: no backend is announced before it has been probed."""
        await self._first()
        for act, seconds in self.periodic_tasks:
            self._begin(self._every(seconds, act))

    def reload(self, entries: tuple[BackendEntry, ...]) -> None:
        """Use the entries of a reloaded configuration. Backends that are not in it any more drain."""
        self._begin(self._names.configure(entries))

    async def close(self) -> None:
        """Cancel the tasks."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _every(self, seconds: float, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds * (1 + _JITTER * (2 * self._chance() - 1)))
            await act()

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error(
                "a maintenance task of the backends has failed and stopped: %s",
                type(error).__name__,
                exc_info=error,
            )
