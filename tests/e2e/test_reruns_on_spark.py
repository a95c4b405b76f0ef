"""A rewritten statement that fails on the real server: the client sees what it would have seen without us."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from pyhive import exc, hive
from support.beeline_clients import Answer, Forwarder, answer, breakable_session, comparable_message, run_beeline
from support.clock import eventually
from support.scripted_proxy import Script, scripted_proxy
from support.server_statements import StatementPage
from TCLIService.ttypes import TOperationState
from thrift.Thrift import TException

from demo.hive import Endpoint, connect, run
from demo.java import Java
from demo.thrift_server import ThriftServer
from proxy.operations.dispatch import OutcomeKind
from proxy.operations.query import FailureKind, Query, QueryFailed

# What the client writes, and what is sent in its place and fails: as it runs, as it is analysed, planned, parsed.
FAILING = {
    "SELECT 11 AS a FROM range(3)": "SELECT 11 AS a FROM range(3) WHERE id > raise_error('x')",
    "SELECT 12 AS a": "SELECT no_such AS a",
    "SELECT 13 AS a": "SELECT raise_error('x') AS a",
    "SELECT 14 AS a": "SELEC 14 AS a",
}
# The client's own text fails as well, and its positions and names are in the error.
FAILING_TWICE = {
    "SELECT 21 AS a FROM no_such_table": "SELECT 21 AS a FROM another_table",
    "SELECT raise_error('mine') AS a": "SELECT raise_error('ours') AS a",
    "SELECT  no_such_column AS a": "SELECT another AS a",
    "SELEC 24": "SELEC 25",
}

# As long as the statements sleep that nobody waits for.
A_MINUTE_S = 60.0
SLEEP = "reflect('java.lang.Thread', 'sleep', 1000L)"


def a_minute(name: str) -> str:
    return f"SELECT id AS {name}, {SLEEP} FROM range(0, 60, 1, 1)"


@pytest.fixture
def script() -> Script:
    return Script({**FAILING, **FAILING_TWICE})


@pytest.fixture
def scripted(spark: ThriftServer, script: Script) -> Iterator[Endpoint]:
    with scripted_proxy(spark.endpoint, script) as endpoint:
        yield endpoint


@pytest.fixture
def page(spark: ThriftServer) -> StatementPage:
    return StatementPage(spark.ui_url)


def in_background(connection: hive.Connection, sql: str) -> Answer:
    """What a client sees that asks for the statement's end, as hive-jdbc and impyla do."""
    with closing(connection.cursor()) as cursor:
        try:
            cursor.execute(sql, async_=True)
        except exc.OperationalError as error:
            return _error(error.args[0].status)
        while (state := cursor.poll()).operationState in (
            TOperationState.INITIALIZED_STATE,
            TOperationState.PENDING_STATE,
            TOperationState.RUNNING_STATE,
        ):
            pass
        if state.operationState != TOperationState.FINISHED_STATE:
            return ("error", state.operationState, state.sqlState, comparable_message(state.errorMessage))
        try:
            return ("rows", cursor.description, cursor.fetchall())
        except exc.OperationalError as error:
            return _error(error.args[0].status)


def _error(status: object) -> Answer:
    return ("error", status.sqlState, comparable_message(status.errorMessage))  # type: ignore[attr-defined]


Ask = Callable[[hive.Connection, str], Answer]
BOTH_WAYS = pytest.mark.parametrize("ask", [answer, in_background])


@BOTH_WAYS
def test_a_failure_of_the_rewritten_text_is_never_seen(
    scripted: Endpoint, direct: hive.Connection, script: Script, ask: Ask
) -> None:
    with closing(connect(scripted)) as proxied:
        for sql in FAILING:
            assert ask(proxied, sql) == ask(direct, sql)
    ends = [outcome.kind for sql, outcome in script.outcomes if sql in FAILING]
    assert ends == [OutcomeKind.RECOVERED] * len(FAILING)


@BOTH_WAYS
def test_a_statement_that_fails_by_itself_shows_its_own_error(
    scripted: Endpoint, direct: hive.Connection, script: Script, ask: Ask
) -> None:
    with closing(connect(scripted)) as proxied:
        for sql in FAILING_TWICE:
            seen = ask(proxied, sql)
            assert seen[0] == "error"
            assert seen == ask(direct, sql)
    ends = [outcome.kind for sql, outcome in script.outcomes if sql in FAILING_TWICE]
    assert ends == [OutcomeKind.FAILED_TWICE] * len(FAILING_TWICE)


