"""A dashboard of twelve statements over one star, refreshed by eight sessions, directly and through the proxy.

Each refresh asks all statements at once, with their windows of days moved on by one, and the next begins five
seconds later, or when the last has ended. A latency is the time from a refresh's beginning until a statement's
last row is there, with the wait for a session in it, as somebody sees it who looks at the page. Both sides refresh
the same days, in periods that alternate. Warm, the sessions stay open; cold, each period opens new ones, in which
Spark lists the fact's files anew, and begins with a newly started proxy.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from statistics import median, quantiles

import click
from command_line import directory_option, end_with_servers, memory_option
from dashboard_tables import DashboardTables, partitions_option
from intervals import Interval, median_interval
from pairs import COLD, WARM
from processor_time import processor_s
from proxy_counters import Counts, ProxyCounters, added, grown, key_queries, rewritten_statements
from pyhive import hive
from reports import json_option, write_json
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from star_server import StarServer, star_server

from demo.hive import Endpoint, Row, connect, run, same_answer
from demo.progress import Progress, shown_progress
from demo.proxy_process import ProxyProcess

_SESSIONS = 8
_EVERY_S = 5.0


@dataclass(frozen=True)
class Period:
    """Some refreshes on one side. Processor times are None where they are not known."""

    listing: str
    is_proxied: bool
    # Of every statement, and of each refresh until its last statement ended.
    latencies_s: Sequence[float]
    refreshes_s: Sequence[float]
    server_cpu_s: float | None
    proxy_cpu_s: float | None
    # The growth of the proxy's counters; of a direct period nothing.
    counters: Counts = field(default_factory=dict)


@dataclass(frozen=True)
class Percentiles:
    """Two latencies of one side."""

    p50_s: float
    p95_s: float


@dataclass(frozen=True)
class Compared:
    """Both sides in one state of the listing. Ratios are proxied to direct, of the median pair of periods."""

    direct: Percentiles
    proxied: Percentiles
    p50_ratio: float
    p50_interval: Interval
    p95_ratio: float
    p95_interval: Interval
    # In all proxied periods.
    statements: int
    rewritten: int
    key_queries: int
    counters: Counts


@dataclass(frozen=True)
class Settings:
    """The sizes of a run."""

    partitions: int
    rows_per_partition: int
    pairs: int
    refreshes: int
    refreshes_before: int
    cold_pairs: int


@dataclass(frozen=True)
class Report:
    """The periods so far, in the order in which they ran, and the comparison by the state of the listing."""

    settings: Settings
    other_answers: Sequence[str] = ()
    periods: Sequence[Period] = ()
    compared: dict[str, Compared] = field(default_factory=dict)


@dataclass(frozen=True)
class Refreshed:
    """One refresh: the latency of each statement, and its answer."""

    latencies_s: Sequence[float]
    answers: Sequence[Sequence[Row]]


class Board:
    """Open sessions on one side, each of which takes a statement when it is free."""

    def __init__(self, sessions: Sequence[hive.Connection], pool: ThreadPoolExecutor) -> None:
        self._free: SimpleQueue[hive.Connection] = SimpleQueue()
        for session in sessions:
            self._free.put(session)
        self._pool = pool

    def refresh(self, statements: Sequence[str]) -> Refreshed:
        """Ask all statements at once."""
        begun = time.perf_counter()

        def ask(sql: str) -> tuple[float, list[Row]]:
            session = self._free.get()
            try:
                rows = run(session, sql)
            finally:
                self._free.put(session)
            return time.perf_counter() - begun, rows

        latencies_s, answers = zip(*self._pool.map(ask, statements), strict=True)
        return Refreshed(latencies_s, answers)


@contextmanager
def opened_board(endpoint: Endpoint) -> Iterator[Board]:
    """A board with new sessions."""
    with ExitStack() as stack:
        sessions = [stack.enter_context(closing(connect(endpoint))) for _ in range(_SESSIONS)]
        # Ends before the sessions are closed.
        yield Board(sessions, stack.enter_context(ThreadPoolExecutor(_SESSIONS)))


@dataclass
class Bench:
    """The server, and the answers of the direct side by the number of the refresh."""

    server: StarServer
    tables: DashboardTables
    settings: Settings
    answers: dict[int, Sequence[Sequence[Row]]] = field(default_factory=dict)
    other_answers: list[str] = field(default_factory=list)

    def cold(self) -> Iterator[Period]:
        """Pairs of periods of a single refresh, each with new sessions, through a newly started proxy."""
        # Spark loads and compiles its own code meanwhile, at the cost of neither side.
        with opened_board(self.server.server.endpoint) as board:
            for number in range(self.settings.refreshes_before):
                _ = board.refresh(self.tables.dashboard(number))
        for number in range(self.settings.cold_pairs):
            for is_proxied in _order(number):
                with self.server.proxy() as proxy, self._board(proxy, is_proxied=is_proxied) as board:
                    yield self._period(board, proxy, COLD, range(number, number + 1), is_proxied=is_proxied)

    def warm(self) -> Iterator[Period]:
        """Pairs of periods with sessions that stay open, after refreshes that do not count."""
        per_period, before = self.settings.refreshes, self.settings.refreshes_before
        with (
            self.server.proxy() as proxy,
            self._board(proxy, is_proxied=False) as direct,
            self._board(proxy, is_proxied=True) as proxied,
        ):
            boards = {False: direct, True: proxied}
            for number in range(before):
                for is_proxied in _order(number):
                    _ = boards[is_proxied].refresh(self.tables.dashboard(number))
            for number in range(self.settings.pairs):
                first = before + number * per_period
                for is_proxied in _order(number):
                    numbers = range(first, first + per_period)
                    yield self._period(boards[is_proxied], proxy, WARM, numbers, is_proxied=is_proxied)

    @contextmanager
    def _board(self, proxy: ProxyProcess, *, is_proxied: bool) -> Iterator[Board]:
        with opened_board(proxy.endpoint if is_proxied else self.server.server.endpoint) as board:
            yield board

    def _period(
        self, board: Board, proxy: ProxyProcess, listing: str, numbers: range, *, is_proxied: bool
    ) -> Period:
        counters, pid = ProxyCounters(proxy.admin_url), proxy.child.process.pid
        counts, server_cpu_s, proxy_cpu_s = counters.now(), processor_s(self.server.pid), processor_s(pid)
        refreshes = [self._refreshed(board, number) for number in _paced(numbers, time.monotonic, time.sleep)]
        server_cpu_s, proxy_cpu_s = _since(server_cpu_s, self.server.pid), _since(proxy_cpu_s, pid)
        for number, refreshed in zip(numbers, refreshes, strict=True):
            self._compare(listing, number, refreshed.answers)
        return Period(
            listing,
            is_proxied,
            [latency_s for refreshed in refreshes for latency_s in refreshed.latencies_s],
            [max(refreshed.latencies_s) for refreshed in refreshes],
            server_cpu_s,
            proxy_cpu_s,
            grown(counts, counters.now()) if is_proxied else {},
        )

    def _refreshed(self, board: Board, number: int) -> Refreshed:
        return board.refresh(self.tables.dashboard(number))

    def _compare(self, listing: str, number: int, answers: Sequence[Sequence[Row]]) -> None:
        """Compare the answers of a refresh with those of the other side, once both are there."""
        others = self.answers.pop(number, None)
        if others is None:
            self.answers[number] = answers
            return
        pairs = enumerate(zip(others, answers, strict=True), start=1)
        self.other_answers += [
            f"{listing} refresh {number}, statement {statement}"
            for statement, (one, other) in pairs
            if not same_answer(one, other)
        ]


def _order(number: int) -> tuple[bool, bool]:
    """The sides of a pair's periods, True for the proxied one: neither side always runs after the other."""
    return (False, True) if number % 2 == 0 else (True, False)


