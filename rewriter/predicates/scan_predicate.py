"""Predicate of one scan: conditions on its partitions, its buckets, its row groups and its files.

Spark prunes partitions only by conjuncts that read partition columns alone, and likewise buckets and files: an OR
over a partition column and another one prunes neither. So these conditions are separate conjuncts. Each is sound
by itself: it holds for all rows that may match, and for every row if one of its assumptions changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from rewriter.domains.cover import Box, Cover
from rewriter.domains.gap_costs import Costs
from rewriter.domains.partition_matches import PartitionMatches
from rewriter.files.file_index import FileIndex, FileSelection, file_hint, spares_enough
from rewriter.files.row_groups import RowGroupCount
from rewriter.predicates.data_columns import RowGroupPredicate, bucket_predicate, row_group_predicate
from rewriter.predicates.delta_predicate import delta_predicate
from rewriter.predicates.iceberg_predicate import files_left, iceberg_predicate, skips_too_little
from rewriter.predicates.partition_list_predicate import partition_list_predicate
from rewriter.predicates.partition_predicate import Budget, partition_predicate
from rewriter.predicates.predicate import (
    Predicate,
    Restriction,
    changed_assumptions,
    require_kept_by_delta,
    type_changed,
)
from rewriter.semijoins.limits import RewriteLimits
from rewriter.semijoins.planned_scan import PlannedScan
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import SkipReason

# Boxes of covers that are intersected with one another: thousands of pairs and a long filter would be millions.
_BOXES_INTERSECTED_MAX = 10_000


@dataclass(frozen=True)
class TableLayout:
    """The layout of a table's rows: their distribution along the partition columns, and their files."""

    costs: Mapping[str, Costs]
    index: FileIndex | None
    # True if the files that a scan reads are wanted even where none is left out.
    wants_files: bool = False


@dataclass(frozen=True)
class ScanPredicate:
    """The predicate that is inserted into one scan."""

    sql: str
    # True if the keys alone satisfy it; None if there are no keys, but filters of the statement's own.
    exact: bool | None
    # The rows that the partition predicate selects.
    cover: Cover | None
    files: FileSelection | None = None
    # The row groups that it leaves of the files that are read; None if they are not known.
    row_groups: RowGroupCount | None = None
    rules: frozenset[Rule] = frozenset()
    # True if the metastore is sent a part of it.
    is_sent_to_metastore: bool = False


def scan_predicate(
    scan: PlannedScan,
    restrictions: Sequence[Restriction],
    layout: TableLayout,
    budget: Budget,
    limits: RewriteLimits,
) -> ScanPredicate | SkipReason:
    """The conditions from keys and the statement's own filters, or the reason why there are none.

    Raises UnreadableKeyError.
    """
    if scan.facts is not None and scan.facts.is_beside_delta:
        require_kept_by_delta(restrictions)
    if _skips_files_itself(scan, restrictions):
        return _of_format(scan, restrictions, layout.index, budget)
    by_keys = [one for one in restrictions if not isinstance(one.keys, PartitionMatches)]
    by_partition = _by_partition(scan, by_keys)
    partitions = _partition_predicate(scan, by_partition, layout, budget) if by_partition else None
    if partitions is not None and partitions.cover.is_none:
        return ScanPredicate(partitions.sql, partitions.exact, partitions.cover)
    texts = [partitions.sql] if partitions is not None else []
    cover = partitions.cover if partitions is not None else None
    parts: set[Rule] = set()
    listed = _by_partition_list(restrictions, budget.chars_max - sum(map(len, texts)))
    for restriction, text in listed:
        texts.append(text)
        cover = restriction.cover if cover is None else _intersected(cover, restriction.cover)
    # Spark may infer a condition on data columns for a column that another table is partitioned by.
    row_groups: list[RowGroupCount] = []
    for rule, part in _of_parts(scan, restrictions, layout.index, cover, limits) if budget.may_send else ():
        if sum(map(len, texts)) + len(part.sql) <= budget.chars_max:
            texts.append(part.sql)
            parts.add(rule)
            row_groups += [part.left] if part.left is not None else []
    hint, files = "", None
    needs_files = not scan.own_cover.is_all or bool(_told_by_files(scan, restrictions)) or layout.wants_files
    takes_hints = (
        scan.facts is not None and scan.facts.takes_file_hints and Rule.FILE_HINTS not in limits.rules_off
    )
    if takes_hints and layout.index is not None and needs_files:
        hint, files = _file_predicate(scan, restrictions, cover, layout.index, limits.file_hint_chars_max)
    if hint:
        texts.append(hint)
        parts.add(Rule.FILE_HINTS)
    if not texts:
        return _reason(scan, restrictions, layout, budget)
    is_exact = by_partition == by_keys and len(by_keys) + len(listed) == len(restrictions)
    is_exact = is_exact and (partitions.exact if partitions is not None else not by_keys)
    is_sent_to_metastore = partitions is not None and partitions.is_sent_to_metastore
    exact = is_exact if restrictions else None
    return ScanPredicate(
        " AND ".join(texts),
        exact,
        cover,
        files=files,
        row_groups=min(row_groups, key=lambda left: left.kept_bytes, default=None),
        rules=frozenset(parts),
        is_sent_to_metastore=is_sent_to_metastore,
    )


