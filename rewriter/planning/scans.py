"""All table references of a statement, each with its reducers or with the reason why it is not narrowed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from rewriter.catalog.prunable import fact_refusal
from rewriter.catalog.table_facts import TableFacts
from rewriter.domains.cover import Cover
from rewriter.partitions.index import PartitionIndexes
from rewriter.planning.switched_off import folded, is_among
from rewriter.planning.unused_conditions import UnusedConditions
from rewriter.planning.view_joins import view_findings
from rewriter.scopes.blocks import Block, Scope
from rewriter.scopes.conjunct_place import conjunct_for
from rewriter.scopes.join_tree import Leaf, TableReference
from rewriter.scopes.outer_to_inner import make_outer_joins_inner
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.filtered_sides import FilteredSides
from rewriter.semijoins.followed_facts import FactFollower
from rewriter.semijoins.limits import RewriteLimits
from rewriter.semijoins.literal_filters import own_cover
from rewriter.semijoins.merge_check import MergeCheck, merge_check
from rewriter.semijoins.outer_filters import OuterFilterFinder
from rewriter.semijoins.planned_scan import PlannedScan
from rewriter.semijoins.reducer import Reducer
from rewriter.semijoins.reducers import BlockPlanner
from rewriter.semijoins.small_sides import TinySides
from rewriter.splits.grouped_scans import grouped_scans
from rewriter.sql.statement import Statement
from rewriter.vocabulary.cited import listed
from rewriter.vocabulary.identifiers import TableName
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import Refusal, SkipReason


def scans(
    scopes: Scopes, limits: RewriteLimits, partitions: PartitionIndexes, tiny: TinySides
) -> tuple[PlannedScan, ...]:
    """One for each table reference in a FROM, outer blocks before inner ones."""
    found = _findings(scopes, limits, partitions, tiny)
    found = replace(found, results=_capped(found.results, limits.key_queries_max))
    return tuple(
        _scan(scopes, block, leaf, leaf.reference, found)
        for block in scopes.blocks
        for leaf in block.tree.leaves
        if leaf.reference is not None
    )


def by_fixed_keys(planned: tuple[PlannedScan, ...]) -> tuple[PlannedScan, ...]:
    """The scans without reducers whose keys may change until the statement reads them again.

    The target of a MERGE has a check in the statement, whatever its keys.
    """
    return tuple(_by_fixed_keys(scan) for scan in planned)


def _by_fixed_keys(scan: PlannedScan) -> PlannedScan:
    if not scan.reducers or scan.merge_check is not None:
        return scan
    fixed = tuple(reducer for reducer in scan.reducers if reducer.key_query.is_fixed)
    return replace(scan, reducers=fixed, skip=None if fixed else SkipReason.STRICT_KEYS)


def beside_foreign(planned: tuple[PlannedScan, ...], foreign: AbstractSet[TableName]) -> tuple[PlannedScan, ...]:
    """The scans without reducers of formats that skip files by themselves, if a foreign table is read.

    Spark infers any condition that such a format can use for the foreign table too.
    """
    if not foreign:
        return planned
    cause = f"of another system: {listed(sorted(map(str, foreign)))}"
    return tuple(
        replace(scan, reducers=(), skip=SkipReason.METASTORE_FILTER, cause=cause)
        if scan.reducers and scan.facts is not None and scan.facts.skips_files_itself
        else scan
        for scan in planned
    )


def refused(scopes: Scopes, refusal: Refusal) -> tuple[PlannedScan, ...]:
    """All table references, each skipped for the one reason."""
    leaves = (leaf for block in scopes.blocks for leaf in block.tree.leaves)
    return tuple(
        PlannedScan(leaf.reference, leaf.alias, skip=refusal.reason, cause=refusal.cause)
        for leaf in leaves
        if leaf.reference is not None
    )


@dataclass(frozen=True)
class _Findings:
    """The reducers and refusals of equalities, and the statement's own filters that can leave out files."""

    results: dict[TableReference, list[Reducer | Refusal]] = field(default_factory=lambda: defaultdict(list))
    own: dict[TableReference, Cover] = field(default_factory=dict)
    # The scans that may be read in fewer splits without being narrowed, and the partitions that they read.
    grouped: dict[TableReference, Cover] = field(default_factory=dict)
    # The conditions that led to no finding; None if they were not looked at.
    unused: UnusedConditions | None = None
    # The check of a MERGE whose target may be narrowed.
    merge_check: MergeCheck | None = None


