"""TLS on either side, on real sockets."""

import asyncio
import logging
import os
import re
import signal
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme
import uvloop
from aiohttp import ClientSession
from support.backend_farm import Clock
from support.certificates import issued, trusting
from support.played_calls import reaches
from support.relay_dialogue import (
    ACCEPTED,
    LOGIN,
    close_session,
    execute,
    executed,
    fetch,
    open_session,
    operation_call,
    reply,
    session_opened,
)
from support.scripted_session import HOST, PATIENCE_S, Peer, Rewriter, StandInServer, eventually, stage

from demo.hive import Endpoint
from demo.proxy_process import proxy_process
from proxy.config.address import Address
from proxy.config.endpoints import Listener, ListenerTls, Transport, UpstreamSection, UpstreamTls
from proxy.config.errors import ConfigError
from proxy.net import tls_listener
from proxy.net.tls import CHECK_EVERY_S, Certificates
from proxy.operations.query import Query
from proxy.upstream.binary_link import BinaryLink
from proxy.upstream.dialer import Dialer
from proxy.upstream.errors import BackendError
from proxy.wire.sasl import SaslReader
from proxy.wire.thrift.types import Kind, MessageType
from proxy.wire.thrift.writer import Writer

QUERY = Query("SELECT k", rows_max=10, bytes_max=10_000, deadline_s=PATIENCE_S)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def client_tls(authority: trustme.CA) -> ssl.SSLContext:
    return trusting(authority)


@pytest.fixture
def certificate(authority: trustme.CA, tmp_path: Path) -> ListenerTls:
    return issued(authority, tmp_path)


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


def listener(tls: ListenerTls | None, transport: Transport = Transport.SASL) -> Listener:
    return Listener(Address(HOST, 0), transport, tls)


async def connect(port: int, tls: ssl.SSLContext) -> Peer:
    return Peer(*await asyncio.open_connection(HOST, port, ssl=tls))


def serial_shown(peer: Peer) -> str:
    return str(peer.writer.get_extra_info("peercert")["serialNumber"])


# --- the client's side


