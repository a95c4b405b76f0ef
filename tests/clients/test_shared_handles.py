"""Hue's way: one connection opens the session or starts the statement, another of its user goes on with it."""

import time
from pathlib import Path

import pytest
from dialogue import POLL_SECONDS, Dialogue, dialogue
from support.metrics_of_proxy import rewritten_count
from support.proxies import patient
from TCLIService.ttypes import TProtocolVersion

from demo.hive import Endpoint
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

pytestmark = pytest.mark.usefixtures("small_star")

# Far more than it takes.
PROMPTLY_S = 60

V10 = TProtocolVersion.HIVE_CLI_SERVICE_PROTOCOL_V10
STAR_JOIN = """SELECT v.* FROM small_star.visits v JOIN small_star.days d ON v.ds = d.ds
WHERE d.weekday = 'Sunday' ORDER BY v.id"""
SLEEP = "SELECT id, reflect('java.lang.Thread', 'sleep', 1000L) FROM range(0, 60, 1, 1)"


def _shares_a_session(one: Dialogue, other: Dialogue) -> None:
    session = one.open_session(V10)
    operation = one.execute(session, STAR_JOIN)
    other.finish(operation)
    one.call("GetResultSetMetadata", operationHandle=operation)
    other.read(operation)
    # What one sets, the other has; and the handle of a statement works in both directions.
    one.read(other.execute(session, "SET spark.sql.session.timeZone=Asia/Tokyo", run_async=False))
    one.read(other.execute(session, f"SELECT count(*), current_timezone() FROM ({STAR_JOIN})", run_async=False))
    other.call("CloseSession", sessionHandle=session)
    one.execute(session, "SELECT 1")


def _cancels_from_the_other_connection(one: Dialogue, other: Dialogue) -> None:
    session = one.open_session(V10)
    sleeping = one.execute(session, SLEEP)
    other.call("CancelOperation", operationHandle=sleeping)
    one.finish(sleeping)
    other.close(sleeping)
    one.call("CloseSession", sessionHandle=session)


def _answers(endpoint: Endpoint) -> list[list[tuple[str, object]]]:
    answers = []
    for sequence in (_shares_a_session, _cancels_from_the_other_connection):
        with dialogue(endpoint) as one, dialogue(endpoint) as other:
            sequence(one, other)
            answers += [one.answers, other.answers]
    return answers


def test_handles_work_from_another_connection_as_they_do_at_the_server(
    spark: ThriftServer, proxy: ProxyProcess
) -> None:
    assert _answers(proxy.endpoint) == _answers(spark.endpoint)


def test_a_session_ends_with_the_connection_that_opened_it(spark: ThriftServer, proxy: ProxyProcess) -> None:
    answers = []
    for endpoint in (proxy.endpoint, spark.endpoint):
        with dialogue(endpoint) as other:
            with dialogue(endpoint) as one:
                session = one.open_session(V10)
                assert other.execute(session, "SELECT 1") is not None
            # The server notices a moment later that its client has gone.
            deadline = time.monotonic() + PROMPTLY_S
            while other.execute(session, "SELECT 1") is not None and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
            answers.append(other.answers[-1])
    assert "Invalid SessionHandle" in repr(answers[0])
    assert answers[0] == answers[1]


def test_a_statement_from_the_other_connection_is_narrowed_too(proxy: ProxyProcess) -> None:
    with dialogue(proxy.endpoint) as one, dialogue(proxy.endpoint) as other:
        session = one.open_session(V10)
        before = rewritten_count(proxy)
        other.read(other.execute(session, STAR_JOIN, run_async=False))
        assert rewritten_count(proxy) == before + 1


def test_another_replica_refuses_a_session_or_passes_it_unchanged(
    spark: ThriftServer, proxy: ProxyProcess, tmp_path: Path
) -> None:
    answers = []
    for unknown in ("refuse", "pass"):
        options = patient(f"proxy.unknown_handles={unknown}")
        with (
            proxy_process(spark.endpoint, tmp_path / unknown, options=options) as other_replica,
            dialogue(proxy.endpoint) as one,
            dialogue(other_replica.endpoint) as other,
        ):
            session = one.open_session(V10)
            operation = other.execute(session, STAR_JOIN, run_async=False)
            if operation is not None:
                other.read(operation)
            answers.append(repr(other.answers))
            assert rewritten_count(other_replica) == 0
    assert "Invalid SessionHandle" in answers[0]
    assert "Invalid SessionHandle" not in answers[1]
