"""Cost of many small files, and savings by grouping their splits: directly and through the proxy, in turns.

One client, then several at once; then the same again once the pipeline has compacted the files. A narrowed fact, a
fact of which all is read, and a plain scan are measured each by itself: their scans are grouped in different ways.
"""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import click
from command_line import directory_option, end_with_servers, memory_option
from kept_tables import is_complete, mark_complete, unmark_complete
from pipeline_server import PipelineServer, pipeline_server
from processor_time import processor_s
from pyhive import hive
from reports import json_option, write_json
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from demo.hive import Endpoint, Row, connect, run, same_answer
from demo.progress import Progress, shown_progress
from demo.proxy_process import proxy_process

_DATABASE = "small_files"
_STATEMENTS = ("narrowed", "joined", "plain")
_INDEX = f"{_DATABASE}.file_index"
_PROXIED = "proxied"
_ROWS_OF_A_FILE = 250
_ROWS_MAX = 1_000_000_000
# The query asks for most of eight days, so that the scan is narrowed and most of its files are left.
_DAYS, _DAYS_ASKED = 8, 7
# Nobody reads the table while it is compacted.
_COMPACT_AT_ONCE = ("--grace-minutes", "0", "--keep-hours", "0")


@dataclass(frozen=True)
class Measured:
    """One side with so many clients: tasks of a statement, the median of its seconds, statements a second.

    And the processor time of a statement, of the server and the proxy together, which other work on the machine
    changes less than the seconds; None where it is not known.
    """

    layout: str
    statement: str
    side: str
    clients: int
    tasks: int
    seconds: float
    per_second: float
    processor_s: float | None


@dataclass(frozen=True)
class Report:
    """All measurements, the number of files they were made on, and the rows of each."""

    files: int
    rows_of_a_file: int
    runs: int
    measured: Sequence[Measured]


@dataclass(frozen=True)
class _Round:
    """One statement of each client at once: the seconds of each, of all, and processor time if it is known."""

    seconds: Sequence[float]
    elapsed_s: float
    processor_s: float | None


@dataclass(frozen=True)
class Bench:
    """The server, the proxy in front of it, and the statements."""

    server: PipelineServer
    sides: dict[str, Endpoint]
    table: str
    proxy_pid: int

    @property
    def statements(self) -> dict[str, str]:
        """A dashboard's queries: most of the days by group, all days by group, and no join at all."""
        by_group = (
            f"SELECT d.g, count(f.v) AS n, sum(f.v) AS total FROM {self.table} f"
            f" JOIN {_DATABASE}.days d ON f.day = d.day{{where}} GROUP BY d.g"
        )
        return {
            "narrowed": by_group.format(where=" WHERE d.is_asked"),
            "joined": by_group.format(where=""),
            "plain": f"SELECT id % 10 AS g, count(v) AS n, sum(v) AS total FROM {self.table} GROUP BY id % 10",
        }

    def measured(self, layout: str, statement: str, clients: int, runs: int) -> list[Measured]:
        """Both sides with so many clients, in turns: the side that goes first is another one in each round."""
        sql = self.statements[statement]
        with ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(clients))
            sessions = {
                name: [stack.enter_context(closing(connect(endpoint))) for _ in range(clients)]
                for name, endpoint in self.sides.items()
            }
            # Whatever is learned beside statements is known from here on.
            _ = run(sessions[_PROXIED][0], f"EXPLAIN REWRITE {sql}")
            tasks = {name: self._tasks(opened[0], sql) for name, opened in sessions.items()}
            rounds: dict[str, list[_Round]] = {name: [] for name in sessions}
            for number in range(runs):
                for name in reversed(sessions) if number % 2 else sessions:
                    rounds[name].append(self._round(pool, sessions[name], sql))
        return [_measured(layout, statement, name, tasks[name], clients, rounds[name]) for name in rounds]

    def answers(self, statement: str) -> list[list[Row]]:
        """The answer of each side."""
        found = []
        for endpoint in self.sides.values():
            with closing(connect(endpoint)) as session:
                found.append(run(session, self.statements[statement]))
        return found

    def _round(self, pool: ThreadPoolExecutor, sessions: list[hive.Connection], sql: str) -> _Round:
        start, began_s = time.monotonic(), self._processor_s()
        taken = list(pool.map(lambda session: _seconds(session, sql), sessions))
        elapsed_s, ended_s = time.monotonic() - start, self._processor_s()
        return _Round(taken, elapsed_s, None if began_s is None or ended_s is None else ended_s - began_s)

    def _processor_s(self) -> float | None:
        server_s, proxy_s = map(processor_s, (self.server.pid, self.proxy_pid))
        return None if server_s is None or proxy_s is None else server_s + proxy_s

    def _tasks(self, session: hive.Connection, sql: str) -> int:
        """The tasks of the statement alone: the proxy made its own queries in the run before."""
        _ = run(session, sql)
        before = self.server.ui.last_execution()
        _ = run(session, sql)
        return self.server.ui.tasks(after=before)


