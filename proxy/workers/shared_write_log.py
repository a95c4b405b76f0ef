"""The write fence across workers: a write through any of them is seen by the fences of all.

The order of events that `proxy.session.consistency.write_fence` relies on is the same as within one process. A
write is committed here before its first byte goes to the backend, and a fence is checked in a transaction that
begins after the last key query has answered: it sees every write that was committed before. A write that cannot
be committed marks the ledger as failed, and then no fence holds any more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import lmdb

from proxy.access.handle_owners import WORD_BYTES, Digests
from proxy.session.consistency.write_fence import (
    CLOSING_S,
    ENDED_MAX,
    LOST_S,
    RUNNING_MAX,
    Fence,
    LostWrites,
    Write,
    Written,
)
from proxy.statements.written_tables import EVOLUTION, AnyTable, WrittenTables, words_of
from proxy.workers.ledger import Ledger
from rewriter import TableName

# Stands for "any table". Shorter than a digest, so that it equals none.
_ANY: Final = b"*"
_NUMBER_BYTES: Final = 8
# The position of a fence that could not be opened: it never holds.
_BEFORE_ALL: Final = -1


class SharedWriteLog:
    """The writes of all workers, in a ledger. Used by several threads at once."""

    def __init__(self, ledger: Ledger, digests: Digests, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger = ledger
        self._digests = digests
        self._environment = ledger.environment
        self._slot = bytes((ledger.slot,))
        self._running = self._environment.open_db(b"running")
        # Ended writes by number, counted up by one.
        self._ended = self._environment.open_db(b"ended")
        self._places: dict[Write, bytes] = {}
        self._lost_here = LostWrites(self.end, clock, LOST_S)
        self._closing_here = LostWrites(self.end, clock, CLOSING_S)
        # Writes of a killed worker. The server cancels most of them as their connections end, but not all.
        self._lost = self._writes_of_predecessor()

    def open(self) -> Fence:
        """Open a fence around the reads that follow."""
        self.end_old()
        try:
            with self._environment.begin() as transaction:
                return Fence(self, self._ended_count(transaction))
        except lmdb.Error:
            return Fence(self, _BEFORE_ALL)

    def begin(self, tables: WrittenTables) -> Write:
        """Begin a write that is about to go to the backend."""
        write = Write(tables)
        try:
            with self._environment.begin(write=True) as transaction:
                is_one_too_many = transaction.stat(self._running)["entries"] >= RUNNING_MAX
                place = self._slot + transaction.id().to_bytes(_NUMBER_BYTES)
                transaction.put(place, self._encoded(AnyTable() if is_one_too_many else tables), db=self._running)
        except lmdb.Error as error:
            self._ledger.mark_failed(error)
        else:
            self._places[write] = place
        return write

    def end(self, write: Write) -> None:
        """End a write, successful or not. A second call changes nothing."""
        place = self._places.pop(write, None)
        if place is not None:
            self._end([place])

    def withdraw(self, write: Write) -> None:
        """Forget a write that has changed nothing: no fence that is looked at from now on sees it."""
        place = self._places.pop(write, None)
        if place is None:
            return
        try:
            with self._environment.begin(write=True) as transaction:
                transaction.delete(place, db=self._running)
        except lmdb.Error as error:
            # It counts as running forever.
            self._ledger.mark_failed(error)

    def lose(self, write: Write) -> None:
        """Note a write whose end will not be seen: it counts as running for LOST_S."""
        self._lost_here.add(write)

    def end_soon(self, write: Write) -> None:
        """Note that the session of a write is being closed: the write counts as running for CLOSING_S."""
        self._closing_here.add(write)

    def end_old(self) -> None:
        """End writes lost here long enough ago. Other workers wait for that, even if this one reads nothing."""
        self._lost_here.end_old()
        self._closing_here.end_old()

    def since(self, ended_before: int) -> Sequence[Written] | None:
        """See WriteLog."""
        if ended_before == _BEFORE_ALL:
            return None
        try:
            with self._environment.begin() as transaction:
                seen = self._since(transaction, ended_before)
        except lmdb.Error:
            return None
        # Checked last: a write that could not be committed before this transaction began set this flag before.
        if seen is None or self._ledger.has_failed:
            return None
        return [_Encoded(one, self._digests) for one in seen]

    def _since(self, transaction: lmdb.Transaction[bytes], ended_before: int) -> list[bytes] | None:
        """Return the running writes and those ended since; None if some of those are forgotten."""
        behind = transaction.stat(self._ended)["entries"]
        if self._ended_count(transaction) - ended_before > behind:
            return None
        with transaction.cursor(self._running) as running, transaction.cursor(self._ended) as ended:
            seen = [tables for _, tables in running]
            if ended.set_range((ended_before + 1).to_bytes(_NUMBER_BYTES)):
                seen += [tables for _, tables in ended]
        return seen

    def end_lost(self) -> None:
        """End the writes of the killed worker: LOST_S have passed since."""
        lost, self._lost = self._lost, []
        self._end(lost)

    def _writes_of_predecessor(self) -> list[bytes]:
        """Return the running writes of the worker that had this slot before."""
        with self._environment.begin() as transaction, transaction.cursor(self._running) as cursor:
            return [place for place, _ in cursor if place.startswith(self._slot)]

    def _end(self, places: list[bytes]) -> None:
        try:
            with self._environment.begin(write=True) as transaction:
                for place in places:
                    self._move(transaction, place)
        except lmdb.Error as error:
            # These writes count as running forever.
            self._ledger.mark_failed(error)

    def _move(self, transaction: lmdb.Transaction[bytes], place: bytes) -> None:
        tables = transaction.pop(place, db=self._running)
        if tables is None:
            return
        number = self._ended_count(transaction) + 1
        transaction.put(number.to_bytes(_NUMBER_BYTES), tables, db=self._ended)
        if number > ENDED_MAX:
            transaction.delete((number - ENDED_MAX).to_bytes(_NUMBER_BYTES), db=self._ended)

    def _ended_count(self, transaction: lmdb.Transaction[bytes]) -> int:
        with transaction.cursor(self._ended) as cursor:
            return int.from_bytes(cursor.key()) if cursor.last() else 0

    def _encoded(self, tables: WrittenTables) -> bytes:
        return _ANY if tables.words is None else b"".join(map(self._digests.word_digest, tables.words))


@dataclass(frozen=True)
class _Encoded:
    """The words of a write, as digests."""

    encoded: bytes
    digests: Digests

    def hold(self, name: TableName) -> bool:
        """See Written."""
        words = self._words
        return words is None or any(words.issuperset(map(self.digests.word_digest, one)) for one in words_of(name))

    @property
    def may_change_columns(self) -> bool:
        """See Written."""
        words = self._words
        return words is None or self.digests.word_digest(EVOLUTION) in words

    @cached_property
    def _words(self) -> set[bytes] | None:
        if self.encoded == _ANY:
            return None
        return {self.encoded[start : start + WORD_BYTES] for start in range(0, len(self.encoded), WORD_BYTES)}
