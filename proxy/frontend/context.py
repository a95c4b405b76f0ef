"""Parts that all connections of a process have in common."""

from __future__ import annotations

import secrets
from concurrent.futures import Executor
from dataclasses import dataclass, field

from proxy.access.handle_owners import Handles
from proxy.backends.pool import Backends
from proxy.frontend.graceful_close import Farewell
from proxy.frontend.rewrite_service import Desk
from proxy.frontend.session_registry import Sessions
from proxy.frontend.settings import ServerSettings
from proxy.frontend.shadow_runner import Beside
from proxy.net.log_once import Notices
from proxy.operations.tracked_statements import Executions
from proxy.upstream.dialer import Dialer

# Enough that two owners never have one digest.
OWNER_BYTES = 16


@dataclass(frozen=True)
class Common:
    """What the connections of a process have in common."""

    settings: ServerSettings
    sessions: Sessions
    executions: Executions
    pool: Executor
    # Whose the handles are that the backend has given out.
    handles: Handles
    desk: Desk
    # What runs in the sessions of clients on connections of ours.
    beside: Beside
    dialer: Dialer
    backends: Backends
    # Makes digests of credentials of no use to anybody else.
    owner_key: bytes = field(default_factory=lambda: secrets.token_bytes(OWNER_BYTES), repr=False)
    # Backend connections that outlive their clients', for a moment.
    farewells: set[Farewell] = field(default_factory=set)
    # Hosts from which somebody has logged in by a mechanism that we do not read.
    blind_clients: Notices = field(default_factory=Notices)
