"""The tables that a statement reads, each with the partitions that the statement's own filters leave of it.

Spark leaves out partitions by these filters while it plans, whatever is inserted. A scan in the statement's own
FROM is known exactly, if all conditions on its partition columns are comparisons with literals. In any other scan,
such as one in a derived table or with `ds > current_date()`, Spark may leave out more than is found here, never
less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from rewriter.catalog.table_facts import Catalog, TableFacts, TableKind
from rewriter.domains.cover import Cover
from rewriter.domains.instants import INSTANT, LOCAL_TIME
from rewriter.planning.views import follow_views
from rewriter.scopes.blocks import Scope
from rewriter.scopes.join_tree import Join, Leaf, TableReference, must_be_passed, table_name
from rewriter.scopes.scopes import Scopes
from rewriter.scopes.steps import Steps, StepsSpentError
from rewriter.semijoins.literal_filters import covers_by_term
from rewriter.semijoins.outer_filters import OuterFilterFinder
from rewriter.semijoins.partitioned_sides import PartitionedSides
from rewriter.semijoins.side_filters import BlockFilters
from rewriter.semijoins.small_sides import TinySides
from rewriter.sql.statement import Statement
from rewriter.vocabulary.identifiers import TableName

# Conditions on one table's partitions that are read: each may cut the remaining partitions into more parts.
_TERMS_MAX = 100
# Comparisons of a time with a constant, which Spark casts to a time.
_COMPARISONS = (exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In)


@dataclass(frozen=True)
class TableRead:
    """A table in one place of a statement; a table behind a view stands for all places in the view's text."""

    name: TableName
    # None where it could not be described.
    facts: TableFacts | None
    # The partitions that are read, or more, by columns in lower case.
    within: Cover
    # True if exactly these partitions are read, as long as nothing is inserted.
    is_exact: bool
    # The place in the statement; None behind a view, and where the FROM is not understood.
    reference: TableReference | None = None
    # True if a partition column is compared with a constant time, which is not in `within`.
    is_within_times: bool = False


@dataclass(frozen=True)
class StatementReads:
    """The tables that a statement reads; those that are `missing` in the catalog have to be described first."""

    tables: tuple[TableRead, ...] = ()
    missing: frozenset[TableName] = frozenset()
    # False if it may read others, whose names are not known.
    is_whole: bool = True


def partitions_read(statement: Statement, catalog: Catalog) -> StatementReads:
    """The tables that a statement reads, by what is known of them. CREATE VIEW reads none."""
    if isinstance(statement.tree, exp.Create) and statement.tree.kind != "TABLE":
        return StatementReads()
    try:
        steps = Steps()
        followed = follow_views(statement, catalog, steps)
        if followed.missing:
            return StatementReads(missing=followed.missing)
        scopes = Scopes(statement, followed.catalog, narrows_merges=True, steps=steps)
        return StatementReads(tuple(_Reader(scopes).read()), is_whole=followed.is_whole)
    except StepsSpentError:
        return StatementReads(is_whole=False)


