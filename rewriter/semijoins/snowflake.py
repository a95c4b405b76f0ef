"""Snowflake tables, which filter the small side in turn: `sales JOIN stores JOIN countries WHERE ..`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from rewriter.catalog.table_facts import TableFacts
from rewriter.scopes.join_tree import Join, Leaf
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.side_filters import BlockFilters, SideFilter, is_passed_with
from rewriter.semijoins.small_sides import SmallSide, is_laid_out, may_be_as_large, small_side_of_item
from rewriter.vocabulary.skip_reason import Refusal

# Tables of a snowflake in one key query. Each is one more join to run before the statement.
_TABLES_MAX = 6

# Tables that are looked at for one snowflake: most have no filter, and lead to none that has one.
_LOOKED_AT_MAX = 60


@dataclass(frozen=True, eq=False)
class SnowflakeTable:
    """A table that is joined to the small side, or to another table of the snowflake, with its filters."""

    joined_to: Leaf
    small_side: SmallSide
    equality: str
    filters: tuple[SideFilter, ...]


# An equality of an item with another one that a key query may read: its join, the other item, and its text.
_Arm: TypeAlias = tuple[Join, Leaf, str, SmallSide]


class Snowflakes:
    """Finds the tables around small sides. Each FROM item of the statement is looked at once."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._small_sides: dict[Leaf, SmallSide | Refusal] = {}
        self._arms: dict[Leaf, list[_Arm]] = {}

    def small_side_of(self, leaf: Leaf) -> SmallSide | Refusal:
        """The small side that a FROM item is, or the reason why it is none."""
        if leaf not in self._small_sides:
            self._small_sides[leaf] = small_side_of_item(self._scopes, leaf)
        return self._small_sides[leaf]

    def around(
        self, filters: BlockFilters, join: Join, leaf: Leaf, fact: TableFacts
    ) -> tuple[SnowflakeTable, ...]:
        """The filtered tables around a small side, and the tables between; nearest first.

        Every row of the small side that can be a partner at `join` stands in a row of the FROM beside rows of
        these tables that satisfy the equalities and their filters. `fact` is the table that the keys are for.
        """
        found: dict[Leaf, SnowflakeTable] = {}
        wanted: set[Leaf] = set()
        for table, other in self._tables(filters, join, leaf, fact):
            found[other] = table
            if table.filters or table.small_side.is_filtered:
                more = wanted | _tables_between(found, other)
                if len(more) > _TABLES_MAX:
                    break
                wanted = more
        return tuple(arm for other, arm in found.items() if other in wanted)

    def _tables(
        self, filters: BlockFilters, join: Join, leaf: Leaf, fact: TableFacts
    ) -> Iterator[tuple[SnowflakeTable, Leaf]]:
        """The tables that are joined to the small side, then those that are joined to these, and so on."""
        seen, pending, catalog = {leaf}, [leaf], self._scopes.catalog
        for known in pending:
            for at, other, equality, small_side in self._arms_of(filters, known):
                self._scopes.steps.take()
                if other in seen or not is_passed_with(at, join, leaf):
                    continue
                tables = small_side.tables
                if is_laid_out(catalog, tables) and may_be_as_large(catalog, tables, fact):
                    continue  # a large table, and it may be the very fact
                if len(seen) > _LOOKED_AT_MAX:
                    return
                seen.add(other)
                pending.append(other)
                yield SnowflakeTable(known, small_side, equality, filters.joined_with(join, leaf, other)), other

    def _arms_of(self, filters: BlockFilters, known: Leaf) -> list[_Arm]:
        """The equalities of an item with the items that a key query may read."""
        if known not in self._arms:
            self._arms[known] = [
                (at, other, equality, small_side)
                for at, other, equality in filters.neighbours(known)
                if isinstance(small_side := self.small_side_of(other), SmallSide)
            ]
        return self._arms[known]


def _tables_between(found: dict[Leaf, SnowflakeTable], leaf: Leaf) -> set[Leaf]:
    """A table of the snowflake and the tables between it and the small side."""
    between = set()
    while leaf in found:
        between.add(leaf)
        leaf = found[leaf].joined_to
    return between
