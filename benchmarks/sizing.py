"""The proxy's processor time and memory, from which a machine for it is sized: the tables of docs/operations.md.

A backend that has its answers ready serves statements that pass, results and idle sessions, and costs the proxy
nothing else. Spark Thrift Server with a small star serves statements that are decided about.
"""

import asyncio
import platform
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import uvloop
from async_client import AsyncClient
from canned_backend import BATCH_BYTES, canned_backend
from command_line import directory_option, end_with_servers, memory_option
from counting_client import CountingClient
from dashboard_tables import DashboardTables
from processor_time import processor_s
from proxy_counters import ProxyCounters, grown, key_queries, rewritten_statements
from reports import json_option, write_json
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from star_server import StarServer, star_server
from support.footprint import footprint

from demo.hive import Endpoint, connect, run
from demo.progress import Progress, shown_progress
from demo.proxy_process import ProxyProcess, proxy_process

_PARTITIONS, _ROWS = 100, 500
# A statement with the cheapest of all results: the canned backend has no rows for it.
_PASSING = "SELECT 0"
# As long as what BI tools send, with nothing to join.
_LONGER = f"SELECT {', '.join(f'column_{number} AS alias_{number}' for number in range(60))}, 0"
# Statements on Spark that do not count.
_WARM_UPS = 40
_IDLE_SESSIONS = (1_000, 5_000)
_RUNNING_SESSIONS = 400
_RUNNING_CHARACTERS = 10_000
_CONNECTIONS = ("--set", "proxy.backend_connections_max=5100", "--set", "proxy.connections_max=5100")
_MEGABYTE, _GIGABYTE = 1e6, 1e9


@dataclass(frozen=True)
class Statements:
    """Statements of one kind, from their execution to their last row, on one session after the other."""

    kind: str
    statements: int
    characters: int
    # The proxy's processor time.
    cpu_s_per_1000: float
    narrowed: int = 0
    key_queries: int = 0


@dataclass(frozen=True)
class Memory:
    """Memory of a session, as the proxy's resident memory grows with many of them."""

    kind: str
    sessions: int
    bytes_per_session: float


@dataclass(frozen=True)
class Report:
    """All measurements."""

    python: str
    machine: str
    idle_bytes: int
    cpu_s_per_gigabyte: float
    statements: Sequence[Statements]
    memory: Sequence[Memory]


def passing(endpoint: Endpoint, pid: int, count: int, kind: str, sql: str) -> Statements:
    """The cost of a statement that passes."""
    with CountingClient(endpoint) as client:
        _ = client.fetch_all(sql)
        spent = _spending(pid)
        for _ in range(count):
            _ = client.fetch_all(sql)
        return Statements(kind, count, len(sql), _per_thousand(spent(), count))


def fetching(endpoint: Endpoint, pid: int, gigabytes: float) -> float:
    """The seconds of processor time that each gigabyte of results takes."""
    sql = f"SELECT {max(1, int(gigabytes * _GIGABYTE / BATCH_BYTES))}"
    with CountingClient(endpoint) as client:
        spent = _spending(pid)
        fetched = client.fetch_all(sql)
        return spent() * _GIGABYTE / fetched


async def idle(endpoint: Endpoint, pid: int, progress: Progress) -> list[Memory]:
    """Sessions that have been opened, and nothing else: as many more each time, since memory is not given back."""
    before, clients, found = footprint(pid).bytes, list[AsyncClient](), list[Memory]()
    for count in _IDLE_SESSIONS:
        progress(f"Opening {count:,} sessions")
        clients += await AsyncClient.crowd(endpoint, count - len(clients))
        found.append(Memory(f"idle, of {count:,}", count, (footprint(pid).bytes - before) / count))
    await asyncio.gather(*(client.leave() for client in clients))
    return found


async def running(endpoint: Endpoint, pid: int) -> Memory:
    """Sessions with a statement each, which has not been closed."""
    clients = await AsyncClient.crowd(endpoint, _RUNNING_SESSIONS)
    before = footprint(pid).bytes
    sql = f"SELECT 1 /* {'x' * _RUNNING_CHARACTERS} */ AS n"
    await asyncio.gather(*(client.execute(sql) for client in clients))
    grown_by = footprint(pid).bytes - before
    await asyncio.gather(*(client.leave() for client in clients))
    kind = f"with a statement of {_RUNNING_CHARACTERS // 1000} KB, more than idle"
    return Memory(kind, _RUNNING_SESSIONS, grown_by / _RUNNING_SESSIONS)


# How a proxy on Spark is configured for each kind of decision.
_DECISIONS = {
    "passed through, rewriting switched off": ("rewrite.enabled=false",),
    "decided, and left alone by the cost gate": (),
    "narrowed, keys remembered and checked beside it": ("rewrite.cost_gate=false",),
    "narrowed, keys asked for first": ("rewrite.cost_gate=false", "rewrite.keys_remembered_s=0"),
}


