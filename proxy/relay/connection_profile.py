"""The transport of a connection, which both of its sides speak: its framing, its opening, and a refusal in it."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.access.impersonation import NOBODY, Impersonation, ProxyUsers
from proxy.config.endpoints import Transport
from proxy.kerberos.client_logins import ClientLogins
from proxy.relay.handshake import Handshake
from proxy.relay.nosasl_handshake import NosaslHandshake
from proxy.relay.sasl_passthrough import SaslPassthrough
from proxy.relay.sasl_termination import SaslTermination
from proxy.wire.framing import FRAMED, UNFRAMED, Framing
from proxy.wire.hs2.calls import encode_refusal
from proxy.wire.sasl import refusal


@dataclass(frozen=True)
class ConnectionProfile:
    """The protocol of both sides of a connection, and the users that the client may act for."""

    backend_name: str
    transport: Transport = Transport.SASL
    proxy_users: ProxyUsers = NOBODY
    # The logins that the proxy takes itself. None: they pass to the backend, which decides.
    logins: ClientLogins | None = None
    # True if the proxy logs in to the backend as itself, so that each session has to say for whom it is.
    acts_for_clients: bool = False

    @property
    def framing(self) -> Framing:
        """The framing of the messages on both sides."""
        return UNFRAMED if self.transport is Transport.NOSASL else FRAMED

    @property
    def admission(self) -> Impersonation:
        """The rules for sessions that the client opens."""
        return Impersonation(self.proxy_users, acts_for_login=self.acts_for_clients)

    def opening(self) -> Handshake:
        """The handshake of the connection."""
        if self.logins is not None:
            return SaslTermination(self.backend_name, self.logins.login_by)
        is_without = self.transport is Transport.NOSASL
        return (NosaslHandshake if is_without else SaslPassthrough)(self.backend_name)


def refused(transport: Transport, sentence: str) -> bytes:
    """The bytes that refuse a client before any reply to it."""
    return encode_refusal(sentence) if transport is Transport.NOSASL else refusal(sentence)
