"""Where statements are decided about: whether their session is offered rewriting, and what it rules.

Connections bring statements here, of whatever transport; what is asked of the backend goes over theirs.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from dataclasses import replace

from proxy.deciding import pass_on, rule, rule_at_once, tell
from proxy.operations.dispatch import End, Ending, Ruling
from proxy.operations.query import Query, QueryResult
from proxy.session_order import until_writes_end
from proxy.sessions import Sessions
from proxy.upstream.query_driver import Ask, answer_in_slot, answer_query
from proxy.wire.hs2.calls import SessionHandle


class Desk:
    """The one of a process."""

    def __init__(self, sessions: Sessions, pool: Executor, slots: asyncio.Semaphore) -> None:
        """`slots` are held by the queries of ours that need one: see Query.needs_slot."""
        self._sessions = sessions
        self._pool = pool
        self._slots = slots

    def at_once(self, handle: SessionHandle, statement: str, connection: str) -> Ruling | None:
        """The ruling on a statement that need not wait for one; None where `in_time` has to be asked."""
        session = self._sessions.of(handle)
        if session.settled_at > _now() or session.port.writes_before(statement):
            return None
        if not self._sessions.is_offered(handle):
            return pass_on(session.port, statement)
        ruling = rule_at_once(session, statement, connection)
        return None if ruling is None else self._if_still_offered(handle, statement, ruling)

    async def passed(self, handle: SessionHandle, statement: str, ask: Ask | None = None) -> Ruling:
        """Let a statement go on as it came, as soon as it may."""
        session = self._sessions.of(handle)
        await asyncio.sleep(max(0.0, session.settled_at - _now()))
        refused = await until_writes_end(session.port, statement, ask)
        return pass_on(session.port, statement) if refused is None else refused

    async def in_time(self, handle: SessionHandle, statement: str, ask: Ask, connection: str) -> Ruling:
        """The ruling, once what it takes has been asked through `ask`."""
        session = self._sessions.of(handle)
        if not self._sessions.is_offered(handle):
            return await self.passed(handle, statement, ask)

        async def answer(query: Query) -> QueryResult:
            return await answer_query(query, handle, ask, self._pool)

        async def answer_in_turn(query: Query) -> QueryResult:
            return await answer_in_slot(query, self._slots, answer)

        while True:
            refused = await until_writes_end(session.port, statement, ask)
            if refused is not None:
                return refused
            async with session.turn:
                if session.port.writes_before(statement):
                    # Another one was released while this one waited for its turn.
                    continue
                ruling = await rule(session, statement, answer_in_turn, self._pool, connection)
            break
        return self._if_still_offered(handle, statement, ruling)

    def note_passed(self, handle: SessionHandle, statement: str, connection: str) -> None:
        """A statement has gone on that nobody is asked about. Of its end nothing will be heard."""
        tell(pass_on(self._sessions.of(handle).port, statement), Ending(End.UNKNOWN, 0.0), connection)

    def _if_still_offered(self, handle: SessionHandle, statement: str, ruling: Ruling) -> Ruling:
        """The ruling, unless another process has let something of the session pass in the meantime."""
        if not self._sessions.is_offered(handle):
            return Ruling(statement, ended=ruling.ended)
        if not ruling.may_rerun:
            return ruling
        # Until its answer is there another process may let something pass as well.
        premises = ruling.premises
        stays_here = replace(
            premises,
            is_session_unchanged=lambda: premises.is_session_unchanged() and self._sessions.is_offered(handle),
        )
        return replace(ruling, premises=stays_here)


def _now() -> float:
    return asyncio.get_running_loop().time()
