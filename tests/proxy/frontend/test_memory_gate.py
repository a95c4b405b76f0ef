"""The memory gate: who is not read, who is read to the end of a call, and who is refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from support.certificates import issued, trusting
from support.played_calls import passes, reaches
from support.relay_dialogue import LOGIN, execute, executed, fetch, get_status, reply, status_is
from support.scripted_session import HOST, PATIENCE_S, Peer, Stage, eventually, stage

from proxy.config.address import Address
from proxy.config.endpoints import Listener
from proxy.config.memory_shares import AMPLE, COPIES
from proxy.frontend import memory_gate
from proxy.frontend.memory_gate import SENTENCE, MemoryGate, NoRoomError
from proxy.wire.hs2.calls import OperationState
from proxy.wire.sasl import refusal
from proxy.wire.thrift.writer import Writer

KB = 1024
LONG = "SELECT 1 /* " + 100 * KB * "x" + " */"


class Holder:
    """A connection that holds what the test says."""

    def __init__(self, held: int = 0, unfinished: int = 0) -> None:
        self.held_bytes = held
        self.unfinished_bytes = unfinished
        self._is_paused = False
        self.told: list[str] = []

    def pause_for_memory(self, *, on: bool) -> None:
        self._is_paused = on

    def paused(self) -> bool:
        return self._is_paused

    def close_with_error(self, sentence: str) -> None:
        self.told.append(sentence)
        self.held_bytes = self.unfinished_bytes = 0


@asynccontextmanager
async def gate_of(*holders: Holder, bytes_max: int = 100) -> AsyncIterator[MemoryGate]:
    gate = MemoryGate(bytes_max, lambda: holders)
    try:
        yield gate
    finally:
        gate.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_gate, "STALLED_S", 0.3)
    monkeypatch.setattr(memory_gate, "TURN_S", 0.1)
    monkeypatch.setattr(memory_gate, "REFUSING_AFTER_S", 0.1)
    monkeypatch.setattr(memory_gate, "ROOM_WITHIN_S", 0.3)


async def test_nobody_is_looked_at_before_as_much_has_come_as_there_is_room_for() -> None:
    holder = Holder(held=1_000)
    async with gate_of(holder) as gate:
        gate.bytes_came(100)
        assert not holder.paused()
        gate.bytes_came(1)
        assert holder.paused()
        assert gate.paused == 1
        assert gate.held_bytes == 1_000


async def test_all_are_read_again_once_there_is_room() -> None:
    idle, busy = Holder(), Holder(held=101)
    async with gate_of(idle, busy) as gate:
        gate.bytes_came(101)
        assert idle.paused()
        busy.held_bytes = 50
        await eventually(lambda: not gate.is_paused)
        assert not idle.paused()
        assert not busy.paused()
        gate.bytes_came(50)
        assert not gate.is_paused
        busy.held_bytes = 101
        gate.bytes_came(1)
        assert gate.paused == 2


async def test_of_unfinished_calls_the_one_that_has_most_is_read_to_its_end_and_then_the_next() -> None:
    small, large, idle = Holder(30, 30), Holder(80, 80), Holder()
    async with gate_of(small, large, idle) as gate:
        gate.bytes_came(101)
        await eventually(lambda: not (large.paused() and small.paused()))
        assert small.paused()
        # Its call is whole, and is held.
        large.unfinished_bytes, large.held_bytes = 0, 90
        await eventually(lambda: not small.paused())
        assert large.paused()
        assert idle.paused()


@pytest.mark.usefixtures("impatient")
async def test_an_upload_that_stands_still_is_ended_and_what_is_being_decided_never() -> None:
    small, large, decided = Holder(30, 30), Holder(40, 40), Holder(80)
    async with gate_of(small, large, decided) as gate:
        gate.bytes_came(101)
        await eventually(lambda: not gate.is_paused)
        assert large.told == small.told == [SENTENCE]
        assert decided.told == []
        assert gate.refused == 2


@pytest.mark.usefixtures("impatient")
async def test_statements_that_are_being_decided_are_waited_for_without_an_end() -> None:
    decided = Holder(101)
    async with gate_of(decided) as gate:
        gate.bytes_came(101)
        await asyncio.sleep(1.0)
        assert gate.is_paused
        assert decided.told == []


@pytest.mark.usefixtures("impatient")
async def test_an_upload_that_grows_is_never_ended() -> None:
    growing = Holder(101, 101)
    async with gate_of(growing) as gate:
        gate.bytes_came(101)
        for _ in range(20):
            await asyncio.sleep(0.05)
            growing.held_bytes += 1
        assert growing.told == []
        await eventually(lambda: bool(growing.told))


async def test_an_upload_that_brings_nothing_gives_way_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_gate, "TURN_S", 0.1)
    small, large = Holder(30, 30), Holder(80, 80)
    async with gate_of(small, large) as gate:
        gate.bytes_came(101)
        for reading, waiting in ((large, small), (small, large), (large, small)):
            await eventually(lambda reading=reading: not reading.paused())  # type: ignore[misc]
            assert waiting.paused()
        assert large.told == small.told == []


class Broken(Holder):
    """A connection that fails at whatever it is asked."""

    @property
    def unfinished_bytes(self) -> int:
        raise RuntimeError("broken")

    @unfinished_bytes.setter
    def unfinished_bytes(self, _count: int) -> None:
        pass

    def pause_for_memory(self, *, on: bool) -> None:
        raise RuntimeError(f"broken, and not paused: {on}")


async def test_a_connection_that_fails_keeps_nobody_from_being_read_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    idle, busy = Holder(), Holder(held=101)
    async with gate_of(Broken(), busy, idle) as gate:
        gate.bytes_came(101)
        assert idle.paused()
        await asyncio.sleep(0.1)
        busy.held_bytes = 0
        await eventually(lambda: not gate.is_paused)
        assert not idle.paused()
        assert not busy.paused()
    assert len([record for record in caplog.records if record.exc_info]) == 1


@pytest.mark.usefixtures("impatient")
async def test_new_connections_are_refused_once_the_others_have_waited_for_a_while() -> None:
    holder = Holder(held=101)
    async with gate_of(holder) as gate:
        assert not gate.is_full()
        gate.bytes_came(101)
        assert not gate.is_full()
        await eventually(gate.is_full)
        holder.held_bytes = 0
        await eventually(lambda: not gate.is_full())


@pytest.mark.usefixtures("impatient")
async def test_a_call_over_http_has_its_room_waits_for_it_or_is_refused() -> None:
    room = 20 * KB
    async with gate_of(bytes_max=COPIES * room) as gate:
        async with gate.room_for(room):
            # Short ones have room in any case.
            async with gate.room_for(100):
                pass
            with pytest.raises(NoRoomError, match="memory_bytes_max"):
                async with gate.room_for(room):
                    pytest.fail("there is no room")
            assert gate.refused == 1
            waiting = asyncio.create_task(take(gate, room))
            await asyncio.sleep(0.05)
            assert not waiting.done()
        assert await waiting


async def test_room_is_given_back_when_the_call_is_sent_and_counts_its_real_length() -> None:
    async with gate_of(bytes_max=COPIES * 100 * KB) as gate:
        async with gate.room_for(100 * KB) as room:
            assert gate.reserved_bytes == COPIES * 100 * KB
            room.resize(50 * KB)
            assert gate.reserved_bytes == COPIES * 50 * KB
            room.resize(100)
            assert gate.reserved_bytes == 0
        async with gate.room_for(100 * KB) as room:
            room.release()
            room.release()
            assert await take(gate, 100 * KB)
        assert gate.reserved_bytes == 0


async def test_a_call_that_does_not_tell_its_length_counts_as_a_long_one() -> None:
    holder = Holder()
    async with gate_of(holder, bytes_max=1024 * KB) as gate, gate.room_for(None):
        gate.bytes_came(1024 * KB + 1)
        assert not gate.is_paused
        holder.held_bytes = 1
        gate.bytes_came(1024 * KB)
        assert gate.is_paused


async def anyone(*tasks: "asyncio.Task[bytes]") -> bytes:
    done, others = await asyncio.wait(tasks, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    return done.pop().result()


async def take(gate: MemoryGate, count: int) -> bool:
    async with gate.room_for(count):
        return True


# --- with sockets

# Room for two long statements, and the longest call that is accepted is longer than they are.
SMALL = replace(AMPLE, statement_bytes=2 * COPIES * len(LONG))


async def answered(client: Peer, backend: Peer) -> None:
    """The client's statement comes to the backend, and the client gets its answer."""
    await backend.expect(execute(LONG))
    backend.send(executed())
    await client.expect(executed())


