"""Views that join a fact with small sides in their text: the view's reference is narrowed by the join's keys.

`SELECT sum(amount) FROM v WHERE cal_year = 2024`, with `SELECT s.ds, s.amount, c.year AS cal_year FROM sales s
JOIN calendar c ON s.ds = c.ds` as the view's text: the statement is planned once more with `(SELECT .. FROM (text)
AS reduced_view0) AS v` in the place of `v`, names in the text qualified. Keys that reduce `sales` there reduce the
view too, if it shows `s.ds` or, by the inner join, `c.ds`: the view's rows with one key come from the fact's rows
with that key. So the client's text gets `(SELECT * FROM v WHERE ds IN (..)) AS v`, and the planned text is never
sent.

This asks more of a view than of a derived table in the client's text:

* Each row of the view must come from a row of the fact: the fact is on no padded side, and in no branch of a
  UNION. A condition on the view would drop padded rows, and rows of the other branches.
* A view's conditions have the settings of its maker (`rewriter.semijoins.settled_expressions`).
* The user of a view may read other rows of its tables than the view's text does: more, or fewer where an extension
  of Spark adds row filters. With unknown extensions no view is narrowed so.
* The view may have got another text since it was described: the caller has it described anew (`Plan.follows`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from sqlglot import exp

from rewriter.catalog.prunable import fact_refusal
from rewriter.catalog.table_facts import TableFacts, TableKind
from rewriter.partitions.index import PartitionIndexes
from rewriter.scopes.blocks import Operand, Scope
from rewriter.scopes.join_rules import JoinKind
from rewriter.scopes.join_tree import Join, Leaf, TableReference
from rewriter.scopes.lineage import column_of_output
from rewriter.scopes.outer_to_inner import make_outer_joins_inner
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.days_query import DaysQuery
from rewriter.semijoins.filtered_sides import FilteredSides
from rewriter.semijoins.followed_facts import FactFollower
from rewriter.semijoins.limits import RewriteLimits
from rewriter.semijoins.outer_filters import OuterFilterFinder
from rewriter.semijoins.reducer import Finding, Reducer
from rewriter.semijoins.reducers import BlockPlanner
from rewriter.semijoins.small_sides import TinySides
from rewriter.sql.conditions import conjuncts
from rewriter.sql.equality import equality_of
from rewriter.sql.statement import Statement, parse_any
from rewriter.vocabulary.identifiers import Column, TableName
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import Refusal, SkipReason

# A column of a table that a reference names, in lower case.
_Origin: TypeAlias = tuple[TableReference, str]

# The alias of a view's text in the planned text, with a number.
_ALIAS = "reduced_view"

# Characters that views may add to the planned text, which each statement parses: two of the longest texts.
_CHARS_MAX = 40_000

# Texts that are kept parsed, each some 230 bytes a character.
_PARSED_KEPT_MAX = 32

# Columns of a view that are followed to the fact. Each is looked for in all expressions of the text's SELECT.
_CANDIDATES_MAX = 40

# Derived tables between a view and the fact in its text. The limit bounds the recursion.
_NESTING_MAX = 30


@dataclass(frozen=True, eq=False)
class _ViewReference:
    """A view in a FROM of the statement, and the SELECT that stands for it in the planned text."""

    reference: TableReference
    facts: TableFacts
    alias: str
    query: str
    # The view, and all views behind it.
    views: frozenset[TableName]

    def text(self, statement: Statement) -> str:
        """The derived table that takes the view's place, up to its alias where the client wrote one."""
        reference = self.reference
        alias = "" if reference.has_alias else f" AS {reference.alias_text(statement)}"
        return f"({self.query}){alias}"


def view_findings(
    scopes: Scopes, limits: RewriteLimits, partitions: PartitionIndexes, tiny: TinySides
) -> Iterator[Finding]:
    """The reducers of the statement's views by joins in their texts, and the reasons why there are none."""
    if {Rule.VIEWS, Rule.VIEW_JOINS} & limits.rules_off or limits.strict:
        # Strict consistency allows no change since, and the view's text may have changed.
        return
    views = list(_view_references(scopes))
    planned = _with_texts(scopes.statement, views) if views else None
    if planned is None:
        return
    expanded = Scopes(planned, scopes.catalog, has_variables=scopes.has_variables, steps=scopes.steps)
    if Rule.MADE_INNER not in limits.rules_off:
        make_outer_joins_inner(expanded)
    # A list of partitions belongs to a table, and the reference is to the view.
    by_keys = replace(limits, rules_off=limits.rules_off | {Rule.PARTITION_LIST})
    sides = FilteredSides(expanded, OuterFilterFinder(expanded), tiny, partitions, by_keys.rules_off)
    follower = FactFollower(expanded, sides)
    for view in views:
        text = _derived_table(planned.tree, view.alias)
        if text is not None:
            yield from _findings_of_view(expanded, follower, view, text, by_keys)