def deciding(server: StarServer, tables: DashboardTables, count: int, progress: Progress) -> Iterator[Statements]:
    """The cost of a statement that is decided about, for each kind of decision."""
    sqls = tables.short(_PARTITIONS)
    for kind, settings in _DECISIONS.items():
        progress(f"Measuring statements on Spark: {kind}")
        options = tuple(word for setting in settings for word in ("--set", setting))
        with (
            proxy_process(server.server.endpoint, server.directory / "proxy", options=options) as proxy,
            closing(connect(proxy.endpoint)) as session,
        ):
            counters, pid = ProxyCounters(proxy.admin_url), proxy.child.process.pid
            # Descriptions are fetched, and the cost gate learns.
            for sql in sqls[:_WARM_UPS]:
                _ = run(session, sql)
            before, spent = counters.now(), _spending(pid)
            for number in range(count):
                _ = run(session, sqls[number % len(sqls)])
            seconds, growth = spent(), grown(before, counters.now())
            characters = sum(map(len, sqls)) // len(sqls)
            yield Statements(
                *(kind, count, characters, _per_thousand(seconds, count)),
                *(rewritten_statements(growth), key_queries(growth)),
            )


@contextmanager
def canned_stage(directory: Path) -> Iterator[tuple[ProxyProcess, int]]:
    """A proxy in front of the canned backend, and its process."""
    with canned_backend() as backend, proxy_process(backend, directory, options=_CONNECTIONS) as proxy:
        yield proxy, proxy.child.process.pid


def measured(  # noqa: PLR0913 - what to measure, and where
    directory: Path, memory: str, count: int, gigabytes: float, progress: Progress, *, with_spark: bool
) -> Report:
    """Everything."""
    with canned_stage(directory / "canned") as (proxy, pid):
        progress(f"Sending {count:,} statements that pass")
        statements = [
            passing(proxy.endpoint, pid, count, "without a join, short", _PASSING),
            passing(proxy.endpoint, pid, count, "without a join, longer", _LONGER),
        ]
        progress(f"Fetching {gigabytes:g} GB")
        cpu_s_per_gigabyte = fetching(proxy.endpoint, pid, gigabytes)
    with canned_stage(directory / "canned") as (proxy, pid):
        idle_bytes = footprint(pid).bytes
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            sessions = runner.run(idle(proxy.endpoint, pid, progress))
            sessions.append(runner.run(running(proxy.endpoint, pid)))
    if with_spark:
        tables = DashboardTables(_PARTITIONS, _ROWS)
        with star_server(directory / "star", memory, tables, progress) as server:
            statements += deciding(server, tables, min(count, 500), progress)
    return Report(
        platform.python_version(), platform.platform(), idle_bytes, cpu_s_per_gigabyte, statements, sessions
    )


def show(console: Console, report: Report) -> None:
    """Print the tables."""
    table = Table("statement", box=SIMPLE)
    for name in ("cpu s for 1,000", "characters", "narrowed", "key queries"):
        table.add_column(name, justify="right")
    for one in report.statements:
        numbers = (f"{one.cpu_s_per_1000:.2f}", one.characters, one.narrowed, one.key_queries)
        table.add_row(one.kind, *map(str, numbers))
    console.print(table)
    console.print(f"Processor time of each GB fetched: {report.cpu_s_per_gigabyte:.2f} s", highlight=False)
    console.print(f"Memory without sessions: {report.idle_bytes / _MEGABYTE:.0f} MB", highlight=False)
    for held in report.memory:
        console.print(f"Memory of a session, {held.kind}: {held.bytes_per_session / 1e3:.0f} KB", highlight=False)


def _spending(pid: int) -> Callable[[], float]:
    """A clock of the process's processor time, from now on."""
    before = _processor_s(pid)
    return lambda: _processor_s(pid) - before


def _processor_s(pid: int) -> float:
    seconds = processor_s(pid)
    return footprint(pid).cpu_s if seconds is None else seconds


def _per_thousand(seconds: float, count: int) -> float:
    return seconds / count * 1_000


@click.command()
@json_option
@directory_option("sizing", "Where the tables are kept, and the logs.")
@memory_option
@click.option("--count", type=click.IntRange(min=10), default=2_000, show_default=True, help="Statements.")
@click.option("--gigabytes", default=2.0, show_default=True, help="Gigabytes to fetch.")
@click.option("--spark/--no-spark", "with_spark", default=True, help="Measure decisions too, on Spark.")
def main(  # noqa: PLR0913 - one parameter per option
    *, json_path: Path | None, directory: Path, memory: str, count: int, gigabytes: float, with_spark: bool
) -> None:
    """Measure the proxy's processor time and memory."""
    end_with_servers()
    with shown_progress(Console(stderr=True)) as progress:
        report = measured(directory, memory, count, gigabytes, progress, with_spark=with_spark)
    write_json(json_path, report)
    show(Console(), report)


if __name__ == "__main__":
    main()
