"""The backends that the configuration names. Pure: looking up the addresses of names is left to the shell."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from proxy.config.address import Address

# `dns:` stands before a name whose addresses are all looked up. A host that is called dns has a port behind it.
_ENTRY: Final = re.compile(
    r"^(?P<dns>dns:)?(?P<address>(\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+):[0-9]{1,5})( weight=(?P<weight>[1-9][0-9]?))?$"
)

# Each is probed, and has its series in /metrics. More Thrift servers than this behind one proxy are unheard of.
MEMBERS_MAX: Final = 64


@dataclass(frozen=True)
class PoolMember:
    """One backend."""

    address: Address
    # How many connections it gets in comparison with the others.
    weight: int = 1

    @property
    def name(self) -> str:
        """Its name in logs, in metrics and on the admin port."""
        return str(self.address)


@dataclass(frozen=True)
class BackendEntry:
    """An entry of the configuration: a backend, or a name that stands for several."""

    address: Address
    weight: int = 1
    is_looked_up: bool = False

    def members(self, hosts: tuple[str, ...]) -> tuple[PoolMember, ...]:
        """The backends that it stands for, where its name has these addresses."""
        port, name = self.address.port, self.address.host
        return tuple(PoolMember(Address(host, port, name), self.weight) for host in hosts)


def distinct_members(members: list[PoolMember]) -> tuple[PoolMember, ...]:
    """Each address once, as it was named first, and at most MEMBERS_MAX of them."""
    found: dict[Address, PoolMember] = {}
    for member in members:
        found.setdefault(member.address, member)
    return tuple(found.values())[:MEMBERS_MAX]


def split(text: str) -> tuple[str, int, bool]:
    """An entry of `proxy.backends`: its HOST:PORT, its weight, and whether the name is to be looked up."""
    found = _ENTRY.match(text)
    if found is None:
        raise ValueError(f"{text}: expected [dns:]HOST:PORT[ weight=N]")
    return found["address"], int(found["weight"] or 1), found["dns"] is not None
