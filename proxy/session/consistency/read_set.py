"""The read set of a rewritten text: the tables that it rests on, and whether any of them was written since."""

from __future__ import annotations

from dataclasses import dataclass

from proxy.session.consistency.write_fence import Fence
from rewriter import SkipReason, TableName


@dataclass(frozen=True)
class ReadSet:
    """The tables that were read to rewrite a statement, and the fence that was opened before.

    It is checked before the text is released, and again before its answer is let out: the statement reads the same
    tables, but later.
    """

    fence: Fence
    # Keys were read from these as they are, and the statement reads them again.
    asked: frozenset[TableName]
    # Keys were read from these at the snapshots that the text names.
    pinned: frozenset[TableName]
    # All tables and views that the statement names, and those behind the views.
    named: frozenset[TableName]

    def skip(self) -> SkipReason | None:
        """The reason why the text may be wrong by now; None where it is right."""
        if not self.fence.holds(self.asked) or self._may_be_torn():
            return SkipReason.SMALL_SIDE_WRITTEN
        return SkipReason.TABLES_UNSETTLED if self.fence.changed_columns(self.named) else None

    def is_unchanged(self) -> bool:
        """True if the text is still right."""
        return self.skip() is None

    def _may_be_torn(self) -> bool:
        """True if the statement may see a write of one table, but not an earlier one of a table at a snapshot.

        Snapshots are asked for one after the other, and tables without one are read last, after the keys. A write
        of one table alone is either seen or not, as if the statement had started later or sooner.
        """
        if self.fence.holds(self.pinned):
            return False
        return len({name.unversioned for name in self.fence.written(self.named)}) > 1
