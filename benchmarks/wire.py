"""Cost of the wire: the same calls on one backend directly and through the proxy, in turns.

Spark Thrift Server answers large results to several clients, and short calls. A backend that has its answers
ready, which takes more load than Spark and costs nothing itself, serves relayed bytes and crowds of sessions. Both
also with clients that speak TLS.
"""

import asyncio
import platform
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import uvloop
from canned_backend import canned_backend
from command_line import directory_option, end_with_servers, runs_option
from counting_client import CountingClient
from reports import json_option, write_json
from rich.console import Console
from wire_clients import Fetch, beeline, compiled, counting, hive_jdbc, pyhive
from wire_measures import Crowd, Latency, Relayed, Speed, crowd, latency, relayed, speed
from wire_tables import show
from wire_tls import tls_proxy

from demo.hive import Endpoint
from demo.java import find_java
from demo.progress import Progress, shown_progress
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ServerOptions, thrift_server

CLIENTS = ("counting", "PyHive", "hive-jdbc", "beeline")
# The server's driver collects the results.
_MEMORY = "2g"
# The default would refuse the last sessions of the largest crowd.
_CONNECTIONS = ("--set", "proxy.backend_connections_max=1100")
_CALLS_PER_SESSION = 20
_SPARK = "Spark"
# A round trip takes less than a statement, and is measured more often.
_ROUND_TRIPS_PER_CALL = 10

Opening = Callable[[Endpoint, str, int], AbstractContextManager[Fetch]]


@dataclass(frozen=True)
class Sizes:
    """The sizes of the measurements."""

    rows: int
    runs: int
    calls: int
    gigabytes: float
    crowds: Sequence[int]
    clients: Sequence[str]


@dataclass(frozen=True)
class Report:
    """All measurements."""

    python: str
    machine: str
    sizes: Sizes
    speeds: Sequence[Speed]
    latencies: Sequence[Latency]
    relayed: Sequence[Relayed]
    crowds: Sequence[Crowd]


def fetched(
    backend: Endpoint, proxy: Endpoint, sizes: Sizes, directory: Path, progress: Progress
) -> Iterator[Speed]:
    """A large result with each client."""
    sql = f"SELECT id, concat('row ', id) AS label FROM range({sizes.rows})"
    for name, opening in zip(CLIENTS, _openings(directory), strict=True):
        if name in sizes.clients:
            progress(f"Fetching {sizes.rows:,} rows with {name}")
            with opening(backend, sql, sizes.rows) as direct, opening(proxy, sql, sizes.rows) as proxied:
                yield speed(name, direct, proxied, sizes.runs)


def _openings(directory: Path) -> Sequence[Opening]:
    java = find_java()
    return counting, pyhive, partial(hive_jdbc, java, compiled(java, directory)), partial(beeline, java)


def short_calls(
    backend: Endpoint, proxy: Endpoint, where: str, sizes: Sizes, trust: ssl.SSLContext | None = None
) -> Iterator[Latency]:
    """A round trip, and a statement from its execution to its last row; over TLS if `trust` is given."""
    # The canned backend's `select 1` has a megabyte of rows; both of these have next to none.
    sql = "select 1" if where == _SPARK else "select 0"
    with CountingClient(backend) as direct, CountingClient(proxy, trust) as proxied:
        round_trips = sizes.calls * _ROUND_TRIPS_PER_CALL
        yield latency(f"GetInfo, {where}", direct.get_info, proxied.get_info, round_trips)
        yield latency(
            f"{sql}, {where}", lambda: direct.fetch_all(sql), lambda: proxied.fetch_all(sql), sizes.calls
        )


def crowds(backend: Endpoint, proxy: ProxyProcess, sizes: Sizes, progress: Progress) -> Iterator[Crowd]:
    """Many sessions that call at once."""
    for sessions in sizes.crowds:
        progress(f"Opening {sessions:,} sessions")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            pid = proxy.child.process.pid
            yield runner.run(crowd(backend, proxy.endpoint, pid, sessions, _CALLS_PER_SESSION))


def measured(sizes: Sizes, directory: Path, backend: Endpoint | None, progress: Progress) -> Report:
    """Everything, on a server that is started unless one is named."""
    with ExitStack() as stack:
        if backend is None:
            settings = ServerOptions(directory / "server", memory=_MEMORY)
            backend = stack.enter_context(thrift_server(settings, find_java(), progress)).endpoint
        proxy = stack.enter_context(proxy_process(backend, directory / "proxy"))
        speeds = list(fetched(backend, proxy.endpoint, sizes, directory, progress))
        progress("Making short calls")
        latencies = list(short_calls(backend, proxy.endpoint, _SPARK, sizes))
    with canned_backend() as canned, proxy_process(canned, directory / "proxy", options=_CONNECTIONS) as proxy:
        latencies += short_calls(canned, proxy.endpoint, "canned", sizes)
        progress(f"Relaying {sizes.gigabytes:g} GB at a time")
        with CountingClient(canned) as direct, CountingClient(proxy.endpoint) as proxied:
            pid = proxy.child.process.pid
            passed = [relayed("as it comes", direct, proxied, pid, gigabytes=sizes.gigabytes, runs=sizes.runs)]
        found = list(crowds(canned, proxy, sizes, progress))
    with canned_backend() as canned, tls_proxy(canned, directory / "tls", _CONNECTIONS) as secured:
        latencies += short_calls(canned, secured.endpoint, "canned, TLS to the proxy", sizes, secured.trust)
        progress(f"Relaying {sizes.gigabytes:g} GB at a time over TLS")
        with CountingClient(canned) as direct, CountingClient(secured.endpoint, secured.trust) as proxied:
            passed.append(
                relayed("over TLS", direct, proxied, secured.pid, gigabytes=sizes.gigabytes, runs=sizes.runs)
            )
    return Report(platform.python_version(), platform.platform(), sizes, speeds, latencies, passed, found)


@click.command()
@json_option
@directory_option("wire", "For the server and the logs.")
@click.option("--rows", default=200_000, show_default=True, help="Rows of a large result.")
@runs_option(7)
@click.option(
    "--calls", type=click.IntRange(min=10), default=200, show_default=True, help="Short calls on each side."
)
@click.option("--gigabytes", default=1.0, show_default=True, help="Gigabytes relayed in each run.")
@click.option("--crowd", "crowd_sizes", multiple=True, default=[200, 1_000], show_default=True, help="Sessions.")
@click.option("--client", "clients", multiple=True, type=click.Choice(CLIENTS), default=CLIENTS)
@click.option("--backend", metavar="HOST:PORT", show_default="one is started", help="A server on this machine.")
def main(  # noqa: PLR0913 - one parameter per option
    *,
    json_path: Path | None,
    directory: Path,
    rows: int,
    runs: int,
    calls: int,
    gigabytes: float,
    crowd_sizes: tuple[int, ...],
    clients: tuple[str, ...],
    backend: str | None,
) -> None:
    """Measure the cost of the wire."""
    end_with_servers()
    sizes = Sizes(rows, runs, calls, gigabytes, crowd_sizes, clients)
    endpoint = None if backend is None else Endpoint.parse(backend)
    with shown_progress(Console(stderr=True)) as progress:
        report = measured(sizes, directory, endpoint, progress)
    write_json(json_path, report)
    show(Console(), report.speeds, report.latencies, report.relayed, report.crowds)


if __name__ == "__main__":
    main()
