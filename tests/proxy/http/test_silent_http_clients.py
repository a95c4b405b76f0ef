"""Clients over HTTP that send nothing, half a request, or single bytes, and those that work beside them."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme
import uvloop
from support.certificates import issued, trusting
from support.http_stage import Stage, Tls, message, ok, request, stage
from support.relay_dialogue import open_session, session_opened
from support.scripted_session import HOST, PATIENCE_S, Peer, eventually
from support.unhurried_loop import UnhurriedLoop

from proxy.net import newcomers, request_guard

# A client that is let be stays for longer than this.
REQUEST_S = 0.3
CALL, REPLY = message(open_session()), message(session_opened())
LOOPS = [UnhurriedLoop, uvloop.new_event_loop]
# The machine has all addresses of its loopback.
FLOODER = "127.0.0.2"


@pytest.fixture(autouse=True)
def _within_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_guard, "REQUEST_S", REQUEST_S)


@contextmanager
def in_no_hurry() -> Iterator[None]:
    """Gives a client that is served the time of a busy machine: uvloop's clock has no mercy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_guard, "REQUEST_S", PATIENCE_S)
        yield


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    authority = trustme.CA()
    return Tls(trusting(authority), issued(authority, tmp_path))


async def connect(on: Stage, tls: Tls, address: str = HOST) -> Peer:
    on.clients.append(
        Peer(*await asyncio.open_connection(HOST, on.proxy.port, ssl=tls.client, local_addr=(address, 0)))
    )
    return on.clients[-1]


async def served(on: Stage, client: Peer) -> None:
    """The client makes a call and gets its reply."""
    client.send(request(CALL))
    await on.backend.answer(CALL, REPLY)
    head = await client.reader.readuntil(b"\r\n\r\n")
    assert head.split()[1] == b"200"
    await client.expect(REPLY)


async def trickle(client: Peer, data: Iterable[bytes]) -> None:
    """Send a byte at a time, each soon after the other, until the proxy closes."""
    for piece in data:
        if client.reader.at_eof() or client.writer.is_closing():
            return
        client.send(piece)
        await asyncio.sleep(REQUEST_S / 20)
    raise AssertionError("it was let go on")


@pytest.mark.parametrize("loop_of", LOOPS, ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("is_secure", [False, True], ids=["plain", "tls"])
def test_who_sends_no_whole_header_in_time_is_closed_and_a_client_that_works_is_not(
    loop_of: Callable[[], asyncio.AbstractEventLoop], tls: Tls, *, is_secure: bool
) -> None:
    used = tls if is_secure else Tls()

    async def play() -> None:
        async with stage(tls=used) as on:
            with in_no_hurry():
                works = await connect(on, used)
                await served(on, works)
            for sent in (b"", b"POST /cliser", b"POST /cliservice HTTP/1.1\r\nHost: here\r\nConte"):
                client = await connect(on, used)
                client.send(sent)
                assert await client.rest() == b""
            slow = await connect(on, used)
            await trickle(slow, (bytes([byte]) for byte in b"GET / HTTP/1.1\r\nX: " + b"x" * 200))
            await eventually(lambda: on.proxy.connection_count == 1)
            with in_no_hurry():
                await served(on, works)

    with asyncio.Runner(loop_factory=loop_of) as runner:
        runner.run(play())


@pytest.mark.parametrize("refused", [b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", request(b"no Thrift at all")])
async def test_a_request_that_was_refused_earns_its_connection_no_time(refused: bytes) -> None:
    async with stage() as on:
        client = await on.connect()
        client.send(refused)
        assert (await client.rest()).split()[1] in {b"404", b"400"}


async def test_a_client_that_was_served_and_then_begins_half_a_header_is_closed() -> None:
    async with stage() as on:
        client = await on.connect()
        await served(on, client)
        await asyncio.sleep(2 * REQUEST_S)
        assert on.proxy.connection_count == 1
        client.send(b"POST /cliser")
        assert await client.rest() == b""


async def test_a_call_that_takes_long_and_a_reply_that_is_read_slowly_are_nobodys_silence() -> None:
    async with stage() as on:
        client = await on.connect()
        client.send(request(CALL))
        asked = await on.backend.next()
        await asyncio.sleep(2 * REQUEST_S)
        body = bytes(30_000_000)
        asked.answer(ok(body))
        await client.reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(2 * REQUEST_S)
        await client.expect(body)


@pytest.mark.parametrize(
    "sent", [b"", b"POST /cliservice HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\nhalf"]
)
async def test_who_opens_connections_and_is_slow_shuts_nobody_else_out(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(request_guard, "REQUEST_S", 60.0)
    async with stage(connections_max=2) as on:
        works = await on.connect()
        await served(on, works)
        slow = []
        for _ in range(newcomers.CLIENTS_OF_ADDRESS_MAX + 20):
            slow.append(await connect(on, Tls(), FLOODER))
            slow[-1].send(sent)
        ended = slow[:20]
        for client in ended:
            assert await client.rest() == b""
        await eventually(lambda: on.proxy.connection_count == newcomers.CLIENTS_OF_ADDRESS_MAX + 1)
        await served(on, await on.connect())
        await served(on, works)
