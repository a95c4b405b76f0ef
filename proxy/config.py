"""The configuration: one frozen object, from a TOML file and `--set section.key=value`, checked at start."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from proxy.address import Address
from proxy.backends.members import MEMBERS_MAX, Source, split
from proxy.transports import HTTP_PATH, Listener, ListenerTls, Transport, Upstream, UpstreamTls
from rewriter import Rule

Seconds = Annotated[float, Meta(gt=0, le=86_400)]
SecondsOrNever = Annotated[float, Meta(ge=0, le=30 * 86_400)]
Count = Annotated[int, Meta(ge=1)]
Bytes = Annotated[int, Meta(ge=1024)]
# What LMDB maps are whole pages; with fewer it cannot work at all.
StoreBytes = Annotated[int, Meta(ge=64 * 1024, multiple_of=4096)]
# An IPv6 host stands in brackets. Port 0 takes a free one.
HostAndPort = Annotated[str, Meta(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+):[0-9]{1,5}$")]
HostAndPortOrNothing = Annotated[str, Meta(pattern=r"^((\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+):[0-9]{1,5})?$")]
HttpPath = Annotated[str, Meta(pattern=r"^/[^?#\s]*[^/?#\s]$")]

# Also set by a client for its session (proxy/knobs.py).
Mode = Literal["rewrite", "shadow"]
Consistency = Literal["window", "strict"]
Staleness = Annotated[float, Meta(ge=0, le=86_400)]
# A table as `name`, `database.name` or `catalog.database.name`; `*` stands for all tables of a database.
TablePattern = Annotated[str, Meta(pattern=r"^[^.`*]+(\.[^.`*]+){0,2}(?<!\*)$|^[^.`*]+(\.[^.`*]+)?\.\*$")]
# A table as `database.name` or `catalog.database.name`, which is the same one in whatever database a session is.
QualifiedTableOrNothing = Annotated[str, Meta(pattern=r"^([^.`]+(\.[^.`]+){1,2})?$")]

PORT_MAX = 65_535


class ConfigError(ValueError):
    """A configuration that the proxy does not start with. The message names the key and what is wrong."""


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the TOML file: unknown keys are errors."""


