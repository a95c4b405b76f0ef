"""The place of a correlated subquery: the block around it, and the join whose rows it is evaluated for.

A subquery is a function of one row of the block around it. In an ON the row is one of that join; in the WHERE or
in the select list it is one that the FROM gives; behind LATERAL it is one of the items before it.
"""

from __future__ import annotations

from sqlglot import exp

from rewriter.scopes.blocks import Scope
from rewriter.scopes.join_rules import JoinKind
from rewriter.scopes.join_tree import Join
from rewriter.scopes.scopes import Scopes


def place_of_subquery(scopes: Scopes, scope: Scope) -> tuple[Scope, Join] | None:
    """The scope around a block that is a subquery in an expression, or LATERAL, and the join there; else None.

    A subquery of HAVING or ORDER BY may mean an output by a name, and is left out; so is a part of a UNION.
    """
    node: exp.Expr = scope.block.select
    while isinstance(node.parent, exp.Subquery):
        node = node.parent
    parent = node.parent
    if isinstance(parent, exp.Lateral):
        return _join_of_lateral(scopes, parent)
    if parent is None or isinstance(parent, exp.From | exp.Join | exp.CTE | exp.SetOperation | exp.DDL):
        return None
    while parent is not None and not isinstance(parent, exp.Select):
        if isinstance(parent, exp.Query | exp.Order | exp.Window):
            return None
        node, parent = parent, parent.parent
    outer = scopes.scope_of(parent) if parent is not None else None
    if outer is None:
        return None
    if node.arg_key == "joins":
        return _join_of(outer, scope.block.select)
    return (outer, outer.block.tree.joins[-1]) if node.arg_key in {"where", "expressions"} else None


def _join_of(outer: Scope, select: exp.Expr) -> tuple[Scope, Join] | None:
    """The inner join in whose ON a subquery stands."""
    around = set()
    node: exp.Expr | None = select
    while node is not None:
        around.add(id(node))
        node = node.parent
    found = (join for join in outer.block.tree.joins[:-1] if id(join.condition) in around)
    join = next(found, None)
    is_inner = join is not None and join.kind is JoinKind.INNER and not join.is_made_inner
    return (outer, join) if join is not None and is_inner else None


def _join_of_lateral(scopes: Scopes, lateral: exp.Lateral) -> tuple[Scope, Join] | None:
    """The join of a LATERAL subquery with the items before it.

    A row that fails the condition of LEFT JOIN LATERAL is padded, whatever the subquery gives for it.
    """
    select = lateral.find_ancestor(exp.Select)
    outer = scopes.scope_of(select) if select is not None else None
    tree = outer.block.tree if outer is not None else None
    leaf = next((leaf for leaf in tree.leaves if leaf.node is lateral), None) if tree is not None else None
    if outer is None or tree is None or leaf is None:
        return None
    found = (join for join in tree.joins if (join.middle, join.stop) == (leaf.position, leaf.position + 1))
    join = next(found, None)
    return (outer, join) if join is not None and join.kind in {JoinKind.INNER, JoinKind.LEFT} else None
