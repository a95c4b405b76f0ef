"""Fewer splits: scans that nothing narrows, and whose files are small and many, are read in fewer tasks.

Fewer splits are not worth a wait: unknown facts are asked for beside the statement, for later statements. Only
explanations and comparisons wait for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from proxy.operations.query import Ask, Work
from proxy.session.classify import classify, make_plan
from proxy.session.consistency.asking import NotAtHandError
from proxy.session.decision_context import DecisionContext, Draft, hindrance
from proxy.session.key_queries import KeyAnswers
from proxy.session.session_catalog import asking
from proxy.session.timings import Purpose, Timings
from proxy.session.weigh import key_of
from rewriter import Plan, RewriteLimits, Rule, SkipReason, TableName, apply
from rewriter.files.file_index import FileIndex
from rewriter.scopes.steps import Steps
from rewriter.splits.packing import SplitHints

# Reasons to leave a statement alone that say nothing of its splits.
_PASSING: Final = frozenset({SkipReason.QUARANTINED, SkipReason.NO_MEMORY})


@dataclass(frozen=True)
class PlanFiles:
    """The files of a plan's tables as far as they are known, and the way in which Spark makes splits of them."""

    files: Mapping[TableName, FileIndex]
    hints: SplitHints | None
    # True if something that decides about splits is not known or has expired.
    lacks_splits: bool = False


def is_for_splits_alone(ctx: DecisionContext) -> bool:
    """True if a rewrite can only bring fewer splits, for which the statement waits for no query."""
    chances = ctx.chances()
    return chances.splits and not chances.rows and not ctx.terms.waits_for_splits


async def with_fewer_splits(ctx: DecisionContext, draft: Draft) -> Draft:
    """The draft with hints for fewer splits alone, where its rows are left as they are."""
    if not ctx.chances().splits:
        return draft
    waits = ctx.terms.waits_for_splits
    asking = ctx if waits else _at_hand(ctx)
    found = replace(draft, skip=None)
    try:
        for stage in (_parsed, _planned, _grouped):
            if found.skip is None:
                found = await stage(asking, found)
    except NotAtHandError:
        found = replace(found, skip=SkipReason.SPLITS_UNKNOWN, lacks_splits=True)
    if found.rewrite is not draft.rewrite and found.is_changed:
        return found
    keeps_splits = not found.lacks_splits and found.skip not in _PASSING
    if keeps_splits and not waits and draft.skip is not SkipReason.FEW_FILES:
        ctx.catalog.metadata.ungrouped.add(ctx.statement.text)
    # The first reason tells a user the most.
    return found if draft.skip is None else replace(draft, lacks_splits=found.lacks_splits)


async def files_of(ctx: DecisionContext, planned: Plan, answers: KeyAnswers, limits: RewriteLimits) -> PlanFiles:
    """The files by which a plan's scans are narrowed, and, without waiting, those for splits alone."""
    is_expired = _would_group_by_expired(ctx, planned)
    of_all = not is_expired and (ctx.terms.waits_for_splits or not planned.may_be_grouped)
    found = await _files_of(ctx, planned, answers, limits, of_all=of_all)
    if of_all or is_expired:
        return replace(found, lacks_splits=is_expired)
    at_hand = _at_hand(ctx)
    try:
        found = await _files_of(at_hand, planned, answers, limits, of_all=True)
    except NotAtHandError:
        return replace(found, lacks_splits=True)
    return replace(found, lacks_splits=not ctx.files.are_splits_current(planned))


def learning(ctx: DecisionContext) -> Work[None] | None:
    """The work beside the statement that asks for all that decides about its splits; None where others do it."""

    async def learn(ask: Ask) -> None:
        with ExitStack() as rooms:
            beside = replace(ctx, timings=Timings(), rooms=rooms, steps=Steps())
            await _learn_splits(beside.by(ctx.catalog.policy.current(ask)))

    known = ctx.catalog.metadata
    return known.learning.turn(learn, asking(known, ctx.shared.writes), ctx.catalog.policy.is_session_unchanged)


