"""The context of one decision, and the draft that its stages hand on."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Self

from proxy.session.catalog.answer_policy import AnswerPolicy
from proxy.session.catalog.answers import Answer
from proxy.session.catalog.spark_settings import ServerSettings
from proxy.session.chances import Chances, chances_of
from proxy.session.consistency.read_set import ReadSet
from proxy.session.consistency.write_fence import Fence
from proxy.session.decision import Decision, DecisionTerms
from proxy.session.feedback.cost_model import GateVerdict
from proxy.session.feedback.spark_listings import SessionListings
from proxy.session.key_queries import KeyAnswers, KeyQueries
from proxy.session.planning import Planner
from proxy.session.session_catalog import SessionCatalog
from proxy.session.shared_state import SharedState
from proxy.session.table_files import TableFiles
from proxy.session.timings import Timings
from proxy.statements.statement_class import StatementClass
from rewriter import Plan, Rewrite, RewriteLimits, SkipReason, Statement, TableName
from rewriter.scopes.steps import Steps


@dataclass(frozen=True)
class Basis:
    """The terms that hold from the plan to the rewrite."""

    limits: RewriteLimits
    # It sees every write from its opening on: descriptions and keys are read after that.
    fence: Fence


@dataclass(frozen=True)
class DecisionContext:
    """A statement that is decided about: the session that brings it, its terms, and all that is known."""

    shared: SharedState
    # It notes in `timings` how long its queries take.
    catalog: SessionCatalog
    listings: SessionListings
    statement: StatementClass
    terms: DecisionTerms
    timings: Timings
    start: float
    # The server's settings as they were known as the decision began.
    settings: Answer[ServerSettings] | None
    # Gives back the room for the statement's tree.
    rooms: ExitStack
    # All plans of the decision share these planning steps.
    steps: Steps

    @classmethod
    def of(  # noqa: PLR0913, PLR0917 - the parts of a decision
        cls,
        shared: SharedState,
        catalog: SessionCatalog,
        listings: SessionListings,
        statement: StatementClass,
        terms: DecisionTerms,
        rooms: ExitStack,
    ) -> Self:
        """The context of a decision that begins."""
        timings = Timings()
        ask = timings.timed(catalog.policy.ask, shared.clock)
        policy = AnswerPolicy(ask, terms.grace_s, is_session_unchanged=terms.is_session_unchanged)
        start, settings = shared.clock(), catalog.last_settings
        return cls(
            shared, catalog.by(policy), listings, statement, terms, timings, start, settings, rooms, Steps()
        )

    def by(self, policy: AnswerPolicy) -> Self:
        """The context in which the session's catalog answers by another policy."""
        return replace(self, catalog=self.catalog.by(policy))

    @property
    def files(self) -> TableFiles:
        """The files of tables."""
        return TableFiles(self.catalog)

    def planner(self, limits: RewriteLimits) -> Planner:
        """The planner of the statement within these limits."""
        return Planner(self.catalog, limits, self.shared.plans, self.steps)

    def is_over(self, draft: Draft) -> bool:
        """True if nothing is left to do: the statement is left alone, and nobody asks for an explanation."""
        return draft.skip is not None and not self.terms.is_explained

    def chances(self) -> Chances:
        """The chances of the statement to be rewritten, by what is known now."""
        believes_ungrouped = not self.terms.waits_for_splits
        return chances_of(self.statement, self.shared.config, self.catalog, believes_ungrouped=believes_ungrouped)

    def basis(self) -> Basis:
        """The basis of a plan that is made next."""
        return Basis(self.limits(), self.shared.writes.open())

    def limits(self) -> RewriteLimits:
        """The limits of a rewrite by a plan that is made next."""
        return limits_of(self.shared, self.terms, has_small_files=self.chances().splits)

    def key_queries(self, planned: Plan, fence: Fence) -> KeyQueries:
        """The key queries of a plan; the fence was opened before the first of them."""
        return self.catalog.key_queries(self.terms.usable_keys(only_reads=planned.statement.only_reads), fence)


@dataclass(frozen=True)
class Draft(Decision):
    """An unfinished decision, with all that its stages need of one another."""

    # The statement as it was parsed.
    statement: Statement | None = None
    # None until it is planned.
    basis: Basis | None = None
    # The verdict of earlier runs, if the gate was asked. It is counted once the decision has been made.
    verdict: GateVerdict | None = None
    # True if something that decides about splits is not known or has expired.
    lacks_splits: bool = False

    def left(self, reason: SkipReason | None) -> Draft:
        """The draft that leaves the statement alone for a reason, unless there is an earlier one."""
        return self if self.skip is not None else replace(self, skip=reason)

    def planned(self, plan: Plan | SkipReason) -> Draft:
        """The draft with a plan, or left alone for the reason why there is none."""
        if isinstance(plan, SkipReason):
            # The plan's reason tells a user more than the gate's verdict, but for a statement that reads tables
            # alone.
            return self.left(plan) if plan is SkipReason.NO_JOIN_IN_TEXT else replace(self, skip=plan)
        return replace(self, plan=plan, unpinned=plan.unpinned)

    @property
    def is_changed(self) -> bool:
        """True if anything is inserted."""
        return self.rewrite is not None and self.rewrite.is_changed

    def applied(self, planned: Plan, answers: KeyAnswers, result: Rewrite, fence: Fence) -> Draft:
        """The draft with a rewrite, unless something has changed since the fence was opened."""
        read_set = ReadSet(fence, _tables_read(answers), frozenset(self.snapshots), planned.names)
        return replace(self, rewrite=result, read_set=read_set).left(read_set.skip())


def hindrance(planned: Plan, answers: KeyAnswers, result: Rewrite) -> SkipReason | None:
    """The reason why a rewrite changes nothing, if it concerns the whole statement; scans have their own."""
    if result.skip is not None or result.text != planned.statement.original:
        return result.skip
    if SkipReason.SMALL_SIDE_WRITTEN in answers.values():
        return SkipReason.SMALL_SIDE_WRITTEN
    return SkipReason.DESCRIPTION_LATE if planned.late else None


def _tables_read(answers: KeyAnswers) -> frozenset[TableName]:
    """The tables that keys were read from."""
    asked = (question for question, keys in answers.items() if keys is not SkipReason.SMALL_SIDE_WRITTEN)
    return frozenset(name for question in asked for name in question.tables)


def limits_of(shared: SharedState, terms: DecisionTerms, *, has_small_files: bool = False) -> RewriteLimits:
    """The limits of a rewrite: the configuration, less the rules that are quarantined."""
    settings = shared.config.rewrite
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
        tables_off=_named(settings.tables_off),
        only_tables=_named(settings.only_tables),
        merge_tables=_named(terms.settings.merge_tables),
        strict=terms.settings.consistency == "strict",
        has_variables=terms.has_variables,
        file_hint_chars_max=shared.config.files.hint_chars_max,
        has_file_index=bool(shared.config.files.index),
        has_small_files=has_small_files,
    )


def _named(patterns: Iterable[str]) -> frozenset[TableName]:
    return frozenset(TableName(tuple(pattern.split("."))) for pattern in patterns)
