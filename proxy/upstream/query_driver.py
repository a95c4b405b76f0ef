"""Drivers of the pure parts' generators: a rewrite that yields queries, a query that yields calls.

Steps that parse SQL or decode many rows run in a thread pool, so that other connections do not wait for them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

from proxy.operations.internal_call import Call, Reply
from proxy.operations.query import FailureKind, Query, QueryFailed, QueryResult
from proxy.operations.run_query import run_query
from proxy.wire.hs2.calls import SessionHandle

# Decoding so many bytes takes about a millisecond, the longest that the event loop should be blocked.
DECODE_INLINE_BYTES_MAX: Final = 64 * 1024

Ask: TypeAlias = Callable[[Call], Awaitable[Reply]]

Yielded = TypeVar("Yielded")
Sent = TypeVar("Sent")
Returned = TypeVar("Returned")


@dataclass(frozen=True)
class _Returned(Generic[Returned]):
    value: Returned


class _Steps(Generic[Yielded, Sent, Returned]):
    """A generator, advanced step by step. A future cannot carry StopIteration, so its value is wrapped."""

    def __init__(self, generator: Generator[Yielded, Sent, Returned]) -> None:
        self._generator = generator

    def advance(self, sent: Sent | None) -> Yielded | _Returned[Returned]:
        try:
            # None starts a generator, which its type cannot express.
            return self._generator.send(sent)  # type: ignore[arg-type]
        except StopIteration as end:
            return _Returned(end.value)


async def drive(
    generator: Generator[Query, QueryResult, Returned],
    answer: Callable[[Query], Awaitable[QueryResult]],
    pool: Executor,
    unclaimed: Callable[[Returned], None] = lambda _: None,
) -> Returned:
    """Run a generator to its end, each step in the pool. Cancellation drops the generator, which closes it.

    A step that is running then continues: if it returns a value, `unclaimed` gets it, in the step's thread.
    """
    steps = _Steps(generator)
    result: QueryResult | None = None
    while True:
        working = pool.submit(steps.advance, result)
        try:
            step = await asyncio.wrap_future(working)
        except asyncio.CancelledError:
            working.add_done_callback(partial(_hand_over, unclaimed))
            raise
        if isinstance(step, _Returned):
            return step.value
        result = await answer(step)


def _hand_over(unclaimed: Callable[[Returned], None], worked: Future[Yielded | _Returned[Returned]]) -> None:
    if worked.cancelled() or worked.exception() is not None:
        return
    step = worked.result()
    if isinstance(step, _Returned):
        unclaimed(step.value)


async def answer_in_slot(
    query: Query, slots: asyncio.Semaphore | None, answer: Callable[[Query], Awaitable[QueryResult]]
) -> QueryResult:
    """Answer a query, after it got a slot if it needs one, within the time then left of its deadline.

    Without `slots` no query waits.
    """
    if slots is None or not query.needs_slot:
        return await answer(query)
    started = time.monotonic()
    try:
        async with asyncio.timeout(query.deadline_s):
            await slots.acquire()
    except TimeoutError:
        waited_s = time.monotonic() - started
        return QueryFailed(FailureKind.BUSY, f"no free slot within {query.deadline_s} s", waited_s)
    try:
        left_s = query.deadline_s - (time.monotonic() - started)
        return await answer(replace(query, deadline_s=left_s))
    finally:
        slots.release()


async def answer_query(query: Query, session: SessionHandle, ask: Ask, pool: Executor) -> QueryResult:
    """Run one query through `ask`, which sends a call and returns its reply."""
    loop = asyncio.get_running_loop()
    steps = _Steps(run_query(query, session, time.monotonic))
    reply: Reply = None
    while True:
        if reply is not None and len(reply) > DECODE_INLINE_BYTES_MAX:
            step = await loop.run_in_executor(pool, steps.advance, reply)
        else:
            step = steps.advance(reply)
        if isinstance(step, _Returned):
            return step.value
        reply = await ask(step)
