"""The tasks that look after the backends for as long as the proxy serves: names looked up, health asked. Shell."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Final, TypeAlias

from proxy.backends.dns import DnsNames
from proxy.config.backend_list import Source

# Proxies that were started together do not ask together for ever.
_JITTER: Final = 0.2

log = logging.getLogger(__name__)

# Something to do, and the seconds between one time and the next.
Chore: TypeAlias = tuple[Callable[[], Awaitable[None]], float]


class Maintenance:
    """Runs from `start` to `close`."""

    def __init__(
        self, names: DnsNames, chores: Sequence[Chore], chance: Callable[[], float] = random.random
    ) -> None:
        self._names = names
        self.chores = chores
        self._chance = chance
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin."""
        for act, seconds in self.chores:
            self._begin(self._every(seconds, act))

    def reload(self, sources: tuple[Source, ...]) -> None:
        """The configuration was read anew. What is no longer named drains."""
        self._begin(self._names.configure(sources))

    async def close(self) -> None:
        """End all of it."""
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
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the backends are no longer looked after: %s", type(error).__name__, exc_info=error)
