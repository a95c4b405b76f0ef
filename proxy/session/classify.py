"""Classify and plan: parses statements whose class may be rewritten, and plans them by their tables' facts."""

from __future__ import annotations

from typing import Final

from proxy.operations.tracked_statements import KEPT_CALL_BYTES_MAX
from proxy.session.decision_context import DecisionContext
from proxy.session.timings import Purpose
from proxy.statements.statement_class import StatementClass
from rewriter import Plan, RewriteLimits, SkipReason, Statement

# The part of a call that is not the statement: a handle, settings and the fields' own bytes.
_CALL_BYTES: Final = 1024


async def classify(ctx: DecisionContext) -> Statement | SkipReason:
    """Parse the statement, if it is of a class that may be rewritten."""
    statement, chances = ctx.statement, ctx.chances()
    if chances.has_any and ctx.terms.hidden_names is not None:
        # This comes before any query: in such a session, the client's own objects could answer it.
        return ctx.terms.hidden_names
    has_file_index = chances.has_any and bool(ctx.shared.config.files.index)
    if has_file_index and not statement.may_have_a_join:
        # Without a join only the file index helps. Once its tables are known, `chances` is exact.
        with ctx.timings.lookup(ctx.shared.clock):
            _ = await ctx.files.indexed()
        chances = ctx.chances()
        has_file_index = chances.has_any
    is_read = chances.has_any and statement.may_be_rewritten(
        has_file_index=has_file_index, has_views=chances.views, has_small_files=chances.splits
    )
    if is_read and statement.depends_on_quoting and not await ctx.catalog.quoting_is_default():
        return SkipReason.QUOTING_SETTINGS
    if is_read and not _takes_room(ctx):
        return SkipReason.NO_MEMORY
    parsed = ctx.shared.plans.parse(
        statement.text,
        chars_max=ctx.shared.config.rewrite.statement_chars_max,
        has_file_index=has_file_index,
        has_views=chances.views,
        has_small_files=chances.splits,
    )
    return parsed if isinstance(parsed, SkipReason) else _refusal(statement) or parsed


async def make_plan(ctx: DecisionContext, statement: Statement, limits: RewriteLimits) -> Plan | SkipReason:
    """Plan the statement by the descriptions of its tables, and the lists of partitions that it wants."""
    planner = ctx.planner(limits)
    with ctx.timings.counting(Purpose.DESCRIPTIONS):
        planned = await planner.plan(statement)
    if isinstance(planned, SkipReason):
        return planned
    if not ctx.chances().has_any:
        # No name turned out to be that of a view.
        return SkipReason.NO_JOIN_IN_TEXT
    with ctx.timings.lookup(ctx.shared.clock):
        return await planner.with_lists(planned, {})


def _takes_room(ctx: DecisionContext) -> bool:
    """Take room for the statement's tree, as long as the decision lasts."""
    characters, analysis = len(ctx.statement.text), ctx.shared.analysis
    is_taken = analysis.take(characters)
    if is_taken:
        ctx.rooms.callback(analysis.give_back, characters)
    return is_taken


def _refusal(statement: StatementClass) -> SkipReason | None:
    """The reason to leave a statement alone for its size, whatever it says."""
    # The proxy keeps the call until its answer comes, and makes it again if the answer is out of date.
    call_bytes = len(statement.text.encode(errors="surrogatepass")) + _CALL_BYTES
    return SkipReason.TOO_LARGE_TO_REPEAT if call_bytes > KEPT_CALL_BYTES_MAX else None
