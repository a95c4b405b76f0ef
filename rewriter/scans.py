"""All table references of a statement, each with its reducers or with the reason why it is left alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rewriter.catalog import TableName
from rewriter.jointree import Leaf, Reference
from rewriter.limits import Limits
from rewriter.matches import fact_refusal
from rewriter.readers import Readers
from rewriter.reducers import BlockPlanner, Reducer
from rewriter.rule import Rule
from rewriter.scopes import Block, Scopes
from rewriter.skip import SkipReason
from rewriter.strengthen import strengthen
from rewriter.strict import can_be_checked


@dataclass(frozen=True)
class PlannedScan:
    """A fact scan that may be narrowed by its reducers, or a table reference with the reason why not."""

    reference: Reference
    alias: str
    reducers: tuple[Reducer, ...] = ()
    skip: SkipReason | None = None
    # The columns that the table is partitioned by, the leading one first; of a view or a CTE they are not known.
    partition_columns: tuple[str, ...] = ()
    # The table by its full name, where the reference is not to a CTE, nor to what belongs to one session.
    table: TableName | None = None


def scans(scopes: Scopes, limits: Limits) -> tuple[PlannedScan, ...]:
    """One for each table reference in a FROM, outer blocks before inner ones."""
    found = _capped(_findings(scopes, limits), limits.key_queries_max)
    planned = tuple(
        _scan(scopes, block, leaf, leaf.reference, found[leaf.reference])
        for block in scopes.blocks
        for leaf in block.tree.leaves
        if leaf.reference is not None
    )
    return tuple(_if_checked(scopes, scan) for scan in planned) if limits.strict else planned


def _if_checked(scopes: Scopes, scan: PlannedScan) -> PlannedScan:
    """The scan, to be narrowed only where it can carry a check of its keys."""
    # Only of a table are these known: neither a view nor a CTE with the name of a table has them.
    is_table = bool(scan.partition_columns)
    if not scan.reducers or (is_table and can_be_checked(scopes.catalog.get(scan.reference.name))):
        return scan
    return replace(scan, reducers=(), skip=SkipReason.STRICT_TABLE)


def refused(scopes: Scopes, reason: SkipReason) -> tuple[PlannedScan, ...]:
    """All table references, left alone for one reason."""
    leaves = (leaf for block in scopes.blocks for leaf in block.tree.leaves)
    return tuple(
        PlannedScan(leaf.reference, leaf.alias, skip=reason) for leaf in leaves if leaf.reference is not None
    )


def _findings(scopes: Scopes, limits: Limits) -> dict[Reference, list[Reducer | SkipReason]]:
    found: dict[Reference, list[Reducer | SkipReason]] = defaultdict(list)
    if all(fact_refusal(scopes.catalog.get(name)) is not None for name in scopes.tables):
        # Most statements read no table that could be narrowed, and then nothing else matters.
        return found
    for block in scopes.blocks:
        scope = scopes.scope_of(block.select)
        if scope is not None and Rule.MADE_INNER not in limits.rules_off:
            strengthen(scope)
    readers = Readers(scopes)
    for block in scopes.blocks:
        scope = scopes.scope_of(block.select)
        if scope is not None and block.has_conditions:
            for finding in BlockPlanner(scopes, readers, scope, limits).findings():
                found[finding.reference].append(finding.result)
    return found


def _capped(
    found: dict[Reference, list[Reducer | SkipReason]], key_queries_max: int
) -> dict[Reference, list[Reducer | SkipReason]]:
    """The findings with no more than so many different key queries: the first ones, in the order of the text."""
    queries = dict.fromkeys(r.key_query for results in found.values() for r in results if isinstance(r, Reducer))
    allowed = set(list(queries)[:key_queries_max])
    capped = {
        reference: [
            SkipReason.TOO_MANY_KEY_QUERIES if isinstance(r, Reducer) and r.key_query not in allowed else r
            for r in results
        ]
        for reference, results in found.items()
    }
    return defaultdict(list, capped)


def _scan(
    scopes: Scopes, block: Block, leaf: Leaf, reference: Reference, found: list[Reducer | SkipReason]
) -> PlannedScan:
    reducers = tuple(dict.fromkeys(result for result in found if isinstance(result, Reducer)))
    if reducers and reference.refusal is None:
        # A CTE may have the name of a table.
        facts = None if scopes.is_cte_name(leaf) else scopes.catalog.get(reference.name)
        columns, table = (facts.partition_columns, facts.full_name) if facts is not None else ((), None)
        return PlannedScan(reference, leaf.alias, reducers, partition_columns=columns, table=table)
    return PlannedScan(reference, leaf.alias, skip=_reason(scopes, block, leaf, reference, found))


def _reason(
    scopes: Scopes, block: Block, leaf: Leaf, reference: Reference, found: list[Reducer | SkipReason]
) -> SkipReason:
    if block.refusal is not None:
        return block.refusal
    if scopes.is_cte_name(leaf):
        return SkipReason.NOT_A_TABLE
    if reference.refusal is not None:
        return reference.refusal
    if reference.name not in scopes.catalog:
        return SkipReason.NO_EQUALITY
    return fact_refusal(scopes.catalog[reference.name]) or _most_telling(found)


def _most_telling(found: list[Reducer | SkipReason]) -> SkipReason:
    """Of several refusals the one that came furthest: the enum lists them in the order of the checks."""
    ranked = list(SkipReason)
    reasons: Iterator[SkipReason] = (reason for reason in found if isinstance(reason, SkipReason))
    return max(reasons, key=ranked.index, default=SkipReason.NO_EQUALITY)
