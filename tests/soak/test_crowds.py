"""Many clients at once, idle, slow or ill-behaved: they cost the proxy little, and nothing stays behind."""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Iterator

import pytest
from async_client import AsyncClient
from soak_stage import Stage, at_once, soak_stage, until
from support.profile import only_deep

from proxy.wire.hs2 import calls as hs2_calls
from proxy.wire.sasl import plain_start
from proxy.wire.thrift.frames import frame

pytestmark = only_deep("a thousand clients")

SESSIONS = 1_000
# Two sockets in uvloop, a relay, and a session with what it knows: 11 KB on CPython 3.11.
SESSION_BYTES_MAX = 32 * 1024

SLOW_READERS = 40
BATCHES_ASKED = 64
# What may wait to be written (proxy.write_buffer_bytes_max), one read more, and copies of both on their way.
SLOW_READER_BYTES_MAX = 1024 * 1024

LEAVING = 5
# Its socket and the backend's.
FILES_OF_A_CLIENT = 2

SLOW_WRITERS = 300
# Longer than a busy machine stands still: a crowd has to log in within that too.
HANDSHAKE_S = 10.0
ANNOUNCED_BYTES = 50 * 1024 * 1024


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    directory = tmp_path_factory.mktemp("crowds")
    with soak_stage(directory, f"proxy.handshake_timeout_s={HANDSHAKE_S}") as stage:
        yield stage


async def test_a_thousand_sessions_are_served_and_take_little_memory_each(stage: Stage) -> None:
    before = await stage.at_rest()
    clients = await AsyncClient.crowd(stage.endpoint, SESSIONS)
    await at_once(AsyncClient.get_info, clients)
    held = stage.footprint
    assert held.files - before.files == FILES_OF_A_CLIENT * SESSIONS
    assert (held.bytes - before.bytes) / SESSIONS < SESSION_BYTES_MAX
    await at_once(AsyncClient.leave, clients)
    await stage.has_only(before.files)


async def test_what_slow_readers_do_not_take_stays_with_the_backend(stage: Stage) -> None:
    before = await stage.at_rest()
    clients = await AsyncClient.crowd(stage.endpoint, SLOW_READERS)
    for client in clients:
        operation = await client.execute(f"SELECT {BATCHES_ASKED}")
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]  # noqa: SLF001 - streams read ahead
        for _ in range(BATCHES_ASKED):
            client.send(hs2_calls.encode_fetch(1, operation, 10_000))
    sizes: list[int] = []

    def stalled() -> bool:
        sizes.append(stage.footprint.bytes)
        return len(sizes) > 40 and len(set(sizes[-20:])) == 1

    await until(stalled, "the proxy's memory does not come to rest")
    assert (max(sizes) - before.bytes) / SLOW_READERS < SLOW_READER_BYTES_MAX
    await at_once(AsyncClient.vanish, clients)
    await stage.has_only(before.files)
    await stage.serves()


async def test_what_is_announced_and_does_not_come_takes_no_memory(stage: Stage) -> None:
    before = await stage.at_rest()
    clients = await AsyncClient.crowd(stage.endpoint, SLOW_WRITERS)
    for client in clients:
        client.writer.write(struct.pack(">I", ANNOUNCED_BYTES) + b"\x80\x01")
    await stage.serves()
    assert (stage.footprint.bytes - before.bytes) / SLOW_WRITERS < SESSION_BYTES_MAX
    await at_once(AsyncClient.leave, clients)
    await stage.has_only(before.files)


async def test_clients_that_never_finish_their_login_are_closed(stage: Stage) -> None:
    before = await stage.at_rest()
    streams = [
        await asyncio.open_connection(stage.endpoint.host, stage.endpoint.port) for _ in range(SLOW_WRITERS)
    ]
    login = plain_start("slow", "loris")
    for byte in range(3):
        for _, writer in streams:
            writer.write(login[byte : byte + 1])
        await stage.serves()
    answers = await asyncio.gather(*(rest(reader) for reader, _ in streams))
    assert set(answers) == {b""}
    await stage.has_only(before.files)
    for reader, writer in streams:
        await AsyncClient(reader, writer).leave()


async def rest(reader: asyncio.StreamReader) -> bytes:
    """What still comes, up to the end: a reset for who wrote to a connection that was closed already."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


async def nothing_under_way(_: AsyncClient) -> None:
    """A session, and no call."""


async def half_a_frame(client: AsyncClient) -> None:
    client.writer.write(frame(hs2_calls.encode_open_session(1, "soak", "soak", {}))[:20])


async def a_statement_open(client: AsyncClient) -> None:
    await client.execute("SELECT 1")


async def half_a_result(client: AsyncClient) -> None:
    operation = await client.execute(f"SELECT {BATCHES_ASKED}")
    client.send(hs2_calls.encode_fetch(1, operation, 10_000))
    await client.reader.readexactly(1_000)


async def garbage(client: AsyncClient) -> None:
    client.writer.write(b"\0\0\0\4nope")


async def ends_its_stream(client: AsyncClient) -> None:
    client.writer.write_eof()


@pytest.mark.parametrize("end", [AsyncClient.leave, AsyncClient.vanish, ends_its_stream])
@pytest.mark.parametrize("begin", [nothing_under_way, half_a_frame, a_statement_open, half_a_result, garbage])
async def test_a_client_that_goes_at_any_moment_leaves_nothing_behind(
    stage: Stage, begin: Callable[[AsyncClient], Awaitable[None]], end: Callable[[AsyncClient], Awaitable[None]]
) -> None:
    before = await stage.at_rest()
    bystander = await AsyncClient.with_session(stage.endpoint)
    clients = await AsyncClient.crowd(stage.endpoint, LEAVING)
    await at_once(begin, clients)
    await at_once(end, clients)
    await stage.has_only(before.files + FILES_OF_A_CLIENT)
    await bystander.get_info()
    await at_once(AsyncClient.leave, [bystander, *clients])
    await stage.has_only(before.files)
