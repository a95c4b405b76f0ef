"""One decision: a statement on its way through the stages gate, classify, plan, weigh, ask and apply.

Each stage takes a draft and returns it with more in it. A stage asks its queries in one of the proxy's own
sessions where there is one, and those for keys in the client's session (`proxy.session.consistency.asking`).
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from secrets import token_hex
from typing import Final

from proxy.session.ask_keys import ask_keys, uses_expired_in_vain
from proxy.session.classify import classify, make_plan
from proxy.session.decision import Decision, DecisionTerms
from proxy.session.decision_context import Basis, DecisionContext, Draft, hindrance
from proxy.session.explained import look_up_explained
from proxy.session.feedback.cost_inputs import has_own_filters_alone, spares_too_little
from proxy.session.feedback.spark_listings import SessionListings
from proxy.session.fewer_splits import (
    files_of,
    is_for_splits_alone,
    learning,
    with_fewer_splits,
)
from proxy.session.session_catalog import SessionCatalog, indexes_of
from proxy.session.shared_state import SharedState
from proxy.session.weigh import gate, key_of, known_key, weigh
from proxy.statements.statement_class import StatementClass
from rewriter import Plan, SkipReason, Statement, apply

_CHECK_WORD_BYTES: Final = 8


async def decide(
    shared: SharedState,
    catalog: SessionCatalog,
    listings: SessionListings,
    statement: StatementClass,
    terms: DecisionTerms,
) -> Decision:
    """Decide about a statement: whether it is rewritten, by which keys, and why not.

    For an explanation, the stages go on as far as they can, although there is a reason to leave the statement
    alone. At the end, all that only a user wants to know is looked up.
    """
    with ExitStack() as rooms:
        ctx = DecisionContext.of(shared, catalog, listings, statement, terms, rooms)
        draft = await _draft(ctx)
        decision = await look_up_explained(ctx, draft) if terms.is_explained else _with_last_lists(ctx, draft)
        if draft.verdict is not None and not terms.is_explained:
            shared.metrics.gate_decided(draft.verdict)
        ctx.timings.total_s = shared.clock() - ctx.start
        # Nothing is done beside a statement that is only explained.
        asks_beside = draft.lacks_splits and not terms.waits_for_splits
        return replace(decision, beside=learning(ctx) if asks_beside else None)


def _with_last_lists(ctx: DecisionContext, decision: Decision) -> Decision:
    """The decision with the partition lists of narrowed scans, for the history: those that need no query."""
    if decision.rewrite is None:
        return decision
    narrowed = {scan.scan.reference.name for scan in decision.rewrite.scans if scan.predicate is not None}
    at_hand = ctx.catalog.last_partitions(narrowed - decision.partitions.keys())
    return replace(decision, partitions={**at_hand, **decision.partitions})


async def _draft(ctx: DecisionContext) -> Draft:
    draft = Draft(ctx.statement.text, timings=ctx.timings)
    if is_for_splits_alone(ctx):
        return await with_fewer_splits(ctx, draft)
    draft = await _classified(ctx, draft)
    if draft.statement is not None and not ctx.is_over(draft):
        ctx, draft = await _weighed(ctx, draft, draft.statement)
    if draft.is_left_by_gate:
        draft = await with_fewer_splits(ctx, draft)
    plan, basis = draft.plan, draft.basis
    if plan is None or basis is None or ctx.is_over(draft) or draft.is_changed:
        return draft
    draft = await _narrowed(ctx, draft, plan, basis)
    return await with_fewer_splits(ctx, draft) if draft.skip is SkipReason.FEW_FILES else draft


async def _classified(ctx: DecisionContext, draft: Draft) -> Draft:
    """Parse a statement, unless its text or its earlier runs say to leave it alone."""
    key = known_key(ctx)
    if key is not None:
        draft = gate(ctx, draft, key)
        if ctx.is_over(draft):
            return draft
    statement = await classify(ctx)
    if isinstance(statement, SkipReason):
        return replace(draft, key=None).left(statement)
    draft = replace(draft, statement=statement)
    return draft if key is not None else gate(ctx, draft, key_of(ctx, statement))


async def _weighed(ctx: DecisionContext, draft: Draft, statement: Statement) -> tuple[DecisionContext, Draft]:
    """Plan a statement, by current facts where expired ones are of no use, and weigh it."""
    basis = ctx.basis()
    plan = await make_plan(ctx, statement, basis.limits)
    if isinstance(plan, Plan) and uses_expired_in_vain(ctx, plan, basis.fence):
        ctx = ctx.by(ctx.catalog.policy.current())
        plan = await make_plan(ctx, statement, basis.limits)
    draft = replace(draft, basis=basis).planned(plan)
    return ctx, draft if isinstance(plan, SkipReason) else await weigh(ctx, draft, plan)


async def _narrowed(ctx: DecisionContext, draft: Draft, plan: Plan, basis: Basis) -> Draft:
    """Insert predicates and hints for the keys, if nothing has changed since the fence was opened."""
    draft, plan, answers = await ask_keys(ctx, draft, plan, basis)
    with ctx.timings.lookup(ctx.shared.clock):
        many = plan.wants_partitions(answers)
        listed = await ctx.catalog.partitions({*many, *plan.wants_values(answers)})
    known = await files_of(ctx, plan, answers, basis.limits)
    costs = ctx.catalog.costs({name: listed[name] for name in many if name in listed})
    read_alike = {name for name, one in listed.items() if not one.index.unreadable}
    limits = replace(
        basis.limits,
        check_word=token_hex(_CHECK_WORD_BYTES),
        misread_tables=plan.cast_tables - read_alike,
    )
    result = apply(plan, answers, limits, costs, known.files, split_hints=known.hints)
    draft = replace(draft, lacks_splits=known.lacks_splits).applied(plan, answers, result, basis.fence)
    draft = replace(draft, partitions=indexes_of(listed))
    if ctx.terms.settings.cost_gate and has_own_filters_alone(plan) and spares_too_little(result):
        return draft.left(result.skip or SkipReason.FEW_FILES)
    return draft.left(hindrance(plan, answers, result))
