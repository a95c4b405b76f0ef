"""Outer joins that a condition above makes inner: `T LEFT JOIN R ON .. WHERE R.g = 5` drops every padded row.

The proof needs syntax alone: a condition above rejects nulls of the side that the join pads, and every row of the
join that reaches the result passes that condition as the join made it. Spark does the same in its optimizer
(EliminateOuterJoin in joins.scala).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from sqlglot import exp

from rewriter.scopes.blocks import Scope
from rewriter.scopes.join_rules import CONDITION_HOLDS, JoinKind, Side
from rewriter.scopes.join_tree import Join, mark_padding
from rewriter.sql.conditions import conjuncts

# Comparisons that are null, and so not true, where the operand named `this` is null.
_REJECTING_LEFT = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, exp.Between, exp.Like)
# Comparisons that are null where the other operand is null.
_REJECTING_RIGHT = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)

# The kind of a join without the rows in which a side is padded.
_WITHOUT_PADDED: dict[tuple[JoinKind, Side], JoinKind] = {
    (JoinKind.LEFT, Side.RIGHT): JoinKind.INNER,
    (JoinKind.RIGHT, Side.LEFT): JoinKind.INNER,
    (JoinKind.FULL, Side.RIGHT): JoinKind.RIGHT,
    (JoinKind.FULL, Side.LEFT): JoinKind.LEFT,
}


def make_outer_joins_inner(scope: Scope) -> None:
    """Replace the kinds of joins whose padded rows no condition above lets through."""
    tree = scope.block.tree
    if all(join.kind not in _OUTER for join in tree.joins):
        return
    rejections = defaultdict(list)
    for at, position in _rejections(scope):
        rejections[position].append(at)
    # Joins are visited from the top down: a join that no longer pads lets the conditions above it reach further.
    for join in reversed(tree.joins):
        join.mark_padded()
        if join.kind in _OUTER:
            for side, positions in _sides(join).items():
                if any(_drops_padded(at, join) for position in positions for at in rejections[position]):
                    join.kind = _WITHOUT_PADDED.get((join.kind, side), join.kind)
                    join.is_made_inner = True
    mark_padding(tree)


_OUTER = frozenset(kind for kind, _ in _WITHOUT_PADDED)


def _sides(join: Join) -> dict[Side, range]:
    """The positions of the items on each side that the join pads."""
    sides = {Side.LEFT: range(join.start, join.middle), Side.RIGHT: range(join.middle, join.stop)}
    return {side: positions for side, positions in sides.items() if (join.kind, side) in _WITHOUT_PADDED}


def _drops_padded(at: Join, join: Join) -> bool:
    """True if every row of the join that counts has passed the condition of `at` as the join made it."""
    seen = at.stands_above(join) and at.sees_unpadded(join)
    return seen and at.side_of_join(join) in CONDITION_HOLDS[at.kind]


def _rejections(scope: Scope) -> Iterator[tuple[Join, int]]:
    """The conditions that reject nulls of a FROM item's column: where they stand, and the item's position."""
    for join in scope.block.tree.joins:
        for term in conjuncts(join.condition):
            for expression in _rejected(term):
                operand = scope.resolve(expression.unnest(), join)
                if operand is not None:
                    yield join, operand.leaf.position


def _rejected(term: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of a term that is not true if one of them is null."""
    if isinstance(term, exp.Not) and isinstance(term.this.unnest(), exp.Is):
        null_test = term.this.unnest()
        if isinstance(null_test.expression, exp.Null):
            yield null_test.this
    if isinstance(term, _REJECTING_LEFT):
        yield term.this
    if isinstance(term, _REJECTING_RIGHT):
        yield term.expression
