"""A hundred short statements directly and through the proxy, in turns: joins of a small fact with its calendar.

A fact of a hundred small partitions leaves nothing to gain: Spark has it listed, and reads it in no time. So this
is about how little the proxy takes from such a statement, in time and in processor time.
"""

from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import click
from command_line import directory_option, end_with_servers, memory_option
from dashboard_tables import DashboardTables
from pairs import WARM, Pair, Sides
from proxy_counters import Counts, ProxyCounters, grown, key_queries, rewritten_statements
from reports import json_option, write_json
from rich.console import Console
from star_server import star_server
from verdicts import Verdict, verdict

from demo.hive import run, same_answer
from demo.progress import shown_progress

_STATEMENTS = 100
_PARTITIONS = 100
# Through the proxy the median statement shall come at this part of the direct speed at least.
SPEED_MIN = 0.98
_MILLISECONDS = 1e3


@dataclass(frozen=True)
class Report:
    """Every run, the verdict on the median pair, and the proxy's counters over the measured rounds."""

    rounds: int
    rows_per_partition: int
    same_answers: bool
    pair: Pair
    verdict: Verdict
    counters: Counts


def measured(
    tables: DashboardTables, sides: Sides, counters: ProxyCounters, rounds: int, rounds_before: int
) -> Report:
    """All statements in each round, after rounds that do not count."""
    statements = tables.short(_STATEMENTS)
    same = all(same_answer(run(sides.direct, sql), run(sides.proxied, sql)) for sql in statements)
    _ = sides.compare(statements * rounds_before, WARM)
    before = counters.now()
    pair = sides.compare(statements * rounds, WARM)
    growth = grown(before, counters.now())
    return Report(rounds, tables.rows_per_partition, same, pair, verdict(pair), growth)


def show(console: Console, report: Report) -> None:
    """Print the speed with its interval, and the processor time of a statement."""
    found, pair = report.verdict, report.pair
    low, high = 1 / found.interval.high, 1 / found.interval.low
    console.print(
        f"{len(pair.direct.wall_s)} statements on each side, in turns: {found.direct_s * _MILLISECONDS:.1f} ms "
        f"directly, {found.proxied_s * _MILLISECONDS:.1f} ms through the proxy (medians).\n"
        f"Speed: {1 / found.ratio:.3f} of the direct one in the median pair, interval {low:.3f} to {high:.3f}; "
        f"all together {sum(pair.direct.wall_s) / sum(pair.proxied.wall_s):.3f}. At least {SPEED_MIN} is wanted.",
        highlight=False,
    )
    if pair.proxied.proxy_cpu_s:
        console.print(
            f"Processor time of a statement: the server {mean(pair.direct.server_cpu_s) * _MILLISECONDS:.1f} ms "
            f"directly and {mean(pair.proxied.server_cpu_s) * _MILLISECONDS:.1f} ms through the proxy, which "
            f"takes {mean(pair.proxied.proxy_cpu_s) * _MILLISECONDS:.2f} ms itself (means).",
            highlight=False,
        )
    console.print(
        f"Through the proxy {rewritten_statements(report.counters)} were narrowed, and "
        f"{key_queries(report.counters)} key queries were asked.",
        highlight=False,
    )


@click.command()
@json_option
@directory_option("star", "Where the tables are kept, made once for each size, and the logs.")
@memory_option
@click.option("--rows", default=500, show_default=True, help="Rows of each of the 100 partitions.")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True, help="Measured rounds.")
@click.option(
    "--rounds-before",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Unmeasured rounds, while the cost gate learns.",
)
def main(  # noqa: PLR0913 - one parameter per option
    *, json_path: Path | None, directory: Path, memory: str, rows: int, rounds: int, rounds_before: int
) -> None:
    """Measure short statements directly and through the proxy."""
    end_with_servers()
    tables = DashboardTables(_PARTITIONS, rows)
    with (
        shown_progress(Console(stderr=True)) as progress,
        star_server(directory, memory, tables, progress) as server,
        server.proxy() as proxy,
        server.sides(proxy) as sides,
    ):
        progress(f"Measuring {_STATEMENTS} statements, {rounds_before + rounds} times")
        report = measured(tables, sides, ProxyCounters(proxy.admin_url), rounds, rounds_before)
    write_json(json_path, report)
    show(Console(), report)
    if not report.same_answers:
        raise click.ClickException("answered otherwise through the proxy")


if __name__ == "__main__":
    main()
