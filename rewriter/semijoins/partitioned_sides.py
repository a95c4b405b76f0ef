"""Small sides that read partitioned tables, of which the statement itself chooses partitions.

The dimension of a Hadoop warehouse is often a daily snapshot: `users` by `dt`, read with `d.dt = '2026-11-05'` or
`d.dt = (SELECT max(dt) FROM users)`. Its key query reads those partitions alone, as the statement does, by the
same words. Their size decides whether it is worth asking. A view of such a table is read by its own name. Its text
only tells the partitions, and so the size: the settings of the view do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from rewriter.catalog.table_facts import TableFacts, TableKind
from rewriter.domains.cover import Box, Cover
from rewriter.domains.cover_sql import cover_sql
from rewriter.domains.literals import UnreadableKeyError
from rewriter.partitions.index import PartitionIndexes
from rewriter.partitions.value_encoding import NotIndexableError
from rewriter.scopes.blocks import ColumnOrigin, Operand, Scope
from rewriter.scopes.join_tree import Leaf, table_name
from rewriter.scopes.lineage import origins as origins_of
from rewriter.scopes.lineage import output_origins
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.causes import rule_off
from rewriter.semijoins.equalities import ItemPartner
from rewriter.semijoins.limits import RewriteLimits
from rewriter.semijoins.literal_filters import filtered_partitions
from rewriter.semijoins.outer_filters import OuterFilterFinder
from rewriter.semijoins.side_filters import SideFilter
from rewriter.semijoins.small_sides import (
    PartOfTable,
    SmallSide,
    TinySides,
    reads_partition_columns_alone,
    small_side_of_item,
    small_side_of_query,
)
from rewriter.sql.statement import parse_view
from rewriter.vocabulary.cited import cited, listed
from rewriter.vocabulary.identifiers import Column
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import Refusal, SkipReason

# Values of one partition column that count as a choice: the days of a year.
_VALUES_MAX = 366

# The alias of a view's text.
_VIEW = "reduced_view"

# CTEs that one small side reads. Filters are looked for in each of them.
_CTES_MAX = 10


@dataclass(frozen=True, eq=False)
class PartitionedSide:
    """A small side that reads some partitions of tables."""

    small_side: SmallSide
    # Those parts with their bytes; None until Spark was asked.
    sizes: Mapping[PartOfTable, int | None]
    # The columns, in lower case, whose values the choice fixes.
    fixed: frozenset[str] = frozenset()

    @property
    def size_bytes(self) -> int | None:
        """The bytes of all parts; None until those of each are known."""
        known = [size for size in self.sizes.values() if size is not None]
        return sum(known) if len(known) == len(self.sizes) else None

    @property
    def size_shown(self) -> str:
        """The parts and their size, for a user."""
        return f"{cited(listed(sorted(part.text for part in self.sizes)))}: {self.size_bytes or 0:,} bytes"


class PartitionedSides:
    """Finds the small sides of one statement that read some partitions of tables."""

    def __init__(
        self, scopes: Scopes, filter_finder: OuterFilterFinder, lists: PartitionIndexes, tiny: TinySides
    ) -> None:
        self._scopes = scopes
        self._filter_finder = filter_finder
        self._lists = lists
        self._tiny = tiny
        self._of_items: dict[ItemPartner, PartitionedSide | None] = {}
        self._of_queries: dict[int, dict[Leaf, Cover] | None] = {}
        self._views: dict[Leaf, tuple[PartitionedSides, exp.Expr] | None] = {}

    def of_item(self, partner: ItemPartner) -> PartitionedSide | None:
        """A FROM item as such a small side; None if the statement does not choose partitions of all its tables."""
        if partner not in self._of_items:
            self._of_items[partner] = self._look_up_item(partner)
        return self._of_items[partner]

    def of_query(self, query: exp.Expr, width: int) -> PartitionedSide | None:
        """A subquery as such a small side, its columns named by `query_key`; None as for an item."""
        covers = self.covers_in(query)
        if covers is None or not all(map(_fixed_columns, covers.values())):
            return None
        return self._side(small_side_of_query(self._scopes, query, width, of_partitions=True), covers)

    def small_side(
        self, side: PartitionedSide, fact: Leaf, refusal: Refusal, limits: RewriteLimits
    ) -> SmallSide | Refusal:
        """The small side that some partitions of tables are, once their size is known; else a refusal.

        `refusal` is that of the tables as a whole.
        """
        if self.chooses(fact):
            return refusal  # two facts of one day, of which neither is small
        if Rule.PARTITIONED_SIDES in limits.rules_off:
            return rule_off([Rule.PARTITIONED_SIDES])
        if side.size_bytes is None:
            self._tiny.unsized_parts.update(part for part, size in side.sizes.items() if size is None)
            return refusal
        if side.size_bytes > limits.small_side_bytes_max:
            return SkipReason.SMALL_SIDE_TOO_LARGE.because(side.size_shown)
        return side.small_side

    def _look_up_item(self, partner: ItemPartner) -> PartitionedSide | None:
        leaf = partner.leaf
        filters = self._filter_finder.filters_of(partner.scope).holding_for(partner.join, leaf)
        inner = self._inner(leaf)
        if inner is not None:
            return self._of_derived(partner.scope, leaf, *inner, filters)
        facts = self._facts_of(leaf)
        if facts is None:
            return None
        cover = self._cover(partner.scope, leaf, facts, filters)
        fixed = _fixed_columns(cover)
        if not fixed:
            return None
        return self._side(small_side_of_item(self._scopes, leaf, of_partitions=True), {leaf: cover}, fixed)

    def _of_derived(
        self, scope: Scope, leaf: Leaf, sides: PartitionedSides, query: exp.Expr, filters: Iterable[SideFilter]
    ) -> PartitionedSide | None:
        """A derived table, CTE or view, whose filters stand in it or around it."""
        within = sides.covers_in(query)
        if within is None:
            return None
        shown = self._partition_columns(leaf, sides, query)
        around = self._covers_through(scope, leaf, shown, filters)
        covers = {table: cover.intersection(around.get(table, Cover.all())) for table, cover in within.items()}
        if not all(map(_fixed_columns, covers.values())):
            return None
        fixed = {name.lower() for name, origins in shown.items() if _are_fixed(origins, covers)}
        small_side = small_side_of_item(self._scopes, leaf, of_partitions=True)
        return self._side(small_side, covers, frozenset(fixed))

    def _side(
        self, small_side: SmallSide | Refusal, covers: Mapping[Leaf, Cover], fixed: frozenset[str] = frozenset()
    ) -> PartitionedSide | None:
        """The side with the size of its parts, if that is known; None if it reads no partitioned table."""
        if isinstance(small_side, Refusal):
            return None
        sizes: dict[PartOfTable, int | None] = {}
        for leaf, cover in covers.items():
            facts = self._facts_of(leaf)
            if leaf.reference is not None and facts is not None:
                name = leaf.reference.name
                part = PartOfTable(name, f"{name.sql} WHERE {cover_sql(cover)}")
                sizes[part] = facts.part_size(part.text)
        rules = (small_side.rules - {Rule.LATEST_PARTITION}) | {Rule.PARTITIONED_SIDES}
        small_side = replace(small_side, is_filtered=True, rules=rules)
        return PartitionedSide(small_side, sizes, fixed) if sizes else None

    def covers_in(self, query: exp.Expr) -> dict[Leaf, Cover] | None:
        """The partitions that a query reads of each partitioned table in it; None if that is not certain."""
        if id(query) not in self._of_queries:
            self._of_queries[id(query)] = self._look_up_covers(query)
        return self._of_queries[id(query)]

    def _look_up_covers(self, query: exp.Expr) -> dict[Leaf, Cover] | None:
        if len(self._scopes.ctes_read(query) or {}) > _CTES_MAX:
            return None
        around = _all_of(*self._covers_between(query))
        found: dict[Leaf, Cover] = {}
        for table in self._scopes.tables_of(query):
            facts = self._scopes.catalog.get(table_name(table))
            select = table.find_ancestor(exp.Select)
            if facts is None or select is None or not (facts.partition_columns or _reads_partitions(facts)):
                continue
            if reads_partition_columns_alone(self._scopes, select):
                continue
            scope = self._scopes.scope_of(select)
            leaf = next((leaf for leaf in scope.block.tree.leaves if leaf.node is table), None) if scope else None
            covers = self._covers_of(leaf, facts) if leaf is not None else None
            if covers is None:
                return None
            found |= {one: cover.intersection(around.get(one, Cover.all())) for one, cover in covers.items()}
        return found

    def _covers_of(self, leaf: Leaf, facts: TableFacts) -> dict[Leaf, Cover] | None:
        """The partitions that are read of a table, or of each table behind a view; None if that is not certain."""
        if facts.behind is None:
            return {leaf: self._own_cover(leaf)}
        sides, query = self._view(leaf) or (self, None)
        return sides.covers_in(query) if query is not None else None

    def _inner(self, leaf: Leaf, *, only_once: bool = False) -> tuple[PartitionedSides, exp.Expr] | None:
        """The query that a derived table, a CTE or a view of partitioned tables reads, and its finder."""
        query = self._scopes.query_of(leaf, only_once=only_once)
        return (self, query) if query is not None else self._view(leaf)

    def _view(self, leaf: Leaf) -> tuple[PartitionedSides, exp.Expr] | None:
        """A view of partitioned tables by its text, in which names are full ones."""
        if leaf not in self._views:
            self._views[leaf] = self._look_up_view(leaf)
        return self._views[leaf]

    def _look_up_view(self, leaf: Leaf) -> tuple[PartitionedSides, exp.Expr] | None:
        if leaf.reference is None or self._scopes.is_cte_name(leaf):
            return None
        facts = self._scopes.catalog.get(leaf.reference.name)
        if facts is None or facts.behind is None or not _reads_partitions(facts):
            return None
        statement = parse_view(facts.behind.as_derived_table(_VIEW) or "")
        if statement is None:
            return None
        self._scopes.steps.take(len(statement.tokens))
        scopes = Scopes(statement, self._scopes.catalog, steps=self._scopes.steps)
        sides = PartitionedSides(scopes, OuterFilterFinder(scopes), self._lists, self._tiny)
        return sides, statement.tree

    def chooses(self, leaf: Leaf) -> bool:
        """True if the SELECT that reads a table chooses partitions of it."""
        return bool(_fixed_columns(self._own_cover(leaf)))

    def _own_cover(self, leaf: Leaf) -> Cover:
        """The partitions that the SELECT that reads a table leaves of it."""
        facts, select = self._facts_of(leaf), leaf.node.find_ancestor(exp.Select)
        scope = self._scopes.scope_of(select) if select is not None else None
        if facts is None or scope is None or leaf not in scope.block.tree.leaves:
            return Cover.all()
        return self._cover(scope, leaf, facts, self._filter_finder.filters_of(scope).holding_for_rows(leaf))

    def _covers_between(self, query: exp.Expr) -> Iterator[dict[Leaf, Cover]]:
        """The partitions that filters on derived tables and CTEs within a query leave of the tables in those."""
        for part in (query, *(self._scopes.ctes_read(query) or {}).values()):
            for select in part.find_all(exp.Select):
                scope = self._scopes.scope_of(select)
                for leaf in scope.block.tree.leaves if scope is not None else ():
                    inner = self._inner(leaf, only_once=True)
                    if scope is not None and inner is not None:
                        filters = self._filter_finder.filters_of(scope).holding_for_rows(leaf)
                        shown = self._partition_columns(leaf, *inner)
                        yield self._covers_through(scope, leaf, shown, filters)

    def _covers_through(
        self,
        scope: Scope,
        leaf: Leaf,
        shown: Mapping[str, tuple[ColumnOrigin, ...]],
        filters: Iterable[SideFilter],
    ) -> dict[Leaf, Cover]:
        """The partitions that filters on a derived table, CTE or view leave of the tables in it."""
        columns = tuple(Column(name, origins[0].column.type_name) for name, origins in shown.items())
        cover = self._cover(scope, leaf, TableFacts(columns, tuple(shown)), filters)
        return _within(cover, shown)

    def _facts_of(self, leaf: Leaf) -> TableFacts | None:
        """The facts of a partitioned table, unless it may keep a row in a partition of another value (Hudi)."""
        facts = self._scopes.catalog.get(leaf.reference.name) if leaf.reference is not None else None
        return facts if facts is not None and facts.partition_columns and not facts.is_foreign else None

    def _partition_columns(
        self, leaf: Leaf, sides: PartitionedSides, query: exp.Expr
    ) -> dict[str, tuple[ColumnOrigin, ...]]:
        """The columns of a derived table, CTE or view that are partition columns in each of its branches."""
        columns, scopes = self._scopes.columns_of(leaf) or (), sides._scopes
        self._scopes.steps.look_at(len(columns))
        found = {c.name: output_origins(scopes, query, position) for position, c in enumerate(columns)}
        return {name: origins for name, origins in found.items() if origins and all(map(_is_partition, origins))}

    def _origin(self, operand: Operand) -> ColumnOrigin | None:
        """The column of a table that a column is, behind a view too."""
        view = self._view(operand.leaf)
        if view is None:
            found = origins_of(self._scopes, operand.leaf, operand.name)
        else:
            found = self._partition_columns(operand.leaf, *view).get(operand.name, ())
        return found[0] if len(found) == 1 else None

    def _cover(self, scope: Scope, leaf: Leaf, facts: TableFacts, filters: Iterable[SideFilter]) -> Cover:
        """The partitions that filters leave of a FROM item, by its columns in lower case."""
        filters = tuple(filters)
        cover = filtered_partitions(self._scopes.statement, scope, leaf, facts, filters)
        for latest in self._latest(scope, leaf, facts, filters):
            cover = cover.intersection(latest)
        return cover

    def _latest(
        self, scope: Scope, leaf: Leaf, facts: TableFacts, filters: Iterable[SideFilter]
    ) -> Iterator[Cover]:
        """The partitions that filters such as `dt = (SELECT max(dt) FROM users)` leave, by the list of all.

        The list is good for the size alone: its last partition may be empty, or the subquery may have a filter.
        """
        for one in filters:
            if not isinstance(one.tree, exp.EQ):
                continue
            for side, other in ((one.tree.this, one.tree.expression), (one.tree.expression, one.tree.this)):
                operand = scope.resolve(side.unnest(), one.at)
                column = facts.column(operand.name) if operand is not None and operand.leaf is leaf else None
                query = other.this if isinstance(other, exp.Subquery) else None
                if column is not None and facts.is_partition_column(column) and isinstance(query, exp.Select):
                    cover = self._extreme(query, Column(column.name.lower(), column.type_name))
                    if cover is not None:
                        yield cover

    def _extreme(self, query: exp.Select, column: Column) -> Cover | None:
        """A column's values that equal the extreme of a partition column that a query asks for."""
        scope, shown = self._scopes.scope_of(query), query.expressions[0].unalias()
        if scope is None or not isinstance(shown, exp.Max | exp.Min) or query.args.get("group"):
            return None
        operand = scope.resolve(shown.this.unnest(), scope.block.tree.joins[-1])
        origin = self._origin(operand) if operand is not None else None
        facts = self._facts_of(origin.leaf) if origin is not None else None
        if facts is None or origin is None or origin.column.type_name != column.type_name:
            return None
        if not facts.is_partition_column(origin.column):
            return None
        index = self._lists.get(origin.reference.name)
        if index is None:
            self._tiny.unlisted.add(origin.reference.name)
            return None
        try:
            known = [value for value, _ in index.counts(origin.column.name) if value is not None]
            last = known[-1:] if isinstance(shown, exp.Max) else known[:1]
            return Cover.of_rows([column], [last]) if last else None
        except (NotIndexableError, UnreadableKeyError):
            return None