class ProxySection(_Section, frozen=True):
    """Where clients connect and what stands behind."""

    # Loopback until told otherwise: whoever opens it to a network decides so knowingly. 10000 may be held
    # by the backend on the same machine. SASL without TLS; "" where each [[listener]] says what it wants.
    listen: HostAndPortOrNothing = "127.0.0.1:10001"
    backend: HostAndPort = "127.0.0.1:10000"
    # Several backends instead: HOST:PORT each, or dns:NAME:PORT for all addresses that a name has. One with
    # " weight=N" behind it gets N times the connections. Read anew on SIGHUP, as is `backend`: what is no longer
    # named takes no new sessions.
    backends: Annotated[tuple[str, ...], Meta(max_length=MEMBERS_MAX)] = ()
    # Below the 500 threads of Spark Thrift Server (hive.server2.thrift.max.worker.threads), one per connection:
    # the 501st would hang without a word. Queries and probes of the proxy's own count.
    backend_connections_max: Count = 480
    # A session's handle works from any connection, but on its own backend alone. So the connections of one login
    # stay on one backend, up to this many: a person has a few. The many of a service account spread.
    login_together_max: Annotated[int, Meta(ge=0)] = 8
    # Kubernetes and Consul answer for some seconds with what they have answered before.
    lookup_interval_s: Seconds = 30.0
    # A backend on the same network answers in milliseconds; one that is down should not hold a client long.
    connect_timeout_s: Seconds = 10.0
    # On SIGTERM, statements in flight may finish for this long. Below the 30 s that Kubernetes grants.
    drain_s: Seconds = 20.0
    # Spark Thrift Server itself cuts a connection at 100 MiB (hive.server2.thrift.max.message.size).
    request_bytes_max: Bytes = 100 * 1024 * 1024
    # What may wait to be written to a slow side before the other side is no longer read.
    write_buffer_bytes_max: Bytes = 256 * 1024
    # Clients, all backends together. Each takes two file descriptors.
    connections_max: Count = 4_000
    # Long enough for a slow directory service behind the login; bounds clients that never speak.
    handshake_timeout_s: Seconds = 60.0
    # Processes that serve the same ports; 0 stands for one per core. One alone relays a gigabyte in a quarter of a
    # second of processor time, and most of what rewriting takes is waiting for Spark.
    workers: Annotated[int, Meta(ge=0, le=255)] = 1
    # What becomes of a session or operation that this proxy has not seen opened: after it was restarted, or where
    # clients also connect to the backend directly. With "refuse" those start anew; with "pass" it works as it does
    # without the proxy, for whoever has the handle.
    unknown_handles: Literal["pass", "refuse"] = "pass"
    # Ends clients that neither ask nor wait for anything. 0: never. Their session ends with the connection, and
    # Spark itself keeps one for seven days (hive.server2.idle.session.timeout).
    idle_timeout_s: SecondsOrNever = 0.0
    # Ends clients that have begun a request and do not go on with it. Longer than any outage that TCP gets over.
    request_timeout_s: SecondsOrNever = 300.0
    # Ends clients that do not read their replies. 0: never, since Spark waits for them as well.
    unread_timeout_s: SecondsOrNever = 0.0
    # TCP keepalive on both sides, in seconds and probes; 0 leaves it to the system. Often enough for firewalls to
    # remember the connection, and a peer counts as gone after two hours, as Linux has it.
    keepalive_idle_s: Annotated[int, Meta(ge=0, le=32_767)] = 60
    keepalive_interval_s: Annotated[int, Meta(ge=0, le=32_767)] = 60
    keepalive_count: Annotated[int, Meta(ge=0, le=127)] = 120


class ListenerSection(_Section, frozen=True):
    """One more place where clients connect, and what they speak there."""

    listen: HostAndPort
    # Which one a client speaks cannot be told before it has spoken, so each has a port of its own.
    transport: Literal["sasl", "nosasl", "http"] = "sasl"
    # PEM files. With a certificate clients have to speak TLS.
    tls_certificate: str = ""
    tls_key: str = ""
    # The authority that has signed the certificates of those who may connect. Empty: nobody is asked for one.
    tls_client_ca: str = ""
    # Where HiveServer2 is on an HTTP listener.
    http_path: HttpPath = HTTP_PATH

    def to_listener(self) -> Listener:
        """The same as the server takes it. Raises ConfigError."""
        return Listener(address(self.listen), Transport(self.transport), self._tls(), self.http_path)

    def _tls(self) -> ListenerTls | None:
        _expect_both(f"listener {self.listen}", self.tls_certificate, self.tls_key)
        if self.tls_certificate:
            return ListenerTls(Path(self.tls_certificate), Path(self.tls_key), _path(self.tls_client_ca))
        if self.tls_client_ca:
            raise ConfigError(f"listener {self.listen}: tls_client_ca needs tls_certificate and tls_key beside it")
        return None