def _findings(scopes: Scopes, limits: RewriteLimits, partitions: PartitionIndexes, tiny: TinySides) -> _Findings:
    found = _Findings()
    if all(fact_refusal(scopes.catalog.get(name)) is not None for name in scopes.tables):
        # Most statements read no table that could be narrowed: then no other check is needed.
        return found
    if Rule.MADE_INNER not in limits.rules_off:
        make_outer_joins_inner(scopes)
    filter_finder = OuterFilterFinder(scopes)
    asks_lists = Rule.PARTITION_LIST not in limits.rules_off
    found = replace(found, unused=UnusedConditions(scopes, filter_finder, asks_lists=asks_lists))
    found.grouped.update(grouped_scans(scopes, filter_finder, limits))
    follower = FactFollower(scopes, FilteredSides(scopes, filter_finder, tiny, partitions, limits.rules_off))
    if scopes.blocks[0].is_merge:
        found = _with_merge_check(found, scopes, scopes.blocks[0], filter_finder, limits)
    for block in scopes.blocks:
        scope = scopes.scope_of(block.select)
        if scope is not None and block.has_conditions and (not block.is_merge or found.merge_check):
            for finding in BlockPlanner(scopes, follower, scope, limits, partitions).findings():
                check = found.merge_check if block.is_merge else None
                results = (finding.result,) if check is None else check.checkable(finding.result)
                found.results[finding.reference].extend(results)
            if Rule.FILE_HINTS not in limits.rules_off:
                found.own.update(_own_covers(scopes, filter_finder, scope))
    for finding in view_findings(scopes, limits, partitions, tiny):
        found.results[finding.reference].append(finding.result)
    return found


def _with_merge_check(
    found: _Findings, scopes: Scopes, block: Block, filter_finder: OuterFilterFinder, limits: RewriteLimits
) -> _Findings:
    """The findings with the check of a MERGE whose target may be narrowed, or with the reason why it may not."""
    target, scope = block.tree.leaves[0].reference, scopes.scope_of(block.select)
    if target is None or scope is None:
        return found
    facts = scopes.catalog.get(target.name)
    if facts is None or not is_among(folded(limits.merge_tables), target.name, facts):
        check: MergeCheck | Refusal = SkipReason.MERGE_OFF
    elif not facts.skips_files_itself:
        # In any other format, a MERGE that fails may leave the table changed.
        check = SkipReason.PROVIDER.because(facts.provider)
    else:
        check = merge_check(scopes.statement, scope, filter_finder.filters_of(scope))
    if isinstance(check, Refusal):
        found.results[target].append(check)
        return found
    return replace(found, merge_check=check)


def _own_covers(
    scopes: Scopes, filter_finder: OuterFilterFinder, scope: Scope
) -> Iterator[tuple[TableReference, Cover]]:
    """The covers of the block's own filters on the tables that it reads, without covers of all rows."""
    for leaf in scope.block.tree.leaves:
        if leaf.reference is None or leaf.reference.refusal is not None or scopes.is_cte_name(leaf):
            continue
        if leaf.reference.is_named_by_database:
            continue
        facts = scopes.catalog.get(leaf.reference.name)
        if facts is not None and facts.takes_file_hints and fact_refusal(facts) is None:
            cover = own_cover(scopes.statement, scope, filter_finder.filters_of(scope), leaf, facts)
            scopes.steps.look_at(len(cover.boxes))
            if not cover.is_all:
                yield leaf.reference, cover


