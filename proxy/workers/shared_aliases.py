"""Operation aliases of all workers: see proxy.operations.operation_aliases.

An operation has to be named to the server, so a digest will not do. It is kept under a mask that only somebody who
names its alias can take off.
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

# As long as a mask can be: an identifier of two UUIDs takes 47 bytes.
_OPERATION_BYTES_MAX: Final = 64

log = logging.getLogger(__name__)


class SharedOperationAliases:
    """Operation aliases in a ledger."""

    def __init__(self, ledger: Ledger, digests: Digests, aliases_max: int = ALIASES_MAX) -> None:
        self._environment = ledger.environment
        self._digests = digests
        self._aliases_max = aliases_max
        self._found = self._environment.open_db(b"successors")

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
        record = self._digests.of(session) + self._masked(alias, operation)
        try:
            with self._environment.begin(write=True) as transaction:
                return transaction.put(self._digests.of(alias), record, db=self._found)
        except lmdb.Error as error:
            log.warning("a statement does not fall back: %s", error)
            return False

    def operation_of(self, alias: OperationId) -> OperationId | None:
        """See OperationAliases."""
        try:
            with self._environment.begin() as transaction:
                record = transaction.get(self._digests.of(alias), db=self._found)
        except lmdb.Error as error:
            log.warning("an operation cannot be looked up: %s", error)
            return None
        return self._unmasked(alias, record)

    def alias_closed(self, alias: OperationId) -> OperationId | None:
        """See OperationAliases."""
        found = self.operation_of(alias)
        if found is not None:
            self._delete([self._digests.of(alias)])
        return found

    def sessions_ended(self, sessions: Iterable[SessionHandle]) -> None:
        """See OperationAliases."""
        ended = {self._digests.of(session) for session in sessions}
        try:
            with self._environment.begin() as transaction, transaction.cursor(self._found) as cursor:
                ended_aliases = [alias for alias, record in cursor if record[:DIGEST_BYTES] in ended]
        except lmdb.Error as error:
            log.warning("aliases of operations stay after their sessions: %s", error)
            return
        self._delete(ended_aliases)

    def _count(self) -> int:
        try:
            with self._environment.begin() as transaction:
                return int(transaction.stat(self._found)["entries"])
        except lmdb.Error:
            # Full, as far as anybody can tell.
            return self._aliases_max

    def _delete(self, keys: Iterable[bytes]) -> None:
        try:
            with self._environment.begin(write=True) as transaction:
                for key in keys:
                    transaction.delete(key, db=self._found)
        except lmdb.Error as error:
            log.warning("aliases of operations stay after they were closed: %s", error)

    def _masked(self, alias: OperationId, operation: bytes) -> bytes:
        mask = self._digests.mask(alias, len(operation))
        return bytes(mine ^ theirs for mine, theirs in zip(operation, mask, strict=True))

    def _unmasked(self, alias: OperationId, record: bytes | None) -> OperationId | None:
        return None if record is None else OperationId(self._masked(alias, record[DIGEST_BYTES:]))
