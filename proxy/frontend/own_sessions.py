"""The proxy's own sessions, in which it asks for the metadata that several sessions of clients share.

A client can change the answers of its session, by its own functions and views, by settings, and past this proxy.
So these answers count for that session alone. The sessions of one state share descriptions, settings, and lists of
partitions and files. These come from a session that the proxy has opened by the client's credentials and brought
into the same state; no client uses it (decision 0063). Without one, each session asks for itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from proxy.frontend.own_session import Access, Connect, StateSessions
from proxy.operations.query import NO_TABLES, FailureKind, Query, QueryFailed, QueryResult, Rows
from proxy.operations.session_port import KnownState
from proxy.upstream.client import BackendClient
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError
from proxy.upstream.query_driver import answer_in_slot
from proxy.upstream.single_flight import SingleFlight
from proxy.wire.hs2.open_session import PROXY_USER

log = logging.getLogger(__name__)

# States with a session of the proxy's own at once, of all users and of one. Each takes a thread of the backend's.
STATES_MAX: Final = 64
OF_USER_MAX: Final = 16
# A dashboard is looked at again within minutes.
IDLE_S: Final = 180.0
# The time between two looks for sessions that have been idle.
LOOK_S: Final = 5.0
# A statement waits this long for a session to be opened. Then it asks for itself.
OPENING_S: Final = 2.0
# The time until the proxy tries again to open a session that it could not open.
REFUSED_S: Final = 60.0
REFUSALS_MAX: Final = 1_000
# Backends are asked again from time to time if they have one session for all: they may have been restarted.
SERVER_KNOWN_S: Final = 600.0

# Source: Spark's StaticSQLConf. With it, a USE of ours would count for all clients.
_SHARED_SESSION: Final = "spark.sql.hive.thriftServer.singleSession"
_ASKING_S: Final = 10.0


@dataclass(frozen=True)
class _OwnSessionEach:
    """Asks a backend whether each client has a session to itself, before anything is set there."""

    backend: str
    # The backends that answered so, and the time until which that counts.
    known_until: dict[str, float]
    clock: Callable[[], float]
    plain: Callable[[], StateSessions]

    async def check(self) -> None:
        """Raise BackendError unless each client has a session to itself."""
        if self.known_until.get(self.backend, 0.0) > self.clock():
            return
        sessions = self.plain()
        try:
            await sessions.open()
            answer = await sessions.answer(Query(f"SET {_SHARED_SESSION}", 1, 65_536, _ASKING_S, reads=NO_TABLES))
        finally:
            sessions.end()
            await sessions.closed()
        if not (isinstance(answer, Rows) and answer.rows and answer.rows[0][-1] == "false"):
            raise BackendError(f"the backend {self.backend} does not say that {_SHARED_SESSION} is false")
        self.known_until[self.backend] = self.clock() + SERVER_KNOWN_S

    def forget(self) -> None:
        """Forget the backend's answer: it may have been restarted."""
        _ = self.known_until.pop(self.backend, None)


