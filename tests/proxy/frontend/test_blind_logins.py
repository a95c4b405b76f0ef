"""Logins by mechanisms that we do not read: they work, nothing is rewritten, and the log says so once."""

import logging

import pytest
from support.relay_dialogue import LOGIN, Dialogue, fetch, reply
from support.scripted_session import stage

from proxy.net.log_once import LOGGED_SUBJECTS_MAX, LogOnce
from proxy.relay.commands import SendBackend
from proxy.relay.phases import Phase
from proxy.wire.sasl import SaslStatus, encode_sasl
from proxy.wire.thrift.frames import frame
from proxy.wire.thrift.types import MessageType
from proxy.wire.thrift.writer import Writer


@pytest.mark.parametrize("mechanism", [b"GSSAPI", b"DIGEST-MD5"])
async def test_a_host_is_named_once_however_often_it_connects(
    mechanism: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    start = encode_sasl(SaslStatus.START, mechanism)
    async with stage() as on:
        for _ in range(3):
            client = await on.connect()
            client.send(start)
            backend = await on.backend()
            await backend.expect(start)
            backend.send(b"a challenge that is nobody's business")
            await client.expect(b"a challenge that is nobody's business")
            client.send(b"\xff" * 1000)
            await backend.expect(b"\xff" * 1000)
    (told,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert f"the login is by {mechanism.decode()}, not by PLAIN" in told.getMessage()
    assert "127.0.0.1" in told.getMessage()


async def test_a_refused_login_is_counted_and_no_other_one() -> None:
    refused: list[str] = []
    async with stage() as on:
        on.proxy._context.backends.login_refused = lambda: refused.append("once")  # noqa: SLF001 - as bootstrap does
        await on.log_in()
        client = await on.connect()
        client.send(LOGIN)
        backend = await on.backend()
        await backend.expect(LOGIN)
        words = encode_sasl(SaslStatus.ERROR, b"Error validating the login")
        backend.send(words)
        await client.expect(words)
    assert refused == ["once"]


def test_only_so_many_hosts_are_remembered() -> None:
    notices = LogOnce()
    assert all(notices.is_first_mention(str(number)) for number in range(LOGGED_SUBJECTS_MAX))
    assert not notices.is_first_mention("0")
    assert notices.is_first_mention("another")
    assert notices.is_first_mention("0"), "all are forgotten where there are too many"


@pytest.mark.parametrize("kind", [MessageType.CALL, MessageType.ONEWAY, MessageType.EXCEPTION])
@pytest.mark.parametrize("name", ["GetInfo", "SomethingNew"])
def test_a_call_of_any_name_and_type_passes_and_so_does_its_reply(kind: MessageType, name: str) -> None:
    # The server looks at no message's type, and answers each.
    dialogue = Dialogue().open_session()
    call = frame(Writer().header(name, kind, 7).struct(1).stop().stop().to_bytes())
    assert dialogue.relay.client_data(call) == [SendBackend(call)]
    answer = reply(name, 7)
    assert dialogue.backend(answer) == []
    assert dialogue.client_got() == answer
    assert dialogue.relay.phase is Phase.OPEN
    dialogue.client(fetch(8))
    dialogue.backend(reply("FetchResults", 8))
    assert dialogue.client_got() == reply("FetchResults", 8)
