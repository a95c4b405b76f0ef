"""The proxy's place in a real ZooKeeper, and the ways in which it may be lost."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.scripted_session import eventually
from support.zookeeper_server import zookeeper

from demo.hive import Endpoint, free_port
from demo.java import Java
from proxy.backends.zookeeper_nodes import advertised_address, connection_settings, node_prefix
from proxy.config.address import Address
from proxy.config.endpoints import Listener, ListenerTls, Transport

pytest.importorskip("kazoo", reason="needs the extra starpruner[zookeeper]")

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from proxy.backends.zookeeper import Ensemble, Node, Registration

PATIENCE_S = 30.0
NODE = Node(node_prefix(Address("proxy", 10_001), "0.1.0"), b"hive.server2.thrift.port=10001")


@pytest.fixture(scope="module")
def ensemble(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    endpoint = Endpoint("127.0.0.1", free_port())
    with zookeeper(java, endpoint, tmp_path_factory.mktemp("zookeeper")):
        yield endpoint


@contextmanager
def onlooker(endpoint: Endpoint) -> Iterator[KazooClient]:
    client = KazooClient(str(endpoint), timeout=10)
    client.start(PATIENCE_S)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def children(client: KazooClient, namespace: str) -> list[str]:
    try:
        found: list[str] = client.get_children(f"/{namespace}")
    except NoNodeError:
        return []
    return found


async def until_there_are(count: int, client: KazooClient, namespace: str) -> list[str]:
    async with asyncio.timeout(PATIENCE_S):
        while len(found := await asyncio.to_thread(children, client, namespace)) != count:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return found


async def test_a_proxy_is_there_as_hiveserver2_would_be_and_gone_when_it_says_so(ensemble: Endpoint) -> None:
    with onlooker(ensemble) as client:
        registered = Registration(Ensemble(str(ensemble), "there/and/gone"), [NODE])
        registered.start()
        (name,) = await until_there_are(1, client, "there/and/gone")
        assert name == "serverUri=proxy:10001;version=0.1.0;sequence=0000000000"
        content, stat = client.get(f"/there/and/gone/{name}")
        assert content == b"hive.server2.thrift.port=10001"
        assert stat.ephemeralOwner != 0, "it goes with a proxy that dies"
        await registered.close()
        assert children(client, "there/and/gone") == []


async def test_several_listeners_have_a_node_each(ensemble: Endpoint) -> None:
    nodes = [NODE, Node(node_prefix(Address("proxy", 10_002), "0.1.0"), b"")]
    with onlooker(ensemble) as client:
        registered = Registration(Ensemble(str(ensemble), "several"), nodes)
        registered.start()
        names = await until_there_are(2, client, "several")
        assert [name.partition(";")[0] for name in sorted(names)] == [
            "serverUri=proxy:10001",
            "serverUri=proxy:10002",
        ]
        await registered.close()


async def test_a_session_that_was_lost_is_followed_by_another_with_the_nodes(ensemble: Endpoint) -> None:
    with onlooker(ensemble) as client:
        registered = Registration(Ensemble(str(ensemble), "lost"), [NODE])
        registered.start()
        (before,) = await until_there_are(1, client, "lost")
        # Whoever has a session's number and password can end it, as ZooKeeper does when it has heard nothing.
        thief = KazooClient(str(ensemble), client_id=registered._client.client_id)  # noqa: SLF001 - the only way
        await asyncio.to_thread(thief.start, PATIENCE_S)
        await asyncio.to_thread(thief.stop)
        thief.close()
        async with asyncio.timeout(PATIENCE_S):
            while (names := await asyncio.to_thread(children, client, "lost")) in ([], [before]):  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(0.05)
        assert len(names) == 1
        await registered.close()


async def test_the_nodes_of_a_user_are_everybodys_to_read_and_nobody_elses_to_change(ensemble: Endpoint) -> None:
    with onlooker(ensemble) as client:
        mine = Ensemble(str(ensemble), "mine", "proxy", "secret word")
        registered = Registration(mine, [NODE])
        registered.start()
        (name,) = await until_there_are(1, client, "mine")
        assert client.get(f"/mine/{name}")[0] == NODE.content
        rights = {(acl.id.scheme, acl.perms) for acl in client.get_acls(f"/mine/{name}")[0]}
        assert rights == {("digest", 31), ("world", 1)}
        assert "secret" not in repr(mine)
        await registered.close()


async def test_without_zookeeper_the_proxy_waits_for_it_in_the_log(
    java: Java, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "proxy.backends")
    monkeypatch.setattr("proxy.backends.zookeeper._ABSENT_S", 0.5)
    endpoint = Endpoint("127.0.0.1", free_port())
    registered = Registration(Ensemble(str(endpoint), "late", "proxy", "secret word", session_s=2.0), [NODE])
    registered.start()
    await eventually(lambda: "cannot be reached" in caplog.text)
    with zookeeper(java, endpoint, tmp_path), onlooker(endpoint) as client:
        await until_there_are(1, client, "late")
        await eventually(lambda: "registered in ZooKeeper as /late/serverUri=proxy:10001" in caplog.text)
        await registered.close()
    assert "secret" not in caplog.text


@pytest.mark.parametrize(
    ("listener", "expected"),
    [
        (
            Listener(Address("0.0.0.0", 0)),  # noqa: S104 - nobody listens
            (
                "hive.server2.transport.mode=binary;hive.server2.thrift.port=7;"
                "hive.server2.thrift.sasl.qop=auth;hive.server2.authentication=NONE"
            ),
        ),
        (
            Listener(Address("::", 0), Transport.NOSASL),
            (
                "hive.server2.transport.mode=binary;hive.server2.thrift.port=7;"
                "hive.server2.thrift.sasl.qop=auth;hive.server2.authentication=NOSASL"
            ),
        ),
        (
            Listener(Address("::", 0), Transport.HTTP, ListenerTls(Path("c"), Path("k"))),
            (
                "hive.server2.transport.mode=http;hive.server2.thrift.http.port=7;"
                "hive.server2.thrift.http.path=cliservice"
            ),
        ),
    ],
)
def test_a_node_says_how_its_listener_is_spoken_to(listener: Listener, expected: str) -> None:
    address = advertised_address(listener, 7, "", "own.name")
    tls = "false" if listener.tls is None else "true"
    assert connection_settings(listener, address, "cliservice").decode() == (
        f"hive.server2.thrift.bind.host=own.name;hive.server2.use.SSL={tls};{expected}"
    )


def test_clients_are_told_the_host_that_is_listened_on_unless_another_is_advertised() -> None:
    listener = Listener(Address("10.0.0.1", 0))
    assert advertised_address(listener, 7, "", "own.name") == Address("10.0.0.1", 7)
    assert advertised_address(listener, 7, "advertised", "own.name") == Address("advertised", 7)
