"""The proxy's own calls to a backend over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support.http_stage import HttpBackend, basic, message, ok, response
from support.relay_dialogue import reply, session_opened
from support.scripted_session import HOST, StandInServer, eventually

from proxy.config.endpoints import Transport, UpstreamSection
from proxy.operations.query import FailureKind, Query, QueryFailed, QueryResult, ask_driver
from proxy.upstream.client import BackendClient
from proxy.upstream.errors import BackendError
from proxy.wire.thrift.reader import read_header


@asynccontextmanager
async def backend() -> AsyncIterator[tuple[HttpBackend, BackendClient]]:
    played = HttpBackend()
    server = StandInServer(played.meet)
    port = server.port
    yield played, BackendClient.connect(HOST, port, "user", "password", upstream=UpstreamSection(Transport.HTTP))
    server.close()
    for peer in played.peers:
        await peer.closed()


async def test_a_session_is_opened_and_closed_in_the_name_that_was_given() -> None:
    async with backend() as (played, client):
        opening = asyncio.create_task(client.__aenter__())
        asked = await played.next()
        assert read_header(asked.body).name == "OpenSession"
        assert asked.header("Authorization") == [basic()["Authorization"]]
        assert asked.header("Content-Type") == ["application/x-thrift"]
        asked.answer(ok(message(session_opened())))
        await opening
        closing = asyncio.create_task(client.__aexit__())
        asked = await played.next()
        assert read_header(asked.body).name == "CloseSession"
        asked.answer(ok(message(reply("CloseSession"))))
        await closing
        # Its connection goes with it.
        await eventually(lambda: all(peer.reader.at_eof() for peer in played.peers))


async def test_a_costly_query_waits_for_a_slot_and_is_not_sent_without_one() -> None:
    async def costly() -> QueryResult:
        return await ask_driver(Query("SELECT 1", 1, 1_000, deadline_s=0.1, needs_slot=True))

    async with backend() as (played, client):
        answer = await client.drive(costly, asyncio.Semaphore(0))
        assert isinstance(answer, QueryFailed)
        assert answer.kind is FailureKind.BUSY
        assert played.asked.empty()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (response(401, b"no"), "refused the login of user 'user'"),
        (response(500, b"no"), "answered OpenSession with HTTP status 500"),
        (ok(b"<html>"), "does not speak HiveServer2's protocol over HTTP"),
        (ok(bytes(2 * 1024 * 1024)), "its reply to OpenSession is too long"),
        (b"nonsense\r\n\r\n", "broke off its answer"),
    ],
)
async def test_whatever_else_it_answers_is_a_sentence(answer: bytes, sentence: str) -> None:
    async with backend() as (played, client):
        opening = asyncio.create_task(client.__aenter__())
        (await played.next()).answer(answer)
        with pytest.raises(BackendError, match=sentence) as raised:
            await opening
        assert "password" not in str(raised.value)
        await asyncio.sleep(0.05)
