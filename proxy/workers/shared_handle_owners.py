"""Handle owners shared by all workers: see proxy.access.handle_owners."""

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
    UserDigest,
)
from proxy.wire.hs2.handles import HandleId
from proxy.workers.ledger import Ledger

log = logging.getLogger(__name__)

# First byte of a key in the order. Closed handles come first: they are forgotten first.
_CLOSED: Final = b"0"
_OPEN: Final = b"1"
# A key in the order: that byte, the number of the transaction, and the handle's index in it.
_NUMBER_BYTES: Final = 8
_INDEX_BYTES: Final = 4
_ORDER_KEY_BYTES: Final = 1 + _NUMBER_BYTES + _INDEX_BYTES


@dataclass(frozen=True)
class _Record:
    """A stored handle: kind, whether used in several workers, first worker, order key, owner and backend."""

    kind: HandleKind
    is_used_elsewhere: bool
    slot: int
    order_key: bytes
    handle_owner: HandleOwner

    def encoded(self) -> bytes:
        head = self.kind.value + bytes((self.is_used_elsewhere, self.slot)) + self.order_key
        return head + self.handle_owner.owner + self.handle_owner.backend.encode()

    @classmethod
    def decoded(cls, encoded: bytes) -> _Record:
        owner_at = 3 + _ORDER_KEY_BYTES
        backend_at = owner_at + DIGEST_BYTES
        handle_owner = HandleOwner(UserDigest(encoded[owner_at:backend_at]), encoded[backend_at:].decode())
        order_key = encoded[3:owner_at]
        return cls(HandleKind(encoded[:1]), encoded[1] != 0, encoded[2], order_key, handle_owner)


class SharedHandleOwners:
    """Handle owners in a ledger. Calls take microseconds, so the event loop makes them itself."""

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
        """The number of handles known."""
        with self._environment.begin() as transaction:
            return int(transaction.stat(self._records)["entries"])

    def handle_opened(self, kind: HandleKind, identifier: HandleId, handle_owner: HandleOwner) -> None:
        """See HandleOwners. A handle that cannot be stored counts as never seen."""
        digest, order = self.digests.handle_digest(identifier), self._orders[kind]
        try:
            with self._environment.begin(write=True) as transaction:
                if transaction.stat(order)["entries"] >= self._maxima[kind]:
                    self._forget_oldest(transaction, order)
                order_key = _order_key(_OPEN, transaction)
                record = _Record(kind, False, self._ledger.slot, order_key, handle_owner)  # noqa: FBT003 - not used elsewhere yet
                transaction.put(digest, record.encoded(), db=self._records)
                transaction.put(order_key, digest, db=order)
        except lmdb.Error as error:
            log.warning("the owner of a handle cannot be stored: %s", error)

    def find_owner(self, identifier: HandleId) -> HandleOwner | None:
        """See HandleOwners."""
        record = self._find(identifier)
        return None if record is None else record.handle_owner

    def handles_closed(self, identifiers: Iterable[HandleId]) -> None:
        """See HandleOwners."""
        digests = [self.digests.handle_digest(identifier) for identifier in identifiers]
        if not digests:
            return
        try:
            with self._environment.begin(write=True) as transaction:
                for index, digest in enumerate(digests):
                    self._close(transaction, digest, index)
        except lmdb.Error as error:
            log.warning("closed handles still count as open: %s", error)

    def is_closed(self, identifier: HandleId) -> bool:
        """See HandleOwners."""
        record = self._find(identifier)
        return record is not None and record.order_key.startswith(_CLOSED)

    def used_elsewhere(self, identifier: HandleId) -> bool:
        """See HandleOwners."""
        record = self._find(identifier)
        if record is None or record.slot == self._ledger.slot:
            return False
        try:
            with self._environment.begin(write=True) as transaction:
                encoded = transaction.get(self.digests.handle_digest(identifier), db=self._records)
                if encoded is not None:
                    marked = bytearray(encoded)
                    marked[1] = 1
                    transaction.put(self.digests.handle_digest(identifier), bytes(marked), db=self._records)
        except lmdb.Error as error:
            self._ledger.mark_failed(error)
        return True

    def is_local(self, identifier: HandleId) -> bool:
        """See HandleOwners. False for a forgotten handle, since its use is unknown."""
        record = self._find(identifier)
        if record is None or record.is_used_elsewhere or record.slot != self._ledger.slot:
            return False
        # Checked last: a worker that could not store its use of the session set this flag before it went on.
        return not self._ledger.has_failed

    def _find(self, identifier: HandleId) -> _Record | None:
        try:
            with self._environment.begin() as transaction:
                encoded = transaction.get(self.digests.handle_digest(identifier), db=self._records)
        except lmdb.Error as error:
            log.warning("the owner of a handle cannot be looked up: %s", error)
            return None
        return None if encoded is None else _Record.decoded(encoded)

    def _close(self, transaction: lmdb.Transaction[bytes], digest: Digest, index: int) -> None:
        encoded = transaction.get(digest, db=self._records)
        if encoded is None:
            return
        record = _Record.decoded(encoded)
        if record.order_key.startswith(_OPEN):
            order, order_key = self._orders[record.kind], _order_key(_CLOSED, transaction, index)
            transaction.delete(record.order_key, db=order)
            transaction.put(order_key, digest, db=order)
            closed = _Record(record.kind, record.is_used_elsewhere, record.slot, order_key, record.handle_owner)
            transaction.put(digest, closed.encoded(), db=self._records)

    def _forget_oldest(self, transaction: lmdb.Transaction[bytes], order: lmdb._Database) -> None:
        with transaction.cursor(order) as cursor:
            if cursor.first():
                transaction.delete(cursor.value(), db=self._records)
                cursor.delete()


def _order_key(state: bytes, transaction: lmdb.Transaction[bytes], index: int = 0) -> bytes:
    """Return a key after all others of that state: transaction numbers increase."""
    return state + transaction.id().to_bytes(_NUMBER_BYTES) + index.to_bytes(_INDEX_BYTES)
