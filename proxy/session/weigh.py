"""Gate and weigh: leaves statements alone by lessons of earlier runs, or by the sizes of their facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from proxy.session.decision_context import DecisionContext, Draft
from proxy.session.feedback.cost_gate import StatementKey
from proxy.session.feedback.cost_inputs import facts_of, has_own_filters_alone, narrowable
from proxy.session.session_catalog import indexes_of
from rewriter import Plan, SkipReason, Statement, TableName
from rewriter.partitions.index import PartitionIndex
from rewriter.sql.fingerprint import fingerprint


def known_key(ctx: DecisionContext) -> StatementKey | None:
    """The key of a statement whose text is known: it can be left alone without being parsed."""
    if ctx.terms.is_explained or not ctx.chances().has_any:
        return None
    known = ctx.shared.known_texts.fingerprint(ctx.statement.text)
    return None if known is None else StatementKey(ctx.terms.scope, known, ctx.terms.owner)


def key_of(ctx: DecisionContext, statement: Statement) -> StatementKey:
    """The key of a parsed statement."""
    found = fingerprint(statement)
    ctx.shared.known_texts.parsed(ctx.statement.text, found)
    return StatementKey(ctx.terms.scope, found, ctx.terms.owner)


def gate(ctx: DecisionContext, draft: Draft, key: StatementKey) -> Draft:
    """Leave a statement alone that is quarantined, or whose runs so far have shown that it is not worth it."""
    draft = replace(draft, key=key)
    if ctx.shared.quarantine.has_statement(key):
        return draft.left(SkipReason.QUARANTINED)
    if not ctx.terms.settings.cost_gate:
        return draft
    # An explained statement does not count as one that runs.
    ask = ctx.shared.gate.report if ctx.terms.is_explained else ctx.shared.gate.decide
    report = ask(key, ctx.listings)
    draft = replace(draft, gate_report=report, verdict=report.verdict)
    return draft.left(report.skip) if report.leaves else draft


async def weigh(ctx: DecisionContext, draft: Draft, planned: Plan) -> Draft:
    """Leave a planned statement alone whose facts are too small to be worth their keys."""
    costs = ctx.shared.gate
    key = draft.key if ctx.terms.settings.cost_gate else None
    counted: Mapping[TableName, PartitionIndex] = {}
    if has_own_filters_alone(planned):
        draft = replace(draft, gate_report=None)
    elif key is not None and costs.lacks_counts(key):
        with ctx.timings.lookup(ctx.shared.clock):
            counted = indexes_of(await ctx.catalog.partitions(narrowable(planned)))
    facts = facts_of(planned, counted, ctx.catalog)
    draft = replace(draft, facts=facts)
    estimate = costs.estimate(key, facts) if key is not None and facts else None
    if draft.skip is None and estimate is not None and estimate.leaves:
        return replace(draft, gate_report=estimate).left(SkipReason.NOT_WORTH_IT)
    return draft
