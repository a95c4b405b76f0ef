"""Savings on Iceberg tables: manifests, files, bytes and seconds, directly and through the proxy.

Measured by the number of files and of keys, on a partition column and on another, by a broadcast and by
sort-merge. The proxied times include all that the proxy does.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from command_line import directory_option, end_with_servers, memory_option, runs_option, warm_ups_option
from iceberg_facts import KEYS, IcebergFacts
from iceberg_scans import IcebergScan, scans_of
from iceberg_server import iceberg_server
from kept_tables import Question
from pairs import WARM, Pair, Sides
from pipeline_server import PipelineServer
from pyhive import hive
from reports import json_option, write_json
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from verdict_table import seconds_cells
from verdicts import Verdict, verdict

from demo.hive import Row, connect, run, same_answer
from demo.progress import Progress, shown_progress
from demo.proxy_process import proxy_process

_MEBIBYTE = 1 << 20
# The width of the table: where it is not written to a terminal, it would lose the names of the joins.
_WIDTH_CHARS = 130


@dataclass(frozen=True)
class Scanned:
    """The scans of the fact, and the bytes that all tasks read, those of the proxy's own queries too."""

    fact: IcebergScan
    bytes_read: int


@dataclass(frozen=True)
class Measured:
    """One question on one number of files: the scans of one run on each side, every run, and the verdict."""

    files: int
    question: Question
    same_answer: bool
    direct: Scanned
    proxied: Scanned
    pair: Pair
    verdict: Verdict


@dataclass(frozen=True)
class Report:
    """All measurements."""

    runs: int
    measured: Sequence[Measured]


@dataclass(frozen=True)
class Bench:
    """The sessions to measure on, and the server that tells its scans."""

    server: PipelineServer
    sides: Sides

    def measured(self, files: int, question: Question, runs: int, warm_ups: int) -> Measured:
        """Take the time, then compare answers and scans, when the cost gate has learnt all that it will."""
        pair = self.sides.measure(question.sql, WARM, runs=runs, warm_ups=warm_ups)
        direct_rows, direct = self._scanned(self.sides.direct, question)
        proxied_rows, proxied = self._scanned(self.sides.proxied, question)
        same = same_answer(direct_rows, proxied_rows)
        return Measured(files, question, same, direct, proxied, pair, verdict(pair))

    def _scanned(self, session: hive.Connection, question: Question) -> tuple[list[Row], Scanned]:
        ui = self.server.ui
        latest, bytes_before = ui.last_execution(), ui.input_bytes()
        rows = run(session, question.sql)
        fact = scans_of(ui, question.table, after=latest)
        return rows, Scanned(fact, ui.input_bytes() - bytes_before)


@contextmanager
def running(
    tables: Sequence[IcebergFacts], directory: Path, memory: str, progress: Progress, *, gate: bool
) -> Iterator[Bench]:
    """A server with the tables, and the proxy in front of it."""
    progress("Starting Spark with Iceberg")
    with ExitStack() as stack:
        server = stack.enter_context(iceberg_server(directory / "server", memory=memory))
        direct = stack.enter_context(closing(connect(server.endpoint)))
        for one in tables:
            one.ensure(direct, progress)
        options = () if gate else ("--set", "rewrite.cost_gate=false")
        proxy = stack.enter_context(proxy_process(server.endpoint, directory / "proxy", options=options))
        proxied = stack.enter_context(closing(connect(proxy.endpoint)))

        def open_session(is_proxied: bool) -> hive.Connection:  # noqa: FBT001 - one of two sides
            return connect(proxy.endpoint if is_proxied else server.endpoint)

        processes = (server.pid, proxy.child.process.pid)
        yield Bench(server, Sides(direct, proxied, open_session, processes))


def show(console: Console, report: Report) -> None:
    """Print a table for each number of files, and the questions that were not faster."""
    for files in dict.fromkeys(one.files for one in report.measured):
        console.print(_table(files, [one for one in report.measured if one.files == files]))
    console.print(
        f"Seconds are medians of {report.runs} runs on each side, in turns. Ratio: proxied to direct. Files and "
        "manifests are those of the fact; MiB read are of all tables, and of the proxy's questions.\n",
        style="dim",
    )
    slower = [f"{one.files:,} files: {one.question.name}" for one in report.measured if one.verdict.loses]
    console.print(f"Losses, by the whole interval: {'; '.join(slower) or 'none'}", highlight=False)


def _table(files: int, measured: Sequence[Measured]) -> Table:
    table = Table("join", title=f"{files:,} files", title_justify="left", box=SIMPLE)
    for heading in (
        "manifests",
        "files planned",
        "files read",
        "MiB read",
        "direct s",
        "proxied s",
        "ratio",
        "cpu",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in measured:
        direct, proxied = one.direct.fact, one.proxied.fact
        table.add_row(
            one.question.name if one.same_answer else f"[bold red]ANOTHER ANSWER: {one.question.name}[/]",
            f"{direct.manifests_read} > {proxied.manifests_read}",
            f"{direct.files_planned:,} > {proxied.files_planned:,}",
            f"{direct.splits_read:,} > {proxied.splits_read:,}",
            f"{one.direct.bytes_read / _MEBIBYTE:,.1f} > {one.proxied.bytes_read / _MEBIBYTE:,.1f}",
            *seconds_cells(one.verdict),
        )
    return table


@click.command()
@json_option
@click.option(
    "--files",
    "numbers_of_files",
    type=click.IntRange(min=10),
    multiple=True,
    default=(100, 1_000, 10_000),
    show_default=True,
    help="Files of each fact.",
)
@click.option(
    "--keys",
    "numbers_of_keys",
    type=click.Choice([str(count) for count in KEYS]),
    multiple=True,
    default=[str(count) for count in KEYS],
    show_default=True,
    help="Keys of each small side.",
)
@directory_option("iceberg", "Where the tables are kept, made once for each number of files, and the logs.")
@memory_option
@runs_option(5)
@warm_ups_option(2)
@click.option(
    "--gate/--no-gate",
    default=True,
    show_default=True,
    help="The proxy's cost gate, which leaves alone statements that hardly gain.",
)
def main(  # noqa: PLR0913 - one parameter per option
    *,
    json_path: Path | None,
    numbers_of_files: Sequence[int],
    numbers_of_keys: Sequence[str],
    directory: Path,
    memory: str,
    runs: int,
    warm_ups: int,
    gate: bool,
) -> None:
    """Measure what narrowing saves on Iceberg tables, directly and through the proxy."""
    end_with_servers()
    tables = [IcebergFacts(files) for files in numbers_of_files]
    measured: list[Measured] = []
    with (
        shown_progress(Console(stderr=True)) as progress,
        running(tables, directory, memory, progress, gate=gate) as bench,
    ):
        for facts in tables:
            for question in facts.questions([int(count) for count in numbers_of_keys]):
                progress(f"Measuring {facts.files:,} files: {question.name}")
                measured.append(bench.measured(facts.files, question, runs, warm_ups))
                write_json(json_path, Report(runs, measured))
    show(Console(width=_WIDTH_CHARS), Report(runs, measured))
    if wrong := [f"{one.files} files: {one.question.name}" for one in measured if not one.same_answer]:
        raise click.ClickException(f"answered otherwise through the proxy: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
