"""Small tables that filter the small side in their turn: `sales JOIN stores JOIN countries WHERE ..`."""

from __future__ import annotations

from dataclasses import dataclass

from rewriter.catalog.table_facts import TableFacts
from rewriter.scopes.join_tree import Join, Leaf
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.side_filters import BlockFilters, SideFilter
from rewriter.semijoins.small_sides import SmallSide, is_laid_out, may_be_as_large, small_side_of_item
from rewriter.vocabulary.skip_reason import SkipReason

# Tables of a snowflake in one key query. Each is one more join to run before the statement.
_ARMS_MAX = 6


@dataclass(frozen=True, eq=False)
class SnowflakeTable:
    """A table that is joined to the small side, or to another arm, and what is known of its rows."""

    joined_to: Leaf
    source: SmallSide
    equality: str
    filters: tuple[SideFilter, ...]


def snowflake_tables(
    scopes: Scopes, filters: BlockFilters, join: Join, leaf: Leaf, fact: TableFacts
) -> tuple[SnowflakeTable, ...]:
    """The filtered tables around a small side, and those on the way to them; nearest first.

    Every row of the small side that can be a partner at `join` stands in a row of the FROM together with rows of
    these tables that satisfy the equalities and their filters. They are for the keys of the fact.
    """
    found: dict[Leaf, SnowflakeTable] = {}
    wanted: set[Leaf] = set()
    pending = [leaf]
    while pending and len(found) < _ARMS_MAX:
        known = pending.pop(0)
        for other, equality in filters.neighbours(join, leaf, known):
            source = small_side_of_item(scopes, other)
            if other is leaf or other in found or isinstance(source, SkipReason):
                continue
            if is_laid_out(scopes.catalog, source.tables) and may_be_as_large(scopes.catalog, source.tables, fact):
                continue  # a large table, and it may be the very fact
            found[other] = SnowflakeTable(known, source, equality, filters.joined_with(join, leaf, other))
            pending.append(other)
            if found[other].filters or source.is_filtered:
                wanted |= _way(found, other)
    return tuple(arm for other, arm in found.items() if other in wanted)


def _way(found: dict[Leaf, SnowflakeTable], leaf: Leaf) -> set[Leaf]:
    """An arm and those that lead to it."""
    way = set()
    while leaf in found:
        way.add(leaf)
        leaf = found[leaf].joined_to
    return way
