"""A table reference with its reducers, or with the reason why it is left alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewriter.catalog.table_facts import TableFacts
from rewriter.domains.cover import Cover
from rewriter.scopes.join_tree import TableReference
from rewriter.semijoins.reducers import Reducer
from rewriter.vocabulary.identifiers import TableName
from rewriter.vocabulary.skip_reason import SkipReason


@dataclass(frozen=True)
class PlannedScan:
    """A fact scan that may be narrowed by its reducers, or a table reference with the reason why not."""

    reference: TableReference
    alias: str
    reducers: tuple[Reducer, ...] = ()
    skip: SkipReason | None = None
    # What is known of the table; None of a CTE, which may have the name of one.
    facts: TableFacts | None = None
    # What the statement's own filters let through, by lower-case columns: all, unless files can be left out by it.
    own_cover: Cover = field(default_factory=Cover.all)

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns that the table is partitioned by, the leading one first; of a view they are not known."""
        return self.facts.partition_columns if self.facts is not None else ()

    @property
    def table(self) -> TableName | None:
        """The table by its full name, where it is not a CTE, nor what belongs to one session."""
        return self.facts.full_name if self.facts is not None else None

    def has_files_by(self, column: str) -> bool:
        """Whether a column that is no partition column tells which files can be left out."""
        known = self.facts.column(column) if self.facts is not None else None
        if self.facts is None or known is None:
            return False
        return column.lower() in self.facts.file_columns and not self.facts.is_partition_column(known)
