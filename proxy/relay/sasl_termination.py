"""Openings where a side does not speak SASL, and which opening a connection has.

A backend without SASL asks nobody who he is: what the client says in its negotiation is taken, as the server takes
it with authentication NONE. A client without SASL has no credentials: where the backend asks for some, it gets
those of the configuration.
"""

from __future__ import annotations

from typing import Final

from proxy.config.endpoints import Transport, Upstream
from proxy.relay.commands import Close, Command, ConnectBackend, SendBackend, SendClient
from proxy.relay.handshake import HandshakeStep
from proxy.wire.hs2.calls import encode_refusal
from proxy.wire.sasl import (
    PLAIN,
    SaslReader,
    SaslStatus,
    encode_sasl,
    mechanism_name,
    plain_response,
    plain_start_with,
    plain_user,
    refusal,
)
from proxy.wire.thrift.errors import RemoteProtocolError

# The version that every message of the strict binary protocol begins with.
_FIRST_BYTE: Final = 0x80
_OTHER_BEGINNINGS: Final = {0x01: ", as SASL has it", 0x16: ", as TLS has it"}


class Answered:
    """The client speaks SASL and the backend does not: we accept PLAIN, whoever it names."""

    blind_reason = ""

    def __init__(self, backend_name: str) -> None:
        self.turn = HandshakeStep.GREETING
        self.credentials: bytes | None = None
        self._backend_name = backend_name
        self._client = SaslReader()

    @property
    def login(self) -> str | None:
        """The name in the client's PLAIN response."""
        return None if self.credentials is None else plain_user(self.credentials)

    @property
    def waiting_bytes(self) -> int:
        """What came behind the login while the backend is being connected."""
        return len(self._client.leftover())

    def client_data(self, data: bytes) -> list[Command]:
        """START and the response, which says who it is, connect the backend."""
        self._client.feed(data)
        try:
            return self._greet() if self.turn is HandshakeStep.GREETING else self._identify()
        except RemoteProtocolError as error:
            return self._refuse(
                SaslStatus.BAD, f"Starpruner speaks HiveServer2's binary protocol over SASL: {error}"
            )

    def backend_connected(self) -> list[Command]:
        """There is nothing to be said to it before the first call."""
        self.turn = HandshakeStep.FRAMES
        return [SendClient(encode_sasl(SaslStatus.COMPLETE))]

    def backend_failed(self, reason: str) -> list[Command]:
        """The client hears why."""
        return self._refuse(
            SaslStatus.ERROR, f"Starpruner cannot reach the backend {self._backend_name}: {reason}"
        )

    def backend_data(self, _data: bytes) -> list[Command]:
        """It speaks before it was asked anything."""
        return self._refuse(
            SaslStatus.ERROR, f"the backend {self._backend_name} does not speak NOSASL: it was the first to speak"
        )

    def client_leftover(self) -> bytes:
        """Client bytes that came after the negotiation."""
        return self._client.leftover()

    def backend_leftover(self) -> bytes:
        """None: whatever it sends, it sends after the negotiation."""
        return b""

    def _greet(self) -> list[Command]:
        message = self._client.next_message()
        if message is None:
            return []
        if message.status is not SaslStatus.START:
            raise RemoteProtocolError(f"expected a SASL START message, got {message.status.name}")
        if message.body != PLAIN:
            raise RemoteProtocolError(f"expected the mechanism PLAIN, got {mechanism_name(message.body)}")
        self.turn = HandshakeStep.CREDENTIALS
        return self._identify()

    def _identify(self) -> list[Command]:
        if self.turn is not HandshakeStep.CREDENTIALS or (message := self._client.next_message()) is None:
            return []
        if not plain_user(message.body):
            raise RemoteProtocolError("expected a PLAIN response with a name and a password")
        self.credentials = message.body
        self.turn = HandshakeStep.CONNECTING
        return [ConnectBackend()]

    def _refuse(self, status: SaslStatus, sentence: str) -> list[Command]:
        self.turn = HandshakeStep.REFUSED
        return [SendClient(encode_sasl(status, sentence.encode())), Close(sentence)]


class Unnegotiated:
    """The client speaks no SASL. A backend that does is logged in to with the configured name and password."""

    blind_reason = ""

    def __init__(self, backend_name: str, upstream: Upstream) -> None:
        self.turn = HandshakeStep.GREETING
        self.credentials: bytes | None = b""
        self.login: str | None = None
        if upstream.transport is not Transport.NOSASL:
            self.credentials = plain_response(upstream.user, upstream.password)
            self.login = upstream.user
        self._backend_name = backend_name
        self._waiting = bytearray()
        self._server = SaslReader()

    @property
    def waiting_bytes(self) -> int:
        """Calls that came while the backend is being connected and logged in to."""
        return len(self._waiting)

    def client_data(self, data: bytes) -> list[Command]:
        """The first byte connects the backend: a port scan costs nothing."""
        self._waiting += data
        if self.turn is not HandshakeStep.GREETING or not self._waiting:
            return []
        if self._waiting[0] != _FIRST_BYTE:
            return self._refuse_stranger()
        self.turn = HandshakeStep.CONNECTING
        return [ConnectBackend()]

    def backend_connected(self) -> list[Command]:
        """Log in, where it asks for that."""
        self.turn = HandshakeStep.SERVER if self.credentials else HandshakeStep.FRAMES
        return [SendBackend(plain_start_with(self.credentials))] if self.credentials else []

    def backend_failed(self, reason: str) -> list[Command]:
        """The client hears why."""
        return self._refuse(f"Starpruner cannot reach the backend {self._backend_name}: {reason}")

    def backend_data(self, data: bytes) -> list[Command]:
        """Its answer to the login. What follows stays in `backend_leftover`."""
        self._server.feed(data)
        try:
            message = self._server.next_message()
        except RemoteProtocolError as error:
            return self._refuse(f"the backend {self._backend_name} does not speak SASL: {error}")
        if message is None:
            return []
        if message.status is not SaslStatus.COMPLETE:
            words = message.body.decode("utf-8", "replace") or "no reason given"
            return self._refuse(f"the backend {self._backend_name} refused the configured login: {words}")
        self.turn = HandshakeStep.FRAMES
        return []

    def client_leftover(self) -> bytes:
        """All that the client has sent."""
        return bytes(self._waiting)

    def backend_leftover(self) -> bytes:
        """Backend bytes that came after the negotiation."""
        return self._server.leftover()

    def _refuse_stranger(self) -> list[Command]:
        first = self._waiting[0]
        sentence = (
            "Starpruner speaks HiveServer2's binary protocol without SASL on this port: "
            f"expected a first byte of 0x{_FIRST_BYTE:02x}, got 0x{first:02x}{_OTHER_BEGINNINGS.get(first, '')}"
        )
        self.turn = HandshakeStep.REFUSED
        # Said as SASL has it, for a client that expected that.
        return [SendClient(refusal(sentence)), Close(sentence)]

    def _refuse(self, sentence: str) -> list[Command]:
        self.turn = HandshakeStep.REFUSED
        return [SendClient(encode_refusal(sentence)), Close(sentence)]
