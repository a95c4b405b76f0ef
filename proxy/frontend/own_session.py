"""The proxy's own sessions of one state: opened by the clients' credentials as theirs were, used by no client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from math import inf
from typing import Final, Protocol, TypeAlias

from proxy.backends.pool import Lease
from proxy.operations.query import NO_TABLES, FailureKind, Query, QueryFailed, QueryResult, Rows
from proxy.operations.session_port import KnownState
from proxy.upstream.client import BackendClient, Login
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError

# Questions of one state at once: those of a dashboard that has just been opened.
AT_ONCE_MAX: Final = 3
# A statement that sets something takes milliseconds.
_STATEMENT_S: Final = 10.0
_REPLY_BYTES_MAX: Final = 65_536
# A session lives no longer: Iceberg's catalogs cache tables for each session, and a table in use stays as it was.
AGE_MAX_S: Final = 300.0
# Source: Hive's SessionManager. Over HTTP nothing else tells that a server was restarted.
_NO_SESSION: Final = "Invalid SessionHandle"


@dataclass(frozen=True)
class Access:
    """The login of a client, by which the proxy opens sessions of its own."""

    # The PLAIN response, perhaps with tickets.
    credentials: bytes = field(repr=False)
    # A lease for a connection to the client's backend; None where that is full.
    lease: Callable[[], Lease | None]


class OwnClient(Protocol):
    """A session at a backend, on a connection of its own: a `BackendClient`."""

    @property
    def is_closed(self) -> bool:
        """True if the session has ended."""
        ...

    async def answer(self, query: Query) -> QueryResult:
        """Run one query. Raises BackendError."""
        ...


class ServerCheck(Protocol):
    """Checks that a server gives each client a session to itself, before the proxy sets anything there."""

    async def check(self) -> None:
        """Ask the server, unless its answer is known. Raises BackendError unless each client has its own."""
        ...

    def forget(self) -> None:
        """Forget the server's answer: it may be another server by now."""
        ...


Connect: TypeAlias = Callable[[Login], AbstractAsyncContextManager[OwnClient]]


@dataclass(frozen=True, eq=False)
class _Session:
    client: OwnClient
    lease: Lease
    resources: AsyncExitStack
    opened_at: float


