"""Conditions over a fact's partition columns that keys cannot answer: Spark tells which partitions satisfy them.

A conjunct of a join's condition counts if it reads partition columns of the fact and one other FROM item, or
partition columns and subqueries alone: `f.ds > (SELECT max(l.ds) FROM loads l)`, `to_date(f.ds) = d.day`,
`f.ds BETWEEN p.first AND p.last`. In a BETWEEN that reads more, each end counts by itself. A derived table may
compute the column from partition columns (`rewriter.semijoins.computed_columns`). A row of the fact must satisfy
them where it stands on a side whose rows the join keeps only if its condition holds
(`rewriter.scopes.join_rules`), as for an equality.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rewriter.catalog.prunable import fact_refusal
from rewriter.catalog.table_facts import TableFacts, TableKind
from rewriter.domains.literals import is_key_type
from rewriter.scopes.blocks import ColumnOrigin, Operand, Scope
from rewriter.scopes.join_rules import CONDITION_HOLDS
from rewriter.scopes.join_tree import Join, Leaf, TableReference
from rewriter.scopes.lineage import origins_by_branch
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.computed_columns import ComputedColumn, computed_columns
from rewriter.semijoins.equalities import ItemPartner, KeyEquality
from rewriter.semijoins.outer_filters import OuterFilterFinder
from rewriter.semijoins.side_filters import BlockFilters, SideFilter
from rewriter.semijoins.small_sides import (
    columns_from_outside,
    is_plain_exists,
    is_repeatable_correlated_subquery,
    tables_read,
)
from rewriter.sql.conditions import Conjunct, ends_of_between
from rewriter.sql.statement import is_plain_name
from rewriter.vocabulary.identifiers import Column, TableName, quoted

# Aggregates whose result is the value of one of their rows.
_EXTREMES = (exp.Max, exp.Min)

# Steps in which a subquery of a condition is looked through.
_STEPS_PER_QUERY = 20


@dataclass(frozen=True, eq=False)
class PartitionCondition:
    """A conjunct over partition columns of one table and one partner, or none where it has subqueries instead."""

    fact: Leaf
    # The item that reads the table, which may stand within the fact.
    scan: Leaf
    reference: TableReference
    facts: TableFacts
    # The columns that it reads: the fact's names for them in the block, and the table's own columns. For computed
    # columns these are the columns that they are computed from, by the names there.
    columns: tuple[tuple[str, Column], ...]
    computed: tuple[ComputedColumn, ...]
    partner: ItemPartner | None
    text: str
    # The subqueries that it has, and the tables that they read.
    queries: tuple[exp.Expr, ...]
    tables: frozenset[TableName]
    # True if the columns may be padded with nulls where the condition is tested.
    may_be_padding: bool
    # True if it stands in EXISTS, or is one.
    is_in_exists: bool


@dataclass(frozen=True)
class _Asked:
    """A conjunct of a join's condition in the words that Spark is asked in, its partner, and its subqueries."""

    join: Join
    partner: ItemPartner | None
    text: str
    queries: tuple[exp.Expr, ...] = ()
    is_exists: bool = False


