"""The commands `starpruner top`, `starpruner digests` and `starpruner report`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from time import sleep
from typing import Any
from urllib.parse import urlencode

import click
import msgspec

from proxy.admin.openapi import BackendsAnswer
from proxy.admin.statements_endpoint import REASON_DAYS_MAX, DigestsAnswer
from proxy.admin.statements_view import REASON_DAYS, NowView
from proxy.config.serving import AdminSection
from proxy.history.shadow_report import ShadowReport
from proxy.terminal.admin_client import AdminClient
from proxy.terminal.views import digest_lines, now_lines, shadow_lines


def _asks_admin_port(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of commands that ask a running proxy, and hand its client to the command."""

    @click.option(
        *("--admin", "url"),
        default=AdminSection().listen,
        show_default=True,
        metavar="URL",
        help="The admin port of the proxy.",
    )
    @click.option("--user", envvar="STARPRUNER_USER", help="A user of the backend, or an administrator.")
    @click.option("--password", envvar="STARPRUNER_PASSWORD", help="Better set as STARPRUNER_PASSWORD.")
    @click.option("--json", "as_json", is_flag=True, help="Print the admin port's JSON, once.")
    @wraps(command)
    def ask(*, url: str, user: str | None, password: str | None, **others: Any) -> None:
        command(AdminClient(url, user, password), **others)

    return ask


@click.command()
@_asks_admin_port
@click.option("--once", is_flag=True, help="Print it once, for scripts.")
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(0.2, 3_600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to ask.",
)
def top(admin: AdminClient, *, as_json: bool, once: bool, every_s: float) -> None:
    """Show what runs in a proxy, its backends and its sessions, until Ctrl-C."""
    if as_json:
        both = {"now": msgspec.Raw(admin.get_json("/now")), **msgspec.json.decode(admin.get_json("/backends"))}
        click.echo(msgspec.json.encode(both).decode())
        return
    try:
        while True:
            now, backends = admin.get("/now", NowView), admin.get("/backends", BackendsAnswer).backends
            lines = now_lines(now, backends, _width())
            if once:
                _print(lines)
                return
            click.clear()
            _print(lines[: shutil.get_terminal_size().lines - 1])
            sleep(every_s)
    except KeyboardInterrupt:
        return


_days = click.option(
    "--days",
    type=click.IntRange(1, REASON_DAYS_MAX),
    default=REASON_DAYS,
    show_default=True,
    help="How many days to look back.",
)


@click.command()
@_asks_admin_port
@_days
def report(admin: AdminClient, *, as_json: bool, days: int) -> None:
    """Show what rewriting would have saved, by runs in shadow mode."""
    path = f"/shadow/report?{urlencode({'days': days})}"
    if as_json:
        click.echo(admin.get_json(path).decode())
        return
    _print(shadow_lines(admin.get(path, ShadowReport), days))


@click.command()
@_asks_admin_port
@_days
@click.option("--compare", nargs=2, metavar="DAY LATER", help="Compare the runs of two days, as 2026-11-23.")
def digests(admin: AdminClient, *, as_json: bool, days: int, compare: tuple[str, str] | None) -> None:
    """Show one line for statements that differ in constants alone."""
    wanted = {} if compare is None else dict(zip(("earlier", "later"), compare, strict=True))
    path = f"/digests?{urlencode({'days': days, **wanted})}"
    if as_json:
        click.echo(admin.get_json(path).decode())
        return
    earlier, later = compare or ("BEFORE", "LAST 24 H")
    _print(digest_lines(admin.get(path, DigestsAnswer).digests, (later, earlier), _width()))


def _width() -> int | None:
    """The columns of the terminal; None where the lines go elsewhere and are not cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _print(lines: Sequence[str]) -> None:
    click.echo("\n".join(lines))
