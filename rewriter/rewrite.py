"""Rewriting of a planned statement: the predicates from the keys, inserted into the client's own text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rewriter.domains.consumers import left_beside
from rewriter.domains.cover import Cover
from rewriter.domains.gap_costs import Costs
from rewriter.domains.keys import Keys
from rewriter.domains.keyset import KeySet
from rewriter.domains.literals import UnreadableKeyError
from rewriter.files.file_index import FileIndex, FileSelection
from rewriter.files.row_groups import RowGroupCount
from rewriter.plan import FEW_KEYS, KeyAnswer, Plan, effective_reducers, key_count
from rewriter.predicates.inserted_total import (
    CHARS_WRITTEN_MAX,
    KEYS_WRITTEN_MAX,
    Insertions,
    share,
    spared_bytes,
    values_in,
    within_totals,
)
from rewriter.predicates.merge_clause import check_of_row, message
from rewriter.predicates.metastore_filter import can_name, may_reach_cast
from rewriter.predicates.named_columns import of_table
from rewriter.predicates.partition_predicate import Budget
from rewriter.predicates.predicate import Restriction, metastore_can_compare_all
from rewriter.predicates.scan_predicate import TableLayout, scan_predicate
from rewriter.predicates.splice import CheckClause, FurtherConjunct, Insertion, Narrowing, rewritten_text
from rewriter.semijoins.limits import RewriteLimits
from rewriter.semijoins.planned_scan import PlannedScan
from rewriter.semijoins.reducer import KeyQuery, Reducer
from rewriter.splits.fewer_splits import fewer_splits
from rewriter.splits.packing import Grouping, SplitHints
from rewriter.sql.statement import Statement
from rewriter.vocabulary.cited import cited, listed
from rewriter.vocabulary.identifiers import Column, TableName
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import Refusal, SkipReason

# The distribution of a table's partitions, by its columns' names.
PartitionLayouts: TypeAlias = Mapping[TableName, Mapping[str, Costs]]

# The indexes of tables' files.
FileIndexes: TypeAlias = Mapping[TableName, FileIndex]


@dataclass(frozen=True)
class ScanOutcome:
    """The outcome of one scan: its predicate and parts of it, or the reason why it was skipped."""

    scan: PlannedScan
    predicate: str | None = None
    exact: bool | None = None
    # The rows that the predicate lets through, or more if it is exact.
    cover: Cover | None = None
    skip: SkipReason | None = None
    # The cause of the reason in the statement, for the user; None if it is not known.
    cause: str | None = None
    # For a MERGE's target, the check that fails the statement for a key that was not asked for.
    check: str | None = None
    # The reducers whose queries were used, and the keys of each; None if they are not known.
    reducers: tuple[tuple[Reducer, Keys | None], ...] = ()
    # The files that the file index leaves of the partitions that are read; None without an index.
    files: FileSelection | None = None
    # The row groups that the predicate leaves of these files; None if they are not known.
    row_groups: RowGroupCount | None = None
    # The rules for files, row groups and buckets by which the scan was narrowed.
    parts: frozenset[Rule] = frozenset()
    # The number of splits it is read in; None if that is not known, or left to Spark.
    splits: Grouping | None = None
    # True if the metastore is sent a part of the predicate.
    is_sent_to_metastore: bool = False

    @property
    def is_grouped(self) -> bool:
        """True if the scan is read in fewer splits, and not narrowed."""
        return self.predicate is None and self.splits is not None and self.splits.hint is not None

    @property
    def is_changed(self) -> bool:
        """True if anything is inserted: a predicate, a hint, or both."""
        return self.predicate is not None or self.is_grouped

    @property
    def narrowed_by(self) -> tuple[tuple[tuple[str, ...], Keys], ...]:
        """The columns that the predicate restricts, with the keys that they are restricted to together."""
        if self.predicate is None:
            return ()
        return tuple((reducer.columns, keys) for reducer, keys in self.reducers if keys is not None)

    @property
    def covers(self) -> tuple[Cover, ...]:
        """The covers that a partition has to meet, each of them, to be read by the predicate; none without one."""
        if self.cover is None:
            return ()
        return tuple(keys.cover(names) for names, keys in self.narrowed_by) if self.exact else (self.cover,)

    @property
    def rules(self) -> frozenset[Rule]:
        """The rules by which the scan was changed; none if it was not."""
        used = (reducer.rules for reducer, keys in self.reducers if keys is not None)
        return self.parts.union(*used) if self.predicate is not None else self.parts


@dataclass(frozen=True)
class Rewrite:
    """The text to send, and the outcome of each scan. `text` is the original unless a scan was changed."""

    text: str
    scans: tuple[ScanOutcome, ...]
    skip: SkipReason | None = None
    # The message with which the check of a narrowed MERGE fails it for a key not asked for; empty without a check.
    check_failure: str = ""

    @property
    def rules(self) -> frozenset[Rule]:
        """The rules by which the statement's scans were changed."""
        return frozenset().union(*(outcome.rules for outcome in self.scans))

    @property
    def tables(self) -> frozenset[TableName]:
        """The tables whose scans were changed, by the names that all sessions know them by."""
        changed = (outcome.scan.table for outcome in self.scans if outcome.is_changed)
        return frozenset(table for table in changed if table is not None)

    @property
    def is_narrowed(self) -> bool:
        """True if a scan has a predicate, and not fewer splits alone."""
        return any(outcome.predicate is not None for outcome in self.scans)

    @property
    def is_changed(self) -> bool:
        """True if anything is inserted."""
        return self.skip is None and any(outcome.is_changed for outcome in self.scans)

    @property
    def tables_sent_to_metastore(self) -> frozenset[TableName]:
        """The tables for which Spark sends the metastore a filter."""
        sent = (outcome.scan.table for outcome in self.scans if outcome.is_sent_to_metastore)
        return frozenset(table for table in sent if table is not None)


