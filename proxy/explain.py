"""A decision as the user sees it: the JSON of POST /explain and the text of `starpruner explain`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from proxy.decision import Decision
from proxy.timings import Timings
from rewriter import Keys, KeySet, Question, Reducer, ScanOutcome, SkipReason
from rewriter.partition_index import PartitionIndex
from rewriter.partition_values import NotIndexableError
from rewriter.partitions import kept


class ReducerView(msgspec.Struct):
    """What shrinks a fact scan. `keys` is how many distinct keys were found, null where nobody asked.

    `keys_age_s` is how old they were where they had not to be asked for, null where they had.
    """

    columns: list[str]
    join: str
    key_query: str
    keys: int | None
    keys_age_s: float | None


class CountView(msgspec.Struct):
    """How many there are and how many the predicate keeps; null where that is not known."""

    total: int | None = None
    kept: int | None = None


class SplitsView(msgspec.Struct):
    """The splits that Spark makes of the files that are left, and what it is asked for; null where not known."""

    before: int | None = None
    after: int | None = None


class IcebergView(msgspec.Struct):
    """An Iceberg table as it is now: what it is partitioned by, and how many files say which rows are deleted.

    Files that were written before the partitioning was changed are of another spec, and stay as they are. What
    could not be counted is null.
    """

    partitioned_by: list[str]
    partition_specs: int | None
    delete_files: int | None
    delete_bytes: int | None


class ScanView(msgspec.Struct):
    """A table reference and what was done to it. `skip_reason` is a stable code, `skip_sentence` says why."""

    table: str
    alias: str
    reducers: list[ReducerView]
    predicate: str | None
    exact: bool | None
    partitions: CountView
    files: CountView
    bytes: CountView
    splits: SplitsView
    # Null of what is no Iceberg table, or cannot be narrowed.
    iceberg: IcebergView | None
    skip_reason: str | None
    skip_sentence: str | None


class SnapshotView(msgspec.Struct):
    """An Iceberg table that keys are read from: at the snapshot that the statement names too, or why at none."""

    table: str
    snapshot_id: int | None = None
    skip_reason: str | None = None
    skip_sentence: str | None = None


class ExplainView(msgspec.Struct):
    """The answer of POST /explain. `timings_ms` has catalog, key_queries and total."""

    original: str
    rewritten: str
    changed: bool
    scans: list[ScanView]
    skip_reason: str | None
    skip_sentence: str | None
    # What the cost gate knows of statements like this one, in words; null where it was not asked.
    reckoning: str | None
    # What is put aside for a while, of this statement and of the rules, in words.
    put_aside: list[str]
    # The Iceberg tables that keys are read from, and whether keys and statement are of one snapshot.
    snapshots: list[SnapshotView]
    timings_ms: dict[str, float]


def view(decision: Decision) -> ExplainView:
    """The decision as plain values."""
    outcomes = decision.rewrite.scans if decision.rewrite is not None else ()
    return ExplainView(
        original=decision.original,
        rewritten=decision.text,
        changed=decision.text != decision.original,
        scans=[_scan(outcome, decision) for outcome in outcomes],
        skip_reason=_code(decision.skip),
        skip_sentence=_sentence(decision.skip),
        reckoning=decision.opinion.reckoning.sentence if decision.opinion is not None else None,
        put_aside=[one.sentence for one in decision.put_aside],
        snapshots=_snapshots(decision),
        timings_ms=_timings(decision.timings),
    )


def _snapshots(decision: Decision) -> list[SnapshotView]:
    pinned = [SnapshotView(str(name), one.snapshot_id) for name, one in decision.reads.items()]
    unpinned = [SnapshotView(str(name), None, why.name, why.sentence) for name, why in decision.unpinned.items()]
    return sorted([*pinned, *unpinned], key=lambda one: one.table)


def _scan(outcome: ScanOutcome, decision: Decision) -> ScanView:
    reference, files, splits = outcome.scan.reference, outcome.files, outcome.splits
    return ScanView(
        table=str(reference.name),
        alias=outcome.scan.alias,
        reducers=[
            _reducer(reducer, keys, decision.key_ages.get(reducer.key_query)) for reducer, keys in outcome.reducers
        ],
        predicate=outcome.predicate,
        exact=outcome.exact,
        partitions=_partitions(outcome, decision),
        files=CountView(files.total, files.kept) if files is not None else CountView(),
        bytes=CountView(files.total_bytes, files.kept_bytes) if files is not None else CountView(),
        splits=SplitsView(splits.before, splits.after) if splits is not None else SplitsView(),
        iceberg=_iceberg(outcome, decision),
        skip_reason=_code(outcome.skip),
        skip_sentence=_sentence(outcome.skip),
    )


def _iceberg(outcome: ScanOutcome, decision: Decision) -> IcebergView | None:
    facts, counts = outcome.scan.facts, decision.counts.get(outcome.scan.reference.name)
    if facts is None or facts.iceberg is None:
        return None
    partitioned_by = list(facts.iceberg.partitioning)
    if counts is None:
        return IcebergView(partitioned_by, None, None, None)
    return IcebergView(partitioned_by, counts.partition_specs, counts.delete_files, counts.delete_bytes)


def _reducer(reducer: Reducer, keys: Keys | None, age_s: float | None) -> ReducerView:
    asked = _asked_first(reducer.key_query)
    age_s = round(age_s, 1) if age_s is not None else None
    return ReducerView(list(reducer.columns), reducer.join, asked, _count(keys), age_s)


def _asked_first(question: Question) -> str:
    """The form that is asked unless its answer is known to be too long."""
    return question.repeating or question.sql


def _count(keys: Keys | None) -> int | None:
    return len(keys.rows) if isinstance(keys, KeySet) else None


def _partitions(outcome: ScanOutcome, decision: Decision) -> CountView:
    index = decision.partitions.get(outcome.scan.reference.name)
    if index is None:
        return CountView()
    try:
        return CountView(index.count, _kept(outcome, index))
    except NotIndexableError:
        return CountView(index.count)


def _kept(outcome: ScanOutcome, index: PartitionIndex) -> int | None:
    if outcome.cover is None:
        return None
    exact = [keys.cover(columns) for columns, keys in outcome.narrowed_by]
    return kept(index, exact if outcome.exact else [outcome.cover])


def _code(reason: SkipReason | None) -> str | None:
    return reason.name if reason is not None else None


def _sentence(reason: SkipReason | None) -> str | None:
    return reason.sentence if reason is not None else None


def _timings(timings: Timings) -> dict[str, float]:
    catalog_s = timings.catalog_s + timings.files_s
    seconds = {"catalog": catalog_s, "key_queries": timings.key_queries_s, "total": timings.total_s}
    return {name: round(value * 1000, 1) for name, value in seconds.items()}


def text(explained: ExplainView) -> str:
    """The view as lines for a terminal."""
    changed = "Rewritten:" if explained.changed else "Left as it is:"
    lines = [changed, f"  {_without_files(explained.rewritten)}"]
    if explained.skip_sentence is not None:
        lines.append(f"  {explained.skip_sentence}")
    if explained.reckoning is not None:
        lines.append(f"  {explained.reckoning}")
    lines += [f"  {sentence}" for sentence in explained.put_aside]
    lines += [f"  {_snapshot_line(one)}" for one in explained.snapshots]
    for scan in explained.scans:
        lines += ["", *_scan_lines(scan)]
    timings = ", ".join(f"{name.replace('_', ' ')} {ms:g} ms" for name, ms in explained.timings_ms.items())
    return "\n".join([*lines, "", f"Time: {timings}"])


def _snapshot_line(one: SnapshotView) -> str:
    if one.snapshot_id is None:
        return f"{one.table} is not read at a snapshot. {one.skip_sentence}"
    return f"Keys of {one.table} are those of snapshot {one.snapshot_id}."


def _scan_lines(scan: ScanView) -> list[str]:
    name = scan.table if scan.alias == scan.table else f"{scan.table} AS {scan.alias}"
    lines = [f"Scan of {name}"]
    for reducer in scan.reducers:
        lines += [
            f"  reduced by   {reducer.join}",
            f"  key query    {reducer.key_query}",
            f"  keys         {_known(reducer.keys)}{_aged(reducer.keys_age_s)}",
        ]
    if scan.predicate is not None:
        lines.append(f"  predicate    {_without_files(scan.predicate)}")
    if scan.partitions.total is not None:
        lines.append(f"  partitions   {_known(scan.partitions.kept)} of {scan.partitions.total} kept")
    if scan.files.total is not None:
        sizes = f"{_megabytes(scan.bytes.kept)} of {_megabytes(scan.bytes.total)}"
        lines.append(f"  files        {_known(scan.files.kept)} of {scan.files.total} kept, {sizes}")
    lines += _iceberg_lines(scan.iceberg) if scan.iceberg is not None else []
    if scan.splits.before is not None:
        lines.append(f"  splits       {scan.splits.before} before, {_known(scan.splits.after)} after")
    if scan.skip_sentence is not None:
        lines.append(f"  left alone   {scan.skip_sentence}")
    return lines


def _iceberg_lines(known: IcebergView) -> Iterator[str]:
    """What of an Iceberg table is out of the ordinary."""
    if known.partition_specs is not None and known.partition_specs > 1:
        now = ", ".join(known.partitioned_by) or "nothing"
        yield f"  partitioning by {now} now; files of {known.partition_specs} partition specs"
    if known.delete_files:
        yield f"  deletes      {known.delete_files} files, {_megabytes(known.delete_bytes)}, of the whole table"


# What a file hint lists (`rewriter.file_hint`): literals behind a comparison with parts of `_metadata`.
_LITERAL = r"(?:'[^']*'|CAST\(X'[0-9A-F]*' AS STRING\)|-?[0-9]+L?)"
_COMPARED = r"(_metadata\.file_size|_metadata\.file_modification_time\)|AS STRING\)\))"
_LISTED = re.compile(rf"{_COMPARED} NOT IN \(({_LITERAL}(?:, {_LITERAL})*)\)")
_A_LITERAL = re.compile(_LITERAL)


def _without_files(sql: str) -> str:
    """The text with how many files it skips in the place of what they are known by, which may be megabytes."""
    return _LISTED.sub(_counted, sql)


def _counted(found: re.Match[str]) -> str:
    return f"{found[1]} NOT IN (.. {sum(1 for _ in _A_LITERAL.finditer(found[2]))} ..)"


def _megabytes(size: int | None) -> str:
    return "unknown" if size is None else f"{size / 1e6:,.1f} MB"


def _aged(age_s: float | None) -> str:
    return "" if age_s is None else f", read {age_s:g} s before"


def _known(count: Any) -> str:
    return "unknown" if count is None else str(count)