def _by_partition_list(restrictions: Sequence[Restriction], chars_max: int) -> list[tuple[Restriction, str]]:
    """The restrictions by lists of partitions that can be written, each with its condition."""
    found = []
    for restriction in restrictions:
        if isinstance(restriction.keys, PartitionMatches):
            text = partition_list_predicate(restriction, restriction.keys, chars_max)
            if text is not None:
                found.append((restriction, text))
                chars_max -= len(text)
    return found


def _skips_files_itself(scan: PlannedScan, restrictions: Sequence[Restriction]) -> bool:
    """True if its format skips files by itself; for a view, if those of all tables with the key columns do."""
    facts = scan.facts
    if facts is None or facts.behind is None:
        return facts is not None and facts.skips_files_itself
    return all(facts.is_data_column(column) for restriction in restrictions for column in restriction.columns)


def _of_format(
    scan: PlannedScan, restrictions: Sequence[Restriction], index: FileIndex | None, budget: Budget
) -> ScanPredicate | SkipReason:
    """The predicate for a format that skips files by itself."""
    if not budget.may_send:
        return SkipReason.METASTORE_FILTER
    if _reads_delta(scan):
        return _of_delta(scan, restrictions, budget.chars_max)
    return _of_iceberg(scan, restrictions, index, budget.chars_max)


def _reads_delta(scan: PlannedScan) -> bool:
    facts = scan.facts
    if facts is None or facts.behind is None:
        return facts is not None and facts.delta is not None
    return facts.behind.reads_delta


def _of_delta(
    scan: PlannedScan, restrictions: Sequence[Restriction], chars_max: int
) -> ScanPredicate | SkipReason:
    """The predicate for Delta: one condition, for partition columns and other columns alike."""
    partitioned_by = scan.facts.delta.partitioned_by if scan.facts is not None and scan.facts.delta else ()
    written = delta_predicate(restrictions, partitioned_by, chars_max, in_merge=scan.merge_check is not None)
    if written is None:
        return SkipReason.PREDICATE_TOO_LARGE
    return ScanPredicate(written.sql, written.exact, written.cover, rules=frozenset({Rule.DELTA}))


def _of_iceberg(
    scan: PlannedScan, restrictions: Sequence[Restriction], index: FileIndex | None, chars_max: int
) -> ScanPredicate | SkipReason:
    """The predicate for Iceberg: one condition, for partition columns and other columns alike."""
    partitioning = scan.facts.iceberg.partitioning if scan.facts is not None and scan.facts.iceberg else ()
    written = iceberg_predicate(restrictions, partitioning, index, chars_max)
    if written is None:
        return SkipReason.PREDICATE_TOO_LARGE
    files = files_left(written.cover, partitioning, index)
    row_groups = index.row_groups(written.cover) if index is not None else None
    if skips_too_little(files, row_groups):
        return SkipReason.NOTHING_TO_SKIP
    return ScanPredicate(written.sql, written.exact, written.cover, files, row_groups, frozenset({Rule.ICEBERG}))


def _reason(
    scan: PlannedScan, restrictions: Sequence[Restriction], layout: TableLayout, budget: Budget
) -> SkipReason:
    if _by_partition(scan, restrictions):
        return SkipReason.PREDICATE_TOO_LARGE
    if not budget.may_send:
        return SkipReason.METASTORE_FILTER
    is_told = not scan.own_cover.is_all or bool(_told_by_files(scan, restrictions))
    return SkipReason.NO_FILE_INDEX if is_told and layout.index is None else SkipReason.NOTHING_TO_SKIP


def _told_by_files(scan: PlannedScan, restrictions: Sequence[Restriction]) -> list[Restriction]:
    """The restrictions on a column by which files can be left out, beside partitions."""
    return [restriction for restriction in restrictions if any(map(scan.has_files_by, restriction.names))]


def _by_partition(scan: PlannedScan, restrictions: Sequence[Restriction]) -> list[Restriction]:
    """The restrictions on columns by which Spark prunes partitions. Without any key no column matters."""
    found = (
        restriction if restriction.keys.is_none else restriction.of_columns(_partition_columns(scan, restriction))
        for restriction in restrictions
    )
    return [restriction for restriction in found if restriction is not None]