class BackendSection(_Section, frozen=True):
    """What the backend speaks; where it is says proxy.backend."""

    transport: Literal["sasl", "nosasl", "http"] = "sasl"
    tls: bool = False
    # A PEM file of the authorities that may have signed the backend's certificate. Empty: those of the system.
    tls_ca: str = ""
    # The name in the backend's certificate. Empty: the host of its address.
    tls_server_name: str = ""
    # PEM files of a certificate to show to the backend.
    tls_certificate: str = ""
    tls_key: str = ""
    # Who clients without credentials are to a backend that asks for some: PyHive's and beeline's own default.
    user: str = "anonymous"
    password: str = "anonymous"  # noqa: S105 - known to everybody, as the clients' own default
    # Where HiveServer2 is on a backend that speaks HTTP (hive.server2.thrift.http.path).
    http_path: HttpPath = HTTP_PATH

    def __repr__(self) -> str:
        return f"BackendSection({self.transport}, tls={self.tls})"

    def to_upstream(self) -> Upstream:
        """The same as the server takes it. Raises ConfigError."""
        return Upstream(Transport(self.transport), self._tls(), self.user, self.password, self.http_path)

    def _tls(self) -> UpstreamTls | None:
        _expect_both("backend", self.tls_certificate, self.tls_key)
        if self.tls:
            own = _path(self.tls_certificate), _path(self.tls_key)
            return UpstreamTls(_path(self.tls_ca), self.tls_server_name or None, *own)
        if self.tls_ca or self.tls_server_name or self.tls_certificate:
            raise ConfigError("backend: tls_ca, tls_server_name and tls_certificate need tls = true beside them")
        return None


class HttpSection(_Section, frozen=True):
    """What HTTP clients are granted, on listeners that speak it."""

    # How long an unused connection is kept: the server's own (hive.server2.thrift.http.max.idle.time). With less,
    # a client could send a call on a connection that we are closing.
    keep_alive_s: Seconds = 1_800.0
    # A body of 100 MB takes a slow network this long; bounds clients that send the half of one.
    body_s: Seconds = 120.0
    # A session on a backend that does not speak HTTP takes a connection of its own, and one of its 500 threads. A
    # client that has gone without closing it cannot be noticed, so it ends when its user is silent this long.
    session_idle_s: Seconds = 14_400.0


class AdminSection(_Section, frozen=True):
    """The HTTP port for explain and health."""

    listen: HostAndPort = "127.0.0.1:10080"
    # Larger than any statement that is rewritten, JSON escapes included.
    request_bytes_max: Bytes = 4 * 1024 * 1024


class HealthSection(_Section, frozen=True):
    """How backends are asked whether they work. One that is alone is asked only if there is a user for that."""

    # Who logs in for that. Empty: a connection that opens has to do, though a server that hangs lets it open too.
    user: str = ""
    password: str = ""
    # A login, of which no executor hears. Three that fail in a row take a backend out, two that work bring it
    # back.
    interval_s: Seconds = 5.0
    timeout_s: Seconds = 5.0
    # A session and SELECT 1, rarer since it costs more; two that fail in a row take a backend out. 0: never.
    query_interval_s: Annotated[float, Meta(ge=0, le=86_400)] = 60.0
    # It takes its turn among the users' statements: a server that is busy is not down.
    query_timeout_s: Seconds = 30.0

    def __repr__(self) -> str:
        return f"HealthSection(interval_s={self.interval_s:g})"


class ZooKeeperSection(_Section, frozen=True):
    """Where clients with serviceDiscoveryMode=zooKeeper find us. Needs the extra starpruner[zookeeper]."""

    # HOST:PORT,HOST:PORT,.. of the ensemble. Empty: we are not registered.
    ensemble: str = ""
    # HiveServer2's own, which clients look into unless their URL says zooKeeperNamespace.
    namespace: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$")] = "hiveserver2"
    # The host that clients are told. Empty: the one that is listened on, or this machine's name where that is all.
    advertised_host: str = ""
    # A digest login, which then owns the nodes. Empty: anybody may change them, as HiveServer2 has it without
    # Kerberos.
    user: str = ""
    password: str = ""
    # ZooKeeper forgets a proxy that died after this time; its own limits are 2 and 20 ticks, 4 to 40 s.
    session_timeout_s: Annotated[float, Meta(ge=1, le=3_600)] = 20.0

    def __repr__(self) -> str:
        return f"ZooKeeperSection({self.ensemble}, namespace={self.namespace})"


