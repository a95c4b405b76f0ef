"""The interface of a GSSAPI context, as logins and wrapped frames use it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class Unwrapped(NamedTuple):
    """The content of a token."""

    data: bytes
    was_encrypted: bool


class Context(Protocol):
    """One side of a login. Every method raises KerberosError; `step` may wait for a KDC."""

    @property
    def is_complete(self) -> bool:
        """True if both sides know each other."""
        ...

    @property
    def initiator(self) -> str:
        """The principal that logged in. For a complete context of a server."""
        ...

    @property
    def delegated(self) -> Any | None:
        """Credentials by which we can act as the one who logged in. For a complete context of a server."""
        ...

    @property
    def can_check_integrity(self) -> bool:
        """True if tokens are protected against changes, and against another order."""
        ...

    @property
    def can_encrypt(self) -> bool:
        """True if tokens can be encrypted."""
        ...

    @property
    def knows_peer(self) -> bool:
        """True if the other side has proven who it is. For a complete context of a client."""
        ...

    def step(self, token: bytes) -> bytes:
        """Take the other side's token and return ours, empty if there is none."""
        ...

    def wrap(self, data: bytes, *, encrypts: bool) -> bytes:
        """Return data as a token."""
        ...

    def unwrap(self, token: bytes) -> Unwrapped:
        """Return the data of a token; one that came before, or out of its turn, raises KerberosError."""
        ...

    def data_bytes_max(self, token_bytes_max: int, *, encrypts: bool) -> int:
        """Return how much data makes a token of that length."""
        ...
