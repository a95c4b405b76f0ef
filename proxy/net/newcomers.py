"""Newcomers: connections of a port of which no whole request has come so far. Pure: the caller hands in the time.

An honest client sends its request as it connects, so newcomers are few and young. Their number is limited for the
port, and for each address; one too many ends the one that has waited longest. So a client that opens connections
and is silent pushes out its own, and takes no place of those that are served.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Final, Protocol

# Newcomers of a port for clients, and of one address there. Behind a balancer all clients have one address, and
# hundreds of them connect at once after a restart.
CLIENTS_MAX: Final = 512
CLIENTS_OF_ADDRESS_MAX: Final = 256
# A client that has waited for this long is not about to speak, and gives its place to another that wants one.
SILENT_S: Final = 1.0
# An IPv6 address belongs to a network of this many bits, all of whose addresses one machine can have.
_NETWORK_BITS: Final = 64
_ADDRESSES_REMEMBERED: Final = 1_024


class Newcomer(Protocol):
    """A connection that waits for its client."""

    @property
    def address(self) -> str:
        """The client's address, as `address_group` has it."""
        ...

    def end_waiting(self, reason: str) -> None:
        """Close the connection."""
        ...


class Newcomers:
    """The newcomers of one port, those that wait longest first."""

    def __init__(
        self,
        clock: Callable[[], float],
        at_once_max: int = CLIENTS_MAX,
        of_address_max: int = CLIENTS_OF_ADDRESS_MAX,
    ) -> None:
        self._clock = clock
        self._at_once_max = at_once_max
        self._of_address_max = of_address_max
        # Each with the time at which it came.
        self._waiting: OrderedDict[Newcomer, float] = OrderedDict()
        self._of_address: dict[str, OrderedDict[Newcomer, None]] = {}

    def __len__(self) -> int:
        """The number of newcomers."""
        return len(self._waiting)

    def __contains__(self, newcomer: Newcomer) -> bool:
        """True if no whole request has come of this connection."""
        return newcomer in self._waiting

    def add(self, newcomer: Newcomer) -> None:
        """Let it wait, from now on. Ends another one where there are too many."""
        self.discard(newcomer)
        of_address = self._of_address.setdefault(newcomer.address, OrderedDict())
        if len(of_address) >= self._of_address_max:
            self._end(next(iter(of_address)), f"{self._of_address_max} connections of its address wait")
        elif len(self._waiting) >= self._at_once_max:
            self._end(next(iter(self._waiting)), f"{self._at_once_max} connections wait")
        self._of_address.setdefault(newcomer.address, of_address)[newcomer] = None
        self._waiting[newcomer] = self._clock()

    def discard(self, newcomer: Newcomer) -> None:
        """Take it out: its request has come, or it has gone."""
        if self._waiting.pop(newcomer, None) is None:
            return
        of_address = self._of_address[newcomer.address]
        del of_address[newcomer]
        if not of_address:
            del self._of_address[newcomer.address]

    def end_silent(self) -> bool:
        """End the one that has waited longest, for the sake of another client. False if none waits for so long."""
        for longest, since in self._waiting.items():
            if self._clock() - since < SILENT_S:
                break
            self._end(longest, "others wait for its place")
            return True
        return False

    def _end(self, newcomer: Newcomer, reason: str) -> None:
        self.discard(newcomer)
        newcomer.end_waiting(f"no request so far, and {reason}")


@lru_cache(_ADDRESSES_REMEMBERED)
def address_group(host: str) -> str:
    """The part of an address that one machine has for itself.

    >>> address_group("::ffff:10.0.0.7"), address_group("2001:db8::1:2:3:4")
    ('10.0.0.7', '2001:db8::')
    """
    try:
        found = ip_address(host)
    except ValueError:
        return host
    if not isinstance(found, IPv6Address):
        return host
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    kept = 128 - _NETWORK_BITS
    return str(IPv6Address(int(found) >> kept << kept))
