"""Background runner: runs queries in a client's session, on a connection of ours: the client's calls do not wait.

A session's handle works from any connection; this connection logs in as the client did. A run is optional: without
room it is skipped, and it ends with the client's session. Shadow runs and checks of remembered keys are runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from proxy.backends.pool import Lease
from proxy.frontend.own_sessions import OwnSessions
from proxy.operations.query import FailureKind, Query, QueryFailed, QueryResult, Work
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError
from proxy.upstream.http_link import Link, link_to
from proxy.upstream.own_calls import InternalCalls
from proxy.upstream.query_driver import answer_in_slot, answer_query, drive
from proxy.wire.hs2.calls import SessionHandle

Result = TypeVar("Result")

# The server holds a status call back for five seconds, and reads no other meanwhile.
_FAREWELL_S: Final = 8.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunnerSettings:
    """Limits of the resources of backends that runs of one kind may take."""

    # The kind of run, for the log.
    kind: str

    dialer: Dialer = field(default_factory=Dialer)
    # Bounds each call; the server holds none back for more than a few seconds.
    reply_timeout_s: float = 60.0
    # Each takes one of the backend's threads, and some of its cores.
    at_once_max: int = 2


class BackgroundRunner:
    """The runs of one kind of this process."""

    def __init__(
        self,
        settings: RunnerSettings,
        pool: Executor,
        slots: asyncio.Semaphore | None = None,
        own_sessions: OwnSessions | None = None,
    ) -> None:
        """Queries that need a slot take one of `slots`: see Query.needs_slot.

        Queries that sessions share are asked in `own_sessions`.
        """
        self._settings = settings
        self._pool = pool
        self._slots = slots
        self._own_sessions = own_sessions
        self._running: dict[asyncio.Task[Any], SessionHandle] = {}

    @property
    def count(self) -> int:
        """The number of runs."""
        return len(self._running)

    @property
    def has_room(self) -> bool:
        """True if one more may be started."""
        return len(self._running) < self._settings.at_once_max

    def start(  # noqa: PLR0913 - where to run what, and whom to tell
        self,
        session: SessionHandle,
        credentials: bytes,
        work: Work[Result],
        clients: Lease,
        *,
        ended: Callable[[Result | None], None] = lambda _: None,
        refused: Callable[[], None] = lambda: None,
        within_s: float | None = None,
    ) -> bool:
        """Run queries in the session, logged in by the client's PLAIN response; False where there is no room.

        `clients` is the lease of the client's own connection: the session is on that backend. `ended` gets the
        result, or None where there is none; before that, `refused` is called if the login failed. It ends after
        `within_s`.
        """
        if not self.has_room or (lease := clients.lease_for_proxy()) is None:
            return False
        task = asyncio.get_running_loop().create_task(
            self._run(session, credentials, work, lease, refused, within_s)
        )
        # The lease is released even if the task is cancelled before its first step.
        task.add_done_callback(lambda _: lease.release())
        self._running[task] = session
        task.add_done_callback(self._ended)
        task.add_done_callback(lambda _: ended(_result(task)))
        return True

    def sessions_closed(self, sessions: Collection[SessionHandle]) -> None:
        """End the runs of sessions that have ended."""
        for task, session in self._running.items():
            if session in sessions:
                task.cancel()

    async def close(self) -> None:
        """End everything, and let the backend know."""
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=_FAREWELL_S)

    async def _run(  # noqa: PLR0913, PLR0917 - where to run what, and for how long
        self,
        session: SessionHandle,
        credentials: bytes,
        work: Work[Result],
        lease: Lease,
        refused: Callable[[], None],
        within_s: float | None,
    ) -> Result | None:
        settings = self._settings
        link = link_to(lease.address, settings.dialer, settings.reply_timeout_s)
        try:
            await link.open(credentials, "a client")
        except BackendError as error:
            log.warning("%s was not begun: %s", settings.kind, error)
            refused()
            return None
        try:
            async with asyncio.timeout(within_s):
                return await self._drive(link, session, work)
        except (BackendError, TimeoutError) as error:
            log.warning("%s ended early: %s", settings.kind, str(error) or f"it took longer than {within_s:g} s")
            return None

    async def _drive(self, link: Link, session: SessionHandle, work: Work[Result]) -> Result:
        calls = InternalCalls(link.ask)

        async def answer(query: Query) -> QueryResult:
            return await answer_query(query, session, calls.ask, self._pool)

        async def answer_in_turn(query: Query) -> QueryResult:
            if query.sharing is not None:
                # Never in the client's session: the answer is for others too.
                return await answer_shared(query, self._own_sessions)
            return await answer_in_slot(query, self._slots, answer)

        try:
            return await drive(work, answer_in_turn, self._pool)
        finally:
            await calls.close_operation(_FAREWELL_S)
            link.close()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        del self._running[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            # The error's message is left out: it may quote the statement.
            log.error("%s failed with %s", self._settings.kind, type(error).__name__)


def _result(task: asyncio.Task[Result | None]) -> Result | None:
    return None if task.cancelled() or task.exception() is not None else task.result()


async def answer_shared(query: Query, own_sessions: OwnSessions | None) -> QueryResult:
    """The answer to a query that sessions share, where there are sessions of the proxy's own."""
    if own_sessions is None:
        return QueryFailed(FailureKind.BUSY, "the proxy has no sessions of its own", 0.0)
    return await own_sessions.answer(query)
