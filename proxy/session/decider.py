"""Decides about statements: whether they are narrowed, by which keys, and why not. No sockets, no asyncio.

A decision is a generator: it yields the queries that it needs answered in the client's own session, and
returns what came of it. Whoever holds the connection drives it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from proxy.config.rewriting import RewriteSection
from proxy.operations.tracked_statements import KEPT_CALL_BYTES_MAX
from proxy.session.consistency.read_set import ReadSet
from proxy.session.consistency.write_fence import Fence
from proxy.session.consistency.written_tables import WriteTargets, tables_written, words_in
from proxy.session.decision import Decision, DecisionTerms
from proxy.session.feedback.cost_gate import GateReport, StatementKey
from proxy.session.feedback.cost_inputs import facts_of, has_own_filters_alone, narrowable, spares_too_little
from proxy.session.feedback.quarantine_list import QuarantineEntry, QuarantineKind
from proxy.session.feedback.spark_listings import SessionListings
from proxy.session.key_queries import KeyAnswers
from proxy.session.layout.iceberg_file_counts import FileCounts
from proxy.session.session_catalog import ListedPartitions, Queries, SessionCatalog
from proxy.session.shared_state import SharedState
from proxy.session.timings import Timings
from rewriter import (
    Limits,
    Plan,
    Question,
    Rewrite,
    Rule,
    SkipReason,
    Statement,
    TableName,
    apply,
    may_be_narrowed,
    may_have_a_join,
    read,
)
from rewriter.files.splits import GroupLimits
from rewriter.partitions.index import PartitionIndex
from rewriter.sql.classify import depends_on_quoting
from rewriter.sql.fingerprint import shape

# The part of a call that is not the statement: a handle, settings and the fields' own bytes.
_CALL_BYTES: Final = 1024


class Decider:
    """What one client session knows of its tables and settings, and what it decides by that."""

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared
        self._clock = shared.clock
        self._asking = SessionCatalog(shared)
        self.listings = SessionListings(shared.clock)

    def forget(self, sql: str, state: bytes | None) -> None:
        """A statement passes that may change what names and settings mean, and which partitions there are.

        One that says what it writes changes that alone: what it reads is as it was.
        """
        self._asking.enter(state)
        tables = tables_written(sql)
        if isinstance(tables, WriteTargets):
            names = tables.names
            self._asking.forget_written(tables)
        else:
            names = words_in(sql)
            self._asking.forget(names)
        self._shared.lists.forget(names)
        self._shared.gate.cold(names)

    def look_up_written(self, sql: str, state: bytes | None) -> Queries[None]:
        """See whether what a statement writes is a table, where it could as well be a view of one."""
        tables = tables_written(sql)
        if isinstance(tables, WriteTargets) and tables.maybe_views:
            self._asking.enter(state)
            yield from self._asking.look_up(tables.maybe_views)

    def is_table(self, name: TableName, state: bytes | None) -> bool:
        """Whether a name is known to be that of a table, and of no view."""
        self._asking.enter(state)
        return self._asking.is_table(name)

    def forget_own(self) -> None:
        """The session has changed, and what it was told while its state was like that of no other may be wrong."""
        self._asking.forget_own()

    def may_narrow(self, sql: str, state: bytes | None) -> bool:
        """A cheap look whether there is something to be found in a statement: most have nothing.

        Without a join there may be a filter that skips files, of a table that the file index has.
        """
        if len(sql) > self._shared.config.rewrite.statement_chars_max:
            return False
        if may_have_a_join(sql):
            return True
        if not self._has_file_index or not may_be_narrowed(sql, has_file_index=True):
            return False
        self._asking.enter(state)
        indexed = self._asking.indexed_at_hand()
        return indexed is None or indexed.is_named_in(sql)

    @property
    def _has_file_index(self) -> bool:
        return bool(self._shared.config.files.index)

    def decide(self, sql: str, terms: DecisionTerms) -> Queries[Decision]:
        """Decide what to send for a statement."""
        start, timings = self._clock(), Timings()
        self._asking.enter(terms.state)
        decision = yield from self._decide(sql, terms, timings)
        timings.total_s = self._clock() - start
        return decision

    def explain(self, sql: str, terms: DecisionTerms) -> Queries[Decision]:
        """Decide as `decide` does, and list the partitions; without key queries nothing is inserted."""
        start, timings = self._clock(), Timings()
        self._asking.enter(terms.state)
        decision = yield from self._decide(sql, terms, timings)
        # Some were listed already, to say many keys in few ranges.
        missing = narrowable(decision.plan).keys() - decision.partitions.keys()
        listed = yield from self._asking.partitions(missing, timings)
        counts: Mapping[TableName, FileCounts] = {}
        if terms.run_key_queries and decision.plan is not None:
            counts = yield from self._asking.file_counts(decision.plan, timings)
        timings.total_s = self._clock() - start
        partitions = {**decision.partitions, **_indexes(listed)}
        return replace(
            decision,
            partitions=partitions,
            counts=counts,
            key_ages=self._key_ages(decision, terms, start),
            quarantined=self._quarantined(decision),
        )

    def _key_ages(self, decision: Decision, terms: DecisionTerms, start: float) -> dict[Question, float]:
        """How old the keys were as the decision began: those that are younger were asked for by it."""
        if terms.state is None or decision.rewrite is None:
            return {}
        used = {
            reducer.key_query
            for scan in decision.rewrite.scans
            for reducer, keys in scan.reducers
            if keys is not None
        }
        asked_at = {question: self._shared.keys.asked_at(terms.state, question) for question in used}
        return {question: start - at for question, at in asked_at.items() if at is not None and at < start}

    def _quarantined(self, decision: Decision) -> tuple[QuarantineEntry, ...]:
        """What is put aside of a statement. Other tables and shapes are nobody's business here."""
        own = {(QuarantineKind.SHAPE, decision.subject.name)} if decision.subject is not None else set()
        for scan in decision.plan.scans if decision.plan is not None else ():
            described = self._asking.described(scan.reference.name).facts
            if described is not None and described.full_name is not None:
                own.add((QuarantineKind.TABLE, str(described.full_name)))
        current = self._shared.quarantine.current()
        return tuple(one for one in current if one.kind is QuarantineKind.RULE or (one.kind, one.name) in own)

    def _decide(self, sql: str, terms: DecisionTerms, timings: Timings) -> Queries[Decision]:
        if self._has_file_index and self.may_narrow(sql, terms.state) and not may_have_a_join(sql):
            _ = yield from self._asking.indexed(timings)
        statement = yield from self._read(sql, terms.state, self._shared.config.rewrite)
        if not isinstance(statement, SkipReason):
            statement = _refusal(sql, terms) or statement
        if isinstance(statement, SkipReason):
            return Decision(sql, skip=statement, timings=timings)
        subject = StatementKey(terms.scope, shape(statement))
        skip, opinion = self._left_alone(subject, terms)
        known = Decision(sql, skip, timings=timings, subject=subject, opinion=opinion)
        if skip is not None and not terms.is_explained:
            return known
        limits = self._limits(terms)
        fence = self._shared.writes.open()
        planned = yield from self._asking.plan(statement, limits, timings)
        if isinstance(planned, SkipReason):
            return replace(known, skip=planned)
        counted: Mapping[TableName, PartitionIndex] = {}
        if has_own_filters_alone(planned):
            known = replace(known, opinion=None)
        elif terms.knobs.cost_gate and self._shared.gate.lacks_counts(subject):
            counted = _indexes((yield from self._asking.partitions(narrowable(planned), timings)))
        known = replace(known, plan=planned, facts=facts_of(planned, counted, self._asking))
        is_weighed = known.facts and terms.knobs.cost_gate
        estimate = self._shared.gate.estimate(subject, known.facts) if is_weighed else None
        if skip is None and estimate is not None and estimate.leaves:
            skip, known = SkipReason.NOT_WORTH_IT, replace(known, opinion=estimate)
            if not terms.is_explained:
                return replace(known, skip=skip)
        return (yield from self._narrow(known, skip, limits, terms, fence))

    def _narrow(
        self, known: Decision, skip: SkipReason | None, limits: Limits, terms: DecisionTerms, fence: Fence
    ) -> Queries[Decision]:
        """Ask for keys, and insert what they come to, if nothing has changed since the fence was opened."""
        planned, timings = known.plan, known.timings
        assert planned is not None  # noqa: S101 - the caller has just made it
        known = replace(known, unpinned=planned.unpinned)
        answers: KeyAnswers = {}
        if terms.run_key_queries:
            at_snapshots = yield from self._asking.pinned(planned, limits, timings)
            planned, unpinned = at_snapshots.plan, {**known.unpinned, **at_snapshots.unpinned}
            known = replace(known, plan=planned, reads=at_snapshots.reads, unpinned=unpinned)
            answers = yield from self._asking.keys(planned, terms.memory, fence, timings)
        listed = yield from self._asking.partitions(planned.wants_partitions(answers), timings)
        for_splits = Rule.SPLITS not in limits.rules_off
        files = yield from self._asking.files(planned, answers, timings, for_splits=for_splits)
        grouped = planned.wants_packings(answers) if for_splits else ()
        packings = yield from self._asking.packings(grouped, files, timings)
        result = apply(planned, answers, limits, self._asking.costs(listed), files, packings=packings)
        asked = frozenset(_tables_read(answers))
        read_set = ReadSet(fence, asked, frozenset(known.reads), planned.names)
        skip = skip or read_set.skip()
        if skip is None and terms.knobs.cost_gate and has_own_filters_alone(planned) and spares_too_little(result):
            skip = result.skip or SkipReason.FEW_FILES
        skip = skip or result.skip or _hindrance(planned, answers, result)
        return replace(known, skip=skip, rewrite=result, partitions=_indexes(listed), read_set=read_set)

    def _left_alone(
        self, subject: StatementKey, terms: DecisionTerms
    ) -> tuple[SkipReason | None, GateReport | None]:
        """Why a statement is left alone before anything is asked of the backend, and what the cost gate says."""
        if self._shared.quarantine.is_shape_off(subject.name):
            return SkipReason.QUARANTINED, None
        if not terms.knobs.cost_gate:
            return None, None
        gate = self._shared.gate
        opinion = (gate.opinion if terms.is_explained else gate.decide)(subject, self.listings)
        if not terms.is_explained:
            self._shared.metrics.gate_decided(opinion.verdict)
        return SkipReason.NOT_WORTH_IT if opinion.leaves else None, opinion

    def _limits(self, terms: DecisionTerms) -> Limits:
        settings, off = self._shared.config.rewrite, self._shared.quarantine.off()
        splits = self._shared.config.splits
        tables_off = (TableName(tuple(pattern.split("."))) for pattern in settings.tables_off)
        return Limits(
            key_rows_max=settings.key_rows_max,
            key_ranges_max=settings.key_ranges_max,
            key_queries_max=settings.key_queries_max,
            small_side_bytes_max=settings.small_side_bytes_max,
            metastore=self._shared.metastore.consumer,
            metastore_for=self._shared.metastore.lowered,
            predicate_chars_max=settings.predicate_chars_max,
            rules_off=off.rules.union(settings.rules_off, () if splits.enabled else (Rule.SPLITS,)),
            tables_off=off.tables.union(tables_off),
            strict=terms.knobs.consistency == "strict",
            has_variables=terms.has_variables,
            file_hint_chars_max=self._shared.config.files.hint_chars_max,
            has_file_index=self._has_file_index,
            splits=GroupLimits(splits.max_small_splits_grouped, splits.saved_min),
        )

    def _read(self, sql: str, state: bytes | None, settings: RewriteSection) -> Queries[Statement | SkipReason]:
        has_index = self._has_file_index and self.may_narrow(sql, state)
        is_short = len(sql) <= settings.statement_chars_max
        if depends_on_quoting(sql) and is_short and may_be_narrowed(sql, has_file_index=has_index):
            default = yield from self._asking.quoting_is_default()
            if not default:
                return SkipReason.QUOTING_SETTINGS
        return read(sql, chars_max=settings.statement_chars_max, has_file_index=has_index)


