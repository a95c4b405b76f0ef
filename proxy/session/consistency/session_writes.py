"""The writes of one session, from their release until their end is certain."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Final

from proxy.operations.dispatch import Outcome, OutcomeKind, ignore_outcome
from proxy.session.consistency.write_fence import Write, WriteLog
from proxy.statements.statement_class import StatementClass
from proxy.statements.written_tables import AnyTable, WriteTargets, WrittenTables
from rewriter import TableName

# Writes of one session that run at once. Only a client that never asks for the ends of its statements has more:
# they count as one, for any table, until the session is closed.
_RUNNING_PER_SESSION_MAX: Final = 16


class SessionWrites:
    """The writes of one session.

    One whose end was not seen, because it was cancelled or its connection was lost, may still be at work on the
    server. It counts as running until its session has been closed for CLOSING_S, by when the server has ended it
    too; or for LOST_S, where the server runs it within the call that brought it.
    """

    def __init__(self, writes: WriteLog) -> None:
        self._writes = writes
        # Writes begin in a thread; their ends, and that of the session, are told on the event loop.
        self._lock = Lock()
        # By an object for each statement, which stays the same if its write is counted anew.
        self._running: dict[object, Write] = {}
        # Writes whose end will not be seen: a setting may still turn them into evolving ones.
        self._lost: list[Write] = []
        # Takes the writes that run, once the session is gone.
        self._end_later: Callable[[Write], None] | None = None

    def begin(
        self,
        statement: StatementClass,
        is_table: Callable[[TableName], bool] = lambda _: False,
        *,
        may_evolve: bool = False,
    ) -> Callable[[Outcome], None] | None:
        """Count a statement that is about to be released. Returns an outcome listener, unless it only reads.

        `is_table` says of a name whether the session is known to have a table by it, and no view. With
        `may_evolve`, the server's settings may let each write add columns.
        """
        tables = statement.written
        if tables is None:
            return None
        if isinstance(tables, WriteTargets):
            tables = tables.given(is_table)
        tables = tables.evolving() if may_evolve else tables
        began = object()
        with self._lock:
            if len(self._running) > _RUNNING_PER_SESSION_MAX:
                return ignore_outcome
            if len(self._running) == _RUNNING_PER_SESSION_MAX:
                # This write and all later ones are a single one, which lasts as long as the session.
                self._running[began] = self._begin(AnyTable())
                return ignore_outcome
            self._running[began] = self._begin(tables)
        return partial(self._ended, began)

    def evolve(self) -> None:
        """Count the writes that run, or may be running, as evolving: a setting may let them add columns."""
        with self._lock:
            for began, write in self._running.items():
                self._running[began] = self._evolving(write)
            while self._lost:
                self._writes.lose(self._evolving(self._lost.pop()))

    def _evolving(self, write: Write) -> Write:
        if write.tables.may_change_columns:
            return write
        evolving = self._begin(write.tables.evolving())
        # The new one holds the same tables.
        self._writes.withdraw(write)
        return evolving

    def _begin(self, tables: WrittenTables) -> Write:
        write = self._writes.begin(tables)
        if self._end_later is not None:
            # The session was closed in the meantime, from another thread.
            self._end_later(write)
        return write

    def _lose(self, write: Write) -> None:
        if len(self._lost) < _RUNNING_PER_SESSION_MAX:
            self._lost.append(write)
        else:
            write = self._evolving(write)
        self._writes.lose(write)

    def _ended(self, began: object, outcome: Outcome) -> None:
        if outcome.kind is OutcomeKind.UNKNOWN:
            return
        with self._lock:
            write = self._running.pop(began, None)
            if write is None:
                return
            if outcome.did_nothing:
                self._writes.withdraw(write)
            elif outcome.kind is OutcomeKind.LOST:
                self._lose(write)
            else:
                self._writes.end(write)

    def closed(self, *, is_forgotten: bool = False) -> None:
        """The session has ended, or goes on at the server and its statements' ends are not seen any more."""
        with self._lock:
            self._end_later = self._writes.lose if is_forgotten else self._writes.end_soon
            for write in self._running.values():
                self._end_later(write)
