"""Cost of Kerberos on the wire: results at each QOP directly and through the proxy, in turns, and logins.

A KDC of its own, a backend that has its answers ready and wraps them as Spark Thrift Server does (a message in one
token), and a client that unwraps and decodes nothing. Run by `make bench-kerberos`.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import click
import gssapi
from processor_time import processor_s
from rich.console import Console
from rich.table import Table
from support.gssapi_peer import GssPeer, initiator, name
from support.kdc import REALM, Kdc, running_kdc
from support.relay_dialogue import fetch, open_session, reply, session_opened
from support.scripted_session import Peer

from demo.hive import Endpoint, free_port
from demo.proxy_process import ProxyProcess, proxy_process
from proxy.wire.thrift.writer import Writer

QOPS: Final = ("auth", "auth-int", "auth-conf")
PROXY: Final = f"starpruner/localhost@{REALM}"
BACKEND: Final = f"hive/127.0.0.1@{REALM}"
# One reply to FetchResults: a batch of hive-jdbc's thousand rows has some hundred kilobytes to some megabytes.
REPLY_BYTES: Final = 1024 * 1024
_LOGINS: Final = 100


@dataclass(frozen=True)
class Measured:
    """Seconds of the runs, and the proxy's processor time for a gigabyte."""

    direct_s: list[float]
    proxied_s: list[float]
    processor_s_per_gigabyte: float


def serve(port: int, qop: str, keytab: str) -> None:
    """The backend, in a process of its own."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        keys = gssapi.Credentials(name=name(BACKEND), usage="accept", store={"keytab": keytab})
        peer = GssPeer(Peer(reader, writer), gssapi.SecurityContext(creds=keys, usage="accept"))
        rows = reply("FetchResults", 1, Writer().binary(3, os.urandom(REPLY_BYTES)))
        try:
            await peer.take_login(qop)
            while True:
                is_opening = b"OpenSession" in await peer.read_message()
                peer.send(session_opened() if is_opening else rows)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(accept, "127.0.0.1", port, limit=8 * REPLY_BYTES)
        await server.serve_forever()

    asyncio.run(run())


@contextmanager
def backend(qop: str, keytab: Path) -> Iterator[Endpoint]:
    """The backend until the end."""
    endpoint = Endpoint("127.0.0.1", free_port())
    process = get_context("fork").Process(target=serve, args=(endpoint.port, qop, str(keytab)), daemon=True)
    process.start()
    try:
        while not endpoint.listens():
            time.sleep(0.05)
        yield endpoint
    finally:
        process.terminate()


async def logged_in(endpoint: Endpoint, service: str, qop: str, ccache: str) -> GssPeer:
    """A client."""
    streams = await asyncio.open_connection(endpoint.host, endpoint.port, limit=8 * REPLY_BYTES)
    client = GssPeer(Peer(*streams), initiator(ccache, service))
    await client.log_in(qop)
    return client


async def fetched(endpoint: Endpoint, service: str, qop: str, ccache: str, replies: int) -> float:
    """The seconds of so many replies, one after the other."""
    client = await logged_in(endpoint, service, qop, ccache)
    client.send(open_session())
    await client.read_message()
    size = len(reply("FetchResults", 1, Writer().binary(3, bytes(REPLY_BYTES)))) - 4
    began = time.perf_counter()
    for _ in range(replies):
        client.send(fetch())
        left = size
        while left:
            left -= len(await client.read_message())
    taken = time.perf_counter() - began
    client.peer.close()
    return taken


async def logins(endpoint: Endpoint, service: str, ccache: str) -> float:
    """The median milliseconds of a login."""
    taken = []
    for _ in range(_LOGINS):
        began = time.perf_counter()
        client = await logged_in(endpoint, service, "auth", ccache)
        taken.append(1000 * (time.perf_counter() - began))
        client.peer.close()
    return statistics.median(taken)


@contextmanager
def kerberized_proxy(kdc: Kdc, keytab: Path, behind: Endpoint, qop: str) -> Iterator[ProxyProcess]:
    """The proxy with the same protection on both sides."""
    keys = {
        "principal": PROXY,
        "keytab": str(keytab),
        "qop": f'["{qop}"]',
        "backend_principal": f"hive/_HOST@{REALM}",
        "backend_qop": qop,
    }
    options = tuple(word for key, text in keys.items() for word in ("--set", f"kerberos.{key}={text}"))
    with proxy_process(behind, kdc.directory / f"proxy-{qop}", options=options) as running:
        yield running


def measured(kdc: Kdc, qop: str, replies: int, runs: int, keytabs: tuple[Path, Path]) -> tuple[Measured, Any]:
    """One QOP: results in turns, and logins."""
    ccache = f"FILE:{kdc.cache_of('anna')}"
    with ExitStack() as stack:
        behind = stack.enter_context(backend(qop, keytabs[1]))
        proxy = stack.enter_context(kerberized_proxy(kdc, keytabs[0], behind, qop))
        direct_s, proxied_s = [], []
        before = processor_s(proxy.child.process.pid) or 0.0
        for _ in range(runs):
            direct_s.append(asyncio.run(fetched(behind, BACKEND, qop, ccache, replies)))
            proxied_s.append(asyncio.run(fetched(proxy.endpoint, PROXY, qop, ccache, replies)))
        spent = (processor_s(proxy.child.process.pid) or 0.0) - before
        gigabytes = runs * replies * REPLY_BYTES / 1e9
        login_ms = None
        if qop == "auth":
            login_ms = (
                asyncio.run(logins(behind, BACKEND, ccache)),
                asyncio.run(logins(proxy.endpoint, PROXY, ccache)),
            )
        return Measured(direct_s, proxied_s, spent / gigabytes), login_ms


@click.command()
@click.option("--megabytes", default=500, help="Of each result.")
@click.option("--runs", default=5)
def main(megabytes: int, runs: int) -> None:
    """Measure, and print a table."""
    console, table = Console(), Table("QOP", "direct MB/s", "through the proxy MB/s", "ratio", "proxy CPU s/GB")
    with tempfile.TemporaryDirectory() as directory, running_kdc(Path(directory)) as kdc:
        os.environ.update({key: kdc.environment[key] for key in ("KRB5_CONFIG", "KRB5RCACHENAME")})
        keytabs = Path(directory) / "starpruner.keytab", Path(directory) / "hive.keytab"
        kdc.add_service("starpruner/localhost", keytabs[0])
        kdc.add_service("hive/127.0.0.1", keytabs[1])
        kdc.add_user("anna", "secret")
        kdc.log_in("anna", "secret")
        login_ms = None
        for qop in QOPS:
            found, took = measured(kdc, qop, megabytes, runs, keytabs)
            login_ms = took or login_ms
            direct, proxied = (
                megabytes * 1.048576 / statistics.median(s) for s in (found.direct_s, found.proxied_s)
            )
            ratio = proxied / direct
            table.add_row(
                qop, f"{direct:.0f}", f"{proxied:.0f}", f"{ratio:.2f}", f"{found.processor_s_per_gigabyte:.2f}"
            )
    console.print(table)
    if login_ms is not None:
        console.print(f"A login: {login_ms[0]:.1f} ms directly, {login_ms[1]:.1f} ms through the proxy (median)")


if __name__ == "__main__":
    main()
