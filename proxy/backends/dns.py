"""Keeps the list of backends as the configuration and the name service have it. Shell."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from proxy.backends.pool import BackendPool
from proxy.config.address import why_unreachable
from proxy.config.backend_list import Member, Source, distinct

# A name service that does not answer within this time is asked again at the next turn.
LOOKUP_S_MAX: Final = 5.0

# What addresses a host has. Raises OSError.
Lookup: TypeAlias = Callable[[str], Awaitable[tuple[str, ...]]]

log = logging.getLogger(__name__)


async def addresses(host: str) -> tuple[str, ...]:
    """The addresses of a name, as this machine resolves names."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


class DnsNames:
    """The entries of the configuration, and what the names among them stood for when they last were asked."""

    def __init__(self, backends: BackendPool, sources: tuple[Source, ...], lookup: Lookup = addresses) -> None:
        self._backends = backends
        self._sources = sources
        self._lookup = lookup
        # A name service that fails takes no backend away.
        self._last: dict[Source, tuple[Member, ...]] = {}

    async def configure(self, sources: tuple[Source, ...]) -> None:
        """The configuration was read anew."""
        self._sources = sources
        self._last = {source: members for source, members in self._last.items() if source in sources}
        await self.refresh()

    async def refresh_looked_up(self) -> None:
        """The same again, if there is anything that may have changed by itself."""
        if any(source.is_looked_up for source in self._sources):
            await self.refresh()

    async def refresh(self) -> None:
        """Ask again, and tell the pool what there is now."""
        asked = self._sources
        members = await asyncio.gather(*(self._members(source) for source in asked))
        # The configuration may have been read anew meanwhile, and has been asked about then.
        if asked is self._sources:
            self._backends.configure(distinct([member for some in members for member in some]))

    async def _members(self, source: Source) -> tuple[Member, ...]:
        if not source.is_looked_up:
            return source.members((source.address.host,))
        last = self._last.get(source, ())
        try:
            async with asyncio.timeout(LOOKUP_S_MAX):
                found = source.members(await self._lookup(source.address.host))
        except TimeoutError:
            return self._unknown(source, last, f"no answer within {LOOKUP_S_MAX:g} s")
        except (OSError, UnicodeError) as error:
            reason = why_unreachable(error) if isinstance(error, OSError) else str(error)
            return self._unknown(source, last, reason)
        if set(found) != set(last):
            log.info("%s has %d addresses now, it had %d", source.address.host, len(found), len(last))
        self._last[source] = found
        return found

    def _unknown(self, source: Source, last: tuple[Member, ...], reason: str) -> tuple[Member, ...]:
        host, count = source.address.host, len(last)
        log.warning("%s cannot be looked up, its last %d addresses stay: %s", host, count, reason)
        return last
