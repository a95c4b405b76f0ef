"""One decision: a statement on its way through the stages classify, gate, plan, weigh, ask and apply.

The stages are generators: they yield the queries that they need answered. Those for keys are answered in the
client's own session, others in one of the proxy's own where there is one (`proxy.session.decider`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from proxy.config.config import Config
from proxy.operations.key_check import CheckVerdict
from proxy.operations.query import Query, QueryResult
from proxy.operations.tracked_statements import KEPT_CALL_BYTES_MAX
from proxy.session.catalog.file_index import words
from proxy.session.catalog.iceberg_snapshots import SnapshotRead
from proxy.session.catalog.learning import at_hand
from proxy.session.consistency.read_set import ReadSet
from proxy.session.consistency.write_fence import Fence
from proxy.session.decision import Decision, DecisionTerms, UncheckedKeys
from proxy.session.feedback.cost_gate import Fact, GateReport, StatementKey
from proxy.session.feedback.cost_inputs import facts_of, has_own_filters_alone, narrowable, spares_too_little
from proxy.session.feedback.quarantine_list import QuarantineEntry, QuarantineKind
from proxy.session.feedback.spark_listings import SessionListings
from proxy.session.key_queries import KeyAnswers, KeyQueries
from proxy.session.layout.iceberg_file_counts import FileCounts
from proxy.session.session_catalog import ListedPartitions, Queries, SessionCatalog
from proxy.session.shared_state import SharedState
from proxy.session.timings import Timings
from proxy.statements.statement_class import StatementClass
from rewriter import (
    KeyQuery,
    Plan,
    Rewrite,
    RewriteLimits,
    Rule,
    SkipReason,
    Statement,
    TableName,
    UnpinnedReason,
    apply,
    parse,
)
from rewriter.files.file_index import FileIndex
from rewriter.files.splits import SplitHints
from rewriter.partitions.index import PartitionIndex
from rewriter.scopes.steps import Steps
from rewriter.sql.fingerprint import fingerprint

T = TypeVar("T")

# The part of a call that is not the statement: a handle, settings and the fields' own bytes.
_CALL_BYTES: Final = 1024

# Words of statements whose answers depend on the order of rows for some types.
_BY_TYPES: Final = frozenset({"sum", "avg", "max", "min", "median", "percentile", "limit", "offset"})

# Reasons to leave a statement alone that say nothing of its splits.
_PASSING: Final = frozenset({SkipReason.QUARANTINED, SkipReason.NO_MEMORY})

_RULES_OF_VIEWS: Final = frozenset({Rule.VIEWS, Rule.VIEW_JOINS})


class DecisionRun:
    """A statement and the decision about it as far as it has come. Used once.

    A stage that finds a reason to leave the statement alone says so by `_skip_for`, and the run ends. To explain
    is a policy of the same run: it goes on although there is a reason, as far as the stages can, and looks up at
    the end what only a user wants to know.
    """

    def __init__(
        self,
        shared: SharedState,
        catalog: SessionCatalog,
        listings: SessionListings,
        statement: StatementClass,
        terms: DecisionTerms,
    ) -> None:
        self._shared = shared
        # Facts that have expired may be used where it is asked for again while the statement runs.
        self._catalog = replace(
            catalog,
            due_s=terms.due_s,
            is_session_unchanged=terms.is_session_unchanged,
            believes_ungrouped=not terms.waits_for_splits,
            steps=Steps(),
        )
        self._settings = catalog.settings_at_hand
        self._listings = listings
        self._statement = statement
        self._terms = terms
        self._timings = Timings()
        self._start = 0.0
        self._skip: SkipReason | None = None
        # Characters for whose tree there is room, as long as the run lasts.
        self._room = 0
        self._key: StatementKey | None = None
        self._gate_report: GateReport | None = None
        self._plan: Plan | None = None
        self._facts: tuple[Fact, ...] = ()
        self._snapshots: Mapping[TableName, SnapshotRead] = {}
        self._unpinned: Mapping[TableName, UnpinnedReason] = {}
        self._partitions: Mapping[TableName, PartitionIndex] = {}
        self._rewrite: Rewrite | None = None
        self._read_set: ReadSet | None = None
        self._unchecked: UncheckedKeys | None = None
        # The statement as it was parsed: where keys are not worth asking for, it may be read in fewer splits.
        self._parsed: Statement | None = None
        # True if something that decides about splits is not known or has expired.
        self._lacks_splits = False
        # For explain alone.
        self._file_counts: Mapping[TableName, FileCounts] = {}
        self._key_ages: Mapping[KeyQuery, float] = {}
        self._key_errors: Mapping[KeyQuery, str] = {}
        self._quarantined: tuple[QuarantineEntry, ...] = ()

    def decision(self) -> Queries[Decision]:
        """Run the stages, and return the decision."""
        try:
            return (yield from self._decision())
        finally:
            self._shared.analysis.give_back(self._room)

    def _decision(self) -> Queries[Decision]:
        self._start = start = self._shared.clock()
        if self._is_for_splits_alone:
            self._group_at_hand()
        else:
            yield from self._timings.noted(self._stages(), self._shared.clock)
            if self._skip is SkipReason.NOT_WORTH_IT and self._may_be_grouped() and not self._terms.is_explained:
                self._group_at_hand()
        if self._terms.is_explained:
            yield from self._look_up_for_explain(start)
        elif self._rewrite is not None:
            # For the history: the partitions of which a scan keeps some, where that needs no query.
            missing = {scan.scan.reference.name for scan in self._rewrite.scans if scan.predicate is not None}
            self._partitions = {
                **self._catalog.partitions_at_hand(missing - self._partitions.keys()),
                **self._partitions,
            }
        self._timings.total_s = self._shared.clock() - start
        return Decision(
            self._statement.text,
            self._skip,
            self._plan,
            self._rewrite,
            self._read_set,
            self._partitions,
            self._timings,
            key=self._key,
            facts=self._facts,
            gate_report=self._gate_report,
            snapshots=self._snapshots,
            unpinned=self._unpinned,
            file_counts=self._file_counts,
            key_ages=self._key_ages,
            key_errors=self._key_errors,
            quarantined=self._quarantined,
            unchecked=self._unchecked,
            beside=self._learning(),
        )

    def learn_splits(self) -> Queries[None]:
        """Ask for all that decides how many splits the scans of a statement are read in."""
        self._catalog = replace(self._catalog, due_s=0.0)
        try:
            statement = yield from self._classify()
            limits = self._limits()
            planned = (yield from self._make_plan(statement, limits)) if statement is not None else None
            if planned is not None:
                _ = yield from self._files_of(self._catalog, planned, {}, _of_splits_alone(limits), of_all=True)
        finally:
            self._shared.analysis.give_back(self._room)

    def _stages(self) -> Queries[None]:
        key = self._known_key()
        if key is not None and self._is_left(key):
            return
        statement = yield from self._classify()
        if statement is None:
            self._key = None
            return
        if key is None:
            key = self._key_of(statement)
            if self._is_left(key):
                return
        limits = self._limits()
        # The fence sees every write from here on: descriptions and keys are read after it is opened.
        fence = self._shared.writes.open()
        planned = yield from self._make_plan(statement, limits)
        if planned is not None and self._uses_due_in_vain(planned, fence):
            self._catalog = replace(self._catalog, due_s=0.0)
            planned = yield from self._make_plan(statement, limits)
        if planned is None:
            return
        if not self._is_over():
            yield from self._weigh(planned, key)
        if self._is_over():
            return
        if self._skip is SkipReason.NOT_WORTH_IT and (yield from self._group(planned, limits, fence)):
            return
        planned, answers = yield from self._ask(planned, limits, fence)
        yield from self._apply(planned, answers, limits, fence)

    def _limits(self) -> RewriteLimits:
        return limits_of(self._shared, self._terms, has_small_files=self._may_be_grouped())

    def _may_be_grouped(self) -> bool:
        """Whether scans of the statement may be read in fewer splits though nothing narrows them."""
        return may_read_small_files(self._statement, self._shared.config, self._catalog)

    @property
    def _is_for_splits_alone(self) -> bool:
        """Whether nothing can come of the statement but fewer splits, which no query is waited for."""
        config, catalog = self._shared.config, self._catalog
        is_narrowed = self._terms.waits_for_splits or may_narrow_rows(self._statement, config, catalog)
        return not is_narrowed and may_read_small_files(self._statement, config, catalog)

    def _is_over(self) -> bool:
        return self._skip is not None and not self._terms.is_explained

    def _skip_for(self, reason: SkipReason | None) -> None:
        """Leave the statement alone for this reason, unless there is an earlier one."""
        self._skip = self._skip or reason

    # --- the stages

    def _classify(self) -> Queries[Statement | None]:
        """Parse the statement, if it is of a class that may be rewritten."""
        statement, config = self._statement, self._shared.config
        may_be_narrowed = may_narrow(statement, config, self._catalog)
        if may_be_narrowed and self._terms.hidden_names is not None:
            # Before anything is asked: in such a session an answer is the client's.
            self._skip_for(self._terms.hidden_names)
            return None
        if may_be_narrowed and config.files.index and not statement.may_have_a_join:
            # Without a join only the file index helps. With its tables known, the next look is an exact one.
            _ = yield from self._timed_lookup(self._catalog.indexed())
            may_be_narrowed = may_narrow(statement, config, self._catalog)
        has_file_index = bool(config.files.index) and may_be_narrowed
        has_views = may_read_views(statement, config, self._catalog)
        has_small_files = self._may_be_grouped()
        chars_max = config.rewrite.statement_chars_max
        is_read = len(statement.text) <= chars_max and statement.may_be_rewritten(
            has_file_index=has_file_index, has_views=has_views, has_small_files=has_small_files
        )
        if is_read and statement.depends_on_quoting and not (yield from self._catalog.quoting_is_default()):
            self._skip_for(SkipReason.QUOTING_SETTINGS)
            return None
        if is_read and not self._takes_room():
            self._skip_for(SkipReason.NO_MEMORY)
            return None
        parsed = parse(
            statement.text,
            chars_max=chars_max,
            has_file_index=has_file_index,
            has_views=has_views,
            has_small_files=has_small_files,
        )
        refused = parsed if isinstance(parsed, SkipReason) else _refusal(statement)
        self._skip_for(refused)
        self._parsed = None if refused is not None or isinstance(parsed, SkipReason) else parsed
        return self._parsed

    def _takes_room(self) -> bool:
        characters = len(self._statement.text)
        self._room = characters if self._shared.analysis.take(characters) else 0
        return self._room == characters

    def _known_key(self) -> StatementKey | None:
        """The key of a statement whose text is known, which need not be parsed to be left alone."""
        if self._terms.is_explained or not may_narrow(self._statement, self._shared.config, self._catalog):
            return None
        known = self._shared.known_texts.fingerprint(self._statement.text)
        return None if known is None else StatementKey(self._terms.scope, known, self._terms.owner)

    def _key_of(self, statement: Statement) -> StatementKey:
        found = fingerprint(statement)
        self._shared.known_texts.parsed(self._statement.text, found)
        return StatementKey(self._terms.scope, found, self._terms.owner)

    def _is_left(self, key: StatementKey) -> bool:
        """Leave a statement alone that is quarantined, or whose runs so far have shown that it is not worth it."""
        self._key = key
        if self._shared.quarantine.has_statement(key):
            self._skip_for(SkipReason.QUARANTINED)
        elif self._terms.settings.cost_gate:
            self._gate_report = report = self._ask_gate(key)
            self._skip_for(SkipReason.NOT_WORTH_IT if report.leaves else None)
        return self._is_over()

    def _ask_gate(self, key: StatementKey) -> GateReport:
        gate = self._shared.gate
        if self._terms.is_explained:
            # Without counting the statement as one that runs.
            return gate.report(key, self._listings)
        report = gate.decide(key, self._listings)
        self._shared.metrics.gate_decided(report.verdict)
        return report

    def _make_plan(self, statement: Statement, limits: RewriteLimits) -> Queries[Plan | None]:
        """Plan the statement by the descriptions of its tables."""
        planned = yield from self._timings.of_catalog(self._catalog.plan(statement, limits))
        if isinstance(planned, SkipReason):
            # More telling to a user than the verdict of the gate.
            self._skip = planned
            return None
        if not may_narrow(self._statement, self._shared.config, self._catalog):
            # No name turned out to be that of a view.
            self._skip_for(SkipReason.NO_JOIN_IN_TEXT)
            return None
        planned = yield from self._timed_lookup(self._catalog.with_lists(planned, {}, limits))
        self._plan, self._unpinned = planned, planned.unpinned
        return planned

    def _uses_due_in_vain(self, planned: Plan, fence: Fence) -> bool:
        """True if the plan rests on what has expired although its keys have to be asked for first."""
        memory = self._terms.memory(only_reads=planned.statement.only_reads)
        # At snapshots other questions are asked, and tables at snapshots are described by what is current.
        asks_these = planned.key_queries and not planned.pinnable
        is_at_hand = asks_these and self._catalog.key_queries(memory, fence).are_at_hand(planned)
        return not is_at_hand and self._rests_on_due(planned)

    def _weigh(self, planned: Plan, key: StatementKey) -> Queries[None]:
        """Leave a statement alone whose facts are too small to be worth their keys."""
        gate, has_gate = self._shared.gate, self._terms.settings.cost_gate
        counted: Mapping[TableName, PartitionIndex] = {}
        if has_own_filters_alone(planned):
            self._gate_report = None
        elif has_gate and gate.lacks_counts(key):
            listed = yield from self._timed_lookup(self._catalog.partitions(narrowable(planned)))
            counted = _indexes(listed)
        self._facts = facts_of(planned, counted, self._catalog)
        estimate = gate.estimate(key, self._facts) if has_gate and self._facts else None
        if self._skip is None and estimate is not None and estimate.leaves:
            self._gate_report = estimate
            self._skip_for(SkipReason.NOT_WORTH_IT)

    def _ask(self, planned: Plan, limits: RewriteLimits, fence: Fence) -> Queries[tuple[Plan, KeyAnswers]]:
        """Ask for the keys of the small sides, at snapshots that the statement then names where it can."""
        if not self._terms.run_key_queries:
            return planned, {}
        at_snapshots = yield from self._timings.of_catalog(self._catalog.pinned(planned, limits))
        self._plan = planned = at_snapshots.plan
        self._snapshots = at_snapshots.reads
        self._unpinned = {**self._unpinned, **at_snapshots.unpinned}
        memory = self._terms.memory(only_reads=planned.statement.only_reads)
        key_queries = self._catalog.key_queries(memory, fence)
        self._key_errors = key_queries.errors
        asks_later = key_queries.are_at_hand(planned)
        if not asks_later and not (yield from self._timed_lookup(self._is_as_planned(planned))):
            self._skip_for(SkipReason.TABLES_UNSETTLED)
            return planned, {}
        answers = yield from self._timings.of_key_queries(key_queries.answers(planned))
        # Some keys may have turned out to be of another type than the fact's column.
        with_lists = yield from self._timed_lookup(self._catalog.with_lists(planned, answers, limits))
        if with_lists is not planned:
            self._plan = planned = with_lists
            answers = yield from self._timings.of_key_queries(key_queries.answers(planned, answers))
        if key_queries.to_check:
            check = self._check(planned, key_queries)
            self._unchecked = UncheckedKeys(key_queries.to_check, check, self._start)
        elif asks_later and not (yield from self._timed_lookup(self._is_as_planned(planned))):
            # All were fresh enough by themselves, and nothing is asked later.
            self._skip_for(SkipReason.TABLES_UNSETTLED)
        return planned, answers

    def _is_as_planned(self, planned: Plan) -> Queries[bool]:
        """True if views, tables and settings are as the plan takes them to be. Nobody asks for them later."""
        if self._rests_on_due(planned):
            return (yield from self._is_all_as_planned(planned))
        return not planned.follows or (yield from self._catalog.is_as_planned(planned, self._described_since))

    def _rests_on_due(self, planned: Plan) -> bool:
        """True if the plan rests on descriptions or settings that have expired."""
        if not self._catalog.due_s:
            return False
        is_due = self._settings is not None and self._settings.until <= self._start
        return is_due or not self._catalog.is_current(planned)

    def _is_all_as_planned(self, planned: Plan) -> Queries[bool]:
        return (yield from self._catalog.is_as_planned(planned, self._described_since)) and (
            self._settings is None or (yield from self._catalog.are_settings(self._settings.value))
        )

    @property
    def _described_since(self) -> float:
        """The moment from which on a description is as good as a new one."""
        since = self._terms.keys.asked_since
        return self._start if since is None else min(since, self._start)

    def _check(self, planned: Plan, key_queries: KeyQueries) -> Queries[CheckVerdict]:
        """Ask again for what was remembered, while the statement runs: keys, and what has expired."""
        verdict = yield from key_queries.check(key_queries.to_check)
        if verdict is not CheckVerdict.HELD:
            return verdict
        is_same = yield from self._is_all_as_planned(planned)
        return CheckVerdict.HELD if is_same else CheckVerdict.CHANGED

    def _apply(self, planned: Plan, answers: KeyAnswers, limits: RewriteLimits, fence: Fence) -> Queries[None]:
        """Insert predicates and hints for the keys, if nothing has changed since the fence was opened."""
        listed = yield from self._timed_lookup(self._catalog.partitions(planned.wants_partitions(answers)))
        files, hints = yield from self._files(planned, answers, limits)
        result = apply(planned, answers, limits, self._catalog.costs(listed), files, split_hints=hints)
        too_few = self._terms.settings.cost_gate and has_own_filters_alone(planned) and spares_too_little(result)
        if too_few and limits.has_small_files:
            grouped = apply(planned, {}, _of_splits_alone(limits), files=files, split_hints=hints)
            too_few, result = (False, grouped) if grouped.is_changed else (True, result)
        self._keep(planned, answers, result, fence)
        self._partitions = _indexes(listed)
        self._skip_for(result.skip or SkipReason.FEW_FILES if too_few else None)
        self._skip_for(result.skip or _hindrance(planned, answers, result))

    def _group_at_hand(self) -> None:
        """Insert hints for fewer splits by what is known. What is not, or has expired, is asked for beside it."""
        left, self._skip = self._skip, None
        self._catalog, given = self._catalog_at_hand(is_planned=self._plan is not None), self._catalog
        asking = self._timings.noted(self._stages_of_splits(), self._shared.clock)
        found = at_hand(asking)
        self._catalog = given
        self._lacks_splits |= found is None
        if found is None:
            self._skip = SkipReason.SPLITS_UNKNOWN
        if self._rewrite is not None and self._rewrite.is_changed:
            return
        if not self._lacks_splits and self._skip not in _PASSING:
            self._catalog.ungrouped(self._statement)
        if left is not None:
            # Any other reason is less telling to a user.
            self._skip, self._rewrite = left, None

    def _catalog_at_hand(self, *, is_planned: bool) -> SessionCatalog:
        """The catalog with answers about splits that have expired lately, which are asked for again beside it."""
        due_s = self._shared.config.splits.asked_every_s
        return replace(self._catalog, due_s=self._catalog.due_s if is_planned else due_s, splits_due_s=due_s)

    def _stages_of_splits(self) -> Queries[None]:
        statement = self._parsed or (yield from self._classify())
        if statement is None:
            self._key = None
            return
        self._key = self._key or self._key_of(statement)
        if self._shared.quarantine.has_statement(self._key):
            self._skip_for(SkipReason.QUARANTINED)
            return
        limits, fence = self._limits(), self._shared.writes.open()
        planned = self._plan or (yield from self._make_plan(statement, limits))
        if planned is not None:
            # Before, too: a list that another session asks for may come meanwhile.
            self._lacks_splits |= not self._catalog.are_splits_current(planned)
            _ = yield from self._group(planned, limits, fence)
            self._lacks_splits |= not self._catalog.are_splits_current(planned)

    def _learning(self) -> Queries[None] | None:
        """The questions to ask beside the statement, for those that follow."""
        if not self._lacks_splits:
            return None
        run = DecisionRun(self._shared, self._catalog, self._listings, self._statement, self._terms)
        return self._catalog.learning(run.learn_splits())

    def _group(self, planned: Plan, limits: RewriteLimits, fence: Fence) -> Queries[bool]:
        """Insert hints for fewer splits where keys are not worth asking for. False if there are none."""
        if not limits.has_small_files:
            return False
        if self._would_group_by_expired(planned):
            self._lacks_splits = True
            self._skip_for(SkipReason.SPLITS_UNKNOWN)
            return False
        limits = _of_splits_alone(limits)
        files, hints = yield from self._files_of(self._catalog, planned, {}, limits, of_all=True)
        result = apply(planned, {}, limits, files=files, split_hints=hints)
        if result.is_changed:
            self._skip = None
        if result.is_changed or not self._terms.is_explained:
            self._keep(planned, {}, result, fence)
            self._skip_for(result.skip or _hindrance(planned, {}, result))
        return result.is_changed

    def _files(
        self, planned: Plan, answers: KeyAnswers, limits: RewriteLimits
    ) -> Queries[tuple[Mapping[TableName, FileIndex], SplitHints | None]]:
        """The files of the tables whose files are wanted, and the way in which Spark makes splits of them.

        Files of tables that nothing narrows are wanted for splits alone, which nothing is waited for.
        """
        is_expired = self._would_group_by_expired(planned)
        self._lacks_splits |= is_expired
        of_all = not is_expired and (self._terms.waits_for_splits or not planned.may_be_grouped)
        found = yield from self._files_of(self._catalog, planned, answers, limits, of_all=of_all)
        if of_all or is_expired:
            return found
        catalog = self._catalog_at_hand(is_planned=True)
        of_more = at_hand(self._files_of(catalog, planned, answers, limits, of_all=True))
        self._lacks_splits |= of_more is None or not catalog.are_splits_current(planned)
        return found if of_more is None else of_more[0]

    def _would_group_by_expired(self, planned: Plan) -> bool:
        """True if scans that nothing narrows would be grouped by expired facts that must not be too old.

        The types of columns decide whether the order of rows shows. An older snapshot of Iceberg may have fewer
        rows.
        """
        if not planned.may_be_grouped or self._catalog.is_current(planned):
            return False
        grouped = (scan.facts for scan in planned.scans if scan.grouped_within is not None)
        is_iceberg = any(facts is not None and facts.iceberg is not None for facts in grouped)
        return is_iceberg or not _BY_TYPES.isdisjoint(words(self._statement.text))

    def _files_of(
        self,
        catalog: SessionCatalog,
        planned: Plan,
        answers: KeyAnswers,
        limits: RewriteLimits,
        *,
        of_all: bool,
    ) -> Queries[tuple[Mapping[TableName, FileIndex], SplitHints | None]]:
        start = self._shared.clock()
        files = yield from catalog.files(planned, answers, limits, of_all=of_all)
        self._timings.files_s += self._shared.clock() - start
        asking = catalog.split_packing.hints(planned, answers, files, limits, of_all=of_all)
        return files, (yield from self._timings.of_catalog(asking))

    def _keep(self, planned: Plan, answers: KeyAnswers, result: Rewrite, fence: Fence) -> None:
        """Keep the rewrite, unless something has changed since the fence was opened."""
        asked = frozenset(_tables_read(answers))
        self._rewrite = result
        self._read_set = ReadSet(fence, asked, frozenset(self._snapshots), planned.names)
        self._skip_for(self._read_set.skip())

    def _timed_lookup(self, asking: Generator[Query, QueryResult, T]) -> Queries[T]:
        """The same queries, which count as lookups together with the reading of their answers."""
        start = self._shared.clock()
        found = yield from asking
        self._timings.catalog_s += self._shared.clock() - start
        return found

    # --- for explain

    def _look_up_for_explain(self, start: float) -> Queries[None]:
        # Some were listed already, to cover many keys by few ranges.
        missing = narrowable(self._plan).keys() - self._partitions.keys()
        listed = yield from self._timed_lookup(self._catalog.partitions(missing))
        self._partitions = {**self._partitions, **_indexes(listed)}
        if self._terms.run_key_queries and self._plan is not None:
            self._file_counts = yield from self._timings.of_catalog(self._catalog.file_counts(self._plan))
        self._key_ages = self._ages_of_keys(start)
        self._quarantined = self._quarantined_of_statement()

    def _ages_of_keys(self, start: float) -> dict[KeyQuery, float]:
        """The ages of remembered keys as the decision began: younger ones were asked for by it."""
        state = self._terms.state
        if state is None or self._rewrite is None:
            return {}
        used = {
            reducer.key_query
            for scan in self._rewrite.scans
            for reducer, keys in scan.reducers
            if keys is not None
        }
        asked_at = {question: self._shared.keys.asked_at(state, question) for question in used}
        return {question: start - at for question, at in asked_at.items() if at is not None and at < start}

    def _quarantined_of_statement(self) -> tuple[QuarantineEntry, ...]:
        """Quarantined rules, and this statement's fingerprint: those of others are not for its user to see."""
        own, current = self._key.name if self._key is not None else "", self._shared.quarantine.current()
        rules = (one for one in current if one.kind is QuarantineKind.RULE)
        of_user = (one for one in rules if one.owner in {"", self._terms.owner})
        return (*of_user, *(one for one in current if one.name == own))


