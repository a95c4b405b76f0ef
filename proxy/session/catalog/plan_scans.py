"""The scans of a statement as Spark plans them: EXPLAIN COST tells the partitions and bytes that are left of each.

`FileScan parquet d.sales[a#1] .. Location: InMemoryFileIndex(3 paths)[..]` has left out all partitions but three
while it was planned. `CatalogFileIndex` has left out none. A table in Hive's format has `Pruned
Partitions: [(ds=2026-01-01), (ds=2026-01-02)]`, cut after 25 of them. Source: FileSourceScanExec and
HiveTableRelation in Spark. Scans of other formats have no such number.

Delta's `PreparedDeltaFileIndex` has left out all files that it can, so its relation has the size of the rest.
Iceberg's sizes are guessed from numbers of rows. Its scans name the snapshot, and filters that leave out files:
`IcebergScan(table=ice.d.sales, schemaId=0, snapshotId=7, branch=null, filters=, ..)`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Final

from proxy.config.rewriting import CatalogSection
from proxy.operations.query import FailureKind, Query, QueryFailed, QueryResult, Rows
from proxy.session.catalog.table_sizes import size_in
from rewriter import TableName
from rewriter.sql.classify import COMMENT_OR_SPACE

_BYTES_MAX: Final = 4 * 1024 * 1024
# Physical plans of statements that hold another statement, of which they show the analyzed plan at most; and scans
# of files by their path and of a table's changes, which name no table.
_OPAQUE: Final = re.compile(
    r"^[ :+*()0-9-]*+(?:Execute (?!InsertInto)|CacheTable|Call\b|CommandResult\b|FileScan \w++ \["
    r"|(?:Atomic)?+(?:Create|Replace)TableAsSelect\b|Scan DeltaCDFRelation\b)",
    re.MULTILINE,
)
_SCAN: Final = re.compile(
    r"[ :+*()0-9-]*+(?:FileScan|BatchScan|Scan) (?:(?:parquet|orc|csv|json|avro|text|hive) )?+([^\s\[]++)"
)
_RELATION: Final = re.compile(r"[ :+*()0-9-]*+(?:Relation |HiveTableRelation \[)([^\s\[,]++)")
_CACHE: Final = re.compile(
    rf"(?:{COMMENT_OR_SPACE})*+CACHE\s++(?:LAZY\s++)?+TABLE\s++(?P<table>(?:`[^`]++`|[^\s`;]++)++)\s*+"
    r"(?:OPTIONS\s*+\([^)]*+\)\s*+)?+(?:AS\b)?+(?P<query>.*+)",
    re.IGNORECASE | re.DOTALL,
)
_LOCATION: Final = re.compile(
    r"Location: (InMemoryFileIndex|CatalogFileIndex|PreparedDeltaFileIndex)\((\d{1,9}) paths\)"
)
_FILTERS: Final = "PartitionFilters: ["
_ICEBERG: Final = re.compile(
    r"IcebergScan\(table=[^\s,()]++, schemaId=\d++, snapshotId=(\d{1,19}), branch=[^\s,()]++, filters=(, )?+"
)
_NO_FILTER: Final = re.compile(r"(?:isnotnull\([^()]*+\)|dynamicpruning.*+)?+$")
_HIVE: Final = re.compile(
    r"HiveTableRelation \[[^\[]*+\[[^\]]*+\], Partition Cols: \[[^\]]*+\](, Pruned Partitions: \[\()?+"
)
_MORE: Final = re.compile(r", \.\.\. (\d{1,9}) more fields$")


@dataclass(frozen=True)
class PlanScan:
    """A scan of a plan. `partitions` is None where none was left out, or where the plan does not tell."""

    table: TableName
    partitions: int | None
    is_known: bool = True
    # None where Iceberg may leave out files, by whichever columns.
    is_filtered: bool | None = False
    # Of all partitions that are left; None where Spark does not know them.
    size_bytes: int | None = None
    # Of Iceberg.
    snapshot_id: int | None = None


@dataclass(frozen=True)
class PlanScans:
    """The scans of a plan; `is_whole` is False where it does not show all that the statement reads."""

    scans: tuple[PlanScan, ...] = ()
    is_whole: bool = True


def plan_query(text: str, settings: CatalogSection) -> Query:
    """The statement whose answer `read_scans` reads. Spark runs no part of the text for it."""
    return Query(f"EXPLAIN COST {text}", 1, _BYTES_MAX, settings.query_deadline_s)


def planned_by(text: str) -> str:
    """The query of a CACHE TABLE, whose own plan does not show it; any other text as it is."""
    found = _CACHE.match(text)
    if found is None:
        return text
    return found["query"] or f"TABLE {found['table']}"


def was_refused(result: QueryResult) -> bool:
    """True if Spark cannot plan the statement, and so will not run it either."""
    return isinstance(result, QueryFailed) and result.kind is FailureKind.REJECTED


def read_scans(result: QueryResult) -> PlanScans | None:
    """The scans of a plan; None where there is no plan."""
    plan = str(result.rows[0][0]) if isinstance(result, Rows) and result.rows else ""
    optimized, heading, physical = plan.partition("== Physical Plan ==\n")
    if not heading:
        return None
    sizes: dict[TableName, list[int | None]] = defaultdict(list)
    for line in optimized.splitlines():
        relation = _RELATION.match(line)
        if relation is not None:
            sizes[_name(relation[1])].append(size_in(line))
    found = [scan for line in physical.splitlines() if (scan := _scan(line)) is not None]
    sized = (replace(scan, size_bytes=_largest(sizes.get(scan.table, []))) for scan in found)
    return PlanScans(tuple(sized), is_whole=_OPAQUE.search(physical) is None)


def _largest(sizes: list[int | None]) -> int | None:
    """The size of the largest scan of a table; None where that of one is not known."""
    known = [size for size in sizes if size is not None]
    return max(known) if known and len(known) == len(sizes) else None


def _name(text: str) -> TableName:
    return TableName(tuple(text.replace("`", "").split(".")))


def _scan(line: str) -> PlanScan | None:
    """The scan that a line shows. Literals of the statement may look like locations: the largest number counts.

    A literal with a line break can spell the end of a line: see "Ways past a limit" in docs/limits.md.
    """
    found = _SCAN.match(line)
    if found is None or found[1] in {"In-memory", "ExistingRDD", "OneRowRelation"} or _OPAQUE.match(line):
        return None
    table = _name(found[1])
    locations = _LOCATION.findall(line)
    if locations:
        # A literal in a filter on another column may spell more partition filters.
        filters = [part.partition("], PushedFilters")[0].split(", ") for part in line.split(_FILTERS)[1:]]
        is_filtered = bool(filters) and not any(all(map(_NO_FILTER.match, terms)) for terms in filters)
        has_all = any(kind != "InMemoryFileIndex" for kind, _ in locations)
        partitions = None if has_all else max(int(count) for _, count in locations)
        return PlanScan(table, partitions, is_filtered=is_filtered)
    iceberg = _ICEBERG.search(line)
    if iceberg is not None:
        return PlanScan(table, None, is_filtered=False if iceberg[2] else None, snapshot_id=int(iceberg[1]))
    at = line.find("HiveTableRelation [")
    relation = _HIVE.match(line, at) if at >= 0 else None
    if relation is None:
        return PlanScan(table, None, is_known=False)
    if relation[1] is None:
        return PlanScan(table, None)
    pruned = line[relation.end() :].partition("]]")[0]
    more = _MORE.search(pruned)
    return PlanScan(table, pruned.count("), (") + 1 + int(more[1] if more is not None else 0), is_filtered=True)
