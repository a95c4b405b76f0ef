"""Small side of a join with all filters that its key query may use: its own, a snowflake's, and outer ones."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from rewriter.catalog.table_facts import TableFacts
from rewriter.partitions.index import PartitionIndexes
from rewriter.scopes.join_rules import JoinKind
from rewriter.scopes.join_tree import Join, Leaf
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.causes import BlockCauses
from rewriter.semijoins.equalities import ItemPartner
from rewriter.semijoins.outer_filters import OuterFilterFinder, OuterFilters
from rewriter.semijoins.partition_query import AskedLists
from rewriter.semijoins.partitioned_sides import PartitionedSides
from rewriter.semijoins.small_sides import (
    SmallSide,
    TinySides,
    generator_base,
    reads_foreign,
    small_side_of_generator,
)
from rewriter.semijoins.snowflake import Snowflakes
from rewriter.sql.conditions import conjuncts
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import Refusal, SkipReason

_OUTER = frozenset({JoinKind.LEFT, JoinKind.RIGHT, JoinKind.FULL})
# The cause of a refusal, for users.
_COMPARED_ELSEWHERE = (
    "it reads a table of another system, which may find other rows by a condition than Spark does, and Spark tests"
    " the conditions of an outer join itself"
)


@dataclass(frozen=True, eq=False)
class FilteredSide:
    """A FROM item, the tables of a snowflake around it, and the filters that every partner has satisfied."""

    leaf: Leaf
    small_side: SmallSide
    filters: tuple[str, ...]
    outer: OuterFilters | None

    def with_filters(self, texts: tuple[str, ...]) -> FilteredSide:
        """The side with further conditions, which may read the other items in a key query's FROM."""
        return replace(self, filters=self.filters + texts)

    def behind(
        self, outer: OuterFilters, scopes: Scopes, source: str, key: str
    ) -> tuple[SmallSide, tuple[str, ...]]:
        """The small side as the items around its block show it, with the key as REDUCED_KEY; and their filters.

        `source` is the FROM that has the small side and the item that the key is of.
        """
        alias = self.leaf.alias_text(scopes.statement)
        wrapped = outer.small_side_sql(source, key, alias, self.filters)
        tables = self.small_side.tables | outer.tables
        rules = self.small_side.rules | {Rule.OUTER_FILTERS}
        return SmallSide(wrapped, is_filtered=True, tables=tables, rules=rules), outer.texts


class FilteredSides:
    """Finds the filters of the small sides in one statement."""

    def __init__(
        self,
        scopes: Scopes,
        filter_finder: OuterFilterFinder,
        tiny: TinySides,
        lists: PartitionIndexes,
        rules_off: AbstractSet[Rule],
    ) -> None:
        self.scopes = scopes
        self.filter_finder = filter_finder
        self.tiny = tiny
        self._rules_off = rules_off
        # For `rewriter.semijoins.partition_reducers`: all blocks of the statement share them.
        self.asked_lists = AskedLists()
        self._snowflakes = Snowflakes(scopes)
        self.partitioned = PartitionedSides(scopes, filter_finder, lists, tiny)
        # With the facts themselves: as long as they are kept, no other facts get their id.
        self._found: dict[tuple[ItemPartner, int], tuple[TableFacts, FilteredSide | Refusal]] = {}

    def side_of(self, partner: ItemPartner, fact: TableFacts) -> FilteredSide | Refusal:
        """The small side that an item is, or the reason why it is none. `fact` is the table to be narrowed."""
        asked = partner, id(fact)
        if asked not in self._found:
            self._found[asked] = fact, self._look_up(partner, fact)
        return self._found[asked][1]

    def _look_up(self, partner: ItemPartner, fact: TableFacts) -> FilteredSide | Refusal:
        base = generator_base(partner.scope, partner.leaf)
        small_side = self._snowflakes.small_side_of(partner.leaf)
        if base is not None:
            small_side = small_side_of_generator(self.scopes, partner.leaf, base)
        return small_side if isinstance(small_side, Refusal) else self.filtered(small_side, partner, fact, base)

    def filtered(
        self, small_side: SmallSide, partner: ItemPartner, fact: TableFacts, base: Leaf | None = None
    ) -> FilteredSide | Refusal:
        """A small side with all its filters, or the reason why it has too few.

        `base` is the table that a LATERAL VIEW's generator reads: each row of the view comes from one of its rows.
        """
        scopes, scope, join, leaf = self.scopes, partner.scope, partner.join, partner.leaf
        own = self.filter_finder.filters_of(scope)
        filters = own.holding_for(join, leaf) + (own.holding_for(join, base) if base is not None else ())
        # In a FROM nothing may follow a LATERAL VIEW.
        looks_around = {Rule.SNOWFLAKE, Rule.OUTER_FILTERS} - self._rules_off if base is None else ()
        snowflake = self._snowflakes.around(own, join, leaf, fact) if Rule.SNOWFLAKE in looks_around else ()
        outer = self.filter_finder.outer_filters(scope, join, leaf) if Rule.OUTER_FILTERS in looks_around else None
        # A MERGE's source has what is new: it needs no filter to be smaller than the target.
        if not (filters or small_side.is_filtered or snowflake or outer or scope.block.is_merge):
            if not self.tiny.are_tiny(small_side.tables):
                causes = BlockCauses(scopes, self.filter_finder, scope)
                return SkipReason.REDUCER_UNFILTERED.because(causes.unfiltered(join, leaf, small_side.tables))
            small_side = replace(small_side, is_filtered=True)
        small_side = small_side.also_reading(filter_.tables for filter_ in filters)
        texts = tuple(filter_.text for filter_ in filters)
        for table in snowflake:
            small_side = small_side.joined_with(table.small_side, Rule.SNOWFLAKE)
            small_side = small_side.also_reading(filter_.tables for filter_ in table.filters)
            texts += (table.equality, *(filter_.text for filter_ in table.filters))
        if (texts or outer) and self._has_outer_conditions and reads_foreign(scopes.catalog, small_side.tables):
            return SkipReason.REDUCER_NOT_UNDERSTOOD.because(_COMPARED_ELSEWHERE)
        return FilteredSide(leaf, small_side, texts, outer)

    @cached_property
    def _has_outer_conditions(self) -> bool:
        """True if a side may be filtered by the condition of an outer join, which keeps rows that fail it.

        For `d LEFT JOIN f ON f.k = d.k AND d.g BETWEEN 'A' AND 'a'`, Spark sends nothing to a database behind `d`.
        A key query would send it the range, and the database may have another order.
        """
        joins = (join for block in self.scopes.blocks for join in block.tree.joins)
        return any(map(_has_outer_condition, joins))


def _has_outer_condition(join: Join) -> bool:
    is_outer = join.kind in _OUTER or join.is_made_inner
    return is_outer and not all(map(_compares_two_items, conjuncts(join.condition)))


def _compares_two_items(term: exp.Expr) -> bool:
    if not isinstance(term, exp.EQ):
        return False
    one, other = term.this.unnest(), term.expression.unnest()
    return isinstance(one, exp.Column) and isinstance(other, exp.Column) and one.table != other.table