async def sessions(on: Stage, count: int) -> list[tuple[Peer, Peer]]:
    return [await on.open_session() for _ in range(count)]


async def test_many_long_statements_at_once_are_all_served() -> None:
    async with stage(memory=SMALL) as on:
        pairs = await sessions(on, 12)
        for client, _ in pairs:
            client.send(execute(LONG))
        await asyncio.gather(*(answered(client, backend) for client, backend in pairs))
        assert on.proxy.memory.paused > 0
        assert on.proxy.memory.refused == 0
        await eventually(lambda: not on.proxy.memory.is_paused)
        for client, backend in pairs:
            await passes(client, backend, get_status(2), status_is(OperationState.FINISHED, 2))


@pytest.mark.usefixtures("impatient")
async def test_a_client_that_does_not_go_on_with_its_call_is_refused_for_those_that_do() -> None:
    async with stage(memory=SMALL) as on:
        first, second, third, *pairs = await sessions(on, 7)
        idle = [client for client, _ in (first, second, third)]
        for client in idle:
            client.send(execute(LONG, 7)[:-1])
        for client, _ in pairs:
            client.send(execute(LONG)[:-2])
        await eventually(lambda: on.proxy.memory.is_paused)
        for client, _ in pairs:
            client.send(execute(LONG)[-2:])
        await asyncio.gather(*(answered(client, backend) for client, backend in pairs))
        # There is no room for all that stand still.
        told = await anyone(*(asyncio.create_task(client.rest()) for client in idle))
        assert SENTENCE.encode() in told
        assert b"08S01" in told
        await eventually(lambda: not on.proxy.memory.is_paused)
        assert 1 <= on.proxy.memory.refused <= len(idle)