class RewriteSection(_Section, frozen=True):
    """When a statement is rewritten and what a rewrite may cost."""

    # The kill switch: with false everything passes through untouched.
    enabled: bool = True
    # With shadow the statement runs as it came, and the rewritten one beside it, to compare the answers.
    mode: Mode = "rewrite"
    # Whether keys that change before the statement reads them may be missed (docs/decisions/0008).
    consistency: Consistency = "window"
    # Asks for keys only where that pays. With false, whatever is sound is narrowed.
    cost_gate: bool = True
    # A shape of statement that was left alone is narrowed again after this long, to see whether that pays by now.
    gate_retry_s: Seconds = 600.0
    # How old remembered keys may be. 0: keys are asked for with each statement.
    key_staleness_s: Staleness = 0.0
    # The same for keys that were read at the snapshot of an Iceberg table, and are used only while it is current.
    # Not for servers whose sessions see other rows of it as rights or defaults change: no snapshot tells of that.
    key_snapshot_s: Staleness = 0.0
    # Keys remembered, all sessions together.
    key_cache_bytes_max: Bytes = 64 * 1024 * 1024
    # What caused a failure or a slowdown is put aside for this long, and longer if it does so again.
    quarantine_s: Seconds = 600.0
    # Ways to narrow that are switched off, by their names (rewriter/vocabulary/rule.py).
    rules_off: tuple[Rule, ...] = ()
    # Facts that are never narrowed.
    tables_off: tuple[TablePattern, ...] = ()
    # A statement that fails is run again as it came if it failed within this time: users wait for an error once.
    rerun_within_s: Seconds = 60.0
    # sqlglot reads 250 KB in about a second; a statement beyond that is generated, and rarely a star join.
    statement_chars_max: Count = 262_144
    # Thirteen years of days. 5,000 literals cost Spark's planner some tenths of a second at most, and fit in
    # predicate_chars_max; of more keys, ranges around them are asked for.
    key_rows_max: Count = 5_000
    # Key queries run one after the other before the statement does; a star has a handful of dimensions.
    key_queries_max: Count = 8
    # Measured key queries take 0.1 to 0.3 s. A small side that needs more than a few seconds is not small.
    key_query_deadline_s: Seconds = 5.0
    # Each takes a thread and some cores of the backend for its 0.1 to 0.3 s: with this many at once it would be
    # busy with nothing else.
    key_queries_at_once_max: Count = 16
    # A table of this size is read in some ten seconds by a small cluster, longer than key_query_deadline_s.
    # Counts where the size is known; else the deadline alone bounds a key query.
    small_side_bytes_max: Bytes = 10 * 1024 * 1024 * 1024
    # 5,000 keys of 200 bytes each.
    key_query_bytes_max: Bytes = 1024 * 1024
    # Ranges around keys that are too many to be fetched: the widest gaps between them are left out.
    key_ranges_max: Annotated[int, Meta(ge=1, le=10_000)] = 200
    # The database behind the metastore, which bounds what it is sent of the keys (rewriter/domains/consumers.py).
    # The embedded Derby is the least able one, so its limits are safe for all.
    metastore: Literal["derby", "postgresql"] = "derby"
    # Text inserted for one scan: 5,000 keys of about 25 characters.
    predicate_chars_max: Count = 131_072


class ShadowSection(_Section, frozen=True):
    """Shadow mode: statements run as they came, and the rewritten ones beside them, to compare the answers."""

    # The part of the statements that would be rewritten which run in shadow mode where a session has not said so.
    fraction: Annotated[float, Meta(ge=0, le=1)] = 0.0
    # Each query of a comparison; the client's statement has run about as long by then.
    statement_s: Seconds = 60.0
    # A comparison in all: five such queries where the answers differ.
    total_s: Seconds = 300.0
    # Each takes one of the backend's threads, and as many cores as the client's own statement.
    at_once_max: Count = 2
    # A file to which answers that differed are added, with both texts. Empty: they are only counted and logged.
    differences_path: str = ""
    # Some hundreds of statements as dashboards send them.
    differences_bytes_max: Bytes = 16 * 1024 * 1024


