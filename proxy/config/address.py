"""Network addresses, as the configuration writes them, and why one cannot be reached."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from proxy.config.errors import ConfigError

PORT_MAX = 65_535


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


def address(text: str) -> Address:
    """Split HOST:PORT. Raises ConfigError where the port is out of range."""
    host, _, port = text.rpartition(":")
    if int(port) > PORT_MAX:
        raise ConfigError(f"{text}: the port is {port}, expected 0 to {PORT_MAX}")
    return Address(host.strip("[]"), int(port))
