"""Rows of a small side that a LIMIT chooses by order: the same values each time if ties show the same.

`SELECT ds FROM calendar WHERE .. ORDER BY ds DESC LIMIT 7` shows the same seven values whichever of equal rows
Spark takes: it orders by all that it shows, and equal values of these types are one value. Ordered by the weekday
it may show others each time.
"""

from __future__ import annotations

from sqlglot import exp

from rewriter.domains.literals import is_key_type
from rewriter.scopes.blocks import Operand, Scope
from rewriter.scopes.scopes import Scopes
from rewriter.sql.repeatable import uncertain_rows


def uncertain_choice(scopes: Scopes, query: exp.Expr) -> str | None:
    """The clause by which a query may choose other rows each time, for a user; None if it has none."""
    return uncertain_rows(query, lambda clause: _chooses_certain_rows(scopes, clause))


def _chooses_certain_rows(scopes: Scopes, clause: exp.Expr) -> bool:
    """True if a LIMIT or OFFSET of a number shows the same values whichever of equal rows it chooses."""
    select = clause.parent
    if not isinstance(clause, exp.Limit | exp.Offset) or not isinstance(select, exp.Select):
        return False
    count, order, scope = clause.expression, select.args.get("order"), scopes.scope_of(select)
    if not isinstance(count, exp.Literal) or count.is_string or order is None or scope is None:
        return False
    if any(clause.args.get(name) for name in ("offset", "limit_options", "expressions")):
        return False
    shown = [_column(scope, output) for output in select.expressions]
    ordered = {place for key in order.expressions for place in _places(scope, select, shown, key)}
    return all(
        column is not None and is_key_type(column.type_name or "") and place in ordered
        for place, column in enumerate(shown)
    )


def _column(scope: Scope, expression: exp.Expr) -> Operand | None:
    return scope.resolve(expression.unalias(), scope.block.tree.joins[-1])


def _places(scope: Scope, select: exp.Select, shown: list[Operand | None], key: exp.Expr) -> set[int]:
    """The outputs by which a SELECT is ordered: Spark looks for a name among the outputs first.

    A number may stand for an output or for itself (spark.sql.orderByOrdinal).
    """
    column = key.this
    if isinstance(column, exp.Column) and not column.table:
        named = [output.alias_or_name for output in select.expressions]
        alike = [name for name in named if name.lower() == column.name.lower()]
        if alike:
            return {named.index(column.name)} if alike == [column.name] else set()
    found = _column(scope, column)
    same = (place for place, other in enumerate(shown) if _is_same(other, found))
    return set(same)


def _is_same(one: Operand | None, other: Operand | None) -> bool:
    return one is not None and other is not None and one.leaf is other.leaf and one.name == other.name
