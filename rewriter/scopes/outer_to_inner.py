"""Outer joins that a condition above makes inner: `T LEFT JOIN R ON .. WHERE R.g = 5` drops every padded row.

The proof needs syntax alone: a condition above is true for no row in which all columns of the padded side are null
(`rewriter.sql.null_logic`), and every row of the join that reaches the result passes that condition as the join
made it. Spark does the same in its optimizer (EliminateOuterJoin in joins.scala).

The condition may stand outside the block, on a derived table or a CTE that has the join within: `SELECT .. FROM
(SELECT T.amount, R.g FROM T LEFT JOIN R ON ..) x WHERE x.g = 5`. All rows of `x` that the padded ones make or
change have null in place of `g`, if that is a plain column whose rows stay apart (`rewriter.scopes.lineage`) or is
computed from such rows one by one. If every reader of `x` then drops them for good, they may as well be dropped by
the block itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from sqlglot import exp

from rewriter.scopes.blocks import Operand, Scope, own_parts
from rewriter.scopes.join_rules import CONDITION_HOLDS, JoinKind, Side
from rewriter.scopes.join_tree import Join, Leaf, mark_padding, must_be_passed
from rewriter.scopes.lineage import column_of_output, shows_rows_apart
from rewriter.scopes.readers import Readers, ReadingItem
from rewriter.scopes.scopes import Scopes
from rewriter.sql.conditions import conjuncts
from rewriter.sql.null_logic import is_always_null, is_never_true
from rewriter.sql.statement import is_plain_name

# The kind of a join without the rows in which a side is padded.
_WITHOUT_PADDED: dict[tuple[JoinKind, Side], JoinKind] = {
    (JoinKind.LEFT, Side.RIGHT): JoinKind.INNER,
    (JoinKind.RIGHT, Side.LEFT): JoinKind.INNER,
    (JoinKind.FULL, Side.RIGHT): JoinKind.RIGHT,
    (JoinKind.FULL, Side.LEFT): JoinKind.LEFT,
}

_OUTER = frozenset(kind for kind, _ in _WITHOUT_PADDED)

# Readers that are looked at for one side of one join: a CTE may be read by several others, and they in their turn.
_READERS_MAX = 60

# Tells a column of a FROM item that is null in every row that a join pads, or that such a row becomes.
_IsNull: TypeAlias = Callable[[Operand], bool]


def make_outer_joins_inner(scopes: Scopes) -> None:
    """Replace the kinds of joins whose padded rows no condition above lets through."""
    if any(join.kind in _OUTER for block in scopes.blocks for join in block.tree.joins):
        readers, conditions = Readers(scopes), _Conditions()
        for scope in _readers_first(scopes, readers):
            _BlockJoins(scopes, readers, conditions, scope).make_inner()


def _readers_first(scopes: Scopes, readers: Readers) -> Iterator[Scope]:
    """The blocks, each behind those that read it: an item that is no longer padded there passes on its filters."""
    found = {id(block.select): scope for block in scopes.blocks if (scope := scopes.scope_of(block.select))}
    before = {
        key: [id(reader.scope.block.select) for reader in readers.readers_of(scope.block.select)]
        for key, scope in found.items()
    }
    try:
        yield from (found[key] for key in TopologicalSorter(before).static_order())
    except CycleError:
        # A query that reads itself is no known reader of itself: this does not happen, and nothing is lost by it.
        yield from found.values()


class _Conditions:
    """The conditions of all joins of a statement, with the FROM items that each term reads."""

    def __init__(self) -> None:
        self._read: dict[int, frozenset[Leaf]] = {}

    def reject(self, scope: Scope, at: Join, is_padded: Callable[[Leaf], bool], is_null: _IsNull) -> bool:
        """True if the condition of a join lets no row pass in which these columns of padded items are null."""
        if any(is_null(operand) for pair in scope.merged(at) for operand in pair):
            return True
        return any(
            is_never_true(term, lambda column: _is_null_at(scope, at, column, is_null))
            for term in conjuncts(at.condition)
            if any(map(is_padded, self._read_by(scope, at, term)))
        )

    def _read_by(self, scope: Scope, at: Join, term: exp.Expr) -> frozenset[Leaf]:
        """The items that a term reads; a long one is not evaluated for joins of others."""
        if id(term) not in self._read:
            operands = (scope.resolve(column, at) for column in own_parts(term)[0])
            self._read[id(term)] = frozenset(operand.leaf for operand in operands if operand is not None)
        return self._read[id(term)]


class _BlockJoins:
    """The outer joins of one block."""

    def __init__(self, scopes: Scopes, readers: Readers, conditions: _Conditions, scope: Scope) -> None:
        self._scopes = scopes
        self._readers = readers
        self._conditions = conditions
        self._scope = scope
        self._readers_left = 0
        self._apart: dict[Scope, bool] = {}

    def make_inner(self) -> None:
        """Replace the kinds of the joins whose padded rows reach the result by no way."""
        tree = self._scope.block.tree
        if all(join.kind not in _OUTER for join in tree.joins):
            return
        # From the top down: a join that no longer pads lets the conditions above it reach further.
        for join in reversed(tree.joins):
            join.mark_padded()
            if join.kind in _OUTER:
                for side, positions in _sides(join).items():
                    if self._is_rejected(join, positions):
                        join.kind = _WITHOUT_PADDED.get((join.kind, side), join.kind)
                        join.is_made_inner = True
        mark_padding(tree)

    def _is_rejected(self, join: Join, positions: range) -> bool:
        """True if no row in which the join pads the items at these positions reaches the result."""

        def is_padded(leaf: Leaf) -> bool:
            return leaf.position in positions

        def is_null(operand: Operand) -> bool:
            return is_padded(operand.leaf)

        joins = self._scope.block.tree.joins
        above = (at for at in joins if _drops_padded(at, join))
        if any(self._conditions.reject(self._scope, at, is_padded, is_null) for at in above):
            return True
        self._readers_left = _READERS_MAX
        return _drops_padded(joins[-1], join) and self._is_rejected_outside(self._scope, is_null)

    def _is_rejected_outside(self, scope: Scope, is_null: _IsNull) -> bool:
        """True if every reader of the block drops all rows that rows with these nulls become, or change."""
        readers = self._readers.readers_of(scope.block.select)
        return bool(readers) and all(self._is_rejected_by(reader, scope, is_null) for reader in readers)

    def _is_rejected_by(self, reader: ReadingItem, scope: Scope, is_null: _IsNull) -> bool:
        self._readers_left -= 1
        if self._readers_left < 0:
            return False
        is_null_outside = self._nulls_of_item(reader, scope, is_null)
        joins = reader.scope.block.tree.joins
        own = (at for at in joins if must_be_passed(at, reader.item))

        def is_item(leaf: Leaf) -> bool:
            return leaf is reader.item

        if any(self._conditions.reject(reader.scope, at, is_item, is_null_outside) for at in own):
            return True
        # A join that pads the item may put nulls in place of the rows: in these columns that changes nothing.
        return self._is_rejected_outside(reader.scope, is_null_outside)

    def _nulls_of_item(self, reader: ReadingItem, scope: Scope, is_null: _IsNull) -> _IsNull:
        """The nulls of a block as the columns of an item that reads it."""
        names = [column.name.lower() for column in self._scopes.columns_of(reader.item) or ()]
        known: dict[str, bool] = {}

        def is_null_outside(operand: Operand) -> bool:
            name = operand.name.lower()
            if operand.leaf is not reader.item or names.count(name) != 1:
                return False
            if name not in known:
                known[name] = self._shows_null(scope, names.index(name), is_null)
            return known[name]

        return is_null_outside

    def _shows_null(self, scope: Scope, position: int, is_null: _IsNull) -> bool:
        """True if an output is null in all rows of a SELECT that rows with these nulls become, or change."""
        select = scope.block.select
        outputs = self._scopes.outputs_of(select) or ()
        if position >= len(outputs):
            return False
        operand = column_of_output(self._scopes, select, position)
        if operand is not None:
            return is_null(operand)
        shown, top = outputs[position].shows, scope.block.tree.joins[-1]
        if scope not in self._apart:
            self._apart[scope] = shows_rows_apart(select)
        if isinstance(shown, Operand) or not self._apart[scope]:
            return False
        # A name in a select list may be a pattern for several columns.
        return is_always_null(
            shown, lambda column: is_plain_name(column.name) and _is_null_at(scope, top, column, is_null)
        )


def _sides(join: Join) -> dict[Side, range]:
    """The positions of the items on each side that the join pads."""
    sides = {Side.LEFT: range(join.start, join.middle), Side.RIGHT: range(join.middle, join.stop)}
    return {side: positions for side, positions in sides.items() if (join.kind, side) in _WITHOUT_PADDED}


def _drops_padded(at: Join, join: Join) -> bool:
    """True if every row of the join that counts has passed the condition of `at` as the join made it."""
    seen = at.stands_above(join) and at.sees_unpadded(join)
    return seen and at.side_of_join(join) in CONDITION_HOLDS[at.kind]


def _is_null_at(scope: Scope, at: Join, column: exp.Column, is_null: _IsNull) -> bool:
    operand = scope.resolve(column, at)
    return operand is not None and is_null(operand)
