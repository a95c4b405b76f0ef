"""Periodic health checks of each backend: often a login, which uses no executor, and rarely a query. Shell."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from proxy.backends.backend import Backend
from proxy.backends.health import Health
from proxy.backends.pool import BackendPool
from proxy.config.address import Address, why_unreachable
from proxy.config.endpoints import UPSTREAM, UpstreamSection
from proxy.operations.query import Query, QueryFailed
from proxy.upstream.client import BackendClient, Login
from proxy.upstream.dialer import Dialer, UnreachableError
from proxy.upstream.errors import BackendError, OwnLoginError
from proxy.upstream.http_link import HttpLink, link_to
from proxy.wire.sasl import plain_response

# One row of one column.
_QUERY_BYTES_MAX: Final = 1024
# A server without a free thread closes a connection as soon as it has accepted it, within a millisecond or two.
_REJECTED_WITHIN_S: Final = 0.05

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ProbeSettings:
    """The probes' login and timeouts. Without a user, a probe only opens a connection and ends it."""

    user: str = ""
    password: str = field(default="", repr=False)
    # A login takes a server some milliseconds.
    timeout_s: float = 5.0
    # The query waits its turn among the users' queries. A busy server is not down.
    query_timeout_s: float = 30.0


# Returns None if the backend works, or else why it does not.
Probe: TypeAlias = Callable[[Address], Awaitable[str | None]]


class HealthProbe:
    """The two probes, with their settings."""

    def __init__(self, settings: ProbeSettings, upstream: UpstreamSection = UPSTREAM) -> None:
        self._settings = settings
        self._dialer = Dialer(upstream.for_own_logins(), settings.timeout_s)

    async def check_login(self, address: Address) -> str | None:
        """Connect, and log in if there is a user for that. It uses no executor.

        It shows that the server has a free thread, and with a user that logins work.
        """
        return await self._why_failed(self._settings.timeout_s, self._log_in(address))

    async def check_query(self, address: Address) -> str | None:
        """Open a session and run a query, as clients do."""
        return await self._why_failed(self._settings.query_timeout_s, self._query(address))

    async def _why_failed(self, seconds: float, probe: Awaitable[None]) -> str | None:
        try:
            async with asyncio.timeout(seconds):
                await probe
        except OwnLoginError:
            raise
        except TimeoutError:
            return f"no answer within {seconds:g} s"
        except (BackendError, UnreachableError) as error:
            return str(error)
        return None

    async def _log_in(self, address: Address) -> None:
        settings = self._settings
        if not settings.user:
            await self._check_liveness(address)
            return
        link = link_to(address, self._dialer, settings.timeout_s)
        await link.open(plain_response(settings.user, settings.password), "the health user")
        try:
            if isinstance(link, HttpLink):
                await link.check_login()
        finally:
            link.close()

    async def _check_liveness(self, address: Address) -> None:
        """Connect, end our half, and wait until the server ends its own.

        The kernel accepts connections for a server that is stopped, or has no thread for them; only a thread that
        reads notices an end. Spark writes nothing into its log about it, while a SASL message without a login, or
        a reset, costs it a stack trace.
        """
        reader, writer = await self._dialer.open_streams(address)
        try:
            # With TLS one of the server's threads has already answered, in the handshake.
            if not writer.can_write_eof():
                return
            if await _ends_within(reader, _REJECTED_WITHIN_S):
                raise BackendError("it closes connections as it accepts them: all its threads may be taken")
            writer.write_eof()
            _ = await reader.read(1)
        except OSError as error:
            raise BackendError(why_unreachable(error)) from error
        finally:
            writer.close()

    async def _query(self, address: Address) -> None:
        settings = self._settings
        login = Login(
            address, settings.user, settings.password, None, self._dialer, reply_timeout_s=settings.query_timeout_s
        )
        async with BackendClient(login) as client:
            result = await client.answer(Query("SELECT 1", 1, _QUERY_BYTES_MAX, settings.query_timeout_s))
        if isinstance(result, QueryFailed):
            raise BackendError(f"select 1: {result.message}")


async def _ends_within(reader: asyncio.StreamReader, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return not await reader.read(1)
    except TimeoutError:
        return False


class HealthCheckRounds:
    """One kind of probe. A round probes all backends at once, each with its own timeout."""

    def __init__(self, backends: BackendPool, probe: Probe, health_of: Callable[[Backend], Health]) -> None:
        """`health_of` returns the health that this kind of probe changes."""
        self._backends = backends
        self._probe = probe
        self._health_of = health_of

    async def probe_all(self) -> None:
        """Probe every backend once."""
        await asyncio.gather(*map(self._probe_one, self._backends.configured))

    async def _probe_one(self, backend: Backend) -> None:
        lease = self._backends.lease_for_proxy(backend)
        if lease is None:
            # No connection is free for a probe; the clients' connections show how the backend is.
            return
        try:
            reason = await self._probe(backend.member.address)
        except OwnLoginError as error:
            # The error says nothing about the backend. Counted, it would take all backends down at once.
            log.warning("a health check could not log in: %s", error)
            return
        finally:
            lease.release()
        if backend.record_probe(self._health_of(backend), reason):
            _log_change(backend, reason)


def _log_change(backend: Backend, reason: str | None) -> None:
    if reason is None:
        log.info("the backend %s passes health checks again", backend.member.name)
    else:
        log.warning("the backend %s counts as down: %s", backend.member.name, reason)