class StateSessions:
    """The sessions of one state: one, and more while several questions are asked at once."""

    def __init__(  # noqa: PLR0913 - all that a session of the state needs
        self,
        state: KnownState,
        access: Access,
        dialer: Dialer,
        clock: Callable[[], float],
        connect: Connect = BackendClient,
        *,
        server: ServerCheck | None = None,
    ) -> None:
        """Ask `server` before each session is opened; None for the session in which the server is asked."""
        self.state = state
        self._server = server
        self._access = access
        self._dialer = dialer
        self._clock = clock
        self._connect = connect
        self._turns = asyncio.Semaphore(AT_ONCE_MAX)
        self._idle: list[_Session] = []
        # Questions that are asked, or wait for their turn.
        self._asked = 0
        self._is_ended = False
        self._closing: set[asyncio.Task[None]] = set()
        self.used_at = clock()
        # Sessions that were opened before this time are not used any more. Any thread sets it.
        self.renewed_at = -inf

    @property
    def is_unused(self) -> bool:
        """True if a session is open, and no question is under way."""
        return bool(self._idle) and not self._asked

    def is_at(self, backend: str | None) -> bool:
        """True if they are at that backend; None stands for any."""
        return backend is None or self.state.opened.backend == backend

    @property
    def is_draining(self) -> bool:
        """True if the backend is being drained, or was removed."""
        return any(not session.lease.takes_sessions for session in self._idle)

    def forget_server(self) -> None:
        """Forget the server's answer: it may have been restarted, with one session for all clients."""
        if self._server is not None:
            self._server.forget()

    async def open(self) -> None:
        """Open the first session. Raises BackendError."""
        self._give_back(await self._opened())

    async def answer(self, query: Query) -> QueryResult:
        """Ask in one of the sessions. Raises BackendError if the session is lost, or none can be opened."""
        started = self.used_at = self._clock()
        self._asked += 1
        try:
            try:
                async with asyncio.timeout(query.deadline_s):
                    await self._turns.acquire()
            except TimeoutError:
                waited_s = self._clock() - started
                return QueryFailed(FailureKind.BUSY, "the proxy's own sessions are busy", waited_s)
            try:
                return await self._answer_in_turn(query, started)
            finally:
                self._turns.release()
        finally:
            self._asked -= 1
            self.used_at = self._clock()

    async def _answer_in_turn(self, query: Query, started: float) -> QueryResult:
        def left_s() -> float:
            return max(0.0, query.deadline_s - (self._clock() - started))

        try:
            # A backend that accepts connections and serves none holds a login for a minute.
            async with asyncio.timeout(left_s()):
                session = await self._taken()
        except TimeoutError:
            words = "the proxy's own session is not open yet"
            return QueryFailed(FailureKind.BUSY, words, self._clock() - started)
        try:
            answer = await session.client.answer(replace(query, deadline_s=left_s()))
        except BaseException:
            self._close(session)
            raise
        if isinstance(answer, QueryFailed) and _NO_SESSION in answer.message:
            self._close(session)
            raise BackendError("the backend does not know the session any more")
        self._give_back(session)
        return answer

    def end(self) -> None:
        """Free the slots of the idle sessions, and close all as soon as they are idle."""
        self._is_ended = True
        while self._idle:
            session = self._idle.pop()
            session.lease.release()
            self._close(session)

    async def closed(self) -> None:
        """Wait until the sessions that are being closed are closed."""
        while self._closing:
            await asyncio.wait(self._closing)

    async def _taken(self) -> _Session:
        while self._idle:
            session = self._idle.pop()
            is_old = session.opened_at <= max(self.renewed_at, self._clock() - AGE_MAX_S)
            if not (is_old or session.client.is_closed):
                return session
            self._close(session)
            if session.client.is_closed:
                self.forget_server()
        return await self._opened()

    def _give_back(self, session: _Session) -> None:
        """Keep a session for the next question: one, and as many as there are questions that wait."""
        if self._is_ended or len(self._idle) >= max(1, self._asked - 1):
            self._close(session)
        else:
            self._idle.append(session)

    def _close(self, session: _Session) -> None:
        closing = asyncio.get_running_loop().create_task(_closed(session))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _opened(self) -> _Session:
        if self._server is not None:
            await self._server.check()
        lease = self._access.lease()
        if lease is None:
            raise BackendError("the backend has no room for a session of the proxy's own")
        if not lease.takes_sessions:
            lease.release()
            raise BackendError("the backend takes no more sessions")
        opened, opened_at = self.state.opened, self._clock()
        login = Login(
            lease.address,
            opened.named or opened.login,
            "",
            None,
            self._dialer,
            credentials=self._access.credentials,
            configuration=opened.configuration,
        )
        async with AsyncExitStack() as resources:
            _ = resources.callback(lease.release)
            client = await resources.enter_async_context(self._connect(login))
            for sql in self.state.statements:
                await _execute(client, sql)
            return _Session(client, lease, resources.pop_all(), opened_at)


async def _execute(client: OwnClient, sql: str) -> None:
    """Execute a statement that changes the session. Raises BackendError."""
    answer = await client.answer(Query(sql, 0, _REPLY_BYTES_MAX, _STATEMENT_S, reads=NO_TABLES))
    if not isinstance(answer, Rows):
        # The server's message is left out: it quotes the statement, which may hold a password.
        raise BackendError(f"a statement that changes the session failed ({answer.kind.value})")


async def _closed(session: _Session) -> None:
    with suppress(BackendError, TimeoutError, OSError):
        await session.resources.aclose()
