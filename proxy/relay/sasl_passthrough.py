"""The opening of a connection: both sides' SASL bytes pass verbatim until the negotiation ends.

The backend decides on the credentials. It is connected once the client has named its user: a port scan costs
nothing, and the choice of the backend may depend on the user. Mechanisms other than PLAIN may encrypt what
follows: they are relayed blindly.
"""

from __future__ import annotations

from proxy.relay.commands import Close, Command, ConnectBackend, LoginRefused, SendBackend, SendClient
from proxy.relay.handshake import HandshakeStep
from proxy.wire.sasl import (
    PLAIN,
    SaslMessage,
    SaslReader,
    SaslStatus,
    encode_sasl,
    mechanism_name,
    plain_user,
    refusal,
)
from proxy.wire.thrift.errors import RemoteProtocolError


class SaslPassthrough:
    """The opening where both sides speak SASL."""

    def __init__(self, backend_name: str) -> None:
        self.turn = HandshakeStep.GREETING
        self._backend_name = backend_name
        self._client = SaslReader()
        self._server = SaslReader()
        self._start = SaslMessage(SaslStatus.START, b"")
        self._response: SaslMessage | None = None
        # The client's PLAIN response, name and password.
        self.credentials: bytes | None = None

    @property
    def login(self) -> str | None:
        """The name in the client's PLAIN response."""
        return None if self.credentials is None else plain_user(self.credentials)

    @property
    def blind_reason(self) -> str:
        """The login's mechanism, which may encrypt what follows."""
        mechanism = mechanism_name(self._start.body)
        return f"the login is by {mechanism}, not by PLAIN: it is passed on unread, and so is all that follows"

    @property
    def waiting_bytes(self) -> int:
        """Client bytes that cannot be handled before something else has happened."""
        return len(self._client.leftover())

    def client_data(self, data: bytes) -> list[Command]:
        """The client sent bytes."""
        self._client.feed(data)
        try:
            if self.turn is HandshakeStep.GREETING:
                return self._greet()
            if self.turn is HandshakeStep.CREDENTIALS:
                return self._identify()
            return self._respond()
        except RemoteProtocolError as error:
            return self._refuse(f"Starpruner speaks HiveServer2's binary protocol over SASL: {error}")

    def backend_connected(self) -> list[Command]:
        """The backend connection is open."""
        start: Command = SendBackend(encode_sasl(self._start.status, self._start.body))
        if self._response is None:
            self.turn = HandshakeStep.BLIND
            return [start]
        self.turn = HandshakeStep.SERVER
        return [start, SendBackend(encode_sasl(self._response.status, self._response.body))]

    def backend_failed(self, reason: str) -> list[Command]:
        """The backend connection could not be opened."""
        return self._refuse(f"Starpruner cannot reach the backend {self._backend_name}: {reason}")

    def backend_data(self, data: bytes) -> list[Command]:
        """The backend sent bytes. Those behind its COMPLETE stay in `backend_leftover`."""
        self._server.feed(data)
        commands: list[Command] = []
        try:
            while self.turn is not HandshakeStep.FRAMES and (message := self._server.next_message()) is not None:
                commands.append(SendClient(encode_sasl(message.status, message.body)))
                commands += self._answered(message.status)
        except RemoteProtocolError:
            self.turn = HandshakeStep.BLIND
        return commands

    def client_leftover(self) -> bytes:
        """Client bytes that came after the negotiation."""
        return self._client.leftover()

    def backend_leftover(self) -> bytes:
        """Backend bytes that came after the negotiation."""
        return self._server.leftover()

    def _greet(self) -> list[Command]:
        message = self._client.next_message()
        if message is None:
            return []
        if message.status is not SaslStatus.START:
            raise RemoteProtocolError(f"expected a SASL START message, got {message.status.name}")
        self._start = message
        if message.body == PLAIN:
            self.turn = HandshakeStep.CREDENTIALS
            return self._identify()
        self.turn = HandshakeStep.CONNECTING
        return [ConnectBackend()]

    def _identify(self) -> list[Command]:
        message = self._client.next_message()
        if message is None:
            return []
        if message.status not in (SaslStatus.OK, SaslStatus.COMPLETE):
            # The server would close the connection without a byte, as a server without free threads does.
            raise RemoteProtocolError(f"expected a SASL response, got {message.status.name}")
        self._response = message
        self.credentials = message.body
        self.turn = HandshakeStep.CONNECTING
        return [ConnectBackend()]

    def _respond(self) -> list[Command]:
        if self.turn is not HandshakeStep.CLIENT or (message := self._client.next_message()) is None:
            return []
        self.turn = HandshakeStep.SERVER
        self.credentials = message.body
        return [SendBackend(encode_sasl(message.status, message.body))]

    def _answered(self, status: SaslStatus) -> list[Command]:
        if status is SaslStatus.COMPLETE:
            self.turn = HandshakeStep.FRAMES
        elif status is SaslStatus.OK:
            self.turn = HandshakeStep.CLIENT
            return self._respond()
        elif status in (SaslStatus.BAD, SaslStatus.ERROR):
            # The server closes, and the client sees its sentence first.
            return [LoginRefused()]
        return []

    def _refuse(self, sentence: str) -> list[Command]:
        self.turn = HandshakeStep.REFUSED
        return [SendClient(refusal(sentence)), Close(sentence)]
