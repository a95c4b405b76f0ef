"""Registers the proxy in ZooKeeper for as long as it takes clients. Shell.

kazoo connects, and connects again, in threads of its own. What is left to do here is to see to it that every
session which it opens has the nodes of this proxy. They go with the session, so to deregister is to end it.
Nothing holds the proxy up: it serves whether or not ZooKeeper can be had, and says so in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

# How often to look whether there is a new session: a glance at a variable.
LOOK_S: Final = 0.5
# Between one try and the next at most, to connect or to register: clients should not miss us for longer.
RETRY_S_MAX: Final = 5.0
# A host that is gone is not waited for: there the session ends by itself.
_LEAVE_S: Final = 3.0
# Connections fail for a moment now and then. Past this time somebody should know.
_ABSENT_S: Final = 10.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ensemble:
    """Where ZooKeeper is and who we are to it."""

    hosts: str
    namespace: str
    # With a user the nodes are ours alone to change, and everybody's to read.
    user: str = ""
    password: str = field(default="", repr=False)
    # After this time without a word ZooKeeper takes the nodes of a proxy that died away.
    session_s: float = 20.0


@dataclass(frozen=True)
class Node:
    """A name that ZooKeeper completes by a number, and what stands in it."""

    prefix: str
    content: bytes


class Registration:
    """The nodes of this proxy: there from `start` to `close`, whenever ZooKeeper can be reached."""

    def __init__(self, ensemble: Ensemble, nodes: Sequence[Node]) -> None:
        self._ensemble = ensemble
        self._nodes = nodes
        self._client = _client(ensemble)
        # The session in which each node has been made.
        self._made: dict[Node, object] = {}
        self._absent_s = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to connect, for as long as it takes."""
        self._client.start_async()
        self._task = asyncio.get_running_loop().create_task(self._keep())

    async def close(self) -> None:
        """End the session, so that no further client is sent here."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_S):
                await asyncio.to_thread(self._leave)

    async def _keep(self) -> None:
        wait = LOOK_S
        while True:
            await asyncio.sleep(wait)
            try:
                await self._look(wait)
                wait = LOOK_S
            except (KazooException, KazooTimeoutError) as error:
                wait = min(2 * wait, RETRY_S_MAX)
                # Many of its errors are a name and nothing else.
                said = f"{type(error).__name__} {error}".strip()
                log.warning("cannot register in ZooKeeper, next try in %g s: %s", wait, said)

    async def _look(self, seconds: float) -> None:
        """Make what is missing in this session, in a thread: kazoo waits for the answers."""
        if not self._client.connected:
            self._miss(seconds)
            return
        self._absent_s = 0.0
        session = self._client.client_id
        for node in self._nodes:
            if self._made.get(node) != session:
                path = await asyncio.to_thread(self._make, node)
                self._made[node] = session
                log.info("registered in ZooKeeper as %s", path)

    def _miss(self, seconds: float) -> None:
        before, self._absent_s = self._absent_s, self._absent_s + seconds
        if before < _ABSENT_S <= self._absent_s:
            log.warning("ZooKeeper cannot be reached at %s: its clients do not find us", self._ensemble.hosts)

    def _make(self, node: Node) -> str:
        namespace, acl = f"/{self._ensemble.namespace}", _acl(self._ensemble)
        self._client.ensure_path(namespace)
        # Where the answer to this is lost the node may be there, and another is made: both go with the session.
        made: str = self._client.create(
            f"{namespace}/{node.prefix}", node.content, acl=acl, ephemeral=True, sequence=True
        )
        return made

    def _leave(self) -> None:
        self._client.stop()
        self._client.close()


def _client(ensemble: Ensemble) -> KazooClient:
    # It would log every failed connection, and what it sends: the password is among that.
    quiet = logging.getLogger(f"{__name__}.kazoo")
    quiet.setLevel(logging.CRITICAL)
    return KazooClient(
        hosts=ensemble.hosts,
        timeout=ensemble.session_s,
        auth_data=[("digest", f"{ensemble.user}:{ensemble.password}")] if ensemble.user else None,
        connection_retry=KazooRetry(max_tries=-1, delay=LOOK_S, backoff=2, max_delay=RETRY_S_MAX),
        logger=quiet,
    )


def _acl(ensemble: Ensemble) -> list[object]:
    return [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE] if ensemble.user else [*OPEN_ACL_UNSAFE]
