"""The start of workers, with reserved ports, a ledger, one store of partition lists, and a supervisor."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from proxy.config.address import address
from proxy.config.config import Config
from proxy.config.errors import ConfigError
from proxy.workers.ledger import WORKERS_MAX, ledger_directory
from proxy.workers.listening_ports import PortReservations
from proxy.workers.supervisor import Supervisor
from proxy.workers.worker_slot import WorkerSlot

# The time that a worker may take to end after it has drained: it cancels its queries for up to eight seconds.
CLOSE_S: Final = 15.0


def worker_count(configured: int) -> int:
    """Return the number of workers to start. Raises ConfigError if the system allows only one."""
    count = configured or min(os.cpu_count() or 1, WORKERS_MAX)
    if count > 1 and not hasattr(signal, "sigtimedwait"):
        raise ConfigError(f"proxy.workers is {configured}: only Linux distributes connections among processes")
    return count


class ReservedPorts:
    """The ports that the supervisor has reserved, for use in configurations: port 0 becomes the port chosen."""

    def __init__(self, config: Config, ports: PortReservations, store_path: Path) -> None:
        """Raises OSError if a port is not available."""
        self._configured = _listen_addresses(config)
        self._reserved = tuple(text and str(ports.reserve(address(text))) for text in self._configured)
        self._store_path = str(store_path)

    def applied_to(self, config: Config) -> Config:
        """Return the configuration with the reserved ports; unchanged if it was reloaded with other addresses."""
        replace = msgspec.structs.replace
        if not config.catalog.store_path:
            config = replace(config, catalog=replace(config.catalog, store_path=self._store_path))
        if _listen_addresses(config) != self._configured:
            return config
        listen, *others, admin = self._reserved
        sections = zip(config.listener, others, strict=True)
        return replace(
            config,
            proxy=replace(config.proxy, listen=listen),
            listener=tuple(replace(section, listen=reserved) for section, reserved in sections),
            admin=replace(config.admin, listen=admin),
        )


def run_workers(
    config: Config, run: Callable[[ReservedPorts, WorkerSlot], int], on_ready: Callable[[Config], None]
) -> None:
    """Run workers until SIGTERM or SIGINT. Raises OSError if a port is not available, and WorkersError."""
    with ExitStack() as stack:
        directory = stack.enter_context(ledger_directory())
        # The store gets a directory of its own, on disk and not in memory.
        store_path = Path(stack.enter_context(TemporaryDirectory(prefix="starpruner-")))
        reserved_ports = ReservedPorts(config, stack.enter_context(PortReservations()), store_path)
        Supervisor(
            directory,
            worker_count(config.proxy.workers),
            partial(run, reserved_ports),
            lambda: on_ready(reserved_ports.applied_to(config)),
            stop_within_s=config.proxy.drain_s + CLOSE_S,
        ).supervise()


def _listen_addresses(config: Config) -> tuple[str, ...]:
    """Return every listen address, the admin port's last."""
    return (config.proxy.listen, *(section.listen for section in config.listener), config.admin.listen)
