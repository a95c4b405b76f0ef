"""The time that the proxy says it has saved, beside the time that it has saved: each statement runs on both sides.

Sessions of ten statements are opened in turns directly and through the proxy, so that the first statement of each
finds nothing listed. In every fifth session through the proxy rewriting is switched off, as an operator does to
see what it is worth; these and the trials of the cost gate are all that the proxy has to compare with.
"""

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

import click
import msgspec
from command_line import directory_option, end_with_servers, memory_option
from dashboard_tables import DashboardTables, partitions_option
from reports import json_option, write_json
from rich.console import Console
from star_server import StarServer, star_server

from demo.hive import Endpoint, Row, connect, run, same_answer
from demo.progress import Progress, shown_progress
from demo.proxy_process import ProxyProcess
from proxy.admin.statements_view import TodayView
from proxy.history.savings import Savings

_PER_SESSION = 10
_OFF_EVERY = 5
# The history writes twice a second.
_WRITTEN_S = 2.0
_SECONDS_MAX = 60
# By so much the page may be wrong.
ERROR_MAX = 0.15


@dataclass
class Report:
    """Seconds of the statements of sessions with rewriting, on both sides; and what GET /summary says of them."""

    partitions: int
    direct_s: list[float] = field(default_factory=list)
    proxied_s: list[float] = field(default_factory=list)
    other_answers: int = 0
    told: Savings = field(default_factory=Savings)

    @property
    def saved_s(self) -> float:
        """The time that was saved."""
        return sum(self.direct_s) - sum(self.proxied_s)

    @property
    def error(self) -> float:
        """The part of it by which both figures of the page together are wrong."""
        return (self.told.measured_s + self.told.estimated_s) / self.saved_s - 1


def measure(server: StarServer, tables: DashboardTables, sessions: int, progress: Progress) -> Report:
    """Run the sessions, and ask the proxy."""
    report = Report(tables.partitions)
    statements = [sql for number in range(sessions) for sql in tables.dashboard(number)]
    with server.proxy("--set", "admin.open=true") as proxy:
        for number in range(sessions):
            progress(f"Session {number + 1} of {sessions}")
            texts = statements[number * _PER_SESSION :][:_PER_SESSION]
            is_off = number % _OFF_EVERY == _OFF_EVERY - 1
            _session(server, proxy, texts, report, is_off=is_off)
        time.sleep(_WRITTEN_S)
        with urlopen(f"{proxy.admin_url}/summary", timeout=_SECONDS_MAX) as answer:
            report.told = msgspec.json.decode(answer.read(), type=TodayView).savings
    return report


def _session(
    server: StarServer, proxy: ProxyProcess, texts: Sequence[str], report: Report, *, is_off: bool
) -> None:
    """One session on each side, one after the other: a server that does two things tells nothing of either."""
    setting = "SET starpruner.enabled=false" if is_off else ""
    sides = (_run(server.server.endpoint, texts), _run(proxy.endpoint, texts, setting))
    for (direct_s, one), (proxied_s, other) in zip(*sides, strict=True):
        report.other_answers += not same_answer(one, other)
        if not is_off:
            report.direct_s.append(direct_s)
            report.proxied_s.append(proxied_s)


def _run(endpoint: Endpoint, texts: Sequence[str], setting: str = "") -> list[tuple[float, list[Row]]]:
    timed = []
    with closing(connect(endpoint)) as session:
        if setting:
            run(session, setting)
        for sql in texts:
            begun = time.perf_counter()
            rows = run(session, sql)
            timed.append((time.perf_counter() - begun, rows))
    return timed


@click.command()
@json_option
@directory_option("star", "Where the tables are kept, made once for each size, and the logs.")
@memory_option
@partitions_option(2_000)
@click.option("--rows", default=500, show_default=True, help="Rows of each.")
@click.option("--sessions", default=25, show_default=True, help="Of ten statements each, on each side.")
def main(  # noqa: PLR0913 - one parameter per option
    *, json_path: Path | None, directory: Path, memory: str, partitions: int, rows: int, sessions: int
) -> None:
    """Compare the time that the proxy says it has saved with the time that it has saved."""
    end_with_servers()
    tables = DashboardTables(partitions, rows)
    with (
        shown_progress(Console(stderr=True)) as progress,
        star_server(directory, memory, tables, progress) as server,
    ):
        report = measure(server, tables, sessions, progress)
    write_json(json_path, report)
    told = report.told
    Console().print(
        f"{len(report.direct_s)} statements: {sum(report.direct_s):.1f} s directly, {sum(report.proxied_s):.1f} s "
        f"through the proxy, {report.saved_s:.1f} s saved.\nThe page says {told.measured_s:.1f} s, measured in "
        f"{told.measured} of {told.runs} rewritten ones, and {told.estimated_s:.1f} s by an estimate for "
        f"{told.estimated}: {report.error:+.0%}.",
        highlight=False,
    )
    if report.other_answers:
        raise click.ClickException(f"{report.other_answers} answered otherwise through the proxy")
    if abs(report.error) > ERROR_MAX:
        raise click.ClickException(f"the page is wrong by more than {ERROR_MAX:.0%}")


if __name__ == "__main__":
    main()
