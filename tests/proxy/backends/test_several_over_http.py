"""Several backends for clients over HTTP: each call goes where its session is."""

import logging

import pytest
from support.http_stage import basic, message, request
from support.relay_dialogue import execute, open_session
from support.remembering_servers import HttpServer, Servers, servers, session_in
from support.scripted_session import eventually

from proxy.backends.circuit_breaker import FAILURES_MAX
from proxy.backends.pool import PoolSettings
from proxy.config.endpoints import Transport
from proxy.upstream.http_cookies import mark_of_backend
from proxy.wire.hs2.calls import SessionHandle

HTTP, SASL = Transport.HTTP, Transport.SASL
BOTH = pytest.mark.parametrize("speaking", [HTTP, SASL])
# What clients speak, and what backends do.
SIDES = pytest.mark.parametrize(("to", "speaking"), [(HTTP, HTTP), (HTTP, SASL), (SASL, SASL)])
APART = PoolSettings(login_together_max=0)


async def over_http(on: Servers, number: int) -> SessionHandle:
    return await on.open_session(basic(f"user {number}"))


@SIDES
async def test_sessions_are_spread_over_the_backends(to: Transport, speaking: Transport) -> None:
    async with servers(speaking, to, count=3) as on:
        homes = [on.home(await on.opens(f"user {number}")) for number in range(6)]
        assert sorted(homes.count(server) for server in on.servers) == [2, 2, 2]
        assert on.sessions == [2 if speaking is HTTP else 0] * 3


@SIDES
async def test_every_call_goes_to_the_backend_that_has_its_session(to: Transport, speaking: Transport) -> None:
    async with servers(speaking, to, limits=APART) as on:
        sessions = [await on.opens() for _ in range(4)]
        assert {on.home(session) for session in sessions} == set(on.servers)
        for session in sessions:
            assert await on.serves(session)
            assert await on.closes(session)
        assert [server.known.strangers for server in on.servers] == [0, 0]
        assert on.sessions == [0, 0]


@BOTH
async def test_another_users_session_is_one_that_nobody_has(speaking: Transport) -> None:
    async with servers(speaking) as on:
        sessions = [await on.open_session() for _ in range(2)]
        for session in sessions:
            assert not await on.is_known(execute("SELECT 1", session=session), basic("somebody else"))
            assert await on.is_known(execute("SELECT 1", session=session))


@SIDES
async def test_a_backend_that_is_down_is_not_noticed_by_clients_that_open_sessions(
    to: Transport, speaking: Transport
) -> None:
    async with servers(speaking, to) as on:
        await on.servers[0].die()
        for number in range(2 * FAILURES_MAX):
            session = await on.opens(f"user {number}")
            assert on.home(session) is on.servers[1]
            assert await on.serves(session, f"user {number}")
        views = on.backends.views()
        assert [(view.failures, view.breaker) for view in views] == [(FAILURES_MAX, "open"), (0, "closed")]
        assert views[0].last_failures[0].reason.endswith("Connection refused")


