"""Long wrapped replies for clients that do not take them: memory is bounded, and other clients are served."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest
from kerberos_realm import Realm, running_realm
from support.footprint import footprint
from support.kdc import REALM, require_kerberos
from support.relay_dialogue import fetch, open_session, reply, session_opened
from support.scripted_session import HOST, Peer, StandInServer, eventually, stage

from demo.hive import Endpoint
from demo.proxy_process import proxy_process
from proxy.config.memory_shares import AMPLE, REPLY_COPIES
from proxy.net import reply_room
from proxy.wire.thrift.writer import Writer

require_kerberos()
from kerberos_sessions import backend_context, client_context, logged_in, open_both, opening_for  # noqa: E402
from support.gssapi_peer import GssPeer  # noqa: E402

MB = 1024 * 1024
# Longer than what the sockets on the way hold.
ROWS = reply("FetchResults", 1, Writer().binary(3, bytes(12 * MB)))
# For one such reply.
SMALL = replace(AMPLE, reply_bytes=REPLY_COPIES * len(ROWS) + MB)

LIMIT_BYTES = 192 * MB
SLOW_CLIENTS = 20
# As long as the limit allows. Those of all clients are more than the limit, beside the proxy itself.
LONGEST = reply("FetchResults", 1, Writer().binary(3, bytes(6 * MB)))
LOOK_S = 0.01

both_wrappings = pytest.mark.parametrize("qop", ["auth-int", "auth-conf"])


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with running_realm(tmp_path_factory.mktemp("realm")) as found:
        yield found


class BackendWithRows:
    """It answers each fetch with a long reply, wrapped as Spark does it: all of it in one token."""

    def __init__(self, realm: Realm) -> None:
        self._realm = realm
        self._served: set[Peer] = set()
        self.fetched = 0

    async def __aenter__(self) -> Self:
        self._server = StandInServer(self._serve)
        self.endpoint = Endpoint(HOST, self._server.port)
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()
        # The proxy has ended, and with it the connections.
        await eventually(lambda: not self._served)

    async def _serve(self, peer: Peer) -> None:
        self._served.add(peer)
        backend = GssPeer(peer, backend_context(self._realm))
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await backend.take_login("auth-conf")
            while b"FetchResults" not in await backend.read_message():
                backend.send(session_opened())
            backend.send(LONGEST)
            self.fetched += 1
            await backend.read_message()
        await peer.closed()
        self._served.remove(peer)


async def session_at(proxy: Endpoint, realm: Realm) -> GssPeer:
    peer = Peer(*await asyncio.open_connection(proxy.host, proxy.port))
    client = GssPeer(peer, client_context(realm))
    await client.log_in()
    client.send(open_session())
    await client.expect(session_opened())
    return client


def peak_of(pid: int, is_over: threading.Event) -> int:
    """The most memory that a process has meanwhile."""
    peak = 0
    while not is_over.wait(LOOK_S):
        peak = max(peak, footprint(pid).bytes)
    return peak


async def test_replies_for_many_slow_clients_stay_within_the_limit(realm: Realm, tmp_path: Path) -> None:
    settings = {
        "proxy.memory_bytes_max": LIMIT_BYTES,
        "kerberos.principal": realm.PROXY,
        "kerberos.keytab": realm.proxy_keytab,
        "kerberos.backend_principal": f"hive/_HOST@{REALM}",
        "kerberos.backend_qop": "auth-conf",
    }
    options = tuple(word for key, value in settings.items() for word in ("--set", f"{key}={value}"))
    async with BackendWithRows(realm) as backend:
        with proxy_process(backend.endpoint, tmp_path, options=options) as proxy:
            clients = [await session_at(proxy.endpoint, realm) for _ in range(SLOW_CLIENTS)]
            is_over = threading.Event()
            looking = asyncio.create_task(asyncio.to_thread(peak_of, proxy.child.process.pid, is_over))
            for client in clients:
                client.send(fetch())
            await eventually(lambda: backend.fetched == SLOW_CLIENTS)
            await asyncio.sleep(1)
            other = await session_at(proxy.endpoint, realm)
            await other.peer.closed()
            is_over.set()
            assert await looking < LIMIT_BYTES
            # At once: one that would take nothing for long, while others wait, is ended.
            await asyncio.gather(*(client.expect(LONGEST) for client in clients))
            for client in clients:
                await client.peer.closed()


@both_wrappings
async def test_a_reply_waits_for_the_room_of_another(realm: Realm, qop: str) -> None:
    async with stage(kerberos=realm.to_backend(backend_qop=qop), memory=SMALL) as on:
        pairs = [await logged_in(on, realm, "auth", qop) for _ in range(3)]
        for client, backend in pairs:
            await open_both(client, backend, opening_for("anna"))
            client.send(fetch())
            await backend.expect(fetch())
            backend.send(ROWS)
        await eventually(lambda: on.proxy.reply_room.waited == 2)
        assert on.proxy.reply_room.held_bytes <= SMALL.reply_bytes
        for client, _ in pairs:
            await client.expect(ROWS)
        assert on.proxy.reply_room.held_bytes == on.proxy.reply_room.refused == 0


async def test_a_client_that_takes_nothing_gives_way(
    realm: Realm, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reply_room, "STALLED_S", 0.3)
    async with stage(kerberos=realm.to_backend(backend_qop="auth-conf"), memory=SMALL) as on:
        slow, slows_backend = await logged_in(on, realm, "auth", "auth-conf")
        slow.send(fetch())
        await slows_backend.expect(fetch())
        slows_backend.send(ROWS)
        await eventually(lambda: on.proxy.reply_room.held_bytes > 0)
        client, backend = await logged_in(on, realm, "auth-conf", "auth-conf")
        client.send(fetch())
        await backend.expect(fetch())
        backend.send(ROWS)
        await client.expect(ROWS)
        assert on.proxy.reply_room.refused == 1
        assert "a reply stood still for 0.3 s while memory was short" in caplog.text
        got = await slow.peer.rest()
        assert len(got) < len(ROWS)
        assert ROWS.startswith(got), "an error of ours would be read as rows"


async def test_a_reply_that_never_fits_is_answered_by_a_sentence(realm: Realm) -> None:
    too_small = replace(AMPLE, reply_bytes=REPLY_COPIES * 4 * MB)
    async with stage(kerberos=realm.to_backend(backend_qop="auth-conf"), memory=too_small) as on:
        client, backend = await logged_in(on, realm, "auth-conf", "auth-conf")
        await open_both(client, backend, opening_for("anna"))
        client.send(fetch())
        await backend.expect(fetch())
        backend.send(ROWS)
        said = await client.read_message()
        assert b"no memory for a reply of 12 MB (memory_bytes_max): fetch fewer rows at once" in said
        assert b"08S01" in said
        assert await client.peer.rest() == b""
