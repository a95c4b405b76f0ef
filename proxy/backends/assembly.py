"""The backends and who looks after them, as the configuration has it."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Final

from proxy.backends.backend import Backend
from proxy.backends.dns import DnsNames
from proxy.backends.health import Health
from proxy.backends.health_checks import HealthCheckRounds, HealthProbe, ProbeSettings
from proxy.backends.maintenance import Chore, Maintenance
from proxy.backends.pool import BackendPool, PoolSettings
from proxy.backends.zookeeper_nodes import connection_settings, node_prefix, reached_at
from proxy.config.config import Config
from proxy.config.errors import ConfigError

if TYPE_CHECKING:
    from proxy.backends.zookeeper import Registration

# What the nodes of a version have in common, as `hiveserver2 --deregister` would look for them.
_VERSION: Final = version("starpruner")
# Where HiveServer2 listens for HTTP unless told otherwise.
_HTTP_PATH: Final = "cliservice"


async def known_backends(config: Config, workers: int = 1) -> tuple[BackendPool, DnsNames]:
    """The backends, their names looked up once. Several workers share what each of them may take."""
    proxy = config.proxy
    connections_max = max(1, proxy.backend_connections_max // workers)
    backends = BackendPool((), time.monotonic, PoolSettings(connections_max, proxy.login_together_max))
    names = DnsNames(backends, config.sources())
    await names.refresh()
    return backends, names


def upkeep(config: Config, backends: BackendPool, names: DnsNames) -> Maintenance:
    """What is to be done for as long as the proxy serves."""
    return Maintenance(
        names, ((names.refresh_looked_up, config.proxy.lookup_interval_s), *_probes(config, backends))
    )


def registration(config: Config, ports: Sequence[int]) -> Registration | None:
    """The place of each listener in ZooKeeper, where one is configured. Raises ConfigError without its client."""
    section = config.zookeeper
    if not section.ensemble:
        return None
    try:
        from proxy.backends.zookeeper import Ensemble, Node, Registration  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"zookeeper.ensemble needs {error.name}: install it with  pip install 'starpruner[zookeeper]'"
        ) from error
    nodes = []
    for listener, port in zip(config.listeners(), ports, strict=True):
        address = reached_at(listener, port, section.advertised_host, socket.getfqdn())
        nodes.append(Node(node_prefix(address, _VERSION), connection_settings(listener, address, _HTTP_PATH)))
    credentials = section.user, section.password
    ensemble = Ensemble(section.ensemble, section.namespace, *credentials, section.session_timeout_s)
    return Registration(ensemble, nodes)


def _probes(config: Config, backends: BackendPool) -> tuple[Chore, ...]:
    """None for a backend that is alone, where nobody may log in: there is no other that could be chosen."""
    health = config.health
    if not health.user and not config.proxy.backends:
        return ()
    settings = ProbeSettings(health.user, health.password, health.timeout_s, health.query_timeout_s)
    asking = HealthProbe(settings, config.backend.to_upstream())
    logins = HealthCheckRounds(backends, asking.quickly, _logins)
    queries = HealthCheckRounds(backends, asking.thoroughly, _queries)
    asks_queries = health.user and health.query_interval_s
    more: tuple[Chore, ...] = ((queries.ask_all, health.query_interval_s),) if asks_queries else ()
    return ((logins.ask_all, health.interval_s), *more)


def _logins(backend: Backend) -> Health:
    return backend.logins_work


def _queries(backend: Backend) -> Health:
    return backend.queries_work
