"""What the keys come to: the predicates of each scan, inserted into the client's own text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rewriter.domains.consumers import beside
from rewriter.domains.cover import Cover
from rewriter.domains.gap_costs import Costs
from rewriter.domains.keyset import Keys, KeySet
from rewriter.domains.literals import UnreadableKeyError
from rewriter.files.file_index import FileIndex, Selection
from rewriter.files.splits import Grouping, SplitHints, grouping
from rewriter.plan import FEW_KEYS, KeyAnswer, Plan, effective_reducers, key_count
from rewriter.predicates.metastore_filter import can_name
from rewriter.predicates.partitions import Budget
from rewriter.predicates.predicate import Restriction, can_all_be_said
from rewriter.predicates.scan import Layout, ScanPredicate, scan_predicate
from rewriter.predicates.splice import Narrowing, narrowed
from rewriter.predicates.strict_check import check
from rewriter.semijoins.limits import Limits
from rewriter.semijoins.planned_scan import PlannedScan
from rewriter.semijoins.reducers import Question, Reducer
from rewriter.sql.statement import Statement
from rewriter.vocabulary.identifiers import Column, TableName
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import SkipReason

# What is known of where a table's partitions lie, by its columns' names.
Partitions: TypeAlias = Mapping[TableName, Mapping[str, Costs]]

# The indexes of tables' files.
Files: TypeAlias = Mapping[TableName, FileIndex]


@dataclass(frozen=True)
class ScanOutcome:
    """What was done to one scan, and why not more."""

    scan: PlannedScan
    predicate: str | None = None
    exact: bool | None = None
    # What the predicate lets through, or more where it is exact.
    cover: Cover | None = None
    skip: SkipReason | None = None
    # With strict consistency: what stands beside the predicate, and fails the statement where the keys changed.
    checks: tuple[str, ...] = ()
    # The reducers that were asked last, and the keys of each; None where they are not known.
    reducers: tuple[tuple[Reducer, Keys | None], ...] = ()
    # What the file index leaves to be read of the partitions that are; None where it says nothing.
    files: Selection | None = None
    # By which of its files, row groups and buckets the scan was narrowed.
    parts: frozenset[Rule] = frozenset()
    # In how many splits it is read; None where that is not known, or left to Spark.
    splits: Grouping | None = None
    # Whether the metastore is sent a part of the predicate.
    is_sent: bool = False

    @property
    def narrowed_by(self) -> tuple[tuple[tuple[str, ...], Keys], ...]:
        """The columns that the predicate restricts, with the keys that they are restricted to together."""
        if self.predicate is None:
            return ()
        return tuple((reducer.columns, keys) for reducer, keys in self.reducers if keys is not None)

    @property
    def rules(self) -> frozenset[Rule]:
        """What it took to narrow the scan; nothing where it was not."""
        used = (reducer.rules for reducer, keys in self.reducers if keys is not None)
        return self.parts.union(*used) if self.predicate is not None else frozenset()


@dataclass(frozen=True)
class Rewrite:
    """The text to send, and what was done. `text` is the original unless a scan was narrowed."""

    text: str
    scans: tuple[ScanOutcome, ...]
    skip: SkipReason | None = None

    @property
    def rules(self) -> frozenset[Rule]:
        """What it took to narrow the statement's scans."""
        return frozenset().union(*(outcome.rules for outcome in self.scans))

    @property
    def tables(self) -> frozenset[TableName]:
        """The tables that were narrowed, by the names that all sessions know them by."""
        narrowed = (outcome.scan.table for outcome in self.scans if outcome.predicate is not None)
        return frozenset(table for table in narrowed if table is not None)

    @property
    def sent(self) -> frozenset[TableName]:
        """Those of which the metastore is sent a filter."""
        sent = (outcome.scan.table for outcome in self.scans if outcome.is_sent)
        return frozenset(table for table in sent if table is not None)


def apply(  # noqa: PLR0913 - what is known of tables comes from several places
    plan: Plan,
    answers: Mapping[Question, KeyAnswer],
    limits: Limits,
    partitions: Partitions | None = None,
    files: Files | None = None,
    *,
    split_hints: SplitHints | None = None,
) -> Rewrite:
    """Insert the predicates that the keys give. A key query without an answer narrows nothing.

    `files` are the indexes of tables that the plan wants, as far as they are at hand. Without `split_hints` the
    number of splits is left to Spark.
    """
    hints = split_hints or SplitHints({})
    packings = {name: hints.packings.get(name) for name in plan.wants_packings(answers)}
    layouts = {
        name: Layout((partitions or {}).get(name, {}), (files or {}).get(name), packings.get(name), hints.limits)
        for name in {scan.reference.name for scan in plan.scans}
    }
    outcomes = tuple(_outcome(plan, scan, answers, limits, layouts[scan.reference.name]) for scan in plan.scans)
    if _is_for_spark_to_report(answers):
        return _left_alone(plan, outcomes, SkipReason.SCALAR_SUBQUERY_ROWS)
    narrowings = [_narrowing(plan.statement, outcome) for outcome in outcomes if outcome.predicate is not None]
    if not narrowings:
        return Rewrite(plan.statement.original, outcomes)
    text = narrowed(plan.statement, narrowings)
    if text is None:
        return Rewrite(plan.statement.original, outcomes, SkipReason.NOT_VERIFIED)
    return Rewrite(text, outcomes)


