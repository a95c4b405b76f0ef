"""MERGE into Iceberg and Delta tables, directly and through the proxy, which narrows the target.

Each side has a target of its own, of one file for each partition, and merges the same source into it in turns. A
run updates rows of some partitions and inserts none, so that the next run finds as many rows. Then four writers at
once merge partitions of their own into one target. Some of them fail: the format takes them to have read what
another one has written.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import click
from command_line import (
    directory_option,
    end_with_servers,
    gate_option,
    memory_option,
    runs_option,
    warm_ups_option,
)
from known_formats import FORMATS, Scan, TableFormat
from pairs import WARM, Pair, Sides
from pyhive import hive
from pyhive.exc import OperationalError
from reports import json_option, write_json
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from verdict_table import seconds_cells
from verdicts import Verdict, verdict

from demo.hive import Endpoint, connect, run
from demo.metrics import SparkUi
from demo.progress import shown_progress
from demo.proxy_process import proxy_process

# Of the source, for each of its partitions.
_ROWS_MERGED = 10
_WRITERS, _ROUNDS = 4, 5
_MERGE = (
    "MERGE INTO {target} t USING {source} s ON t.k = s.k AND t.p = s.p"
    " WHEN MATCHED THEN UPDATE SET amount = s.amount WHEN NOT MATCHED THEN INSERT *"
)
# Spark 4.1.4 cannot read the checkpoint that Delta 4.2 writes at each tenth commit.
_PROPERTIES = {"delta": "'delta.checkpointInterval' = '1000000'", "iceberg": "'write.distribution-mode' = 'none'"}
_MODES = {"delta": ("",), "iceberg": ("copy-on-write", "merge-on-read")}


class Size(NamedTuple):
    """The partitions of a target, each of one file, and the rows of each."""

    partitions: int
    rows: int


@dataclass(frozen=True)
class Measured:
    """One source and one way to write: the scans of the target in one run on each side, every run, the verdict."""

    name: str
    same_tables: bool
    direct: Scan
    proxied: Scan
    # Files of the target that one run replaces, on each side.
    replaced: tuple[int, int]
    pair: Pair
    verdict: Verdict


@dataclass(frozen=True)
class Conflicts:
    """The MERGEs of writers at once that failed, of all of them."""

    name: str
    merges: int
    direct: int
    proxied: int
    errors: dict[str, int]


@dataclass(frozen=True)
class Report:
    """All measurements."""

    table_format: str
    size: Size
    runs: int
    measured: Sequence[Measured]
    conflicts: Sequence[Conflicts]


@dataclass(frozen=True)
class Bench:
    """The sessions to measure on, and where to open more."""

    table_format: TableFormat
    ui: SparkUi
    sides: Sides
    endpoints: tuple[Endpoint, Endpoint]
    size: Size

    @property
    def namespace(self) -> str:
        """The namespace of the tables."""
        return f"{self.table_format.catalog}merged_{self.size.partitions}"

    def make(self, table: str, mode: str) -> None:
        """Make a target: one file for each partition."""
        modes = "".join(f", 'write.{verb}.mode' = '{mode}'" for verb in ("merge", "update", "delete") if mode)
        name = self.table_format.name
        run(
            self.sides.direct,
            f"CREATE TABLE {self.namespace}.{table} USING {name} PARTITIONED BY (p)"
            f" TBLPROPERTIES ({_PROPERTIES[name]}{modes}) AS SELECT CAST(id AS INT) AS k,"
            f" CAST(id DIV {self.size.rows} AS INT) AS p, CAST(0 AS INT) AS amount,"
            " string(id) AS note"
            f" FROM range(0, {self.size.partitions * self.size.rows}, 1, {self.size.partitions})",
        )

    def make_source(self, table: str, partitions: int, first: int = 0) -> None:
        """Make a source with rows of every third partition, or of one, unless it is there."""
        run(
            self.sides.direct,
            f"CREATE TABLE IF NOT EXISTS {self.namespace}.{table} USING {self.table_format.name} AS SELECT"
            f" CAST(p * {self.size.rows} + id % {_ROWS_MERGED} AS INT) AS k, p, amount, 'merged' AS note"
            f" FROM (SELECT id, CAST(id DIV {_ROWS_MERGED} * 3 + {first} AS INT) AS p, CAST(id AS INT) AS amount"
            f" FROM range(0, {partitions * _ROWS_MERGED}, 1, 1))",
        )

    def _files_replaced(self, session: hive.Connection, table: str) -> int:
        """Files that the table's last commit has replaced, by the format's own metrics."""
        name = f"{self.namespace}.{table}"
        if self.table_format.name == "delta":
            ((*_, metrics, _, _),) = run(session, f"DESCRIBE HISTORY {name} LIMIT 1")
            return int(json.loads(str(metrics))["numTargetFilesRemoved"])
        ((count,),) = run(
            session,
            "SELECT coalesce(summary['deleted-data-files'], '0')"
            f" FROM {name}.snapshots ORDER BY committed_at DESC LIMIT 1",
        )
        return int(str(count))

    def _digest(self, table: str) -> str:
        """A query of a number that tells tables of different rows apart."""
        columns = "k, p, amount, note"
        return f"SELECT count(*), sum(CAST(xxhash64({columns}) AS DECIMAL(38))) FROM {self.namespace}.{table}"

    def merge(self, target: str, source: str) -> str:
        """The statement."""
        return _MERGE.format(target=f"{self.namespace}.{target}", source=f"{self.namespace}.{source}")

    def measured(self, partitions: int, mode: str, runs: int, warm_ups: int) -> Measured:
        """Merge rows of so many partitions into the tables of both sides, in turns."""
        source = f"source_of_{partitions}"
        self.make_source(source, partitions)
        sides = replace(self.sides, text_of=lambda is_proxied, _: self.merge(_target(is_proxied, mode), source))
        pair = sides.measure("", WARM, runs=runs, warm_ups=warm_ups)
        scans, replaced, left = [], [], []
        for is_proxied, session in ((False, self.sides.direct), (True, self.sides.proxied)):
            latest = self.ui.last_execution()
            target = _target(is_proxied, mode)
            run(session, self.merge(target, source))
            scans.append(self.table_format.scans_of(self.ui, target, after=latest))
            # Other sessions may see what Iceberg's catalog has kept of the table from before.
            replaced.append(self._files_replaced(session, target))
            left.append(run(session, self._digest(target)))
        name = f"{partitions:,} partitions" + (f", {mode}" if mode else "")
        return Measured(
            name, left[0] == left[1], scans[0], scans[1], (replaced[0], replaced[1]), pair, verdict(pair)
        )

    def conflicts(self, mode: str) -> Conflicts:
        """Merge partitions of their own by writers at once, some rounds on each side."""
        for writer in range(_WRITERS):
            self.make_source(f"source_of_writer_{writer}", 1, first=writer * self.size.partitions // _WRITERS)
        failed, errors = [], Counter[str]()
        for is_proxied, endpoint in ((False, self.endpoints[0]), (True, self.endpoints[1])):
            found = [
                error
                for _ in range(_ROUNDS)
                for error in self._at_once(endpoint, _target(is_proxied, mode))
                if error
            ]
            failed.append(len(found))
            errors.update(f"{'proxied' if is_proxied else 'direct'}: {error}" for error in found)
        name = f"{_WRITERS} writers at once" + (f", {mode}" if mode else "")
        return Conflicts(name, _WRITERS * _ROUNDS, failed[0], failed[1], dict(errors))

    def _at_once(self, endpoint: Endpoint, target: str) -> list[str]:
        def write(writer: int) -> str:
            with closing(connect(endpoint)) as session:
                try:
                    run(session, self.merge(target, f"source_of_writer_{writer}"))
                except OperationalError as error:
                    return str(error.args[0].status.errorMessage)[:120]
            return ""

        with ThreadPoolExecutor(_WRITERS) as pool:
            return list(pool.map(write, range(_WRITERS)))


def _target(is_proxied: bool, mode: str) -> str:  # noqa: FBT001 - one of two sides
    # A session of Iceberg keeps a table that another one has dropped: no name is used twice.
    return "_".join(("proxied" if is_proxied else "direct", *mode.split("-")))


@contextmanager
def running(table_format: TableFormat, size: Size, directory: Path, memory: str, *, gate: bool) -> Iterator[Bench]:
    """A server, and the proxy in front of it."""
    with ExitStack() as stack:
        server = stack.enter_context(table_format.server(directory / "server", memory=memory))
        direct = stack.enter_context(closing(connect(server.endpoint)))
        options = ("--set", 'rewrite.merge_tables=["*"]', *(() if gate else ("--set", "rewrite.cost_gate=false")))
        proxy = stack.enter_context(proxy_process(server.endpoint, directory / "proxy", options=options))
        proxied = stack.enter_context(closing(connect(proxy.endpoint)))

        def open_session(is_proxied: bool) -> hive.Connection:  # noqa: FBT001 - one of two sides
            return connect(proxy.endpoint if is_proxied else server.endpoint)

        processes = (server.pid, proxy.child.process.pid)
        sides = Sides(direct, proxied, open_session, processes)
        bench = Bench(table_format, server.ui, sides, (server.endpoint, proxy.endpoint), size)
        run(direct, f"CREATE DATABASE IF NOT EXISTS {bench.namespace}")
        yield bench


def show(console: Console, report: Report) -> None:
    """Print the times, and the conflicts."""
    counts = FORMATS[report.table_format].counts
    table = Table(
        "source",
        title=f"{report.size.partitions:,} partitions of {report.size.rows:,} rows",
        title_justify="left",
        box=SIMPLE,
    )
    for heading in (*counts, "replaced", "direct s", "proxied s", "ratio", "cpu"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in report.measured:
        table.add_row(
            one.name if one.same_tables else f"[bold red]ANOTHER TABLE: {one.name}[/]",
            *(f"{getattr(one.direct, name):,} > {getattr(one.proxied, name):,}" for name in counts.values()),
            " > ".join(f"{count:,}" for count in one.replaced),
            *seconds_cells(one.verdict),
        )
    console.print(table)
    for found in report.conflicts:
        console.print(
            f"{found.name}: of {found.merges} MERGEs {found.direct} failed directly, {found.proxied} through"
            " the proxy",
            highlight=False,
        )


@click.command()
@click.argument("format_name", metavar="FORMAT", type=click.Choice(list(FORMATS)))
@json_option
@click.option(
    "--partitions", type=click.IntRange(min=20), default=1_000, show_default=True, help="Of each target."
)
@click.option(
    "--rows", type=click.IntRange(min=_ROWS_MERGED), default=100_000, show_default=True, help="Of each partition."
)
@click.option(
    "--merged",
    "counts",
    type=int,
    multiple=True,
    default=(1, 10, 300),
    show_default=True,
    help="Partitions that a source has rows of, at most a third of all.",
)
@click.option(
    "--mode",
    "modes",
    type=click.Choice(_MODES["iceberg"]),
    multiple=True,
    help="Of Iceberg; both, unless one is given.",
)
@directory_option("merges", "Where each format has a folder with its tables and logs.")
@memory_option
@runs_option(3)
@warm_ups_option(2)
@gate_option
def main(  # noqa: PLR0913 - one parameter per option
    *,
    format_name: str,
    json_path: Path | None,
    partitions: int,
    rows: int,
    counts: Sequence[int],
    modes: Sequence[str],
    directory: Path,
    memory: str,
    runs: int,
    warm_ups: int,
    gate: bool,
) -> None:
    """Measure what narrowing the target of MERGE saves, directly and through the proxy."""
    end_with_servers()
    table_format, size = FORMATS[format_name], Size(partitions, rows)
    measured: list[Measured] = []
    conflicts: list[Conflicts] = []
    with ExitStack() as stack:
        progress = stack.enter_context(shown_progress(Console(stderr=True)))
        progress(f"Starting Spark with {format_name}")
        place = directory / format_name
        bench = stack.enter_context(running(table_format, size, place, memory, gate=gate))
        for mode in modes or _MODES[format_name]:
            progress(f"Making two tables of {partitions:,} files {mode}")
            for is_proxied in (False, True):
                bench.make(_target(is_proxied, mode), mode)
            for merged in (count for count in counts if count * 3 <= partitions):
                progress(f"Merging {merged} partitions {mode}")
                measured.append(bench.measured(merged, mode, runs, warm_ups))
                write_json(json_path, Report(format_name, size, runs, measured, conflicts))
            progress(f"Merging by {_WRITERS} writers at once {mode}")
            conflicts.append(bench.conflicts(mode))
            write_json(json_path, Report(format_name, size, runs, measured, conflicts))
    show(Console(width=130), Report(format_name, size, runs, measured, conflicts))
    if wrong := [one.name for one in measured if not one.same_tables]:
        raise click.ClickException(f"left another table through the proxy: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
