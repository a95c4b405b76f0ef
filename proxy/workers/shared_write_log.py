"""The write fence across workers: a write through any of them is seen by the fences of all.

The order of events that `proxy.session.consistency.write_fence` rests on holds as it does within one process. A
write is committed here before its first byte goes to the backend, and a fence is looked at in a transaction that
begins after the last key query has answered: it sees every write that was committed before. What cannot be
committed fails the ledger, and then no fence holds any more.
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
from proxy.statements.written_tables import COLUMN_WORDS, AnyTable, WrittenTables, words_of
from proxy.workers.ledger import Ledger
from rewriter import TableName

# Shorter than any digest, so that it is none.
_ANY: Final = b"*"
_NUMBER_BYTES: Final = 8
# Older than any fence: what was forgotten may be anything.
_BEFORE_ALL: Final = -1


class SharedWriteLog:
    """The writes of all workers, in a ledger. Used by several threads at once."""

    def __init__(self, ledger: Ledger, digests: Digests, clock: Callable[[], float] = time.monotonic) -> None:
        self._ledger = ledger
        self._digests = digests
        self._environment = ledger.environment
        self._slot = bytes((ledger.slot,))
        self._running = self._environment.open_db(b"running")
        # What ended, each by its number; they count up by one.
        self._ended = self._environment.open_db(b"ended")
        self._places: dict[Write, bytes] = {}
        self._lost_here = LostWrites(self.end, clock, LOST_S)
        self._closing_here = LostWrites(self.end, clock, CLOSING_S)
        # Of a worker that was killed. The server cancels most as it loses their connections, but not all.
        self._lost = self._of_predecessor()

    def open(self) -> Fence:
        """A fence around what is read from now on."""
        self.end_old()
        try:
            with self._environment.begin() as transaction:
                return Fence(self, self._ended_count(transaction))
        except lmdb.Error:
            return Fence(self, _BEFORE_ALL)

    def begin(self, tables: WrittenTables) -> Write:
        """A write is about to go to the backend."""
        write = Write(tables)
        try:
            with self._environment.begin(write=True) as transaction:
                is_one_too_many = transaction.stat(self._running)["entries"] >= RUNNING_MAX
                place = self._slot + transaction.id().to_bytes(_NUMBER_BYTES)
                transaction.put(place, self._encoded(AnyTable() if is_one_too_many else tables), db=self._running)
        except lmdb.Error as error:
            self._ledger.fail(error)
        else:
            self._places[write] = place
        return write

    def end(self, write: Write) -> None:
        """A write has ended, one way or the other. To say so again changes nothing."""
        place = self._places.pop(write, None)
        if place is not None:
            self._end([place])

    def lose(self, write: Write) -> None:
        """Of the end of a write nothing will be heard: it counts as running for LOST_S."""
        self._lost_here.add(write)

    def end_soon(self, write: Write) -> None:
        """The session of a write is being closed: it counts as running for CLOSING_S."""
        self._closing_here.add(write)

    def end_old(self) -> None:
        """End what was lost here long enough ago: the others wait for that, also where nothing is read here."""
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
        # Only now: a write that could not be committed before this transaction began has failed the ledger before.
        if seen is None or self._ledger.has_failed:
            return None
        return [_Encoded(one, self._digests) for one in seen]

    def _since(self, transaction: lmdb.Transaction[bytes], ended_before: int) -> list[bytes] | None:
        """What runs and what has ended since; None where some of it is forgotten."""
        behind = transaction.stat(self._ended)["entries"]
        if self._ended_count(transaction) - ended_before > behind:
            return None
        with transaction.cursor(self._running) as running, transaction.cursor(self._ended) as ended:
            seen = [tables for _, tables in running]
            if ended.set_range((ended_before + 1).to_bytes(_NUMBER_BYTES)):
                seen += [tables for _, tables in ended]
        return seen

    def end_lost(self) -> None:
        """LOST_S have passed."""
        lost, self._lost = self._lost, []
        self._end(lost)

    def _of_predecessor(self) -> list[bytes]:
        """What the worker was letting write whose place this one takes."""
        with self._environment.begin() as transaction, transaction.cursor(self._running) as cursor:
            return [place for place, _ in cursor if place.startswith(self._slot)]

    def _end(self, places: list[bytes]) -> None:
        try:
            with self._environment.begin(write=True) as transaction:
                for place in places:
                    self._move(transaction, place)
        except lmdb.Error as error:
            # They count as running for ever.
            self._ledger.fail(error)

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
        return _ANY if tables.words is None else b"".join(map(self._digests.word, tables.words))


@dataclass(frozen=True)
class _Encoded:
    """The words of a write, as digests."""

    encoded: bytes
    digests: Digests

    def hold(self, name: TableName) -> bool:
        """As Tables.hold does."""
        words = self._words
        return words is None or any(words.issuperset(map(self.digests.word, one)) for one in words_of(name))

    @property
    def may_change_columns(self) -> bool:
        """As Tables.may_change_columns does."""
        words = self._words
        return words is None or not words.isdisjoint(map(self.digests.word, COLUMN_WORDS))

    @cached_property
    def _words(self) -> set[bytes] | None:
        if self.encoded == _ANY:
            return None
        return {self.encoded[start : start + WORD_BYTES] for start in range(0, len(self.encoded), WORD_BYTES)}
