"""The measurements of the wire as tables for a terminal, with losses marked."""

from collections.abc import Iterable, Sequence
from statistics import median

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from wire_measures import Crowd, Latency, Relayed, Speed

# A large result shall come at this part of the direct speed at least, and a short call take this much longer at
# most.
SPEED_MIN = 0.95
ADDED_MS_MAX = 0.2


def show(
    console: Console,
    speeds: Sequence[Speed],
    latencies: Sequence[Latency],
    relayed: Sequence[Relayed],
    crowds: Sequence[Crowd],
) -> None:
    """Print the tables, and the names of all clients and calls that lost."""
    console.print(
        _table("Large results", ("client", "direct s", "proxied s", "speed", "noise"), map(_speed_cells, speeds)),
        _table(
            "Short calls, in milliseconds",
            ("call", "direct p50", "proxied p50", "added", "direct p99", "proxied p99"),
            map(_latency_cells, latencies),
        ),
        _table(
            "Many sessions that call at once",
            ("sessions", "direct calls/s", "proxied calls/s", "ratio", "KB each"),
            map(_crowd_cells, crowds),
        ),
    )
    for one in relayed:
        console.print(
            f"Relayed {one.gigabytes:g} GB {one.wire} at {one.proxied_gb_per_s:.2f} GB/s, directly "
            f"{one.direct_gb_per_s:.2f}; the proxy takes {one.cpu_s_per_gb:.2f} s of processor time for each.",
            highlight=False,
        )
    lost = [one.client for one in speeds if one.speed < SPEED_MIN]
    lost += [one.call for one in latencies if one.proxied_p50_ms - one.direct_p50_ms > ADDED_MS_MAX]
    console.print(
        f"Below {SPEED_MIN} of the direct speed, or {ADDED_MS_MAX} ms slower: {', '.join(lost) or 'none'}.",
        highlight=False,
    )


def _table(title: str, names: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(names[0], title=title, title_justify="left", box=SIMPLE)
    for name in names[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _marked(text: str, *, lost: bool) -> str:
    return f"[bold red]{text}[/]" if lost else text


def _speed_cells(one: Speed) -> Sequence[str]:
    shown = _marked(f"{one.speed:.2f}", lost=one.speed < SPEED_MIN)
    direct_s, proxied_s = median(one.direct_s), median(one.proxied_s)
    return one.client, f"{direct_s:.2f}", f"{proxied_s:.2f}", shown, f"{one.noise:.0%}"


def _latency_cells(one: Latency) -> Sequence[str]:
    added = one.proxied_p50_ms - one.direct_p50_ms
    return (
        one.call,
        f"{one.direct_p50_ms:.3f}",
        f"{one.proxied_p50_ms:.3f}",
        _marked(f"{added:+.3f}", lost=added > ADDED_MS_MAX),
        f"{one.direct_p99_ms:.3f}",
        f"{one.proxied_p99_ms:.3f}",
    )


def _crowd_cells(one: Crowd) -> Sequence[str]:
    return (
        f"{one.sessions:,}",
        f"{one.direct_calls_per_s:,.0f}",
        f"{one.proxied_calls_per_s:,.0f}",
        f"{one.proxied_calls_per_s / one.direct_calls_per_s:.2f}",
        f"{one.proxy_bytes_per_session / 1024:.0f}",
    )
