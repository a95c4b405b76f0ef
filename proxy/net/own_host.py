"""The full name of this machine, which `_HOST` stands for in its own principals."""

from __future__ import annotations

import socket
from functools import cache


@cache
def own_host() -> str:
    """Return the name. The first call may ask DNS; the proxy makes it at its start."""
    return socket.getfqdn()
