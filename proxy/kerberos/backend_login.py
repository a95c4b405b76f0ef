"""The proxy's own login at a backend: SASL GSSAPI (RFC 4752) as the client sees it. Steps may wait for a KDC."""

from __future__ import annotations

from enum import Enum
from typing import Final

from proxy.kerberos.context import Context
from proxy.kerberos.errors import KerberosError, PeerRefusedError
from proxy.kerberos.protection import Protection, decode_offer, encode_selection
from proxy.kerberos.security_layer import SecurityLayer
from proxy.wire.sasl import SaslMessage, SaslStatus, encode_sasl

GSSAPI: Final = b"GSSAPI"

# A reply of a backend is one token, and is unwrapped as a whole. Thrift's Java clients end at 100 MiB by default;
# with more than this, a broken or false length would take the proxy's memory.
REPLY_BYTES_MAX: Final = 512 * 1024 * 1024


class _State(Enum):
    CONTEXT = "a token of the context"
    OFFER = "the offered protections"
    ACCEPTED = "the backend's last word"
    OVER = "nothing"


class BackendLogin:
    """A login at one backend."""

    def __init__(self, context: Context, protection: Protection) -> None:
        self._context = context
        self._protection = protection
        self._state = _State.CONTEXT
        # Set once the backend has accepted the login; None where frames come as they are.
        self.layer: SecurityLayer | None = None

    @property
    def is_over(self) -> bool:
        """True if the backend has accepted the login."""
        return self._state is _State.OVER

    def start(self) -> bytes:
        """Return the first messages to send. Raises KerberosError."""
        return encode_sasl(SaslStatus.START, GSSAPI) + encode_sasl(SaslStatus.OK, self._context.step(b""))

    def answer(self, message: SaslMessage) -> bytes:
        """Take the backend's message and return the next bytes to send, if any. Raises KerberosError."""
        if message.status in (SaslStatus.BAD, SaslStatus.ERROR):
            raise PeerRefusedError(message.body.decode("utf-8", "replace")[:1000] or "no reason given")
        if (message.status is SaslStatus.COMPLETE) != (self._state is _State.ACCEPTED):
            # Such a message, taken for the end too early, would leave the backend unproven and frames unprotected.
            raise KerberosError(f"it sent {message.status.name} where {self._state.value} was to come")
        if self._state is _State.CONTEXT:
            return self._take_token(message.body)
        if self._state is _State.OFFER:
            return self._select(message.body)
        self._state = _State.OVER
        return b""

    def _take_token(self, token: bytes) -> bytes:
        answer = self._context.step(token) if not self._context.is_complete else b""
        if self._context.is_complete:
            if not self._context.knows_peer:
                raise KerberosError("it has not proven who it is")
            self._state = _State.OFFER
        return encode_sasl(SaslStatus.OK, answer)

    def _select(self, token: bytes) -> bytes:
        offer = decode_offer(self._context.unwrap(token).data)
        if self._protection not in offer.protections:
            names = ", ".join(each.value for each in Protection if each in offer.protections) or "nothing"
            raise KerberosError(
                f"it offers {names} (hive.server2.thrift.sasl.qop), and kerberos.backend_qop is "
                f"{self._protection.value}"
            )
        if self._protection is not Protection.AUTH:
            if not self._context.can_check_integrity:
                raise KerberosError("the login can protect no frames, and kerberos.backend_qop asks for that")
            self.layer = SecurityLayer(
                self._context,
                encrypts=self._protection.encrypts,
                peer_token_bytes_max=offer.token_bytes_max,
                data_bytes_max=REPLY_BYTES_MAX,
            )
        self._state = _State.ACCEPTED
        return encode_sasl(
            SaslStatus.COMPLETE, self._context.wrap(encode_selection(self._protection), encrypts=False)
        )
