"""Work that is given up gives back all that it holds at once, also where somebody keeps the cancelled task."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from threading import Event
from typing import Any, TypeVar

import pytest

from proxy.operations.query import Query, QueryResult, Rows, ask_driver
from proxy.upstream.fair_threads import ThreadsBusyError
from proxy.upstream.query_driver import Slots, answer_in_slot, drive

T = TypeVar("T")

ASKED = Query("SELECT 1", rows_max=1, bytes_max=9, deadline_s=1.0)
PATIENCE_S = 30.0


class Work:
    """Asks one query. Its step may be held in its thread."""

    def __init__(self) -> None:
        self.may_go_on = Event()
        self.has_given_back = Event()

    async def run(self) -> None:
        try:
            self.may_go_on.wait(PATIENCE_S)
            _ = await ask_driver(ASKED)
        finally:
            self.has_given_back.set()


@pytest.fixture
def pool() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as threads:
        yield threads


@pytest.mark.parametrize("is_held", [False, True], ids=["at its question", "in its thread"])
async def test_work_that_is_cancelled_gives_back_what_it_holds(pool: Executor, *, is_held: bool) -> None:
    work, asked = Work(), asyncio.Event()

    async def answer(_: Query) -> QueryResult:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody answers")

    task = asyncio.create_task(drive(work.run, answer, pool))
    if is_held:
        await asyncio.sleep(0)
    else:
        work.may_go_on.set()
        await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as kept:
        await task
    work.may_go_on.set()
    assert await asyncio.to_thread(work.has_given_back.wait, PATIENCE_S)
    assert kept.value.__traceback__ is not None


async def test_work_for_which_no_thread_is_free_gives_back_what_it_holds() -> None:
    class Busy(ThreadPoolExecutor):
        """Has a thread once."""

        def submit(self, call: Callable[..., T], /, *args: Any, **named: Any) -> Future[T]:
            if not asked.is_set():
                return super().submit(call, *args, **named)
            refused: Future[T] = Future()
            refused.set_exception(ThreadsBusyError())
            return refused

    work, asked = Work(), Event()
    work.may_go_on.set()

    async def answer(_: Query) -> QueryResult:
        asked.set()
        return Rows((), (), 0.0)

    with Busy(1) as pool, pytest.raises(ThreadsBusyError) as kept:
        await drive(work.run, answer, pool)
    assert work.has_given_back.is_set()
    assert kept.value.__traceback__ is not None


async def test_work_whose_answer_fails_gives_back_what_it_holds(pool: Executor) -> None:
    work = Work()
    work.may_go_on.set()

    async def failing(_: Query) -> QueryResult:
        raise OSError("lost")

    with pytest.raises(OSError, match="lost") as kept:
        await drive(work.run, failing, pool)
    assert work.has_given_back.is_set()
    assert kept.value.__traceback__ is not None


async def test_slots_tell_how_many_of_them_queries_have() -> None:
    slots, taken = Slots(2), []

    async def answer(_: Query) -> QueryResult:
        taken.append(slots.taken)
        return Rows((), (), 0.0)

    for needs_slot in (True, False):
        await answer_in_slot(replace(ASKED, needs_slot=needs_slot), slots, answer)
    assert [*taken, slots.taken] == [1, 0, 0]
