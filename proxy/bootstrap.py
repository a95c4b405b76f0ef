"""Wiring of the proxy's parts, serving until a signal, and reloading of the configuration."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

import click
from msgspec.structs import replace

from proxy.admin.app import application
from proxy.admin.explain_endpoint import ExplainRequest, explain_as_user, logged_in
from proxy.admin.listening import AdminPort
from proxy.advice.advise import AdviceRequest, advise
from proxy.advice.recorded import HistoryMissingError
from proxy.advice.report import Advice
from proxy.backends.assembly import backend_maintenance, resolved_backends, zookeeper_registration
from proxy.backends.maintenance import Maintenance
from proxy.backends.pool import BackendPool
from proxy.backends.readiness import Readiness
from proxy.config.address import Address, address, start_error
from proxy.config.config import Config
from proxy.config.errors import ConfigError
from proxy.config.memory_shares import MemoryShares
from proxy.history.directory import history_directory
from proxy.history.history import History
from proxy.history.recent_savings import RecentSavings
from proxy.net.fd_limit import raise_fd_limit
from proxy.net.log_lines import log_wordless, loop_failed
from proxy.net.memory_limit import memory_limit
from proxy.operations.session_port import SessionOpening
from proxy.server import Proxy
from proxy.session.explain.answered_statements import AnsweringSession
from proxy.session.explain.view import ExplainView
from proxy.session.feedback.cost_gate import CostGate
from proxy.session.layout.hbase_store import close_store, is_hbase_away, share_lessons, shared_list_results
from proxy.session.layout.open_store import open_store
from proxy.session.session import Session
from proxy.session.shared_state import SharedState
from proxy.session.sharing.lesson_exchange import LessonExchange
from proxy.stopping import STOP_SIGNALS, StopRequests
from proxy.tracing.export import span_export
from proxy.upstream.errors import BackendError
from proxy.workers.launch import ReservedPorts, worker_count
from proxy.workers.process_role import ProcessRole, process_role
from proxy.workers.worker_slot import WorkerSlot

T = TypeVar("T")

_log = logging.getLogger(__name__)


async def explain_once(config: Config, request: ExplainRequest, user: str, password: str) -> ExplainView:
    """Explain one statement in a backend session of its own."""
    backends, _ = await resolved_backends(config)
    return await explain_as_user(config, request, user, password, SharedState.of(config), backends=backends)


async def advise_once(
    config: Config, request: AdviceRequest, user: str, password: str, progress: Callable[[str], None]
) -> Advice:
    """Advise on the statements of a history, in backend sessions of its own."""
    backends, _ = await resolved_backends(config)
    return await advise(
        config, request, lambda database: logged_in(config, user, password, database, backends), progress
    )


def run_worker(
    config: Config, read: Callable[[], Config], reserved_ports: ReservedPorts, worker_slot: WorkerSlot
) -> int:
    """Serve as one of several workers. Returns the exit code."""
    log_to_stderr(config, f" worker {worker_slot.number}")
    try:
        run(
            lambda: serve_until_stopped(
                reserved_ports.applied_to(config), lambda: reserved_ports.applied_to(read()), worker_slot
            )
        )
    except click.ClickException as error:
        _log.error("%s", error.message)
        return error.exit_code
    return 0


async def serve_until_stopped(
    config: Config, read: Callable[[], Config], worker_slot: WorkerSlot | None = None
) -> None:
    """Serve until a stop signal, as the only process or as the worker of this slot."""
    of_workers = None if worker_slot is None else worker_slot.directory
    with (
        process_role(worker_slot) as role,
        open_store(config.catalog) as store,
        history_directory(config.history, of_workers) as directory,
        span_export(config) as spans,
    ):
        memory = _memory_of(config)
        shared = SharedState.of(config, store=store, writes=role.writes, memory=memory)
        history = History(
            config.history,
            directory,
            shared.quarantine.sentences,
            spans.statement_ended,
            memory_bytes=memory.history_bytes,
        )
        shared.metrics.watch_tracing(spans.lost)
        shared.metrics.watch_shared_lists(partial(shared_list_results, store), partial(is_hbase_away, store))
        if isinstance(shared.gate, CostGate):
            lessons = LessonExchange(shared.quarantine, shared.gate)
            share_lessons(store, lessons.due)
            shared.metrics.watch_shared_lessons(lessons.results)
        try:
            await _serve_with(config, shared, history, read, role, memory)
        finally:
            await asyncio.to_thread(close_store, store)


async def _serve_with(  # noqa: PLR0913, PLR0917 - the parts of a process
    config: Config,
    shared: SharedState,
    history: History,
    read: Callable[[], Config],
    role: ProcessRole,
    memory: MemoryShares,
) -> None:
    workers = worker_count(config.proxy.workers)
    raise_fd_limit(config.proxy.connections_max)
    backends, names = await resolved_backends(config, workers)
    backends.login_refused = partial(shared.metrics.login_refused, "clients")
    maintenance = backend_maintenance(config, backends, names)
    proxy = Proxy(
        _share_of(config, workers, memory),
        partial(_session, shared, history),
        backends,
        process=role.process,
        memory=memory,
    )
    shared.own_sessions = proxy.own_sessions
    loop = asyncio.get_running_loop()
    stop = StopRequests(loop.time)
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop.request, number)
    loop.add_signal_handler(signal.SIGHUP, _reload, proxy, shared, maintenance, read)
    await role.start(stop.request, shared.metrics.exposition)
    if role.is_late:
        _reload(proxy, shared, maintenance, read)
    admin = application(
        config,
        shared,
        backends,
        role.exposition,
        history=history,
        key=role.page_key,
        slots=proxy.slots,
        readiness=Readiness(backends, stop.stopping.is_set),
        canceller=proxy.canceller,
    )
    admin_port = AdminPort(admin)
    await admin_port.setup()
    watching = asyncio.create_task(shared.off_switch.watch())
    try:
        await proxy.start()
        await maintenance.start()
        registered = zookeeper_registration(config, proxy.ports) if role.is_first else None
        _watch(shared, proxy, backends, history)
        if role.is_first:
            # Only one of the processes that share the file reports its savings.
            shared.metrics.watch_savings(RecentSavings(history).by_kind)
        history.start()
        await admin_port.start(address(config.admin.listen), shares_port=role.process.shares_ports)
        if registered is not None:
            registered.start()
        role.report_listening(lambda: _ready_line(config, proxy.ports, admin_port.port, backends.display_name))
        _spare_collector()
        await stop.stopping.wait()
        if registered is not None:
            await registered.close()
        await proxy.drain(config.proxy.drain_s, stop)
    finally:
        watching.cancel()
        await maintenance.close()
        await proxy.close(at_once=stop.at_once.is_set())
        await admin_port.close()
        await asyncio.to_thread(history.close)
        await role.stop()


def _watch(shared: SharedState, proxy: Proxy, backends: BackendPool, history: History) -> None:
    metrics = shared.metrics
    metrics.watch_connections(lambda: proxy.connection_count, proxy.connections_max)
    metrics.watch_key_slots(lambda: proxy.slots.taken, proxy.slots.count)
    metrics.watch_held_memory(lambda: proxy.memory.held_bytes, proxy.memory.bytes_max)
    metrics.watch_certificates(lambda: proxy.certificate_ends)
    metrics.watch_backends(backends.views)
    metrics.watch_history(history)
    metrics.watch_memory(partial(_memory_shortages, shared, proxy))


def _reload(proxy: Proxy, shared: SharedState, maintenance: Maintenance, read: Callable[[], Config]) -> None:
    """Reload certificates and the configuration at SIGHUP. A configuration with errors changes nothing."""
    proxy.reload_certificates()
    try:
        config = read()
        restart_sections = shared.reload(config)
    except click.ClickException as error:
        _log.error("the configuration was not reloaded, the previous one stays in use: %s", error.message)
        shared.metrics.reloaded("refused")
        return
    maintenance.reload(config.backend_entries())
    shared.metrics.reloaded("applied")
    _log.info("the configuration was reloaded")
    if restart_sections:
        _log.warning("changes to %s take effect after a restart only", ", ".join(restart_sections))


def _session(shared: SharedState, history: History, opened: SessionOpening) -> AnsweringSession:
    return AnsweringSession(Session(shared, opened, history))


def _spare_collector() -> None:
    """Exclude the objects that live as long as the process from garbage collection, which makes it quick."""
    gc.collect()
    gc.freeze()


def _memory_of(config: Config) -> MemoryShares:
    """The shares of one process in the memory of all workers."""
    limit, workers = memory_limit(), worker_count(config.proxy.workers)
    usable = min(config.proxy.memory_bytes_max or limit, limit)
    shares = MemoryShares.of(usable // workers, wraps_replies=config.upstream().wraps_replies)
    bounded = _share_of(config, workers, shares).proxy
    _log.info(
        "memory of %d MB: at most %d connections, and calls of %d MB",
        *(usable >> 20, bounded.connections_max, bounded.request_bytes_max >> 20),
    )
    if config.upstream().wraps_replies:
        _log.info("replies come wrapped: at most %d MB each", shares.wrapped_reply_bytes_max >> 20)
    return shares


def _memory_shortages(shared: SharedState, proxy: Proxy) -> tuple[tuple[str, float], ...]:
    memory, replies = proxy.memory, proxy.reply_room
    return (
        ("unanalysed", shared.analysis.refused),
        ("paused", memory.paused),
        ("refused", memory.refused + replies.refused),
        ("waited", replies.waited),
    )


def _share_of(config: Config, workers: int, memory: MemoryShares) -> Config:
    """The part of one worker: the limits of what the backend bears hold for all workers together.

    `connections_max` stays a number for all workers together.
    """
    proxy = replace(
        config.proxy,
        connections_max=min(config.proxy.connections_max, memory.connections_max * workers),
        request_bytes_max=min(config.proxy.request_bytes_max, memory.request_bytes_max),
    )
    key_queries, shadows = config.rewrite.key_queries_at_once_max, config.shadow.at_once_max
    return replace(
        config,
        proxy=proxy,
        rewrite=replace(config.rewrite, key_queries_at_once_max=max(1, key_queries // workers)),
        shadow=replace(config.shadow, at_once_max=max(1, shadows // workers)),
    )


def print_ready_line(config: Config) -> None:
    """Print the ready line: all workers listen."""
    ports = [listener.address.port for listener in config.listeners()]
    backends = ", ".join(str(source.address) for source in config.backend_entries())
    click.echo(_ready_line(config, ports, address(config.admin.listen).port, backends))


def _ready_line(config: Config, ports: Sequence[int], admin_port: int, backend: str) -> str:
    listeners = zip(config.listeners(), ports, strict=True)
    listen, *others = ((Address(each.address.host, port), each.spoken) for each, port in listeners)
    admin = Address(address(config.admin.listen).host, admin_port)
    line = f"starpruner: listening on {listen[0]}, admin http://{admin}, backend {backend}"
    return f"{line}, also on {', '.join(f'{each} ({spoken})' for each, spoken in others)}" if others else line


def run(main_coroutine: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run on uvloop if it is installed, and turn errors that the user can correct into a sentence."""
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.get_loop().set_exception_handler(loop_failed)
            return runner.run(main_coroutine())
    except (BackendError, ConfigError, HistoryMissingError, OSError) as error:
        raise click.ClickException(start_error(error)) from error


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - absent on some platforms
    except ImportError:
        return None
    return uvloop.new_event_loop


def log_to_stderr(config: Config, who: str = "") -> None:
    """Log to stderr with the configured level; `who` names a worker."""
    handler = logging.StreamHandler(sys.stderr)
    log_wordless(handler)
    logging.basicConfig(
        # A worker replaces the supervisor's format by one with its number.
        force=bool(who),
        handlers=[handler],
        level=config.log.level.upper(),
        format=f"%(asctime)s %(levelname)s{who} %(name)s: %(message)s",
    )
    # sqlglot's warnings quote the statement, and literals must not be logged.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
