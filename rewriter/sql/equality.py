"""Equality of two expressions in a condition: `=`, `<=>`, and the ways in which `<=>` is written without it.

Tools that know no `<=>` write `a = b OR (a IS NULL AND b IS NULL)`. That is true where `a <=> b` is, and null in
place of false elsewhere: as a term of a join's condition or of WHERE it lets the same rows pass.

>>> from rewriter.sql.statement import parse_tree
>>> def read(condition):
...     found = equality_of(parse_tree(f"SELECT 1 WHERE {condition}").args["where"].this)
...     return found and (*(side.sql() for side in found.sides), found.null_safe)
>>> read("a.k = b.k"), read("a.k IS NOT DISTINCT FROM b.k")
(('a.k', 'b.k', False), ('a.k', 'b.k', True))
>>> read("(b.k IS NULL AND a.k IS NULL) OR a.k = b.k")
('a.k', 'b.k', True)
>>> read("a.k = b.k OR (a.k IS NULL AND b.l IS NULL)")
>>> read("a.k = b.k OR a.k IS NULL")
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from rewriter.sql.conditions import conjuncts


@dataclass(frozen=True, eq=False)
class Equality:
    """A term of a condition that holds where both sides are equal; `null_safe` if also where both are null."""

    term: exp.Expr
    sides: tuple[exp.Expr, exp.Expr]
    null_safe: bool


def equality_of(term: exp.Expr) -> Equality | None:
    """The equality that a term is; None for any other term."""
    compared, null_safe = term, False
    if isinstance(term, exp.NullSafeEQ):
        null_safe = True
    elif isinstance(term, exp.Not) and isinstance(distinct := term.this.unnest(), exp.NullSafeNEQ):
        compared, null_safe = distinct, True
    elif isinstance(term, exp.Or):
        spelled = _null_safe_spelled(term)
        if spelled is None:
            return None
        compared, null_safe = spelled, True
    elif not isinstance(term, exp.EQ):
        return None
    return Equality(term, (compared.this.unnest(), compared.args["expression"].unnest()), null_safe)


def _null_safe_spelled(term: exp.Or) -> exp.Expr | None:
    """The `a = b` of `a = b OR (a IS NULL AND b IS NULL)`, for columns a and b in whatever order."""
    branches = (term.this.unnest(), term.args["expression"].unnest())
    for equality, tests in (branches, branches[::-1]):
        if isinstance(equality, exp.EQ):
            compared = [_column_name(side) for side in (equality.this, equality.args["expression"])]
            tested = [_column_name(side) for side in _null_tested(tests)]
            if None not in compared and sorted(map(str, compared)) == sorted(map(str, tested)):
                return equality
    return None


def _null_tested(condition: exp.Expr) -> Iterator[exp.Expr | None]:
    """The operands of `.. IS NULL AND .. IS NULL`; None for any other term among them."""
    for term in conjuncts(condition):
        is_test = isinstance(term, exp.Is) and isinstance(term.args["expression"], exp.Null)
        yield term.this if is_test else None


def _column_name(node: exp.Expr | None) -> tuple[str, ...] | None:
    """The parts of a column's name as they are written; None for any other expression."""
    column = node.unnest() if node is not None else None
    if not isinstance(column, exp.Column) or not isinstance(column.this, exp.Identifier):
        return None
    return tuple(part.name for part in column.parts)