def _capped(
    found: dict[TableReference, list[Reducer | Refusal]], key_queries_max: int
) -> dict[TableReference, list[Reducer | Refusal]]:
    """The findings with at most that many different key queries: the first ones, in the order of the text."""
    queries = dict.fromkeys(r.key_query for results in found.values() for r in results if isinstance(r, Reducer))
    kept_queries = set(list(queries)[:key_queries_max])
    capped = {
        reference: [
            SkipReason.TOO_MANY_KEY_QUERIES if isinstance(r, Reducer) and r.key_query not in kept_queries else r
            for r in results
        ]
        for reference, results in found.items()
    }
    return defaultdict(list, capped)


def _scan(scopes: Scopes, block: Block, leaf: Leaf, reference: TableReference, noted: _Findings) -> PlannedScan:
    found, own = noted.results[reference], noted.own.get(reference)
    reducers = tuple(dict.fromkeys(result for result in found if isinstance(result, Reducer)))
    wants_list = SkipReason.PARTITIONS_NOT_LISTED in found
    if (reducers or own is not None) and reference.refusal is None:
        # A CTE may have the name of a table.
        facts = None if scopes.is_cte_name(leaf) else scopes.catalog.get(reference.name)
        if facts is not None and _hides_metadata(scopes.statement, facts):
            return PlannedScan(reference, leaf.alias, skip=SkipReason.METADATA_IN_USE)
        is_beside_conjunct = reference.is_named_by_database or block.is_merge
        found_place = conjunct_for(scopes.statement, block, leaf) if is_beside_conjunct else None
        if is_beside_conjunct and found_place is None:
            return PlannedScan(reference, leaf.alias, skip=SkipReason.NAMED_BY_DATABASE)
        return PlannedScan(
            reference,
            leaf.alias,
            reducers,
            facts=facts,
            own_cover=own or Cover.all(),
            wants_list=wants_list,
            grouped_within=noted.grouped.get(reference),
            conjunct_start=found_place,
            merge_check=noted.merge_check if block.is_merge else None,
        )
    refusal = _refusal(scopes, block, leaf, reference, noted)
    grouped = noted.grouped.get(reference)
    return PlannedScan(
        reference,
        leaf.alias,
        skip=refusal.reason,
        cause=refusal.cause,
        facts=scopes.catalog.get(reference.name) if grouped is not None else None,
        wants_list=wants_list and reference.refusal is None,
        grouped_within=grouped,
    )


def _hides_metadata(statement: Statement, facts: TableFacts) -> bool:
    """True if a narrowed scan would hide a column of Iceberg's: its name could then mean an outer query's."""
    named = statement.iceberg_metadata if facts.iceberg is not None else ()
    return any(facts.column(name) is None for name in named)


def _refusal(scopes: Scopes, block: Block, leaf: Leaf, reference: TableReference, noted: _Findings) -> Refusal:
    if block.refusal is not None:
        return block.refusal
    if scopes.is_cte_name(leaf):
        return SkipReason.NOT_A_TABLE
    if reference.refusal is not None:
        return reference.refusal
    if reference.name not in scopes.catalog:
        # Tables are not looked up in a statement that could narrow none.
        return SkipReason.NO_EQUALITY.because(_NOTHING_COMPARED)
    facts = scopes.catalog[reference.name]
    refusal = fact_refusal(facts) or _most_telling(noted.results[reference])
    if refusal is None and noted.unused is not None and facts is not None:
        return noted.unused.refusal(block, leaf, facts)
    return refusal or SkipReason.NO_EQUALITY


_NOTHING_COMPARED = (
    "no condition of the statement is on two tables of one SELECT or has a subquery, and Spark uses filters on one"
    " table by itself"
)


def _most_telling(found: list[Reducer | Refusal]) -> Refusal | None:
    """The refusal of several that passed most checks: the enum lists them in the order of the checks."""
    ranked = list(SkipReason)
    refusals: Iterator[Refusal] = (refusal for refusal in found if isinstance(refusal, Refusal))
    return max(
        refusals, key=lambda refusal: (ranked.index(refusal.reason), refusal.cause is not None), default=None
    )
