"""Assembly of the pool, its maintenance and the ZooKeeper registration from the configuration."""

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
from proxy.backends.maintenance import Maintenance, PeriodicTask
from proxy.backends.pool import BackendPool, PoolSettings
from proxy.backends.zookeeper_nodes import advertised_address, connection_settings, kerberos_logins, node_prefix
from proxy.config.config import Config
from proxy.config.errors import ConfigError
from proxy.extras import how_to_install

if TYPE_CHECKING:
    from proxy.backends.zookeeper import Registration

# The version in the names of nodes, by which `hiveserver2 --deregister` would find them.
_VERSION: Final = version("starpruner")
# HiveServer2's default path for HTTP.
_HTTP_PATH: Final = "cliservice"


async def resolved_backends(config: Config, workers: int = 1) -> tuple[BackendPool, DnsNames]:
    """Return the pool and its names, looked up once. Several workers divide each backend's connections."""
    proxy = config.proxy
    connections_max = max(1, proxy.backend_connections_max // workers)
    backends = BackendPool((), time.monotonic, PoolSettings(connections_max, proxy.login_together_max))
    names = DnsNames(backends, config.backend_entries())
    await names.refresh()
    return backends, names


def backend_maintenance(config: Config, backends: BackendPool, names: DnsNames) -> Maintenance:
    """Return the periodic tasks that run while the proxy serves."""
    health, probe = config.health, _probe(config)
    logins = HealthCheckRounds(backends, probe.check_login, _login_health)
    queries = HealthCheckRounds(backends, probe.check_query, _query_health)
    checks_queries = health.user and health.query_interval_s
    more: tuple[PeriodicTask, ...] = ((queries.probe_all, health.query_interval_s),) if checks_queries else ()
    lookups = names.refresh_if_looked_up, config.proxy.lookup_interval_s
    return Maintenance(names, (lookups, (logins.probe_all, health.interval_s), *more), logins.probe_all)


def zookeeper_registration(config: Config, ports: Sequence[int]) -> Registration | None:
    """Return the registration of each listener in ZooKeeper, if configured. Raises ConfigError without kazoo."""
    section = config.zookeeper
    if not section.ensemble:
        return None
    try:
        from proxy.backends.zookeeper import Ensemble, Node, Registration  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise ConfigError(f"zookeeper.ensemble needs {error.name}: {how_to_install('zookeeper')}") from error
    kerberos = config.kerberos
    nodes = []
    for listener, port in zip(config.listeners(), ports, strict=True):
        principal = listener.kerberos_principal or kerberos.principal
        logins = kerberos_logins(principal, kerberos.qop[0]) if principal else None
        address = advertised_address(listener, port, section.advertised_host, socket.getfqdn())
        nodes.append(
            Node(node_prefix(address, _VERSION), connection_settings(listener, address, _HTTP_PATH, logins))
        )
    credentials = section.user, section.password
    ensemble = Ensemble(section.ensemble, section.namespace, *credentials, section.session_timeout_s)
    return Registration(ensemble, nodes)


def _probe(config: Config) -> HealthProbe:
    health = config.health
    settings = ProbeSettings(health.user, health.password, health.timeout_s, health.query_timeout_s)
    return HealthProbe(settings, config.upstream())


def _login_health(backend: Backend) -> Health:
    return backend.login_health


def _query_health(backend: Backend) -> Health:
    return backend.query_health
