"""Which tables of a plan could be narrowed, and what is known of their size: what the cost gate weighs."""

from __future__ import annotations

from collections.abc import Mapping

from proxy.asking import Asking
from proxy.gate import Fact
from rewriter import Plan, PlannedScan, Rewrite, TableName
from rewriter.partition_index import PartitionIndex

# By a filter of the statement's own Spark looks into each file's footer, and skips the row groups that it need not
# read. So a file that is skipped saves opening it, half a millisecond on a local disk, and to narrow a statement
# takes some 50 ms. Of a gigabyte footers do not tell everything, and then there is more to save than that.
_FILES_SPARED_MIN = 100
_BYTES_SPARED_MIN = 1_000_000_000


def has_own_filters_alone(planned: Plan) -> bool:
    """Whether no keys are asked for, since the statement itself says what it looks for.

    The cost gate weighs the time that asking takes. To list the files to skip takes milliseconds, and to fetch
    what the file index says of them is no matter of a single statement.
    """
    return not planned.key_queries and bool(planned.wants_files({}))


def spares_too_little(result: Rewrite) -> bool:
    """Whether the files that a statement's own filters skip are too few to make up for narrowing it."""
    misses = [facts for scan in result.scans if scan.files is not None for facts in scan.files.misses]
    return len(misses) < _FILES_SPARED_MIN and sum(facts.size_bytes for facts in misses) < _BYTES_SPARED_MIN


def narrowable(planned: Plan | None) -> dict[TableName, None]:
    """The facts that could be narrowed, in their order, with columns of their own that tell by what."""
    scans = planned.scans if planned is not None else ()
    return dict.fromkeys(scan.reference.name for scan in scans if _is_narrowable(scan))


def _is_narrowable(scan: PlannedScan) -> bool:
    facts = scan.facts
    if facts is None or not (scan.reducers or not scan.own.is_all):
        return False
    return bool(facts.partition_columns or facts.file_columns or facts.bucket_column)


def facts_of(planned: Plan, counted: Mapping[TableName, PartitionIndex], asking: Asking) -> tuple[Fact, ...]:
    """The facts that could be narrowed, and what is known of their size; some were counted just now."""
    return tuple(
        Fact(name.parts[-1], _partition_count(name, counted, asking), _size_bytes(name, asking))
        for name in narrowable(planned)
    )


def _partition_count(name: TableName, counted: Mapping[TableName, PartitionIndex], asking: Asking) -> int | None:
    facts = asking.described(name).facts
    if facts is not None and not facts.partition_columns:
        return 1
    return counted[name].count if name in counted else asking.partition_count(name)


def _size_bytes(name: TableName, asking: Asking) -> int | None:
    facts = asking.described(name).facts
    known = facts.size_bytes if facts is not None else None
    return known if known is not None else asking.indexed_bytes(name)
