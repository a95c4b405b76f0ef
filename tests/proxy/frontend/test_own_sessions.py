"""The proxy's own sessions: how they come to a state, who waits for them, and how they end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from support.scripted_session import eventually

from proxy.backends.pool import BackendPool, PoolSettings
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember
from proxy.frontend import own_sessions
from proxy.frontend.own_session import AGE_MAX_S, AT_ONCE_MAX, Access
from proxy.frontend.own_sessions import IDLE_S, REFUSED_S, OwnSessions
from proxy.operations.query import FailureKind, Query, QueryFailed, QueryResult, ResultColumn, Rows, Sharing
from proxy.operations.session_port import KnownState, SessionOpening
from proxy.upstream.client import Login
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError

ONE_FOR_ALL = "SET spark.sql.hive.thriftServer.singleSession"
OPENED = SessionOpening({"use:database": "shop"}, "o", "ann", backend="spark:1", login="ann", named="Ann")
STATE = KnownState(b"state", OPENED, ("USE other", "SET a=1"))
OTHER = KnownState(b"other", OPENED)


def rows(value: str) -> Rows:
    return Rows((ResultColumn("key", "string"), ResultColumn("value", "string")), (("..", value),), 0.1)


class Server:
    """A server whose sessions note what they are asked, and that answers once it is let."""

    def __init__(self) -> None:
        self.logins: list[Login] = []
        self.asked: list[tuple[int, str]] = []
        self.open = 0
        self.one_for_all = "false"
        self.failing: set[str] = set()
        self.is_lost = False
        # Sessions with numbers up to this one were closed.
        self.closed_until = 0
        self.forgotten = ""
        self.breaks = False
        self.asked_whether_one_for_all = 0
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.opens = asyncio.Event()
        self.opens.set()

    def sessions_of(self, sql: str) -> list[int]:
        """The numbers of the sessions that were asked this, less that of the first look."""
        return [number - 1 for number, asked in self.asked if asked == sql]

    def restart(self, one_for_all: str) -> None:
        self.closed_until, self.one_for_all = len(self.logins), one_for_all

    @asynccontextmanager
    async def connect(self, login: Login) -> AsyncIterator["Session"]:
        await self.opens.wait()
        if self.is_lost:
            raise BackendError("nobody listens")
        if self.breaks:
            raise ValueError("secret")
        self.logins.append(login)
        self.open += 1
        try:
            yield Session(self, len(self.logins))
        finally:
            self.open -= 1


class Session:
    def __init__(self, server: Server, number: int) -> None:
        self._server = server
        self._number = number

    @property
    def is_closed(self) -> bool:
        return self._server.is_lost or self._number <= self._server.closed_until

    async def answer(self, query: Query) -> QueryResult:
        server = self._server
        if query.sql == ONE_FOR_ALL:
            server.asked_whether_one_for_all += 1
            return rows(server.one_for_all)
        if server.forgotten:
            return QueryFailed(FailureKind.REJECTED, server.forgotten, 0.1)
        server.asked.append((self._number, query.sql))
        await server.goes_on.wait()
        if server.is_lost:
            raise BackendError("the backend closed the connection")
        return QueryFailed(FailureKind.REJECTED, "no", 0.1) if query.sql in server.failing else rows(query.sql)


class Stage:
    def __init__(self, connections_max: int = 100, states_max: int = 10) -> None:
        self.now = 1_000.0
        self.server = Server()
        self.backends = BackendPool(
            [PoolMember(Address("spark", 1))], lambda: self.now, PoolSettings(connections_max)
        )
        self.sessions = OwnSessions(Dialer(), lambda: self.now, states_max=states_max, connect=self.server.connect)
        self.backends.make_room = self.sessions.give_way
        (backend,) = self.backends.configured
        self.access = Access(b"\0ann\0secret", lambda: self.backends.lease_for_proxy(backend))

    async def prepare(self, state: KnownState = STATE) -> bool:
        if self.sessions.is_lacking(state):
            await self.sessions.prepare(state, self.access)
        return self.sessions.state_of(state.digest) is state

    def asking(self, sql: str, state: KnownState = STATE) -> asyncio.Task[QueryResult]:
        query = Query(sql, 1, 1_000, 60.0, sharing=Sharing(state.digest, "key", lambda: True))
        return asyncio.create_task(self.sessions.answer(query))

    async def settled(self) -> None:
        for _ in range(30):
            await asyncio.sleep(0)

    @property
    def connections(self) -> int:
        (backend,) = self.backends.configured
        return backend.connections


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_session_is_opened_as_the_clients_was_and_brought_into_its_state(stage: Stage) -> None:
    assert await stage.prepare()
    *_, login = stage.server.logins
    assert (login.user, login.credentials, login.configuration) == ("Ann", b"\0ann\0secret", OPENED.configuration)
    assert [sql for _, sql in stage.server.asked] == ["USE other", "SET a=1"]
    assert (stage.server.open, stage.connections) == (1, 1)
    assert await stage.asking("DESCRIBE t") == rows("DESCRIBE t")
    assert await stage.prepare()
    assert stage.server.open == 1


async def test_nothing_is_set_on_a_server_with_one_session_for_all(stage: Stage) -> None:
    stage.server.one_for_all = "true"
    assert not await stage.prepare()
    assert stage.server.asked == []
    assert [login.configuration for login in stage.server.logins] == [{}]
    assert (stage.server.open, stage.connections) == (0, 0)


async def test_a_state_that_cannot_be_reached_is_not_tried_again_for_a_while(stage: Stage) -> None:
    stage.server.failing = {"SET a=1"}
    assert not await stage.prepare()
    assert not stage.sessions.is_lacking(STATE)
    assert (await stage.prepare(OTHER), stage.server.open) == (True, 1)
    stage.server.failing.clear()
    stage.now += REFUSED_S
    assert await stage.prepare()


async def test_a_statement_waits_a_short_while_for_a_session_that_is_being_opened(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_sessions, "OPENING_S", 0.01)
    stage.server.opens.clear()
    assert not await stage.prepare()
    assert not await stage.prepare(), "it is being opened once"
    answer = await stage.asking("DESCRIBE t")
    assert isinstance(answer, QueryFailed)
    stage.server.opens.set()
    await stage.settled()
    assert await stage.prepare()
    assert stage.server.open == 1


async def test_several_questions_are_asked_at_once_and_one_session_stays(stage: Stage) -> None:
    assert await stage.prepare()
    stage.server.goes_on.clear()
    asking = [stage.asking(f"DESCRIBE t{number}") for number in range(AT_ONCE_MAX + 2)]
    again = stage.asking("DESCRIBE t0")
    await stage.settled()
    assert len([sql for _, sql in stage.server.asked if sql.startswith("DESCRIBE")]) == 1, (
        "the rest is being opened"
    )
    assert stage.server.open == AT_ONCE_MAX
    stage.server.goes_on.set()
    assert await asyncio.gather(*asking) == [rows(f"DESCRIBE t{number}") for number in range(AT_ONCE_MAX + 2)]
    assert isinstance(await again, Rows)
    await stage.settled()
    assert [sql for _, sql in stage.server.asked].count("DESCRIBE t0") == 1
    assert (stage.server.open, stage.connections) == (1, 1)


async def test_a_question_whose_client_leaves_keeps_the_session_usable(stage: Stage) -> None:
    assert await stage.prepare()
    stage.server.goes_on.clear()
    asking = stage.asking("DESCRIBE t")
    await stage.settled()
    asking.cancel()
    await stage.settled()
    stage.server.goes_on.set()
    await stage.settled()
    assert await stage.asking("DESCRIBE u") == rows("DESCRIBE u")
    assert stage.server.open == 1


async def test_after_a_session_is_lost_sessions_ask_for_themselves_until_there_is_a_new_one(stage: Stage) -> None:
    assert await stage.prepare()
    stage.server.is_lost = True
    answer = await stage.asking("DESCRIBE t")
    assert isinstance(answer, QueryFailed)
    assert answer.kind is FailureKind.BUSY
    assert stage.sessions.state_of(STATE.digest) is None
    await stage.settled()
    assert stage.connections == 0
    stage.server.is_lost = False
    assert await stage.prepare()


async def test_a_client_without_room_gets_the_place_of_a_session_that_nobody_uses() -> None:
    stage = Stage(connections_max=1)
    assert await stage.prepare()
    lease = stage.backends.lease("bob")
    assert lease is not None
    assert stage.sessions.state_of(STATE.digest) is None
    assert stage.backends.lease("eve") is None
    assert not await stage.prepare(OTHER), "the backend is full"
    await stage.settled()
    assert (stage.server.open, stage.connections) == (0, 1)


async def test_of_many_states_those_asked_last_keep_their_sessions() -> None:
    stage = Stage(states_max=1)
    assert await stage.prepare()
    assert await stage.prepare(OTHER)
    assert (stage.sessions.state_of(STATE.digest), stage.sessions.count) == (None, 1)
    stage.server.goes_on.clear()
    asking = stage.asking("DESCRIBE t", OTHER)
    await stage.settled()
    assert not await stage.prepare(STATE), "the other one is in use"
    stage.server.goes_on.set()
    _ = await asking


async def test_a_session_ends_once_nobody_has_asked_for_minutes(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_sessions, "LOOK_S", 0.0)
    assert await stage.prepare()
    await stage.settled()
    assert stage.sessions.count == 1
    stage.now += IDLE_S + 1
    await eventually(lambda: not stage.sessions.count)
    await stage.settled()
    assert (stage.server.open, stage.connections) == (0, 0)


async def test_a_drained_backend_keeps_no_session(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_sessions, "LOOK_S", 0.0)
    assert await stage.prepare()
    assert stage.backends.drain("spark:1", on=True)
    await eventually(lambda: not stage.sessions.count)


async def test_all_sessions_end_with_the_proxy(stage: Stage) -> None:
    assert await stage.prepare()
    stage.server.goes_on.clear()
    asking = stage.asking("DESCRIBE t")
    await stage.settled()
    await stage.sessions.close()
    assert (stage.server.open, stage.connections) == (0, 0)
    assert not await stage.prepare(OTHER)
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_question_waits_for_a_session_no_longer_than_it_may(stage: Stage) -> None:
    assert await stage.prepare()
    stage.server.goes_on.clear()
    first = stage.asking("DESCRIBE t")
    await stage.settled()
    stage.server.opens.clear()
    query = Query("DESCRIBE u", 1, 1_000, 0.01, sharing=Sharing(STATE.digest, "key", lambda: True))
    answer = await stage.sessions.answer(query)
    assert isinstance(answer, QueryFailed)
    assert answer.kind is FailureKind.BUSY
    stage.server.opens.set()
    stage.server.goes_on.set()
    assert await first == rows("DESCRIBE t")
    assert stage.sessions.count == 1, "the session that there is goes on"


async def test_a_session_that_the_backend_has_forgotten_is_opened_anew(stage: Stage) -> None:
    assert await stage.prepare()
    stage.server.forgotten = "Invalid SessionHandle: SessionHandle [6a..]"
    answer = await stage.asking("DESCRIBE t")
    assert isinstance(answer, QueryFailed)
    assert stage.sessions.state_of(STATE.digest) is None
    stage.server.forgotten = ""
    assert await stage.prepare()
    assert stage.server.asked_whether_one_for_all == 2, "it may be another server"


@pytest.mark.parametrize(("later_s", "questions"), [(1.0, 1), (AGE_MAX_S, 1), (1.0, AT_ONCE_MAX + 1)])
async def test_where_the_backend_has_closed_a_session_nothing_is_set_before_it_is_asked_again(
    stage: Stage, later_s: float, questions: int
) -> None:
    assert await stage.prepare()
    stage.now += later_s
    stage.server.restart("true")
    answers = await asyncio.gather(*(stage.asking(f"DESCRIBE t{number}") for number in range(questions)))
    assert all(isinstance(answer, QueryFailed) for answer in answers)
    assert not await stage.prepare()
    assert [sql for _, sql in stage.server.asked] == ["USE other", "SET a=1"], "only those of before"


async def test_a_session_that_was_closed_while_it_was_idle_costs_no_answer(stage: Stage) -> None:
    assert await stage.prepare()
    stage.server.restart("false")
    assert await stage.asking("DESCRIBE t") == rows("DESCRIBE t")
    assert (stage.sessions.count, stage.server.asked_whether_one_for_all) == (1, 2)


async def test_one_users_states_take_no_session_of_another_user(stage: Stage) -> None:
    stage = Stage(states_max=own_sessions.OF_USER_MAX + 1)
    of_bob = KnownState(b"bob", replace(OPENED, login="bob", who="bob"))
    assert await stage.prepare(of_bob)
    for number in range(own_sessions.OF_USER_MAX + 3):
        assert await stage.prepare(KnownState(b"%d" % number, OPENED))
    assert stage.sessions.state_of(b"bob") is of_bob
    assert stage.sessions.count == own_sessions.OF_USER_MAX + 1


async def test_after_a_change_of_columns_the_next_question_has_a_new_session(stage: Stage) -> None:
    assert await stage.prepare()
    stage.now += 1
    stage.sessions.renew(STATE.digest)
    stage.now += 1
    _ = await stage.asking("DESCRIBE t")
    _ = await stage.asking("DESCRIBE t")
    assert stage.server.sessions_of("DESCRIBE t") == [2, 2]
    stage.now += AGE_MAX_S
    _ = await stage.asking("DESCRIBE t")
    assert stage.server.sessions_of("DESCRIBE t") == [2, 2, 3]
    await stage.settled()
    assert (stage.server.open, stage.connections) == (1, 1)


async def test_no_session_is_opened_at_a_drained_backend(stage: Stage) -> None:
    assert stage.backends.drain("spark:1", on=True)
    assert not await stage.prepare()
    assert (stage.server.open, stage.connections) == (0, 0)


async def test_whatever_fails_is_not_tried_again_at_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.server.breaks = True
    assert not await stage.prepare()
    assert not stage.sessions.is_lacking(STATE)
    assert "secret" not in caplog.text
