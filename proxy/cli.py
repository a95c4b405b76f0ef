"""The command line: `starpruner serve`, `explain`, `top`, `digests`, `report`, and those of installed extras."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

import click
import msgspec

from proxy.admin.explain_endpoint import ANONYMOUS, ExplainRequest
from proxy.admin.passwords import hash_of
from proxy.advice.advise import AdviceRequest
from proxy.advice.advisor import AdviceSettings
from proxy.advice.report import text as advice_text
from proxy.bootstrap import (
    advise_once,
    explain_once,
    log_to_stderr,
    print_ready_line,
    run,
    run_worker,
    serve_until_stopped,
)
from proxy.config.address import start_error
from proxy.config.config import Config, load
from proxy.config.errors import ConfigError
from proxy.extras import how_to_install
from proxy.kerberos.errors import KerberosMissingError
from proxy.kerberos.gss import library
from proxy.limits.by_name import limits_by_name
from proxy.session.explain.text import text
from proxy.terminal.commands import digests, report, top
from proxy.tracing.export import sender_class
from proxy.workers.launch import run_workers, worker_count
from proxy.workers.supervisor import WorkersError


class _Commands(click.Group):
    """The built-in commands and those of the entry-point group `starpruner.commands`, loaded when called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *(e.name for e in entry_points(group="starpruner.commands"))})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        matching = entry_points(group="starpruner.commands", name=cmd_name)
        return found if found is not None or not matching else _load(next(iter(matching)))


def _load(entry_point: Any) -> click.Command:
    try:
        command = entry_point.load()
    except ModuleNotFoundError as error:
        return _unavailable(entry_point.name, error.name or "a module")
    if not isinstance(command, click.Command):
        raise TypeError(f"the entry point {entry_point.name} is {command!r}, expected a click command")
    return command


def _unavailable(name: str, module: str) -> click.Command:
    """Return a command that names the missing extra when it is called and in the list of commands."""
    extra = "pipeline" if name == "pipeline" else "demo"

    @click.command(
        name,
        help=f"Not installed: needs the extra {extra}.",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
    def unavailable() -> None:
        raise click.ClickException(f"{name} needs {module}: {how_to_install(extra)}")

    return unavailable


def _version() -> str:
    """The version, and whether the wheel has the wire and the relay compiled."""
    wire = find_spec("proxy.wire.framing")
    is_compiled = wire is not None and wire.origin is not None and not wire.origin.endswith(".py")
    return f"{version('starpruner')} (compiled)" if is_compiled else version("starpruner")


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version())
def main() -> None:
    """Starpruner: a proxy that makes Spark Thrift Server prune partitions while it plans."""


main.add_command(top)
main.add_command(digests)
main.add_command(report)


