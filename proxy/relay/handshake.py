"""The opening of a connection as the relay sees it, whatever either side speaks."""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from proxy.relay.commands import Command


class HandshakeStep(Enum):
    """The steps of a handshake, each by the event that it waits for."""

    GREETING = "the client's START"
    CREDENTIALS = "the client's first response, which it sends without waiting"
    VERIFYING = "the check of the client's response, where the login is ours to take"
    CONNECTING = "the backend connection"
    CLIENT = "the client's response"
    SERVER = "the server's answer"
    FRAMES = "nothing: the server accepted, frames follow"
    BLIND = "nothing: the rest is not ours to read"
    REFUSED = "nothing: the client has been told why"


class Handshake(Protocol):
    """Bytes of either side in, commands out, until `turn` is one of the last three."""

    turn: HandshakeStep
    # The login of another connection in the client's name. A secret.
    credentials: bytes | None

    @property
    def login(self) -> str | None:
        """The user that the connection is logged in as; None where nobody has asked."""
        ...

    @property
    def waiting_bytes(self) -> int:
        """Client bytes that cannot be handled before something else has happened."""
        ...

    @property
    def blind_reason(self) -> str:
        """Why the rest is not ours to read, where it is not."""
        ...

    def client_data(self, data: bytes) -> list[Command]:
        """The client sent bytes."""
        ...

    def backend_connected(self) -> list[Command]:
        """The backend connection is open."""
        ...

    def backend_failed(self, reason: str) -> list[Command]:
        """The backend connection could not be opened."""
        ...

    def backend_data(self, data: bytes) -> list[Command]:
        """The backend sent bytes."""
        ...

    def client_leftover(self) -> bytes:
        """Client bytes that came after the negotiation."""
        ...

    def backend_leftover(self) -> bytes:
        """Backend bytes that came after the negotiation."""
        ...
