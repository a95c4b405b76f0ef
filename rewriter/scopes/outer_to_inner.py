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

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

from sqlglot import exp

from rewriter.scopes.blocks import Operand, Scope
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

# Tells if a FROM item's column is null in every row that a join pads, and in every row made of such a row.
_IsNull: TypeAlias = Callable[[Operand], bool]

# A conjunct of a join's condition, or two columns that USING compares.
_Term: TypeAlias = tuple[Join, exp.Expr | tuple[Operand, Operand]]


def make_outer_joins_inner(scopes: Scopes) -> None:
    """Replace the kinds of joins whose padded rows no condition above lets through."""
    if any(join.kind in _OUTER for block in scopes.blocks for join in block.tree.joins):
        readers, conditions = Readers(scopes), _Conditions(scopes)
        for scope in _readers_first(scopes, readers):
            _BlockJoins(scopes, readers, conditions, scope).make_inner()


def _readers_first(scopes: Scopes, readers: Readers) -> Iterator[Scope]:
    """The blocks, each behind its readers: a reader's item that is no longer padded passes the filters on."""
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
    """The conditions of all joins of a statement, by the FROM items that each reads."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._read: dict[Scope, dict[Leaf, list[_Term]]] = {}

    def reject(
        self, scope: Scope, leaves: Sequence[Leaf], is_passed: Callable[[Join], bool], is_null: _IsNull
    ) -> bool:
        """True if a condition that must be passed is never true where these columns of the items are null."""
        terms = [term for leaf in leaves for term in self._reading(scope).get(leaf, ())]
        self._scopes.steps.look_at(len(leaves) + len(terms))
        return any(_is_false(scope, at, term, is_null) for at, term in terms if is_passed(at))

    def _reading(self, scope: Scope) -> dict[Leaf, list[_Term]]:
        """The conditions of one block by item: a long one is not evaluated for joins of others."""
        if scope not in self._read:
            found: defaultdict[Leaf, list[_Term]] = defaultdict(list)
            for at in scope.block.tree.joins:
                for pair in scope.merged(at):
                    for operand in pair:
                        found[operand.leaf].append((at, pair))
                for term in conjuncts(at.condition):
                    operands = [scope.resolve(column, at) for column in self._scopes.own_parts(term)[0]]
                    for leaf in dict.fromkeys(operand.leaf for operand in operands if operand is not None):
                        found[leaf].append((at, term))
            self._read[scope] = found
        return self._read[scope]


def _is_false(scope: Scope, at: Join, term: exp.Expr | tuple[Operand, Operand], is_null: _IsNull) -> bool:
    """True if a condition is never true where these columns are null."""
    if isinstance(term, tuple):
        return any(map(is_null, term))
    return is_never_true(term, lambda column: _is_null_at(scope, at, column, is_null))


class _BlockJoins:
    """The outer joins of one block."""

    def __init__(self, scopes: Scopes, readers: Readers, conditions: _Conditions, scope: Scope) -> None:
        self._scopes = scopes
        self._readers = readers
        self._conditions = conditions
        self._scope = scope
        self._readers_left = 0

    def make_inner(self) -> None:
        """Replace the kinds of the joins whose padded rows cannot reach the result."""
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
        tree = self._scope.block.tree
        padded = tree.leaves[positions.start : positions.stop]

        def is_null(operand: Operand) -> bool:
            return operand.leaf.position in positions

        if self._conditions.reject(self._scope, padded, lambda at: _drops_padded(at, join), is_null):
            return True
        self._readers_left = _READERS_MAX
        return _drops_padded(tree.joins[-1], join) and self._is_rejected_outside(self._scope, is_null)

    def _is_rejected_outside(self, scope: Scope, is_null: _IsNull) -> bool:
        """True if every reader of the block drops all rows that rows with these nulls make or change."""
        readers = self._readers.readers_of(scope.block.select)
        return bool(readers) and all(self._is_rejected_by(reader, scope, is_null) for reader in readers)

    def _is_rejected_by(self, reader: ReadingItem, scope: Scope, is_null: _IsNull) -> bool:
        self._readers_left -= 1
        if self._readers_left < 0:
            return False
        is_null_outside = self._nulls_of_item(reader, scope, is_null)
        item = reader.item
        if self._conditions.reject(reader.scope, [item], lambda at: must_be_passed(at, item), is_null_outside):
            return True
        # A join that pads the item may put nulls in place of the rows: in these columns that changes nothing.
        return self._is_rejected_outside(reader.scope, is_null_outside)

    def _nulls_of_item(self, reader: ReadingItem, scope: Scope, is_null: _IsNull) -> _IsNull:
        """The nulls of a block as the columns of an item that reads it."""
        known: dict[int, bool] = {}

        def is_null_outside(operand: Operand) -> bool:
            if operand.leaf is not reader.item:
                return False
            position = self._scopes.position_of(reader.item, operand.name)
            if position is not None and position not in known:
                known[position] = self._shows_null(scope, position, is_null)
            return position is not None and known[position]

        return is_null_outside

    def _shows_null(self, scope: Scope, position: int, is_null: _IsNull) -> bool:
        """True if an output is null in all rows of a SELECT that rows with these nulls make or change."""
        select = scope.block.select
        outputs = self._scopes.outputs_of(select) or ()
        if position >= len(outputs):
            return False
        operand = column_of_output(self._scopes, select, position)
        if operand is not None:
            return is_null(operand)
        shown, top = outputs[position].shows, scope.block.tree.joins[-1]
        if isinstance(shown, Operand) or not shows_rows_apart(self._scopes, select):
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