class CatalogSection(_Section, frozen=True):
    """Table facts, asked for in the client's session and kept with it."""

    # How long a description may be old. A changed type is caught by the inserted type check at any age.
    facts_ttl_s: Seconds = 60.0
    # Descriptions kept per session.
    tables_max: Count = 1_000
    # DESCRIBE and SHOW PARTITIONS: a busy metastore answers in seconds, and then a rewrite no longer pays.
    query_deadline_s: Seconds = 5.0
    # A table has a few thousand columns at most; the detail rows come on top.
    describe_rows_max: Count = 20_000
    # For explain's counts; a longer list is reported as unknown.
    partitions_max: Count = 200_000
    # How long a partition list may be old. To ask for 10,000 takes up to a second; one that has grown since costs
    # pruning, never rows.
    partitions_ttl_s: Seconds = 600.0
    # The directory in which partition lists are kept. Empty: a temporary one, removed when the proxy stops.
    store_path: str = ""
    # About 100 bytes a partition, and room for a second copy while a list is replaced. The file grows up to this
    # size as it is used; lists that do not fit are not kept.
    store_bytes_max: StoreBytes = 512 * 1024 * 1024


class FilesSection(_Section, frozen=True):
    """The file index: what `starpruner pipeline` has written of each file's columns, to skip files by.

    The limits hold for the files of Iceberg tables too, of which Iceberg's own metadata tables tell.
    """

    # Its table. Empty: there is none, and nothing is asked. Read in the client's own session, by its own rights.
    index: QualifiedTableOrNothing = ""
    # How long it is believed which tables are indexed, and that their rows are the same. To ask takes a tenth of a
    # second; rows that have changed since cost pruning, never rows.
    tables_ttl_s: Seconds = 300.0
    # Tables that are indexed. A warehouse has some thousands; with more, none of them is used.
    tables_max: Count = 10_000
    # The rows of 40,000 files with ten columns come in some seconds, once for each user and change of the index. A
    # statement that waits longer than this goes on without them.
    query_deadline_s: Seconds = 10.0
    # Of one table; of a larger one the index is not used. With ten columns each takes 700 bytes to fetch and
    # 2.5 KB to keep; the rows of 40,000 take a second or two of processor time.
    files_max: Count = 50_000
    # The rows of files_max files as they are fetched, with ten columns each and room for longer values.
    fetch_bytes_max: Bytes = 64 * 1024 * 1024
    # Of all tables together, and for each user anew: 250 MB with ten columns. Those used last are kept; with fewer
    # than are in use, their rows are fetched over and over.
    files_kept_max: Count = 100_000
    # Text inserted for one scan to skip files: some 3,500 of them. Those that save most come first.
    hint_chars_max: Count = 512 * 1024


class SplitsSection(_Section, frozen=True):
    """Narrowed scans of many small files, read in fewer tasks. Needs the file index, which knows their sizes."""

    enabled: bool = True
    # Splits, as Spark packs them, that one task is to read at most. A hundred tasks become ten; with many more the
    # last task to end may take as long as the others saved.
    max_small_splits_grouped: Annotated[int, Meta(ge=1, le=1_000)] = 10
    # Fewer tasks than this are not worth a hint: each takes some milliseconds of a core before it reads anything.
    saved_min: Count = 32
    # How long it is believed how many tasks run at once, by which settings files are packed, and which tables are
    # cached in memory. To ask takes some hundredths of a second; what has changed since costs time, never rows.
    asked_every_s: Seconds = 300.0


class LogSection(_Section, frozen=True):
    """What is logged, to standard error."""

    level: Annotated[str, Meta(pattern="^(debug|info|warning|error)$")] = "info"


