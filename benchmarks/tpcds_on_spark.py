"""TPC-DS on one Spark Thrift Server, directly and through the proxy: gains, and queries that are slower.

`make bench` runs some of the queries on little data. Without options all 99 run at scale 1, which takes hours on
two cores. The proxied times have all in them that the proxy does: descriptions of tables, planning, key queries.
`make bench-delta` runs star joins on Delta tables. Delta keeps the log of a table in memory for all sessions, so
there a cold listing is that of facts to which another writer has just committed.
"""

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import click
import msgspec
from answers import same_rows
from command_line import directory_option, end_with_servers, runs_option, warm_ups_option
from explaining import explained
from known_formats import DELTA, commit_to_delta
from pairs import COLD, WARM, Sides
from proxy_counters import ProxyCounters
from pyhive import exc, hive
from reports import json_option, write_json
from rich.console import Console
from star_benchmark import StarBenchmark
from tpcds import tpcds
from tpcds_tables import PARQUET, TpcdsTables
from verdict_table import show
from verdicts import Measured, Summary, summary

from demo.hive import Endpoint, connect, run
from demo.java import find_java
from demo.progress import Progress, shown_progress
from demo.proxy_process import proxy_process
from demo.thrift_server import ServerOptions, thrift_server

# Planning over the 12,000 partitions of scale 1, and joins of its larger tables.
_MEMORY = "4g"
QUERIES = tuple(f"q{number}" for number in range(1, 100))
_WORD = re.compile(r"\w+")
_COLUMNS = 140


@dataclass(frozen=True)
class Settings:
    """The settings that all queries of a report share."""

    scale: float
    days_per_partition: int
    listings: Sequence[str]
    # With a warm listing.
    runs: int
    # Unmeasured runs before these; more if the gate has not settled by then.
    warm_ups: int
    # With a cold listing, where a query takes many times as long.
    cold_runs: int
    # Settings of the proxy that differ from its defaults.
    proxy: Sequence[str]
    # Reports from before there was another lack it.
    table_format: str = PARQUET


@dataclass(frozen=True)
class Report:
    """The measurements so far."""

    settings: Settings
    queries: Sequence[Measured] = ()
    summaries: Mapping[str, Summary] = field(default_factory=dict)

    def with_queries(self, measured: Iterable[Measured]) -> "Report":
        """The report with more queries in it."""
        queries = [*self.queries, *measured]
        found = {listing: summary(queries, listing) for listing in self.settings.listings}
        return Report(self.settings, queries, {listing: one for listing, one in found.items() if one is not None})


@dataclass(frozen=True)
class Bench:
    """The sessions to measure on, the queries, and the proxy's admin port."""

    sides: Sides
    benchmark: StarBenchmark
    database: str
    admin_url: str

    def measured(self, query: str, settings: Settings) -> Measured:
        """Compare a query's answers, which also warms both sides up, then take its time."""
        try:
            return self._measured(query, settings)
        except exc.Error as error:
            return Measured.failed(query, error)

    def _measured(self, query: str, settings: Settings) -> Measured:
        sql, unlimited = self.benchmark.queries[query], self.benchmark.unlimited(query)
        direct, proxied = run(self.sides.direct, unlimited), run(self.sides.proxied, unlimited)
        is_delta = settings.table_format == DELTA.name
        sides = replace(self.sides, open_session=self._after_commits(sql)) if is_delta else self.sides
        pairs = {
            listing: sides.measure(sql, listing, runs=settings.runs, warm_ups=settings.warm_ups)
            if listing == WARM
            else sides.measure(sql, listing, runs=settings.cold_runs, warm_ups=0)
            for listing in settings.listings
        }
        # Explained last: that also lists partitions, which the proxied runs do by themselves if they need to.
        told = explained(self.admin_url, self.database, sql)
        return Measured.of_pairs(query, len(direct), told, pairs, same_answer=same_rows(direct, proxied))

    def _after_commits(self, sql: str) -> Callable[[bool], hive.Connection]:
        """Open sessions that find a new version of each fact of the query."""
        facts = _named(sql, self.benchmark.partition_columns)

        def open_session(is_proxied: bool) -> hive.Connection:  # noqa: FBT001 - one of two sides
            for fact in facts:
                commit_to_delta(self.sides.direct, fact)
            return self.sides.open_session(is_proxied)

        return open_session


def _named(sql: str, tables: Iterable[str]) -> list[str]:
    """The tables whose names stand in the text, and perhaps one that is no more than a word there."""
    return sorted(set(_WORD.findall(sql.lower())).intersection(tables))


@contextmanager
def _server(directory: Path, table_format: str, progress: Progress) -> Iterator[tuple[Endpoint, int]]:
    """A server that has the format: its address, and the number of its process."""
    if table_format == DELTA.name:
        # Of another Spark, which has a metastore of its own.
        progress("Starting Spark with Delta")
        with DELTA.server(directory / "delta_server", memory=_MEMORY) as delta:
            yield delta.endpoint, delta.pid
    else:
        options = ServerOptions(directory / "server", memory=_MEMORY)
        with thrift_server(options, find_java(), progress) as server:
            yield server.endpoint, server.child.process.pid


