"""Clients over HTTP before a backend that speaks SASL: its connections are kept for the sessions they opened."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from support.http_stage import HTTP_TO_BINARY, PATH, Stage, basic, body_of, message, stage
from support.relay_dialogue import (
    ACCEPTED,
    LOGIN,
    close_session,
    execute,
    execute_and_wait,
    executed,
    fetch,
    get_status,
    open_session,
    operation_call,
    reply,
    session_opened,
    status_is,
)
from support.scripted_session import PATIENCE_S, Peer, Rewriter, eventually

from proxy.config.endpoints import Transport
from proxy.http import binary_pool
from proxy.operations.dispatch import OutcomeKind
from proxy.operations.query import Query, QueryFailed
from proxy.wire.hs2.calls import OperationState
from proxy.wire.sasl import SaslStatus, encode_sasl, plain_start
from proxy.wire.thrift.frames import HEADER
from proxy.wire.thrift.reader import read_header
from proxy.wire.thrift.writer import Writer

RUNNING = OperationState.RUNNING
QUERY = Query("SELECT 1 AS one", rows_max=10, bytes_max=10_000, deadline_s=PATIENCE_S)


@asynccontextmanager
async def links_stage(rewriter: Rewriter | None = None, **keys: Any) -> AsyncIterator[Stage]:
    async with stage(rewriter, HTTP_TO_BINARY, None, None, **keys) as on:
        yield on


async def log_in(on: Stage) -> Peer:
    link = await on.link()
    await link.expect(LOGIN)
    link.send(ACCEPTED)
    return link


async def open_one(on: Stage) -> Peer:
    post = on.start(message(open_session()))
    link = await log_in(on)
    await link.expect(open_session())
    link.send(session_opened())
    assert await body_of(post) == message(session_opened())
    return link


async def exchange(on: Stage, link: Peer, call: bytes, answer: bytes) -> None:
    post = on.start(message(call))
    await link.expect(call)
    link.send(answer)
    assert await body_of(post) == message(answer)


async def test_the_calls_of_a_session_go_over_the_connection_that_opened_it() -> None:
    async with links_stage() as on:
        link = await open_one(on)
        await exchange(on, link, execute("SELECT 1", 2), executed(2))
        await exchange(on, link, get_status(3), status_is(RUNNING, 3))
        await exchange(on, link, fetch(4), reply("FetchResults", 4, Writer().binary(9, bytes(300_000))))
        await exchange(on, link, close_session(5), reply("CloseSession", 5))


async def test_calls_at_once_take_connections_of_their_own() -> None:
    async with links_stage() as on:
        first = await open_one(on)
        poll = on.start(message(get_status(2)))
        await first.expect(get_status(2))
        cancel = on.start(message(operation_call("CancelOperation", 3)))
        second = await log_in(on)
        await second.expect(operation_call("CancelOperation", 3))
        second.send(reply("CancelOperation", 3))
        assert await body_of(cancel) == message(reply("CancelOperation", 3))
        assert not poll.done()
        first.send(status_is(RUNNING, 2))
        assert await body_of(poll) == message(status_is(RUNNING, 2))


async def test_somebody_else_has_a_connection_of_their_own() -> None:
    async with links_stage() as on:
        await open_one(on)
        post = on.start(message(fetch(2)), basic("other", "secret"))
        link = await on.link()
        await link.expect(plain_start("other", "secret"))
        link.send(ACCEPTED)
        await link.expect(fetch(2))
        link.send(reply("FetchResults", 2))
        await body_of(post)


async def test_a_login_that_the_backend_refuses_is_a_401_with_its_words_and_is_counted() -> None:
    refused: list[str] = []
    async with links_stage() as on:
        on.proxy._context.backends.login_refused = lambda: refused.append("once")  # noqa: SLF001 - as bootstrap does
        assert (await on.post(message(open_session()), {}))[0] == 401, "none has come so far"
        post = on.start(message(open_session()))
        link = await on.link()
        await link.expect(LOGIN)
        link.send(encode_sasl(SaslStatus.BAD, b"Error validating the login"))
        status, body, _ = await post
        assert status == 401
        assert b"Error validating the login" in body
    assert refused == ["once"]


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Negotiate abc"}, {"Authorization": "Basic !!"}, {"Cookie": "a=b"}]
)
async def test_without_a_name_and_a_password_there_is_no_login(headers: dict[str, str]) -> None:
    async with links_stage() as on:
        status, body, _ = await on.post(message(open_session()), headers)
        assert status == 401
        assert b"name and a password" in body


async def test_a_backend_that_accepts_and_closes_is_a_status_and_a_sentence() -> None:
    async with links_stage() as on:
        post = on.start(message(open_session()))
        link = await on.link()
        await link.expect(LOGIN)
        link.close()
        status, body, _ = await post
        assert status == 503
        assert b"closed the connection during the login" in body


async def test_a_statement_is_rewritten_and_run_as_it_came_where_that_fails() -> None:
    rewriter = Rewriter("SELECT 2", (QUERY,), may_fall_back=True)
    async with links_stage(rewriter) as on:
        link = await open_one(on)
        post = on.start(message(execute_and_wait("SELECT 1", 2)))
        ours = await link.read_frame()
        assert QUERY.sql.encode() in ours
        link.send(reply("ExecuteStatement", read_header(ours).seqid, status=3, message="no"))
        await link.expect(execute_and_wait("SELECT 2", 2))
        link.send(reply("ExecuteStatement", 2, status=3, message="no"))
        await link.expect(execute_and_wait("SELECT 1", 2))
        link.send(executed(2))
        assert await body_of(post) == message(executed(2))
    assert isinstance(rewriter.results[0], QueryFailed)
    assert [outcome.kind for outcome in rewriter.outcomes] == [OutcomeKind.RECOVERED]


async def test_a_session_ends_with_its_connection() -> None:
    rewriter = Rewriter("SELECT 2")
    async with links_stage(rewriter) as on:
        link = await open_one(on)
        post = on.start(message(fetch(2)))
        await link.expect(fetch(2))
        link.close()
        assert (await post)[0] == 502
        assert rewriter.has_closed


async def test_a_reply_that_is_cut_off_is_cut_off_for_the_client() -> None:
    async with links_stage() as on:
        link = await open_one(on)
        post = on.start(message(fetch(2)))
        await link.expect(fetch(2))
        link.send(HEADER.pack(1000) + bytes(500))
        link.close()
        with pytest.raises(aiohttp.ClientError):
            await post


async def test_a_client_that_leaves_in_the_middle_of_a_reply_leaves_its_session_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given_back: list[binary_pool.PooledConnection] = []
    give_back = binary_pool.BinaryPool.give_back

    def noted(self: binary_pool.BinaryPool, link: binary_pool.PooledConnection) -> None:
        give_back(self, link)
        given_back.append(link)

    async with links_stage() as on:
        link = await open_one(on)
        post = on.start(message(fetch(2)))
        await link.expect(fetch(2))
        post.cancel()
        await eventually(lambda: on.proxy.connection_count == 0)
        monkeypatch.setattr(binary_pool.BinaryPool, "give_back", noted)
        link.send(HEADER.pack(1_000_000) + bytes(1_000_000))
        # The rest is read past, and then the connection is good for the next call.
        await eventually(lambda: len(given_back) == 1)
        await exchange(on, link, get_status(3), status_is(RUNNING, 3))


async def test_a_silent_users_sessions_end_and_unused_connections_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary_pool, "SWEEP_S", 0.02)
    monkeypatch.setattr(binary_pool, "UNUSED_S", 0.05)
    rewriter = Rewriter()
    async with links_stage(rewriter, session_idle_s=1.0) as on:
        first = await open_one(on)
        poll = on.start(message(get_status(2)))
        await first.expect(get_status(2))
        other = on.start(message(fetch(3)))
        second = await log_in(on)
        await second.expect(fetch(3))
        second.send(reply("FetchResults", 3))
        await body_of(other)
        assert await second.rest() == b""
        assert not rewriter.has_closed
        first.send(status_is(RUNNING, 2))
        await body_of(poll)
        assert await first.rest() == b""
        assert rewriter.has_closed


async def test_connections_to_the_backend_are_limited_with_a_sentence() -> None:
    async with links_stage(connections_max=1) as on:
        link = await open_one(on)
        status, body, _ = await on.post(message(fetch(2)), basic("other"))
        assert status == 503
        assert b"has 1 connections to the backend already" in body
        await exchange(on, link, get_status(3), status_is(RUNNING, 3))


async def test_a_backend_without_sasl_is_asked_without_a_login() -> None:
    async with stage(None, (Transport.HTTP, Transport.NOSASL)) as on:
        post = on.start(message(open_session()), {})
        link = await on.link()
        await link.expect(message(open_session()))
        link.send(message(session_opened()))
        assert await body_of(post) == message(session_opened())
        rows = message(reply("FetchResults", 2, Writer().binary(9, bytes(300_000))))
        post = on.start(message(fetch(2)), {})
        await link.expect(message(fetch(2)))
        for start in range(0, len(rows), 50_001):
            link.send(rows[start : start + 50_001])
            await asyncio.sleep(0)
        assert await body_of(post) == rows


async def test_who_may_act_for_another_says_so_in_the_session() -> None:
    async with links_stage(proxy_users={"user": ("admin",)}) as on:
        status, body, _ = await on.post(message(open_session()), path=f"{PATH}?doAs=admin")
        assert status == 403
        assert b"hive.server2.proxy.user" in body


async def test_the_proxy_closes_them_as_it_goes() -> None:
    async with links_stage() as on:
        link = await open_one(on)
        await on.proxy.close()
        assert await link.rest() == b""