def _configured(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every command with a configuration."""
    command = click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        help="Set a configuration key, such as rewrite.enabled=false; may be repeated.",
    )(command)
    command = click.option(
        "--secrets",
        type=click.Path(path_type=Path),
        help="A second TOML file, over the first: passwords, for the proxy's user alone.",
    )(command)
    command = click.option(
        "--config", "path", type=click.Path(path_type=Path), help="The configuration, a TOML file."
    )(command)
    return click.option("--backend", metavar="HOST:PORT", help="The Spark Thrift Server; sets proxy.backend.")(
        command
    )


_password = click.option(
    "--password", envvar="STARPRUNER_PASSWORD", default=ANONYMOUS, help="Better set as STARPRUNER_PASSWORD."
)


def _config(
    path: Path | None,
    secrets: Path | None,
    overrides: tuple[str, ...],
    *,
    serves: bool = False,
    **flags: str | None,
) -> Config:
    """Load the configuration, overridden by the flags: `proxy_listen` is the flag of proxy.listen."""
    named = [f"{flag.replace('_', '.', 1)}={value}" for flag, value in flags.items() if value is not None]
    if flags.get("proxy_backend") is not None:
        # The flag names the only backend, whatever the file lists.
        named.append("proxy.backends=[]")
    try:
        config = load(path, (*overrides, *named), secrets=secrets)
        if serves:
            config.expect_one_transport()
            if config.tracing.endpoint:
                _ = sender_class()
            if config.kerberos.takes_logins:
                _ = library()
    except (ConfigError, KerberosMissingError) as error:
        raise click.ClickException(str(error)) from error
    return config


@main.command()
@_configured
@click.option("--listen", metavar="HOST:PORT", help="Where clients connect; sets proxy.listen.")
@click.option("--admin", metavar="HOST:PORT", help="The HTTP port for explain; sets admin.listen.")
@click.option(
    "--check", is_flag=True, help="Check the settings and end. Opens no port, and no file that they name."
)
@click.option("--user", help="With --check and --statement: tell which limits may count for this user.")
@click.option(
    "--statement",
    type=click.File(encoding="utf-8"),
    help="The file of that statement, - for standard input. Limits are told by the names in it.",
)
def serve(  # noqa: PLR0913 - one parameter per option
    *,
    path: Path | None,
    secrets: Path | None,
    overrides: tuple[str, ...],
    backend: str | None,
    listen: str | None,
    admin: str | None,
    check: bool,
    user: str | None,
    statement: TextIO | None,
) -> None:
    """Run the proxy until SIGTERM or Ctrl-C."""

    def read() -> Config:
        flags = {"proxy_backend": backend, "proxy_listen": listen, "admin_listen": admin}
        return _config(path, secrets, overrides, serves=True, **flags)

    config = read()
    if check:
        click.echo("starpruner: the settings are valid")
        if user is not None and statement is not None:
            click.echo("\n".join(limits_by_name(config, user, statement.read())))
        return
    log_to_stderr(config)
    try:
        if worker_count(config.proxy.workers) == 1:
            run(lambda: serve_until_stopped(config, read))
        else:
            run_workers(config, partial(run_worker, config, read), print_ready_line)
    except (ConfigError, WorkersError, OSError) as error:
        raise click.ClickException(start_error(error)) from error


@main.command(name="hash-password")
def hash_password() -> None:
    """Ask for a password, and print its hash for [admin] users."""
    click.echo(hash_of(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)))


@main.command()
@_configured
@click.option("--user", default=ANONYMOUS, show_default=True, help="Who asks; the backend decides.")
@_password
@click.option("--database", help="The database that names without one are looked up in.")
@click.option("--json", "as_json", is_flag=True, help="Print what POST /explain answers.")
@click.option("--run-key-queries/--no-run-key-queries", default=True, show_default=True)
@click.argument("sql")
def explain(  # noqa: PLR0913 - one parameter per option
    *,
    path: Path | None,
    secrets: Path | None,
    overrides: tuple[str, ...],
    backend: str | None,
    user: str,
    password: str,
    database: str | None,
    sql: str,
    as_json: bool,
    run_key_queries: bool,
) -> None:
    """Show what the proxy would do with SQL, and why."""
    config = _config(path, secrets, overrides, proxy_backend=backend)
    request = ExplainRequest(sql, database, run_key_queries)
    explained = run(lambda: explain_once(config, request, user, password))
    click.echo(msgspec.json.encode(explained).decode() if as_json else text(explained))


_MIB = 1024 * 1024


@main.command()
@_configured
@click.option("--history", metavar="PATH", help="The directory of the history; by default history.path.")
@click.option("--days", type=click.FloatRange(min=0, min_open=True), default=7.0, show_default=True)
@click.option("--database", help="Only statements of sessions in this database.")
@click.option("--user", default=ANONYMOUS, show_default=True, help="Who reads the tables; the backend decides.")
@_password
@click.option("--index", help="The file index that commands name; by default files.index.")
@click.option(
    "--file-mb",
    type=click.FloatRange(min=0, min_open=True),
    default=128,
    show_default=True,
    help="MB of a file of a layout; tables of less are left alone.",
)
@click.option(
    "--sample-mb",
    type=click.FloatRange(min=0, min_open=True),
    default=1024,
    show_default=True,
    help="MB of files of each table whose values are looked at.",
)
@click.option("--statements", type=click.IntRange(min=1), default=200, show_default=True, help="At most.")
@click.option("--tables", type=click.IntRange(min=1), default=20, show_default=True, help="At most.")
@click.option(
    "--query-seconds", type=click.FloatRange(min=1), default=120, show_default=True, help="Of each query."
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def advise(  # noqa: PLR0913 - one parameter per option
    *,
    path: Path | None,
    secrets: Path | None,
    overrides: tuple[str, ...],
    backend: str | None,
    history: str | None,
    days: float,
    database: str | None,
    user: str,
    password: str,
    index: str | None,
    file_mb: float,
    sample_mb: float,
    statements: int,
    tables: int,
    query_seconds: float,
    as_json: bool,
) -> None:
    """Propose layouts of tables by which the statements of the history would read less.

    Asks for the keys of the statements and for samples of the tables, and computes from these what each layout
    would spare. Nothing is written.
    """
    config = _config(path, secrets, overrides, proxy_backend=backend)
    settings = AdviceSettings(
        days=days,
        index=index or config.files.index or "starpruner.file_index",
        file_bytes=int(file_mb * _MIB),
        sample_bytes=int(sample_mb * _MIB),
        tables_max=tables,
        query_deadline_s=query_seconds,
        hint_chars_max=config.files.hint_chars_max,
    )
    request = AdviceRequest(history, database, statements, settings)
    found = run(lambda: advise_once(config, request, user, password, partial(click.echo, err=True)))
    click.echo(msgspec.json.encode(found).decode() if as_json else advice_text(found))
