"""Decisions that are given up: a client leaves in the middle of one, or the event loop leaves it to a thread."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, TypeAlias, TypeVar

import pytest
from support.file_list_answers import FILES, TABLES
from support.played_sessions import DESCRIBE, DETAILS, KEY_QUERY, KEYS, NARROWED, SETTINGS, SQL, rows
from support.relay_dialogue import SESSION
from support.scripted_decisions import CONNECTION, Desk, ScriptedServer, other_session
from support.scripted_session import PATIENCE_S, eventually

from proxy.config.rewriting import FilesSection, RewriteSection
from proxy.frontend.rewrite_service import tell_outcome
from proxy.operations.dispatch import Dispatch, Outcome, OutcomeKind
from proxy.operations.key_check import KeyTerms
from proxy.operations.query import Rows
from proxy.session.analysis_room import AnalysisRoom
from proxy.statements.statement_class import StatementClass
from proxy.upstream.fair_threads import FairThreads
from rewriter import Rule, TableName

T = TypeVar("T")

OTHER = other_session(b"another")
NOT_SENT = Outcome(OutcomeKind.NOT_SENT, 0.0)
UNGATED = RewriteSection(cost_gate=False)

FILTERED = "SELECT v FROM t WHERE x = 5"
NAMED = tuple((name, value, "") for name, value in (("Catalog", "c"), ("Database", "d"), ("Table", "t")))
FILE = ("file:/t/a", 1_500_000_000, 7, 10, json.dumps({"x": {"type": "int", "low": "1", "high": "4", "nulls": 0}}))
HINT = "NOT IN ('file:/t/a|1500000000|7')"
ANSWERS: Mapping[str, Rows] = {
    **dict([SETTINGS, *DESCRIBE, KEYS]),
    "DESCRIBE TABLE EXTENDED `t`": rows(("x", "int", ""), ("v", "string", ""), *DETAILS, *NAMED),
    TABLES: rows(("c.d.t", 2, 3_000_000_000, 5)),
    FILES: rows((*FILE, None), ("file:/t/b", 1_500_000_000, 7, 10, None, None)),
}


def no_timer(_seconds: float, _call: Callable[[], None]) -> None:
    """Threads are waited for without an end: a timer would hold what was given up for some seconds."""


class NotedRoom(AnalysisRoom):
    """Room for analysis that notes what is taken and given back."""

    def __init__(self) -> None:
        super().__init__(1_000_000_000)
        self.taken: list[int] = []
        self.given_back: list[int] = []

    def take(self, characters: int) -> bool:
        self.taken.append(characters)
        return super().take(characters)

    def give_back(self, characters: int) -> None:
        super().give_back(characters)
        self.given_back += [characters] if characters else []


class HeldThreads(FairThreads):
    """Threads that are not free behind their work, as long as a test wants that."""

    def __init__(self, threads: Executor) -> None:
        super().__init__(threads, 1, no_timer)
        self.is_held: Callable[[], bool] = lambda: False
        self.has_worked = threading.Event()
        self.goes_on = threading.Event()

    def submit(self, owner: str, call: Callable[[], T], within_s: float | None) -> Future[T]:
        def work() -> T:
            found = call()
            if self.is_held():
                self.has_worked.set()
                assert self.goes_on.wait(PATIENCE_S)
            return found

        return super().submit(owner, work, within_s)


class ByHand(Executor):
    """Threads that run what they were given when they are told, or at once."""

    def __init__(self, *, is_at_once: bool = False) -> None:
        self.given: list[Callable[[], object]] = []
        self.is_at_once = is_at_once

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.given.append(partial(fn, *args, **kwargs))
        if self.is_at_once:
            self.run_next()
        return Future()

    def run_next(self) -> None:
        self.given.pop(0)()


class Leaving:
    """A session of a client whose statement is given up."""

    def __init__(self, threads: Executor, **sections: Any) -> None:
        self.server, self.threads = ScriptedServer(ANSWERS), HeldThreads(threads)
        self.desk = Desk(self.server, self.threads, **{"rewrite": UNGATED, **sections})
        self.desk.shared.analysis = self.room = NotedRoom()
        self.turn = self.desk.sessions.of(SESSION).turn
        self.deciding: asyncio.Task[Dispatch]

    def comes(self, sql: str = SQL) -> None:
        self.deciding = asyncio.create_task(self.desk.decide(sql))

    async def leaves(self) -> None:
        _ = self.deciding.cancel()
        with suppress(asyncio.CancelledError):
            _ = await self.deciding

    async def is_as_before(self) -> Dispatch:
        """Nothing is taken, held or under way. The dispatch of the next statement, which may use old keys."""
        state = self.desk.sessions.of(SESSION).port.known_state()
        assert state is not None, "nothing is changing the session"
        assert state.statements == ()
        assert self.desk.shared.writes.open().holds([TableName(("d",)), TableName(("f",))])
        assert [entry.outcomes for entry in self.desk.log.entries] == [[NOT_SENT]] * len(self.desk.log.entries)
        async with asyncio.timeout(PATIENCE_S):
            dispatch = await self.desk.decide(SQL, keys=KeyTerms(may_be_checked=True))
        assert dispatch.text == NARROWED
        assert not self.turn.locked()
        async with self.desk.slots:
            assert self.desk.slots.locked(), "there is one, as before"
        await eventually(lambda: self.room.given_back == self.room.taken)
        return dispatch


@asynccontextmanager
async def leaving(**sections: Any) -> AsyncIterator[Leaving]:
    with ThreadPoolExecutor(1) as threads:
        yield Leaving(threads, **sections)


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


# --- the moments at which a client may leave

Moment: TypeAlias = Callable[[Leaving], Awaitable[None]]


async def at_its_turn(on: Leaving) -> None:
    async with on.turn:
        on.comes()
        await settled()
        await on.leaves()


async def as_its_turn_comes(on: Leaving) -> None:
    async with on.turn:
        on.comes()
        await settled()
    await on.leaves()


async def in_its_thread(on: Leaving) -> None:
    on.threads.is_held = lambda: on.room.taken != []
    on.comes()
    await eventually(on.threads.has_worked.is_set)
    await on.leaves()
    assert on.room.given_back == [], "its thread has not ended"
    on.threads.goes_on.set()
    await eventually(lambda: on.room.given_back == on.room.taken)


async def at_a_question(on: Leaving, sql: str = "SET") -> None:
    on.server.holding = {sql}
    on.comes()
    await on.server.come_to(sql)
    await on.leaves()
    assert on.server.given_up == [sql]
    on.server.let_go()


async def waiting_for_a_slot(on: Leaving) -> None:
    async with on.desk.slots:
        on.comes()
        await eventually(lambda: on.desk.slots.wanted > 1)
        await on.leaves()
    assert KEY_QUERY not in on.server.asked


async def as_it_gets_a_slot(on: Leaving) -> None:
    async with on.desk.slots:
        on.comes()
        await eventually(lambda: on.desk.slots.wanted > 1)
    await on.leaves()


@pytest.mark.parametrize(
    "leave",
    [
        at_its_turn,
        as_its_turn_comes,
        in_its_thread,
        at_a_question,
        waiting_for_a_slot,
        as_it_gets_a_slot,
        pytest.param(partial(at_a_question, sql=KEY_QUERY), id="at_its_key_query"),
    ],
)
async def test_a_client_that_leaves_while_its_statement_is_decided_leaves_nothing_behind(leave: Moment) -> None:
    async with leaving() as on:
        await leave(on)
        assert on.desk.log.entries == []
        assert (await on.is_as_before()).check is None, "no keys are remembered"


async def test_a_question_for_several_sessions_whose_client_leaves_is_asked_again_by_another_decision() -> None:
    async with leaving() as on:
        on.desk.shares_answers()
        on.desk.open(OTHER)
        on.server.holding = {"SET"}
        on.comes()
        other = asyncio.create_task(on.desk.decide(SQL, OTHER))
        await eventually(lambda: on.desk.own.wanted.count("SET") == 2)
        await on.leaves()
        assert on.server.given_up == ["SET"]
        await eventually(lambda: on.server.asked.count("SET") == 2)
        on.server.let_go()
        async with asyncio.timeout(PATIENCE_S):
            assert (await other).text == NARROWED


@pytest.mark.parametrize(("asked", "is_known"), [(TABLES, False), (TABLES, True), (FILES, False)])
async def test_a_list_of_files_that_a_client_leaves_is_fetched_by_the_next_statement(
    asked: str, *, is_known: bool
) -> None:
    on = Leaving(ByHand(is_at_once=True), files=FilesSection(index="s.files"))
    on.desk.shares_answers()
    if is_known:
        assert HINT in (await on.desk.decide(FILTERED)).text
        on.desk.clock.now = on.desk.shared.config.files.tables_ttl_s + 1.0
        on.server.asked.clear()
    on.server.holding = {asked}
    on.comes(FILTERED)
    await on.server.come_to(asked)
    await on.leaves()
    on.server.let_go()
    await settled()
    assert HINT in (await on.desk.decide(FILTERED)).text
    assert on.server.asked.count(asked) == 2


@pytest.mark.parametrize("turns", range(2))
@pytest.mark.parametrize("sql", [SQL, "INSERT INTO d SELECT 1", "USE other"])
async def test_a_statement_that_is_decided_as_its_client_leaves_has_ended_unsent_once(
    sql: str, turns: int
) -> None:
    threads, released = ByHand(), list[Dispatch]()
    on = Leaving(threads)

    async def decided() -> None:
        released.append(await on.desk.decide(sql))

    deciding = asyncio.create_task(decided())
    async with asyncio.timeout(PATIENCE_S):
        while not (on.desk.log.entries or deciding.done()):
            await asyncio.sleep(0)
            if threads.given:
                threads.run_next()
    # It has begun, and the loop may know so or not yet.
    for _ in range(turns):
        await asyncio.sleep(0)
    deciding.cancel()
    _ = await asyncio.gather(deciding, return_exceptions=True)
    for dispatch in released:
        # As connections do.
        tell_outcome(dispatch, NOT_SENT, CONNECTION)
    await settled()
    assert len(on.desk.log.entries) == 1
    threads.is_at_once = True
    _ = await on.is_as_before()


# --- the quick path


def all_that_is_told(on: Leaving) -> list[object]:
    """The counters but for the process's own, the log, and the state of the session and of its process."""
    shared, session = on.desk.shared, on.desk.sessions.of(SESSION)
    counters = [line for line in shared.metrics.exposition().splitlines() if b"process_" not in line]
    room = [*on.room.taken], [*on.room.given_back]
    entries = [(entry.text, *entry.outcomes) for entry in on.desk.log.entries]
    return [counters, *room, entries, session.port.known_state(), session.turn.locked()]


async def test_a_quick_attempt_that_has_to_ask_something_all_the_same_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rewrite = RewriteSection(rules_off=(Rule.VIEWS, Rule.VIEW_JOINS))
    async with leaving(rewrite=rewrite, files=FilesSection(index="s.files")) as on:
        on.desk.shares_answers()
        _ = await on.desk.decide(FILTERED)
        port, statement = on.desk.sessions.of(SESSION).port, StatementClass("SELECT v FROM other WHERE x = 5")
        before, fence = all_that_is_told(on), on.desk.shared.writes.open()
        assert on.desk.service.decide_now(SESSION, statement, CONNECTION) is not None, "it is a quick one"
        assert all_that_is_told(on) != before
        is_quick = port.is_quick

        def expires(statement: StatementClass) -> bool:
            found = is_quick(statement)
            # What the index is known to have expires in this moment.
            on.desk.clock.now = 1_000.0
            return found

        monkeypatch.setattr(port, "is_quick", expires)
        before = all_that_is_told(on)
        assert on.desk.service.decide_now(SESSION, statement, CONNECTION) is None
        assert all_that_is_told(on) == before
        assert fence.is_quiet()
        _ = await on.desk.decide(statement.text)
        assert on.server.asked.count(TABLES) == 2
