"""Savings by a file index and list bucketing: bytes, files and seconds, directly and through the proxy, in turns.

The tables are a list-bucketed fact with a plain copy of it, and a fact in the order of a key. The proxied times
include all that the proxy does. If no file can be skipped, the same questions show what the attempt costs.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from command_line import (
    directory_option,
    end_with_servers,
    gate_option,
    memory_option,
    runs_option,
    warm_ups_option,
)
from kept_tables import Question
from layouts_tables import LayoutTables
from pairs import WARM, Pair, Sides
from pipeline_server import PipelineServer, pipeline_server
from pyhive import hive
from reports import json_option, write_json
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from verdict_table import seconds_cells
from verdicts import Verdict, verdict

from demo.hive import Row, connect, run, same_answer
from demo.metrics import ScanMetrics
from demo.progress import Progress, shown_progress
from demo.proxy_process import proxy_process

_MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Measured:
    """One question: the scans of its table on each side, every run, and the verdict."""

    question: Question
    same_answer: bool
    direct: ScanMetrics
    proxied: ScanMetrics
    pair: Pair
    verdict: Verdict


@dataclass(frozen=True)
class Report:
    """All measurements, and the number of rows they were made on."""

    rows: int
    runs: int
    measured: Sequence[Measured]


@dataclass(frozen=True)
class Bench:
    """The sessions to measure on, and the server that tells its scans."""

    server: PipelineServer
    sides: Sides

    def measured(self, question: Question, runs: int, warm_ups: int) -> Measured:
        """Compare the answers and the scans, then take the time."""
        direct_rows, direct = self._scanned(self.sides.direct, question)
        proxied_rows, proxied = self._scanned(self.sides.proxied, question)
        pair = self.sides.measure(question.sql, WARM, runs=runs, warm_ups=warm_ups)
        return Measured(question, same_answer(direct_rows, proxied_rows), direct, proxied, pair, verdict(pair))

    def _scanned(self, session: hive.Connection, question: Question) -> tuple[list[Row], ScanMetrics]:
        before = self.server.ui.last_execution()
        return run(session, question.sql), self.server.ui.scans_of(question.table, after=before)


@contextmanager
def running(
    tables: LayoutTables, directory: Path, memory: str, progress: Progress, *, gate: bool
) -> Iterator[Bench]:
    """A server with the tables, and the proxy in front of it."""
    progress("Starting Spark")
    with ExitStack() as stack:
        server = stack.enter_context(pipeline_server(directory / "server", memory=memory))
        direct = stack.enter_context(closing(connect(server.endpoint)))
        tables.ensure(server, direct, progress)
        settings = (f"files.index={tables.index}", *(() if gate else ("rewrite.cost_gate=false",)))
        options = tuple(word for setting in settings for word in ("--set", setting))
        proxy = stack.enter_context(proxy_process(server.endpoint, directory / "proxy", options=options))
        proxied = stack.enter_context(closing(connect(proxy.endpoint, database=tables.database)))

        def open_session(is_proxied: bool) -> hive.Connection:  # noqa: FBT001 - one of two sides
            return connect(proxy.endpoint if is_proxied else server.endpoint, database=tables.database)

        processes = (server.pid, proxy.child.process.pid)
        yield Bench(server, Sides(direct, proxied, open_session, processes))


def show(console: Console, report: Report) -> None:
    """Print a table for each fact, and the questions that were not faster."""
    for name in dict.fromkeys(one.question.table for one in report.measured):
        console.print(_table(name, [one for one in report.measured if one.question.table == name]))
    console.print(
        f"{report.rows:,} rows; seconds are medians of {report.runs} runs on each side, in turns, listings warm. "
        "Ratio: proxied to direct.\n",
        style="dim",
    )
    unhelped = [one for one in report.measured if one.proxied.files_read == one.direct.files_read]
    losses = [one for one in report.measured if one.verdict.loses]
    for title, found in (("No file is left out", unhelped), ("Losses, by the whole interval", losses)):
        said = "; ".join(f"{one.question.table}: {one.question.name}" for one in found) or "none"
        console.print(f"{title}: {said}", highlight=False)


def _table(name: str, measured: Sequence[Measured]) -> Table:
    table = Table("question", title=name, title_justify="left", box=SIMPLE)
    for heading in ("files", "MiB", "million rows", "direct s", "proxied s", "ratio", "cpu"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in measured:
        direct, proxied = one.direct, one.proxied
        table.add_row(
            one.question.name if one.same_answer else f"[bold red]ANOTHER ANSWER: {one.question.name}[/]",
            f"{direct.files_read} > {proxied.files_read}",
            f"{direct.bytes_read / _MEBIBYTE:,.1f} > {proxied.bytes_read / _MEBIBYTE:,.1f}",
            f"{direct.rows_read / 1e6:,.2f} > {proxied.rows_read / 1e6:,.2f}",
            *seconds_cells(one.verdict),
        )
    return table


@click.command()
@json_option
@click.option(
    "--rows", type=click.IntRange(min=100_000), default=50_000_000, show_default=True, help="Rows of each fact."
)
@directory_option("layouts", "Where the tables are kept, made once for each number of rows, and the logs.")
@memory_option
@runs_option(5)
@warm_ups_option(2)
@click.option(
    "--table", "names", multiple=True, help="A table to measure, several times for several; all by default."
)
@gate_option
def main(  # noqa: PLR0913 - one parameter per option
    *,
    json_path: Path | None,
    rows: int,
    directory: Path,
    memory: str,
    runs: int,
    warm_ups: int,
    names: Sequence[str],
    gate: bool,
) -> None:
    """Measure what layouts save on Spark, directly and through the proxy."""
    end_with_servers()
    tables = LayoutTables(rows)
    measured: list[Measured] = []
    with (
        shown_progress(Console(stderr=True)) as progress,
        running(tables, directory, memory, progress, gate=gate) as bench,
    ):
        for question in (one for one in tables.questions() if not names or one.table in names):
            progress(f"Measuring {question.table}: {question.name}")
            measured.append(bench.measured(question, runs, warm_ups))
            write_json(json_path, Report(rows, runs, measured))
    show(Console(), Report(rows, runs, measured))
    if wrong := [f"{one.question.table}: {one.question.name}" for one in measured if not one.same_answer]:
        raise click.ClickException(f"answered otherwise through the proxy: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
