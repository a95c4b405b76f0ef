"""Savings by lists of partitions: joins and filters that keys do not tell, directly and through the proxy.

Cold means a new session on each side, in which Spark's listing of files is yet to be made. The proxied times
include all that the proxy does.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from command_line import directory_option, end_with_servers, memory_option, runs_option, warm_ups_option
from kept_tables import Question, is_complete, mark_complete
from pairs import COLD, WARM, Pair, Sides
from pyhive import hive
from reports import json_option, write_json
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from verdict_table import seconds_cells
from verdicts import Verdict, verdict

from demo.hive import connect, run, same_answer
from demo.java import find_java
from demo.progress import Progress, shown_progress
from demo.proxy_process import proxy_process
from demo.thrift_server import ServerOptions, thrift_server

# The first day of the facts, and the dimensions' days around them.
_FIRST_DAY = "2000-01-01"
_DAYS = 14_000

_DIMENSIONS = {
    "calendar": "SELECT d, CAST(d AS STRING) AS ds, date_format(d, 'yyyy-MM') AS ym, year(d) AS year,"
    " month(d) AS month"
    f" FROM (SELECT date_add(DATE'1995-01-01', CAST(id AS INT)) AS d FROM range(0, {_DAYS}, 1, 1))",
    "promotions": "SELECT CAST(id AS INT) AS promotion, CAST(d AS STRING) AS first,"
    " CAST(date_add(d, 13) AS STRING) AS last"
    " FROM (SELECT id, date_add(DATE'2000-01-10', CAST(id * 90 AS INT)) AS d FROM range(0, 110, 1, 1))",
    "params": "SELECT '2002-03-01' AS report_ds, 'daily' AS report",
}


def questions(table: str) -> list[Question]:
    """The statements, by the fact that they read."""
    asked = {
        "string against date": "JOIN calendar c ON f.ds = c.d WHERE c.year = 2001 AND c.month = 5",
        "function of the string": "JOIN calendar c ON to_date(f.ds) = c.d WHERE c.year = 2001 AND c.month = 5",
        "month": "JOIN (SELECT DISTINCT ym, year, month FROM calendar) c ON substr(f.ds, 1, 7) = c.ym"
        " WHERE c.year = 2001 AND c.month = 5",
        "promotion range": "JOIN promotions p ON f.ds BETWEEN p.first AND p.last WHERE p.promotion IN (3, 5)",
        "since a parameter": "WHERE f.ds >= (SELECT max(p.report_ds) FROM params p WHERE p.report = 'daily')"
        " AND f.ds < '2002-04-01'",
        "equality, for comparison": "JOIN calendar c ON f.ds = c.ds WHERE c.year = 2001 AND c.month = 5",
    }
    select = f"SELECT count(*) AS n, sum(f.amount) AS amount FROM {table} f"
    return [Question(name, table, f"{select} {rest}") for name, rest in asked.items()]


@dataclass(frozen=True)
class Measured:
    """One question on one number of partitions, with Spark's listing cold or warm."""

    partitions: int
    listing: str
    question: Question
    same_answer: bool
    pair: Pair
    verdict: Verdict


@dataclass(frozen=True)
class Report:
    """All measurements."""

    runs: int
    measured: Sequence[Measured]


def ensure(session: hive.Connection, partitions: int, progress: Progress) -> str:
    """Make the fact and the dimensions, unless they are there from a run before."""
    for name, query in _DIMENSIONS.items():
        if not is_complete(session, name):
            run(session, f"DROP TABLE IF EXISTS {name}")
            run(session, f"CREATE TABLE {name} USING parquet AS {query}")
            mark_complete(session, name)
    table = f"sales_{partitions}"
    if not is_complete(session, table):
        progress(f"Making {partitions:,} partitions")
        run(session, f"DROP TABLE IF EXISTS {table}")
        run(
            session,
            f"CREATE TABLE {table} USING parquet PARTITIONED BY (ds) AS SELECT id AS amount,"
            f" CAST(date_add(DATE'{_FIRST_DAY}', CAST(id % {partitions} AS INT)) AS STRING) AS ds"
            f" FROM range(0, {partitions}, 1, 4) DISTRIBUTE BY ds",
        )
        mark_complete(session, table)
    return table


@contextmanager
def running(directory: Path, memory: str, progress: Progress) -> Iterator[Sides]:
    """A server, and the proxy in front of it."""
    progress("Starting Spark Thrift Server")
    with ExitStack() as stack:
        settings = ServerOptions(directory / "server", memory=memory)
        server = stack.enter_context(thrift_server(settings, find_java(), progress))
        options = ("--set", "rewrite.cost_gate=false")
        proxy = stack.enter_context(proxy_process(server.endpoint, directory / "proxy", options=options))
        direct = stack.enter_context(closing(connect(server.endpoint)))
        proxied = stack.enter_context(closing(connect(proxy.endpoint)))

        def open_session(is_proxied: bool) -> hive.Connection:  # noqa: FBT001 - one of two sides
            return connect(proxy.endpoint if is_proxied else server.endpoint)

        yield Sides(direct, proxied, open_session, (server.child.process.pid, proxy.child.process.pid))


def show(console: Console, report: Report) -> None:
    """Print a table for each number of partitions and state of the listing."""
    for key in dict.fromkeys((one.partitions, one.listing) for one in report.measured):
        table = Table("statement", title=f"{key[0]:,} partitions, {key[1]}", title_justify="left", box=SIMPLE)
        for heading in ("direct s", "proxied s", "ratio", "cpu"):
            table.add_column(heading, justify="right", no_wrap=True)
        for one in (one for one in report.measured if (one.partitions, one.listing) == key):
            name = one.question.name
            table.add_row(name if one.same_answer else f"ANOTHER ANSWER: {name}", *seconds_cells(one.verdict))
        console.print(table)
    console.print(f"Medians of {report.runs} runs on each side, in turns. Ratio: proxied to direct.", style="dim")


@click.command()
@json_option
@click.option(
    "--partitions",
    "numbers_of_partitions",
    type=click.IntRange(min=900, max=10_000),
    multiple=True,
    default=(1_000, 10_000),
    show_default=True,
    help="Partitions of each fact.",
)
@directory_option("partition_lists", "Where the tables are kept, made once, and the logs.")
@memory_option
@runs_option(5)
@warm_ups_option(2)
def main(  # noqa: PLR0913 - one parameter per option
    *,
    json_path: Path | None,
    numbers_of_partitions: Sequence[int],
    directory: Path,
    memory: str,
    runs: int,
    warm_ups: int,
) -> None:
    """Measure what lists of partitions save, directly and through the proxy."""
    end_with_servers()
    measured: list[Measured] = []
    with shown_progress(Console(stderr=True)) as progress, running(directory, memory, progress) as sides:
        for partitions in numbers_of_partitions:
            table = ensure(sides.direct, partitions, progress)
            for question in questions(table):
                same = same_answer(run(sides.direct, question.sql), run(sides.proxied, question.sql))
                for listing in (COLD, WARM):
                    progress(f"Measuring {partitions:,} partitions, {listing}: {question.name}")
                    pair = sides.measure(question.sql, listing, runs=runs, warm_ups=warm_ups)
                    measured.append(Measured(partitions, listing, question, same, pair, verdict(pair)))
                    write_json(json_path, Report(runs, measured))
    show(Console(), Report(runs, measured))
    if wrong := [one.question.name for one in measured if not one.same_answer]:
        raise click.ClickException(f"answered otherwise through the proxy: {', '.join(dict.fromkeys(wrong))}")


if __name__ == "__main__":
    main()