def _tables_read(answers: KeyAnswers) -> set[TableName]:
    """The tables that keys were read from."""
    asked = (question for question, keys in answers.items() if keys is not SkipReason.SMALL_SIDE_WRITTEN)
    return {name for question in asked for name in question.tables}


def _hindrance(planned: Plan, answers: KeyAnswers, result: Rewrite) -> SkipReason | None:
    """Why a statement in which nothing is narrowed may be the next time: the scans have other reasons, or none."""
    if result.text != planned.statement.original:
        return None
    if SkipReason.SMALL_SIDE_WRITTEN in answers.values():
        return SkipReason.SMALL_SIDE_WRITTEN
    return SkipReason.DESCRIPTION_LATE if planned.late else None


def _refusal(sql: str, terms: DecisionTerms) -> SkipReason | None:
    """Why a statement is left alone on these terms, whatever it says."""
    if terms.has_search_path:
        return SkipReason.SEARCH_PATH
    # Its call is kept until its answer is there, to be made again if that is out of date.
    call_bytes = len(sql.encode(errors="surrogatepass")) + _CALL_BYTES
    return SkipReason.TOO_LARGE_TO_REPEAT if call_bytes > KEPT_CALL_BYTES_MAX else None


def _indexes(listed: Mapping[TableName, ListedPartitions]) -> dict[TableName, PartitionIndex]:
    return {name: one.index for name, one in listed.items()}
