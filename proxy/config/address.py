"""Network addresses, as the configuration writes them, and why one cannot be reached."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Final

from proxy.config.errors import ConfigError

PORT_MAX = 65_535
# As asyncio words it.
_BIND: Final = re.compile(r"bind on address \('(?P<host>[^']+)', (?P<port>\d+)")


@dataclass(frozen=True)
class Address:
    """A host and port."""

    host: str
    port: int
    # The name in the certificate, where the host is one of the addresses of that name.
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def why_unreachable(error: OSError) -> str:
    """The system's own words, without the address that asyncio puts around them."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def start_error(error: Exception) -> str:
    """The error of a start; of a port that cannot be listened on, with its address as the settings write it."""
    place = _BIND.search(str(error)) if isinstance(error, OSError) else None
    if place is None or not isinstance(error, OSError):
        return str(error)
    host = f"[{place['host']}]" if ":" in place["host"] else place["host"]
    return f"cannot listen on {host}:{place['port']}: {why_unreachable(error)}"


def address(text: str) -> Address:
    """Split HOST:PORT. Raises ConfigError where the port is out of range."""
    host, _, port = text.rpartition(":")
    if int(port) > PORT_MAX:
        raise ConfigError(f"{text}: the port is {port}, expected 0 to {PORT_MAX}")
    return Address(host.strip("[]"), int(port))
