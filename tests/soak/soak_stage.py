"""A proxy of its own process in front of a backend that has every answer ready."""

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from async_client import PATIENCE_S, AsyncClient
from canned_backend import canned_backend
from support.footprint import Footprint, footprint

from demo.hive import Endpoint
from demo.proxy_process import proxy_process

CONNECTIONS_MAX = 1_100
# Two in the proxy and one here for each connection, and what the processes need besides.
FILES_MIN = 4_096
_LOOK_S = 0.05
# What has not changed for half a second is at rest.
_LOOKS = 10


@dataclass(frozen=True)
class Stage:
    """Where the proxy listens, and what it holds."""

    endpoint: Endpoint
    pid: int
    log: Path
    admin_url: str

    @property
    def footprint(self) -> Footprint:
        return footprint(self.pid)

    async def at_rest(self) -> Footprint:
        """What it holds once a client has been served and has gone."""
        await self.serves()
        seen: list[int] = []

        def same_for_a_while() -> bool:
            seen.append(self.footprint.files)
            return len(seen) >= _LOOKS and len(set(seen[-_LOOKS:])) == 1

        await until(same_for_a_while, "the proxy's open files do not come to rest")
        return self.footprint

    async def has_only(self, files: int) -> None:
        """Wait until what is gone has left nothing open."""
        await until(lambda: self.footprint.files <= files, "the proxy keeps files open")

    async def serves(self) -> None:
        """Whoever comes now is served."""
        client = await AsyncClient.with_session(self.endpoint)
        await client.get_info()
        await client.leave()


async def until(holds: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, complaint
        await asyncio.sleep(_LOOK_S)


async def at_once(each: Callable[[AsyncClient], Awaitable[object]], clients: list[AsyncClient]) -> None:
    await asyncio.gather(*map(each, clients))


@contextmanager
def soak_stage(directory: Path, *settings: str) -> Iterator[Stage]:
    """The processes, as long as the context lasts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < FILES_MIN:
        pytest.skip(f"needs {FILES_MIN} open files, and the system allows {hard}")
    # The processes that are started inherit it.
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FILES_MIN), hard))
    chosen = (f"proxy.backend_connections_max={CONNECTIONS_MAX}", *settings)
    options = tuple(word for setting in chosen for word in ("--set", setting))
    with canned_backend() as backend, proxy_process(backend, directory, options=options) as proxy:
        yield Stage(proxy.endpoint, proxy.child.process.pid, proxy.child.log, proxy.admin_url)
