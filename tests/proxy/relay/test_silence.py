"""Clients that are silent, half-spoken or do not read, on real sockets."""

import asyncio
import logging
import socket

import pytest
from support.played_calls import reaches
from support.relay_dialogue import (
    ACCEPTED,
    LOGIN,
    execute,
    fetch,
    get_status,
    open_session,
    session_opened,
    status_is,
)
from support.scripted_session import HOST, Peer, Rewriter, Stage, StandInServer, eventually, stage

from proxy.config.serving import ProxySection
from proxy.net import newcomers
from proxy.net.sockets import prepare
from proxy.wire.hs2.calls import OperationState

FINISHED = OperationState.FINISHED
CALLS = 600


async def says_at_once(on: Stage, calls: bytes) -> tuple[Peer, Peer]:
    """A client that logs in and makes these calls in one breath: until they are answered it is never idle."""
    client = await on.connect()
    client.send(LOGIN + calls)
    backend = await on.backend()
    await backend.expect(LOGIN)
    backend.send(ACCEPTED)
    await backend.expect(calls)
    return client, backend


async def test_an_idle_client_is_ended_with_a_reason_and_its_neighbour_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with stage(idle_timeout_s=1.0) as on:
        await says_at_once(on, open_session() + fetch(2))
        client, backend = await says_at_once(on, open_session())
        backend.send(session_opened())
        assert await client.rest() == ACCEPTED + session_opened()
        assert await backend.rest() == b""
        assert on.proxy.connection_count == 1, "one that waits for a reply is not idle"
    assert any("idle for 1 s" in message for message in caplog.messages)


async def test_a_client_that_stops_within_a_request_is_ended() -> None:
    async with stage(request_timeout_s=0.2) as on:
        await on.open_session()
        client, backend = await on.open_session()
        client.send(execute("SELECT 1", 2)[:20])
        assert await client.rest() == b""
        assert await backend.rest() == b""
        assert on.proxy.connection_count == 1, "one that says nothing is not within a request"


async def test_a_request_that_waits_for_a_ruling_is_not_the_clients_silence() -> None:
    async with stage(Rewriter("SELECT 2"), request_timeout_s=0.1) as on:
        client, backend = await on.open_session()
        await reaches(client, backend, execute("SELECT 1", 2) + fetch(3)[:10], execute("SELECT 2", 2))
        await reaches(client, backend, fetch(3)[10:], fetch(3))


async def test_a_client_that_reads_nothing_is_ended_where_that_is_wished() -> None:
    async with stage(unread_timeout_s=0.3, write_buffer_bytes_max=64 * 1024) as on:
        client, backend = await on.open_session()
        await reaches(client, backend, fetch(2))
        backend.send((64 * 1024 * 1024).to_bytes(4) + bytes(32 * 1024 * 1024))
        await on.all_gone()


async def test_what_we_answer_ourselves_does_not_pile_up_before_a_client_that_does_not_read() -> None:
    async with stage(write_buffer_bytes_max=64 * 1024) as on:
        client, backend = await on.open_session()
        await reaches(client, backend, get_status(2))
        # Longer than usual, so that a few hundred answers fill the sockets.
        answer = status_is(FINISHED, 2, "x" * 50_000)
        backend.send(answer)
        await client.expect(answer)
        (connection,) = on.proxy._connections  # noqa: SLF001 - what waits in it shows nowhere else
        assert connection._client is not None  # noqa: SLF001
        for _ in range(CALLS):
            client.send(get_status(3))
            # One by one, as a client sends them that waits for each: so each is answered without the backend.
            await asyncio.sleep(0.001)
        assert connection._client.get_write_buffer_size() < CALLS * len(answer) / 10  # noqa: SLF001


async def test_both_sides_are_asked_whether_they_are_there() -> None:
    settings = ProxySection(keepalive_idle_s=33, keepalive_interval_s=44, keepalive_count=5)
    server = StandInServer(Peer.closed)
    _, writer = await asyncio.open_connection(HOST, server.port)
    prepare(writer.transport, settings)  # type: ignore[arg-type]
    sock = writer.get_extra_info("socket")
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    assert [sock.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [33, 44, 5]
    writer.close()
    server.close()


@pytest.mark.parametrize("sent", [b"", LOGIN[:3]])
async def test_a_login_takes_the_place_of_a_client_that_sends_none_where_there_is_no_other(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(newcomers, "SILENT_S", 0.05)
    async with stage(connections_max=3) as on:
        works, backend = await on.open_session()
        silent = [await on.connect() for _ in range(2)]
        for one in silent:
            one.send(sent)
        await eventually(lambda: on.proxy.connection_count == 3)
        await asyncio.sleep(0.1)
        await on.open_session()
        assert await silent[0].rest() == b""
        await on.open_session()
        assert await silent[1].rest() == b""
        assert b"serves 3 connections already" in await (await on.connect()).rest()
        await reaches(works, backend, fetch(2))


async def test_who_opens_connections_and_sends_no_login_shuts_nobody_else_out() -> None:
    async with stage(connections_max=newcomers.CLIENTS_OF_ADDRESS_MAX + 1) as on:
        silent = []
        for _ in range(newcomers.CLIENTS_OF_ADDRESS_MAX + 20):
            reader, writer = await asyncio.open_connection(HOST, on.proxy.port, local_addr=("127.0.0.2", 0))
            silent.append(Peer(reader, writer))
        for client in silent[:20]:
            assert await client.rest() == b""
        await on.open_session()
        for client in silent:
            client.close()
