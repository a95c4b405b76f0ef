"""A table reference with its reducers, or with the reason why it is not narrowed."""

from __future__ import annotations

from dataclasses import dataclass, field

from rewriter.catalog.table_facts import TableFacts
from rewriter.domains.cover import Cover
from rewriter.scopes.join_tree import TableReference
from rewriter.semijoins.merge_check import MergeCheck
from rewriter.semijoins.reducer import Reducer
from rewriter.vocabulary.identifiers import TableName
from rewriter.vocabulary.skip_reason import SkipReason


@dataclass(frozen=True)
class PlannedScan:
    """A fact scan that may be narrowed by its reducers, or a table reference with the reason why not."""

    reference: TableReference
    alias: str
    reducers: tuple[Reducer, ...] = ()
    skip: SkipReason | None = None
    # The cause of the refusal in the statement, for the user; None if it is not known.
    cause: str | None = None
    # The facts of the table; None for a CTE, which may have the name of one.
    facts: TableFacts | None = None
    # The rows that the statement's own filters let through, by lower-case columns: all, unless they leave out
    # files.
    own_cover: Cover = field(default_factory=Cover.all)
    # True if a condition could reduce it if the partitions were known.
    wants_list: bool = False
    # The partitions that the statement's own filters let through, by lower-case columns, if the scan may be read
    # in fewer splits without being narrowed; None if its splits are then left to Spark.
    grouped_within: Cover | None = None
    # The offset of a conjunct before which the predicate is inserted; None for a filter around the reference.
    conjunct_start: int | None = None
    # The check that a MERGE gets if this scan, its target, is narrowed; None for any other scan.
    merge_check: MergeCheck | None = None

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The table's partition columns, the leading one first; they are not known for a view."""
        return self.facts.partition_columns if self.facts is not None else ()

    @property
    def table(self) -> TableName | None:
        """The table by its full name; None for a CTE, and for a table or view of one session."""
        return self.facts.full_name if self.facts is not None else None

    def has_files_by(self, column: str) -> bool:
        """True if files can be left out by a column that is no partition column."""
        known = self.facts.column(column) if self.facts is not None else None
        if self.facts is None or known is None:
            return False
        return column.lower() in self.facts.file_columns and not self.facts.is_partition_column(known)
