"""Names that the admin port is called by, and pages that may send to it. Pure.

A web page elsewhere can make a browser send requests here. It can give its own name the port's address, so that
the browser takes both for one site (DNS rebinding). So the name in `Host` has to be an address or one of ours, and
an `Origin` has to be the port's own. Programs send no origin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

_AUTHORITY: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:@/\[\]\\]+))(?::[0-9]{1,5})?")


class OwnNames:
    """The names of one port: those that are configured, and those that the machine has anyway.

    >>> ours = OwnNames(["starpruner.example"], ["spark-7"])
    >>> [ours.has(host) for host in ("[::1]:80", "LOCALHOST:1", "starpruner.example", "evil.example", "x@[::1]")]
    [True, True, True, False, False]
    """

    def __init__(self, configured: Iterable[str], others: Iterable[str]) -> None:
        self._configured = frozenset(map(_plain, configured))
        self._names = self._configured.union(map(_plain, ("localhost", *others)))

    def has(self, authority: str) -> bool:
        """True if this is an address or one of the names, with or without a port."""
        found = _AUTHORITY.fullmatch(authority)
        if found is None:
            return False
        host = found[1] or found[2]
        return _plain(host) in self._names or _is_address(host)

    def may_send(self, origin: str, authority: str) -> bool:
        """True if pages of this origin may send to the port, which they call so.

        A proxy for HTTPS may call the port otherwise than the browser calls the proxy; that name is configured. At
        the machine's other names may be servers of others.

        >>> ours = OwnNames(["starpruner.example"], ["spark-7"])
        >>> [ours.may_send(f"https://{name}", "10.0.0.7:10080") for name in ("starpruner.example", "spark-7")]
        [True, False]
        """
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        if parts.scheme not in {"http", "https"} or origin != f"{parts.scheme}://{parts.netloc}":
            return False
        return parts.netloc.lower() == authority.lower() or _plain(parts.netloc) in self._configured


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
