"""The pass for fewer splits of scans of many small files, which follows the pass that narrows scans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rewriter.domains.cover import Cover
from rewriter.files.file_index import FileIndex, FileSelection
from rewriter.semijoins.limits import RewriteLimits
from rewriter.semijoins.planned_scan import PlannedScan
from rewriter.splits.packing import Grouping, GroupLimits, Packing, SplitHints, grouping, has_outgrown
from rewriter.sql.statement import Statement
from rewriter.sql.task_dependence import chooses_tasks, depends_on_row_order
from rewriter.vocabulary.identifiers import TableName
from rewriter.vocabulary.rule import Rule


def may_be_grouped(limits: RewriteLimits) -> bool:
    """True if scans are read in fewer splits without being narrowed, so that any statement needs a plan."""
    return limits.has_small_files and _is_on(limits)


def must_keep_splits(statement: Statement, views: Sequence[Statement]) -> bool:
    """True if the statement, or a view that it names, may show more of its scans' splits than their rows.

    A statement that writes makes as many files as there are tasks. One with a hint says how many tasks it wants.
    """
    queries = (statement, *views)
    return not statement.only_reads or any(map(depends_on_row_order, queries)) or any(map(chooses_tasks, queries))


def fewer_splits(
    scans: Sequence[tuple[PlannedScan, FileSelection | Cover | None]],
    indexes: Mapping[TableName, FileIndex],
    hints: SplitHints,
    limits: RewriteLimits,
) -> list[Grouping | None]:
    """The number of splits of each scan and the number it is read in, or None where that is left to Spark.

    A scan stands beside the files that are left of it, or, if nothing narrows it, the partitions that it reads.
    """
    if not _is_on(limits):
        return [None for _ in scans]
    # Hundreds of scans that are alike have the same files, which are looked at once.
    keys = [(scan.reference.name, id(read)) for scan, read in scans]
    found = {key: _grouping(*one, indexes, hints) for key, one in dict(zip(keys, scans, strict=True)).items()}
    return [found[key] for key in keys]


def _is_on(limits: RewriteLimits) -> bool:
    return Rule.SPLITS not in limits.rules_off


def _grouping(
    scan: PlannedScan,
    read: FileSelection | Cover | None,
    indexes: Mapping[TableName, FileIndex],
    hints: SplitHints,
) -> Grouping | None:
    packing, index = hints.packings.get(scan.reference.name), indexes.get(scan.reference.name)
    if packing is None or read is None:
        return None
    if isinstance(read, FileSelection):
        return grouping(read.kept_sizes, packing, hints.limits, read.kept_rows)
    if index is None or scan.facts is None or not packing.has_fixed_slots:
        return None
    asked = read, packing, hints.limits, scan.facts.size_bytes
    return index.once(asked, lambda: _grouping_within(index, *asked))


def _grouping_within(
    index: FileIndex, partitions: Cover, packing: Packing, limits: GroupLimits, size_bytes: int | None
) -> Grouping | None:
    """The grouping of the splits of all files that may hold a row of the partitions.

    None where they are too many to compute, or where the table's size shows that it has outgrown its index.
    """
    if has_outgrown(size_bytes, index.files, packing):
        return None
    kept = index.misses(Cover.all(), partitions)
    return grouping(kept.kept_sizes, packing, limits, kept.kept_rows)
