"""Changes of a session wait for a rewritten statement of it that writes: that one cannot fall back."""

import asyncio

import pytest
from support.played_calls import passes, reaches
from support.relay_dialogue import (
    AGAIN,
    OPERATION,
    execute,
    executed,
    get_status,
    operation_call,
    reply,
    status_is,
)
from support.scripted_session import Peer, Rewriter, Stage, stage

from proxy.frontend import session_order
from proxy.frontend.session_order import until_writes_end
from proxy.operations.dispatch import WriteUnderWay
from proxy.operations.internal_call import Call
from proxy.statements.statement_class import StatementClass
from proxy.wire.hs2.calls import OperationHandle, OperationState
from proxy.wire.thrift.writer import Writer

RUNNING = OperationState.RUNNING
FINISHED = OperationState.FINISHED

INSERT, CHANGE = "INSERT INTO t SELECT 1", "USE other"
# Sent in the place of every statement.
SENT = "INSERT INTO t SELECT 2"


def writer() -> Rewriter:
    return Rewriter(SENT, write=WriteUnderWay())


async def writing(on: Stage) -> tuple[Peer, Peer]:
    """A session in which a rewritten statement writes, that the server has taken up."""
    client, backend = await on.open_session()
    await passes(client, backend, execute(INSERT, 2), executed(2), execute(SENT, 2))
    return client, backend


async def test_a_change_of_the_session_waits_until_the_server_says_that_the_write_has_ended() -> None:
    async with stage(writer()) as on:
        client, backend = await writing(on)
        client.send(execute(CHANGE, 3))
        for state in (OperationState.PENDING, RUNNING, FINISHED):
            await backend.expect(get_status(1))
            backend.send(status_is(state, 1))
        await backend.expect(execute(SENT, 3))
        backend.send(executed(3, AGAIN))
        await client.expect(executed(3, AGAIN))


async def test_a_change_on_another_connection_waits_too() -> None:
    async with stage(writer()) as on:
        client, backend = await writing(on)
        other, other_backend = await on.log_in()
        await reaches(other, other_backend, execute(CHANGE, 3), get_status(1))
        # Its own client hears of the end first.
        await passes(client, backend, get_status(3), status_is(FINISHED, 3))
        other_backend.send(status_is(RUNNING, 1))
        await other_backend.expect(execute(SENT, 3))


@pytest.mark.parametrize(
    "answer",
    [
        reply("GetOperationStatus", 1, status=4),
        reply("GetOperationStatus", 1, Writer().i32(2, RUNNING), status=4),
        reply("GetInfo", 1),
    ],
    ids=["refused", "refused with a state", "of another call"],
)
async def test_what_the_server_does_not_know_any_more_has_ended(answer: bytes) -> None:
    async with stage(writer()) as on:
        client, backend = await writing(on)
        await reaches(client, backend, execute(CHANGE, 3), get_status(1))
        backend.send(answer)
        if answer == reply("GetInfo", 1):
            # No reply of ours may reach the client.
            assert await client.rest() == b""
        else:
            await backend.expect(execute(SENT, 3))


async def test_a_statement_that_changes_nothing_does_not_wait() -> None:
    async with stage(writer()) as on:
        client, backend = await writing(on)
        await reaches(client, backend, execute("SELECT 1", 3), execute(SENT, 3))


async def test_a_change_that_would_wait_for_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_order, "WAIT_S", -1.0)
    async with stage(writer()) as on:
        client, backend = await writing(on)
        client.send(execute(CHANGE, 3))
        sent = await backend.read_frame()
        assert b"SELECT raise_error(" in sent
        assert b"INSERT" not in sent
        # The write goes on.
        client.send(operation_call("CancelOperation", 4, OPERATION))


@pytest.mark.parametrize("answer", [None, b"", b"no reply", reply("GetInfo", 1)[4:]], ids=range(4))
async def test_an_answer_that_cannot_be_read_says_nothing_of_the_end(answer: bytes | None) -> None:
    answers = [answer, status_is(RUNNING)[4:], status_is(FINISHED)[4:]]
    asked: list[Call] = []

    async def ask(call: Call) -> bytes | None:
        asked.append(call)
        return answers[len(asked) - 1]

    write = WriteUnderWay(OPERATION)
    assert await until_writes_end(Rewriter(write=write), StatementClass(CHANGE), ask) is None
    assert [call.name for call in asked] == ["GetOperationStatus"] * 3
    assert write.is_over


@pytest.mark.parametrize("operation", [None, OPERATION])
async def test_where_nobody_can_be_asked_the_end_is_awaited_that_the_client_hears_of(
    monkeypatch: pytest.MonkeyPatch, operation: OperationHandle | None
) -> None:
    # Reached only where others are not let in meanwhile.
    monkeypatch.setattr(session_order, "WAIT_S", 5.0)

    async def ask(_: Call) -> bytes | None:
        raise AssertionError("there is no operation yet")

    write = WriteUnderWay(operation)
    waiting = asyncio.create_task(
        until_writes_end(Rewriter(write=write), StatementClass(CHANGE), None if operation is not None else ask)
    )
    await asyncio.sleep(0)
    assert not waiting.done()
    write.is_over = True
    assert await waiting is None
