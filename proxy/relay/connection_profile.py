"""The framing and the login that either side of a connection has, and a refusal in its own framing."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.access.impersonation import NOBODY, Impersonation, ProxyUsers
from proxy.config.endpoints import UPSTREAM, Transport, Upstream
from proxy.relay.handshake import Handshake
from proxy.relay.sasl_passthrough import SaslPassthrough
from proxy.relay.sasl_termination import Answered, Unnegotiated
from proxy.wire.framing import Framing
from proxy.wire.hs2.calls import encode_refusal
from proxy.wire.sasl import refusal


@dataclass(frozen=True)
class ConnectionProfile:
    """What both sides of a connection speak, and whom the client may act for."""

    backend_name: str
    client: Transport = Transport.SASL
    upstream: Upstream = UPSTREAM
    proxy_users: ProxyUsers = NOBODY

    @property
    def framing(self) -> Framing:
        """Which side's messages stand in frames."""
        return Framing(self.client is not Transport.NOSASL, self.upstream.transport is not Transport.NOSASL)

    @property
    def admission(self) -> Impersonation:
        """The rules for sessions that the client opens."""
        return Impersonation(self.proxy_users, names_user=self.upstream.transport is Transport.NOSASL)

    def opening(self) -> Handshake:
        """How the connection opens."""
        if self.client is Transport.NOSASL:
            return Unnegotiated(self.backend_name, self.upstream)
        if self.upstream.transport is Transport.NOSASL:
            return Answered(self.backend_name)
        return SaslPassthrough(self.backend_name)


def refused(client: Transport, sentence: str) -> bytes:
    """What tells a client, before any reply to it, why it is not served."""
    return encode_refusal(sentence) if client is Transport.NOSASL else refusal(sentence)