@pytest.mark.usefixtures("impatient")
async def test_downloads_that_nobody_reads_count_for_nothing() -> None:
    async with stage(memory=SMALL, write_buffer_bytes_max=SMALL.statement_bytes) as on:
        rows = b"x" * (20 * SMALL.statement_bytes)
        (client, backend), (other, _) = await sessions(on, 2)
        await reaches(client, backend, fetch(2))
        backend.send(reply("FetchResults", 2, Writer().binary(9, rows)))
        await asyncio.sleep(0.2)
        for connection in on.proxy._connections:  # noqa: SLF001 - what they hold is what this is about
            assert connection.held_bytes == 0
        # As much as makes the gate look.
        on.proxy.memory.bytes_came(SMALL.statement_bytes + 1)
        await asyncio.sleep(0.5)
        assert on.proxy.memory.paused == on.proxy.memory.refused == 0
        await client.expect(reply("FetchResults", 2, Writer().binary(9, rows)))
        other.close()


async def test_who_connects_over_tls_while_reading_is_paused_is_paused_too(tmp_path: Path) -> None:
    authority = trustme.CA()
    listeners = (Listener(Address(HOST, 0)), Listener(Address(HOST, 0), tls=issued(authority, tmp_path)))
    async with stage(memory=SMALL, listeners=listeners) as on:
        reader, writer = await asyncio.open_connection(HOST, on.proxy.ports[1])
        await eventually(lambda: on.proxy.connection_count == 1)
        (late,) = on.proxy._connections  # noqa: SLF001 - that it is not read is what this is about
        for client, _ in await sessions(on, 4):
            client.send(execute(LONG)[:-1])
        await eventually(lambda: on.proxy.memory.is_paused)
        await asyncio.sleep(0.1)
        await writer.start_tls(trusting(authority), server_hostname=HOST)
        await eventually(lambda: late._client is not None)  # noqa: SLF001
        transport = late._client  # noqa: SLF001
        assert transport is not None
        assert not transport.is_reading()
        await Peer(reader, writer).closed()


@pytest.mark.usefixtures("impatient")
async def test_who_connects_meanwhile_is_told_to_try_again() -> None:
    async with stage(memory=SMALL) as on:
        pairs = await sessions(on, 4)
        for client, _ in pairs:
            client.send(execute(LONG)[:-1])
        await eventually(on.proxy.memory.is_full)
        late = await on.connect()
        assert await late.rest() == refusal(SENTENCE)
        await eventually(lambda: not on.proxy.memory.is_paused)
        await on.open_session()


async def test_who_connects_as_reading_has_just_been_paused_is_served_as_the_others_are() -> None:
    async with stage(memory=SMALL) as on:
        pairs = await sessions(on, 4)
        for client, _ in pairs:
            client.send(execute(LONG)[:-1])
        await eventually(lambda: on.proxy.memory.is_paused)
        late = await on.connect()
        late.send(LOGIN)
        for client, _ in pairs:
            client.send(execute(LONG)[-1:])
        await asyncio.gather(*(answered(client, backend) for client, backend in pairs))
        async with asyncio.timeout(PATIENCE_S):
            await (await on.backend()).expect(LOGIN)


@pytest.mark.parametrize("sent", [-1, 100, 40])
async def test_a_call_that_is_too_long_is_refused_with_a_sentence(sent: int) -> None:
    call = execute(LONG, 7)
    async with stage(request_bytes_max=10 * KB) as on:
        client, backend = await on.open_session()
        client.send(call[:sent])
        told = await client.rest()
        assert b"at most 10240 are accepted (proxy.request_bytes_max" in told
        assert b"08S01" in told
        assert await backend.rest() == b""
        await on.all_gone()


async def test_a_long_statement_leaves_nothing_of_itself_behind() -> None:
    async with stage(memory=SMALL) as on:
        client, backend = await on.open_session()
        client.send(execute(LONG))
        await answered(client, backend)
        (connection,) = on.proxy._connections  # noqa: SLF001 - what it holds is what this is about
        await eventually(lambda: connection.held_bytes == 0)
