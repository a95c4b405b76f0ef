"""Shadow runner: runs queries in a client's session on a connection of ours, so the client's calls do not wait.

A handle works from any connection; the connection logs in as the client did. Shadow runs are optional: without
room they are skipped, and they end with the client's session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Generator
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from proxy.backends.pool import Lease
from proxy.operations.internal_call import Call, InternalOperation, Reply
from proxy.operations.query import Query, QueryResult
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError
from proxy.upstream.http_link import Link, link_to
from proxy.upstream.query_driver import answer_query, drive
from proxy.wire.hs2.calls import SessionHandle

# A shadow run keeps its own result, since nobody waits for it.
Work: TypeAlias = Generator[Query, QueryResult, object]

# The server holds a status call back for five seconds, and reads no other meanwhile.
_FAREWELL_S: Final = 8.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ShadowRunnerSettings:
    """Limits of the resources of backends that shadow runs may take."""

    dialer: Dialer = field(default_factory=Dialer)
    # Bounds each call; the server holds none back for more than a few seconds.
    reply_timeout_s: float = 60.0
    # Each takes one of the backend's threads, and as many cores as the client's own statement.
    at_once_max: int = 2


class ShadowRunner:
    """The shadow runs of this process."""

    def __init__(self, settings: ShadowRunnerSettings, pool: Executor) -> None:
        self._settings = settings
        self._pool = pool
        self._running: dict[asyncio.Task[None], SessionHandle] = {}

    @property
    def count(self) -> int:
        """The number of shadow runs."""
        return len(self._running)

    def start(self, session: SessionHandle, credentials: bytes, work: Work, clients: Lease) -> bool:
        """Run queries in the session, logged in by the client's PLAIN response; False where there is no room.

        `clients` is the lease of the client's own connection: the session is on that backend.
        """
        if len(self._running) >= self._settings.at_once_max or (lease := clients.lease_for_proxy()) is None:
            return False
        task = asyncio.get_running_loop().create_task(self._run(session, credentials, work, lease))
        # Also where it is cancelled before its first step.
        task.add_done_callback(lambda _: lease.release())
        self._running[task] = session
        task.add_done_callback(self._ended)
        return True

    def sessions_closed(self, sessions: Collection[SessionHandle]) -> None:
        """End the shadow runs of sessions that have ended."""
        for task, session in self._running.items():
            if session in sessions:
                task.cancel()

    async def close(self) -> None:
        """End everything, and let the backend know."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=_FAREWELL_S)

    async def _run(self, session: SessionHandle, credentials: bytes, work: Work, lease: Lease) -> None:
        settings = self._settings
        link = link_to(lease.address, settings.dialer, settings.reply_timeout_s)
        try:
            await link.open(credentials, "a client")
            await _drive(link, session, work, self._pool)
        except BackendError as error:
            log.warning("a shadow run ended early: %s", error)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            # Without its own words: they may quote the statement.
            log.error("a shadow run failed with %s", type(error).__name__)


async def _drive(link: Link, session: SessionHandle, work: Work, pool: Executor) -> None:
    calls = _ShadowCalls(link)

    async def answer(query: Query) -> QueryResult:
        return await answer_query(query, session, calls.ask, pool)

    try:
        await drive(work, answer, pool)
    finally:
        await calls.end()
        link.close()


class _ShadowCalls:
    """Calls over the link, and the operation that they have open."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._operation = InternalOperation()
        self._exchange: asyncio.Task[Reply] | None = None

    async def ask(self, call: Call) -> Reply:
        # Cancelled, the exchange goes on: its reply may name the operation that is to be ended.
        self._exchange = asyncio.get_running_loop().create_task(self._ask(call))
        return await asyncio.shield(self._exchange)

    async def end(self) -> None:
        """End the operation that is still open, if there is one."""
        with suppress(BackendError, TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                if self._exchange is not None:
                    await self._exchange
                if closing_calls := self._operation.closing_calls():
                    await self._link.close_after(closing_calls)

    async def _ask(self, call: Call) -> Reply:
        self._operation.call_sent(call)
        reply = await self._link.ask(call)
        self._operation.reply_came(call.name, call.seqid, reply)
        return reply
