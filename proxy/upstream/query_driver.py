"""Drivers of the pure parts: a decision that asks queries, and a query, a generator that yields calls.

Steps that parse SQL or decode many rows run in a thread pool, so that other connections do not wait for them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Generic, Literal, TypeAlias, TypeVar

from proxy.operations.internal_call import Call, Reply
from proxy.operations.query import Ask, FailureKind, Query, QueryFailed, QueryResult, Work
from proxy.operations.run_query import run_query
from proxy.wire.hs2.calls import SessionHandle

# Decoding so many bytes takes about a millisecond, the longest that the event loop should be blocked.
DECODE_INLINE_BYTES_MAX: Final = 64 * 1024

MakeCall: TypeAlias = Callable[[Call], Awaitable[Reply]]

Yielded = TypeVar("Yielded")
Sent = TypeVar("Sent")
Returned = TypeVar("Returned")


_Steppable: TypeAlias = Generator[Yielded, Sent, Returned] | Coroutine[Yielded, Sent, Returned]


@dataclass(frozen=True)
class _Returned(Generic[Returned]):
    value: Returned


class _Steps(Generic[Yielded, Sent, Returned]):
    """A generator or coroutine, begun by its first step. No future carries StopIteration: its value is wrapped."""

    def __init__(self, begin: Callable[[], _Steppable[Yielded, Sent, Returned]]) -> None:
        self._begin = begin
        self._begun: _Steppable[Yielded, Sent, Returned] | None = None

    def advance(self, sent: Sent | None) -> Yielded | _Returned[Returned]:
        self._begun = begun = self._begun or self._begin()
        try:
            # Sending None starts it, which its type cannot express.
            return begun.send(sent)  # type: ignore[arg-type]
        except StopIteration as end:
            return _Returned(end.value)

    def close(self) -> None:
        """Give up, between two steps."""
        if self._begun is not None:
            self._begun.close()


async def drive(
    work: Work[Returned],
    answer: Ask,
    pool: Executor,
    unclaimed: Callable[[Returned], None] = lambda _: None,
) -> Returned:
    """Do work to its end, each step in the pool. Cancelled work is closed, and gives back all that it holds.

    A step that is running then continues: if it returns a value, `unclaimed` gets it, in the step's thread.
    """
    steps = _Steps(work)
    result: QueryResult | None = None
    while True:
        working = pool.submit(steps.advance, result)
        try:
            step = await asyncio.wrap_future(working)
        except BaseException:
            working.add_done_callback(partial(_give_up, steps, unclaimed))
            raise
        if isinstance(step, _Returned):
            return step.value
        try:
            result = await answer(step)
        except BaseException:
            steps.close()
            raise


def _give_up(
    steps: _Steps[Yielded, Sent, Returned],
    unclaimed: Callable[[Returned], None],
    worked: Future[Yielded | _Returned[Returned]],
) -> None:
    """Close work whose step has ended, or was never begun. A value that it has returned is handed over."""
    step = None if worked.cancelled() or worked.exception() is not None else worked.result()
    if isinstance(step, _Returned):
        unclaimed(step.value)
    else:
        steps.close()


class Slots(asyncio.Semaphore):
    """Slots of queries that may run at once. `taken` are in use."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count, self.taken = count, 0

    async def acquire(self) -> Literal[True]:
        """Wait for a slot, and take it."""
        acquired = await super().acquire()
        self.taken += 1
        return acquired

    def release(self) -> None:
        """Give a slot back."""
        self.taken -= 1
        super().release()


async def answer_in_slot(query: Query, slots: asyncio.Semaphore | None, answer: Ask) -> QueryResult:
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


async def answer_query(query: Query, session: SessionHandle, make_call: MakeCall, pool: Executor) -> QueryResult:
    """Run one query through `make_call`, which sends a call and returns its reply."""
    loop = asyncio.get_running_loop()
    steps = _Steps(partial(run_query, query, session, time.monotonic))
    reply: Reply = None
    while True:
        if reply is not None and len(reply) > DECODE_INLINE_BYTES_MAX:
            step = await loop.run_in_executor(pool, steps.advance, reply)
        else:
            step = steps.advance(reply)
        if isinstance(step, _Returned):
            return step.value
        reply = await make_call(step)