async def _learn_splits(ctx: DecisionContext) -> None:
    statement = await classify(ctx)
    if isinstance(statement, SkipReason):
        return
    limits = ctx.limits()
    planned = await make_plan(ctx, statement, limits)
    if not isinstance(planned, SkipReason):
        _ = await _files_of(ctx, planned, {}, _of_splits_alone(limits), of_all=True)


async def _parsed(ctx: DecisionContext, draft: Draft) -> Draft:
    statement = draft.statement or await classify(ctx)
    if isinstance(statement, SkipReason):
        return replace(draft, key=None).left(statement)
    key = draft.key or key_of(ctx, statement)
    draft = replace(draft, key=key, statement=statement)
    return draft.left(SkipReason.QUARANTINED) if ctx.shared.quarantine.has_statement(key) else draft


async def _planned(ctx: DecisionContext, draft: Draft) -> Draft:
    if draft.statement is None or draft.plan is not None:
        return draft
    basis = ctx.basis()
    return replace(draft, basis=basis).planned(await make_plan(ctx, draft.statement, basis.limits))


async def _grouped(ctx: DecisionContext, draft: Draft) -> Draft:
    planned, basis = draft.plan, draft.basis
    if planned is None or basis is None:
        return draft
    if not basis.limits.has_small_files:
        # The plan was made before the small files were known of.
        return replace(draft, lacks_splits=True)
    # This is checked before and after the files are fetched: a list that another session asks for may come in
    # between.
    lacks_splits = draft.lacks_splits or not ctx.files.are_splits_current(planned)
    if _would_group_by_expired(ctx, planned):
        return replace(draft.left(SkipReason.SPLITS_UNKNOWN), lacks_splits=True)
    limits = _of_splits_alone(basis.limits)
    known = await _files_of(ctx, planned, {}, limits, of_all=True)
    lacks_splits |= not ctx.files.are_splits_current(planned)
    result = apply(planned, {}, limits, files=known.files, split_hints=known.hints)
    draft = replace(draft, lacks_splits=lacks_splits).applied(planned, {}, result, basis.fence)
    return draft.left(hindrance(planned, {}, result))


def _at_hand(ctx: DecisionContext) -> DecisionContext:
    """The context that asks nobody."""
    return ctx.by(ctx.catalog.policy.at_hand(ctx.shared.config.splits.asked_every_s))


def _would_group_by_expired(ctx: DecisionContext, planned: Plan) -> bool:
    """True if scans that nothing narrows would be grouped by descriptions or settings that have expired.

    Nobody asks for them again before a row leaves, and by now the order of rows may show in the answer: a column
    may be of another type or collation, and a table may be a view. An older snapshot may have fewer rows.
    """
    catalog = ctx.catalog
    return planned.may_be_grouped and not (catalog.is_current(planned) and catalog.knows_settings(ctx.settings))


async def _files_of(
    ctx: DecisionContext, planned: Plan, answers: KeyAnswers, limits: RewriteLimits, *, of_all: bool
) -> PlanFiles:
    with ctx.timings.fetching_files(ctx.shared.clock):
        files = await ctx.files.wanted(planned, answers, limits, of_all=of_all)
    with ctx.timings.counting(Purpose.DESCRIPTIONS):
        packing, ask = ctx.files.packing, ctx.catalog.policy.ask
        hints = await packing.hints(ask, planned, answers, files, limits, of_all=of_all)
    return PlanFiles(files, hints)


def _of_splits_alone(limits: RewriteLimits) -> RewriteLimits:
    """The limits of a rewrite that names no files: without keys, it inserts hints for fewer splits alone."""
    return replace(limits, rules_off=limits.rules_off | {Rule.FILE_HINTS, Rule.RANGE_IN})