def apply(  # noqa: PLR0913 - what is known of tables comes from several places
    plan: Plan,
    answers: Mapping[KeyQuery, KeyAnswer],
    limits: RewriteLimits,
    partitions: PartitionLayouts | None = None,
    files: FileIndexes | None = None,
    *,
    split_hints: SplitHints | None = None,
) -> Rewrite:
    """Insert the predicates that the keys give. A key query without an answer narrows nothing.

    `files` are the indexes of the tables that the plan wants, as far as they are at hand. Without `split_hints`
    the number of splits is left to Spark.
    """
    if plan.skip is not None:
        return Rewrite(plan.statement.original, (), plan.skip)
    partitions, files, hints = partitions or {}, files or {}, split_hints or SplitHints({})
    packings = {n: hints.packings[n] for n in plan.wants_packings(answers) if n in hints.packings}
    layouts = {
        name: TableLayout(partitions.get(name, {}), files.get(name), wants_files=name in packings)
        for name in {scan.reference.name for scan in plan.scans}
    }
    narrowed = _outcomes(plan, answers, limits, layouts)
    grouped = _in_fewer_splits(narrowed, files, replace(hints, packings=packings), limits)
    outcomes = _within_totals(plan, grouped, limits, layouts)
    if _has_scalar_subquery_error(answers):
        return _original(plan, outcomes, SkipReason.SCALAR_SUBQUERY_ROWS)
    changed = (outcome for outcome in outcomes if outcome.is_changed)
    narrowings = [inserted for outcome in changed for inserted in _inserted(plan.statement, outcome)]
    if not narrowings:
        return Rewrite(plan.statement.original, outcomes)
    text = rewritten_text(plan.statement, narrowings)
    if text is None:
        return Rewrite(plan.statement.original, outcomes, SkipReason.NOT_VERIFIED)
    is_checked = any(outcome.check is not None for outcome in outcomes)
    return Rewrite(text, outcomes, check_failure=message(limits.check_word) if is_checked else "")


def _has_scalar_subquery_error(answers: Mapping[KeyQuery, KeyAnswer]) -> bool:
    """True if the statement fails in Spark. Narrowed by other keys, it might not run the subquery that fails."""
    return SkipReason.SCALAR_SUBQUERY_ROWS in answers.values()


def _original(plan: Plan, outcomes: Sequence[ScanOutcome], reason: SkipReason) -> Rewrite:
    """The original, whatever its scans could be narrowed by."""
    left = (
        ScanOutcome(found.scan, skip=found.skip or reason, cause=found.cause, reducers=found.reducers)
        for found in outcomes
    )
    return Rewrite(plan.statement.original, tuple(left), reason)