def may_narrow(statement: StatementClass, config: Config, catalog: SessionCatalog) -> bool:
    """Whether a statement may be rewritten, by its class: most have nothing to narrow.

    Without a join there may be a filter that skips files, of a table that the file index has, or small files that
    are read in fewer splits.
    """
    return may_narrow_rows(statement, config, catalog) or may_read_small_files(statement, config, catalog)


def may_narrow_rows(statement: StatementClass, config: Config, catalog: SessionCatalog) -> bool:
    """The same for its rows, and not for splits."""
    if len(statement.text) > config.rewrite.statement_chars_max:
        return False
    if statement.may_have_a_join or may_read_views(statement, config, catalog):
        return True
    if not config.files.index or not statement.may_be_rewritten(has_file_index=True):
        return False
    indexed = catalog.indexed_at_hand()
    return indexed is None or indexed.is_named_in(statement.text)


def may_read_views(statement: StatementClass, config: Config, catalog: SessionCatalog) -> bool:
    """Whether a statement without a join may read a view that has one, as far as the session knows its names."""
    is_on = _RULES_OF_VIEWS.isdisjoint(config.rewrite.rules_off)
    is_read = is_on and len(statement.text) <= config.rewrite.statement_chars_max
    return is_read and catalog.may_read_views(statement)