def _partition_columns(scan: PlannedScan, restriction: Restriction) -> frozenset[str]:
    """The columns of a restriction, in lower case, without data columns, by which Spark prunes no partition."""
    facts = scan.facts
    found = (
        column.name.lower() for column in restriction.columns if facts is None or not facts.is_data_column(column)
    )
    return frozenset(found)


def _partition_predicate(
    scan: PlannedScan, restrictions: Sequence[Restriction], layout: TableLayout, budget: Budget
) -> Predicate | None:
    restricted = dict.fromkeys(name for restriction in restrictions for name in restriction.names)
    columns = [name for name in scan.partition_columns if name in restricted] or list(restricted)
    return partition_predicate(restrictions, columns, budget, layout.costs)


def _of_parts(
    scan: PlannedScan,
    restrictions: Sequence[Restriction],
    index: FileIndex | None,
    partitions: Cover | None,
    limits: RewriteLimits,
) -> Iterator[tuple[Rule, RowGroupPredicate]]:
    """The conditions for buckets and for row groups, each column by itself."""
    chars_max = limits.predicate_chars_max
    for restriction in restrictions:
        text = bucket_predicate(scan.facts, restriction, chars_max) if scan.facts is not None else None
        if text is not None:
            yield Rule.BUCKETS, RowGroupPredicate(text, None)
    ranged = _told_by_files(scan, restrictions) if Rule.RANGE_IN not in limits.rules_off else []
    for restriction in ranged if index is not None else ():
        for name in filter(scan.has_files_by, restriction.names):
            asked = restriction.of_columns({name.lower()})
            # Hive's tables take no hint that names files. Row groups are skipped instead, perhaps all of a file's.
            for_files = scan.facts is not None and scan.facts.is_hive
            found = (
                row_group_predicate(asked, index, chars_max, partitions, for_files=for_files)
                if asked is not None
                else None
            )
            if found is not None:
                yield Rule.RANGE_IN, found


def _file_predicate(
    scan: PlannedScan,
    restrictions: Sequence[Restriction],
    partitions: Cover | None,
    index: FileIndex,
    chars_max: int,
) -> tuple[str, FileSelection]:
    """The hint that names files to skip, empty for none, and the files that it leaves of the partitions read."""
    asked = Cover.all()
    for restriction in restrictions:
        asked = _intersected(asked, _in_lower_case(restriction.cover))
    asked = _intersected(asked, scan.own_cover)
    columns = {name.lower() for name in scan.partition_columns}
    # The catalog decides which partition a file belongs to, and that may have changed: RENAME TO and SET LOCATION
    # leave the file unchanged. So files miss by their content, and partitions only decide which files to list.
    inside = {name for box in asked.boxes for name, _ in box.domains} - columns
    read = _in_lower_case(partitions) if partitions is not None else Cover.all()
    found = index.misses(_projected(asked, inside), _intersected(read, _projected(scan.own_cover, columns)))
    text, named = file_hint(found.misses, chars_max)
    if not spares_enough(sum(facts.size_bytes for facts in named), found.total_bytes):
        text, named = "", ()
    are_named = {facts.identity for facts in named}
    sizes = found.kept_sizes + tuple(f.size_bytes for f in found.misses if f.identity not in are_named)
    selection = replace(found, misses=named, kept=len(sizes), kept_bytes=sum(sizes), kept_sizes=sizes)
    changed = changed_assumptions(restrictions)
    changed += [text for text in _own_type_changes(scan) if text not in changed]
    return (f"({' OR '.join([text, *changed])})" if text else ""), selection


def _own_type_changes(scan: PlannedScan) -> list[str]:
    """Conditions that a column of the statement's own filters has another type: the filters may then keep more."""
    names = sorted({name for box in scan.own_cover.boxes for name, _ in box.domains})
    known = [scan.facts.column(name) for name in names] if scan.facts is not None else []
    return [type_changed(column) for column in known if column is not None]


def _intersected(one: Cover, other: Cover) -> Cover:
    """The rows of both, or of the first one alone if the intersection would take too long."""
    is_short = len(one.boxes) * len(other.boxes) <= _BOXES_INTERSECTED_MAX
    return one.intersection(other) if is_short else one


def _projected(cover: Cover, columns: AbstractSet[str]) -> Cover:
    """The cover with all other columns free to hold anything."""
    return Cover.of(Box(tuple(pair for pair in box.domains if pair[0] in columns)) for box in cover.boxes)


def _in_lower_case(cover: Cover) -> Cover:
    """The cover by the names of a table's columns in lower case, no two of which are then the same."""
    boxes = (Box.of({name.lower(): domain for name, domain in box.domains}) for box in cover.boxes)
    return Cover(tuple(box for box in boxes if box is not None))