def _outcomes(
    plan: Plan,
    answers: Mapping[KeyQuery, KeyAnswer],
    limits: RewriteLimits,
    layouts: Mapping[TableName, TableLayout],
) -> tuple[ScanOutcome, ...]:
    """The outcome of each scan by itself; scans that are alike get the same one."""
    found: dict[tuple[object, ...], ScanOutcome] = {}
    kinds = [_alike(scan) for scan in plan.scans]
    counts = Counter(kinds)
    first = dict(zip(reversed(kinds), reversed(plan.scans), strict=True))
    keys_left, chars_left = KEYS_WRITTEN_MAX, CHARS_WRITTEN_MAX
    for alike, scan in sorted(first.items(), key=lambda pair: -_size_bytes(pair[1])):
        answered = (answers.get(reducer.key_query) for reducer in effective_reducers(scan, answers))
        keys_left -= sum(map(key_count, answered))
        if keys_left < 0 or chars_left < 0:
            # It gets no hint either.
            left = replace(scan, grouped_within=None)
            found[alike] = ScanOutcome(left, skip=scan.skip or SkipReason.INSERTED_TOO_MUCH, cause=scan.cause)
            continue
        own = share(limits, counts[alike])
        outcome = _narrowed(plan, scan, answers, own, layouts[scan.reference.name])
        if outcome.skip is SkipReason.PREDICATE_TOO_LARGE and own.predicate_chars_max < limits.predicate_chars_max:
            outcome = replace(outcome, skip=SkipReason.INSERTED_TOO_MUCH)
        found[alike] = outcome
        chars_left -= _chars(plan.statement, outcome)
    return tuple(
        replace(found[kind], scan=scan) if counts[kind] > 1 else found[kind]
        for kind, scan in zip(kinds, plan.scans, strict=True)
    )


def _in_fewer_splits(
    outcomes: Sequence[ScanOutcome], files: FileIndexes, hints: SplitHints, limits: RewriteLimits
) -> tuple[ScanOutcome, ...]:
    """The outcomes with the numbers of splits that their scans are read in."""
    read = [(one.scan, one.scan.grouped_within if one.predicate is None else one.files) for one in outcomes]
    found = zip(outcomes, fewer_splits(read, files, hints, limits), strict=True)
    hinted = frozenset({Rule.SPLITS})
    return tuple(
        replace(one, splits=splits, parts=one.parts | hinted if splits and splits.hint else one.parts)
        for one, splits in found
    )


def _size_bytes(scan: PlannedScan) -> int:
    return (scan.facts.size_bytes or 0) if scan.facts is not None else 0


def _alike(scan: PlannedScan) -> tuple[object, ...]:
    """All that decides what a scan gets. Facts are one object for all scans of a table."""
    if not scan.reducers and scan.own_cover.is_all:
        return (id(scan),)
    is_conjunct = scan.conjunct_start is not None
    by = (scan.reference.name, id(scan.facts), scan.reducers, scan.own_cover, is_conjunct)
    return (*by, scan.skip, scan.cause)


def _chars(statement: Statement, outcome: ScanOutcome) -> int:
    """The characters that are inserted for a scan."""
    if not outcome.is_changed:
        return 0
    return sum(len(inserted.before) + len(inserted.after) for inserted in _inserted(statement, outcome))


