"""Ask: gets the keys of a plan's small sides, and checks that its tables and settings are still as planned."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from proxy.operations.key_check import CheckVerdict
from proxy.session.catalog.in_memory import may_be_in_memory, plan_query
from proxy.session.consistency.write_fence import Fence
from proxy.session.decision import UncheckedKeys
from proxy.session.decision_context import Basis, DecisionContext, Draft
from proxy.session.key_queries import KeyAnswers, KeyQueries
from proxy.session.session_catalog import asking
from proxy.session.timings import Purpose
from rewriter import Plan, SkipReason


async def ask_keys(
    ctx: DecisionContext, draft: Draft, planned: Plan, basis: Basis
) -> tuple[Draft, Plan, KeyAnswers]:
    """Ask for the keys of the small sides, at snapshots that the statement then names where it can.

    Return the plan with the snapshots and the lists of partitions that its answers want, and the answers.
    """
    if not ctx.terms.run_key_queries:
        return draft, planned, {}
    clock, timings, planner = ctx.shared.clock, ctx.timings, ctx.planner(basis.limits)
    with timings.counting(Purpose.DESCRIPTIONS):
        at_snapshots = await planner.pinned(planned)
    planned = at_snapshots.plan
    unpinned = {**draft.unpinned, **at_snapshots.unpinned}
    key_queries = ctx.key_queries(planned, basis.fence)
    draft = replace(
        draft, plan=planned, snapshots=at_snapshots.reads, unpinned=unpinned, key_errors=key_queries.errors
    )
    asks_later = key_queries.are_all_checked_later(planned)
    if not asks_later and not await _is_settled(ctx, planned):
        return draft.left(SkipReason.TABLES_UNSETTLED), planned, {}
    with timings.counting(Purpose.KEYS):
        answers = await key_queries.answers(planned)
    # Some keys may have turned out to be of another type than the fact's column.
    with timings.lookup(clock):
        with_lists = await planner.with_lists(planned, answers)
    if with_lists is not planned:
        planned, draft = with_lists, replace(draft, plan=with_lists)
        with timings.counting(Purpose.KEYS):
            answers = await key_queries.answers(planned, answers)
    if key_queries.to_check:
        check = partial(_check, ctx, planned, key_queries, answers)
        draft = replace(draft, unchecked=UncheckedKeys(key_queries.to_check, check, ctx.start))
    elif asks_later and not await _is_settled(ctx, planned):
        # The plan has no key queries, or all its keys are trusted: no check asks later.
        draft = draft.left(SkipReason.TABLES_UNSETTLED)
    elif await _are_views_in_memory(ctx, planned, answers):
        draft = draft.left(SkipReason.VIEW_IN_MEMORY)
    return draft, planned, answers


def uses_expired_in_vain(ctx: DecisionContext, planned: Plan, fence: Fence) -> bool:
    """True if the plan rests on expired facts or settings, although its keys have to be asked for first."""
    # A plan at snapshots has other key queries, and current facts describe its tables.
    asks_these = planned.key_queries and not planned.pinnable
    is_at_hand = asks_these and ctx.key_queries(planned, fence).are_all_checked_later(planned)
    return not is_at_hand and _rests_on_expired(ctx, planned)


async def _check(
    ctx: DecisionContext, planned: Plan, key_queries: KeyQueries, answers: KeyAnswers
) -> CheckVerdict:
    """Ask again, while the statement runs, for its remembered keys and for expired facts and settings."""
    # The check needs current answers, and its time is no part of the decision's.
    ctx = ctx.by(ctx.catalog.policy.current(asking(ctx.catalog.metadata, ctx.shared.writes, anew=True)))
    verdict = await replace(key_queries, ask=ctx.catalog.policy.ask).check(key_queries.to_check)
    if verdict is not CheckVerdict.HELD:
        return verdict
    is_same = await _are_tables_and_settings_as_planned(ctx, planned)
    is_one_moment = is_same and not await _are_views_in_memory(ctx, planned, answers)
    return CheckVerdict.HELD if is_one_moment else CheckVerdict.CHANGED


async def _are_views_in_memory(ctx: DecisionContext, planned: Plan, answers: KeyAnswers) -> bool:
    """True if Spark may read one of the views that are narrowed, or a part of it, from memory.

    Such a view shows old rows of the small side in its text, while the key query has read the current ones.
    """
    with ctx.timings.lookup(ctx.shared.clock):
        for name, condition in sorted(planned.joining_views(answers), key=str):
            if may_be_in_memory(await ctx.catalog.policy.ask(plan_query(name, condition, ctx.catalog.settings))):
                return True
    return False


async def _is_settled(ctx: DecisionContext, planned: Plan) -> bool:
    """True if views, tables and settings are as the plan takes them to be. No later check asks for them."""
    with ctx.timings.lookup(ctx.shared.clock):
        if _rests_on_expired(ctx, planned):
            return await _are_tables_and_settings_as_planned(ctx, planned)
        return not planned.follows or await ctx.catalog.is_as_planned(planned, _described_since(ctx))


def _rests_on_expired(ctx: DecisionContext, planned: Plan) -> bool:
    """True if the plan rests on descriptions or settings that have expired."""
    if not ctx.catalog.policy.grace_s:
        return False
    is_due = ctx.settings is not None and ctx.settings.until <= ctx.start
    return is_due or not ctx.catalog.is_current(planned)


async def _are_tables_and_settings_as_planned(ctx: DecisionContext, planned: Plan) -> bool:
    return await ctx.catalog.is_as_planned(planned, _described_since(ctx)) and (
        ctx.settings is None or await ctx.catalog.are_settings(ctx.settings.value)
    )


def _described_since(ctx: DecisionContext) -> float:
    """The moment since which a description counts as a new one."""
    since = ctx.terms.keys.asked_since
    return ctx.start if since is None else min(since, ctx.start)
