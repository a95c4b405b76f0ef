"""Places in ON and WHERE where a filter on a FROM item means the same as in the item's own scan.

`SELECT db.t.x FROM db.t JOIN ..` names columns by database, which `(SELECT * FROM db.t WHERE ..) AS t` would hide.
There the filter goes before a conjunct of a condition that every row of the table must satisfy to count.
"""

from __future__ import annotations

from sqlglot import TokenType, exp

from rewriter.scopes.blocks import Block
from rewriter.scopes.join_tree import Leaf, must_be_passed
from rewriter.sql.conditions import located
from rewriter.sql.statement import Statement

# Tokens behind which `condition AND` can begin before a conjunct.
_BEFORE_CONJUNCT = frozenset({TokenType.ON, TokenType.WHERE, TokenType.AND, TokenType.L_PAREN})


def conjunct_for(statement: Statement, block: Block, leaf: Leaf) -> int | None:
    """The offset of a conjunct before which a condition on a table drops its rows as a filter in its scan would.

    None if there is none, or if the table's name there may mean another item.
    """
    names = [other.alias.lower() for other in block.tree.leaves]
    if names.count(leaf.alias.lower()) > 1 or block.select.args.get("laterals"):
        return None
    for join in block.tree.joins:
        # Spark may not push the condition down through an outer join that only counts as inner.
        if join.condition is None or join.is_made_inner or not leaf.is_visible_at(join):
            continue
        if not must_be_passed(join, leaf):
            continue
        for conjunct in located(statement, join.condition):
            before = statement.tokens[conjunct.first - 1].token_type
            if before in _BEFORE_CONJUNCT and not isinstance(conjunct.tree, exp.Or):
                return statement.tokens[conjunct.first].start
    return None