def _is_for_spark_to_report(answers: Mapping[Question, KeyAnswer]) -> bool:
    """Whether the statement is an error. Narrowed by other keys, it might not run what makes it one."""
    return SkipReason.SCALAR_SUBQUERY_ROWS in answers.values()


def _left_alone(plan: Plan, outcomes: Sequence[ScanOutcome], reason: SkipReason) -> Rewrite:
    """The statement as it came, whatever its scans could be narrowed by."""
    left = (ScanOutcome(found.scan, skip=found.skip or reason, reducers=found.reducers) for found in outcomes)
    return Rewrite(plan.statement.original, tuple(left), reason)


def _outcome(
    plan: Plan, scan: PlannedScan, answers: Mapping[Question, KeyAnswer], limits: Limits, layout: Layout
) -> ScanOutcome:
    """Narrow a scan by the reducers that have an answer."""
    skip = scan.skip
    reducers: list[tuple[Reducer, Keys | None]] = []
    for reducer in effective_reducers(scan, answers):
        answer = _usable(reducer, answers.get(reducer.key_query, SkipReason.KEYS_NOT_ASKED))
        skip = answer if isinstance(answer, SkipReason) else skip
        reducers.append((reducer, None if isinstance(answer, SkipReason) else answer))
    restrictions = [_restriction(reducer, keys) for reducer, keys in reducers if keys is not None]
    if not restrictions and (scan.own.is_all or (reducers and layout.index is None)):
        return ScanOutcome(scan, skip=skip, reducers=tuple(reducers))
    try:
        checks = _checks(reducers) if limits.strict else ()
        budget = _budget(plan, scan, restrictions, limits, sum(map(len, checks)))
        said = scan_predicate(scan, restrictions, layout, budget, limits)
    except UnreadableKeyError:
        return ScanOutcome(scan, skip=SkipReason.UNREADABLE_KEY, reducers=tuple(reducers))
    if isinstance(said, SkipReason):
        return ScanOutcome(scan, skip=said, reducers=tuple(reducers))
    splits = _splits(said, layout, limits)
    parts = said.rules | {Rule.SPLITS} if splits is not None and splits.hint is not None else said.rules
    # A predicate beside a check is sent to no metastore (`rewriter.predicates.strict_check`).
    is_sent = said.is_sent and not checks
    return ScanOutcome(
        scan, said.sql, said.exact, said.cover, None, checks, tuple(reducers), said.files, parts, splits, is_sent
    )


def _splits(said: ScanPredicate, layout: Layout, limits: Limits) -> Grouping | None:
    """In how many splits what is left of the scan's files is read."""
    if layout.packing is None or said.files is None or Rule.SPLITS in limits.rules_off:
        return None
    return grouping(said.files.kept_sizes, layout.packing, layout.group_limits)


def _checks(reducers: Sequence[tuple[Reducer, Keys | None]]) -> tuple[str, ...]:
    """One for each key query that could answer otherwise now, each once. Raises UnreadableKeyError."""
    asked = [(reducer.key_query, keys) for reducer, keys in reducers if keys is not None]
    return tuple(dict.fromkeys(check(question, keys) for question, keys in asked if not question.is_fixed))


def _usable(reducer: Reducer, answer: KeyAnswer) -> KeyAnswer:
    """The answer, or why it does not fit what was asked."""
    if isinstance(answer, SkipReason):
        return answer
    if answer.type_names != tuple(column.type_name for column in reducer.key_query.columns):
        return SkipReason.KEY_TYPE_CHANGED
    too_many = isinstance(answer, KeySet) and len(answer.rows) > reducer.key_query.rows_max
    return SkipReason.TOO_MANY_KEYS if too_many else answer


def _restriction(reducer: Reducer, keys: Keys) -> Restriction:
    pairs = zip(reducer.columns, keys.type_names, strict=True)
    return Restriction(tuple(Column(name, type_name) for name, type_name in pairs), keys)


def _budget(
    plan: Plan, scan: PlannedScan, restrictions: Sequence[Restriction], limits: Limits, chars_spent: int
) -> Budget:
    """What is left of the metastore's patience beside the comparisons of the statement itself."""
    chars_max = limits.predicate_chars_max - chars_spent
    if not _may_send(plan, restrictions):
        return Budget.unsent(chars_max)
    metastore = limits.metastore
    if scan.table is not None:
        metastore = limits.metastore_for.get(scan.table, metastore)
    if sum(key_count(restriction.keys) for restriction in restrictions) <= FEW_KEYS:
        return Budget(metastore, chars_max)
    return Budget(beside(metastore, plan.statement.comparisons_on_join_columns), chars_max)


def _may_send(plan: Plan, restrictions: Sequence[Restriction]) -> bool:
    """Whether a metastore's filter can say what is inserted, of whichever column that the statement reads.

    From `f.ds = g._ds AND f.ds IN (..)` Spark infers the list for `g._ds` too.
    """
    if not plan.partition_columns:
        return True
    return all(map(can_name, plan.partition_columns)) and can_all_be_said(restrictions)


def _narrowing(statement: Statement, outcome: ScanOutcome) -> Narrowing:
    reference = outcome.scan.reference
    alias = None if reference.has_alias else reference.alias_text(statement)
    splits = outcome.splits.hint if outcome.splits is not None else None
    return Narrowing(reference.start, reference.stop, alias, outcome.predicate or "", outcome.checks, splits)