def _reads_partitions(facts: TableFacts) -> bool:
    """True for a view that is no small side as a whole, since it reads partitioned tables."""
    refusal = facts.behind.small_side_refusal if facts.behind is not None else None
    return refusal is not None and refusal.reason is SkipReason.REDUCER_PARTITIONED


def _is_partition(origin: ColumnOrigin) -> bool:
    return origin.facts.kind is TableKind.TABLE and origin.facts.is_partition_column(origin.column)


def _are_fixed(origins: Iterable[ColumnOrigin], covers: Mapping[Leaf, Cover]) -> bool:
    covered = ((origin.column.name.lower(), covers.get(origin.leaf, Cover.all())) for origin in origins)
    return all(name in _fixed_columns(cover) for name, cover in covered)


def _within(cover: Cover, shown: Mapping[str, tuple[ColumnOrigin, ...]]) -> dict[Leaf, Cover]:
    """The part of each table that a cover over the columns of a query leaves."""
    found: dict[Leaf, dict[str, str]] = {}
    for name, origins in shown.items():
        for origin in origins:
            found.setdefault(origin.leaf, {})[name.lower()] = origin.column.name.lower()
    return {leaf: _renamed(cover, names) for leaf, names in found.items()}


def _all_of(*covers: Mapping[Leaf, Cover]) -> dict[Leaf, Cover]:
    found: dict[Leaf, Cover] = {}
    for leaf, cover in (item for one in covers for item in one.items()):
        found[leaf] = cover.intersection(found.get(leaf, Cover.all()))
    return found


def _renamed(cover: Cover, names: Mapping[str, str]) -> Cover:
    boxes = (Box.of({names[c]: domain for c, domain in box.domains if c in names}) for box in cover.boxes)
    return Cover.of(box for box in boxes if box is not None)


def _fixed_columns(cover: Cover) -> frozenset[str]:
    """The columns of which each box of a cover names the values."""
    boxes = [
        frozenset(column for column, domain in box.domains if domain.width <= _VALUES_MAX) for box in cover.boxes
    ]
    return boxes[0].intersection(*boxes) if boxes else frozenset()
