"""Tests in one event loop do not fail by a machine that has no time for them."""

import asyncio
import socket
import time

from support.unhurried_loop import TURN_S, UnhurriedLoop

STALL_S = 0.3


async def test_a_stall_takes_no_time() -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, UnhurriedLoop)
    begun = loop.time()
    time.sleep(STALL_S)  # noqa: ASYNC251 - it is to stall the loop
    # Both readings are rounded.
    assert round(loop.time() - begun, 6) <= TURN_S


async def test_what_came_during_a_stall_is_in_time() -> None:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    async with asyncio.timeout(STALL_S / 2):
        theirs.send(b"here")
        time.sleep(STALL_S)  # noqa: ASYNC251 - it is to stall the loop
        assert await reader.readexactly(4) == b"here"
    writer.close()
    theirs.close()


async def test_a_wait_takes_all_its_time() -> None:
    begun = time.monotonic()
    await asyncio.sleep(STALL_S)
    assert time.monotonic() - begun >= STALL_S
