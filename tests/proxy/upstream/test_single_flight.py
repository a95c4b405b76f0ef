"""Queries under way that several sessions wait for: asked once, and by nobody's failure for all."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from support.played_sessions import DESCRIBE, KEYS, NARROWED, SETTINGS, SQL, failed, rows
from support.text_session import TextSession

from proxy.config.config import Config
from proxy.operations.query import FailureKind, Query, QueryFailed, QueryResult, Rows, Sharing
from proxy.operations.session_port import SessionOpening
from proxy.session.shared_state import SharedState
from proxy.upstream.query_driver import drive
from proxy.upstream.single_flight import SingleFlight

ONE = rows(("a",))


def query(key: str = "state", *, deadline_s: float = 60.0, is_fresh: Callable[[], bool] = lambda: True) -> Query:
    return Query("SELECT 1", 1, 1_000, deadline_s, sharing=Sharing(key.encode(), key, is_fresh))


class Backend:
    """A backend whose answers are let go one by one, in the order of the questions."""

    def __init__(self) -> None:
        self.asked: list[asyncio.Future[QueryResult]] = []

    async def answer(self, _: Query) -> QueryResult:
        self.asked.append(asyncio.get_running_loop().create_future())
        return await self.asked[-1]


async def begun(single_flight: SingleFlight, backend: Backend, *queries: Query) -> list[asyncio.Task[QueryResult]]:
    tasks = [asyncio.create_task(single_flight.answer(each, backend.answer)) for each in queries]
    await settled()
    return tasks


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_sessions_of_one_state_ask_once() -> None:
    single_flight, backend = SingleFlight(), Backend()
    tasks = await begun(single_flight, backend, query(), query(), query())
    assert len(backend.asked) == 1
    backend.asked[0].set_result(ONE)
    answers = await asyncio.gather(*tasks)
    assert [answer.rows for answer in answers if isinstance(answer, Rows)] == [ONE.rows] * 3
    asked_before = [answer.asked_before_s for answer in answers if isinstance(answer, Rows)]
    assert asked_before[0] == 0.0 < min(asked_before[1:]), "the others asked later than the one that is answered"
    _ = await begun(single_flight, backend, query())
    assert len(backend.asked) == 2, "an answer that has come is nobody else's any more"


async def test_sessions_of_other_states_and_other_questions_ask_themselves() -> None:
    single_flight, backend = SingleFlight(), Backend()
    other = Query("SELECT 2", 1, 1_000, 60.0, sharing=query().sharing)
    alone = Query("SELECT 1", 1, 1_000, 60.0)
    _ = await begun(single_flight, backend, query(), query("other state"), other, alone, alone)
    assert len(backend.asked) == 5


async def test_an_answer_that_is_too_old_is_not_waited_for() -> None:
    single_flight, backend = SingleFlight(), Backend()
    is_fresh = True
    first, second = await begun(
        single_flight, backend, query(is_fresh=lambda: is_fresh), query(is_fresh=lambda: is_fresh)
    )
    is_fresh = False
    third, fourth = await begun(single_flight, backend, query(), query())
    assert len(backend.asked) == 2
    backend.asked[1].set_result(rows(("new",)))
    backend.asked[0].set_result(rows(("old",)))
    found = [await task for task in (first, second, third, fourth)]
    assert [answer.rows for answer in found if isinstance(answer, Rows)] == [(("old",),)] * 2 + [(("new",),)] * 2


@pytest.mark.parametrize("end", [failed(FailureKind.REJECTED), OSError("the connection broke"), None])
async def test_a_question_that_fails_or_whose_client_leaves_is_asked_again_by_one_of_those_that_wait(
    end: QueryResult | Exception | None,
) -> None:
    single_flight, backend = SingleFlight(), Backend()
    first, second, third = await begun(single_flight, backend, query(), query(), query())
    if end is None:
        first.cancel()
    elif isinstance(end, Exception):
        backend.asked[0].set_exception(end)
    else:
        backend.asked[0].set_result(end)
    await settled()
    assert len(backend.asked) == 2
    backend.asked[1].set_result(ONE)
    assert {getattr(await task, "rows", None) for task in (second, third)} == {ONE.rows}
    _ = await asyncio.gather(first, return_exceptions=True)


async def test_one_that_waits_and_leaves_leaves_the_others_alone() -> None:
    single_flight, backend = SingleFlight(), Backend()
    first, second, third = await begun(single_flight, backend, query(), query(), query())
    second.cancel()
    await settled()
    backend.asked[0].set_result(ONE)
    assert [getattr(await task, "rows", None) for task in (first, third)] == [ONE.rows] * 2


async def test_nobody_waits_longer_than_its_own_deadline() -> None:
    single_flight, backend = SingleFlight(), Backend()
    first, second = await begun(single_flight, backend, query(), query(deadline_s=0.01))
    late = await second
    assert isinstance(late, QueryFailed)
    assert late.kind is FailureKind.DEADLINE
    _ = await begun(single_flight, backend, query())
    assert len(backend.asked) == 2, "the first one may hang: the next session asks itself"
    backend.asked[0].set_result(ONE)
    assert await first is ONE


async def test_sessions_that_begin_together_cause_the_questions_of_one() -> None:
    shared, single_flight, asked = SharedState.of(Config(), lambda: 0.0), SingleFlight(), list[str]()
    answers: Mapping[str, QueryResult] = dict([SETTINGS, *DESCRIBE, KEYS])

    async def backend(each: Query) -> QueryResult:
        asked.append(each.sql)
        await asyncio.sleep(0.05)
        return answers[each.sql]

    async def narrowed() -> str:
        session = TextSession(shared, SessionOpening(owner="ann", login="ann"))
        work, answer = partial(session.rewrite, SQL), partial(single_flight.answer, ask=backend)
        return (await drive(work, answer, pool)).text

    with ThreadPoolExecutor(8) as pool:
        assert await asyncio.gather(*(narrowed() for _ in range(8))) == [NARROWED] * 8
    once = [sql for sql in answers if sql != KEYS[0]]
    assert sorted(asked) == sorted([*once, *[KEYS[0]] * 8]), "keys are asked for after the statement came"