class PartitionConditionFinder:
    """Finds the conditions of one block's joins over partition columns. All tables are in the catalog."""

    def __init__(self, scopes: Scopes, scope: Scope, filters: BlockFilters) -> None:
        self._scopes = scopes
        self._scope = scope
        self._filters = filters
        self._computed: dict[tuple[Leaf, str], list[ComputedColumn]] = {}

    def conditions(self, join: Join) -> Iterator[PartitionCondition]:
        """The conditions in a join's condition, one for each table that a fact's columns come from."""
        yield from self._of_merged(join)
        for conjunct in self._filters.located(join):
            columns, queries = self._scopes.own_parts(conjunct.tree)
            if len(columns) < 2 and not queries:  # noqa: PLR2004 - a fact's, and another item's
                continue
            found = list(self._of_terms(join, conjunct, [conjunct.tree], conjunct.text(self._scopes.statement)))
            if not found and isinstance(conjunct.tree, exp.Exists):
                found = list(self._of_exists(join, conjunct.tree.this.unnest()))
            if not found and isinstance(conjunct.tree, exp.Between):
                self._scopes.steps.take(2 * (conjunct.last - conjunct.first))  # each end has been parsed once more
                for end in ends_of_between(self._scopes.statement, conjunct):
                    found += self._of_terms(join, conjunct, end.operands, end.text)
            yield from found

    def _of_merged(self, join: Join) -> Iterator[PartitionCondition]:
        """The equalities of USING and NATURAL; not those of a view, whose casts have the settings of its maker."""
        if self._scopes.is_in_view(self._scope.block.select):
            return
        for pair in self._scope.merged(join):
            text = " = ".join(f"{one.leaf.alias_text(self._scopes.statement)}.{quoted(one.name)}" for one in pair)
            for fact, other in (pair, pair[::-1]):
                if not other.leaf.is_padded_below(join):
                    partner = ItemPartner(self._scope, join, other.leaf)
                    yield from self._conditions([fact], _Asked(join, partner, text))

    def _of_terms(
        self, join: Join, conjunct: Conjunct, terms: Sequence[exp.Expr], text: str
    ) -> Iterator[PartitionCondition]:
        """The conditions by some terms of a conjunct, which together are a condition of that text."""
        parts = [self._scopes.own_parts(term) for term in terms]
        columns = [column for own, _ in parts for column in own]
        queries = [query for _, nested in parts for query in nested]
        self._scopes.steps.take(_STEPS_PER_QUERY * len(queries))
        named = [self._scope.resolve(column, join) for column in columns]
        outer = [columns_from_outside(self._scopes, query) for query in queries]
        if None in outer:
            return
        named += [self._scope.resolve(column, join) for found in outer for column in found or ()]
        operands = [operand for operand in named if operand is not None]
        if len(operands) < len(named):
            return
        leaves = dict.fromkeys(operand.leaf for operand in operands)
        for fact in leaves:
            others = [leaf for leaf in leaves if leaf is not fact]
            if (others or queries) and len(others) <= 1:
                partner = ItemPartner(self._scope, join, others[0]) if others else None
                if partner is not None and partner.leaf.is_padded_below(join):
                    continue  # a row of the partner that is no row of its table could satisfy the condition
                read = [operand for operand in operands if operand.leaf is fact]
                asked = _Asked(join, partner, text, tuple(queries), isinstance(conjunct.tree, exp.Exists))
                found = list(self._conditions(read, asked))
                if found and self._is_repeatable(conjunct, queries):
                    yield from found

    def _is_repeatable(self, conjunct: Conjunct, queries: Sequence[exp.Expr]) -> bool:
        return self._filters.is_repeatable(conjunct) and all(
            is_repeatable_correlated_subquery(self._scopes, query) for query in queries
        )

    def _of_exists(self, join: Join, query: exp.Expr) -> Iterator[PartitionCondition]:
        """The conjuncts of `EXISTS (SELECT .. WHERE ..)` that read partition columns and one item of the query."""
        inner = self._scopes.scope_of(query)
        if inner is None or not is_plain_exists(query):
            return
        filters, top = BlockFilters(self._scopes, inner), inner.block.tree.joins[-1]
        for conjunct in filters.located(top):
            columns, queries = self._scopes.own_parts(conjunct.tree)
            own = [inner.resolve(column, top) for column in columns]
            outside = [column for column, operand in zip(columns, own, strict=True) if operand is None]
            leaves = {operand.leaf for operand in own if operand is not None}
            facts = [self._scope.resolve(column, join) for column in outside]
            read = [operand for operand in facts if operand is not None]
            is_read = len(read) == len(facts) and all(map(inner.certainly_lacks, outside))
            if queries or len(leaves) != 1 or not is_read or not filters.is_repeatable(conjunct):
                continue
            (leaf,) = leaves
            if len({operand.leaf for operand in read}) == 1 and not leaf.is_padded_below(top):
                partner = ItemPartner(inner, top, leaf)
                yield from self._conditions(read, _Asked(join, partner, conjunct.text(self._scopes.statement)))

    def _conditions(self, read: list[Operand], asked: _Asked) -> Iterator[PartitionCondition]:
        fact, join = read[0].leaf, asked.join
        if join.side_of(fact) not in CONDITION_HOLDS[join.kind] or not fact.alias:
            return
        if not all(is_plain_name(operand.name) for operand in read):
            return  # the query selects them, and there such a name may be a pattern
        names = dict.fromkeys(operand.name for operand in read)
        yield from self._conditions_on(fact, tuple(names), (), asked)
        for computed in self._computed_together(fact, tuple(names)):
            inner = dict.fromkeys(name for column in computed for name in column.reads)
            yield from self._conditions_on(fact, tuple(inner), computed, asked)

    def _conditions_on(
        self, fact: Leaf, names: Sequence[str], computed: tuple[ComputedColumn, ...], asked: _Asked
    ) -> Iterator[PartitionCondition]:
        """The conditions on columns of the fact, or on those that its computed columns are computed from."""
        item, join, partner = computed[0].item if computed else fact, asked.join, asked.partner
        by_reference: dict[TableReference, dict[str, ColumnOrigin]] = defaultdict(dict)
        for name in names:
            for origin in origins_by_branch(self._scopes, item, name):
                by_reference[origin.reference][name] = origin
        tables = frozenset[TableName]().union(*(tables_read(self._scopes, query) for query in asked.queries))
        for reference, found in by_reference.items():
            first = next(iter(found.values()))
            if len(found) == len(names) and _is_listed(self._scopes, reference, found):
                yield PartitionCondition(
                    fact,
                    first.leaf,
                    reference,
                    first.facts,
                    tuple((name, origin.column) for name, origin in found.items()),
                    computed,
                    partner,
                    asked.text,
                    asked.queries,
                    tables,
                    # Padding inside a derived table is looked for only on the way to the SELECT that computes.
                    fact.is_padded_below(join)
                    or any(column.is_padded for column in computed)
                    or any(origin.leaf is not item for origin in found.values()),
                    is_in_exists=asked.is_exists or (partner is not None and partner.join is not join),
                )

    def _computed_together(self, fact: Leaf, names: Sequence[str]) -> list[tuple[ComputedColumn, ...]]:
        """The columns as they are computed in each place that computes all of them."""
        places: dict[tuple[int, Leaf], dict[str, ComputedColumn]] = defaultdict(dict)
        for name in names:
            if (fact, name) not in self._computed:
                self._computed[fact, name] = computed_columns(self._scopes, fact, name)
            for column in self._computed[fact, name]:
                places[id(column.select), column.item][name] = column
        return [tuple(found.values()) for found in places.values() if len(found) == len(names)]


