"""The desk by itself: what it lets go on, when, and for whom."""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import replace
from typing import Any

import pytest
from support.relay_dialogue import SESSION
from support.scripted_session import Rewriter
from support.session_handles import Elsewhere, session_id

from proxy.config.config import Config
from proxy.frontend import session_order
from proxy.frontend.own_sessions import OwnSessions
from proxy.frontend.rewrite_service import Caller, RewriteService
from proxy.frontend.session_registry import SessionRegistry
from proxy.operations.dispatch import Dispatch, Outcome, OutcomeKind, Premises, Refusal, WriteUnderWay
from proxy.operations.internal_call import Call
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.operations.session_port import SessionOpening, SessionPort
from proxy.session.session import Session
from proxy.session.shared_state import SharedState
from proxy.statements.statement_class import StatementClass
from proxy.upstream.dialer import Dialer
from proxy.upstream.fair_threads import FairThreads
from proxy.wire.hs2.calls import SessionHandle
from rewriter import TableName

CHANGE, JOIN, SENT = "USE other", "SELECT 1 FROM a JOIN b ON a.k = b.k", "SELECT 2"
CONNECTION = "connection 1"


async def ask(_: Call) -> bytes | None:
    return None


CALLER = Caller(CONNECTION, ask)


class Stage:
    """A desk with one session."""

    def __init__(self, rewriter: SessionPort, threads: FairThreads) -> None:
        self.handles = Elsewhere()
        self.sessions = SessionRegistry(lambda _: rewriter, self.handles)
        self.sessions.opened(SESSION, 9, SessionOpening())
        self.rewrite_service = RewriteService(
            self.sessions, threads, asyncio.Semaphore(1), OwnSessions(Dialer(), time.monotonic)
        )

    @property
    def turn(self) -> asyncio.Lock:
        return self.sessions.of(SESSION).turn

    async def sent(self, statement: str) -> str:
        return (await self.rewrite_service.decide(SESSION, StatementClass(statement), CALLER)).text


@pytest.fixture
def threads() -> Iterator[FairThreads]:
    running = FairThreads.started(1)
    yield running
    running.shutdown()


@pytest.fixture
def rewriter() -> Rewriter:
    return Rewriter(SENT)


@pytest.fixture
def stage(rewriter: Rewriter, threads: FairThreads) -> Stage:
    return Stage(rewriter, threads)


async def test_a_change_waits_for_a_rewritten_write_also_where_its_session_is_rewritten_no_longer(
    stage: Stage,
    rewriter: Rewriter,
) -> None:
    rewriter.write = write = WriteUnderWay()
    stage.handles.roaming.add(session_id())
    assert stage.rewrite_service.decide_now(SESSION, StatementClass(CHANGE), CONNECTION) is None
    going = asyncio.create_task(stage.sent(CHANGE))
    await asyncio.sleep(0)
    assert not going.done()
    write.is_over = True
    assert await going == CHANGE


async def test_it_is_refused_there_too_where_it_would_wait_for_too_long(
    stage: Stage, rewriter: Rewriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_order, "WAIT_S", -1.0)
    rewriter.write = WriteUnderWay()
    stage.handles.roaming.add(session_id())
    refused = await stage.rewrite_service.decide(SESSION, StatementClass(CHANGE), CALLER)
    assert refused.text.startswith("SELECT raise_error(")
    assert not refused.may_fall_back, "its failure is what the client is to see"


