"""The opening of a connection where neither side speaks SASL: nobody is asked who they are.

The backend takes the name in the call that opens a session, as it does without us.
"""

from __future__ import annotations

from typing import Final

from proxy.relay.commands import Close, Command, ConnectBackend, SendClient
from proxy.relay.handshake import HandshakeStep
from proxy.wire.hs2.calls import encode_refusal
from proxy.wire.sasl import refusal

# The version that every message of the strict binary protocol begins with.
_FIRST_BYTE: Final = 0x80
_OTHER_BEGINNINGS: Final = {0x01: ", as SASL has it", 0x16: ", as TLS has it"}


class NosaslHandshake:
    """The opening where both sides speak NOSASL: the backend is connected when the client speaks."""

    blind_reason = ""
    login: Final = None

    def __init__(self, backend_name: str) -> None:
        self.turn = HandshakeStep.GREETING
        # Another connection needs no credentials either.
        self.credentials: bytes | None = b""
        self._backend_name = backend_name
        self._waiting = bytearray()

    @property
    def waiting_bytes(self) -> int:
        """Calls that came while the backend is being connected."""
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
        """The opening is over: the backend is sent nothing before the first call."""
        self.turn = HandshakeStep.FRAMES
        return []

    def backend_failed(self, reason: str) -> list[Command]:
        """The client hears why."""
        self.turn = HandshakeStep.REFUSED
        sentence = f"Starpruner cannot reach the backend {self._backend_name}: {reason}"
        return [SendClient(encode_refusal(sentence)), Close(sentence)]

    def backend_data(self, _data: bytes) -> list[Command]:
        """No bytes come: the opening ends as the backend is connected."""
        return []

    def client_leftover(self) -> bytes:
        """All that the client has sent."""
        return bytes(self._waiting)

    def backend_leftover(self) -> bytes:
        """None: whatever it sends, it sends after the opening."""
        return b""

    def _refuse_stranger(self) -> list[Command]:
        first = self._waiting[0]
        sentence = (
            "Starpruner speaks HiveServer2's binary protocol without SASL on this port: "
            f"expected a first byte of 0x{_FIRST_BYTE:02x}, got 0x{first:02x}{_OTHER_BEGINNINGS.get(first, '')}"
        )
        self.turn = HandshakeStep.REFUSED
        # The refusal is a SASL message, for a client that expected SASL.
        return [SendClient(refusal(sentence)), Close(sentence)]
