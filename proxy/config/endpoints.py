"""The endpoints of the proxy: transport, TLS and address of its listeners, transport and TLS of its backends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Final

from proxy.config.address import Address
from proxy.config.kerberos import BackendKerberos
from proxy.kerberos.protection import Protection

# The server's own (hive.server2.thrift.http.path).
HTTP_PATH: Final = "/cliservice"


class Transport(Enum):
    """The carrier of HiveServer2's Thrift messages."""

    SASL = "sasl"  # A negotiation, then frames: the server's authentication NONE, LDAP, PAM, CUSTOM, KERBEROS.
    NOSASL = "nosasl"  # The messages one behind the other: the server's authentication NOSASL.
    HTTP = "http"


@dataclass(frozen=True)
class ListenerTls:
    """The certificate of a listener, and the authorities of its clients' certificates, in PEM files."""

    certificate: Path
    key: Path
    # Clients have to show a certificate that this authority has signed. None: they are asked for none.
    client_ca: Path | None = None


@dataclass(frozen=True)
class UpstreamTls:
    """The authorities and the name of the backend's certificate, and our own certificate, in PEM files."""

    # None: the authorities that the system trusts.
    ca: Path | None = None
    # The name that the backend's certificate has to be for, where that is not the host that is dialled.
    server_name: str | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class Listener:
    """The address where clients connect, and their transport there. Port 0 takes a free one."""

    address: Address
    transport: Transport = Transport.SASL
    tls: ListenerTls | None = None
    # Of HTTP.
    path: str = HTTP_PATH
    # The principal that its clients log in to, where that is not the one of [kerberos].
    kerberos_principal: str = ""

    @property
    def spoken(self) -> str:
        """The transport of its clients, for the log."""
        if self.tls is None:
            return self.transport.value
        return f"{self.transport.value} over TLS{', with client certificates' if self.tls.client_ca else ''}"


@dataclass(frozen=True)
class UpstreamSection:
    """The transport and TLS of the backends, whatever their addresses. A change counts after a restart."""

    transport: Transport = Transport.SASL
    tls: UpstreamTls | None = None
    # Of HTTP.
    path: str = HTTP_PATH
    # None: the backends ask for no Kerberos.
    kerberos: BackendKerberos | None = None

    @property
    def acts_for_clients(self) -> bool:
        """True if the proxy logs in as itself, so that each session has to say for whom it is."""
        return self.kerberos is not None and not self.kerberos.delegates

    @property
    def wraps_replies(self) -> bool:
        """True if frames come wrapped, so that nobody can read a part of one."""
        is_protected = self.kerberos is not None and self.kerberos.protection is not Protection.AUTH
        return is_protected and self.transport is Transport.SASL

    def for_own_logins(self) -> UpstreamSection:
        """The same for connections of no client: the proxy logs in as itself."""
        kerberos = None if self.kerberos is None else replace(self.kerberos, delegates=False)
        return replace(self, kerberos=kerberos)


# The protocol of a server as it is installed.
UPSTREAM: Final = UpstreamSection()
