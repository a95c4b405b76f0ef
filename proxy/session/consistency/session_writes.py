"""The writes of one session, from their release until their end is certain."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
        self._running: set[Write] = set()
        self._is_closed = False

    def begin(
        self,
        statement: StatementClass,
        is_table: Callable[[TableName], bool] = lambda _: False,
        *,
        may_evolve: bool = False,
    ) -> Callable[[Outcome], None] | None:
        """Count a statement that is about to be released. Returns an outcome listener, unless it only reads.

        `is_table` says of a name whether the session is known to have a table by it, and no view. With
        `may_evolve`, a setting may let each write add columns.
        """
        tables = statement.written
        if tables is None:
            return None
        if isinstance(tables, WriteTargets):
            tables = tables.given(is_table)
        tables = tables.evolving() if may_evolve else tables
        if len(self._running) >= _RUNNING_PER_SESSION_MAX:
            self._begin_any()
            return ignore_outcome
        write = self._begin(tables)
        return partial(self._ended, write)

    def _begin(self, tables: WrittenTables) -> Write:
        write = self._writes.begin(tables)
        self._running.add(write)
        if self._is_closed:
            # In the meantime, from another thread.
            self._writes.end_soon(write)
        return write

    def _begin_any(self) -> None:
        """Count this write and all later ones as a single one, which lasts as long as the session."""
        if len(self._running) == _RUNNING_PER_SESSION_MAX:
            _ = self._begin(AnyTable())

    def _ended(self, write: Write, outcome: Outcome) -> None:
        if outcome.kind is OutcomeKind.UNKNOWN:
            return
        if outcome.did_nothing:
            self._writes.withdraw(write)
        elif outcome.kind is OutcomeKind.LOST:
            self._writes.lose(write)
        else:
            self._writes.end(write)
        self._running.discard(write)

    def closed(self) -> None:
        """The session has ended."""
        self._is_closed = True
        for write in tuple(self._running):
            self._writes.end_soon(write)
