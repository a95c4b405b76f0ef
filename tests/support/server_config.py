"""The configuration of a proxy that a test starts, from a few of its keys."""

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from proxy.config.config import Config
from proxy.config.endpoints import UPSTREAM, Listener, UpstreamSection
from proxy.config.kerberos import KerberosSection
from proxy.config.serving import BackendSection, ListenerSection

# Sections that tests set keys of; a key goes to the first that has it.
_SECTIONS = ("proxy", "http", "rewrite", "shadow")


def server_config(
    listeners: tuple[Listener, ...],
    backend: str = "127.0.0.1:1",
    upstream: UpstreamSection = UPSTREAM,
    **keys: Any,
) -> Config:
    """Where clients connect, where the backend is and how it is spoken to; the defaults but for these keys."""
    config = Config(
        listener=tuple(map(_listener, listeners)),
        backend=_backend(upstream),
        proxy_users=keys.pop("proxy_users", {}),
        kerberos=keys.pop("kerberos", KerberosSection()),
    )
    for key, value in {"listen": "", "backend": backend, **keys}.items():
        name = next(name for name in _SECTIONS if hasattr(getattr(config, name), key))
        config = replace(config, **{name: replace(getattr(config, name), **{key: value})})
    return config


def _listener(listener: Listener) -> ListenerSection:
    section = ListenerSection(
        listen=str(listener.address), transport=listener.transport.value, http_path=listener.path
    )
    if (tls := listener.tls) is None:
        return section
    files = {"tls_certificate": tls.certificate, "tls_key": tls.key, "tls_client_ca": tls.client_ca}
    return replace(section, **_texts(files))


def _backend(upstream: UpstreamSection) -> BackendSection:
    section = BackendSection(transport=upstream.transport.value, http_path=upstream.path)
    if (tls := upstream.tls) is None:
        return section
    files = {"tls_ca": tls.ca, "tls_certificate": tls.certificate, "tls_key": tls.key}
    return replace(section, tls=True, tls_server_name=tls.server_name or "", **_texts(files))


def _texts(files: dict[str, Path | None]) -> dict[str, str]:
    return {key: str(path) for key, path in files.items() if path is not None}