@contextmanager
def running(
    queries: Sequence[str], directory: Path, backend: Endpoint | None, settings: Settings, progress: Progress
) -> Iterator[Bench]:
    """A server with the tables of the queries, started unless one is named, and the proxy in front of it."""
    tables = TpcdsTables(directory / "tables", settings.scale, settings.days_per_partition, settings.table_format)
    benchmark = tpcds(scale=0)
    texts = " ".join(benchmark.queries[query] for query in queries)
    pid = None
    with ExitStack() as stack:
        if backend is None:
            backend, pid = stack.enter_context(_server(directory, settings.table_format, progress))
        direct = stack.enter_context(closing(connect(backend)))
        tables.ensure(direct, _named(texts, benchmark.tables), progress)
        options = tuple(word for setting in settings.proxy for word in ("--set", setting))
        proxy = stack.enter_context(proxy_process(backend, directory / "proxy", options=options))
        # The process of a server that was started elsewhere is not known.
        processes = (pid, proxy.child.process.pid) if pid is not None else None
        proxied = stack.enter_context(closing(connect(proxy.endpoint, database=tables.database)))

        def open_session(is_proxied: bool) -> hive.Connection:  # noqa: FBT001 - one of two sides
            endpoint = proxy.endpoint if is_proxied else backend
            return connect(endpoint, database=tables.database, user="newcomer")

        narrowed = ProxyCounters(proxy.admin_url).narrowed_scans
        sides = Sides(direct, proxied, open_session, processes, narrowed)
        yield Bench(sides, benchmark, tables.database, proxy.admin_url)


def measure(
    bench: Bench, queries: Sequence[str], report: Report, until: float, progress: Progress
) -> Iterator[Report]:
    """The report after each query, until the time is up."""
    measured = {one.query for one in report.queries}
    left = [query for query in queries if query not in measured]
    for number, query in enumerate(left, start=1):
        if time.monotonic() >= until:
            progress(f"The time is up; not measured: {', '.join(left[number - 1 :])}")
            return
        progress(f"Measuring {query}, {number} of {len(left)}")
        report = report.with_queries([bench.measured(query, report.settings)])
        yield report


def _begun(path: Path | None, settings: Settings) -> Report:
    """The report that an earlier run left, if made with the same settings; queries that failed are left out."""
    if path is None or not path.exists():
        return Report(settings)
    try:
        report = msgspec.json.decode(path.read_bytes(), type=Report)
    except msgspec.ValidationError as error:
        raise click.UsageError(
            f"{path} is of another version of this benchmark; remove it or name another"
        ) from error
    if report.settings != settings:
        raise click.UsageError(
            f"{path} was measured with {report.settings}, not {settings}; remove it or name another"
        )
    return Report(settings).with_queries(one for one in report.queries if one.error is None)


@click.command()
@json_option
@directory_option("tpcds", "Where the tables are kept, made once for each scale, and the logs.")
@click.option("--scale", default=1.0, show_default=True, help="About as many gigabytes of text.")
@click.option(
    "--format",
    "table_format",
    type=click.Choice([PARQUET, DELTA.name]),
    default=PARQUET,
    show_default=True,
    help="Delta needs `make iceberg`.",
)
@click.option(
    "--days",
    "days_per_partition",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Days that share a partition.",
)
@click.option(
    "--query",
    "queries",
    multiple=True,
    type=click.Choice(QUERIES),
    default=QUERIES,
    show_default="all",
    metavar="qN",
    help="May be repeated.",
)
@click.option(
    "--listing",
    "listings",
    type=click.Choice([COLD, WARM]),
    multiple=True,
    default=[COLD, WARM],
    show_default=True,
)
@runs_option(9)
@click.option(
    "--cold-runs",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Runs on each side where listings are cold.",
)
@warm_ups_option(4)
@click.option("--minutes", default=600.0, show_default=True, help="The time after which no other query is begun.")
@click.option("--resume", is_flag=True, help="Go on with the report that --json names; what failed runs again.")
@click.option("--set", "proxy_settings", multiple=True, metavar="KEY=VALUE", help="A setting of the proxy.")
@click.option("--backend", metavar="HOST:PORT", show_default="one is started", help="A server on this machine.")
def main(  # noqa: PLR0913 - one parameter per option
    *,
    json_path: Path | None,
    directory: Path,
    scale: float,
    table_format: str,
    days_per_partition: int,
    queries: tuple[str, ...],
    listings: tuple[str, ...],
    runs: int,
    cold_runs: int,
    warm_ups: int,
    minutes: float,
    proxy_settings: tuple[str, ...],
    backend: str | None,
    resume: bool,
) -> None:
    """Measure TPC-DS on Spark, directly and through the proxy."""
    end_with_servers()
    until = time.monotonic() + 60 * minutes
    # In this order, since a query with a cold listing leaves a warm one.
    states = [state for state in (COLD, WARM) if state in listings]
    settings = Settings(
        scale, days_per_partition, states, runs, warm_ups, cold_runs, list(proxy_settings), table_format
    )
    report = _begun(json_path, settings) if resume else Report(settings)
    endpoint = Endpoint.parse(backend) if backend is not None else None
    with (
        shown_progress(Console(stderr=True)) as progress,
        running(queries, directory, endpoint, settings, progress) as bench,
    ):
        for grown in measure(bench, queries, report, until, progress):
            write_json(json_path, report := grown)
    # A file has no width, and eighty columns are too few.
    show(Console(width=None if sys.stdout.isatty() else _COLUMNS), report.queries, report.summaries)
    failed = [one.query for one in report.queries if one.error is not None or not one.same_answer]
    if failed:
        raise click.ClickException(f"failed, or answered otherwise through the proxy: {', '.join(failed)}")


if __name__ == "__main__":
    main()
