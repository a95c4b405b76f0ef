"""How either side is spoken to: the transport, its TLS, and where clients of each one connect."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from proxy.config.address import Address

# The server's own (hive.server2.thrift.http.path).
HTTP_PATH: Final = "/cliservice"


class Transport(Enum):
    """What carries HiveServer2's Thrift messages."""

    SASL = "sasl"  # A negotiation, then frames: the server's authentication NONE, LDAP, PAM, CUSTOM, KERBEROS.
    NOSASL = "nosasl"  # The messages one behind the other: the server's authentication NOSASL.
    HTTP = "http"


@dataclass(frozen=True)
class ListenerTls:
    """What a listener shows to clients, and whose certificates it asks them for, in PEM files."""

    certificate: Path
    key: Path
    # Clients have to show a certificate that this authority has signed. None: they are asked for none.
    client_ca: Path | None = None


@dataclass(frozen=True)
class UpstreamTls:
    """How the backend is known to be itself, and what we show it, in PEM files."""

    # None: the authorities that the system trusts.
    ca: Path | None = None
    # The name that the backend's certificate has to be for, where that is not the host that is dialled.
    server_name: str | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class Listener:
    """Where clients connect, and what they speak there. Port 0 takes a free one."""

    address: Address
    transport: Transport = Transport.SASL
    tls: ListenerTls | None = None
    # Of HTTP.
    path: str = HTTP_PATH

    @property
    def spoken(self) -> str:
        """What clients speak there, for the log."""
        if self.tls is None:
            return self.transport.value
        return f"{self.transport.value} over TLS{', with client certificates' if self.tls.client_ca else ''}"


@dataclass(frozen=True)
class Upstream:
    """How the backend is spoken to, whatever its address. A change of any of it counts after a restart."""

    transport: Transport = Transport.SASL
    tls: UpstreamTls | None = None
    # Of HTTP.
    path: str = HTTP_PATH


# What the server speaks as it is installed.
UPSTREAM: Final = Upstream()
