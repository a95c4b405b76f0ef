"""Asks each backend regularly how it is: a login often, which no executor hears of, and a query rarely. Shell."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from proxy.backends.backend import Backend
from proxy.backends.health import Health
from proxy.backends.pool import BackendPool
from proxy.config.address import Address
from proxy.config.endpoints import UPSTREAM, Upstream
from proxy.operations.query import Query, QueryFailed, QueryResult
from proxy.upstream.client import BackendClient, Login
from proxy.upstream.dialer import Dialer, UnreachableError
from proxy.upstream.errors import BackendError
from proxy.upstream.http_link import HttpLink, link_to
from proxy.wire.sasl import plain_response

# One row of one column.
_QUERY_BYTES_MAX: Final = 1024

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProbeSettings:
    """How backends are asked. Without a user, a connection that opens is all that can be had."""

    user: str = ""
    password: str = field(default="", repr=False)
    # A login takes a server some milliseconds.
    timeout_s: float = 5.0
    # A query takes its turn among those of the users. A server that is busy is not down.
    query_timeout_s: float = 30.0


# Returns None where the backend works, or else why it does not.
Probe: TypeAlias = Callable[[Address], Awaitable[str | None]]


class HealthProbe:
    """The two probes as the settings have them."""

    def __init__(self, settings: ProbeSettings, upstream: Upstream = UPSTREAM) -> None:
        self._settings = settings
        self._dialer = Dialer(upstream, settings.timeout_s)

    async def quickly(self, address: Address) -> str | None:
        """Connect and log in: the server has a thread to spare, and its login works. No executor hears of it."""
        return await self._within(self._settings.timeout_s, self._log_in(address))

    async def thoroughly(self, address: Address) -> str | None:
        """Open a session and ask a query, as clients do."""
        return await self._within(self._settings.query_timeout_s, self._query(address))

    async def _within(self, seconds: float, asking: Awaitable[None]) -> str | None:
        try:
            async with asyncio.timeout(seconds):
                await asking
        except TimeoutError:
            return f"no answer within {seconds:g} s"
        except (BackendError, UnreachableError) as error:
            return str(error)
        return None

    async def _log_in(self, address: Address) -> None:
        settings = self._settings
        if not settings.user:
            _, writer = await self._dialer.streams(address)
            writer.close()
            return
        link = link_to(address, self._dialer, settings.timeout_s)
        await link.open(plain_response(settings.user, settings.password), "the health user")
        try:
            if isinstance(link, HttpLink):
                await link.check_login()
        finally:
            link.hang_up()

    async def _query(self, address: Address) -> None:
        settings = self._settings
        login = Login(address, settings.user, settings.password, None, self._dialer, settings.query_timeout_s)
        async with BackendClient(login) as client:
            result = await client.drive(_select_one(settings.query_timeout_s))
        if isinstance(result, QueryFailed):
            raise BackendError(f"select 1: {result.message}")


def _select_one(seconds: float) -> Generator[Query, QueryResult, QueryResult]:
    return (yield Query("SELECT 1", rows_max=1, bytes_max=_QUERY_BYTES_MAX, deadline_s=seconds))


class HealthCheckRounds:
    """One kind of probe: a round of it asks all backends at once, each within its time."""

    def __init__(self, backends: BackendPool, probe: Probe, health_of: Callable[[Backend], Health]) -> None:
        """`health_of` says which of a backend's states the probe is about."""
        self._backends = backends
        self._probe = probe
        self._health_of = health_of

    async def ask_all(self) -> None:
        """Ask every backend once."""
        await asyncio.gather(*map(self._ask, self._backends.all))

    async def _ask(self, backend: Backend) -> None:
        lease = self._backends.lease_on(backend)
        if lease is None:
            # It has all the connections that we may open, and these tell how it is.
            return
        try:
            reason = await self._probe(backend.member.address)
        finally:
            lease.release()
        if reason is not None:
            backend.failed(f"probe: {reason}")
        if self._health_of(backend).probed(answered=reason is None):
            _tell(backend, reason)


def _tell(backend: Backend, reason: str | None) -> None:
    if reason is None:
        log.info("the backend %s answers probes again", backend.member.name)
    else:
        log.warning("the backend %s is held to be down: %s", backend.member.name, reason)