def may_read_small_files(statement: StatementClass, config: Config, catalog: SessionCatalog) -> bool:
    """Whether a statement may read a table of many small files, as far as the index said when it was asked last.

    Where it was not asked, or that has expired, any table may be one, and the index is asked beside the statement.
    """
    if Rule.SPLITS in config.rewrite.rules_off or len(statement.text) > config.rewrite.statement_chars_max:
        return False
    names = catalog.may_name_small_files(statement)
    return not catalog.is_like_no_other if names is None else names


def limits_of(shared: SharedState, terms: DecisionTerms, *, has_small_files: bool = False) -> RewriteLimits:
    """The limits of a rewrite: the configuration, less the rules that are quarantined."""
    settings = shared.config.rewrite
    tables_off = (TableName(tuple(pattern.split("."))) for pattern in settings.tables_off)
    return RewriteLimits(
        key_rows_max=settings.key_rows_max,
        key_ranges_max=settings.key_ranges_max,
        key_queries_max=settings.key_queries_max,
        partition_list_max=settings.partition_list_max,
        small_side_bytes_max=settings.small_side_bytes_max,
        tiny_side_bytes_max=settings.tiny_side_bytes_max,
        metastore=shared.metastore.consumer,
        metastore_for=shared.metastore.lowered(terms.owner),
        predicate_chars_max=settings.predicate_chars_max,
        rules_off=shared.quarantine.rules_off(terms.owner).union(settings.rules_off),
        tables_off=frozenset(tables_off),
        strict=terms.settings.consistency == "strict",
        has_variables=terms.has_variables,
        file_hint_chars_max=shared.config.files.hint_chars_max,
        has_file_index=bool(shared.config.files.index),
        has_small_files=has_small_files,
    )