def _seconds(session: hive.Connection, sql: str) -> float:
    start = time.monotonic()
    _ = run(session, sql)
    return time.monotonic() - start


def _measured(  # noqa: PLR0913, PLR0917 - what was measured, and the figures
    layout: str, statement: str, side: str, tasks: int, clients: int, rounds: Sequence[_Round]
) -> Measured:
    seconds, count = [one for each in rounds for one in each.seconds], clients * len(rounds)
    spent_s = [each.processor_s for each in rounds if each.processor_s is not None]
    processor = sum(spent_s) / count if len(spent_s) == len(rounds) else None
    per_second = count / sum(each.elapsed_s for each in rounds)
    return Measured(layout, statement, side, clients, tasks, median(seconds), per_second, processor)


def _ensure(server: PipelineServer, table: str, files: int, rows_of_a_file: int, progress: Progress) -> None:
    """The table and its index, made once for each number of files."""
    progress(f"Writing {files:,} files")
    with closing(connect(server.endpoint)) as session:
        _ = run(session, f"CREATE DATABASE IF NOT EXISTS {_DATABASE}")
        if is_complete(session, table):
            return
        _ = run(session, f"DROP TABLE IF EXISTS {table}")
        day = f"CAST(id DIV {rows_of_a_file} % {_DAYS} AS INT)"
        rows = files * rows_of_a_file
        _ = run(
            session,
            f"CREATE TABLE {table} USING parquet PARTITIONED BY (day) AS"
            f" SELECT id, id * 7 AS v, {day} AS day FROM range(0, {rows}, 1, {files})",
        )
        _ = run(session, f"DROP TABLE IF EXISTS {_DATABASE}.days")
        days = f"SELECT CAST(id AS INT) AS day, id % 2 AS g, id < {_DAYS_ASKED} AS is_asked FROM range({_DAYS})"
        _ = run(session, f"CREATE TABLE {_DATABASE}.days USING parquet AS {days}")
        progress("Indexing")
        _ = server.pipeline("index", "--table", table, "--index", _INDEX, "--columns", "id")
        # Scans that nothing narrows are grouped only where the size of the table is told.
        _ = run(session, f"ANALYZE TABLE {table} COMPUTE STATISTICS NOSCAN")
        mark_complete(session, table)


@contextmanager
def running(  # noqa: PLR0913, PLR0917 - one parameter per option
    files: int, rows_of_a_file: int, saved_min: int, directory: Path, memory: str, progress: Progress
) -> Iterator[Bench]:
    """A server with the table, and the proxy in front of it."""
    progress("Starting Spark")
    table = f"{_DATABASE}.of_{files}" + (f"_of_{rows_of_a_file}" if rows_of_a_file != _ROWS_OF_A_FILE else "")
    with ExitStack() as stack:
        server = stack.enter_context(pipeline_server(directory / "server", memory=memory))
        _ensure(server, table, files, rows_of_a_file, progress)
        # Where grouping pays is measured here, so nothing but the setting keeps the splits of any number of rows.
        limits = f"splits.saved_min={saved_min}", f"splits.rows_per_saved_max={_ROWS_MAX}"
        settings = f"files.index={_INDEX}", "rewrite.cost_gate=false", *limits
        options = tuple(part for setting in settings for part in ("--set", setting))
        proxy = stack.enter_context(proxy_process(server.endpoint, directory / "proxy", options=options))
        sides = {"direct": server.endpoint, _PROXIED: proxy.endpoint}
        yield Bench(server, sides, table, proxy.child.process.pid)