@SIDES
async def test_where_all_are_down_the_client_is_told_of_each(
    to: Transport, speaking: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with servers(speaking, to, limits=APART) as on:
        for server in on.servers:
            await server.die()
        for _ in range(2 * FAILURES_MAX):
            told = await on.refusal()
            assert all(f"{server.member.name}: Connection refused" in told for server in on.servers)
            assert "cannot reach the backend" in told
        assert "cannot reach the backend" in caplog.text
        await on.servers[1].listen()
        assert await on.serves(await on.opens()), "the least bad is tried although its breaker is open"


async def test_a_session_whose_backend_is_down_is_no_other_backends() -> None:
    async with servers(HTTP) as on:
        session = await on.open_session()
        home = on.home(session)
        await home.die()
        status, body, _ = await on.post(message(execute("SELECT 1", session=session)))
        assert (status, home.member.name in body.decode()) == (503, True)
        assert [server.known.strangers for server in on.servers] == [0, 0]


@SIDES
async def test_a_drained_backend_keeps_its_sessions_and_gets_no_more(to: Transport, speaking: Transport) -> None:
    async with servers(speaking, to) as on:
        sessions = [await on.opens(f"user {number}") for number in range(2)]
        on.backends.drain(on.servers[0].member.name, on=True)
        later = [await on.opens(f"user {number}") for number in range(2, 5)]
        assert {on.home(session) for session in later} == {on.servers[1]}
        assert all([await on.closes(session, f"user {n}") for n, session in enumerate(sessions)])


async def test_a_backend_that_is_configured_no_more_keeps_its_sessions_until_they_end() -> None:
    async with servers(HTTP) as on:
        sessions = [await over_http(on, number) for number in range(2)]
        on.backends.configure([on.servers[1].member])
        assert on.home(await over_http(on, 2)) is on.servers[1]
        assert len(on.backends.views()) == 2
        assert all([await on.closes(session, f"user {n}") for n, session in enumerate(sessions)])
        _ = await over_http(on, 3)
        assert len(on.backends.views()) == 1
        assert [server.known.strangers for server in on.servers] == [0, 0]


async def test_calls_past_the_backends_threads_are_told_so_and_leave_no_room_taken() -> None:
    async with servers(HTTP, count=1, limits=PoolSettings(connections_max=1)) as on:
        session = await on.open_session()
        busy = on.backends.lease(None)
        assert busy is not None
        status, body, _ = await on.post(message(execute("SELECT 1", session=session)))
        assert status == 503
        assert b"has 1 connections already (proxy.backend_connections_max); try again later" in body
        busy.release()
        assert await on.is_known(execute("SELECT 1", session=session))
        await eventually(lambda: on.loads == [0])


@pytest.mark.parametrize("to", [HTTP, SASL])
async def test_connections_to_backends_that_do_not_speak_http_are_limited(to: Transport) -> None:
    async with servers(SASL, to, limits=PoolSettings(connections_max=1)) as on:
        for number in range(2):
            await on.opens(f"user {number}")
        told = await on.refusal("one too many")
        assert on.loads == [1, 1]
        assert "each backend has 1 connections already (proxy.backend_connections_max)" in told


# --- cookies


async def test_a_cookie_goes_back_to_its_own_backend_and_to_no_other() -> None:
    async with servers(HTTP) as on:
        sessions = [await on.open_session() for _ in range(2)]
        (first, second) = (on.home(session) for session in sessions)
        assert isinstance(first, HttpServer)
        assert isinstance(second, HttpServer)
        _, _, got = await on.post(message(execute("SELECT 1", session=sessions[0])))
        given = got.headers["Set-Cookie"].partition(";")[0]
        assert given.startswith(f"hive.server2.auth=starpruner-{mark_of_backend(first.member.name)}.")
        # Neither names the user by a password: the cookie alone says who it is.
        assert await on.is_known(execute("SELECT 2", session=sessions[0]), {"Cookie": given})
        assert first.asked[-1].header("Cookie") == [first.cookie]
        status, body, _ = await on.post(message(execute("SELECT 2", session=sessions[1])), {"Cookie": given})
        assert (status, body) == (401, b"who are you?")
        assert second.asked[-1].header("Cookie") == []


async def test_a_client_with_a_cookie_opens_its_sessions_on_the_backend_that_gave_it() -> None:
    async with servers(HTTP, count=3) as on:
        _, body, got = await on.post(message(open_session()))
        home = on.home(session_in(b"\0\0\0\0" + body))
        headers = {"Cookie": got.headers["Set-Cookie"].partition(";")[0]}
        assert [on.home(await on.open_session(headers)) for _ in range(3)] == [home] * 3
        on.backends.drain(home.member.name, on=True)
        status, _, _ = await on.post(message(open_session()), headers)
        assert status == 401, "another backend asks who it is, as it would without us"
        assert on.home(await on.open_session({**basic(), **headers})) is not home


async def test_a_login_cookie_without_a_mark_is_shown_to_nobody_and_other_cookies_to_all() -> None:
    async with servers(HTTP) as on:
        cookies = "hive.server2.auth=cu=user&rn=1&s=x; other=1"
        home = on.home(await on.open_session({**basic(), "Cookie": cookies}))
        assert isinstance(home, HttpServer)
        assert home.asked[-1].header("Cookie") == ["other=1"]


async def test_after_a_restart_a_cookie_still_says_where_the_session_is() -> None:
    async with servers(HTTP) as on:
        for server in on.servers:
            assert isinstance(server, HttpServer)
            # Opened past this process, as one before it would have.
            raw = server.known.answer(message(open_session()))
            mark = mark_of_backend(server.member.name)
            cookie = server.cookie.replace("=", f"=starpruner-{mark}.", 1)
            assert await on.is_known(execute("SELECT 1", session=session_in(raw)), {"Cookie": cookie})


async def test_where_there_has_only_been_one_backend_cookies_pass_as_they_are() -> None:
    async with servers(HTTP, count=1) as on:
        (server,) = on.servers
        assert isinstance(server, HttpServer)
        _, _, got = await on.post(message(open_session()))
        assert got.headers["Set-Cookie"] == f"{server.cookie}; Path=/; HttpOnly"
        await on.open_session({"Cookie": server.cookie})
        on.backends.configure([server.member, HttpServer().member])
        on.backends.configure([server.member])
        status, _, _ = await on.post(message(open_session()), {"Cookie": server.cookie})
        assert status == 401, "it may be the other one's"


# --- what is learned, and what is remembered


@SIDES
async def test_what_a_session_learns_belongs_to_its_user_on_its_backend(
    to: Transport, speaking: Transport
) -> None:
    async with servers(speaking, to, limits=PoolSettings(login_together_max=2)) as on:
        homes = [on.home(await on.opens()) for _ in range(3)]
        await eventually(lambda: len(on.opened) == 3)
        owners = {(id(home), opened.owner) for home, opened in zip(homes, on.opened, strict=True)}
        assert len(owners) == len(set(homes)) == 2


async def test_a_client_that_leaves_before_its_reply_gives_the_room_back() -> None:
    async with servers(HTTP) as on:
        for server in on.servers:
            assert isinstance(server, HttpServer)
            server.is_slow = True
        peer = await on.connect()
        peer.send(request(message(open_session()), f"Authorization: {basic()['Authorization']}"))
        await eventually(lambda: sum(on.loads) == 1)
        await peer.closed()
        await eventually(lambda: sum(on.loads) == 0)
