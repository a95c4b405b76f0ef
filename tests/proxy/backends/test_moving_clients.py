"""Connections of one user on several backends: what one has opened the others can use."""

import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme
from support.backend_farm import Mood
from support.http_stage import Tls
from support.relay_dialogue import execute, open_session
from support.remembering_servers import BinaryServer, Servers, call, log_in, servers, session_in
from support.scripted_session import HOST, PATIENCE_S, Peer, eventually

from proxy.backends.pool import PoolSettings
from proxy.config.endpoints import Transport, UpstreamTls
from proxy.wire.hs2.calls import SessionHandle
from proxy.wire.thrift.frames import frame

APART = PoolSettings(login_together_max=0)


async def is_served(peer: Peer, session: SessionHandle) -> bool:
    return b"Invalid" not in await call(peer, execute("SELECT 1", session=session))


class Two:
    """A connection with a session, and another one of the same user on the other backend."""

    def __init__(self, on: Servers) -> None:
        self.on = on
        self.first: Peer
        self.second: Peer
        self.session: SessionHandle

    async def connect(self) -> None:
        self.first = await log_in(self.on)
        self.session = session_in(await call(self.first, open_session()))
        self.second = await log_in(self.on)
        assert self.on.loads == [1, 1]

    @property
    def home(self) -> BinaryServer:
        return self._server(is_home=True)

    @property
    def other(self) -> BinaryServer:
        return self._server(is_home=False)

    def _server(self, *, is_home: bool) -> BinaryServer:
        home = self.on.home(self.session)
        (found,) = (server for server in self.on.servers if (server is home) is is_home)
        assert isinstance(found, BinaryServer)
        return found


@pytest.fixture
async def two(request: pytest.FixtureRequest) -> AsyncIterator[Two]:
    """Before backends that are waited for as long as the test says: where nothing hangs, longer than it takes."""
    handshake_timeout_s: float = getattr(request, "param", PATIENCE_S)
    async with servers(
        Transport.SASL, Transport.SASL, limits=APART, handshake_timeout_s=handshake_timeout_s
    ) as on:
        found = Two(on)
        await found.connect()
        yield found


async def test_a_session_is_used_from_a_connection_that_was_given_another_backend(two: Two) -> None:
    assert await is_served(two.second, two.session)
    assert (two.home.connections, two.home.known.strangers) == (2, 0)
    await eventually(lambda: two.other.connections == 0)
    assert sorted(two.on.loads) == [0, 2]
    assert await is_served(two.first, two.session)


async def test_over_tls_it_is_the_same(tmp_path: Path) -> None:
    authority, context = trustme.CA(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(HOST).configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    tls = Tls(upstream=UpstreamTls(tmp_path / "ca.pem"), backend=context)
    async with servers(Transport.SASL, Transport.SASL, limits=APART, tls=tls) as on:
        found = Two(on)
        await found.connect()
        assert await is_served(found.second, found.session)
        assert await is_served(found.second, found.session)
        await eventually(lambda: found.other.connections == 0)


async def test_a_connection_goes_to_and_fro_as_often_as_it_has_no_session_of_its_own(two: Two) -> None:
    third = await log_in(two.on)
    another = session_in(await call(third, open_session()))
    assert (await is_served(third, another), await is_served(two.first, two.session)) == (True, True)
    for session in (two.session, another) * 2:
        assert await is_served(two.second, session)
    await eventually(lambda: sum(server.connections for server in (two.home, two.other)) == 3)
    assert sum(two.on.loads) == 3


async def test_a_session_that_a_moved_connection_opens_is_where_it_has_gone(two: Two) -> None:
    assert await is_served(two.second, two.session)
    two.second.send(open_session())
    own = session_in(frame(await two.second.read_frame()))
    assert two.on.home(own) is two.home
    assert await is_served(two.first, own)


async def test_a_connection_with_a_session_of_its_own_keeps_it_and_is_told(two: Two) -> None:
    own = session_in(await call(two.second, open_session()))
    assert not await is_served(two.second, two.session)
    assert await is_served(two.second, own)
    assert two.on.loads == [1, 1]


async def test_another_user_is_moved_nowhere(two: Two) -> None:
    stranger = await log_in(two.on, "somebody else")
    assert not await is_served(stranger, two.session)
    assert sorted(two.on.loads) == [1, 2]
    assert sum(server.known.calls.count("ExecuteStatement") for server in (two.home, two.other)) == 1


@pytest.mark.parametrize(
    ("two", "mood", "said"),
    [
        (0.5, Mood.HANGS, "did not answer a login within 0.5 s"),
        (PATIENCE_S, Mood.CLOSES, "asked for a login, closed the connection without a word"),
        (PATIENCE_S, Mood.REFUSES_LOGINS, "refused the login that the client came with"),
    ],
    indirect=["two"],
)
async def test_where_the_other_backend_does_not_let_it_in_the_connection_stays_and_is_told(
    two: Two, mood: Mood, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    two.home.mood = mood
    assert not await is_served(two.second, two.session)
    assert said in caplog.text
    assert "password" not in caplog.text
    two.home.mood = Mood.WORKS
    assert await is_served(two.second, two.session)
    await eventually(lambda: sorted(two.on.loads) == [0, 2])


async def test_a_full_backend_takes_nobody_over(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    limits = PoolSettings(login_together_max=0, connections_max=1)
    async with servers(Transport.SASL, Transport.SASL, limits=limits) as on:
        two = Two(on)
        await two.connect()
        assert not await is_served(two.second, two.session)
        assert f"the backend {two.home.member.name}, which has no room" in caplog.text


async def test_a_client_that_leaves_while_it_is_moved_leaves_nothing_behind(two: Two) -> None:
    two.home.mood = Mood.HANGS
    two.second.send(execute("SELECT 1", session=two.session))
    await eventually(lambda: two.home.connections == 2)
    await two.second.closed()
    await eventually(lambda: two.home.connections == 1)
    await eventually(lambda: sum(two.on.loads) == 1)


async def test_a_backend_that_ends_once_it_has_let_a_connection_in_has_not_refused_it(two: Two) -> None:
    two.home.mood = Mood.STALLS
    two.second.send(execute("SELECT 1", session=two.session))
    await eventually(lambda: "ExecuteStatement" in two.home.calls)
    await two.home.die()
    await eventually(lambda: two.on.proxy.connection_count == 0)
    assert [view.failures for view in two.on.backends.views()] == [0, 0]
