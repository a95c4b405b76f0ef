"""Single flight of the proxy's own queries: one under way serves all sessions that would get the same answer.

On a proxy that has just started, the sessions of a dashboard ask the same questions at the same moment. The first
one asks, and the others wait for its answer. If it fails, or its client leaves, the others do not fail with it:
one of those that wait asks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from proxy.operations.query import FailureKind, Query, QueryFailed, QueryResult, Rows, Sharing

Answer: TypeAlias = Callable[[Query], Awaitable[QueryResult]]

# Less time than this is too little to ask again.
_ASK_AGAIN_S: Final = 0.1


@dataclass(frozen=True, eq=False)
class _Flight:
    """A query under way. Its answer is None if it was given up."""

    sharing: Sharing
    answer: asyncio.Future[QueryResult | None]
    began: float


class SingleFlight:
    """The queries of a process that others may wait for. Used by its event loop alone."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, _Flight] = {}

    async def answer(self, query: Query, ask: Answer) -> QueryResult:
        """The answer to a query: that of another session's, or what `ask` gives, within the query's deadline."""
        sharing = query.sharing
        if sharing is None:
            return await ask(query)
        clock = asyncio.get_running_loop().time
        started, key = clock(), (sharing.key, query.sql, query.rows_max, query.bytes_max)
        left_s = query.deadline_s
        while (flight := self._under_way.get(key)) is not None and flight.sharing.is_fresh():
            try:
                async with asyncio.timeout(left_s):
                    result = await asyncio.shield(flight.answer)
            except TimeoutError:
                # The connection of the session that asked may be dead: the next session asks on its own.
                self._end(key, flight)
                return _late(query, clock() - started)
            waited_s = clock() - started
            if isinstance(result, Rows):
                return replace(result, seconds=waited_s, asked_before_s=max(0.0, started - flight.began))
            left_s = query.deadline_s - waited_s
            if left_s < _ASK_AGAIN_S:
                return _late(query, waited_s)
        return await self._ask(key, sharing, replace(query, deadline_s=left_s), ask)

    async def _ask(self, key: Hashable, sharing: Sharing, query: Query, ask: Answer) -> QueryResult:
        loop = asyncio.get_running_loop()
        flight = _Flight(sharing, loop.create_future(), loop.time())
        self._under_way[key] = flight
        result: QueryResult | None = None
        try:
            result = await ask(query)
        finally:
            self._end(key, flight)
            flight.answer.set_result(result)
        return result

    def _end(self, key: Hashable, flight: _Flight) -> None:
        """Let nobody wait for this query any more. A later one may have its place, if its answer was too old."""
        if self._under_way.get(key) is flight:
            del self._under_way[key]


def _late(query: Query, seconds: float) -> QueryFailed:
    message = f"another session's answer did not come within {query.deadline_s} s"
    return QueryFailed(FailureKind.DEADLINE, message, seconds)
