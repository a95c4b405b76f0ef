"""Operation aliases shared by all workers: see proxy.operations.operation_aliases.

The proxy has to send the operation to the server, so a digest is not enough. It is stored XORed with a mask that
can be computed only from its alias.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

import lmdb

from proxy.access.handle_owners import DIGEST_BYTES, Digests
from proxy.operations.operation_aliases import ALIASES_MAX
from proxy.wire.hs2.calls import OperationId, SessionHandle
from proxy.workers.ledger import Ledger

# The longest mask that blake2b gives: an identifier of two UUIDs takes 47 bytes.
_OPERATION_BYTES_MAX: Final = 64

log = logging.getLogger(__name__)


class SharedOperationAliases:
    """Operation aliases in a ledger. An alias that cannot be stored only prevents a fallback."""

    def __init__(self, ledger: Ledger, digests: Digests, aliases_max: int = ALIASES_MAX) -> None:
        self._environment = ledger.environment
        self._digests = digests
        self._aliases_max = aliases_max
        self._aliases = self._environment.open_db(b"aliases")

    @property
    def is_empty(self) -> bool:
        """See OperationAliases."""
        return self._count() == 0

    @property
    def has_room(self) -> bool:
        """See OperationAliases."""
        return self._count() < self._aliases_max

    def add(self, alias: OperationId, operation: OperationId, session: SessionHandle) -> bool:
        """See OperationAliases."""
        if not self.has_room or len(operation) > _OPERATION_BYTES_MAX:
            return False
        record = self._digests.handle_digest(session) + self._masked(alias, operation)
        try:
            with self._environment.begin(write=True) as transaction:
                return transaction.put(self._digests.handle_digest(alias), record, db=self._aliases)
        except lmdb.Error as error:
            log.warning("no fallback to the original, since its operation alias cannot be stored: %s", error)
            return False

    def operation_of(self, alias: OperationId) -> OperationId | None:
        """See OperationAliases."""
        try:
            with self._environment.begin() as transaction:
                record = transaction.get(self._digests.handle_digest(alias), db=self._aliases)
        except lmdb.Error as error:
            log.warning("an operation alias cannot be looked up: %s", error)
            return None
        return self._unmasked(alias, record)

    def alias_closed(self, alias: OperationId) -> OperationId | None:
        """See OperationAliases."""
        found = self.operation_of(alias)
        if found is not None:
            self._delete([self._digests.handle_digest(alias)])
        return found

    def sessions_ended(self, sessions: Iterable[SessionHandle]) -> None:
        """See OperationAliases."""
        ended = {self._digests.handle_digest(session) for session in sessions}
        try:
            with self._environment.begin() as transaction, transaction.cursor(self._aliases) as cursor:
                ended_aliases = [alias for alias, record in cursor if record[:DIGEST_BYTES] in ended]
        except lmdb.Error as error:
            log.warning("operation aliases stay after their sessions: %s", error)
            return
        self._delete(ended_aliases)

    def _count(self) -> int:
        try:
            with self._environment.begin() as transaction:
                return int(transaction.stat(self._aliases)["entries"])
        except lmdb.Error:
            # Counts as full, since the number is unknown.
            return self._aliases_max

    def _delete(self, keys: Iterable[bytes]) -> None:
        try:
            with self._environment.begin(write=True) as transaction:
                for key in keys:
                    transaction.delete(key, db=self._aliases)
        except lmdb.Error as error:
            log.warning("operation aliases stay after their operations were closed: %s", error)

    def _masked(self, alias: OperationId, operation: bytes) -> bytes:
        mask = self._digests.mask(alias, len(operation))
        return bytes(plain ^ masking for plain, masking in zip(operation, mask, strict=True))

    def _unmasked(self, alias: OperationId, record: bytes | None) -> OperationId | None:
        return None if record is None else OperationId(self._masked(alias, record[DIGEST_BYTES:]))
