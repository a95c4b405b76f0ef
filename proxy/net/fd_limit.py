"""The process's limit of open files: two sockets for each client, one of them to its backend."""

from __future__ import annotations

import logging
from typing import Final

# Listeners, the store, the log, health checks and shadow statements.
_OTHERS: Final = 256
_PER_CLIENT: Final = 2
# The limit is raised by so many more if the system allows it, for connections that have sent no request so far
# (proxy/net/newcomers.py), those that are refused, and the admin port's.
_STRANGERS: Final = 2_048

log = logging.getLogger(__name__)


def raise_fd_limit(clients: int) -> None:
    """Raise the process's limit for so many clients, as far as the system allows; warn if that is too few."""
    try:
        import resource  # noqa: PLC0415 - only POSIX has it
    except ImportError:
        return
    wanted = _PER_CLIENT * clients + _OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    roomy = wanted + _STRANGERS
    most = roomy if hard == resource.RLIM_INFINITY else min(roomy, hard)
    if soft == resource.RLIM_INFINITY or soft >= roomy:
        return
    if most > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < wanted:
        room = max(0, most - _OTHERS) // _PER_CLIENT
        log.warning("the system allows %d open files: room for %d clients, not %d", most, room, clients)
