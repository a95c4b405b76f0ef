"""A server that plays a backend leaves no connection open, in whichever step the loop ends."""

import asyncio
import gc
import socket

import pytest
from support.scripted_session import HOST, Peer, StandInServer

from proxy.config.address import Address


async def stays(_: Peer) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.filterwarnings("error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning")
def test_no_connection_is_left_open(steps: int, *, closes: bool) -> None:
    clients: list[socket.socket] = []

    async def connect() -> None:
        server = StandInServer(stays)
        clients.append(socket.create_connection((HOST, server.port)))
        for _ in range(steps):
            await asyncio.sleep(0)
        if closes:
            server.close()
            await asyncio.sleep(0)
        server.close()

    asyncio.run(connect())
    gc.collect()
    for client in clients:
        client.settimeout(5)
        with client:
            assert not is_open(client)


def is_open(client: socket.socket) -> bool:
    try:
        return client.recv(1) != b""
    except ConnectionResetError:
        return False


async def test_it_listens_at_its_port_until_it_is_closed() -> None:
    server = StandInServer(stays)
    assert server.address == Address(HOST, server.port)
    _, writer = await asyncio.open_connection(HOST, server.port)
    server.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(HOST, server.port)
    writer.close()
