"""Clients over SASL before a backend over HTTP: the negotiation is ours, and so is the end of sessions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from http_stage import (
    BINARY_TO_HTTP,
    CHUNKED_HEAD,
    Asked,
    Stage,
    basic,
    chunk,
    chunked,
    message,
    ok,
    response,
    stage,
)
from relay_dialogue import (
    ACCEPTED,
    LOGIN,
    close_session,
    execute,
    executed,
    fetch,
    get_status,
    open_session,
    operation_call,
    reply,
    session_opened,
    status_is,
)
from stand_in import Peer, Rewriter, eventually

from proxy.config.endpoints import Transport
from proxy.wire.hs2.calls import OperationState, encode_exception, encode_unknown_call
from proxy.wire.sasl import SaslStatus, encode_sasl, plain_start_with
from proxy.wire.thrift.reader import read_header
from proxy.wire.thrift.types import MessageType
from proxy.wire.thrift.writer import Writer

FINISHED = OperationState.FINISHED
SERVER_ERROR = "Starpruner: the backend answered with HTTP status 500: no"


@asynccontextmanager
async def binary_stage(rewriter: Rewriter | None = None, **settings: float) -> AsyncIterator[Stage]:
    async with stage(rewriter, BINARY_TO_HTTP, None, None, **settings) as on:
        yield on


async def log_in(on: Stage) -> Peer:
    client = await on.connect()
    client.send(LOGIN)
    asked = await on.backend.answer(encode_unknown_call(), b"whatever")
    assert asked.header("Authorization") == [basic()["Authorization"]]
    await client.expect(ACCEPTED)
    return client


async def open_one(on: Stage) -> Peer:
    client = await log_in(on)
    client.send(open_session())
    await on.backend.answer(message(open_session()), message(session_opened()))
    await client.expect(session_opened())
    return client


async def leave(on: Stage, client: Peer) -> None:
    """The client goes, and its session is closed for it."""
    client.close()
    asked: Asked = await on.backend.next()
    assert read_header(asked.body).name == "CloseSession"
    asked.answer(ok(message(reply("CloseSession"))))


async def test_calls_and_replies_pass_and_the_session_ends_with_the_connection() -> None:
    rewriter = Rewriter()
    async with binary_stage(rewriter) as on:
        client = await open_one(on)
        client.send(execute("SELECT 1", 2))
        await on.backend.answer(message(execute("SELECT 1", 2)), message(executed(2)))
        await client.expect(executed(2))
        await leave(on, client)
        await eventually(lambda: rewriter.has_closed)


async def test_a_session_that_the_client_closes_is_closed_once() -> None:
    async with binary_stage() as on:
        client = await open_one(on)
        client.send(close_session(2))
        await on.backend.answer(message(close_session(2)), message(reply("CloseSession", 2)))
        await client.expect(reply("CloseSession", 2))
        client.close()
        await eventually(lambda: on.proxy.connection_count == 0)
        assert on.backend.asked.empty()


async def test_a_login_that_the_backend_refuses_is_refused_in_its_words() -> None:
    async with binary_stage() as on:
        client = await on.connect()
        client.send(LOGIN)
        (await on.backend.next()).answer(response(401, b"Authentication Error: no\n"))
        assert await client.rest() == encode_sasl(SaslStatus.BAD, b"Authentication Error: no")


@pytest.mark.parametrize("answer", [response(503, b"busy"), response(404, b"nothing here")])
async def test_a_backend_that_has_no_hiveserver2_to_offer_is_named_in_a_sasl_error(answer: bytes) -> None:
    async with binary_stage() as on:
        client = await on.connect()
        client.send(LOGIN)
        (await on.backend.next()).answer(answer)
        said = await client.rest()
        assert said[0] == SaslStatus.ERROR
        assert b"HTTP status" in said


async def test_a_backend_that_is_down_is_named_in_a_sasl_error() -> None:
    async with binary_stage() as on:
        on.stop_backend()
        client = await on.connect()
        client.send(LOGIN)
        said = await client.rest()
        assert said[0] == SaslStatus.ERROR
        assert said.endswith(b"Connection refused")


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (encode_sasl(SaslStatus.START, b"GSSAPI"), SaslStatus.ERROR),
        (b"GET / HTTP/1.1\r\n\r\n", SaslStatus.ERROR),
        (plain_start_with(b"admin\0user\0password"), SaslStatus.BAD),
        (plain_start_with(b"\0us:er\0password"), SaslStatus.BAD),
        (plain_start_with(b"user"), SaslStatus.BAD),
    ],
)
async def test_any_other_negotiation_is_refused_and_nothing_is_sent(said: bytes, status: SaslStatus) -> None:
    async with binary_stage() as on:
        client = await on.connect()
        client.send(said)
        assert (await client.rest())[0] == status
        assert on.backend.asked.empty()


async def test_the_negotiation_and_calls_may_come_in_any_pieces() -> None:
    async with binary_stage() as on:
        client = await on.connect()
        for byte in LOGIN + open_session():
            client.send(bytes([byte]))
            await asyncio.sleep(0)
        await on.backend.answer(encode_unknown_call(), b"")
        await on.backend.answer(message(open_session()), message(session_opened()))
        await client.expect(ACCEPTED + session_opened())
        await leave(on, client)


async def unframed(client: Peer, length: int) -> bytes:
    """A message of that length out of as many frames as it comes in."""
    body = b""
    while len(body) < length:
        body += await client.read_frame()
    return body


@pytest.mark.parametrize("chunk_bytes", [100, 40_000, 10**9])
async def test_a_long_reply_comes_in_frames_as_it_comes(chunk_bytes: int) -> None:
    rows = message(reply("FetchResults", 2, Writer().binary(9, bytes(range(256)) * 300)))
    async with binary_stage() as on:
        client = await open_one(on)
        client.send(fetch(2))
        (await on.backend.next()).answer(chunked(rows, chunk_bytes))
        assert await unframed(client, len(rows)) == rows
        await leave(on, client)


async def test_an_http_error_is_an_exception_of_that_call_and_the_next_one_goes_on() -> None:
    async with binary_stage() as on:
        client = await open_one(on)
        for call in (get_status(2), fetch(3), execute("SELECT 1", 4)):
            client.send(call)
            (await on.backend.next()).answer(response(500, b"out of memory"))
            raw = await client.read_frame()
            header = read_header(raw)
            sent = read_header(message(call))
            assert (header.name, header.type, header.seqid) == (sent.name, MessageType.EXCEPTION, sent.seqid)
            assert b"HTTP status 500: out of memory" in raw
        client.send(get_status(5))
        await on.backend.answer(message(get_status(5)), message(status_is(FINISHED, 5)))
        await client.expect(status_is(FINISHED, 5))
        client.send(get_status(6))
        await client.expect(status_is(FINISHED, 6))
        await leave(on, client)


async def test_a_reply_that_is_cut_off_ends_the_connection() -> None:
    async with binary_stage() as on:
        client = await open_one(on)
        client.send(fetch(2))
        asked: Asked = await on.backend.next()
        asked.answer(CHUNKED_HEAD + chunk(bytes(100)))
        assert await client.read_frame() == bytes(100)
        asked.peer.writer.transport.abort()
        assert await client.rest() == b""
        await leave(on, client)


async def test_a_client_that_leaves_takes_its_call_with_it_and_its_session_is_closed() -> None:
    async with binary_stage() as on:
        client = await open_one(on)
        client.send(get_status(2))
        asked = await on.backend.next()
        assert asked.body == message(get_status(2))
        await leave(on, client)
        await eventually(asked.peer.reader.at_eof)
        await eventually(lambda: on.proxy.connection_count == 0)


async def left_while_opening(on: Stage) -> Asked:
    """The call for a session whose client has left since."""
    client = await log_in(on)
    client.send(open_session())
    asked: Asked = await on.backend.next()
    client.close()
    # It is heard of by then.
    await asyncio.sleep(0.2)
    return asked


async def test_a_session_that_is_opened_as_its_client_leaves_is_closed() -> None:
    """Over HTTP a session outlives the call that asked for it."""
    async with binary_stage() as on:
        asked = await left_while_opening(on)
        asked.answer(ok(message(session_opened())))
        await on.backend.answer(message(close_session()), message(reply("CloseSession")))
        await eventually(lambda: on.proxy.connection_count == 0)


async def test_a_client_that_leaves_while_no_session_can_be_opened_for_it_leaves_nothing_behind() -> None:
    async with binary_stage() as on:
        asked = await left_while_opening(on)
        asked.peer.writer.transport.abort()
        await eventually(lambda: on.proxy.connection_count == 0)


async def test_calls_sent_at_once_are_answered_in_their_order() -> None:
    async with binary_stage() as on:
        client = await open_one(on)
        client.send(fetch(2) + operation_call("CloseOperation", 3))
        await on.backend.answer(message(fetch(2)), message(reply("FetchResults", 2)))
        await on.backend.answer(message(operation_call("CloseOperation", 3)), message(reply("CloseOperation", 3)))
        await client.expect(reply("FetchResults", 2) + reply("CloseOperation", 3))
        await leave(on, client)


async def test_a_frame_past_the_limit_ends_only_that_connection() -> None:
    async with binary_stage(request_bytes_max=1000) as on:
        client = await log_in(on)
        client.send((1001).to_bytes(4))
        assert await client.rest() == b""


async def test_a_client_without_sasl_is_who_the_configuration_says() -> None:
    async with stage(None, (Transport.NOSASL, Transport.HTTP)) as on:
        client = await on.connect()
        client.send(message(open_session()))
        asked = await on.backend.answer(message(open_session()), message(session_opened()))
        assert asked.header("Authorization") == [basic("anonymous", "anonymous")["Authorization"]]
        await client.expect(message(session_opened()))
        client.send(message(fetch(2)) + message(get_status(3)))
        await on.backend.answer(message(fetch(2)), message(reply("FetchResults", 2)))
        (await on.backend.next()).answer(response(500, b"no"))
        await client.expect(message(reply("FetchResults", 2)))
        await client.expect(encode_exception("GetOperationStatus", 3, SERVER_ERROR))
        await leave(on, client)


async def test_one_client_too_many_is_told_so() -> None:
    async with binary_stage(connections_max=1) as on:
        first = await log_in(on)
        second = await on.connect()
        assert b"serves 1 connections already" in await second.rest()
        first.close()


async def test_a_client_that_says_nothing_is_closed_after_a_while() -> None:
    async with binary_stage(handshake_timeout_s=0.05) as on:
        client = await on.connect()
        assert await client.rest() == b""
