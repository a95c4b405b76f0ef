"""Whose the sessions and operations are, so that nobody can use another user's.

On Spark Thrift Server a handle is all it takes: it works from any connection, whoever logged in there. Here it
belongs to the user who was logged in as it was given out. Neither handles nor names of users are kept, but digests
with a key that no other process has.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from typing import Final, NewType, Protocol

from proxy.wire.hs2.handles import HandleId

# Enough that two never have one digest.
DIGEST_BYTES: Final = 16
# Of words: two with one digest would make a write count for a table that it does not name, and nothing worse.
WORD_BYTES: Final = 8
_KEY_BYTES: Final = 32

# Sessions and operations that are known, each about 500 bytes. Spark Thrift Server runs 500 connections, most with
# one session and some dozens of operations that nobody has closed.
SESSIONS_MAX: Final = 10_000
OPERATIONS_MAX: Final = 100_000

Owner = NewType("Owner", bytes)
Digest = NewType("Digest", bytes)


class HandleKind(Enum):
    """What a handle is of."""

    SESSION = b"s"
    OPERATION = b"o"


@dataclass(frozen=True)
class HandleOwner:
    """A handle that was given out: to whom, and by which backend."""

    owner: Owner = field(repr=False)
    backend: str


class Digests:
    """Digests of secrets, equal for equal ones in all processes that have the key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def new(cls) -> Digests:
        """With a key of its own."""
        return cls(secrets.token_bytes(_KEY_BYTES))

    def of(self, identifier: bytes) -> Digest:
        """By what a handle is kept."""
        return Digest(blake2b(identifier, key=self._key, digest_size=DIGEST_BYTES, person=b"handle").digest())

    def owner(self, user: bytes) -> Owner:
        """The owner that a user name stands for, letter by letter; without one, whoever logs in without a name."""
        return Owner(blake2b(user, key=self._key, digest_size=DIGEST_BYTES, person=b"owner").digest())

    def word(self, word: str) -> bytes:
        """A word of a statement."""
        encoded = word.encode(errors="surrogatepass")
        return blake2b(encoded, key=self._key, digest_size=WORD_BYTES, person=b"word").digest()

    def mask(self, identifier: bytes, length: int) -> bytes:
        """Bytes that nobody knows without the key and the identifier."""
        return blake2b(identifier, key=self._key, digest_size=length, person=b"mask").digest()


class HandleOwners(Protocol):
    """The handles that were given out, as far back as the bounds reach.

    Past a bound the oldest one that is closed is forgotten, and where none is, the oldest one. A handle that is
    forgotten is like one that was never seen.
    """

    @property
    def digests(self) -> Digests:
        """How handles and owners are told apart."""
        ...

    def opened(self, kind: HandleKind, identifier: HandleId, handle_owner: HandleOwner) -> None:
        """The backend has given out a handle."""
        ...

    def find(self, identifier: HandleId) -> HandleOwner | None:
        """Whose it is; None where that was never seen, or is forgotten."""
        ...

    def closed(self, identifiers: Iterable[HandleId]) -> None:
        """These have ended. Until room is needed they stay somebody's: the server may be slow to end them."""
        ...

    def is_closed(self, identifier: HandleId) -> bool:
        """Whether the handle is known to have ended."""
        ...

    def used_elsewhere(self, identifier: HandleId) -> bool:
        """A statement of this session has come to a process that did not open it. Whether another one did."""
        ...

    def is_local(self, identifier: HandleId) -> bool:
        """Whether this process has opened the session, and all of its statements came here so far."""
        ...


class LocalHandleOwners:
    """The handles of one process."""

    def __init__(
        self,
        digests: Digests | None = None,
        *,
        sessions_max: int = SESSIONS_MAX,
        operations_max: int = OPERATIONS_MAX,
    ) -> None:
        self.digests = digests or Digests.new()
        self._maxima = {HandleKind.SESSION: sessions_max, HandleKind.OPERATION: operations_max}
        # Each in the order in which they were opened, and closed.
        self._open: dict[HandleKind, dict[Digest, HandleOwner]] = {kind: {} for kind in HandleKind}
        self._closed: dict[HandleKind, dict[Digest, HandleOwner]] = {kind: {} for kind in HandleKind}

    @property
    def count(self) -> int:
        """How many are known."""
        return sum(len(found) for tables in (self._open, self._closed) for found in tables.values())

    def opened(self, kind: HandleKind, identifier: HandleId, handle_owner: HandleOwner) -> None:
        """See HandleOwners."""
        opened, closed = self._open[kind], self._closed[kind]
        if len(opened) + len(closed) >= self._maxima[kind]:
            oldest = closed or opened
            del oldest[next(iter(oldest))]
        opened[self.digests.of(identifier)] = handle_owner

    def find(self, identifier: HandleId) -> HandleOwner | None:
        """See HandleOwners."""
        digest = self.digests.of(identifier)
        for tables in (self._open, self._closed):
            for found in tables.values():
                if digest in found:
                    return found[digest]
        return None

    def closed(self, identifiers: Iterable[HandleId]) -> None:
        """See HandleOwners."""
        for digest in map(self.digests.of, identifiers):
            for kind, opened in self._open.items():
                handle_owner = opened.pop(digest, None)
                if handle_owner is not None:
                    self._closed[kind][digest] = handle_owner

    def is_closed(self, identifier: HandleId) -> bool:
        """See HandleOwners."""
        digest = self.digests.of(identifier)
        return any(digest in found for found in self._closed.values())

    def used_elsewhere(self, identifier: HandleId) -> bool:  # noqa: ARG002 - there is nobody else
        """See HandleOwners."""
        return False

    def is_local(self, identifier: HandleId) -> bool:  # noqa: ARG002 - there is nowhere else
        """See HandleOwners."""
        return True
