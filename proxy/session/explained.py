"""Explain: all that only a user who asks for an explanation wants to know of a decision."""

from __future__ import annotations

from dataclasses import replace

from proxy.session.decision import Decision
from proxy.session.decision_context import DecisionContext
from proxy.session.feedback.cost_inputs import narrowable
from proxy.session.feedback.quarantine_list import QuarantineEntry, QuarantineKind
from proxy.session.session_catalog import indexes_of
from proxy.session.timings import Purpose
from rewriter import KeyQuery


async def look_up_explained(ctx: DecisionContext, decision: Decision) -> Decision:
    """The decision with the partitions and files of its facts, the ages of keys, and the quarantine."""
    # Some were listed already, to cover many keys by few ranges.
    missing = narrowable(decision.plan).keys() - decision.partitions.keys()
    with ctx.timings.lookup(ctx.shared.clock):
        listed = await ctx.catalog.partitions(missing)
    if ctx.terms.run_key_queries and decision.plan is not None:
        with ctx.timings.counting(Purpose.DESCRIPTIONS):
            decision = replace(decision, file_counts=await ctx.files.file_counts(decision.plan))
            if decision.rewrite is not None:
                decision = replace(decision, delta_bytes=await ctx.files.delta_bytes(decision.rewrite))
    return replace(
        decision,
        partitions={**decision.partitions, **indexes_of(listed)},
        key_ages=_ages_of_keys(ctx, decision),
        quarantined=_quarantined_of_statement(ctx, decision),
    )


def _ages_of_keys(ctx: DecisionContext, decision: Decision) -> dict[KeyQuery, float]:
    """The ages of remembered keys as the decision began: younger ones were asked for by it."""
    state = ctx.terms.state
    if state is None or decision.rewrite is None:
        return {}
    used = {
        reducer.key_query for scan in decision.rewrite.scans for reducer, keys in scan.reducers if keys is not None
    }
    asked_at = {question: ctx.shared.keys.asked_at(state, question) for question in used}
    return {question: ctx.start - at for question, at in asked_at.items() if at is not None and at < ctx.start}


def _quarantined_of_statement(ctx: DecisionContext, decision: Decision) -> tuple[QuarantineEntry, ...]:
    """Quarantined rules, and this statement's fingerprint: those of others are not for its user to see."""
    own, current = decision.key.name if decision.key is not None else "", ctx.shared.quarantine.current()
    rules = (one for one in current if one.kind is QuarantineKind.RULE)
    of_user = (one for one in rules if one.owner in {"", ctx.terms.owner})
    return (*of_user, *(one for one in current if one.name == own))
