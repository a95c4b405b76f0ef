"""Ways to ask the queries of a decision: each wraps another one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial

from proxy.operations.query import Ask, Query, QueryResult, Sharing
from proxy.session.consistency.write_fence import WriteLog


class NotAtHandError(Exception):
    """An answer would have to be asked for."""


class SessionChangedError(Exception):
    """An answer came after a change of the session, so it does not belong to the former state."""


async def ask_nobody(query: Query) -> QueryResult:
    """Raise NotAtHandError: nothing is asked. Work that asks so never waits."""
    raise NotAtHandError(query.sql)


def shared(ask: Ask, state: bytes, key: Callable[[], Hashable], writes: WriteLog) -> Ask:
    """Ask in the proxy's own session of a state. A query for the client's session goes on as it is.

    Sessions for which `key` gives the same value may wait for one answer. Until a write to its tables goes through
    the proxy, an answer that is on its way is as good as one that is asked for now.
    """

    async def ask_shared(query: Query) -> QueryResult:
        if query.is_for_client:
            # A session is promised keys that were read after its statement came.
            return await ask(query)
        fence, reads = writes.open(), query.reads
        is_fresh = fence.is_quiet if reads is None else partial(fence.holds, reads)
        return await ask(replace(query, sharing=Sharing(state, key(), is_fresh)))

    return ask_shared


def while_unchanged(ask: Ask, is_session_unchanged: Callable[[], bool]) -> Ask:
    """Ask as long as the session is in its state. Raises SessionChangedError instead of a later answer."""

    async def ask_unchanged(query: Query) -> QueryResult:
        answer = await ask(query)
        if not is_session_unchanged():
            raise SessionChangedError
        return answer

    return ask_unchanged