@BOTH_WAYS
def test_a_failure_at_the_first_fetch_is_never_seen(
    scripted: Endpoint, direct: hive.Connection, script: Script, ask: Ask
) -> None:
    sql, mine = "SELECT 11 AS a FROM range(3)", "SELECT raise_error('mine') AS a"
    # Folded while planned, so it fails at once; this one only when its rows are computed.
    script.texts = {sql: FAILING[sql], mine: "SELECT raise_error(concat('ours', id)) AS a FROM range(1)"}
    with closing(connect(scripted)) as proxied:
        for session in (proxied, direct):
            run(session, "SET spark.sql.thriftServer.incrementalCollect=true")
        assert ask(proxied, sql) == ask(direct, sql)
        seen, wanted = ask(proxied, mine), ask(direct, mine)
    assert (seen[0], wanted[0]) == ("error", "error")
    assert [outcome.kind for text, outcome in script.outcomes if text in script.texts] == [
        OutcomeKind.RECOVERED,
        OutcomeKind.FAILED_TWICE,
    ]


def test_beeline_prints_the_same_though_every_rewrite_fails(
    scripted: Endpoint, spark: ThriftServer, script: Script, java: Java, tmp_path: Path
) -> None:
    lines = "".join(f"{sql};\n" for sql in script.texts)
    proxied = run_beeline(java, scripted, lines, tmp_path)
    direct = run_beeline(java, spark.endpoint, lines, tmp_path)
    assert proxied.stdout == direct.stdout
    errors = [comparable_message(done.stderr) for done in (proxied, direct)]
    assert errors[0].replace(str(scripted), "") == errors[1].replace(str(spark.endpoint), "")
    assert "ours" not in proxied.stderr


def test_a_rerun_leaves_no_operation_open_on_the_server(
    scripted: Endpoint, script: Script, page: StatementPage
) -> None:
    mine, ours = "SELECT 31 AS left_open", "SELECT raise_error('x') AS left_open"
    script.texts = {mine: ours}
    with closing(connect(scripted)) as proxied:
        assert in_background(proxied, mine)[0] == "rows"
        assert answer(proxied, mine)[0] == "rows"
        # The session is still open, so nothing else has closed them.
        assert page.become("left_open", ["CLOSED"] * 4)


def test_a_cancel_reaches_the_statement_that_runs_in_the_failed_ones_place(
    scripted: Endpoint, script: Script, page: StatementPage
) -> None:
    mine = a_minute("to_cancel")
    script.texts = {mine: "SELECT no_such AS to_cancel"}
    with closing(connect(scripted)) as proxied, closing(proxied.cursor()) as cursor:
        cursor.execute(mine, async_=True)
        # A busy server says for a while that it is pending.
        eventually(lambda: cursor.poll().operationState == TOperationState.RUNNING_STATE)
        assert page.runs("to_cancel"), page.states("to_cancel")
        cursor.cancel()
        assert cursor.poll().operationState == TOperationState.CANCELED_STATE
        cursor.close()
        assert page.become("to_cancel", ["CLOSED", "CLOSED"])
    assert [outcome.kind for sql, outcome in script.outcomes if sql == mine] == [OutcomeKind.UNKNOWN]


def test_a_query_of_ours_is_ended_when_the_client_goes_though_its_session_lives_on(
    scripted: Endpoint, script: Script, page: StatementPage
) -> None:
    script.texts = {"SELECT 41": "SELECT 41"}
    script.queries = (Query(a_minute("ours_to_end"), 100, 10_000, deadline_s=120.0),)
    forwarder = Forwarder(scripted)
    threading.Thread(target=forwarder.serve, daemon=True).start()
    with closing(connect(scripted)) as keeper, breakable_session(forwarder.endpoint) as leaver:
        leaver._sessionHandle = keeper._sessionHandle  # noqa: SLF001

        def ask() -> None:
            with suppress(TException, OSError):
                run(leaver, "SELECT 41")

        client = threading.Thread(target=ask)
        client.start()
        assert page.runs("ours_to_end"), page.states("ours_to_end")
        forwarder.cut()
        client.join(A_MINUTE_S)
        assert page.become("ours_to_end", ["CLOSED"])
        assert run(keeper, "SELECT 42") == [(42,)]
    assert script.results == []


def test_a_query_of_ours_past_its_deadline_ends_on_the_server_too(
    scripted: Endpoint, script: Script, page: StatementPage
) -> None:
    script.texts = {"SELECT 43": "SELECT 43"}
    # By then its job has begun, but for a busy machine.
    script.queries = (Query(a_minute("too_slow"), 100, 10_000, deadline_s=3.0),)
    with closing(connect(scripted)) as proxied:
        started = time.monotonic()
        assert run(proxied, "SELECT 43") == [(43,)]
        assert time.monotonic() - started < A_MINUTE_S
        assert page.become("too_slow", ["CLOSED"])
        assert page.becomes_idle()
    (result,) = script.results
    assert isinstance(result, QueryFailed)
    assert result.kind is FailureKind.DEADLINE