def _paced(numbers: range, clock: Callable[[], float], sleep: Callable[[float], None]) -> Iterator[int]:
    """The numbers, each at its time: five seconds after the one before, or when that has been dealt with."""
    due = clock()
    for number in numbers:
        sleep(max(0.0, due - clock()))
        due = clock() + _EVERY_S
        yield number


def _since(before_s: float | None, pid: int) -> float | None:
    now_s = processor_s(pid)
    return None if before_s is None or now_s is None else now_s - before_s


def with_period(report: Report, period: Period, other_answers: Sequence[str]) -> Report:
    """The report with one more period in it."""
    periods = [*report.periods, period]
    found = {listing: compared([one for one in periods if one.listing == listing]) for listing in (COLD, WARM)}
    known = {listing: one for listing, one in found.items() if one is not None}
    return Report(report.settings, list(other_answers), periods, known)


def compared(periods: Sequence[Period]) -> Compared | None:
    """Both sides of these periods, which came in pairs; None before the first pair is whole."""
    # Of a pair that is not whole the second period is yet to come.
    whole = periods[: len(periods) // 2 * 2]
    if not whole:
        return None
    direct = [one for one in whole if not one.is_proxied]
    proxied = [one for one in whole if one.is_proxied]
    pairs = [(percentiles([before]), percentiles([after])) for before, after in zip(direct, proxied, strict=True)]
    p50_ratios = [after.p50_s / before.p50_s for before, after in pairs]
    p95_ratios = [after.p95_s / before.p95_s for before, after in pairs]
    counters = added([one.counters for one in proxied])
    return Compared(
        percentiles(direct),
        percentiles(proxied),
        median(p50_ratios),
        median_interval(p50_ratios),
        median(p95_ratios),
        median_interval(p95_ratios),
        statements=sum(len(one.latencies_s) for one in proxied),
        rewritten=rewritten_statements(counters),
        key_queries=key_queries(counters),
        counters=counters,
    )


def percentiles(periods: Sequence[Period]) -> Percentiles:
    """The latencies of all statements in these periods."""
    cuts = quantiles([latency for one in periods for latency in one.latencies_s], n=20, method="inclusive")
    return Percentiles(cuts[9], cuts[18])


def show(console: Console, report: Report) -> None:
    """Print a table of latencies, and what the proxy did."""
    for listing, found in report.compared.items():
        table = Table("", title=f"Listing {listing}", title_justify="left", box=SIMPLE)
        for name in ("direct s", "proxied s", "ratio", "interval"):
            table.add_column(name, justify="right", no_wrap=True)
        rows = (
            ("p50", found.direct.p50_s, found.proxied.p50_s, found.p50_ratio, found.p50_interval),
            ("p95", found.direct.p95_s, found.proxied.p95_s, found.p95_ratio, found.p95_interval),
        )
        for name, direct_s, proxied_s, ratio, interval in rows:
            ends = f"{interval.low:.2f} - {interval.high:.2f}"
            table.add_row(name, f"{direct_s:.3f}", f"{proxied_s:.3f}", f"{ratio:.2f}", ends)
        console.print(table)
        periods = [one for one in report.periods if one.listing == listing]
        direct, proxied = (_of_side(periods, is_proxied=is_proxied) for is_proxied in (False, True))
        console.print(
            f"{found.statements} statements through the proxy: {found.rewritten} narrowed, "
            f"{found.key_queries} key queries. Processor time of a refresh: {_cpu(direct)} directly, "
            f"{_cpu(proxied)} through the proxy. Refreshes that took longer than {_EVERY_S:g} s: "
            f"{_late(direct)} and {_late(proxied)}.\n",
            highlight=False,
        )
    settings = report.settings
    console.print(
        f"{settings.partitions} partitions of {settings.rows_per_partition:,} rows. Latencies of single "
        "statements since their refresh began. Ratio: proxied to direct, of the median pair of periods, and its "
        "interval.",
        style="dim",
    )


def _of_side(periods: Sequence[Period], *, is_proxied: bool) -> list[Period]:
    return [one for one in periods if one.is_proxied == is_proxied]


def _cpu(periods: Sequence[Period]) -> str:
    refreshes = sum(len(one.refreshes_s) for one in periods)
    parts = []
    for name, seconds in (
        ("server", [one.server_cpu_s for one in periods]),
        ("proxy", [one.proxy_cpu_s for one in periods]),
    ):
        known = [one for one in seconds if one is not None]
        parts.append(f"{name} {sum(known) / refreshes:.3f} s" if known else f"{name} unknown")
    return ", ".join(parts)


def _late(periods: Sequence[Period]) -> int:
    return sum(seconds > _EVERY_S for one in periods for seconds in one.refreshes_s)


@click.command()
@json_option
@directory_option("star", "Where the tables are kept, made once for each size, and the logs.")
@memory_option
@partitions_option(600)
@click.option("--rows", default=5_000, show_default=True, help="Rows of each.")
@click.option("--pairs", type=click.IntRange(min=1), default=9, show_default=True, help="Pairs of warm periods.")
@click.option("--refreshes", type=click.IntRange(min=1), default=6, show_default=True, help="In a warm period.")
@click.option(
    "--refreshes-before",
    type=click.IntRange(min=0),
    default=12,
    show_default=True,
    help="Unmeasured ones on each side, while the cost gate learns; without a pause.",
)
@click.option(
    "--cold-pairs", type=click.IntRange(min=1), default=5, show_default=True, help="Pairs of cold refreshes."
)
def main(  # noqa: PLR0913 - one parameter per option
    *,
    json_path: Path | None,
    directory: Path,
    memory: str,
    partitions: int,
    rows: int,
    pairs: int,
    refreshes: int,
    refreshes_before: int,
    cold_pairs: int,
) -> None:
    """Measure a dashboard directly and through the proxy."""
    end_with_servers()
    settings = Settings(partitions, rows, pairs, refreshes, refreshes_before, cold_pairs)
    tables, report = DashboardTables(partitions, rows), Report(settings)
    with (
        shown_progress(Console(stderr=True)) as progress,
        star_server(directory, memory, tables, progress) as server,
    ):
        bench = Bench(server, tables, settings)
        for period in _told(bench, progress):
            report = with_period(report, period, bench.other_answers)
            write_json(json_path, report)
    show(Console(), report)
    if report.other_answers:
        raise click.ClickException(f"answered otherwise through the proxy: {', '.join(report.other_answers)}")


def _told(bench: Bench, progress: Progress) -> Iterator[Period]:
    """The periods, cold ones first."""
    for listing, periods, pairs in (
        (COLD, bench.cold(), bench.settings.cold_pairs),
        (WARM, bench.warm(), bench.settings.pairs),
    ):
        progress(f"Refreshing with a {listing} listing, {2 * pairs} periods")
        yield from periods


if __name__ == "__main__":
    main()
