"""What the server needs to know before it starts. `proxy.config.config` fills it in."""

from __future__ import annotations

from dataclasses import dataclass, field

from proxy.access.impersonation import NOBODY, ProxyUsers
from proxy.config.address import Address
from proxy.config.endpoints import UPSTREAM, Listener, Upstream
from proxy.net.timeouts import Keepalive, TimeoutLimits
from proxy.operations.fallback_policy import FALLBACK_WITHIN_S
from proxy.relay.relay import REQUEST_BYTES_MAX


@dataclass(frozen=True)
class ServerSettings:
    """Where to listen, where to send, and the server's limits."""

    listeners: tuple[Listener, ...]
    backend_host: str
    backend_port: int
    upstream: Upstream = UPSTREAM
    proxy_users: ProxyUsers = NOBODY
    request_bytes_max: int = REQUEST_BYTES_MAX
    # Spark Thrift Server's own default (hive.server2.thrift.max.worker.threads): each connection of ours
    # takes one of its threads, and past the last one it does not answer at all.
    connections_max: int = 500
    # A backend in the same network answers within milliseconds; a host that is gone never does.
    connect_timeout_s: float = 10.0
    # Long enough for a slow directory service behind the backend's login; bounds clients that never speak.
    handshake_timeout_s: float = 60.0
    # Whether a handle that the proxy has not seen given out goes on to the backend, as it would without us.
    passes_unknown_handles: bool = True
    # What ends a connection that is silent; and how often the system asks a silent peer whether it is there.
    patience: TimeoutLimits = field(default_factory=TimeoutLimits)
    keepalive: Keepalive = field(default_factory=Keepalive)
    # What may wait to be written to a slow side before the other side is no longer read.
    write_buffer_bytes_max: int = 256 * 1024
    # Parsing is pure Python and holds the interpreter's lock: more threads would only take turns.
    rewrite_threads: int = 2

    # A rewritten statement that fails later than this after it was sent is not run again as it came.
    rerun_within_s: float = FALLBACK_WITHIN_S
    # Each takes one of the backend's threads, and as many cores as the client's own statement.
    shadows_at_once_max: int = 2
    # Key queries take a tenth of a second each, so these serve a hundred statements a second. More at once would
    # only take turns on the backend's cores, and take them from the statements themselves.
    key_queries_at_once_max: int = 16

    # HTTP clients: how long an unused connection is kept, how long a body may take, and how long a session lasts
    # on a backend that does not speak HTTP while its user is silent.
    http_keep_alive_s: float = 1_800.0
    http_body_s: float = 120.0
    http_session_idle_s: float = 14_400.0

    # How long the backend may take to hear that a query of ours has nobody left to wait for it. It reads nothing
    # while it holds a status call back, for up to five seconds.
    farewell_s: float = 7.0

    @property
    def backend(self) -> Address:
        """Where the backend is."""
        return Address(self.backend_host, self.backend_port)
