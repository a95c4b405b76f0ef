import asyncio
import threading
from dataclasses import replace

import pytest
from support.relay_dialogue import ACCEPTED, LOGIN, execute
from support.scripted_session import PATIENCE_S, Rewriter, stage

from proxy.frontend.rewrite_service import QUICK_CHARS_MAX, dispatch_now
from proxy.frontend.session_registry import OpenSession
from proxy.operations.dispatch import Dispatch
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.operations.query import Query
from proxy.operations.session_port import KnownState
from proxy.statements.statement_class import StatementClass

JOIN = "SELECT f.id FROM f JOIN d ON f.ds = d.ds"


class Watched(Rewriter):
    """Notes which thread rules on what."""

    def __init__(self) -> None:
        super().__init__()
        self.decided: list[tuple[str, str]] = []

    async def rewrite(self, statement: StatementClass, _keys: KeyTerms = ASK_FIRST) -> Dispatch:
        self.decided.append((statement.text, threading.current_thread().name.partition("_")[0]))
        return await super().rewrite(statement)


@pytest.mark.parametrize(
    ("statement", "thread"),
    [
        ("select 1", "MainThread"),
        ("-- a comment\nSHOW TABLES", "MainThread"),
        (JOIN, "rewrite"),
        (f"select '{'x' * QUICK_CHARS_MAX}'", "rewrite"),
        ("INSERT INTO t SELECT 1", "rewrite"),
        ("SET spark.sql.ansi.enabled=true", "rewrite"),
        ("EXPLAIN REWRITE SELECT 1", "rewrite"),
    ],
)
async def test_only_a_short_statement_that_reads_and_joins_nothing_is_decided_by_the_event_loop(
    statement: str, thread: str
) -> None:
    rewriter = Watched()
    async with stage(rewriter) as on:
        client, backend = await on.open_session()
        client.send(execute(statement, 2))
        await backend.expect(execute(statement, 2))
    assert rewriter.decided == [(statement, thread)]


async def test_work_beside_a_statement_that_the_event_loop_has_decided_is_begun() -> None:
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()

    class Learning(Rewriter):
        async def rewrite(self, statement: StatementClass, keys: KeyTerms = ASK_FIRST) -> Dispatch:
            return replace(await super().rewrite(statement, keys), beside=work)

    async with stage(Learning()) as on:
        client, backend = await on.open_session()
        client.send(execute("select 1", 2))
        await backend.expect(execute("select 1", 2))
        other = await on.backend()
        await other.expect(LOGIN)
        other.send(ACCEPTED)
        async with asyncio.timeout(PATIENCE_S):
            await begun.wait()


def test_a_long_statement_is_not_looked_at_by_the_event_loop() -> None:
    text = f"{'/* a comment */' * QUICK_CHARS_MAX} select 1"
    statement = StatementClass(text)
    assert dispatch_now(OpenSession(Rewriter()), statement, "connection 1") is None
    # Each fact that was worked out is kept beside the text.
    assert vars(statement) == {"text": text}


async def test_a_quick_statement_waits_for_one_of_its_session_that_is_being_decided() -> None:
    session = OpenSession(Rewriter())
    assert dispatch_now(session, StatementClass("select 1"), "connection 1") is not None
    async with session.turn:
        assert dispatch_now(session, StatementClass("select 1"), "connection 2") is None


def test_a_quick_statement_that_asks_something_all_the_same_is_left_to_a_thread() -> None:
    query = Query("SELECT 1 AS one", rows_max=10, bytes_max=10_000, deadline_s=60.0)
    rewriter = Rewriter("select 2", (query,))
    assert dispatch_now(OpenSession(rewriter), StatementClass("select 1"), "connection 1") is None
    assert rewriter.results == []


def test_a_quick_statement_goes_on_as_the_original_where_its_decision_fails() -> None:
    dispatch = dispatch_now(OpenSession(Rewriter(fails=True)), StatementClass("select 1"), "connection 1")
    assert dispatch is not None
    assert dispatch.text == "select 1"


def test_a_short_statement_that_its_session_has_to_look_into_is_left_to_a_thread() -> None:
    class Indexed(Rewriter):
        def known_state(self) -> KnownState | None:
            return None

        def is_quick(self, statement: StatementClass) -> bool:
            return "WHERE" not in statement.text

    assert (
        dispatch_now(OpenSession(Indexed()), StatementClass("SELECT v FROM t WHERE x = 5"), "connection 1") is None
    )
    assert dispatch_now(OpenSession(Indexed()), StatementClass("SELECT v FROM t"), "connection 1") is not None
