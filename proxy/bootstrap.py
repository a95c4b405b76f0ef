"""Wires the proxy's parts, serves until it is told to stop, and reads the configuration anew."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

import click
from aiohttp import web
from msgspec.structs import replace

from proxy.admin.app import application
from proxy.admin.explain_endpoint import ExplainRequest, ask
from proxy.backends.assembly import known_backends, registration, upkeep
from proxy.backends.maintenance import Maintenance
from proxy.config.address import Address, address
from proxy.config.config import Config
from proxy.config.errors import ConfigError
from proxy.net.fd_limit import make_room
from proxy.operations.session_port import SessionOpening
from proxy.server import Proxy
from proxy.session.explain.statement import ExplainingSession
from proxy.session.explain.view import ExplainView
from proxy.session.layout.partition_store import open_store
from proxy.session.session import Session
from proxy.session.shared_state import SharedState
from proxy.upstream.errors import BackendError
from proxy.workers.launch import ReservedPorts, worker_count
from proxy.workers.process_role import Role, role
from proxy.workers.worker_slot import WorkerSlot

T = TypeVar("T")

_log = logging.getLogger(__name__)

# Set by `docker stop`, systemd and Kubernetes, and by Ctrl-C.
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def explain_once(config: Config, request: ExplainRequest, user: str, password: str) -> ExplainView:
    """Ask about one statement in a backend session of its own, and end."""
    backends, _ = await known_backends(config)
    return await ask(config, request, user, password, SharedState.of(config), backends=backends)


def work(config: Config, read: Callable[[], Config], placement: ReservedPorts, place: WorkerSlot) -> int:
    """Serve as one of several. Returns the exit code."""
    log_to_stderr(config, f" worker {place.slot}")
    try:
        run(lambda: serve_until_stopped(placement.of(config), lambda: placement.of(read()), place))
    except click.ClickException as error:
        _log.error("%s", error.message)
        return error.exit_code
    return 0


async def serve_until_stopped(config: Config, read: Callable[[], Config], place: WorkerSlot | None = None) -> None:
    """Serve until a signal says to stop, alone or in the place of one of several workers."""
    with role(place) as chosen, open_store(config.catalog) as store:
        await _serve_with(config, SharedState.of(config, store=store, writes=chosen.writes), read, chosen)


async def _serve_with(config: Config, shared: SharedState, read: Callable[[], Config], chosen: Role) -> None:
    workers = worker_count(config.proxy.workers)
    make_room(config.proxy.connections_max)
    backends, names = await known_backends(config, workers)
    care = upkeep(config, backends, names)
    proxy = Proxy(_share_of(config, workers), partial(_session, shared), backends, process=chosen.process)
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
        site = _admin_site(runner, config, shares_port=chosen.process.shares_ports)
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


def _reload(proxy: Proxy, shared: SharedState, care: Maintenance, read: Callable[[], Config]) -> None:
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


def _session(shared: SharedState, opened: SessionOpening) -> ExplainingSession:
    return ExplainingSession(Session(shared, opened))


def _admin_site(runner: web.AppRunner, config: Config, *, shares_port: bool) -> web.TCPSite:
    admin = address(config.admin.listen)
    return web.TCPSite(runner, admin.host, admin.port, reuse_port=shares_port or None)


def _share_of(config: Config, workers: int) -> Config:
    """The part of one worker: what the backend bears is one number, however many ask it."""
    key_queries, shadows = config.rewrite.key_queries_at_once_max, config.shadow.at_once_max
    return replace(
        config,
        rewrite=replace(config.rewrite, key_queries_at_once_max=max(1, key_queries // workers)),
        shadow=replace(config.shadow, at_once_max=max(1, shadows // workers)),
    )


def say_ready(config: Config) -> None:
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


def run(main_coroutine: Callable[[], Coroutine[Any, Any, T]]) -> T:
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


def log_to_stderr(config: Config, who: str = "") -> None:
    """Log as the configuration has it; `who` names a worker."""
    logging.basicConfig(
        # A worker says which one it is.
        force=bool(who),
        stream=sys.stderr,
        level=config.log.level.upper(),
        format=f"%(asctime)s %(levelname)s{who} %(name)s: %(message)s",
    )
    # Its warnings quote the statement, and literals have no place in a log.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
