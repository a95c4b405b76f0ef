"""The view of a decision for users: the JSON of POST /explain."""

from __future__ import annotations

from typing import Self

import msgspec

from proxy.limits.limits import Finding
from proxy.session.decision import NO_FACTS, Decision
from proxy.session.timings import Timings
from rewriter import (
    KeyQuery,
    KeyRangesQuery,
    Keys,
    KeySet,
    PartitionMatches,
    PartitionsQuery,
    Reducer,
    ScanOutcome,
    SkipReason,
)
from rewriter.partitions.index import PartitionIndex
from rewriter.partitions.pruning import kept_count
from rewriter.partitions.value_encoding import NotIndexableError


class ReducerView(msgspec.Struct):
    """A reducer of a fact scan. `keys` is the number of its distinct keys, null where they were not asked for.

    `asks_for` is "keys", "ranges" of too many keys, or "partitions": those of the list that match, where keys do
    not tell. Then `keys` is the number of partitions that match, `key_query` the query without the list.
    `keys_age_s` is the age of remembered keys, null where they were asked for now.
    """

    columns: list[str]
    join: str
    asks_for: str
    key_query: str
    keys: int | None
    keys_age_s: float | None


class CountView(msgspec.Struct):
    """The total and the number that the predicate keeps; null where unknown."""

    total: int | None = None
    kept: int | None = None


class SplitsView(msgspec.Struct):
    """The splits that Spark makes of the files that are left, and the number asked for; null where unknown."""

    before: int | None = None
    after: int | None = None

    @property
    def is_fewer(self) -> bool:
        """True if fewer splits are asked for than Spark makes."""
        return self.before is not None and self.after is not None and self.after < self.before


class NarrowingView(msgspec.Struct):
    """The predicate inserted for a scan, and the data left to be read; null for none, or unknown."""

    predicate: str | None
    exact: bool | None
    partitions: CountView
    files: CountView
    bytes: CountView
    splits: SplitsView
    # Row groups, or pages and stripes, of the files that are left: an estimate from their bounds.
    row_groups: CountView = msgspec.field(default_factory=CountView)


class IcebergView(msgspec.Struct):
    """An Iceberg table as it is now: its partitioning, and the number of files that list deleted rows.

    Files that were written before the partitioning was changed have another spec, and stay as they are. Numbers
    that are not known are null.
    """

    partitioned_by: list[str]
    partition_specs: int | None
    delete_files: int | None
    delete_bytes: int | None


class ScanView(msgspec.Struct):
    """A table reference and its narrowing. `skip_reason` is a stable code, `skip_sentence` its explanation.

    `cause` is what caused it in this statement, null where that is not known: a condition, a word, a name, types.
    `is_fact` is false for a reference that nobody expects to be narrowed: the name of a CTE, a table without
    partitions, or a view of such tables.
    Where the statement as a whole is left alone, nothing is narrowed, and `would` has the narrowing that it
    misses.
    """

    table: str
    alias: str
    reducers: list[ReducerView]
    predicate: str | None
    exact: bool | None
    partitions: CountView
    files: CountView
    bytes: CountView
    splits: SplitsView
    would: NarrowingView | None
    # Null where the table is not an Iceberg table, or cannot be narrowed.
    iceberg: IcebergView | None
    skip_reason: str | None
    skip_sentence: str | None
    cause: str | None
    is_fact: bool
    # Missing in a history that an earlier version wrote.
    row_groups: CountView = msgspec.field(default_factory=CountView)


class SnapshotView(msgspec.Struct):
    """An Iceberg table that keys are read from: the snapshot that the statement names too, or why none."""

    table: str
    snapshot_id: int | None = None
    skip_reason: str | None = None
    skip_sentence: str | None = None


class LimitView(msgspec.Struct):
    """A limit that a statement met, or would meet: what comes of it (a value of `Result`), and a sentence."""

    limit: str
    table: str
    result: str
    sentence: str

    @classmethod
    def of(cls, found: Finding) -> Self:
        """The finding as plain values."""
        return cls(found.limit, found.table, found.result.value, found.sentence)


class ExplainView(msgspec.Struct):
    """The answer of POST /explain. `timings_ms` has catalog, key_queries and total."""

    original: str
    rewritten: str
    changed: bool
    scans: list[ScanView]
    skip_reason: str | None
    skip_sentence: str | None
    # The cause in this statement; null where it is not known.
    cause: str | None
    # The runs of statements like this one that the cost gate has seen, in words; null where it was not asked.
    cost_report: str | None
    # Quarantined rules, and this statement's fingerprint where it is quarantined, in words.
    quarantined: list[str]
    # The Iceberg tables that keys are read from, and whether keys and statement are of one snapshot.
    snapshots: list[SnapshotView]
    timings_ms: dict[str, float]
    # The limits on what it reads that it would meet; with the original, where key queries are not run.
    limits: list[LimitView] = []


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
        cause=decision.cause,
        cost_report=decision.cost_report,
        quarantined=[one.sentence for one in decision.quarantined],
        snapshots=_snapshots(decision),
        timings_ms=_timings(decision.timings),
        limits=[LimitView.of(one) for one in decision.limits],
    )


