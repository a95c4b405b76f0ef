"""The command line: `starpruner serve`, `starpruner explain`, and the commands that extras add."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from aiohttp import web

from proxy.access.impersonation import ProxyUsers
from proxy.admin.app import application
from proxy.admin.explain_endpoint import ANONYMOUS, ExplainRequest, ask
from proxy.backends.assembly import known_backends, registration, upkeep
from proxy.backends.maintenance import Upkeep
from proxy.config.address import Address, address
from proxy.config.config import Config, load
from proxy.config.errors import ConfigError
from proxy.net.fd_limit import make_room
from proxy.net.timeouts import Keepalive, Limits
from proxy.operations.session_port import Opened
from proxy.server import Proxy, ServerSettings
from proxy.session.explain.statement import ExplainingSession
from proxy.session.explain.text import text
from proxy.session.explain.view import ExplainView
from proxy.session.layout.partition_store import open_store
from proxy.session.session import Session
from proxy.session.shared_state import Shared
from proxy.upstream.client import BackendError
from proxy.workers.launch import Placement, host, worker_count
from proxy.workers.process_role import Role, role
from proxy.workers.supervisor import WorkersError
from proxy.workers.worker_slot import Place

T = TypeVar("T")

_log = logging.getLogger(__name__)

# Set by `docker stop`, systemd and Kubernetes, and by Ctrl-C.
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


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
    """A command that says which extra it is missing, also in the list of commands."""

    @click.command(
        name,
        help="Not installed: needs the extra starpruner[demo].",
        context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    )
    def unavailable() -> None:
        raise click.ClickException(f"{name} needs {module}: install it with  pip install 'starpruner[demo]'")

    return unavailable


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("starpruner"))
def main() -> None:
    """Starpruner: a proxy that makes Spark Thrift Server prune partitions while it plans."""


def _configured(command: Callable[..., None]) -> Callable[..., None]:
    """The options that every command with a configuration takes."""
    command = click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        help="Set a configuration key, such as rewrite.enabled=false; may be repeated.",
    )(command)
    command = click.option(
        "--config", "path", type=click.Path(path_type=Path), help="The configuration, a TOML file."
    )(command)
    return click.option("--backend", metavar="HOST:PORT", help="The Spark Thrift Server; sets proxy.backend.")(
        command
    )


def _config(path: Path | None, overrides: tuple[str, ...], **flags: str | None) -> Config:
    """The configuration with the flags on top: `proxy_listen` is the flag of proxy.listen."""
    named = [f"{flag.replace('_', '.', 1)}={value}" for flag, value in flags.items() if value is not None]
    if flags.get("proxy_backend") is not None:
        # The flag means this one, whatever the file lists.
        named.append("proxy.backends=[]")
    try:
        return load(path, (*overrides, *named))
    except ConfigError as error:
        raise click.ClickException(str(error)) from error


@main.command()
@_configured
@click.option("--listen", metavar="HOST:PORT", help="Where clients connect; sets proxy.listen.")
@click.option("--admin", metavar="HOST:PORT", help="The HTTP port for explain; sets admin.listen.")
def serve(
    *,
    path: Path | None,
    overrides: tuple[str, ...],
    backend: str | None,
    listen: str | None,
    admin: str | None,
) -> None:
    """Run the proxy until SIGTERM or Ctrl-C."""

    def read() -> Config:
        return _config(path, overrides, proxy_backend=backend, proxy_listen=listen, admin_listen=admin)

    config = read()
    _log_to_stderr(config)
    try:
        if worker_count(config.proxy.workers) == 1:
            _run(lambda: _serve(config, read))
        else:
            host(config, partial(_work, config, read), _say_ready)
    except (ConfigError, WorkersError, OSError) as error:
        raise click.ClickException(str(error)) from error


@main.command()
@_configured
@click.option("--user", default=ANONYMOUS, show_default=True, help="Who asks; the backend decides.")
@click.option(
    "--password", envvar="STARPRUNER_PASSWORD", default=ANONYMOUS, help="Better set as STARPRUNER_PASSWORD."
)
@click.option("--database", help="The database that names without one are looked up in.")
@click.option("--json", "as_json", is_flag=True, help="Print what POST /explain answers.")
@click.option("--run-key-queries/--no-run-key-queries", default=True, show_default=True)
@click.argument("sql")
def explain(  # noqa: PLR0913 - one parameter per option
    *,
    path: Path | None,
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
    config = _config(path, overrides, proxy_backend=backend)
    request = ExplainRequest(sql, database, run_key_queries)
    explained = _run(lambda: _explain(config, request, user, password))
    click.echo(msgspec.json.encode(explained).decode() if as_json else text(explained))


async def _explain(config: Config, request: ExplainRequest, user: str, password: str) -> ExplainView:
    backends, _ = await known_backends(config)
    return await ask(config, request, user, password, Shared.of(config), backends=backends)


def _work(config: Config, read: Callable[[], Config], placement: Placement, place: Place) -> int:
    """Serve as one of several. Returns the exit code."""
    _log_to_stderr(config, f" worker {place.slot}")
    try:
        _run(lambda: _serve(placement.of(config), lambda: placement.of(read()), place))
    except click.ClickException as error:
        _log.error("%s", error.message)
        return error.exit_code
    return 0


async def _serve(config: Config, read: Callable[[], Config], place: Place | None = None) -> None:
    with role(place) as chosen, open_store(config.catalog) as store:
        await _serve_with(config, Shared.of(config, store=store, writes=chosen.writes), read, chosen)


async def _serve_with(config: Config, shared: Shared, read: Callable[[], Config], chosen: Role) -> None:
    workers = worker_count(config.proxy.workers)
    make_room(config.proxy.connections_max)
    backends, names = await known_backends(config, workers)
    care = upkeep(config, backends, names)
    proxy = Proxy(_server_settings(config), partial(_session, shared), backends, ground=chosen.ground)
    stop = asyncio.Event()
    for number in _STOP_SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _reload, proxy, shared, care, read)
    await chosen.start(stop.set, shared.metrics.exposition)
    if chosen.is_late:
        _reload(proxy, shared, care, read)
    admin = application(config, shared, backends, chosen.exposition, slots=proxy.slots, is_stopping=stop.is_set)
    runner = web.AppRunner(admin, handle_signals=False, access_log=None)
    await runner.setup()
    try:
        await proxy.start()
        care.start()
        registered = registration(config, proxy.ports) if chosen.is_first else None
        shared.metrics.watch_connections(lambda: proxy.connection_count)
        shared.metrics.watch_backends(backends.views)
        site = _admin_site(runner, config, shares_port=chosen.ground.shares_ports)
        await site.start()
        if registered is not None:
            registered.start()
        chosen.listens(lambda: _ready_line(config, proxy.ports, runner.addresses[0][1], backends.name))
        await stop.wait()
        if registered is not None:
            await registered.close()
        _log.info("draining for at most %g s", config.proxy.drain_s)
        await proxy.drain(config.proxy.drain_s)
    finally:
        await care.close()
        await proxy.close()
        await runner.cleanup()
        await chosen.end()


def _reload(proxy: Proxy, shared: Shared, care: Upkeep, read: Callable[[], Config]) -> None:
    """SIGHUP: read certificates and the configuration anew. What cannot be used changes nothing."""
    proxy.renew_certificates()
    try:
        config = read()
        at_start = shared.reload(config)
    except click.ClickException as error:
        _log.error("the configuration was not read anew, the one before goes on: %s", error.message)
        return
    care.reload(config.sources())
    _log.info("the configuration was read anew")
    if at_start:
        _log.warning("what changed in %s counts after a restart only", ", ".join(at_start))


def _session(shared: Shared, opened: Opened) -> ExplainingSession:
    return ExplainingSession(Session(shared, opened))


def _admin_site(runner: web.AppRunner, config: Config, *, shares_port: bool) -> web.TCPSite:
    admin = address(config.admin.listen)
    return web.TCPSite(runner, admin.host, admin.port, reuse_port=shares_port or None)


def _server_settings(config: Config) -> ServerSettings:
    backend = address(config.proxy.backend)
    # What the backend bears is one number, however many ask it.
    workers = worker_count(config.proxy.workers)
    return ServerSettings(
        listeners=config.listeners(),
        backend_host=backend.host,
        backend_port=backend.port,
        upstream=config.backend.to_upstream(),
        proxy_users=ProxyUsers(config.proxy_users),
        request_bytes_max=config.proxy.request_bytes_max,
        connections_max=config.proxy.connections_max,
        connect_timeout_s=config.proxy.connect_timeout_s,
        handshake_timeout_s=config.proxy.handshake_timeout_s,
        http_keep_alive_s=config.http.keep_alive_s,
        http_body_s=config.http.body_s,
        http_session_idle_s=config.http.session_idle_s,
        patience=Limits(
            config.proxy.idle_timeout_s, config.proxy.request_timeout_s, config.proxy.unread_timeout_s
        ),
        keepalive=Keepalive(
            config.proxy.keepalive_idle_s, config.proxy.keepalive_interval_s, config.proxy.keepalive_count
        ),
        passes_unknown_handles=config.proxy.unknown_handles == "pass",
        write_buffer_bytes_max=config.proxy.write_buffer_bytes_max,
        rerun_within_s=config.rewrite.rerun_within_s,
        key_queries_at_once_max=max(1, config.rewrite.key_queries_at_once_max // workers),
        shadows_at_once_max=max(1, config.shadow.at_once_max // workers),
    )


def _say_ready(config: Config) -> None:
    """All workers listen."""
    ports = [listener.address.port for listener in config.listeners()]
    backends = ", ".join(str(source.address) for source in config.sources())
    click.echo(_ready_line(config, ports, address(config.admin.listen).port, backends))


def _ready_line(config: Config, ports: Sequence[int], admin_port: int, backend: str) -> str:
    listeners = zip(config.listeners(), ports, strict=True)
    listen, *others = ((Address(each.address.host, port), each.spoken) for each, port in listeners)
    admin = Address(address(config.admin.listen).host, admin_port)
    line = f"starpruner: listening on {listen[0]}, admin http://{admin}, backend {backend}"
    return f"{line}, also on {', '.join(f'{each} ({spoken})' for each, spoken in others)}" if others else line


def _run(main_coroutine: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run on uvloop where it is installed, and turn what the user can mend into a sentence."""
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(main_coroutine())
    except (BackendError, ConfigError, OSError) as error:
        raise click.ClickException(str(error)) from error


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - absent on some platforms
    except ImportError:
        return None
    return uvloop.new_event_loop


def _log_to_stderr(config: Config, who: str = "") -> None:
    logging.basicConfig(
        # A worker says which one it is.
        force=bool(who),
        stream=sys.stderr,
        level=config.log.level.upper(),
        format=f"%(asctime)s %(levelname)s{who} %(name)s: %(message)s",
    )
    # Its warnings quote the statement, and literals have no place in a log.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