def _compact(bench: Bench) -> None:
    """Merge the small files. The next run writes them again."""
    with closing(connect(bench.server.endpoint)) as session:
        unmark_complete(session, bench.table)
    _ = bench.server.pipeline("compact", "--table", bench.table, "--index", _INDEX, *_COMPACT_AT_ONCE)


def show(console: Console, report: Report) -> None:
    """Print the measurements as one table."""
    title = f"{report.files:,} files of {report.rows_of_a_file:,} rows"
    table = Table("layout", "statement", "side", title=title, title_justify="left", box=SIMPLE)
    for heading in ("clients", "tasks", "seconds", "statements/s", "processor s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in report.measured:
        numbers = f"{one.clients}", f"{one.tasks:,}", f"{one.seconds:.2f}", f"{one.per_second:.2f}"
        spent = "" if one.processor_s is None else f"{one.processor_s:.2f}"
        table.add_row(one.layout, one.statement, one.side, *numbers, spent)
    console.print(table)


@click.command()
@json_option
@click.option(
    "--files", type=click.IntRange(min=100), default=4_000, show_default=True, help="Files of the table."
)
@click.option(
    "--rows", type=click.IntRange(min=1), default=_ROWS_OF_A_FILE, show_default=True, help="Rows of each file."
)
@click.option(
    "--clients",
    type=click.IntRange(min=1),
    default=(1, 8, 32),
    show_default=True,
    multiple=True,
    help="Clients at once, each number by itself.",
)
@click.option(
    "--statement",
    "statements",
    type=click.Choice(_STATEMENTS),
    default=_STATEMENTS,
    show_default=True,
    multiple=True,
    help="A narrowed fact, a fact of which all is read, or a plain scan.",
)
@click.option(
    "--saved-min", type=click.IntRange(min=1), default=28, show_default=True, help="The setting splits.saved_min."
)
@click.option("--compacted/--not-compacted", default=True, show_default=True, help="Measure compacted files too.")
@directory_option("small_files", "Where the tables are kept, made once for each number of files, and the logs.")
@memory_option
@click.option("--runs", type=click.IntRange(min=1), default=5, show_default=True, help="Runs of each client.")
def main(  # noqa: PLR0913 - one parameter per option
    *,
    json_path: Path | None,
    files: int,
    rows: int,
    clients: Sequence[int],
    statements: Sequence[str],
    saved_min: int,
    compacted: bool,
    directory: Path,
    memory: str,
    runs: int,
) -> None:
    """Measure small files on Spark, directly and through the proxy, before and after compaction."""
    end_with_servers()
    measured: list[Measured] = []
    with (
        shown_progress(Console(stderr=True)) as progress,
        running(files, rows, saved_min, directory, memory, progress) as bench,
    ):
        for layout in ("small files", "compacted") if compacted else ("small files",):
            if layout == "compacted":
                progress("Compacting")
                _compact(bench)
            for statement in statements:
                if not same_answer(*bench.answers(statement)):
                    raise click.ClickException(f"{layout}, {statement}: answered otherwise through the proxy")
                for count in clients:
                    progress(f"Measuring {layout}, {statement}, {count} clients")
                    measured += bench.measured(layout, statement, count, runs)
                    write_json(json_path, Report(files, rows, runs, measured))
    show(Console(), Report(files, rows, runs, measured))


if __name__ == "__main__":
    main()
