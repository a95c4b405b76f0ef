"""Stopping: SIGTERM waits for sessions, SIGINT for statements, a second signal for none; the rest get an error."""

import asyncio
import signal

import pytest
from support.relay_dialogue import close_session, execute, fetch, get_status, reply, status_is
from support.scripted_session import PATIENCE_S, Rewriter, stage
from support.stop_requests import requested

from proxy.operations.query import Query
from proxy.stopping import StopRequests
from proxy.wire.hs2.calls import OperationState, encode_failure
from proxy.wire.thrift.frames import frame

STOPPING = "Starpruner is stopping; connect again, and run the statement again"


def failed(name: str, seqid: int) -> bytes:
    return frame(encode_failure(name, seqid, STOPPING, "08S01"))


# --- signals


def test_a_second_signal_counts_unless_it_is_the_first_one_passed_on() -> None:
    now = 10.0
    stop = StopRequests(lambda: now)
    stop.request(signal.SIGTERM)
    now = 10.9
    stop.request(signal.SIGINT)
    assert (stop.stopping.is_set(), stop.at_once.is_set(), stop.waits_for_sessions) == (True, False, True)
    now = 11.0
    stop.request(signal.SIGTERM)
    assert stop.at_once.is_set()


def test_ctrl_c_waits_for_statements_alone() -> None:
    assert not requested(signal.SIGINT).waits_for_sessions


# --- draining


async def test_draining_waits_for_the_statement_in_flight_and_refuses_new_clients() -> None:
    async with stage() as on:
        client, backend = await on.open_session()
        client.send(fetch(2))
        await backend.expect(fetch(2))
        port = on.proxy.port
        draining = asyncio.create_task(on.proxy.drain(2 * PATIENCE_S, requested(signal.SIGINT)))
        await asyncio.sleep(0.2)
        assert not draining.done()
        with pytest.raises(OSError, match="Connect call failed"):
            await asyncio.open_connection("127.0.0.1", port)
        backend.send(reply("FetchResults", 2))
        await asyncio.wait_for(draining, PATIENCE_S)
        await client.expect(reply("FetchResults", 2))
        client.close()


async def test_a_session_goes_on_after_sigterm_until_its_client_closes_it() -> None:
    async with stage() as on:
        client, backend = await on.open_session()
        draining = asyncio.create_task(on.proxy.drain(2 * PATIENCE_S, requested()))
        await asyncio.sleep(0.2)
        client.send(get_status(2))
        await backend.expect(get_status(2))
        backend.send(status_is(OperationState.FINISHED, 2))
        await client.expect(status_is(OperationState.FINISHED, 2))
        assert not draining.done()
        client.send(close_session(3))
        await backend.expect(close_session(3))
        backend.send(reply("CloseSession", 3))
        await asyncio.wait_for(draining, PATIENCE_S)
        client.close()


async def test_the_log_counts_sessions_and_statements_that_are_cut(caplog: pytest.LogCaptureFixture) -> None:
    async with stage() as on:
        _ = await on.open_session()
        client, backend = await on.open_session()
        client.send(fetch(2))
        await backend.expect(fetch(2))
        await asyncio.wait_for(on.proxy.drain(0.1, requested()), PATIENCE_S)
        assert "2 sessions are ended, with 1 statements in flight" in caplog.text


async def test_a_second_signal_ends_the_wait() -> None:
    async with stage() as on:
        client, backend = await on.open_session()
        client.send(fetch(2))
        await backend.expect(fetch(2))
        stop = requested()
        draining = asyncio.create_task(on.proxy.drain(10 * PATIENCE_S, stop))
        await asyncio.sleep(0.1)
        stop.at_once.set()
        await asyncio.wait_for(draining, PATIENCE_S)


# --- calls that are cut


async def test_calls_under_way_are_answered_by_an_error_of_a_lost_connection() -> None:
    async with stage() as on:
        client, backend = await on.open_session()
        client.send(get_status(2) + fetch(3))
        await backend.expect(get_status(2) + fetch(3))
        await on.proxy.close()
        assert await client.rest() == failed("GetOperationStatus", 2) + failed("FetchResults", 3)
        assert await backend.rest() == b""


async def test_a_statement_that_is_still_being_decided_is_answered_too() -> None:
    query = Query("SELECT 1 AS one", rows_max=10, bytes_max=10_000, deadline_s=PATIENCE_S)
    async with stage(Rewriter("SELECT 2", (query,))) as on:
        client, backend = await on.open_session()
        client.send(execute("SELECT 1", 2))
        _ = await backend.read_frame()
        await on.proxy.close()
        assert await client.rest() == failed("ExecuteStatement", 2)


async def test_no_error_is_put_into_the_middle_of_a_reply() -> None:
    async with stage() as on:
        client, backend = await on.open_session()
        client.send(fetch(2) + fetch(3))
        await backend.expect(fetch(2) + fetch(3))
        begun = reply("FetchResults", 2)[:-5]
        backend.send(begun)
        await client.expect(begun)
        await on.proxy.close()
        assert await client.rest() == b""
