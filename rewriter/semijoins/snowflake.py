"""Snowflake tables, which filter the small side in turn: `sales JOIN stores JOIN countries WHERE ..`."""

from __future__ import annotations

from dataclasses import dataclass

from rewriter.catalog.table_facts import TableFacts
from rewriter.scopes.join_tree import Join, Leaf
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.side_filters import BlockFilters, SideFilter
from rewriter.semijoins.small_sides import SmallSide, is_laid_out, may_be_as_large, small_side_of_item
from rewriter.vocabulary.skip_reason import Refusal

# Tables of a snowflake in one key query. Each is one more join to run before the statement.
_TABLES_MAX = 6


@dataclass(frozen=True, eq=False)
class SnowflakeTable:
    """A table that is joined to the small side, or to another table of the snowflake, with its filters."""

    joined_to: Leaf
    small_side: SmallSide
    equality: str
    filters: tuple[SideFilter, ...]


def snowflake_tables(
    scopes: Scopes, filters: BlockFilters, join: Join, leaf: Leaf, fact: TableFacts
) -> tuple[SnowflakeTable, ...]:
    """The filtered tables around a small side, and the tables between; nearest first.

    Every row of the small side that can be a partner at `join` is in a row of the FROM with rows of these tables
    that satisfy the equalities and their filters. `fact` is the table that the keys are for.
    """
    found: dict[Leaf, SnowflakeTable] = {}
    wanted: set[Leaf] = set()
    pending = [leaf]
    while pending and len(found) < _TABLES_MAX:
        known = pending.pop(0)
        for other, equality in filters.neighbours(join, leaf, known):
            small_side = small_side_of_item(scopes, other)
            if other is leaf or other in found or isinstance(small_side, Refusal):
                continue
            if is_laid_out(scopes.catalog, small_side.tables) and may_be_as_large(
                scopes.catalog, small_side.tables, fact
            ):
                continue  # a large table, and it may be the very fact
            found[other] = SnowflakeTable(known, small_side, equality, filters.joined_with(join, leaf, other))
            pending.append(other)
            if found[other].filters or small_side.is_filtered:
                wanted |= _tables_between(found, other)
    return tuple(arm for other, arm in found.items() if other in wanted)


def _tables_between(found: dict[Leaf, SnowflakeTable], leaf: Leaf) -> set[Leaf]:
    """A table of the snowflake and the tables between it and the small side."""
    between = set()
    while leaf in found:
        between.add(leaf)
        leaf = found[leaf].joined_to
    return between