def _view_references(scopes: Scopes) -> Iterator[_ViewReference]:
    """The views that show a partition column and whose text is certain."""
    leaves = (leaf for block in scopes.blocks if block.refusal is None for leaf in block.tree.leaves)
    for number, leaf in enumerate(leaves):
        reference, alias = leaf.reference, f"{_ALIAS}{number}"
        if reference is None or reference.refusal is not None or scopes.is_cte_name(leaf):
            continue
        if reference.is_named_by_database:
            continue
        facts = scopes.catalog.get(reference.name)
        if facts is None or facts.behind is None or fact_refusal(facts) is not None:
            continue
        query = facts.behind.as_derived_table(alias) if _may_hold_a_fact(scopes, facts.behind.tables) else None
        if query is not None and _ALIAS not in scopes.statement.text.lower():
            behind = (name for name in facts.behind.tables if _is_view(scopes.catalog.get(name)))
            yield _ViewReference(reference, facts, alias, query, frozenset({reference.name, *behind}))


def _is_view(facts: TableFacts | None) -> bool:
    return facts is not None and facts.kind is TableKind.VIEW


def _may_hold_a_fact(scopes: Scopes, tables: frozenset[TableName]) -> bool:
    """True if a table that could be narrowed stands behind a view, and another table beside it."""
    return len(tables) > 1 and any(fact_refusal(scopes.catalog.get(name)) is None for name in tables)


def _with_texts(statement: Statement, views: list[_ViewReference]) -> Statement | None:
    """The statement with the views' texts in their places; None where that is not certain."""
    pieces, copied = [], 0
    for view in sorted(views, key=lambda view: view.reference.start):
        pieces += [statement.text[copied : view.reference.start], view.text(statement)]
        copied = view.reference.stop
    text = "".join([*pieces, statement.text[copied:]])
    found = _parsed(text) if len(text) <= _CHARS_MAX + len(statement.text) else None
    if found is None or not _is_original_with(statement, found.tree.copy(), views):
        return None
    return replace(found, view_texts=frozenset(view.alias for view in views))


@lru_cache(maxsize=_PARSED_KEPT_MAX)
def _parsed(text: str) -> Statement | None:
    """The statement of a text. A statement is planned several times, as more is known of its tables."""
    return parse_any(text)


def _is_original_with(statement: Statement, tree: exp.Expr, views: list[_ViewReference]) -> bool:
    """True if the tree is the original's once the references stand in the places of the texts again."""
    originals = {_start(table): table for table in statement.find_all(exp.Table)}
    for view in views:
        text = _derived_table(tree, view.alias)
        select = text.parent_select if text is not None else None
        item = select.parent if select is not None else None
        original = originals.get(view.reference.start)
        alone = _parsed(view.query)
        if not isinstance(item, exp.Subquery) or original is None or alone is None or alone.tree != item.this:
            return False
        plain = original.copy()
        for name, value in item.args.items():
            if name not in {"this", "alias"} and value:
                plain.set(name, value)
        if view.reference.has_alias:
            plain.set("alias", item.args.get("alias"))
        item.replace(plain)
    return tree == statement.tree


def _start(table: exp.Table) -> int | None:
    first = table.args.get("catalog") or table.args.get("db") or table.this
    return first.meta.get("start") if isinstance(first, exp.Identifier) else None


def _derived_table(tree: exp.Expr, alias: str) -> exp.Subquery | None:
    return next((found for found in tree.find_all(exp.Subquery) if found.alias == alias), None)


def _findings_of_view(
    expanded: Scopes, follower: FactFollower, view: _ViewReference, text: exp.Subquery, limits: RewriteLimits
) -> Iterator[Finding]:
    """The findings of the joins in one view's text, as those of the view's reference."""
    shown = _Shown(expanded, view, text)
    for select in text.find_all(exp.Select):
        scope = expanded.scope_of(select)
        if scope is None or not scope.block.has_conditions:
            continue
        for finding in BlockPlanner(expanded, follower, scope, limits, {}).findings():
            if fact_refusal(expanded.catalog.get(finding.reference.name)) is not None or _asks_days(finding):
                continue
            for result in shown.results(finding):
                if isinstance(result, Reducer) and limits.has_unknown_extensions:
                    yield Finding(view.reference, SkipReason.VIEW_UNDER_EXTENSION)
                else:
                    yield Finding(view.reference, result)


def _asks_days(finding: Finding) -> bool:
    """True for keys that are days: in a view's text they are days of its maker's time zone."""
    return isinstance(finding.result, Reducer) and isinstance(finding.result.key_query, DaysQuery)