def _of_splits_alone(limits: RewriteLimits) -> RewriteLimits:
    """The limits of a rewrite that names no files: without keys, it inserts hints for fewer splits alone."""
    return replace(limits, rules_off=limits.rules_off | {Rule.FILE_HINTS, Rule.RANGE_IN})


def _tables_read(answers: KeyAnswers) -> set[TableName]:
    """The tables that keys were read from."""
    asked = (question for question, keys in answers.items() if keys is not SkipReason.SMALL_SIDE_WRITTEN)
    return {name for question in asked for name in question.tables}


def _hindrance(planned: Plan, answers: KeyAnswers, result: Rewrite) -> SkipReason | None:
    """A passing reason for a statement in which nothing is narrowed; the scans have reasons of their own."""
    if result.text != planned.statement.original:
        return None
    if SkipReason.SMALL_SIDE_WRITTEN in answers.values():
        return SkipReason.SMALL_SIDE_WRITTEN
    return SkipReason.DESCRIPTION_LATE if planned.late else None


def _refusal(statement: StatementClass) -> SkipReason | None:
    """The reason to leave a statement alone, whatever it says."""
    # Its call is kept until its answer is there, to be made again if that is out of date.
    call_bytes = len(statement.text.encode(errors="surrogatepass")) + _CALL_BYTES
    return SkipReason.TOO_LARGE_TO_REPEAT if call_bytes > KEPT_CALL_BYTES_MAX else None


def _indexes(listed: Mapping[TableName, ListedPartitions]) -> dict[TableName, PartitionIndex]:
    return {name: one.index for name, one in listed.items()}
