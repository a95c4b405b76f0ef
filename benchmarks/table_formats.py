"""Savings on Iceberg and Delta tables: files, bytes and seconds, directly and through the proxy.

Measured by the number of files and of keys, on a partition column and on another, by a broadcast and by
sort-merge. The proxied times include all that the proxy does. Delta keeps a table's log in memory, by its path and
for all sessions, so the log is made cold by a commit that changes no row.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import product
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
from format_facts import KEYS, FormatFacts
from kept_tables import Question
from known_formats import FORMATS, Scan, commit_to_delta
from pairs import WARM, Pair, Sides
from pyhive import hive
from reports import json_option, write_json
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from verdict_table import seconds_cells
from verdicts import Verdict, verdict

from demo.hive import Row, connect, run, same_answer
from demo.metrics import SparkUi
from demo.progress import Progress, shown_progress
from demo.proxy_process import proxy_process

_MEBIBYTE = 1 << 20
# The width of the table: where it is not written to a terminal, it would lose the names of the joins.
_WIDTH_CHARS = 130


@dataclass(frozen=True)
class Scanned:
    """The scans of the fact, and the bytes that all tasks read, those of the proxy's own queries too."""

    fact: Scan
    bytes_read: int


@dataclass(frozen=True)
class Measured:
    """One question on one number of files: the scans of one run on each side, every run, and the verdict."""

    files: int
    listing: str
    question: Question
    same_answer: bool
    direct: Scanned
    proxied: Scanned
    pair: Pair
    verdict: Verdict


@dataclass(frozen=True)
class Report:
    """All measurements."""

    table_format: str
    runs: int
    measured: Sequence[Measured]


@dataclass(frozen=True)
class Bench:
    """The sessions to measure on, and the metrics of the server."""

    ui: SparkUi
    sides: Sides

    def measured(self, facts: FormatFacts, question: Question, listing: str, runs: int, warm_ups: int) -> Measured:
        """Take the time, then compare answers and scans, when the cost gate has learnt all that it will."""

        def open_session(is_proxied: bool) -> hive.Connection:  # noqa: FBT001 - one of two sides
            commit_to_delta(self.sides.direct, f"{facts.namespace}.{question.table}")
            return self.sides.open_session(is_proxied)

        def scanned(*, is_proxied: bool) -> tuple[list[Row], Scanned]:
            with sides.session(listing, is_proxied=is_proxied) as session:
                latest, bytes_before = self.ui.last_execution(), self.ui.input_bytes()
                rows = run(session, question.sql)
                fact = facts.table_format.scans_of(self.ui, question.table, after=latest)
            return rows, Scanned(fact, self.ui.input_bytes() - bytes_before)

        sides = replace(self.sides, open_session=open_session)
        pair = sides.measure(question.sql, listing, runs=runs, warm_ups=warm_ups if listing == WARM else 0)
        direct_rows, direct = scanned(is_proxied=False)
        proxied_rows, proxied = scanned(is_proxied=True)
        same = same_answer(direct_rows, proxied_rows)
        return Measured(facts.files, listing, question, same, direct, proxied, pair, verdict(pair))


@contextmanager
def running(
    tables: Sequence[FormatFacts], directory: Path, memory: str, progress: Progress, *, gate: bool
) -> Iterator[Bench]:
    """A server with the tables, and the proxy in front of it."""
    table_format = tables[0].table_format
    progress(f"Starting Spark with {table_format.name}")
    with ExitStack() as stack:
        server = stack.enter_context(table_format.server(directory / "server", memory=memory))
        direct = stack.enter_context(closing(connect(server.endpoint)))
        for one in tables:
            one.ensure(direct, progress)
        options = () if gate else ("--set", "rewrite.cost_gate=false")
        proxy = stack.enter_context(proxy_process(server.endpoint, directory / "proxy", options=options))
        proxied = stack.enter_context(closing(connect(proxy.endpoint)))

        def open_session(is_proxied: bool) -> hive.Connection:  # noqa: FBT001 - one of two sides
            return connect(proxy.endpoint if is_proxied else server.endpoint)

        processes = (server.pid, proxy.child.process.pid)
        yield Bench(server.ui, Sides(direct, proxied, open_session, processes))