class _Shown:
    """The columns of facts in a view's text that the view shows, with the view's names for them."""

    def __init__(self, expanded: Scopes, view: _ViewReference, text: exp.Subquery) -> None:
        self._expanded = expanded
        self._view = view
        self._select = text.parent_select
        self._names: dict[_Origin, str | None] = {}
        # The origins of the view's columns, by their positions.
        self._found: dict[int, frozenset[_Origin]] = {}

    def results(self, finding: Finding) -> Iterator[Reducer | Refusal]:
        """The finding of a fact in the text as one of the view."""
        if not isinstance(finding.result, Reducer):
            yield finding.result
            return
        found = list(self._reducers(finding.reference, finding.result))
        yield from found
        if not found:
            yield SkipReason.VIEW_HIDES_KEY

    def _reducers(self, reference: TableReference, reducer: Reducer) -> Iterator[Reducer]:
        """The reducer by the view's columns; or its alternatives, if the view does not show them all."""
        alternatives = tuple(found for other in reducer.alternatives for found in self._reducers(reference, other))
        columns = [self._name_of(reference, column.lower()) for column in reducer.columns]
        known = tuple(column for column in columns if column is not None)
        if len(known) < len(columns):
            yield from alternatives
            return
        yield replace(
            reducer,
            columns=known,
            alternatives=alternatives,
            if_types_differ=None,
            follows=self._view.views | reducer.key_query.tables | {reference.name},
            rules=reducer.rules | {Rule.VIEWS, Rule.VIEW_JOINS},
        )

    def _name_of(self, reference: TableReference, name: str) -> str | None:
        """The view's name for a table's column; None if the view does not show it in each row."""
        origin = reference, name
        if origin not in self._names:
            shown = (column for position, column in self._candidates(name) if origin in self._origins_at(position))
            pruned = (column.name for column in shown if self._is_pruned(column, *origin))
            self._names[origin] = next(pruned, None)
        return self._names[origin]

    def _candidates(self, name: str) -> list[tuple[int, Column]]:
        """The view's columns with their positions, those of the same name first."""
        columns = enumerate(self._view.facts.columns)
        return sorted(columns, key=lambda pair: pair[1].name.lower() != name)[:_CANDIDATES_MAX]

    def _origins_at(self, position: int) -> frozenset[_Origin]:
        if position not in self._found:
            select = self._select
            found = self._origins(select, position) if isinstance(select, exp.Select) else ()
            self._found[position] = frozenset(found)
        return self._found[position]

    def _is_pruned(self, column: Column, reference: TableReference, name: str) -> bool:
        """True if a filter on the view's column prunes the table in the text by its column."""
        facts, seen = self._expanded.catalog.get(reference.name), self._view.facts
        own = facts.column(name) if facts is not None else None
        if facts is None or own is None or own.type_name != column.type_name:
            return False
        if seen.is_partition_column(column) or seen.is_data_column(column):
            return True
        # Spark infers `s.ds IN (..)` from `c.ds IN (..)` and `s.ds = c.ds`.
        return facts.iceberg is None and facts.is_partition_column(own)

    def _origins(self, select: exp.Select, position: int, nesting: int = 0) -> Iterator[_Origin]:
        """The columns of tables that an output shows in each of its rows, by the tables' references."""
        operand, scope = column_of_output(self._expanded, select, position), self._expanded.scope_of(select)
        if operand is None or scope is None or nesting > _NESTING_MAX:
            return
        for equal in dict.fromkeys([operand, *_equal_columns(scope, operand)]):
            leaf = equal.leaf
            if not _is_in_each_row(leaf):
                continue
            if leaf.reference is not None and not self._expanded.is_cte_name(leaf):
                yield leaf.reference, equal.name.lower()
                continue
            query, place = self._expanded.query_of(leaf, only_once=True), self._position(equal)
            if isinstance(query, exp.Select) and place is not None:
                yield from self._origins(query, place, nesting + 1)

    def _position(self, operand: Operand) -> int | None:
        names = [column.name.lower() for column in self._expanded.columns_of(operand.leaf) or ()]
        return names.index(operand.name.lower()) if names.count(operand.name.lower()) == 1 else None


def _is_in_each_row(leaf: Leaf) -> bool:
    """True if each row of a block has a row of the item: no join pads the item, or shows none of its columns."""
    return leaf.padded_by is None and leaf.hidden_by is None


def _equal_columns(scope: Scope, operand: Operand) -> Iterator[Operand]:
    """The columns that an inner join compares with a column of one of its items: each row has both items."""
    for join in scope.block.tree.joins:
        for pair in _compared(scope, join) if join.kind is JoinKind.INNER else ():
            for own, other in (pair, pair[::-1]):
                if own.leaf is operand.leaf and own.name == operand.name:
                    yield other


def _compared(scope: Scope, join: Join) -> Iterator[tuple[Operand, Operand]]:
    yield from scope.merged(join)
    for term in conjuncts(join.condition):
        equality = equality_of(term)
        one, other = (scope.resolve(side, join) for side in equality.sides) if equality else (None, None)
        if one is not None and other is not None:
            yield one, other