@pytest.mark.parametrize("loop_of", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_session_over_tls_is_the_session_without(
    loop_of: Callable[[], asyncio.AbstractEventLoop], certificate: ListenerTls, client_tls: ssl.SSLContext
) -> None:
    async def play() -> None:
        async with stage(Rewriter("SELECT 2"), listeners=(listener(certificate),)) as on:
            client = await connect(on.proxy.port, client_tls)
            client.send(LOGIN)
            backend = await on.backend()
            await backend.expect(LOGIN)
            backend.send(ACCEPTED)
            await reaches(client, backend, open_session())
            backend.send(session_opened())
            await client.expect(ACCEPTED + session_opened())
            await reaches(client, backend, execute("SELECT 1", 2), execute("SELECT 2", 2))
            await reaches(client, backend, fetch(3))
            rows = reply("FetchResults", 3, Writer().binary(9, b"x" * 3_000_000))
            backend.send(executed(2) + rows)
            await client.expect(executed(2) + rows)
            client.close()
            await on.all_gone()

    with asyncio.Runner(loop_factory=loop_of) as runner:
        runner.run(play())


@pytest.mark.parametrize("loop_of", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_slow_reader_over_tls_holds_a_backend_without_frames_back(
    loop_of: Callable[[], asyncio.AbstractEventLoop], certificate: ListenerTls, client_tls: ssl.SSLContext
) -> None:
    part, parts = bytes(1024 * 1024), 64
    start = Writer().header("FetchResults", MessageType.REPLY, 1).struct(0)
    head = start.raw(1, Kind.LIST, struct.pack(">Bi", Kind.BYTE, parts * len(part))).to_bytes()

    async def play() -> None:
        listeners = (listener(certificate, Transport.NOSASL),)
        upstream = UpstreamSection(Transport.NOSASL)
        async with stage(listeners=listeners, upstream=upstream, write_buffer_bytes_max=64 * 1024) as on:
            client = await connect(on.proxy.port, client_tls)
            client.send(fetch()[4:])
            backend = await on.backend()
            await backend.expect(fetch()[4:])
            backend.send(head)
            sent = await _parts_taken(backend, part, parts)
            assert sent < parts, "the backend was read although the client reads nothing"
            backend.send(part * (parts - sent) + b"\0\0")
            async with asyncio.timeout(30):
                rows = await client.reader.readexactly(len(head) + parts * len(part) + 2)
            assert rows.startswith(head)
            client.close()
            await on.all_gone()

    with asyncio.Runner(loop_factory=loop_of) as runner:
        runner.run(play())


async def _parts_taken(peer: Peer, part: bytes, parts: int) -> int:
    for sent in range(parts):
        peer.send(part)
        try:
            async with asyncio.timeout(0.3):
                await peer.writer.drain()
        except TimeoutError:
            return sent + 1
    return parts


@pytest.mark.parametrize(
    ("transport", "first"),
    [(Transport.SASL, LOGIN), (Transport.NOSASL, open_session()[4:])],
    ids=["sasl", "nosasl"],
)
async def test_each_listener_speaks_its_own(
    transport: Transport,
    first: bytes,
    certificate: ListenerTls,
    client_tls: ssl.SSLContext,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    listeners = tuple(listener(tls, transport) for tls in (None, certificate))
    async with stage(listeners=listeners, upstream=UpstreamSection(transport)) as on:
        for port, tls in zip(on.proxy.ports, (None, client_tls), strict=True):
            client = Peer(*await asyncio.open_connection(HOST, port, ssl=tls))
            on.clients.append(client)
            client.send(first)
            backend = await on.backend()
            await backend.expect(first)
    assert f"for {transport.value} over TLS" in caplog.text


async def test_who_speaks_without_tls_where_it_is_spoken_is_named_in_the_log(
    certificate: ListenerTls, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with stage(listeners=(listener(certificate),)) as on:
        for said in (LOGIN, open_session()[4:], b"GET / HTTP/1.1\r\n\r\n"):
            client = await on.connect()
            client.send(said)
            await client.rest()
        await on.all_gone()
    reasons = [message for message in caplog.messages if "no TLS" in message]
    assert len(reasons) == 3
    assert all("without TLS" in reason for reason in reasons)


async def test_who_leaves_during_the_handshake_leaves_nothing_but_a_line_in_the_log(
    certificate: ListenerTls, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with stage(listeners=(listener(certificate),)) as on:
        client = await on.connect()
        client.send(b"\x16\x03\x01")
        await eventually(lambda: on.proxy.connection_count == 1)
        client.close()
        await on.all_gone()
    assert "no TLS: the other side closed during the handshake" in caplog.text


async def test_a_client_that_says_nothing_holds_no_handshake_for_long(
    certificate: ListenerTls, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(tls_listener, "HANDSHAKE_S", 0.2)
    async with stage(listeners=(listener(certificate),)) as on:
        client = await on.connect()
        assert await client.rest() == b""
        await on.all_gone()
    assert "no TLS: no handshake within" in caplog.text


async def test_clients_that_say_nothing_keep_no_other_from_its_handshake(
    certificate: ListenerTls,
    client_tls: ssl.SSLContext,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(tls_listener, "HANDSHAKES_MAX", 2)
    monkeypatch.setattr(tls_listener, "HANDSHAKE_S", 10 * PATIENCE_S)
    async with stage(listeners=(listener(certificate),), connections_max=2) as on:
        silent = [await on.connect() for _ in range(2)]
        silent[0].send(b"\x16\x03\x01")
        await eventually(lambda: on.proxy.connection_count == 2)
        for one in silent:
            client = await asyncio.wait_for(connect(on.proxy.port, client_tls), PATIENCE_S)
            client.send(LOGIN)
            await (await on.backend()).expect(LOGIN)
            assert await one.rest() == b""
            client.close()
    assert "no TLS: no request so far, and others wait for its place" in caplog.text


async def test_one_address_holds_no_more_handshakes_than_its_share(
    certificate: ListenerTls, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tls_listener.HANDSHAKES_OF_ADDRESS_MAX <= tls_listener.HANDSHAKES_MAX / 2
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(tls_listener, "HANDSHAKES_OF_ADDRESS_MAX", 1)
    async with stage(listeners=(listener(certificate),)) as on:
        first = await on.connect()
        await eventually(lambda: on.proxy.connection_count == 1)
        _ = await on.connect()
        assert await first.rest() == b""
        await eventually(lambda: on.proxy.connection_count == 1)
    assert "no TLS: no request so far, and 1 connections of its address wait" in caplog.text


async def test_a_proxy_that_stops_waits_for_no_handshake(certificate: ListenerTls) -> None:
    async with stage(listeners=(listener(certificate),)) as on:
        client = await on.connect()
        client.send(b"\x16\x03\x01")
        await eventually(lambda: on.proxy.connection_count == 1)
        await on.proxy.close()
        await on.all_gone()
        assert await client.rest() == b""


async def test_a_client_is_refused_without_a_certificate_where_one_is_asked_for(
    authority: trustme.CA, certificate: ListenerTls, trusted: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    mutual = replace(certificate, client_ca=trusted)
    async with stage(listeners=(listener(mutual),)) as on:
        strange, known = trusting(authority), trusting(authority)
        trustme.CA().issue_cert("nobody@example.org").configure_cert(strange)
        for tls in (strange, trusting(authority)):
            client = await connect(on.proxy.port, tls)
            client.send(LOGIN)
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                await client.reader.readexactly(1)
        authority.issue_cert("somebody@example.org").configure_cert(known)
        client = await connect(on.proxy.port, known)
        client.send(LOGIN)
        await (await on.backend()).expect(LOGIN)
        client.close()
    assert "the other side has shown no certificate" in caplog.text
    assert "the other side's certificate is not accepted" in caplog.text


async def test_past_the_connection_limit_the_sentence_comes_over_tls_too(
    certificate: ListenerTls, client_tls: ssl.SSLContext
) -> None:
    async with stage(listeners=(listener(certificate),), connections_max=1) as on:
        await on.connect()
        await eventually(lambda: on.proxy.connection_count == 1)
        client = await connect(on.proxy.port, client_tls)
        reader = SaslReader()
        reader.feed(await client.rest())
        message = reader.next_message()
        assert message is not None
        assert b"serves 1 connections already" in message.body


# --- certificates that change


async def test_a_renewed_certificate_is_shown_to_who_comes_and_ends_no_session(
    authority: trustme.CA, certificate: ListenerTls, tmp_path: Path, client_tls: ssl.SSLContext
) -> None:
    async with stage(listeners=(listener(certificate),)) as on:
        before = await connect(on.proxy.port, client_tls)
        before.send(LOGIN)
        backend = await on.backend()
        await backend.expect(LOGIN)
        issued(authority, tmp_path)
        on.proxy.reload_certificates()
        after = await connect(on.proxy.port, client_tls)
        assert serial_shown(after) != serial_shown(before)
        backend.send(ACCEPTED)
        await before.expect(ACCEPTED)
        before.close()
        after.close()


async def test_a_hang_up_signal_renews_the_certificates_of_a_running_proxy(
    authority: trustme.CA, certificate: ListenerTls, tmp_path: Path, client_tls: ssl.SSLContext
) -> None:
    config = tmp_path / "starpruner.toml"
    files = f'tls_certificate = "{certificate.certificate}"\ntls_key = "{certificate.key}"\n'
    config.write_text(f'[[listener]]\nlisten = "{HOST}:0"\n{files}')
    nobody = Endpoint(HOST, 1)
    with proxy_process(nobody, tmp_path, options=("--config", str(config))) as proxy:
        (port,) = re.findall(r"also on \S+:(\d+) \(sasl over TLS\)", proxy.child.log.read_text())
        before = await connect(int(port), client_tls)
        issued(authority, tmp_path)
        proxy.child.process.send_signal(signal.SIGHUP)
        async with asyncio.timeout(PATIENCE_S):
            while serial_shown(after := await connect(int(port), client_tls)) == serial_shown(before):
                after.close()
                await asyncio.sleep(0.1)
        after.close()
        # Who came before goes on.
        before.send(LOGIN)
        assert b"cannot reach the backend" in await before.reader.readuntil(b"backend")
        before.close()
        # Whoever connects may be who makes it look at the files, before the signal has come.
        await eventually(lambda: "the configuration was reloaded" in proxy.child.log.read_text())
        log = proxy.child.log.read_text()
        assert log.index("the certificates were reloaded") < log.index("the configuration was reloaded")
        config.write_text("[proxy]\nlisten_to_nobody = 1\n")
        proxy.child.process.send_signal(signal.SIGHUP)
        await eventually(lambda: "the previous one stays in use" in proxy.child.log.read_text())
        async with ClientSession() as session, session.get(f"{proxy.admin_url}/metrics") as answer:
            told = await answer.text()
    assert 'starpruner_config_reloads_total{result="applied"} 1.0' in told
    assert 'starpruner_config_reloads_total{result="refused"} 1.0' in told
    assert re.search(rf'^starpruner_certificate_left_seconds{{listener="{HOST}:0"}} \S+$', told, re.MULTILINE)


def test_files_that_change_are_noticed_within_a_while(
    authority: trustme.CA, certificate: ListenerTls, tmp_path: Path
) -> None:
    clock = Clock()
    certificates = Certificates.of_listener("listener", certificate, clock)
    first = certificates.context()
    issued(authority, tmp_path)
    clock.now = CHECK_EVERY_S / 2
    assert certificates.context() is first
    clock.now = CHECK_EVERY_S
    renewed = certificates.context()
    assert renewed is not first
    clock.now = 3 * CHECK_EVERY_S
    assert certificates.context() is renewed, "nothing has changed since"


def test_the_end_of_the_certificate_in_use_is_told(authority: trustme.CA, certificate: ListenerTls) -> None:
    end = datetime(2049, 2, 3, 4, 5, 6, tzinfo=UTC)
    shown = authority.issue_cert(HOST, not_after=end)
    shown.private_key_pem.write_to_path(certificate.key)
    shown.cert_chain_pems[0].write_to_path(certificate.certificate)
    certificates = Certificates.of_listener("listener h:1", certificate, Clock())
    assert certificates.end == end.timestamp()
    certificate.certificate.write_bytes(authority.issue_cert(HOST).cert_chain_pems[0].bytes())
    certificates.reload()
    assert certificates.end == end.timestamp(), "the new one is of another key: it is not in use"
    ours = shown.cert_chain_pems[0].bytes().replace(b" CERTIFICATE", b" TRUSTED CERTIFICATE")
    certificate.certificate.write_bytes(ours)
    before = certificates.context()
    certificates.reload()
    assert certificates.context() is not before, "OpenSSL takes this form"
    assert certificates.end is None


@pytest.mark.parametrize("damage", ["garbage", "of another key", "gone"])
def test_new_files_that_cannot_be_used_leave_the_old_ones_in_place(
    authority: trustme.CA,
    certificate: ListenerTls,
    caplog: pytest.LogCaptureFixture,
    damage: str,
) -> None:
    clock = Clock()
    certificates = Certificates.of_listener("listener h:1", certificate, clock)
    first = certificates.context()
    good = certificate.key.read_bytes()
    match damage:
        case "garbage":
            certificate.key.write_text("nonsense")
        case "of another key":
            authority.issue_cert(HOST).private_key_pem.write_to_path(certificate.key)
        case _:
            certificate.key.unlink()
    clock.now = CHECK_EVERY_S
    assert certificates.context() is first
    assert len(caplog.messages) == 1
    assert "the certificates read before stay in use" in caplog.text
    clock.now = 2 * CHECK_EVERY_S
    certificates.context()
    assert len(caplog.messages) == 1, "it is said once"
    certificate.key.write_bytes(good)
    os.utime(certificate.key, ns=(1, 1))
    clock.now = 3 * CHECK_EVERY_S
    assert certificates.context() is not first


@pytest.mark.parametrize("missing", ["certificate", "key", "client_ca"])
def test_files_that_cannot_be_read_at_start_are_named(
    certificate: ListenerTls, trusted: Path, tmp_path: Path, missing: str
) -> None:
    whole = replace(certificate, client_ca=trusted)
    with pytest.raises(ConfigError, match=r"listener h:1: .*"):
        Certificates.of_listener("listener h:1", replace(whole, **{missing: tmp_path / "none"}), Clock())


# --- the backend's side


@asynccontextmanager
async def tls_backend(tls: ssl.SSLContext) -> AsyncIterator[tuple[int, "asyncio.Queue[Peer]"]]:
    peers: asyncio.Queue[Peer] = asyncio.Queue()
    accepted: list[Peer] = []

    async def meet(peer: Peer) -> None:
        accepted.append(peer)
        peers.put_nowait(peer)

    server = StandInServer(meet, tls=tls)
    try:
        yield server.port, peers
    finally:
        server.close()
        # What is still open when the loop ends would be a warning in whichever test collects it.
        for peer in accepted:
            await peer.closed()


def server_tls(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*(names or (HOST,))).configure_cert(context)
    return context


async def logged_in(port: int, peers: "asyncio.Queue[Peer]", upstream: UpstreamSection) -> None:
    """Log in there and leave again."""
    link = BinaryLink(Address(HOST, port), Dialer(upstream, PATIENCE_S), PATIENCE_S)

    async def accept() -> None:
        peer = await peers.get()
        await peer.reader.readexactly(10)
        peer.send(ACCEPTED)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(accept())
        await link.open(b"\0user\0password", "a client")
    link.close()


async def test_a_backend_is_spoken_to_over_tls(authority: trustme.CA, trusted: Path) -> None:
    async with tls_backend(server_tls(authority)) as (port, peers):
        upstream = UpstreamSection(tls=UpstreamTls(ca=trusted))
        async with stage(backend_port=port, upstream=upstream) as on:
            client = await on.connect()
            client.send(LOGIN)
            backend = await peers.get()
            await backend.expect(LOGIN)
            backend.send(ACCEPTED)
            await client.expect(ACCEPTED)
            await reaches(client, backend, close_session())
            client.close()
            assert await backend.rest() == b""
            backend.close()


@pytest.mark.parametrize(
    ("names", "trusts", "complaint"),
    [
        (("elsewhere.example.org",), True, "IP address mismatch"),
        ((HOST,), False, "unable to get local issuer certificate"),
    ],
    ids=["for another host", "by another authority"],
)
async def test_a_backend_that_is_not_known_to_be_itself_is_not_spoken_to(
    authority: trustme.CA, tmp_path: Path, names: tuple[str, ...], complaint: str, *, trusts: bool
) -> None:
    path = tmp_path / "trusted.pem"
    (authority if trusts else trustme.CA()).cert_pem.write_to_path(path)
    upstream = UpstreamSection(tls=UpstreamTls(ca=path))
    async with (
        tls_backend(server_tls(authority, *names)) as (port, _),
        stage(backend_port=port, upstream=upstream) as on,
    ):
        client = await on.connect()
        client.send(LOGIN)
        reader = SaslReader()
        reader.feed(await client.rest())
        message = reader.next_message()
        assert message is not None
        assert b"the other side's certificate is not accepted: " in message.body
        assert complaint.encode() in message.body


async def test_a_backends_certificate_may_be_for_the_name_that_the_configuration_says(
    authority: trustme.CA, trusted: Path
) -> None:
    async with tls_backend(server_tls(authority, "spark.example.org")) as (port, peers):
        upstream = UpstreamSection(tls=UpstreamTls(ca=trusted, server_name="spark.example.org"))
        await logged_in(port, peers, upstream)


async def test_a_backend_is_shown_our_own_certificate(
    authority: trustme.CA, certificate: ListenerTls, trusted: Path
) -> None:
    tls = server_tls(authority)
    authority.configure_trust(tls)
    tls.verify_mode = ssl.CERT_REQUIRED
    async with tls_backend(tls) as (port, peers):
        own = UpstreamTls(trusted, None, certificate.certificate, certificate.key)
        await logged_in(port, peers, UpstreamSection(tls=own))


async def test_a_backend_without_tls_is_named_as_such(trusted: Path) -> None:
    async with stage() as on:
        port = on.backend_port
        link = BinaryLink(
            Address(HOST, port), Dialer(UpstreamSection(tls=UpstreamTls(ca=trusted)), PATIENCE_S), PATIENCE_S
        )

        async def answer() -> None:
            (await on.backend()).send(ACCEPTED * 10)

        answering = asyncio.create_task(answer())
        with pytest.raises(BackendError, match="no TLS: the other side speaks without TLS"):
            await link.open(b"\0user\0password", "a client")
        await answering


async def test_a_query_of_ours_is_ended_over_tls_before_the_connection_is(
    authority: trustme.CA, trusted: Path
) -> None:
    async with tls_backend(server_tls(authority)) as (port, peers):
        upstream = UpstreamSection(tls=UpstreamTls(ca=trusted))
        async with stage(Rewriter(queries=(QUERY,)), backend_port=port, upstream=upstream) as on:
            client = await on.connect()
            client.send(LOGIN + open_session())
            backend = await peers.get()
            await backend.expect(LOGIN)
            backend.send(ACCEPTED)
            await backend.expect(open_session())
            backend.send(session_opened())
            await client.expect(ACCEPTED + session_opened())
            client.send(execute("SELECT 1", 2))
            assert b"SELECT k" in await backend.read_frame()
            client.close()
            await on.all_gone()
            backend.send(executed(1))
            await backend.expect(operation_call("CancelOperation") + operation_call("CloseOperation"))
            assert on.proxy.closing_connection_count == 1
            backend.send(reply("CancelOperation") + reply("CloseOperation"))
            assert await backend.rest() == b""
            await eventually(lambda: on.proxy.closing_connection_count == 0)
            backend.close()
