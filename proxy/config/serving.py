"""Sections of the configuration that say who is served and how: listeners, backends, health, admin, logs.

The comment above a key is its text in docs/configuration.md, also for the keys below it that have none themselves.
With "Expert." at its beginning the key stands in the second part of that page (tools/configuration_page.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from proxy.config.address import address
from proxy.config.backend_list import MEMBERS_MAX
from proxy.config.endpoints import HTTP_PATH, Listener, ListenerTls, Transport, UpstreamSection, UpstreamTls
from proxy.config.errors import ConfigError
from proxy.config.kerberos import BackendKerberos
from proxy.config.types import (
    AT_ONCE,
    Bytes,
    Count,
    Counts,
    HistoryBytes,
    HostAndPort,
    HostAndPortOrNothing,
    HostName,
    HttpPath,
    PasswordHash,
    Seconds,
    SecondsOrNever,
    Section,
    text_like,
)


class ProxySection(Section, frozen=True):
    """The port for clients, the backends, and the limits of connections."""

    counts: ClassVar = Counts.AFTER_RESTART

    # The address that clients connect to, with SASL and without TLS. Loopback by default, so that nobody opens it
    # to a network without deciding so; 10001, since the backend on the same machine may have 10000. "" opens no
    # such port: each [[listener]] then says what it wants.
    listen: HostAndPortOrNothing = "127.0.0.1:10001"
    # The Spark Thrift Server behind the proxy.
    backend: Annotated[HostAndPort, AT_ONCE] = "127.0.0.1:10000"
    # Several backends instead: HOST:PORT each, or dns:NAME:PORT for all addresses that a name has. "HOST:PORT
    # weight=N" gets N times the connections. After SIGHUP a backend that is no longer named takes no new sessions.
    backends: Annotated[tuple[str, ...], Meta(max_length=MEMBERS_MAX), AT_ONCE] = ()
    # Connections of the proxy to each backend, its own queries and probes included. Below the 500 threads of Spark
    # Thrift Server (hive.server2.thrift.max.worker.threads), one per connection: the 501st would hang without a
    # word.
    backend_connections_max: Count = 480
    # Expert. A session's handle works from any connection, but on its own backend alone. So the first connections
    # of one login stay on one backend, up to this many: a person has a few. The many of a service account spread.
    # 0: they always spread.
    login_together_max: Annotated[int, Meta(ge=0)] = 8
    # Expert. How often the names of `backends` are looked up. Kubernetes and Consul answer for some seconds with
    # addresses that they have answered before.
    lookup_interval_s: Seconds = 30.0
    # Expert. Time to connect to a backend. One on the same network answers in milliseconds; one that is down
    # should not hold a client long.
    connect_timeout_s: Seconds = 10.0
    # For this long, SIGTERM waits for sessions to end, and Ctrl-C for statements in flight; a second signal ends
    # the wait. Below the 30 s that Kubernetes grants.
    drain_s: Seconds = 20.0
    # Expert. The longest call of a client. Spark Thrift Server itself cuts a connection at 100 MiB
    # (hive.server2.thrift.max.message.size).
    request_bytes_max: Bytes = 100 * 1024 * 1024
    # Expert. Bytes that may wait to be written to a slow side before the other side is no longer read.
    write_buffer_bytes_max: Bytes = 256 * 1024
    # Clients, all backends together. Each takes two file descriptors.
    connections_max: Count = 4_000
    # Memory that the proxy may use, all workers together. Where it gets short, statements go on as originals,
    # clients are not read for a moment, and at last new connections and long statements are refused
    # (docs/decisions/0036). 0: the limit of its container, or of its systemd unit, or else the machine's memory.
    memory_bytes_max: Annotated[int, Meta(ge=0)] = 0
    # Expert. How long a login may take. Long enough for a slow directory service behind it; bounds clients that
    # never speak.
    handshake_timeout_s: Seconds = 60.0
    # Processes that serve the same ports; 0 stands for one per core. One alone relays a gigabyte in half a
    # second of processor time, and most of the time that rewriting takes is waiting for Spark.
    workers: Annotated[int, Meta(ge=0, le=255)] = 1
    # Calls about a session or operation that this proxy has not seen opened: after it was restarted, or where
    # clients also connect to the backend directly. With "refuse" those start anew; with "pass" it works as it does
    # without the proxy, for whoever has the handle.
    unknown_handles: Literal["pass", "refuse"] = "pass"
    # Ends clients that neither ask nor wait for anything. 0: never. Their session ends with the connection, and
    # Spark itself keeps one for seven days (hive.server2.idle.session.timeout).
    idle_timeout_s: SecondsOrNever = 0.0
    # Expert. Ends clients that have begun a request and do not go on with it. 0: never. Longer than any outage
    # that TCP gets over.
    request_timeout_s: SecondsOrNever = 300.0
    # Expert. Ends clients that do not read their replies. 0: never, since Spark waits for them as well.
    unread_timeout_s: SecondsOrNever = 0.0
    # Expert. TCP keepalive on both sides, in seconds and probes; 0 leaves it to the system. Often enough for
    # firewalls to remember the connection, and a peer counts as gone after two hours, as Linux has it: a laptop
    # may sleep that long, and without us it would find its session again.
    keepalive_idle_s: Annotated[int, Meta(ge=0, le=32_767)] = 60
    keepalive_interval_s: Annotated[int, Meta(ge=0, le=32_767)] = 60
    keepalive_count: Annotated[int, Meta(ge=0, le=127)] = 120


class ListenerSection(Section, frozen=True):
    """One more port for clients, with a transport and TLS of its own."""

    # Its address.
    listen: HostAndPort
    # The protocol of its clients: the backend's, or "http". It cannot be told before a client has spoken, so each
    # has a port of its own.
    transport: Literal["sasl", "nosasl", "http"] = "sasl"
    # PEM files. With a certificate, clients have to speak TLS.
    tls_certificate: str = ""
    tls_key: str = ""
    # The authority that has signed the certificates of those who may connect. Empty: nobody is asked for one.
    tls_client_ca: str = ""
    # The path of HiveServer2 on an HTTP listener.
    http_path: HttpPath = HTTP_PATH
    # The principal that clients log in to here, where that is not kerberos.principal (with HTTP:
    # kerberos.http_principal): a balancer's name, say. Its key is in kerberos.keytab.
    kerberos_principal: str = ""

    def to_listener(self) -> Listener:
        """The same as the server takes it. Raises ConfigError."""
        return Listener(
            address(self.listen), Transport(self.transport), self._tls(), self.http_path, self.kerberos_principal
        )

    def _tls(self) -> ListenerTls | None:
        _expect_both(f"listener {self.listen}", self.tls_certificate, self.tls_key)
        if self.tls_certificate:
            return ListenerTls(Path(self.tls_certificate), Path(self.tls_key), _path(self.tls_client_ca))
        if self.tls_client_ca:
            raise ConfigError(f"listener {self.listen}: tls_client_ca needs tls_certificate and tls_key beside it")
        return None


class BackendSection(Section, frozen=True):
    """The protocol of the backends; their addresses are in `proxy.backend` and `proxy.backends`."""

    counts: ClassVar = Counts.AFTER_RESTART

    # As Spark is configured: hive.server2.authentication=NOSASL, or hive.server2.transport.mode=http.
    transport: Literal["sasl", "nosasl", "http"] = "sasl"
    # TLS to the backend (hive.server2.use.SSL).
    tls: bool = False
    # A PEM file of the authorities that may have signed the backend's certificate. Empty: those of the system.
    tls_ca: str = ""
    # The name in the backend's certificate. Empty: the host of its address.
    tls_server_name: str = ""
    # PEM files of a certificate to show to the backend, where it asks clients for one.
    tls_certificate: str = ""
    tls_key: str = ""
    # The path of HiveServer2 on a backend that speaks HTTP (hive.server2.thrift.http.path).
    http_path: HttpPath = HTTP_PATH

    def to_upstream(self, kerberos: BackendKerberos | None = None) -> UpstreamSection:
        """The same as the server takes it. Raises ConfigError."""
        return UpstreamSection(Transport(self.transport), self._tls(), self.http_path, kerberos)

    def _tls(self) -> UpstreamTls | None:
        _expect_both("backend", self.tls_certificate, self.tls_key)
        if self.tls:
            own = _path(self.tls_certificate), _path(self.tls_key)
            return UpstreamTls(_path(self.tls_ca), self.tls_server_name or None, *own)
        if self.tls_ca or self.tls_server_name or self.tls_certificate:
            raise ConfigError("backend: tls_ca, tls_server_name and tls_certificate need tls = true beside them")
        return None


class HttpSection(Section, frozen=True):
    """Time limits for HTTP clients, on listeners with `transport = "http"`."""

    counts: ClassVar = Counts.AFTER_RESTART

    # Expert. How long an unused connection is kept: the server's own (hive.server2.thrift.http.max.idle.time).
    # With less, a client could send a call on a connection that we are closing.
    keep_alive_s: Seconds = 1_800.0
    # Expert. Time for the body of one call. One of 100 MB takes a slow network this long; bounds clients that send
    # the half of one.
    body_s: Seconds = 120.0
    # How long an HTTP client's session lasts while its user is silent, on a backend that does not speak HTTP. Such
    # a session takes a connection of its own, and one of its 500 threads. A client that has gone without closing
    # it cannot be noticed.
    session_idle_s: Seconds = 14_400.0


class AdminSection(Section, frozen=True):
    """The HTTP port for the pages, explain, metrics and health."""

    counts: ClassVar = Counts.AFTER_RESTART

    # Its address. Loopback by default, as for `proxy.listen`.
    listen: HostAndPort = "127.0.0.1:10080"
    # Administrators, who see everybody's statements, each with the hash of a password that `starpruner
    # hash-password` makes: anna = "scrypt$..". Everybody else signs in as a user of the backend, which checks the
    # password, and sees the own statements.
    users: dict[str, PasswordHash] = {}  # noqa: RUF012 - msgspec makes a new one for each
    # Shows everybody's statements to everybody who can reach the port, without signing in, and explains statements
    # to them.
    open: bool = False
    # Names that the port is called by, besides its addresses, `localhost`, this machine's name and that in
    # `listen`: of a balancer, a Kubernetes Service, or a proxy for HTTPS in front. Requests to any other name are
    # refused: a web page could have given its own name the port's address.
    hosts: tuple[HostName, ...] = ()
    # Expert. The longest request: larger than any statement that is rewritten, JSON escapes included.
    request_bytes_max: Bytes = 4 * 1024 * 1024

    def __repr__(self) -> str:
        return f"AdminSection({self.listen}, {len(self.users)} users, open={self.open})"


class HistorySection(Section, frozen=True):
    """The history of statements, which the admin port shows: see docs/history.md."""

    counts: ClassVar = Counts.AFTER_RESTART

    # Whether statements are kept at all.
    enabled: bool = True
    # The directory that they are kept in. It holds statements' texts: give it to the proxy's user alone. Empty: a
    # directory of its own that ends with the proxy, with at most 64 MB of the last statements.
    path: str = ""
    # A directory on a volume that all replicas mount: by files in it they tell one another their statements, and
    # each shows those of all. `path` stays each one's own, on its own disk. Empty: each shows its own statements.
    shared_path: str = ""
    # How long a statement is kept. Seven days show a week's dashboards, those of Monday beside those of Sunday.
    days: Annotated[float, Meta(gt=0, le=3_650)] = 7.0
    # The bytes that may be kept, the oldest statements then go first. A statement takes 1 to 5 KB, so this is
    # 200,000 statements or more: a statement every three seconds of seven days.
    bytes_max: HistoryBytes = 1_000_000_000
    # With false, texts are kept without their literals and comments. Passwords and the values of SET never are.
    literals: bool = True


class TracingSection(Section, frozen=True):
    """Spans of statements for OpenTelemetry: see docs/observability.md. Needs the extra starpruner[tracing]."""

    counts: ClassVar = Counts.AFTER_RESTART

    # The address that takes OTLP over HTTP, as http://127.0.0.1:4318/v1/traces. Empty: no spans. Its headers and
    # certificates come from OpenTelemetry's variables, as OTEL_EXPORTER_OTLP_HEADERS: no token stands here.
    endpoint: Annotated[str, text_like(r"^(https?://\S+)?$", "a URL of http or https, or an empty text")] = ""
    # The name of the proxy among the services of a trace.
    service_name: Annotated[str, Meta(min_length=1, max_length=200)] = "starpruner"
    # Adds the client's text, as the history keeps it, without literals where history.literals is false. Off, since
    # others may read traces than those who may read statements.
    statement_text: bool = False


class HealthSection(Section, frozen=True):
    """Health checks of the backends: the choice, the pages, the metrics and /readyz go by them."""

    counts: ClassVar = Counts.AFTER_RESTART

    # The login for health checks. Empty: a server has to take a connection and notice its end, which one that
    # hangs does not, and which leaves no trace in its log. Whether it lets users in, only a login shows.
    user: str = ""
    password: str = ""
    # Expert. How often a login is tried, of which no executor hears, and how long it may take. Three that fail in
    # a row take a backend out, at the start one; two that work bring it back.
    interval_s: Seconds = 5.0
    timeout_s: Seconds = 5.0
    # Expert. How often a session runs SELECT 1, rarer since it costs more; two that fail in a row take a backend
    # out. 0: never.
    query_interval_s: Annotated[float, Meta(ge=0, le=86_400)] = 60.0
    # Expert. How long SELECT 1 may take. It takes its turn among the users' statements: a server that is busy is
    # not down.
    query_timeout_s: Seconds = 30.0

    def __repr__(self) -> str:
        return f"HealthSection(interval_s={self.interval_s:g})"


class ZooKeeperSection(Section, frozen=True):
    """Registration for clients with serviceDiscoveryMode=zooKeeper. Needs the extra starpruner[zookeeper]."""

    counts: ClassVar = Counts.AFTER_RESTART

    # HOST:PORT,HOST:PORT,.. of the ensemble, as clients name it. Empty: we are not registered.
    ensemble: str = ""
    # HiveServer2's own default, which clients look into unless their URL says zooKeeperNamespace.
    namespace: Annotated[
        str, text_like(r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$", "names with a slash between them")
    ] = "hiveserver2"
    # The host that clients are told. Empty: the one that is listened on, or this machine's name where that is all.
    advertised_host: str = ""
    # A digest login, which then owns the nodes. Empty: anybody may change them, as HiveServer2 has it without
    # Kerberos.
    user: str = ""
    password: str = ""
    # Expert. Time after which ZooKeeper forgets a proxy that died; its own limits are 2 and 20 ticks, 4 to 40 s.
    session_timeout_s: Annotated[float, Meta(ge=1, le=3_600)] = 20.0

    def __repr__(self) -> str:
        return f"ZooKeeperSection({self.ensemble}, namespace={self.namespace})"


class LogSection(Section, frozen=True):
    """Log lines, on standard error."""

    counts: ClassVar = Counts.AFTER_RESTART

    # The lowest level that is logged: debug, info, warning or error.
    level: Literal["debug", "info", "warning", "error"] = "info"


def _expect_both(where: str, certificate: str, key: str) -> None:
    if bool(certificate) != bool(key):
        raise ConfigError(f"{where}: tls_certificate and tls_key go together, one of them is missing")


def _path(text: str) -> Path | None:
    return Path(text) if text else None