def _within_totals(
    plan: Plan,
    outcomes: tuple[ScanOutcome, ...],
    limits: RewriteLimits,
    layouts: Mapping[TableName, TableLayout],
) -> tuple[ScanOutcome, ...]:
    """The outcomes, without insertions that would be too much together. Scans that are alike stay so."""
    groups: dict[tuple[object, ...], list[ScanOutcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.is_changed:
            groups[_inserted_alike(outcome)].append(outcome)
    found = [_insertions(plan, alike, layouts[alike[0].scan.reference.name]) for alike in groups.values()]
    kept = within_totals(found, limits.inserted_chars_max, limits.inserted_values_max)
    if all(kept):
        return outcomes
    is_kept = dict(zip(groups, kept, strict=True))
    return tuple(
        outcome
        if not outcome.is_changed or is_kept[_inserted_alike(outcome)]
        else ScanOutcome(outcome.scan, skip=SkipReason.INSERTED_TOO_MUCH, reducers=outcome.reducers)
        for outcome in outcomes
    )


def _inserted_alike(outcome: ScanOutcome) -> tuple[object, ...]:
    hint = outcome.splits.hint if outcome.splits is not None else None
    return outcome.scan.reference.name, outcome.predicate, outcome.check, hint


def _insertions(plan: Plan, alike: Sequence[ScanOutcome], layout: TableLayout) -> Insertions:
    """Sum up the insertions of scans that are alike."""
    first = alike[0]
    values = values_in(first.predicate or "") + values_in(first.check or "")
    size_bytes = first.scan.facts.size_bytes if first.scan.facts is not None else None
    files = first.files
    spared = (
        spared_bytes(size_bytes, first.cover, layout.costs)
        if files is None
        else float(files.total_bytes - files.kept_bytes)
    )
    chars = sum(_chars(plan.statement, outcome) for outcome in alike)
    return Insertions(chars, values * len(alike), spared * len(alike))


def _narrowed(
    plan: Plan,
    scan: PlannedScan,
    answers: Mapping[KeyQuery, KeyAnswer],
    limits: RewriteLimits,
    layout: TableLayout,
) -> ScanOutcome:
    """Narrow a scan by the reducers that have an answer."""
    skip, cause = scan.skip, scan.cause
    if scan.conjunct_start is not None:
        # A hint needs a scan around the table; here the predicate goes before a conjunct.
        layout = TableLayout(layout.costs, None)
    reducers: list[tuple[Reducer, Keys | None]] = []
    for reducer in effective_reducers(scan, answers):
        answer = _usable(reducer, answers.get(reducer.key_query, SkipReason.KEYS_NOT_ASKED))
        if not _can_be_checked(scan, reducer):
            answer = SkipReason.MERGE_UNCHECKED
        if isinstance(answer, SkipReason):
            skip, cause = answer, _cause_of_answer(reducer, answer)
        reducers.append((reducer, None if isinstance(answer, SkipReason) else answer))
    restrictions = [_restriction(reducer, keys) for reducer, keys in reducers if keys is not None]
    if not restrictions and (scan.own_cover.is_all or (reducers and layout.index is None)):
        return ScanOutcome(scan, skip=skip, cause=cause, reducers=tuple(reducers))
    try:
        budget = _budget(plan, scan, restrictions, limits)
        inserted = scan_predicate(scan, restrictions, layout, budget, limits)
    except UnreadableKeyError:
        return ScanOutcome(scan, skip=SkipReason.UNREADABLE_KEY, reducers=tuple(reducers))
    if isinstance(inserted, SkipReason):
        return ScanOutcome(scan, skip=inserted, reducers=tuple(reducers))
    check = None
    if scan.merge_check is not None:
        if inserted.cover is None or inserted.cover.is_none:
            # FALSE would lack the check of types, and Spark cannot plan some MERGEs with it.
            cause = "the source had no key when it was asked"
            return ScanOutcome(scan, skip=SkipReason.MERGE_UNCHECKED, cause=cause, reducers=tuple(reducers))
        used = [reducer for reducer, keys in reducers if keys is not None]
        check = check_of_row(used, inserted.cover, scan.merge_check, limits.check_word)
    return ScanOutcome(
        scan,
        predicate=inserted.sql,
        exact=inserted.exact,
        cover=inserted.cover,
        check=check,
        reducers=tuple(reducers),
        files=inserted.files,
        row_groups=inserted.row_groups,
        parts=inserted.rules,
        is_sent_to_metastore=inserted.is_sent_to_metastore,
    )


def _cause_of_answer(reducer: Reducer, answer: SkipReason) -> str:
    """The condition that a key query was made of, and what keeps keys of another type from being used."""
    cause = cited(reducer.join)
    if answer is SkipReason.KEY_TYPE_CHANGED:
        types = listed(column.type_name for column in reducer.key_query.columns)
        cause = f"{cause}: {listed(reducer.columns)} is of type {types}, and Spark would cast it or the key"
        if isinstance(reducer.if_types_differ, Refusal):
            refusal = reducer.if_types_differ
            cause = f"{cause}. Its partitions were not asked about: {refusal.cause or refusal.reason.sentence}"
    return cause


def _can_be_checked(scan: PlannedScan, reducer: Reducer) -> bool:
    """True unless it is a MERGE's target, and ON compares a column in a way that the check cannot say again."""
    return scan.merge_check is None or all(map(scan.merge_check.has_key, reducer.columns))


def _usable(reducer: Reducer, answer: KeyAnswer) -> KeyAnswer:
    """The answer, or the reason why it does not fit the key query."""
    if isinstance(answer, SkipReason):
        return answer
    if answer.type_names != tuple(column.type_name for column in reducer.key_query.columns):
        return SkipReason.KEY_TYPE_CHANGED
    too_many = isinstance(answer, KeySet) and len(answer.rows) > reducer.key_query.rows_max
    return SkipReason.TOO_MANY_KEYS if too_many else answer


def _restriction(reducer: Reducer, keys: Keys) -> Restriction:
    pairs = zip(reducer.columns, keys.type_names, strict=True)
    return Restriction(tuple(Column(name, type_name) for name, type_name in pairs), keys)


def _budget(plan: Plan, scan: PlannedScan, restrictions: Sequence[Restriction], limits: RewriteLimits) -> Budget:
    """The limits that are left for the predicate beside the comparisons of the statement itself."""
    chars_max = limits.predicate_chars_max
    if scan.merge_check is not None:
        chars_max = min(chars_max, _MERGE_CHARS_MAX)
    is_read_alike = _is_read_alike(plan, restrictions, limits)
    if not (is_read_alike and _may_infer(plan, scan, restrictions) and _may_send(plan, restrictions)):
        return Budget.without_metastore(chars_max)
    metastore = limits.metastore
    if scan.table is not None:
        metastore = limits.metastore_for.get(scan.table, metastore)
    if sum(key_count(restriction.keys) for restriction in restrictions) <= FEW_KEYS:
        return Budget(metastore, chars_max)
    return Budget(left_beside(metastore, plan.statement.comparisons_on_join_columns), chars_max)


# Delta keeps the conditions of a MERGE in its log, with each commit.
_MERGE_CHARS_MAX = 16 * 1024


def _may_infer(plan: Plan, scan: PlannedScan, restrictions: Sequence[Restriction]) -> bool:
    """True if Spark may infer the inserted conditions for any table of the statement.

    Spark infers a range for d.k from `f.k = d.k AND f.k BETWEEN 'A' AND 'a'` and sends it to a database, which
    orders texts in its own way and may find no 'Z' in the range. A table that is not known may be in such a
    database. Texts of partition columns are listed, and no database finds fewer texts by a list than Spark does.
    """
    if plan.reads_foreign:
        return False
    columns = (column for restriction in restrictions for column in restriction.columns)
    ranged = (column for column in columns if column.type_name == "string")
    is_by_range = any(scan.facts is None or scan.facts.is_data_column(column) for column in ranged)
    return not (plan.reads_unknown and is_by_range)


def _may_send(plan: Plan, restrictions: Sequence[Restriction]) -> bool:
    """True if a metastore's filter can hold the inserted conditions, on any column that the statement reads.

    Spark infers the list for `g._ds` too from `f.ds = g._ds AND f.ds IN (..)`.
    """
    if not plan.partition_columns:
        return True
    return all(map(can_name, plan.partition_columns)) and metastore_can_compare_all(restrictions)


def _is_read_alike(plan: Plan, restrictions: Sequence[Restriction], limits: RewriteLimits) -> bool:
    """True if a metastore reads the values of all partitions as Spark does, where it casts them.

    Spark infers `g.day = ..` too from `f.day = g.day AND f.day = ..`. A table that is not known may have days.
    """
    compared = {
        column.type_name
        for restriction in restrictions
        if key_count(restriction.keys)
        for column in restriction.columns
    }
    if plan.reads_unknown and "date" in compared:
        return False
    return not (any(map(may_reach_cast, compared)) and plan.cast_tables & limits.misread_tables)


def _inserted(statement: Statement, outcome: ScanOutcome) -> Iterator[Insertion]:
    reference, conjunct_start = outcome.scan.reference, outcome.scan.conjunct_start
    if conjunct_start is not None:
        predicate = of_table(outcome.predicate or "", reference.alias_text(statement))
        yield FurtherConjunct(conjunct_start, predicate)
        merge = outcome.scan.merge_check
        if merge is not None and outcome.check is not None:
            yield CheckClause(merge.start, outcome.check, merge.action)
        return
    alias = None if reference.has_alias else reference.alias_text(statement)
    splits = outcome.splits.hint if outcome.splits is not None else None
    yield Narrowing(reference.start, reference.stop, alias, outcome.predicate, splits)
