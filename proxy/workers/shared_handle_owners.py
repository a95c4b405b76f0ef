"""Whose the handles are, for all workers: see proxy.access.handle_owners."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import lmdb

from proxy.access.handle_owners import (
    DIGEST_BYTES,
    OPERATIONS_MAX,
    SESSIONS_MAX,
    Digest,
    Digests,
    HandleKind,
    HandleOwner,
    Owner,
)
from proxy.wire.hs2.handles import HandleId
from proxy.workers.ledger import Ledger

log = logging.getLogger(__name__)

# What a place in the order begins with: those that are forgotten first stand first.
_CLOSED: Final = b"0"
_OPEN: Final = b"1"
# A place: one of these, the transaction, and which of its handles.
_NUMBER_BYTES: Final = 8
_INDEX_BYTES: Final = 4
_PLACE_BYTES: Final = 1 + _NUMBER_BYTES + _INDEX_BYTES


@dataclass(frozen=True)
class _Record:
    """A handle as it is written: kind, whether it roams, the worker, its place, its owner and its backend."""

    kind: HandleKind
    roams: bool
    slot: int
    place: bytes
    handle_owner: HandleOwner

    def encoded(self) -> bytes:
        head = self.kind.value + bytes((self.roams, self.slot)) + self.place
        return head + self.handle_owner.owner + self.handle_owner.backend.encode()

    @classmethod
    def decoded(cls, encoded: bytes) -> _Record:
        owner_at = 3 + _PLACE_BYTES
        backend_at = owner_at + DIGEST_BYTES
        handle_owner = HandleOwner(Owner(encoded[owner_at:backend_at]), encoded[backend_at:].decode())
        place = encoded[3:owner_at]
        return cls(HandleKind(encoded[:1]), encoded[1] != 0, encoded[2], place, handle_owner)


class SharedHandleOwners:
    """Handles in a ledger. Its calls take microseconds, so they are made on the event loop."""

    def __init__(
        self,
        ledger: Ledger,
        digests: Digests,
        *,
        sessions_max: int = SESSIONS_MAX,
        operations_max: int = OPERATIONS_MAX,
    ) -> None:
        self.digests = digests
        self._ledger = ledger
        self._environment = ledger.environment
        self._maxima = {HandleKind.SESSION: sessions_max, HandleKind.OPERATION: operations_max}
        self._records = self._environment.open_db(b"handles")
        self._orders = {kind: self._environment.open_db(b"order." + kind.value) for kind in HandleKind}

    @property
    def count(self) -> int:
        """How many are known."""
        with self._environment.begin() as transaction:
            return int(transaction.stat(self._records)["entries"])

    def opened(self, kind: HandleKind, identifier: HandleId, handle_owner: HandleOwner) -> None:
        """See HandleOwners. One that cannot be kept is like one that was never seen."""
        digest, order = self.digests.of(identifier), self._orders[kind]
        try:
            with self._environment.begin(write=True) as transaction:
                if transaction.stat(order)["entries"] >= self._maxima[kind]:
                    self._forget_first(transaction, order)
                place = _place(_OPEN, transaction)
                record = _Record(kind, False, self._ledger.slot, place, handle_owner)  # noqa: FBT003 - it stays so far
                transaction.put(digest, record.encoded(), db=self._records)
                transaction.put(place, digest, db=order)
        except lmdb.Error as error:
            log.warning("a handle is not kept: %s", error)

    def find(self, identifier: HandleId) -> HandleOwner | None:
        """See HandleOwners."""
        record = self._find(identifier)
        return None if record is None else record.handle_owner

    def closed(self, identifiers: Iterable[HandleId]) -> None:
        """See HandleOwners."""
        digests = [self.digests.of(identifier) for identifier in identifiers]
        if not digests:
            return
        try:
            with self._environment.begin(write=True) as transaction:
                for index, digest in enumerate(digests):
                    self._close(transaction, digest, index)
        except lmdb.Error as error:
            log.warning("handles count as open for longer than they are: %s", error)

    def is_closed(self, identifier: HandleId) -> bool:
        """See HandleOwners."""
        record = self._find(identifier)
        return record is not None and record.place.startswith(_CLOSED)

    def used_elsewhere(self, identifier: HandleId) -> bool:
        """See HandleOwners."""
        record = self._find(identifier)
        if record is None or record.slot == self._ledger.slot:
            return False
        try:
            with self._environment.begin(write=True) as transaction:
                encoded = transaction.get(self.digests.of(identifier), db=self._records)
                if encoded is not None:
                    roaming = bytearray(encoded)
                    roaming[1] = 1
                    transaction.put(self.digests.of(identifier), bytes(roaming), db=self._records)
        except lmdb.Error as error:
            self._ledger.fail(error)
        return True

    def is_local(self, identifier: HandleId) -> bool:
        """See HandleOwners. Of one that is forgotten nobody could tell."""
        record = self._find(identifier)
        if record is None or record.roams or record.slot != self._ledger.slot:
            return False
        # Only now: a process that could not say that it roams has failed the ledger before it went on.
        return not self._ledger.has_failed

    def _find(self, identifier: HandleId) -> _Record | None:
        try:
            with self._environment.begin() as transaction:
                encoded = transaction.get(self.digests.of(identifier), db=self._records)
        except lmdb.Error as error:
            log.warning("a handle cannot be looked up: %s", error)
            return None
        return None if encoded is None else _Record.decoded(encoded)

    def _close(self, transaction: lmdb.Transaction[bytes], digest: Digest, index: int) -> None:
        encoded = transaction.get(digest, db=self._records)
        if encoded is None:
            return
        record = _Record.decoded(encoded)
        if record.place.startswith(_OPEN):
            order, place = self._orders[record.kind], _place(_CLOSED, transaction, index)
            transaction.delete(record.place, db=order)
            transaction.put(place, digest, db=order)
            closed = _Record(record.kind, record.roams, record.slot, place, record.handle_owner)
            transaction.put(digest, closed.encoded(), db=self._records)

    def _forget_first(self, transaction: lmdb.Transaction[bytes], order: lmdb._Database) -> None:
        with transaction.cursor(order) as cursor:
            if cursor.first():
                transaction.delete(cursor.value(), db=self._records)
                cursor.delete()


def _place(state: bytes, transaction: lmdb.Transaction[bytes], index: int = 0) -> bytes:
    """Behind all others of that state: transactions count upwards."""
    return state + transaction.id().to_bytes(_NUMBER_BYTES) + index.to_bytes(_INDEX_BYTES)