def condition_of_extreme(
    scopes: Scopes, filters: OuterFilterFinder, match: KeyEquality
) -> PartitionCondition | None:
    """The filters that an extreme in a derived table has passed, asked about in place of its keys; None if none.

    In `f JOIN (SELECT s, max(ds) AS last FROM f WHERE ds > '2026-01' GROUP BY s) l ON f.s = l.s AND f.ds = l.last`
    each `last` is the ds of a row that has passed the filter. So f.ds passes it, if it has the same type.
    """
    partner = match.partner
    if not isinstance(partner, ItemPartner) or match.null_safe or len(match.reads) != 1 or match.is_expression:
        return None
    query, origin = scopes.query_of(partner.leaf), match.origin
    inner = scopes.scope_of(query) if isinstance(query, exp.Select) and not scopes.is_in_view(query) else None
    extreme = _extreme(scopes, inner, partner.leaf, next(iter(match.reads))) if inner is not None else None
    if inner is None or extreme is None or not _are_of_one_type(extreme, origin):
        return None
    leaf, name = extreme.leaf, extreme.name
    if not leaf.alias or not is_plain_name(name) or (leaf.reference and leaf.reference.is_named_by_database):
        return None
    passed = list(filters.filters_of(inner).holding_for_rows(leaf))
    scopes.steps.take(len(passed))
    texts = [
        f"({one.text})" for one in passed if one.tree is not None and _reads_alone(scopes, inner, one, extreme)
    ]
    if not texts or not _is_listed(scopes, origin.reference, {name: origin}):
        return None
    return PartitionCondition(
        leaf,
        origin.leaf,
        origin.reference,
        origin.facts,
        ((name, origin.column),),
        computed=(),
        partner=None,
        text=" AND ".join(texts),
        queries=(),
        tables=frozenset(),
        may_be_padding=False,
        is_in_exists=False,
    )


def _extreme(scopes: Scopes, scope: Scope, item: Leaf, name: str) -> Operand | None:
    """The column whose maximum or minimum a derived table shows under a name."""
    outputs, position = scopes.outputs_of(scope.block.select), scopes.position_of(item, name)
    shown = outputs[position].shows if outputs is not None and position is not None else None
    if not isinstance(shown, _EXTREMES) or shown.expressions:
        return None
    return scope.resolve(shown.this.unnest(), scope.block.tree.joins[-1])


def _are_of_one_type(extreme: Operand, origin: ColumnOrigin) -> bool:
    return extreme.type_name == origin.column.type_name


def _reads_alone(scopes: Scopes, scope: Scope, filter_: SideFilter, column: Operand) -> bool:
    """True if a filter reads that column and nothing else."""
    columns, queries = scopes.own_parts(filter_.tree) if filter_.tree is not None else ([], [])
    read = [scope.resolve(one, filter_.at) for one in columns]
    return not queries and all(
        one is not None and (one.leaf, one.name) == (column.leaf, column.name) for one in read
    )


def _is_listed(scopes: Scopes, reference: TableReference, found: Mapping[str, ColumnOrigin]) -> bool:
    """True if the columns are partition columns of a table whose partitions can be listed."""
    facts = scopes.catalog.get(reference.name)
    if facts is None or facts.kind is not TableKind.TABLE or facts.iceberg is not None:
        return False
    if fact_refusal(facts) is not None or reference.refusal is not None or reference.name.version:
        return False
    if reference.is_named_by_database:
        return False  # the list has the table's name, but not its database's
    # A CTE with several readers is narrowed at the reference, by facts that are not the table's.
    return all(
        origin.facts is facts and facts.is_partition_column(origin.column) and is_key_type(origin.column.type_name)
        for origin in found.values()
    )
