"""DNS lookups that keep the pool's members equal to the configuration's entries. Shell."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from proxy.backends.pool import BackendPool
from proxy.config.address import why_unreachable
from proxy.config.backend_list import BackendEntry, PoolMember, distinct_members

# A lookup that takes longer is abandoned and repeated at the next interval.
LOOKUP_S_MAX: Final = 5.0

# Returns the addresses of a host. Raises OSError.
Lookup: TypeAlias = Callable[[str], Awaitable[tuple[str, ...]]]

log = logging.getLogger(__name__)


async def resolve_addresses(host: str) -> tuple[str, ...]:
    """Return the addresses of a name, as this machine resolves names."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


class DnsNames:
    """The configuration's entries, and the pool members that each name among them had at its last lookup."""

    def __init__(
        self, backends: BackendPool, entries: tuple[BackendEntry, ...], lookup: Lookup = resolve_addresses
    ) -> None:
        self._backends = backends
        self._entries = entries
        self._lookup = lookup
        # Members stay if a later lookup fails.
        self._last: dict[BackendEntry, tuple[PoolMember, ...]] = {}

    async def configure(self, entries: tuple[BackendEntry, ...]) -> None:
        """Use the entries of a reloaded configuration."""
        self._entries = entries
        self._last = {entry: members for entry, members in self._last.items() if entry in entries}
        await self.refresh()

    async def refresh_if_looked_up(self) -> None:
        """Look the names up again, if there are any."""
        if any(entry.is_looked_up for entry in self._entries):
            await self.refresh()

    async def refresh(self) -> None:
        """Look all names up, and give the pool its members."""
        entries = self._entries
        members = await asyncio.gather(*(self._members(entry) for entry in entries))
        # A reload during the lookups has started a refresh of its own.
        if entries is self._entries:
            self._backends.configure(distinct_members([member for some in members for member in some]))

    async def _members(self, entry: BackendEntry) -> tuple[PoolMember, ...]:
        if not entry.is_looked_up:
            return entry.members((entry.address.host,))
        last = self._last.get(entry, ())
        try:
            async with asyncio.timeout(LOOKUP_S_MAX):
                found = entry.members(await self._lookup(entry.address.host))
        except TimeoutError:
            return self._keep_last(entry, last, f"no answer within {LOOKUP_S_MAX:g} s")
        except (OSError, UnicodeError) as error:
            reason = why_unreachable(error) if isinstance(error, OSError) else str(error)
            return self._keep_last(entry, last, reason)
        if set(found) != set(last):
            log.info("%s resolves to %d addresses now, before to %d", entry.address.host, len(found), len(last))
        self._last[entry] = found
        return found

    def _keep_last(self, entry: BackendEntry, last: tuple[PoolMember, ...], reason: str) -> tuple[PoolMember, ...]:
        host, count = entry.address.host, len(last)
        log.warning("%s cannot be looked up, its last %d addresses stay in use: %s", host, count, reason)
        return last
