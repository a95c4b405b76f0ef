"""The inputs of the cost gate: the tables of a plan that could be narrowed, and their known sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from proxy.session.feedback.cost_gate import Fact
from rewriter import Plan, PlannedScan, Rewrite, TableFacts, TableName
from rewriter.files.file_index import FileSelection
from rewriter.partitions.index import PartitionIndex

# By a filter of the statement's own, Spark looks into each file's footer, and skips the row groups that it need
# not read. So skipping a file saves opening it, and more the larger it is. But Spark tests the hint that skips it
# on each row that is left. Measured with 100 small files, and with 25 of 80 MB (docs/layouts.md).
_OPENING_S = 0.0005
_FOOTERS_S_PER_BYTE = 1e-10
_HINT_S_PER_ROW = 32e-9
# Time to rewrite a statement without key queries.
_NARROWING_S = 0.05


class TableSizes(Protocol):
    """The sizes of tables as far as a session knows them, without asking."""

    def facts(self, name: TableName) -> TableFacts | None:
        """The facts of a table that a plan names."""
        ...

    def partition_count(self, name: TableName) -> int | None:
        """The number of a table's partitions, where its list is at hand."""
        ...

    def indexed_bytes(self, name: TableName) -> int | None:
        """The size of a table's files, where the file index knows them."""
        ...


def has_own_filters_alone(planned: Plan) -> bool:
    """True if no keys are asked for, since the statement itself says what it looks for.

    The cost gate weighs the time that asking takes. Listing the files to skip takes milliseconds, and fetching the
    rows of the file index serves many statements.
    """
    return not planned.key_queries and bool(planned.wants_files({}))


def spares_too_little(result: Rewrite) -> bool:
    """True if the files that a statement's own filters skip are too few to make up for narrowing it."""
    return not makes_up([scan.files for scan in result.scans if scan.files is not None])


def makes_up(selections: Sequence[FileSelection]) -> bool:
    """True if skipping these files is likely to save more than it takes to narrow a statement."""
    misses = [facts for selection in selections for facts in selection.misses]
    saved_s = len(misses) * _OPENING_S + sum(facts.size_bytes for facts in misses) * _FOOTERS_S_PER_BYTE
    kept_rows = sum(selection.kept_rows for selection in selections)
    return saved_s > _NARROWING_S + kept_rows * _HINT_S_PER_ROW


def narrowable(planned: Plan | None) -> dict[TableName, None]:
    """The facts that could be narrowed, in order: something filters them by columns that tell parts apart."""
    scans = planned.scans if planned is not None else ()
    return dict.fromkeys(scan.reference.name for scan in scans if _is_narrowable(scan))


def _is_narrowable(scan: PlannedScan) -> bool:
    facts = scan.facts
    if facts is None or not (scan.reducers or not scan.own_cover.is_all):
        return False
    return bool(facts.partition_columns or facts.file_columns or facts.bucket_column)


def facts_of(planned: Plan, counted: Mapping[TableName, PartitionIndex], sizes: TableSizes) -> tuple[Fact, ...]:
    """The facts that could be narrowed, and what is known of their size; some were counted just now."""
    return tuple(
        Fact(name.parts[-1], _partition_count(name, counted, sizes), _size_bytes(name, sizes))
        for name in narrowable(planned)
    )


def _partition_count(
    name: TableName, counted: Mapping[TableName, PartitionIndex], sizes: TableSizes
) -> int | None:
    facts = sizes.facts(name)
    if facts is not None and (facts.delta is not None or facts.iceberg is not None):
        return 0
    if facts is not None and not facts.partition_columns:
        return 1
    return counted[name].count if name in counted else sizes.partition_count(name)


def _size_bytes(name: TableName, sizes: TableSizes) -> int | None:
    facts = sizes.facts(name)
    known = facts.size_bytes if facts is not None else None
    return known if known is not None else sizes.indexed_bytes(name)
