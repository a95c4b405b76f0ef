"""An explanation as text: what `starpruner explain` and EXPLAIN REWRITE show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from proxy.session.explain.summary import because, megabytes, scan_name, summary
from proxy.session.explain.view import ExplainView, IcebergView, NarrowingView, ReducerView, ScanView, SnapshotView


def text(explained: ExplainView) -> str:
    """The view as lines for a terminal: the result, and behind it the steps."""
    changed = "Rewritten:" if explained.changed else "Left as it is:"
    lines = [*summary(explained), "", changed, f"  {without_files(explained.rewritten)}"]
    if explained.skip_sentence is not None:
        lines.append(f"  {explained.skip_sentence}")
    if explained.cause is not None:
        lines.append(f"  Cause: {explained.cause}")
    if explained.cost_report is not None:
        lines.append(f"  {explained.cost_report}")
    lines += [f"  {sentence}" for sentence in explained.quarantined]
    lines += [f"  Limit {one.limit}, {one.result.replace('_', ' ')}: {one.sentence}" for one in explained.limits]
    lines += [f"  {_snapshot_line(one)}" for one in explained.snapshots]
    for scan in explained.scans:
        if scan.is_fact:
            lines += ["", *_scan_lines(scan)]
    others = [scan for scan in explained.scans if not scan.is_fact]
    if others:
        lines += ["", "No facts:", *(f"  {scan_name(scan)}: {because(scan)}" for scan in others)]
    timings = ", ".join(f"{name.replace('_', ' ')} {ms:g} ms" for name, ms in explained.timings_ms.items())
    return "\n".join([*lines, "", f"Time: {timings}"])


def _snapshot_line(one: SnapshotView) -> str:
    if one.snapshot_id is None:
        return f"{one.table} is not read at a snapshot. {one.skip_sentence}"
    return f"Keys of {one.table} are those of snapshot {one.snapshot_id}."


def _scan_lines(scan: ScanView) -> list[str]:
    lines = [f"Scan of {scan_name(scan)}"]
    for reducer in scan.reducers:
        lines += [
            f"  reduced by   {reducer.join}",
            f"  key query    {reducer.key_query}",
            f"  {_answered(reducer):<12} {_known(reducer.keys)}{_aged(reducer.keys_age_s)}",
        ]
    if scan.would is None:
        lines += _narrowing_lines(scan, "predicate", "kept")
    lines += _iceberg_lines(scan.iceberg) if scan.iceberg is not None else []
    if scan.skip_sentence is not None:
        # For a scan that has only fewer splits, it is the reason why there is no predicate.
        lines.append(f"  {'not narrowed' if scan.splits.is_fewer else 'left alone  '} {scan.skip_sentence}")
    if scan.cause is not None:
        lines.append(f"  cause        {scan.cause}")
    if scan.would is not None:
        lines += _narrowing_lines(scan.would, "would insert", "would be kept")
    return lines


def _answered(reducer: ReducerView) -> str:
    return "matching" if reducer.asks_for == "partitions" else "keys"


def _narrowing_lines(found: ScanView | NarrowingView, inserted: str, kept: str) -> Iterator[str]:
    """The predicate that is inserted, and the partitions, files, row groups and splits that it leaves.

    Of a Delta table the bytes alone are known.
    """
    if found.predicate is not None:
        yield f"  {inserted:13}{without_files(found.predicate)}"
    if found.partitions.total is not None:
        yield f"  partitions   {_known(found.partitions.kept)} of {found.partitions.total} {kept}"
    if found.files.total is not None:
        sizes = f"{megabytes(found.bytes.kept)} of {megabytes(found.bytes.total)}"
        yield f"  files        {_known(found.files.kept)} of {found.files.total} {kept}, {sizes}"
    elif found.bytes.total is not None:
        yield f"  bytes        {megabytes(found.bytes.kept)} of {megabytes(found.bytes.total)} {kept}"
    if found.row_groups.total is not None:
        left = f"{_known(found.row_groups.kept)} of {found.row_groups.total} {kept}"
        yield f"  row groups   {left}, or pages, of these files"
    if found.splits.before is not None:
        yield f"  splits       {found.splits.before} before, {_known(found.splits.after)} after"


def _iceberg_lines(known: IcebergView) -> Iterator[str]:
    """The properties of an Iceberg table that are out of the ordinary."""
    if known.partition_specs is not None and known.partition_specs > 1:
        now = ", ".join(known.partitioned_by) or "nothing"
        yield f"  partitioning by {now} now; files of {known.partition_specs} partition specs"
    if known.delete_files:
        yield f"  deletes      {known.delete_files} files, {megabytes(known.delete_bytes)}, of the whole table"


# The list of a file hint (`rewriter.files.file_hint`): literals behind a comparison with parts of `_metadata`.
_LITERAL = r"(?:'[^']*'|CAST\(X'[0-9A-F]*' AS STRING\)|-?[0-9]+L?)"
_COMPARED = r"(_metadata\.file_size|_metadata\.file_modification_time\)|AS STRING\)\))"
_LISTED = re.compile(rf"{_COMPARED} NOT IN \(({_LITERAL}(?:, {_LITERAL})*)\)")
_A_LITERAL = re.compile(_LITERAL)


def without_files(sql: str) -> str:
    """The text with the number of the files that it skips in the place of their list, which may be megabytes."""
    return _LISTED.sub(_counted, sql)


def _counted(found: re.Match[str]) -> str:
    return f"{found[1]} NOT IN (.. {sum(1 for _ in _A_LITERAL.finditer(found[2]))} ..)"


def _aged(age_s: float | None) -> str:
    return "" if age_s is None else f", read {age_s:g} s before"


def _known(count: Any) -> str:
    return "unknown" if count is None else str(count)