def _snapshots(decision: Decision) -> list[SnapshotView]:
    pinned = [SnapshotView(str(name), one.snapshot_id) for name, one in decision.snapshots.items()]
    unpinned = [SnapshotView(str(name), None, why.name, why.sentence) for name, why in decision.unpinned.items()]
    return sorted([*pinned, *unpinned], key=lambda one: one.table)


def _scan(outcome: ScanOutcome, decision: Decision) -> ScanView:
    reference, found = outcome.scan.reference, _narrowing(outcome, decision)
    is_left = outcome.is_changed and not decision.is_narrowed
    skip, cause = (decision.skip, decision.cause) if is_left else (outcome.skip, _cause(outcome, decision))
    return ScanView(
        table=str(reference.name),
        alias=outcome.scan.alias,
        reducers=[
            _reducer(reducer, keys, decision.key_ages.get(reducer.key_query)) for reducer, keys in outcome.reducers
        ],
        **msgspec.structs.asdict(_not_done(found) if is_left else found),
        would=found if is_left else None,
        iceberg=_iceberg(outcome, decision),
        skip_reason=_code(skip),
        skip_sentence=_sentence(skip),
        cause=cause,
        is_fact=outcome.skip not in NO_FACTS,
    )


def _cause(outcome: ScanOutcome, decision: Decision) -> str | None:
    """The cause of a scan's reason, with the errors of its key queries, if those are the reason."""
    errors = (decision.key_errors.get(reducer.key_query) for reducer, _ in outcome.reducers)
    said = "; ".join(dict.fromkeys(filter(None, errors)))
    if outcome.skip not in _BY_ERROR or not said:
        return outcome.cause
    return said if outcome.cause is None else f"{outcome.cause}: {said}"


_BY_ERROR = frozenset({SkipReason.KEY_QUERY_FAILED, SkipReason.SCALAR_SUBQUERY_ROWS})


def _narrowing(outcome: ScanOutcome, decision: Decision) -> NarrowingView:
    files, row_groups, splits = outcome.files, outcome.row_groups, outcome.splits
    return NarrowingView(
        predicate=outcome.predicate,
        exact=outcome.exact,
        partitions=_partitions(outcome, decision),
        files=CountView(files.total, files.kept) if files is not None else CountView(),
        bytes=_bytes(outcome, decision),
        splits=SplitsView(splits.before, splits.after) if splits is not None else SplitsView(),
        row_groups=CountView(row_groups.total, row_groups.kept) if row_groups is not None else CountView(),
    )


def _bytes(outcome: ScanOutcome, decision: Decision) -> CountView:
    if outcome.files is not None:
        return CountView(outcome.files.total_bytes, outcome.files.kept_bytes)
    told = decision.delta_bytes.get((outcome.scan.reference.name, outcome.predicate or ""))
    return CountView(*told) if told is not None else CountView()


def _not_done(found: NarrowingView) -> NarrowingView:
    """The same without a predicate: all data is read."""
    counts = (found.partitions, found.files, found.bytes, found.row_groups)
    partitions, files, size, row_groups = (CountView(count.total) for count in counts)
    return NarrowingView(None, None, partitions, files, size, SplitsView(), row_groups)


def _iceberg(outcome: ScanOutcome, decision: Decision) -> IcebergView | None:
    facts, counts = outcome.scan.facts, decision.file_counts.get(outcome.scan.reference.name)
    if facts is None or facts.iceberg is None:
        return None
    partitioned_by = list(facts.iceberg.partitioning)
    if counts is None:
        return IcebergView(partitioned_by, None, None, None)
    return IcebergView(partitioned_by, counts.partition_specs, counts.delete_files, counts.delete_bytes)


def _reducer(reducer: Reducer, keys: Keys | None, age_s: float | None) -> ReducerView:
    asked = _asked_first(reducer.key_query)
    age_s = round(age_s, 1) if age_s is not None else None
    return ReducerView(
        list(reducer.columns), reducer.join, _asks_for(reducer.key_query), asked, _count(keys), age_s
    )


def _asks_for(question: KeyQuery) -> str:
    if isinstance(question, PartitionsQuery):
        return "partitions"
    return "ranges" if isinstance(question, KeyRangesQuery) else "keys"


def _asked_first(question: KeyQuery) -> str:
    """The form of a key query that is sent unless its answer is known to be too long, without a list in it."""
    if isinstance(question, PartitionsQuery):
        return question.outline
    return question.sql_with_repeats or question.sql


def _count(keys: Keys | None) -> int | None:
    if isinstance(keys, PartitionMatches):
        return len(keys.matching)
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
    return kept_count(index, outcome.covers) if outcome.cover is not None else None


def _code(reason: SkipReason | None) -> str | None:
    return reason.name if reason is not None else None


def _sentence(reason: SkipReason | None) -> str | None:
    return reason.sentence if reason is not None else None


def _timings(timings: Timings) -> dict[str, float]:
    catalog_s = timings.catalog_s + timings.files_s
    seconds = {"catalog": catalog_s, "key_queries": timings.key_queries_s, "total": timings.total_s}
    return {name: round(value * 1000, 1) for name, value in seconds.items()}
