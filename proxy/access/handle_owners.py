"""Owners of session and operation handles, so that no user can use another user's.

On Spark Thrift Server a handle works from any connection, whoever logged in there. Here a handle belongs to the
user who was logged in when the server gave it out. The proxy keeps neither handles nor user names, but digests of
them with a key that no other process has.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from typing import Final, NewType, Protocol

from proxy.wire.hs2.handles import HandleId

# Long enough that two handles never have the same digest.
DIGEST_BYTES: Final = 16
# Digests of words. If two words have one digest, a write counts for a table that it does not name; nothing worse.
WORD_BYTES: Final = 8
_KEY_BYTES: Final = 32

# Sessions and operations kept, each about 500 bytes. Spark Thrift Server runs 500 connections, most with one
# session and some dozens of operations that no client has closed.
SESSIONS_MAX: Final = 10_000
OPERATIONS_MAX: Final = 100_000

UserDigest = NewType("UserDigest", bytes)
Digest = NewType("Digest", bytes)


class HandleKind(Enum):
    """The kind of thing that a handle names."""

    SESSION = b"s"
    OPERATION = b"o"


@dataclass(frozen=True)
class HandleOwner:
    """The user to whom a handle was given, and the backend that gave it."""

    owner: UserDigest = field(repr=False)
    backend: str


class Digests:
    """Keyed digests of secrets: equal secrets have equal digests in all processes that have the key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def new(cls) -> Digests:
        """Return digests with a new random key."""
        return cls(secrets.token_bytes(_KEY_BYTES))

    def handle_digest(self, identifier: bytes) -> Digest:
        """Return the digest by which a handle is kept."""
        return Digest(blake2b(identifier, key=self._key, digest_size=DIGEST_BYTES, person=b"handle").digest())

    def user_digest(self, user: bytes) -> UserDigest:
        """Return the digest of a user name, upper and lower case distinct; empty for a login without a name."""
        return UserDigest(blake2b(user, key=self._key, digest_size=DIGEST_BYTES, person=b"owner").digest())

    def word_digest(self, word: str) -> bytes:
        """Return the digest of a word of a statement."""
        encoded = word.encode(errors="surrogatepass")
        return blake2b(encoded, key=self._key, digest_size=WORD_BYTES, person=b"word").digest()

    def mask(self, identifier: bytes, length: int) -> bytes:
        """Return bytes that cannot be computed without the key and the identifier."""
        return blake2b(identifier, key=self._key, digest_size=length, person=b"mask").digest()


class HandleOwners(Protocol):
    """The owners of the handles that backends gave out, up to a bound for each kind.

    At the bound the oldest closed handle is forgotten, or the oldest one if none is closed. A forgotten handle
    counts as one that was never seen.
    """

    @property
    def digests(self) -> Digests:
        """The digests by which handles and owners are kept and compared."""
        ...

    def handle_opened(self, kind: HandleKind, identifier: HandleId, handle_owner: HandleOwner) -> None:
        """Add a handle that a backend has given out."""
        ...

    def find_owner(self, identifier: HandleId) -> HandleOwner | None:
        """Return a handle's owner; None if the handle was never seen or is forgotten."""
        ...

    def handles_closed(self, identifiers: Iterable[HandleId]) -> None:
        """Mark handles as closed. They keep their owners until room is needed: the server may close them late."""
        ...

    def is_closed(self, identifier: HandleId) -> bool:
        """True if the handle is known to be closed."""
        ...

    def used_elsewhere(self, identifier: HandleId) -> bool:
        """Note a statement of a session that this process did not open. Returns whether another process did."""
        ...

    def is_local(self, identifier: HandleId) -> bool:
        """True if this process opened the session, and all its statements have come to this process so far."""
        ...


class LocalHandleOwners:
    """The owners of one process's handles."""

    def __init__(
        self,
        digests: Digests | None = None,
        *,
        sessions_max: int = SESSIONS_MAX,
        operations_max: int = OPERATIONS_MAX,
    ) -> None:
        self.digests = digests or Digests.new()
        self._maxima = {HandleKind.SESSION: sessions_max, HandleKind.OPERATION: operations_max}
        # The first is in the order in which handles were opened, the second in that in which they were closed.
        self._open: dict[HandleKind, dict[Digest, HandleOwner]] = {kind: {} for kind in HandleKind}
        self._closed: dict[HandleKind, dict[Digest, HandleOwner]] = {kind: {} for kind in HandleKind}

    @property
    def count(self) -> int:
        """The number of handles known."""
        return sum(len(found) for tables in (self._open, self._closed) for found in tables.values())

    def handle_opened(self, kind: HandleKind, identifier: HandleId, handle_owner: HandleOwner) -> None:
        """See HandleOwners."""
        opened, closed = self._open[kind], self._closed[kind]
        if len(opened) + len(closed) >= self._maxima[kind]:
            oldest = closed or opened
            del oldest[next(iter(oldest))]
        opened[self.digests.handle_digest(identifier)] = handle_owner

    def find_owner(self, identifier: HandleId) -> HandleOwner | None:
        """See HandleOwners."""
        digest = self.digests.handle_digest(identifier)
        for tables in (self._open, self._closed):
            for found in tables.values():
                if digest in found:
                    return found[digest]
        return None

    def handles_closed(self, identifiers: Iterable[HandleId]) -> None:
        """See HandleOwners."""
        for digest in map(self.digests.handle_digest, identifiers):
            for kind, opened in self._open.items():
                handle_owner = opened.pop(digest, None)
                if handle_owner is not None:
                    self._closed[kind][digest] = handle_owner

    def is_closed(self, identifier: HandleId) -> bool:
        """See HandleOwners."""
        digest = self.digests.handle_digest(identifier)
        return any(digest in found for found in self._closed.values())

    def used_elsewhere(self, identifier: HandleId) -> bool:  # noqa: ARG002 - there is no other process
        """See HandleOwners."""
        return False

    def is_local(self, identifier: HandleId) -> bool:  # noqa: ARG002 - there is no other process
        """See HandleOwners."""
        return True