class _Reader:
    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._filter_finder = OuterFilterFinder(scopes)
        is_empty = any(_is_zero(limit) for limit in scopes.statement.find_all(exp.Limit))
        selects = () if is_empty else _outermost(scopes.statement.tree)
        self._outermost = {id(select) for select in selects}

    def read(self) -> Iterator[TableRead]:
        leaves = {id(leaf.node): (leaf, block) for block in self._scopes.blocks for leaf in block.tree.leaves}
        target = self._scopes.statement.merged_into
        for table in (*self._scopes.statement.tables_read, *([target] if target is not None else [])):
            name = table_name(table)
            facts = self._scopes.catalog.get(name)
            leaf, block = leaves.get(id(table), (None, None))
            scope = self._scopes.scope_of(block.select) if block is not None else None
            if facts is not None and facts.kind is TableKind.VIEW:
                yield from self._behind(name, facts)
            elif facts is None or leaf is None or scope is None or leaf.reference is None:
                yield TableRead(name, facts, Cover.all(), is_exact=False)
            else:
                yield self._table(scope, leaf, leaf.reference, facts)

    def _behind(self, name: TableName, facts: TableFacts) -> Iterator[TableRead]:
        if facts.behind is None:
            yield TableRead(name, None, Cover.all(), is_exact=False)
            return
        for table in sorted(facts.behind.tables, key=str):
            found = self._scopes.catalog.get(table)
            if found is None or found.kind is TableKind.TABLE:
                yield TableRead(table, found, Cover.all(), is_exact=False)

    def _table(self, scope: Scope, leaf: Leaf, reference: TableReference, facts: TableFacts) -> TableRead:
        described = facts
        if not facts.pruned_by:
            return TableRead(reference.name, facts, Cover.all(), is_exact=True, reference=reference)
        facts = replace(facts, partition_columns=facts.pruned_by)
        within, is_exact = Cover.all(), reference.refusal is None and scope.knows_columns
        # A partition may be made of a field of a column, and of a column that the statement does not name.
        is_exact = is_exact and all(map(facts.column, facts.pruned_by)) and not facts.may_generate_partitions
        is_within_times = False
        left = _TERMS_MAX
        for term, at, cover in covers_by_term(self._scopes.statement, scope, leaf, facts):
            if left and not cover.is_all and must_be_passed(at, leaf):
                within, left = within.intersection(cover), left - 1
            elif self._may_leave_out(scope, leaf, facts, term, at):
                is_exact = False
                is_within_times |= must_be_passed(at, leaf) and self._compares_time(scope, leaf, facts, term, at)
        if id(scope.block.select) not in self._outermost:
            within = within.intersection(self._around.get(leaf, Cover.all()))
            is_exact = False
        elif is_exact and len(scope.block.tree.leaves) > 1:
            is_exact = not _are_inferred(self._filter_finder.filters_of(scope), leaf, facts)
        is_exact = is_exact and not _names_any(scope.block.select.args.get("having"), facts)
        return TableRead(reference.name, described, within, is_exact, reference, is_within_times)

    def _compares_time(self, scope: Scope, leaf: Leaf, facts: TableFacts, term: exp.Expr, at: Join) -> bool:
        """True if a term compares a partition column with a constant time."""
        columns, _ = self._scopes.own_parts(term)
        if not isinstance(term, _COMPARISONS) or len(columns) != 1:
            return False
        operand = scope.resolve(columns[0], at)
        column = facts.column(operand.name) if operand is not None and operand.leaf is leaf else None
        if column is None or column.type_name not in (INSTANT, LOCAL_TIME):
            return False
        return facts.is_partition_column(column) and columns[0] in (term.this, term.expression)

    def _may_leave_out(self, scope: Scope, leaf: Leaf, facts: TableFacts, term: exp.Expr, at: Join) -> bool:
        """True if Spark may leave out partitions by a term while it plans: not by a join, or by IN (SELECT ..).

        `1 = 0`, by which tools ask for columns alone, leaves out all of them. A scalar subquery, a derived table
        or a CTE may be of one row of constants, which Spark puts in its place.
        """
        columns, queries = self._scopes.own_parts(term)
        if columns and not _names_any(term, facts):
            return False
        if queries:
            return any(map(_is_scalar, queries))
        found = [scope.resolve(column, at) for column in columns]
        return isinstance(term, exp.Or) or all(
            one is None or one.leaf is leaf or self._may_be_constant(one.leaf) for one in found
        )

    def _may_be_constant(self, leaf: Leaf) -> bool:
        return leaf.reference is None or self._scopes.is_cte_name(leaf)

    @cached_property
    def _around(self) -> dict[Leaf, Cover]:
        """The partitions that filters around derived tables and CTEs leave of the tables in them, or more."""
        tree = self._scopes.statement.tree
        query = tree if isinstance(tree, exp.Query) else tree.args.get("expression")
        tiny = TinySides(self._scopes.catalog, 0)
        sides = PartitionedSides(self._scopes, self._filter_finder, {}, tiny)
        return (sides.covers_in(query) or {}) if isinstance(query, exp.Query) else {}


def _outermost(tree: exp.Expr) -> Iterator[exp.Select]:
    """The SELECTs whose rows are the statement's own, or those that it writes."""
    pending = [tree.args.get("expression") if isinstance(tree, exp.Insert | exp.Create) else tree]
    while pending:
        node = pending.pop()
        if isinstance(node, exp.Select):
            yield node
        elif isinstance(node, exp.SetOperation):
            pending += [node.this, node.expression]
        elif isinstance(node, exp.Subquery):
            pending.append(node.this)


def _is_scalar(query: exp.Select) -> bool:
    return isinstance(query.parent, exp.Subquery) and not isinstance(query.parent.parent, exp.In)


def _is_zero(limit: exp.Limit) -> bool:
    """True for LIMIT 0, of which Spark reads nothing."""
    return isinstance(limit.expression, exp.Literal) and limit.expression.name == "0"


def _names_any(tree: exp.Expr | None, facts: TableFacts) -> bool:
    """True if a condition names a partition column, of whichever table."""
    columns = {name.lower() for name in facts.partition_columns}
    return tree is not None and any(column.name.lower() in columns for column in tree.find_all(exp.Column))


def _are_inferred(filters: BlockFilters, leaf: Leaf, facts: TableFacts) -> bool:
    """True if Spark infers a filter: `d.ds > '2026'` and `s.ds = d.ds` leave out partitions of s."""
    columns = {name.lower() for name in facts.partition_columns}
    for found, _, pairs in filters.holding_through_equalities(leaf):
        equal = {pair.other.name.lower() for pair in pairs if pair.own.name.lower() in columns}
        read = {column.name.lower() for column in found.tree.find_all(exp.Column)} if found.tree else equal
        if equal and read <= equal:
            return True
    return False
