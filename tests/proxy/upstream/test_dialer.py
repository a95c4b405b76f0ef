"""Connections to a name: of its addresses the first that works, and nothing left behind of one without any."""

import asyncio
import gc
import logging
from collections.abc import Callable

import pytest
import uvloop
from support.scripted_session import HOST

from proxy.config.address import Address
from proxy.upstream.dialer import Dialer, UnreachableError

LOOPS = [uvloop.new_event_loop, asyncio.new_event_loop]
NO_NAME = Address("no-such-host.invalid", 10_000)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_lookup_that_takes_too_long_leaves_no_error_in_the_log(
    loop: Callable[[], asyncio.AbstractEventLoop], caplog: pytest.LogCaptureFixture
) -> None:
    async def connected() -> None:
        dialer = Dialer(connect_timeout_s=0.000_1)
        for _ in range(3):
            with pytest.raises(UnreachableError):
                await dialer.open_streams(NO_NAME)
            with pytest.raises(UnreachableError):
                await dialer.connect(asyncio.Protocol, NO_NAME)
        await asyncio.sleep(0.5)
        gc.collect()
        await asyncio.sleep(0)

    caplog.set_level(logging.ERROR)
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(connected())
    assert caplog.messages == []


@pytest.mark.parametrize("loop", LOOPS)
def test_of_a_name_s_addresses_the_first_that_works_is_connected(
    loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def connected() -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), HOST, 0)
        port = server.sockets[0].getsockname()[1]

        async def found(_: Address) -> tuple[str, ...]:
            return ("127.0.0.2", HOST)

        monkeypatch.setattr("proxy.upstream.dialer._addresses", found)
        reader, writer = await Dialer().open_streams(Address("spark.internal", port))
        assert writer.get_extra_info("peername") == (HOST, port)
        assert await reader.read() == b""
        writer.close()
        server.close()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(connected())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_host_that_no_name_service_can_be_asked_for_is_unreachable(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    with asyncio.Runner(loop_factory=loop) as runner, pytest.raises(UnreachableError, match="label"):
        runner.run(Dialer().open_streams(Address("spark..internal", 10_000)))
