"""Clients of a proxy with several backends, some of which fail them."""

import asyncio
import random
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from support.backend_farm import Client, Clock, Mood, several
from support.http_stage import basic, message
from support.relay_dialogue import ACCEPTED, execute, open_session, session_opened
from support.scripted_session import HOST, PATIENCE_S, Peer, eventually

from proxy.backends.circuit_breaker import FAILURES_MAX, OPEN_S
from proxy.backends.pool import PoolSettings
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember
from proxy.config.endpoints import Transport
from proxy.frontend import graceful_close
from proxy.operations.query import Query
from proxy.upstream.dialer import Dialer, UnreachableError
from proxy.wire.sasl import PLAIN, SaslStatus, encode_sasl, plain_start

SPREAD = PoolSettings(login_together_max=0)


@contextmanager
def black_hole() -> Iterator[PoolMember]:
    """An address where connections neither open nor fail, as of a host that is gone."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind((HOST, 0))
        listener.listen(0)
        for filler in (first, second):
            filler.setblocking(False)  # noqa: FBT003 - the socket module's own
            with suppress(BlockingIOError):
                filler.connect(listener.getsockname())
        yield PoolMember(Address(*listener.getsockname()))


async def beginning(peer: Peer) -> bytes:
    """What a client hears first, or nothing."""
    async with asyncio.timeout(PATIENCE_S):
        return await peer.reader.read(len(ACCEPTED))


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_the_connections_of_one_login_are_on_one_backend() -> None:
    async with several(2) as on:
        for _ in range(5):
            await on.log_in("hue")
        assert sorted(server.connections for server in on.servers) == [0, 5]


async def test_a_host_that_does_not_answer_costs_a_few_clients_the_time_of_a_connection_and_then_nobody() -> None:
    async with several(1, SPREAD, connect_timeout_s=0.5) as on:
        with black_hole() as hole:
            on.backends.configure([hole, on.servers[0].member])
            for _ in range(3 * FAILURES_MAX):
                await on.log_in()
            views = {view.name: view for view in on.backends.views()}
            assert views[hole.name].failures == FAILURES_MAX
            assert views[hole.name].last_failures[0].reason == "no connection within 0.5 s"
            assert views[hole.name].breaker == "open"


async def test_a_backend_that_comes_back_is_found_by_one_client_and_used_by_the_next() -> None:
    clock = Clock()
    async with several(2, SPREAD, clock=clock) as on:
        await on.servers[0].die()
        for _ in range(2 * FAILURES_MAX):
            await on.log_in()
        assert on.backends.views()[0].breaker == "open"
        await on.servers[0].listen()
        assert on.servers[0].connections == 0
        clock.now += OPEN_S
        for _ in range(4):
            await on.log_in()
        assert on.servers[0].connections == 4
        assert on.backends.views()[0].breaker == "closed"


async def test_a_backend_that_accepts_and_says_nothing_is_left_alone_too() -> None:
    # The other backend has to answer within that too, on a busy machine.
    async with several(2, SPREAD, handshake_timeout_s=0.5) as on:
        on.servers[0].mood = Mood.HANGS
        unserved = []
        for _ in range(4 * FAILURES_MAX):
            client = await on.connect()
            if await beginning(client) != ACCEPTED:
                unserved.append(await client.rest())
        # Whoever met it was not served, and who that was had to be found out.
        told = b"did not answer a login within 0.5 s"
        assert [told in sentence for sentence in unserved] == [True] * FAILURES_MAX
        view = on.backends.views()[0]
        assert (view.breaker, view.last_failures[0].reason) == ("open", "no answer to a login within 0.5 s")


async def test_a_login_that_a_backend_closes_without_a_byte_is_tried_at_the_next() -> None:
    async with several(3, SPREAD) as on:
        on.servers[0].mood = on.servers[1].mood = Mood.CLOSES
        clients = [await on.log_in(f"user {number}") for number in range(4 * FAILURES_MAX)]
        for client in clients:
            await client.open_session()
            assert await client.is_served()
        for view in on.backends.views()[:2]:
            assert (view.breaker, view.connections) == ("open", 0)
            assert view.last_failures[0].reason == "closed the connection without a word"
        assert on.loads == [0, 0, len(clients)]


async def test_clients_over_http_never_hear_of_it_either() -> None:
    async with several(2, SPREAD, transport=Transport.HTTP) as on, aiohttp.ClientSession() as clients:
        on.servers[0].mood = Mood.CLOSES
        for number in range(4):
            url = f"http://{HOST}:{on.proxy.port}/cliservice"
            async with clients.post(url, data=message(open_session()), headers=basic(f"user {number}")) as got:
                assert (got.status, await got.read()) == (200, message(session_opened()))
        assert on.servers[0].met > 0


async def test_a_login_that_all_of_them_close_is_answered_by_an_error() -> None:
    async with several(2, SPREAD) as on:
        on.servers[0].mood = on.servers[1].mood = Mood.CLOSES
        assert "hive.server2.thrift.max.worker.threads" in await on.refusal()
        await on.all_gone()
        assert on.loads == [0, 0]
        # The login may have been the reason.
        assert sum(view.failures for view in on.backends.views()) == 1


async def test_no_client_opens_the_circuit_breakers_of_all_by_a_login_that_makes_servers_close() -> None:
    async with several(4, SPREAD) as on:
        for server in on.servers:
            server.mood = Mood.HANGS_UP
        for _ in range(FAILURES_MAX):
            assert "closed the connection" in await on.refusal()
        assert [server.met for server in on.servers] == [FAILURES_MAX] * 4
        assert sum(view.failures for view in on.backends.views()) == FAILURES_MAX
        for server in on.servers:
            server.mood = Mood.WORKS
        peer = Peer(*await asyncio.open_connection(HOST, on.proxy.port))
        peer.send(encode_sasl(SaslStatus.START, PLAIN) + encode_sasl(SaslStatus.BAD, b"x"))
        assert b"expected a SASL response, got BAD" in await peer.rest()
        assert [server.met for server in on.servers] == [FAILURES_MAX] * 4
        await peer.closed()


async def test_a_connection_that_comes_too_late_is_not_mistaken_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect, dialled = Dialer.connect, 0

    async def late(self: Dialer, protocol: Callable[[], asyncio.Protocol], address: Address) -> asyncio.Transport:
        nonlocal dialled
        dialled += 1
        if dialled > 1:
            await asyncio.sleep(0.05)
            return await connect(self, protocol, address)
        # The time is up as the socket opens, so that the loop has told of it.
        transport = await connect(self, protocol, address)
        transport.close()
        raise UnreachableError("no connection within 10 s")

    monkeypatch.setattr(Dialer, "connect", late)
    async with several(4, SPREAD) as on:
        client = await on.log_in()
        await client.open_session()
        await eventually(lambda: sum(server.connections for server in on.servers) == 1)
        assert (dialled, sum(on.loads)) == (2, 1)
        await on.all_gone()
        await eventually(lambda: sum(server.connections for server in on.servers) == 0)


async def test_a_client_hears_why_where_the_second_backend_cannot_be_connected_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect, dialled = Dialer.connect, 0

    async def hanging(
        self: Dialer, protocol: Callable[[], asyncio.Protocol], address: Address
    ) -> asyncio.Transport:
        nonlocal dialled
        dialled += 1
        if dialled > 1:
            await asyncio.sleep(PATIENCE_S)
        return await connect(self, protocol, address)

    monkeypatch.setattr(Dialer, "connect", hanging)
    async with several(2, SPREAD, handshake_timeout_s=0.5, connect_timeout_s=PATIENCE_S) as on:
        on.servers[0].mood = on.servers[1].mood = Mood.CLOSES
        told = await on.refusal()
        assert "closed the connection without a word" in told
        assert "no answer within 0.5 s" in told
        await on.all_gone()
        assert on.loads == [0, 0]


async def test_of_backends_that_close_a_login_or_are_gone_each_is_told() -> None:
    async with several(2, SPREAD) as on:
        on.servers[0].mood = Mood.CLOSES
        await on.servers[1].die()
        # In either order.
        told = {await on.refusal() for _ in range(2)}
        assert all("closed the connection" in sentence for sentence in told)


async def test_a_client_that_leaves_while_another_backend_is_tried_leaves_nothing_behind() -> None:
    async with several(1, SPREAD, connect_timeout_s=PATIENCE_S) as on:
        on.servers[0].mood = Mood.CLOSES
        with black_hole() as hole:
            on.backends.configure([hole, on.servers[0].member])
            for _ in range(FAILURES_MAX):
                peer = await on.connect()
                await asyncio.sleep(0.05)
                await peer.closed()
            await eventually(lambda: on.proxy.connection_count == 0)
            assert on.loads == [0, 0]


async def test_a_login_goes_to_no_other_backend_once_one_has_spoken() -> None:
    async with several(2, SPREAD) as on:
        on.servers[0].mood = on.servers[1].mood = Mood.REFUSES_LOGINS
        peer = await on.connect()
        await peer.expect(encode_sasl(SaslStatus.BAD, b"wrong password"))
        assert await peer.rest() == b""
        assert sum(server.met for server in on.servers) == 1


async def test_wrong_passwords_and_clients_that_leave_say_nothing_against_a_backend() -> None:
    async with several(1) as on:
        on.servers[0].mood = Mood.REFUSES_LOGINS
        for _ in range(2 * FAILURES_MAX):
            peer = await on.connect()
            await peer.expect(encode_sasl(SaslStatus.BAD, b"wrong password"))
            assert await peer.rest() == b""
        on.servers[0].mood = Mood.HANGS
        for _ in range(2 * FAILURES_MAX):
            peer = await on.connect()
            await eventually(lambda: on.servers[0].connections > 0)
            await peer.closed()
            await eventually(lambda: on.servers[0].connections == 0)
        (view,) = on.backends.views()
        assert (view.failures, view.healthy) == (0, True)


async def test_the_death_of_a_backend_ends_its_own_sessions_alone() -> None:
    async with several(2) as on:
        first, second = await on.log_in("ann"), await on.log_in("bob")
        ann = next(server for server in on.servers if server.connections)
        await on.servers[0].die()
        survivors = [await client.is_served() for client in (first, second)]
        assert sorted(survivors) == [False, True]
        assert ann in on.servers


async def test_a_backend_that_is_configured_no_more_keeps_its_sessions_too() -> None:
    async with several(2, SPREAD) as on:
        clients = [await on.log_in() for _ in range(4)]
        on.backends.configure([on.servers[1].member])
        await on.log_in()
        assert [server.connections for server in on.servers] == [2, 3]
        assert all([await client.is_served() for client in clients])


async def test_the_room_of_a_client_that_leaves_is_anothers() -> None:
    async with several(1, PoolSettings(connections_max=1)) as on:
        client = await on.log_in()
        await client.peer.closed()
        await eventually(lambda: on.loads == [0])
        assert await (await on.log_in()).is_served()


async def test_a_connection_that_outlives_its_client_keeps_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graceful_close, "GRACEFUL_CLOSE_S", PATIENCE_S)
    async with several(1) as on:
        on.servers[0].mood = Mood.STALLS
        on.rewriter.queries = (Query("SELECT 1", rows_max=1, bytes_max=100, deadline_s=PATIENCE_S),)
        client = await on.log_in()
        await client.open_session()
        client.peer.send(execute("SELECT 2"))
        await eventually(lambda: "ExecuteStatement" in on.servers[0].calls)
        await client.peer.closed()
        await eventually(lambda: on.proxy.connection_count == 0)
        assert (on.proxy.closing_connection_count, on.loads) == (1, [1])
        await on.servers[0].die()
        await eventually(lambda: on.proxy.closing_connection_count == 0)
        assert on.loads == [0]


async def test_a_thousand_connections_of_all_kinds_leave_no_lease_and_no_socket_behind() -> None:
    clock = Clock()
    chance = random.Random(7)  # noqa: S311 - a test that can be repeated
    async with several(3, SPREAD, clock=clock, handshake_timeout_s=5.0) as on:
        before = open_files()

        async def one(number: int) -> None:
            peer = await on.connect(f"user {number % 7}")
            with suppress(OSError, asyncio.IncompleteReadError):
                match chance.randrange(4):
                    case 0:
                        peer.writer.transport.abort()
                    case 1:
                        await peer.reader.readexactly(len(ACCEPTED))
                        peer.send(b"\0\0\0\x10half a frame")
                    case 2:
                        if await peer.reader.readexactly(len(ACCEPTED)) == ACCEPTED:
                            await Client(peer).open_session()
                    case _:
                        peer.send(plain_start("again", "and again"))
            await peer.closed()

        for start in range(0, 1_000, 50):
            on.servers[0].mood = chance.choice([Mood.WORKS, Mood.CLOSES])
            clock.now += 2.0
            await asyncio.gather(*(one(number) for number in range(start, start + 50)))
        await eventually(lambda: on.proxy.connection_count == 0)
        on.clients.clear()
        assert on.loads == [0, 0, 0]
        assert all(not backend.logins for backend in on.backends.configured)
        await eventually(lambda: open_files() <= before)


@pytest.mark.parametrize("pieces", [1, 3])
async def test_whoever_sends_the_login_in_pieces_is_connected_when_it_is_whole(pieces: int) -> None:
    async with several(1) as on:
        peer = await on.connect()
        await peer.expect(ACCEPTED)
        login = plain_start("slow", "password")
        other = await asyncio.open_connection(HOST, on.proxy.port)
        for start in range(0, len(login), -(-len(login) // pieces)):
            other[1].write(login[start : start + -(-len(login) // pieces)])
            await other[1].drain()
            await asyncio.sleep(0.01)
        assert await other[0].readexactly(len(ACCEPTED)) == ACCEPTED
        assert on.backends.configured[0].logins == {"user": 1, "slow": 1}
        other[1].close()
        await other[1].wait_closed()
