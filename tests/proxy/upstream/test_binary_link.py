"""Connections of our own, to a backend that speaks SASL or does without."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support.relay_dialogue import ACCEPTED, LOGIN, execute, executed, operation_call, reply
from support.scripted_session import PATIENCE_S, Peer, StandInServer

from proxy.config.endpoints import Transport, UpstreamSection
from proxy.operations.internal_call import Call
from proxy.upstream.binary_link import BinaryLink
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError
from proxy.upstream.own_calls import InternalCalls
from proxy.wire.sasl import SaslStatus, encode_sasl, plain_response
from proxy.wire.thrift.writer import Writer

SASL, NOSASL = Transport.SASL, Transport.NOSASL
RESPONSE = plain_response("user", "password")
CALL = Call("GetInfo", 1, operation_call("GetInfo")[4:], reply_bytes_max=1000)

every_transport = pytest.mark.parametrize("transport", [SASL, NOSASL], ids=["sasl", "nosasl"])


@asynccontextmanager
async def linked(transport: Transport) -> AsyncIterator[tuple[BinaryLink, Peer]]:
    """A link that is open, and the backend's end of it."""
    peers: asyncio.Queue[Peer] = asyncio.Queue()
    server = StandInServer(peers.put)
    address = server.address
    link = BinaryLink(address, Dialer(UpstreamSection(transport)), PATIENCE_S)
    opening = asyncio.create_task(link.open(RESPONSE, "a client"))
    peer = await peers.get()
    if transport is SASL:
        await peer.expect(LOGIN)
        peer.send(ACCEPTED)
    await opening
    try:
        yield link, peer
    finally:
        link.close()
        await peer.closed()
        server.close()


def written(transport: Transport, message: bytes) -> bytes:
    return message if transport is SASL else message[4:]


@every_transport
async def test_a_call_is_answered_as_the_backend_writes(transport: Transport) -> None:
    async with linked(transport) as (link, peer):
        for seqid in (1, 2):
            asking = asyncio.create_task(link.ask(CALL))
            await peer.expect(written(transport, operation_call("GetInfo")))
            answer = written(transport, reply("GetInfo", seqid))
            peer.send(answer[:7])
            await asyncio.sleep(0)
            peer.send(answer[7:])
            assert await asking == reply("GetInfo", seqid)[4:]


@every_transport
async def test_a_reply_that_is_too_long_is_read_past(transport: Transport) -> None:
    async with linked(transport) as (link, peer):
        asking = asyncio.create_task(link.ask(CALL))
        peer.send(written(transport, reply("GetInfo", 1, Writer().binary(9, bytes(300_000)))))
        assert await asking is None
        asking = asyncio.create_task(link.ask(CALL))
        peer.send(written(transport, reply("GetInfo", 1)))
        assert await asking == reply("GetInfo", 1)[4:]


@every_transport
async def test_a_query_that_is_cancelled_is_closed_once_it_is_named_and_the_replies_are_awaited(
    transport: Transport,
) -> None:
    async with linked(transport) as (link, peer):
        calls = InternalCalls(link.ask)
        asking = asyncio.create_task(calls.ask(Call("ExecuteStatement", 1, execute("SELECT 1")[4:], 1000)))
        await peer.expect(written(transport, execute("SELECT 1")))
        asking.cancel()
        closing = asyncio.create_task(calls.close_operation(PATIENCE_S))
        peer.send(written(transport, executed()))
        for name in ("CancelOperation", "CloseOperation"):
            await peer.expect(written(transport, operation_call(name)))
            assert not closing.done()
            peer.send(written(transport, reply(name)))
        await closing
        assert not calls.has_unfinished
        assert asking.cancelled()


@pytest.mark.parametrize(
    ("transport", "said", "spoken"),
    [(SASL, b"\xff\xff\xff\xff", "SASL PLAIN"), (NOSASL, b"HTTP/1.1 400 Bad Request\r\n", "TCP without SASL")],
    ids=["sasl", "nosasl"],
)
async def test_who_answers_in_another_protocol_is_named(transport: Transport, said: bytes, spoken: str) -> None:
    async with linked(transport) as (link, peer):
        peer.send(said)
        with pytest.raises(BackendError, match=f"does not speak HiveServer2's binary protocol over {spoken}: "):
            await link.ask(CALL)


@every_transport
async def test_a_backend_that_closes_or_says_nothing_is_an_error(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with linked(transport) as (link, peer):
        with monkeypatch.context() as hurried:
            # For this call alone: a busy machine may take as long to log in.
            hurried.setattr(link, "_reply_s", 0.1)
            with pytest.raises(BackendError, match=r"did not answer GetInfo within 0\.1 s"):
                await link.ask(CALL)
        peer.close()
        with pytest.raises(BackendError, match="closed the connection while GetInfo was under way"):
            await link.ask(CALL)


async def test_a_login_that_is_refused_says_whose_it_was() -> None:
    async def refuse(peer: Peer) -> None:
        peer.send(encode_sasl(SaslStatus.BAD, b"no such user"))
        await peer.closed()

    server = StandInServer(refuse)
    link = BinaryLink(server.address, Dialer(), PATIENCE_S)
    with pytest.raises(BackendError, match="refused the login of a client: no such user"):
        await link.open(RESPONSE, "a client")
    server.close()
