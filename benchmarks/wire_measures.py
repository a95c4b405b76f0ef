"""Measurements of the wire, directly and through the proxy in turns, and their results."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter

from async_client import AsyncClient
from canned_backend import BATCH_BYTES
from counting_client import CountingClient
from support.footprint import footprint
from wire_clients import Fetch

from demo.hive import Endpoint

_GIGABYTE = 1e9
_MILLISECONDS = 1e3
_CALLS_AT_ONCE = 10


@dataclass(frozen=True)
class Speed:
    """A client that fetches a large result. The speed is relative to the direct one: 1.0 loses nothing."""

    client: str
    direct_s: Sequence[float]
    proxied_s: Sequence[float]
    speed: float
    # The spread of the middle half of the direct runs, as a part of their median.
    noise: float


def speed(client: str, direct: Fetch, proxied: Fetch, runs: int) -> Speed:
    """Let each side fetch so many times, after once to warm it up."""
    for fetch in (direct, proxied):
        _ = fetch()
    direct_s, proxied_s = _in_turns(direct, proxied, runs)
    low, _, high = quantiles(direct_s, n=4, method="inclusive")
    return Speed(
        client, direct_s, proxied_s, median(direct_s) / median(proxied_s), (high - low) / median(direct_s)
    )


def _in_turns(
    direct: Callable[[], float], proxied: Callable[[], float], runs: int
) -> tuple[list[float], list[float]]:
    """Run both in turns, so that neither always runs after the other."""
    direct_s: list[float] = []
    proxied_s: list[float] = []
    for number in range(runs):
        turns = [(direct, direct_s), (proxied, proxied_s)]
        for run, seconds in turns if number % 2 == 0 else reversed(turns):
            seconds.append(run())
    return direct_s, proxied_s


@dataclass(frozen=True)
class Latency:
    """The duration of one call, in milliseconds."""

    call: str
    direct_p50_ms: float
    proxied_p50_ms: float
    direct_p99_ms: float
    proxied_p99_ms: float


def latency(call: str, direct: Callable[[], object], proxied: Callable[[], object], calls: int) -> Latency:
    """Make so many calls on each side, some at a time."""
    took: tuple[list[float], list[float]] = [], []
    for _ in range(calls // _CALLS_AT_ONCE):
        for run, seconds in zip((direct, proxied), took, strict=True):
            seconds += [_timed(run) for _ in range(_CALLS_AT_ONCE)]
    (direct_p50, direct_p99), (proxied_p50, proxied_p99) = map(_percentiles_ms, took)
    return Latency(call, direct_p50, proxied_p50, direct_p99, proxied_p99)


def _timed(run: Callable[[], object]) -> float:
    start = perf_counter()
    _ = run()
    return perf_counter() - start


def _percentiles_ms(seconds: Sequence[float]) -> tuple[float, float]:
    cuts = quantiles(seconds, n=100, method="inclusive")
    return cuts[49] * _MILLISECONDS, cuts[98] * _MILLISECONDS


@dataclass(frozen=True)
class Relayed:
    """Bytes of a backend that has them ready, to a client that only counts them. The direct one speaks no TLS."""

    wire: str
    gigabytes: float
    direct_gb_per_s: float
    proxied_gb_per_s: float
    # The proxy's processor time.
    cpu_s_per_gb: float


def relayed(  # noqa: PLR0913 - two sides, and how much to fetch on each
    wire: str, direct: CountingClient, proxied: CountingClient, proxy_pid: int, *, gigabytes: float, runs: int
) -> Relayed:
    """Fetch so much on each side, several times."""
    sql = f"SELECT {max(1, int(gigabytes * _GIGABYTE / BATCH_BYTES))}"
    before = footprint(proxy_pid).cpu_s
    direct_s, proxied_s = _in_turns(
        lambda: _timed(lambda: direct.fetch_all(sql)), lambda: _timed(lambda: proxied.fetch_all(sql)), runs
    )
    cpu_s = footprint(proxy_pid).cpu_s - before
    fetched = gigabytes * runs
    direct_speed, proxied_speed = gigabytes / median(direct_s), gigabytes / median(proxied_s)
    return Relayed(wire, gigabytes, direct_speed, proxied_speed, cpu_s / fetched)


@dataclass(frozen=True)
class Crowd:
    """So many sessions that call at once, against a backend that answers at once."""

    sessions: int
    direct_calls_per_s: float
    proxied_calls_per_s: float
    proxy_bytes_per_session: float


async def crowd(backend: Endpoint, proxy: Endpoint, proxy_pid: int, sessions: int, calls: int) -> Crowd:
    """Open the sessions on each side, and let each make so many calls."""
    direct_s, _ = await _crowd_s(backend, proxy_pid, sessions, calls)
    proxied_s, held = await _crowd_s(proxy, proxy_pid, sessions, calls)
    total = sessions * calls
    return Crowd(sessions, total / direct_s, total / proxied_s, held / sessions)


async def _crowd_s(endpoint: Endpoint, proxy_pid: int, sessions: int, calls: int) -> tuple[float, int]:
    before = footprint(proxy_pid).bytes
    clients = await AsyncClient.crowd(endpoint, sessions)
    held = footprint(proxy_pid).bytes - before
    start = perf_counter()
    async with asyncio.TaskGroup() as group:
        for client in clients:
            _ = group.create_task(_calls(client, calls))
    seconds = perf_counter() - start
    for client in clients:
        await client.leave()
    return seconds, held


async def _calls(client: AsyncClient, calls: int) -> None:
    for _ in range(calls):
        await client.get_info()
