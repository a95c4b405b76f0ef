"""The opening of a connection whose login the proxy takes itself, in the place of the backend.

The proxy connects and logs in to the backend once the client has proven who it is, and before the client is told
so. So the negotiation can still tell the client that no backend can be reached.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from proxy.kerberos.client_login import Accepted, ClientLogin, LoginStep
from proxy.kerberos.errors import KerberosError, sentence_for_client
from proxy.kerberos.security_layer import SecurityLayer
from proxy.relay.commands import Close, Command, ConnectBackend, ProtectClient, SendClient, StepLogin
from proxy.relay.handshake import HandshakeStep
from proxy.wire.sasl import SaslMessage, SaslReader, SaslStatus, encode_sasl, plain_user, refusal
from proxy.wire.thrift.errors import RemoteProtocolError


class SaslTermination:
    """The opening with a client that logs in to the proxy."""

    def __init__(self, backend_name: str, login_by: Callable[[bytes], ClientLogin]) -> None:
        """`login_by` begins a login by a mechanism of SASL, or raises KerberosError."""
        self.turn = HandshakeStep.GREETING
        self._backend_name = backend_name
        self._login_by = login_by
        self._client = SaslReader()
        self._login: ClientLogin | None = None
        self._layer: SecurityLayer | None = None
        self._leftover = b""
        # The login of another connection in the client's name. A secret.
        self.credentials: bytes | None = None

    @property
    def login(self) -> str | None:
        """The short name of the client."""
        return None if self.credentials is None else plain_user(self.credentials)

    @property
    def blind_reason(self) -> str:
        """Nothing passes unread here."""
        return ""

    @property
    def waiting_bytes(self) -> int:
        """Client bytes that cannot be handled before something else has happened."""
        return len(self._client.leftover())

    def client_data(self, data: bytes) -> list[Command]:
        """The client sent bytes."""
        self._client.feed(data)
        return self._go_on()

    def login_stepped(self, result: LoginStep | KerberosError) -> list[Command]:
        """The step that StepLogin asked for has ended."""
        if isinstance(result, KerberosError):
            return self._refuse(f"Starpruner: {sentence_for_client(result)}")
        if isinstance(result, Accepted):
            self.credentials, self._layer = result.credentials, result.layer
            self.turn = HandshakeStep.CONNECTING
            return [ConnectBackend()]
        self.turn = HandshakeStep.CLIENT
        return [SendClient(encode_sasl(SaslStatus.OK, result.token)), *self._go_on()]

    def backend_connected(self) -> list[Command]:
        """The backend connection is open, and logged in to."""
        self._leftover = self._client.leftover()
        protects: list[Command] = []
        if self._layer is not None:
            protects.append(ProtectClient(self._layer))
            try:
                self._leftover = self._layer.unwrapped(self._leftover)
            except RemoteProtocolError as error:
                return self._refuse(f"Starpruner: {error}")
        self.turn = HandshakeStep.FRAMES
        return [SendClient(encode_sasl(SaslStatus.COMPLETE)), *protects]

    def backend_failed(self, reason: str) -> list[Command]:
        """The backend connection could not be opened, or logged in to."""
        return self._refuse(f"Starpruner cannot use the backend {self._backend_name}: {reason}")

    def backend_data(self, _data: bytes) -> list[Command]:
        """None comes: the shell logs in to the backend."""
        return []

    def client_leftover(self) -> bytes:
        """Client bytes that came after the negotiation, as plain frames."""
        return self._leftover

    def backend_leftover(self) -> bytes:
        """None: whatever it sends, it sends after the opening."""
        return b""

    def _go_on(self) -> list[Command]:
        try:
            while self.turn in (HandshakeStep.GREETING, HandshakeStep.CREDENTIALS, HandshakeStep.CLIENT):
                message = self._client.next_message()
                if message is None:
                    return []
                commands = self._take(message)
                if commands:
                    return commands
        except (RemoteProtocolError, KerberosError) as error:
            return self._refuse(f"Starpruner: {error}")
        return []

    def _take(self, message: SaslMessage) -> list[Command]:
        if self._login is None:
            if message.status is not SaslStatus.START:
                raise RemoteProtocolError(f"expected a SASL START message, got {message.status.name}")
            self._login = self._login_by(message.body)
            self.turn = HandshakeStep.CREDENTIALS
            return []
        if message.status not in (SaslStatus.OK, SaslStatus.COMPLETE):
            raise RemoteProtocolError(f"expected a SASL response, got {message.status.name}")
        self.turn = HandshakeStep.VERIFYING
        return [StepLogin(partial(self._login.step, message.body), self._login.checks_password)]

    def _refuse(self, sentence: str) -> list[Command]:
        self.turn = HandshakeStep.REFUSED
        return [SendClient(refusal(sentence)), Close(sentence)]
