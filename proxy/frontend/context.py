"""Parts that all connections of a process have in common."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

from proxy.access.handle_owners import HandleOwners
from proxy.backends.pool import BackendPool
from proxy.config.config import Config
from proxy.config.endpoints import Listener
from proxy.frontend.background_runner import BackgroundRunner
from proxy.frontend.graceful_close import GracefulClose
from proxy.frontend.key_checks import KeyChecks
from proxy.frontend.memory_gate import MemoryGate
from proxy.frontend.own_sessions import OwnSessions
from proxy.frontend.rewrite_service import RewriteService
from proxy.frontend.session_registry import SessionRegistry
from proxy.kerberos.client_logins import ClientLogins
from proxy.net.log_once import LogOnce
from proxy.net.newcomers import Newcomers
from proxy.operations.tracked_statements import TrackedStatements
from proxy.upstream.dialer import Dialer
from proxy.upstream.fair_threads import FairThreads

# Enough that two owners never have one digest.
OWNER_BYTES = 16


@dataclass(frozen=True)
class ServerContext:
    """The state that all connections of a process share."""

    # The configuration that the process started with.
    config: Config
    sessions: SessionRegistry
    tracked_statements: TrackedStatements
    threads: FairThreads
    # The owners of the handles that backends have given out.
    handles: HandleOwners
    rewrite_service: RewriteService
    # These run queries in the sessions of clients, on connections of ours.
    beside_runner: BackgroundRunner
    key_checks: KeyChecks
    # The proxy's own sessions, in which it asks queries whose answers the sessions of clients share.
    own_sessions: OwnSessions
    dialer: Dialer
    backends: BackendPool
    memory: MemoryGate
    # The logins that the proxy takes itself, by the listener. None: they pass to the backends.
    client_logins: Mapping[Listener, ClientLogins | None] = field(default_factory=dict)
    # Connections of each listener whose clients have sent no login so far.
    newcomers: Mapping[Listener, Newcomers] = field(default_factory=dict)
    # Key of the digests of credentials, so that they are of no use elsewhere.
    owner_key: bytes = field(default_factory=lambda: secrets.token_bytes(OWNER_BYTES), repr=False)
    # Backend connections that outlive their clients' connections for a moment.
    graceful_closes: set[GracefulClose] = field(default_factory=set)
    # Hosts from which a client has logged in by a mechanism that is not read.
    blind_clients: LogOnce = field(default_factory=LogOnce)