def show(console: Console, report: Report) -> None:
    """Print a table for each number of files and state of the listing, and the questions that were not faster."""
    counts = FORMATS[report.table_format].counts
    for files, listing in dict.fromkeys((one.files, one.listing) for one in report.measured):
        chosen = [one for one in report.measured if (one.files, one.listing) == (files, listing)]
        console.print(_table(f"{files:,} files, {listing}", counts, chosen))
    console.print(
        f"Seconds are medians of {report.runs} runs on each side, in turns. Ratio: proxied to direct. Files and "
        "manifests are those of the fact; MiB read are of all tables, and of the proxy's questions. Cold: in "
        "a new session after a commit to the fact.\n",
        style="dim",
    )
    slower = [
        f"{one.files:,} files, {one.listing}: {one.question.name}" for one in report.measured if one.verdict.loses
    ]
    console.print(f"Losses, by the whole interval: {'; '.join(slower) or 'none'}", highlight=False)


def _table(title: str, counts: Mapping[str, str], measured: Sequence[Measured]) -> Table:
    table = Table("join", title=title, title_justify="left", box=SIMPLE)
    for heading in (*counts, "MiB read", "direct s", "proxied s", "ratio", "cpu"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in measured:
        table.add_row(
            one.question.name if one.same_answer else f"[bold red]ANOTHER ANSWER: {one.question.name}[/]",
            *(
                f"{getattr(one.direct.fact, name):,} > {getattr(one.proxied.fact, name):,}"
                for name in counts.values()
            ),
            f"{one.direct.bytes_read / _MEBIBYTE:,.1f} > {one.proxied.bytes_read / _MEBIBYTE:,.1f}",
            *seconds_cells(one.verdict),
        )
    return table


@click.command()
@click.argument("format_name", metavar="FORMAT", type=click.Choice(list(FORMATS)))
@json_option
@click.option(
    "--files",
    "numbers_of_files",
    type=click.IntRange(min=10),
    multiple=True,
    help="Files of each fact; by default those of the format.",
)
@click.option(
    "--keys",
    "numbers_of_keys",
    type=click.Choice([str(count) for count in KEYS]),
    multiple=True,
    help="Keys of each small side; by default those of the format.",
)
@directory_option(
    "", "Where each format has a folder with its tables, made once for each number of files, and logs."
)
@memory_option
@runs_option(5)
@warm_ups_option(2)
@gate_option
def main(  # noqa: PLR0913 - one parameter per option
    *,
    format_name: str,
    json_path: Path | None,
    numbers_of_files: Sequence[int],
    numbers_of_keys: Sequence[str],
    directory: Path,
    memory: str,
    runs: int,
    warm_ups: int,
    gate: bool,
) -> None:
    """Measure what narrowing saves on Iceberg or Delta tables, directly and through the proxy."""
    end_with_servers()
    table_format = FORMATS[format_name]
    tables = [FormatFacts(table_format, files) for files in numbers_of_files or table_format.files]
    keys = [int(count) for count in numbers_of_keys or table_format.keys]
    measured: list[Measured] = []
    with (
        shown_progress(Console(stderr=True)) as progress,
        running(tables, directory / format_name, memory, progress, gate=gate) as bench,
    ):
        for facts in tables:
            for question, listing in product(facts.questions(keys), table_format.listings):
                progress(f"Measuring {facts.files:,} files: {question.name}, {listing}")
                measured.append(bench.measured(facts, question, listing, runs, warm_ups))
                write_json(json_path, Report(format_name, runs, measured))
    show(Console(width=_WIDTH_CHARS), Report(format_name, runs, measured))
    if wrong := [f"{one.files} files: {one.question.name}" for one in measured if not one.same_answer]:
        raise click.ClickException(f"answered otherwise through the proxy: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