class Config(_Section, frozen=True):
    """All of it."""

    proxy: ProxySection = ProxySection()
    listener: tuple[ListenerSection, ...] = ()
    backend: BackendSection = BackendSection()
    # Whom a login may act for (proxy/proxy_users.py); `*` stands for everybody on either side.
    proxy_users: dict[str, tuple[str, ...]] = {}
    http: HttpSection = HttpSection()
    admin: AdminSection = AdminSection()
    health: HealthSection = HealthSection()
    zookeeper: ZooKeeperSection = ZooKeeperSection()
    rewrite: RewriteSection = RewriteSection()
    shadow: ShadowSection = ShadowSection()
    catalog: CatalogSection = CatalogSection()
    files: FilesSection = FilesSection()
    splits: SplitsSection = SplitsSection()
    log: LogSection = LogSection()

    def sources(self) -> tuple[Source, ...]:
        """Where the backends are. Raises ConfigError."""
        try:
            entries = [split(text) for text in self.proxy.backends or (self.proxy.backend,)]
        except ValueError as error:
            raise ConfigError(f"proxy.backends: {error}") from error
        sources = tuple(Source(address(where), weight, looked_up) for where, weight, looked_up in entries)
        if len({source.address for source in sources}) < len(sources):
            raise ConfigError("proxy.backends: an address is named twice; write weight=N to give it more")
        return sources

    def listeners(self) -> tuple[Listener, ...]:
        """Where clients connect, proxy.listen first. Raises ConfigError."""
        first = (Listener(address(self.proxy.listen)),) if self.proxy.listen else ()
        listeners = (*first, *(section.to_listener() for section in self.listener))
        if not listeners:
            raise ConfigError("proxy.listen is empty and there is no [[listener]]: nobody could connect")
        return listeners


def load(path: Path | None, overrides: tuple[str, ...] = ()) -> Config:
    """The configuration from a file and overrides of the form `section.key=value`, the later ones winning.

    Raises ConfigError with a sentence that names the file or key.
    """
    tree = _read(path) if path is not None else {}
    _convert(tree, str(path), strict=True)
    for override in overrides:
        _set(tree, override)
    return _convert(tree, "--set", strict=False)


def address(text: str) -> Address:
    """Split HOST:PORT. Raises ConfigError where the port is out of range."""
    host, _, port = text.rpartition(":")
    if int(port) > PORT_MAX:
        raise ConfigError(f"{text}: the port is {port}, expected 0 to {PORT_MAX}")
    return Address(host.strip("[]"), int(port))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from error


def _set(tree: dict[str, Any], override: str) -> None:
    name, equals, value = override.partition("=")
    section, dot, key = name.partition(".")
    if not (equals and dot and section and key):
        raise ConfigError(f"--set {override}: expected section.key=value, such as rewrite.enabled=false")
    tree.setdefault(section, {})[key] = _list(override, value) if value.startswith("[") else value


def _list(override: str, value: str) -> list[Any]:
    try:
        items: list[Any] = tomllib.loads(f"items = {value}")["items"]
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"--set {override}: is not a list as TOML has it: {error}") from error
    return items


def _convert(tree: dict[str, Any], origin: str, *, strict: bool) -> Config:
    try:
        config = msgspec.convert(tree, Config, strict=strict)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{origin}: {_sentence(str(error))}") from error
    for text in (config.proxy.backend, config.admin.listen):
        address(text)
    config.sources()
    config.listeners()
    config.backend.to_upstream()
    return config


def _expect_both(where: str, certificate: str, key: str) -> None:
    if bool(certificate) != bool(key):
        raise ConfigError(f"{where}: tls_certificate and tls_key go together, one of them is missing")


def _path(text: str) -> Path | None:
    return Path(text) if text else None


def _sentence(message: str) -> str:
    """Msgspec's message with its path (`$.rewrite.enabled`) in front, as the user wrote it."""
    said, _, where = message.partition(" - at `$")
    return f"{where.strip('.`')}: {said}" if where.strip(".`") else said
