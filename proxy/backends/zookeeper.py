"""Registration of the proxy in ZooKeeper while it accepts clients. Shell.

kazoo connects, and connects again, in threads of its own. This module creates the proxy's nodes in every session
that kazoo opens. The nodes are ephemeral, so the proxy deregisters by ending the session. The proxy does not wait
for ZooKeeper: it serves without it, and logs that it is not registered.
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

# The time between two checks for a new session. A check reads one variable.
LOOK_S: Final = 0.5
# The longest time between two tries to connect or register: clients should not miss the proxy for longer.
RETRY_S_MAX: Final = 5.0
# The time to end the session. If the host does not answer, the session expires by itself.
_END_SESSION_S: Final = 3.0
# Short failures are normal. An absence of this time is logged.
_ABSENT_S: Final = 10.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ensemble:
    """The address of ZooKeeper and the proxy's login to it."""

    hosts: str
    namespace: str
    # With a user, only that user may change the nodes; all may read them.
    user: str = ""
    password: str = field(default="", repr=False)
    # After this time without a heartbeat ZooKeeper removes the nodes of a proxy that died.
    session_s: float = 20.0


@dataclass(frozen=True)
class Node:
    """A node: the prefix of its name, to which ZooKeeper adds a number, and its content."""

    prefix: str
    content: bytes


class Registration:
    """The nodes of this proxy, which exist from `start` to `close` while ZooKeeper can be reached."""

    def __init__(self, ensemble: Ensemble, nodes: Sequence[Node]) -> None:
        self._ensemble = ensemble
        self._nodes = nodes
        self._client = _client(ensemble)
        # The session in which each node was created.
        self._made: dict[Node, object] = {}
        self._absent_s = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to connect, without a limit of time."""
        self._client.start_async()
        self._task = asyncio.get_running_loop().create_task(self._keep_registered())

    async def close(self) -> None:
        """End the session, so that no further client is sent here."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(_END_SESSION_S):
                await asyncio.to_thread(self._end_session)

    async def _keep_registered(self) -> None:
        wait = LOOK_S
        while True:
            await asyncio.sleep(wait)
            try:
                await self._create_missing_nodes(wait)
                wait = LOOK_S
            except (KazooException, KazooTimeoutError) as error:
                wait = min(2 * wait, RETRY_S_MAX)
                # Many of kazoo's errors have no message.
                said = f"{type(error).__name__} {error}".strip()
                log.warning("cannot register in ZooKeeper, next try in %g s: %s", wait, said)

    async def _create_missing_nodes(self, seconds: float) -> None:
        """Create the nodes missing in this session, in a thread, since kazoo blocks until ZooKeeper answers."""
        if not self._client.connected:
            self._count_absence(seconds)
            return
        self._absent_s = 0.0
        session = self._client.client_id
        for node in self._nodes:
            if self._made.get(node) != session:
                path = await asyncio.to_thread(self._create_node, node)
                self._made[node] = session
                log.info("registered in ZooKeeper as %s", path)

    def _count_absence(self, seconds: float) -> None:
        before, self._absent_s = self._absent_s, self._absent_s + seconds
        if before < _ABSENT_S <= self._absent_s:
            log.warning(
                "ZooKeeper cannot be reached at %s: its clients do not find the proxy", self._ensemble.hosts
            )

    def _create_node(self, node: Node) -> str:
        namespace, acl = f"/{self._ensemble.namespace}", _acl(self._ensemble)
        self._client.ensure_path(namespace)
        # If the answer is lost the node may exist, and a second one is created: both end with the session.
        made: str = self._client.create(
            f"{namespace}/{node.prefix}", node.content, acl=acl, ephemeral=True, sequence=True
        )
        return made

    def _end_session(self) -> None:
        self._client.stop()
        self._client.close()


def _client(ensemble: Ensemble) -> KazooClient:
    # kazoo would log every failed connection, and the requests that it sends, with the password.
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
