"""Statements that jobs of warehouses send, on tables of some 2,000 partitions, directly and through the proxy.

The statements are those of tests/reach/statements/warehouse.toml, and the tables those of tests/reach/tables.sql
with every day of six years in place of three days a month.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click
from answers import same_rows
from command_line import directory_option, end_with_servers, memory_option, runs_option, warm_ups_option
from explaining import explained
from pairs import COLD, WARM, Sides
from proxy_counters import ProxyCounters
from pyhive import exc, hive
from reach_corpus import DATABASE, ReachStatement, statements, table_statements
from reports import json_option, write_json
from rich.console import Console
from verdict_table import show
from verdicts import Measured, summary

from demo.hive import connect, run
from demo.java import find_java
from demo.progress import Progress, shown_progress
from demo.proxy_process import proxy_process
from demo.thrift_server import ServerOptions, thrift_server

_TOOL = "warehouse"
_FIRST_DAY, _EARLIER = "DATE'2023-01-01'", "DATE'2019-07-01'"
# The facts that the statements read, each with what it has in place of the days that it is told to have.
_ALL_DAYS = {
    "sales": "TRUE",
    "orders": "TRUE",
    "returns": "TRUE",
    "shipments": "year >= 2023",
}
_SOME_DAYS = re.compile(r"(?:year = 2024 AND )?day IN \([0-9, ]+\)")
_OF_TABLE = re.compile(r"(?:CREATE TABLE|INSERT INTO) (\w+)")
_COLUMNS = 150


@dataclass(frozen=True)
class Report:
    """The measurements so far."""

    queries: Sequence[Measured]


def chosen() -> list[ReachStatement]:
    """The statements that write nothing, so that each run finds what the one before found."""
    return [one for one in statements() if one.tool == _TOOL and not one.writes]


def made() -> Iterator[str]:
    """The statements that make the tables, larger than the tests have them."""
    for sql in table_statements():
        found = _OF_TABLE.match(sql)
        days = _ALL_DAYS.get(found[1]) if found else None
        # Facts that none of the statements reads stay as small as the tests have them.
        yield (
            sql.replace(_FIRST_DAY, _EARLIER)
            if days is None
            else _SOME_DAYS.sub(days, sql.replace(_FIRST_DAY, _EARLIER))
        )


def ensure(session: hive.Connection, progress: Progress) -> None:
    """Make the tables, unless they are there from a run before."""
    if (DATABASE,) in {tuple(row) for row in run(session, "SHOW DATABASES")}:
        run(session, f"USE {DATABASE}")
        if run(session, "SHOW TABLES LIKE 'complete'"):
            return
        run(session, "USE default")
        run(session, f"DROP DATABASE {DATABASE} CASCADE")
    run(session, f"CREATE DATABASE {DATABASE}")
    run(session, f"USE {DATABASE}")
    for number, sql in enumerate(made()):
        progress(f"Making the tables: {number}")
        run(session, sql)
    run(session, "CREATE TABLE complete (id INT) USING parquet")


def page(found: Sequence[Measured]) -> str:
    """The table of docs/coverage.md: seconds directly and through the proxy, cold and warm, and processor time."""
    head = "| statement | partitions kept | cold | ratio | warm | ratio | processor time, cold |"
    return "\n".join([head, "|---|---|---|---|---|---|---|", *map(_row, found)])


def _row(one: Measured) -> str:
    kept = ", ".join(f"{scan.kept:,} of {scan.total:,}" for scan in one.narrowed) or "all"
    cold, warm = one.verdicts[COLD], one.verdicts[WARM]
    cpu = (
        f"{cold.proxied_cpu_s / cold.direct_cpu_s:.2f}" if cold.direct_cpu_s and cold.proxied_cpu_s else "unknown"
    )
    times = [f"{each.direct_s:.2f} s, {each.proxied_s:.2f} s | {each.ratio:.2f}" for each in (cold, warm)]
    return f"| {one.query} | {kept} | {' | '.join(times)} | {cpu} |"


def measured(one: ReachStatement, sides: Sides, admin_url: str, runs: int, warm_ups: int) -> Measured:
    """Compare a statement's answers, which also warms both sides up, then take its time."""
    try:
        direct, proxied = run(sides.direct, one.query), run(sides.proxied, one.query)
        pairs = {
            COLD: sides.measure(one.query, COLD, runs=runs, warm_ups=0),
            WARM: sides.measure(one.query, WARM, runs=runs, warm_ups=warm_ups),
        }
        told = explained(admin_url, DATABASE, one.query)
    except exc.Error as error:
        return Measured.failed(one.name, error)
    return Measured.of_pairs(one.name, len(direct), told, pairs, same_answer=same_rows(direct, proxied))


@click.command()
@json_option
@directory_option("warehouse", "Where the tables are kept, and the logs.")
@memory_option
@runs_option(5)
@warm_ups_option(4)
@click.option("--statement", "names", multiple=True, help="A part of a statement's name; may be repeated.")
def main(  # noqa: PLR0913 - one parameter per option
    *, json_path: Path | None, directory: Path, memory: str, runs: int, warm_ups: int, names: tuple[str, ...]
) -> None:
    """Measure the statements of warehouses directly and through the proxy."""
    end_with_servers()
    found: list[Measured] = []
    asked = [one for one in chosen() if not names or any(name in one.name for name in names)]
    options = ServerOptions(directory / "server", memory=memory)
    with (
        shown_progress(Console(stderr=True)) as progress,
        thrift_server(options, find_java(), progress) as server,
        proxy_process(server.endpoint, directory / "proxy") as proxy,
        closing(connect(server.endpoint)) as direct,
    ):
        ensure(direct, progress)

        def open_session(is_proxied: bool) -> hive.Connection:  # noqa: FBT001 - one of two sides
            endpoint = proxy.endpoint if is_proxied else server.endpoint
            return connect(endpoint, database=DATABASE, user="newcomer")

        with closing(connect(proxy.endpoint, database=DATABASE)) as proxied:
            processes = (server.child.process.pid, proxy.child.process.pid)
            counters = ProxyCounters(proxy.admin_url)
            sides = Sides(direct, proxied, open_session, processes, counters.narrowed_scans)
            for number, one in enumerate(asked, start=1):
                progress(f"Measuring {one.name}, {number} of {len(asked)}")
                found.append(measured(one, sides, proxy.admin_url, runs, warm_ups))
                write_json(json_path, Report(found))
    _show(found)
    click.echo(page([one for one in found if one.error is None]))


def _show(found: Sequence[Measured]) -> None:
    summaries = {listing: one for listing in (COLD, WARM) if (one := summary(found, listing)) is not None}
    show(Console(width=_COLUMNS), found, summaries)
    failed = [one.query for one in found if one.error is not None or not one.same_answer]
    if failed:
        raise click.ClickException(f"failed, or answered otherwise through the proxy: {', '.join(failed)}")


if __name__ == "__main__":
    main()
