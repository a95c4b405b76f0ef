"""The configuration: one frozen object, from a TOML file and `--set section.key=value`, checked at start."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import msgspec

from proxy.config.address import address
from proxy.config.backend_list import BackendEntry, split
from proxy.config.endpoints import Listener, UpstreamSection
from proxy.config.errors import ConfigError
from proxy.config.faults import faults, sentence
from proxy.config.kerberos import KerberosSection
from proxy.config.limits import LimitingSection, LimitSection, expect_whole
from proxy.config.rewriting import CatalogSection, FilesSection, RewriteSection, ShadowSection, SplitsSection
from proxy.config.serving import (
    AdminSection,
    BackendSection,
    HealthSection,
    HistorySection,
    HttpSection,
    ListenerSection,
    LogSection,
    ProxySection,
    TracingSection,
    ZooKeeperSection,
)
from proxy.config.types import AFTER_RESTART, Section
from proxy.kerberos.client_logins import ClientLogins


class Config(Section, frozen=True):
    """All of it."""

    proxy: ProxySection = ProxySection()
    listener: Annotated[tuple[ListenerSection, ...], AFTER_RESTART] = ()
    backend: BackendSection = BackendSection()
    # Users for whom a login may act (hive.server2.proxy.user, doAs): hue = ["anna", "bob"], admin = ["*"]. `*`
    # stands for everybody on either side (proxy/access/impersonation.py).
    proxy_users: Annotated[dict[str, tuple[str, ...]], AFTER_RESTART] = {}  # noqa: RUF012 - msgspec makes a new one for each
    kerberos: KerberosSection = KerberosSection()
    http: HttpSection = HttpSection()
    admin: AdminSection = AdminSection()
    history: HistorySection = HistorySection()
    tracing: TracingSection = TracingSection()
    health: HealthSection = HealthSection()
    zookeeper: ZooKeeperSection = ZooKeeperSection()
    rewrite: RewriteSection = RewriteSection()
    shadow: ShadowSection = ShadowSection()
    catalog: CatalogSection = CatalogSection()
    files: FilesSection = FilesSection()
    splits: SplitsSection = SplitsSection()
    limits: tuple[LimitSection, ...] = ()
    limiting: LimitingSection = LimitingSection()
    log: LogSection = LogSection()

    def backend_entries(self) -> tuple[BackendEntry, ...]:
        """The addresses of the backends. Raises ConfigError."""
        try:
            entries = [split(text) for text in self.proxy.backends or (self.proxy.backend,)]
        except ValueError as error:
            raise ConfigError(f"proxy.backends: {error}") from error
        sources = tuple(BackendEntry(address(where), weight, looked_up) for where, weight, looked_up in entries)
        if len({source.address for source in sources}) < len(sources):
            raise ConfigError("proxy.backends: an address is named twice; write weight=N to give it more")
        return sources

    def listeners(self) -> tuple[Listener, ...]:
        """The addresses that clients connect to, proxy.listen first. Raises ConfigError."""
        first = (Listener(address(self.proxy.listen)),) if self.proxy.listen else ()
        listeners = (*first, *(section.to_listener() for section in self.listener))
        if not listeners:
            raise ConfigError("proxy.listen is empty and there is no [[listener]]: nobody could connect")
        return listeners

    def upstream(self) -> UpstreamSection:
        """The transport, TLS and Kerberos of the backends. Raises ConfigError."""
        return self.backend.to_upstream(self.kerberos.backend_kerberos())

    def client_logins(self, listener: Listener, host: str) -> ClientLogins | None:
        """The logins that a listener on this host takes; None where they pass on. Raises ConfigError."""
        return self.kerberos.client_logins(host, self.proxy.request_bytes_max, listener.kerberos_principal)

    def expect_one_transport(self) -> None:
        """Raise ConfigError where a listener speaks neither the transport of the backend nor HTTP.

        The backend judges each login, so clients of the binary protocol speak the backend's transport. Over HTTP
        each request brings a name and a password, which suit a backend of either protocol.
        """
        backend = self.backend.transport
        rule = f'backend.transport is "{backend}": a listener speaks what the backend speaks, or "http"'
        if self.proxy.listen and backend != "sasl":
            raise ConfigError(
                f'proxy.listen is {self.proxy.listen}, which speaks "sasl", and {rule}. '
                f'Set proxy.listen = "" and add a [[listener]] with transport = "{backend}"'
            )
        for section in self.listener:
            if section.transport not in (backend, "http"):
                raise ConfigError(
                    f'listener {section.listen}: transport is "{section.transport}" and {rule}. '
                    "Set both to the same"
                )


def load(path: Path | None, overrides: tuple[str, ...] = (), *, secrets: Path | None = None) -> Config:
    """The configuration from files and overrides of the form `section.key=value`, the later ones winning.

    `secrets` is a second file, applied before the overrides, with keys that fewer users may read than the first.
    Raises ConfigError with a sentence that names the file or key.
    """
    tree: dict[str, Any] = {}
    for file in (path, secrets):
        if file is not None:
            _add(tree, _read(file))
    for override in overrides:
        _set(tree, override)
    return _checked(_convert(tree, "--set", strict=False))


def _read(path: Path) -> dict[str, Any]:
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not TOML: {error}") from error
    _convert(tree, str(path), strict=True)
    return tree


def _add(tree: dict[str, Any], other: dict[str, Any]) -> None:
    """Put the keys of another tree, whose types were checked, over those of this one."""
    for name, section in other.items():
        tree[name] = {**tree.get(name, {}), **section} if isinstance(section, dict) else section


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
        return msgspec.convert(tree, Config, strict=strict)
    except msgspec.ValidationError as error:
        found = list(faults(tree, Config, strict=strict)) or [sentence(error, "")]
        lines = found[0] if len(found) == 1 else "".join(f"\n  {one}" for one in found)
        raise ConfigError(f"{origin}: {lines}") from error


def _checked(config: Config) -> Config:
    """The configuration, if its keys fit one another."""
    for text in (config.proxy.backend, config.admin.listen):
        address(text)
    if config.catalog.store == "hbase" and not config.catalog.store_gateway:
        raise ConfigError('catalog.store is "hbase" and catalog.store_gateway is empty, expected HOST:PORT')
    if config.catalog.store_gateway:
        address(config.catalog.store_gateway)
    if config.history.shared_path and config.history.shared_path == config.history.path:
        raise ConfigError(
            "history.shared_path is history.path; expected a path of each replica's own, on its disk"
        )
    config.backend_entries()
    config.listeners()
    config.upstream()
    for listener in config.listeners():
        config.client_logins(listener, "localhost")
    expect_whole(config.limits, config.limiting)
    config.kerberos.expect_transport(config.backend.transport, has_tls=config.backend.tls)
    return config