class OwnSessions:
    """The proxy's own sessions of a process. Used by its event loop; `state_of` by any thread."""

    def __init__(
        self,
        dialer: Dialer,
        clock: Callable[[], float],
        slots: asyncio.Semaphore | None = None,
        states_max: int = STATES_MAX,
        connect: Connect = BackendClient,
    ) -> None:
        """Queries of ours that need a slot take one of `slots`: see Query.needs_slot."""
        self._dialer = dialer
        self._slots = slots
        self._single_flight = SingleFlight()
        self._clock = clock
        self._states_max = states_max
        self._connect = connect
        self._sessions: OrderedDict[bytes, StateSessions] = OrderedDict()
        # States whose sessions are open. A new dict for each change: threads read it.
        self._open: dict[bytes, KnownState] = {}
        self._opening: dict[bytes, asyncio.Task[None]] = {}
        self._refused_until: OrderedDict[bytes, float] = OrderedDict()
        # Backends that give each client a session to itself.
        self._known_until: dict[str, float] = {}
        self._asking: set[asyncio.Task[QueryResult]] = set()
        self._look: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def count(self) -> int:
        """The number of states that have a session."""
        return len(self._open)

    def state_of(self, digest: bytes) -> KnownState | None:
        """The state of this digest, where there is a session to ask in."""
        return self._open.get(digest)

    def renew(self, digest: bytes) -> None:
        """Stop using the sessions of that state that are open now."""
        sessions = self._sessions.get(digest)
        if sessions is not None:
            sessions.renewed_at = self._clock()

    def is_lacking(self, state: KnownState) -> bool:
        """True if a state has no session, and one may be opened for it."""
        is_refused = self._refused_until.get(state.digest, 0.0) > self._clock()
        return state.digest not in self._open and not is_refused and not self._is_closed

    async def prepare(self, state: KnownState, access: Access) -> None:
        """Open a session in a state that lacks one, and wait for it a short while."""
        opening = self._opening.get(state.digest) or self._begin(state, access)
        if opening is not None:
            await asyncio.wait([opening], timeout=OPENING_S)

    async def answer(self, query: Query) -> QueryResult:
        """Ask a query that sessions share in the session of their state, once for all that wait for its answer."""
        return await self._single_flight.answer(query, self._answer_in_slot)

    async def _answer_in_slot(self, query: Query) -> QueryResult:
        return await answer_in_slot(query, self._slots, self._answer)

    async def _answer(self, query: Query) -> QueryResult:
        """Ask in a task of its own, which goes on if nobody waits for its answer any more."""
        sessions = None if query.sharing is None else self._sessions.get(query.sharing.state)
        if sessions is None or sessions.state.digest not in self._open:
            return QueryFailed(FailureKind.BUSY, "the proxy has no session of its own in this state", 0.0)
        self._sessions.move_to_end(sessions.state.digest)
        asking = asyncio.get_running_loop().create_task(self._answered(sessions, query))
        self._asking.add(asking)
        asking.add_done_callback(self._asking.discard)
        return await asyncio.shield(asking)

    def give_way(self, backend: str | None = None) -> bool:
        """End the sessions of the state unused for longest, at a backend or at any. False if all are in use."""
        return self._end_unused(one for one in self._sessions.values() if one.is_at(backend))

    def _end_unused(self, sessions: Iterable[StateSessions]) -> bool:
        unused = next((one for one in sessions if one.is_unused), None)
        if unused is not None:
            self._end(unused)
        return unused is not None

    async def close(self) -> None:
        """End all sessions. Questions that are under way are given up."""
        self._is_closed = True
        if self._look is not None:
            self._look.cancel()
        tasks = [*self._opening.values(), *self._asking]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        ending = list(self._sessions.values())
        for sessions in ending:
            self._end(sessions)
        await asyncio.gather(*(sessions.closed() for sessions in ending))

    def _begin(self, state: KnownState, access: Access) -> asyncio.Task[None] | None:
        """Begin to open a session; None where there is no room for one more."""
        who = state.opened.who
        of_user = [one for one in self._sessions.values() if one.state.opened.who == who]
        if len(of_user) >= OF_USER_MAX and not self._end_unused(of_user):
            return None
        if len(self._sessions) >= self._states_max and not self.give_way():
            return None
        server = _OwnSessionEach(state.opened.backend, self._known_until, self._clock, self._plain(state, access))
        sessions = StateSessions(state, access, self._dialer, self._clock, self._connect, server=server)
        self._sessions[state.digest] = sessions
        opening = self._opening[state.digest] = asyncio.get_running_loop().create_task(self._opened(sessions))
        opening.add_done_callback(lambda _: self._opening.pop(state.digest, None))
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(LOOK_S, self._end_idle)
        return opening

    def _plain(self, state: KnownState, access: Access) -> Callable[[], StateSessions]:
        """Return a function that makes sessions of a client in which nothing is set."""
        configuration = {name: value for name, value in state.opened.configuration.items() if name == PROXY_USER}
        plain = KnownState(b"", replace(state.opened, configuration=configuration))
        return lambda: StateSessions(plain, access, self._dialer, self._clock, self._connect)

    async def _opened(self, sessions: StateSessions) -> None:
        state = sessions.state
        try:
            await sessions.open()
        except Exception as error:  # noqa: BLE001 - whatever goes wrong, sessions ask for themselves
            # An unexpected error is named by its type alone: its message may quote a setting.
            said = error if isinstance(error, (BackendError, TimeoutError)) else type(error).__name__
            words = (state.opened.user, said)
            log.info("sessions of %r ask for themselves, since the proxy could open none like them: %s", *words)
            self._refuse(state)
            self._end(sessions)
        except asyncio.CancelledError:
            self._end(sessions)
            raise
        else:
            if self._sessions.get(state.digest) is sessions:
                self._open = {**self._open, state.digest: state}

    async def _answered(self, sessions: StateSessions, query: Query) -> QueryResult:
        try:
            return await sessions.answer(query)
        except (BackendError, TimeoutError) as error:
            log.info("a session of the proxy's own for %r is lost: %s", sessions.state.opened.user, error)
            sessions.forget_server()
            self._end(sessions)
            return QueryFailed(FailureKind.BUSY, "the proxy's own session is lost", 0.0)

    def _end(self, sessions: StateSessions) -> None:
        digest = sessions.state.digest
        if self._sessions.get(digest) is sessions:
            del self._sessions[digest]
            self._open = {known: state for known, state in self._open.items() if known != digest}
        sessions.end()

    def _end_idle(self) -> None:
        since = self._clock() - IDLE_S
        for sessions in list(self._sessions.values()):
            is_idle = sessions.used_at < since or sessions.is_draining
            if is_idle and sessions.is_unused:
                self._end(sessions)
        loop = asyncio.get_running_loop()
        self._look = loop.call_later(LOOK_S, self._end_idle) if self._sessions else None

    def _refuse(self, state: KnownState) -> None:
        self._refused_until[state.digest] = self._clock() + REFUSED_S
        if len(self._refused_until) > REFUSALS_MAX:
            _ = self._refused_until.popitem(last=False)
