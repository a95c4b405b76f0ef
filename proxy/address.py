"""Network addresses, and why one cannot be reached."""

from __future__ import annotations

import os
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Address:
    """A host and port."""

    host: str
    port: int
    # What the certificate there is for, where the host is one of the addresses that a name has.
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def why_unreachable(error: OSError) -> str:
    """The system's own words, without the address that asyncio puts around them."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error)
