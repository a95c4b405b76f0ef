"""Small sides that are partitioned tables, of which the statement's own literals choose partitions.

The dimension of a Hadoop warehouse is often a daily snapshot: `users` by `dt`, read with `d.dt = '2026-11-05'`.
Its key query reads those partitions alone, as the statement does. Their size decides whether it is worth asking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rewriter.domains.cover import Cover
from rewriter.scopes.blocks import Scope
from rewriter.scopes.join_tree import Leaf
from rewriter.scopes.scopes import Scopes
from rewriter.semijoins.literal_filters import filtered_partitions
from rewriter.semijoins.side_filters import SideFilter
from rewriter.semijoins.small_sides import PartOfTable, SmallSide, small_side_of_item
from rewriter.vocabulary.rule import Rule
from rewriter.vocabulary.skip_reason import Refusal

# Values of one partition column that count as a choice: the days of a year.
_VALUES_MAX = 366


@dataclass(frozen=True, eq=False)
class PartitionedSide:
    """A partitioned table as a small side."""

    small_side: SmallSide
    part: PartOfTable
    # The size of that part; None until Spark was asked.
    size_bytes: int | None
    # The columns, in lower case, that have values of literals alone.
    fixed: frozenset[str]


def partitioned_side(
    scopes: Scopes, scope: Scope, leaf: Leaf, filters: Sequence[SideFilter]
) -> PartitionedSide | None:
    """A partitioned table as a small side; None if no filter names values of a partition column."""
    reference = leaf.reference
    facts = scopes.catalog.get(reference.name) if reference is not None else None
    small_side = small_side_of_item(scopes, leaf, of_partitions=True)
    if reference is None or facts is None or isinstance(small_side, Refusal):
        return None
    if facts.is_foreign:
        return None  # Hudi may keep a row in a partition of another value
    covers = filtered_partitions(scopes.statement, scope, leaf, facts, filters)
    fixed = frozenset(column for cover in covers for column in _fixed_columns(cover))
    if not fixed:
        return None
    choosing = [one.text for one, cover in zip(filters, covers, strict=True) if not cover.is_all]
    part = PartOfTable(reference.name, f"{small_side.sql} WHERE {' AND '.join(f'({one})' for one in choosing)}")
    rules = (small_side.rules - {Rule.LATEST_PARTITION}) | {Rule.PARTITIONED_SIDES}
    small_side = replace(small_side, is_filtered=True, rules=rules)
    return PartitionedSide(small_side, part, facts.part_size(part.text), fixed)


def _fixed_columns(cover: Cover) -> frozenset[str]:
    """The columns of which each box of a cover names the values."""
    boxes = [
        frozenset(column for column, domain in box.domains if domain.width <= _VALUES_MAX) for box in cover.boxes
    ]
    return boxes[0].intersection(*boxes) if boxes else frozenset()