async def test_a_write_that_is_released_while_a_change_waits_for_its_turn_is_awaited(
    stage: Stage, rewriter: Rewriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage.turn:
        going = asyncio.create_task(stage.sent(CHANGE))
        await asyncio.sleep(0)
        rewriter.write = WriteUnderWay()
        monkeypatch.setattr(session_order, "WAIT_S", -1.0)
    assert (await going).startswith("SELECT raise_error(")


async def test_the_statements_of_a_session_are_decided_one_at_a_time(stage: Stage) -> None:
    async with stage.turn:
        going = asyncio.create_task(stage.sent(JOIN))
        done, _ = await asyncio.wait([going], timeout=0.05)
        assert not done
        assert stage.rewrite_service.decide_now(SESSION, StatementClass("SELECT 1"), CONNECTION) is None
    assert await going == SENT


async def test_a_join_goes_as_the_original_or_is_refused_where_its_session_begins_to_roam_meanwhile(
    threads: FairThreads,
) -> None:
    limited = Refusal("it would read too much", "42ZSL")

    class Roaming(Rewriter):
        async def rewrite(self, statement: StatementClass, _keys: KeyTerms = ASK_FIRST) -> Dispatch:
            on.handles.roaming.add(session_id())
            return replace(await super().rewrite(statement), original_refusal=limited)

    on = Stage(Roaming(SENT), threads)
    dispatch = await on.rewrite_service.decide(SESSION, StatementClass(JOIN), CALLER)
    assert (dispatch.text, dispatch.refusal) == (JOIN, limited)


@pytest.mark.parametrize("statement", ["SELECT 1", JOIN])
async def test_a_text_rests_on_its_session_and_on_that_no_other_process_lets_anything_of_it_pass(
    threads: FairThreads, statement: str
) -> None:
    unchanged = True
    stage = Stage(Rewriter(SENT, may_fall_back=True, premises=Premises(lambda: unchanged)), threads)
    at_once = stage.rewrite_service.decide_now(SESSION, StatementClass(statement), CONNECTION)
    dispatch = at_once or await stage.rewrite_service.decide(SESSION, StatementClass(statement), CALLER)
    assert (dispatch.text, at_once is None) == (SENT, statement == JOIN)
    assert dispatch.premises.is_session_unchanged()
    unchanged = False
    assert not dispatch.premises.is_session_unchanged()
    unchanged = True
    stage.handles.roaming.add(session_id())
    assert not dispatch.premises.is_session_unchanged()


class Occupied(Executor):
    """Threads that never come to what they are given."""

    def submit(self, _fn: object, /, *_args: object, **_kwargs: object) -> Future[Any]:
        return Future()


class Busy:
    """Threads that another owner has, and the ends of waits for them."""

    def __init__(self) -> None:
        self.timers: list[Callable[[], None]] = []
        self.threads = FairThreads(Occupied(), 1, lambda _, call: self.timers.append(call))
        _ = self.threads.of("another owner").submit(lambda: None)


@pytest.mark.parametrize(
    "statement", [JOIN, CHANGE, "SET a = b", "INSERT INTO t SELECT 1", "CREATE TABLE t (a INT)"]
)
async def test_a_statement_that_waits_too_long_for_a_thread_goes_on_as_it_came(statement: str) -> None:
    busy = Busy()
    going = asyncio.create_task(Stage(Rewriter(SENT), busy.threads).sent(statement))
    await asyncio.sleep(0)
    busy.timers.pop()()
    assert await going == statement


@pytest.mark.parametrize(
    "statement",
    [
        "EXPLAIN REWRITE SELECT 1",
        "/* a tool */ SHOW Starpruner STATEMENTS",
        "SET starpruner.enabled = false",
        "RESET",
        "CREATE TABLE t (a INT) SKEWED BY (a) ON (1)",
        "ALTER TABLE t NOT STORED AS DIRECTORIES",
    ],
)
async def test_a_statement_that_only_the_proxy_understands_waits_for_its_thread(statement: str) -> None:
    busy = Busy()
    going = asyncio.create_task(Stage(Rewriter(SENT), busy.threads).sent(statement))
    await asyncio.sleep(0)
    assert not busy.timers
    _ = going.cancel()


async def test_a_write_and_a_change_are_noted_also_where_no_thread_was_free() -> None:
    busy, shared = Busy(), SharedState.of(Config())
    session = Session(shared, SessionOpening(owner="ann", login="ann"))
    on = Stage(session, busy.threads)
    before = shared.writes.open()

    async def given_up(statement: str) -> Dispatch:
        going = asyncio.create_task(on.rewrite_service.decide(SESSION, StatementClass(statement), CALLER))
        await asyncio.sleep(0)
        busy.timers.pop()()
        return await going

    _ = await given_up("INSERT INTO t SELECT 1")
    assert not before.holds([TableName(("t",))])
    changed = await given_up("USE db")
    assert session.known_state() is None, "it is changing"
    changed.on_outcome(Outcome(OutcomeKind.FINISHED, 0.0))
    after = session.known_state()
    assert after is not None
    assert after.statements == ("USE db",)


async def test_the_statements_of_one_owner_have_one_thread_in_all_of_its_sessions() -> None:
    given: list[object] = []

    class Noting(Occupied):
        def submit(self, fn: object, /, *_args: object, **_kwargs: object) -> Future[Any]:
            given.append(fn)
            return Future()

    on = Stage(Rewriter(SENT), FairThreads(Noting(), 3, lambda _, __: None))
    others = [SessionHandle(SESSION.replace(b"session", name)) for name in (b"monday!", b"tuesday", b"friday!")]
    for handle, owner in zip(others, ("first", "first", "second"), strict=True):
        on.sessions.opened(handle, 9, SessionOpening(owner=owner))
    going = [
        asyncio.create_task(on.rewrite_service.decide(handle, StatementClass(JOIN), CALLER)) for handle in others
    ]
    await asyncio.sleep(0)
    assert len(given) == 2
    for task in going:
        _ = task.cancel()
