"""The backends and who looks after them, as the configuration has it."""

from __future__ import annotations

import time

from proxy.backends.backend import Backend
from proxy.backends.health import Health
from proxy.backends.names import Names
from proxy.backends.pool import Backends, PoolSettings
from proxy.backends.probes import Asking, ProbeSettings, Rounds
from proxy.backends.upkeep import Chore, Upkeep
from proxy.config import Config


async def known_backends(config: Config) -> tuple[Backends, Names]:
    """The backends, their names looked up once."""
    proxy = config.proxy
    backends = Backends((), time.monotonic, PoolSettings(proxy.backend_connections_max, proxy.login_together_max))
    names = Names(backends, config.sources())
    await names.refresh()
    return backends, names


def upkeep(config: Config, backends: Backends, names: Names) -> Upkeep:
    """What is to be done for as long as the proxy serves."""
    return Upkeep(names, ((names.refresh_looked_up, config.proxy.lookup_interval_s), *_probes(config, backends)))


def _probes(config: Config, backends: Backends) -> tuple[Chore, ...]:
    """None for a backend that is alone, where nobody may log in: there is no other that could be chosen."""
    health = config.health
    if not health.user and not config.proxy.backends:
        return ()
    settings = ProbeSettings(health.user, health.password, health.timeout_s, health.query_timeout_s)
    asking = Asking(settings, config.backend.to_upstream())
    logins = Rounds(backends, asking.quickly, _logins)
    queries = Rounds(backends, asking.thoroughly, _queries)
    asks_queries = health.user and health.query_interval_s
    more: tuple[Chore, ...] = ((queries.ask_all, health.query_interval_s),) if asks_queries else ()
    return ((logins.ask_all, health.interval_s), *more)


def _logins(backend: Backend) -> Health:
    return backend.logins_work


def _queries(backend: Backend) -> Health:
    return backend.queries_work
