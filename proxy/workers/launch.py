"""Gives workers what they need: ports that are held, a ledger, one store of partition lists, and a supervisor."""

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
from proxy.workers.listening_ports import Ports
from proxy.workers.supervisor import Supervisor
from proxy.workers.worker_slot import WorkerSlot

# What a worker may take to end after it has drained: it says goodbye to the backend for up to eight seconds.
_GOODBYE_S: Final = 15.0


def worker_count(configured: int) -> int:
    """How many workers to start. Raises ConfigError where there can be only one."""
    count = configured or min(os.cpu_count() or 1, WORKERS_MAX)
    if count > 1 and not hasattr(signal, "sigtimedwait"):
        raise ConfigError(f"proxy.workers is {configured}: only Linux deals connections out among processes")
    return count


class ReservedPorts:
    """A configuration with the ports that were taken in the place of those that were asked for."""

    def __init__(self, config: Config, ports: Ports, store_path: Path) -> None:
        """Raises OSError where a port cannot be had."""
        self._asked = _listens(config)
        self._taken = tuple(text and str(ports.hold(address(text))) for text in self._asked)
        self._store_path = str(store_path)

    def of(self, config: Config) -> Config:
        """The same for a configuration that was read anew; one that asks for other ports is left as it is."""
        replace = msgspec.structs.replace
        if not config.catalog.store_path:
            config = replace(config, catalog=replace(config.catalog, store_path=self._store_path))
        if _listens(config) != self._asked:
            return config
        listen, *others, admin = self._taken
        sections = zip(config.listener, others, strict=True)
        return replace(
            config,
            proxy=replace(config.proxy, listen=listen),
            listener=tuple(replace(section, listen=taken) for section, taken in sections),
            admin=replace(config.admin, listen=admin),
        )


def host(
    config: Config, run: Callable[[ReservedPorts, WorkerSlot], int], on_ready: Callable[[Config], None]
) -> None:
    """Run workers until SIGTERM or SIGINT. Raises OSError where a port cannot be had, and WorkersError."""
    with ExitStack() as stack:
        directory = stack.enter_context(ledger_directory())
        # A store of its own: on a disk, and not in memory.
        store_path = Path(stack.enter_context(TemporaryDirectory(prefix="starpruner-")))
        placement = ReservedPorts(config, stack.enter_context(Ports()), store_path)
        Supervisor(
            directory,
            worker_count(config.proxy.workers),
            partial(run, placement),
            lambda: on_ready(placement.of(config)),
            stop_within_s=config.proxy.drain_s + _GOODBYE_S,
        ).supervise()


def _listens(config: Config) -> tuple[str, ...]:
    """Every address that is listened on, the admin port's last."""
    return (config.proxy.listen, *(section.listen for section in config.listener), config.admin.listen)
