"""Expressions that mean the same under all settings of a session.

Spark evaluates a view's text with settings of the session that made the view: its ANSI mode, its time zone and all
others that were set there. A key query that repeats a condition of the text is evaluated with the settings of the
client's session. So a view's condition counts only if no setting changes it: comparisons of columns of one type
with each other and with literals of that type. `'01' = 1`, `CAST(d.ts AS DATE)` and `current_date()` may come out
otherwise in another session.
"""

from __future__ import annotations

from datetime import date

from sqlglot import exp

from rewriter.domains.literals import is_key_type
from rewriter.scopes.blocks import Scope
from rewriter.scopes.lineage import ColumnTypes

# Expressions inside one another. A person writes three or four; the limit bounds the recursion.
_NESTING_MAX = 30

_BOOLEAN, _DATE, _INT, _STRING = "boolean", "date", "int", "string"
_INTEGERS = frozenset({"tinyint", "smallint", _INT, "bigint"})
_INT_MAX = 2**31 - 1

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
# Parts of a date, which has no time zone.
_PARTS_OF_DATE = (exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth)
_USERS = (exp.CurrentUser, exp.SessionUser)


class SettledExpressions:
    """Tells the types of expressions that no setting changes; None for any other expression."""

    def __init__(self, types: ColumnTypes) -> None:
        self._types = types

    def type_of(self, scope: Scope, tree: exp.Expr, nesting: int = 0) -> str | None:
        """The type of an expression in a block, if its value is the same under all settings."""
        node = tree.unnest()
        if nesting > _NESTING_MAX:
            return None
        if isinstance(node, exp.Column):
            return self._of_column(scope, node)
        if isinstance(node, _USERS):
            return _STRING
        if isinstance(node, exp.Literal | exp.Neg | exp.Cast | exp.Boolean):
            return _of_literal(node)
        below = [self.type_of(scope, part, nesting + 1) for part in _operands(node)]
        if not below or None in below:
            return _BOOLEAN if self._is_null_test(scope, node, nesting) else None
        types = {_INT if type_name in _INTEGERS else type_name for type_name in below}
        # Texts without a column have the collation that is the default where they stand.
        is_collated = types == {_STRING} and node.find(exp.Column) is None
        return None if is_collated else _of_operation(node, types)

    def _of_column(self, scope: Scope, column: exp.Column) -> str | None:
        operand = scope.resolve(column, scope.block.tree.joins[-1])
        type_name = self._types.of(operand) if operand is not None else None
        return type_name if type_name is not None and is_key_type(type_name) else None

    def _is_null_test(self, scope: Scope, node: exp.Expr, nesting: int) -> bool:
        if not isinstance(node, exp.Is) or not isinstance(node.expression, exp.Null):
            return False
        return self.type_of(scope, node.this, nesting + 1) is not None


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """The operands of an operation that is known; none for any other."""
    if isinstance(node, _PARTS_OF_DATE):
        # sqlglot reads `year(d)` as `year(to_date(d))`, which changes no date.
        part = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
        return [part]
    if isinstance(node, (*_COMPARISONS, exp.And, exp.Or, exp.Like)):
        return [node.this, node.expression]
    if isinstance(node, exp.Between):
        return [node.this, node.args["low"], node.args["high"]]
    if isinstance(node, exp.In) and node.expressions and not _has_others(node, {"this", "expressions"}):
        return [node.this, *node.expressions]
    if isinstance(node, exp.Coalesce) and not _has_others(node, {"this", "expressions"}):
        return [node.this, *node.expressions]
    return [node.this] if isinstance(node, exp.Not) else []


def _has_others(node: exp.Expr, names: set[str]) -> bool:
    return any(value for name, value in node.args.items() if name not in names)


def _of_operation(node: exp.Expr, types: set[str | None]) -> str | None:
    """The type of a known operation over operands of these types, of which integers count as one."""
    if len(types) != 1:
        return None
    (type_name,) = types
    if isinstance(node, _PARTS_OF_DATE):
        return _INT if type_name == _DATE else None
    if isinstance(node, exp.And | exp.Or | exp.Not):
        return _BOOLEAN if type_name == _BOOLEAN else None
    if isinstance(node, exp.Like):
        return _BOOLEAN if type_name == _STRING else None
    if isinstance(node, exp.Coalesce):
        # Integers may be of several types, of which Spark takes the widest.
        return type_name if type_name != _INT else None
    return _BOOLEAN


def _of_literal(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Boolean):
        return _BOOLEAN
    if isinstance(node, exp.Cast):
        return _DATE if type(node) is exp.Cast and _is_date(node) else None
    literal = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(literal, exp.Literal):
        return None
    if literal.is_string:
        return _STRING if literal is node else None
    return _INT if literal.name.isdigit() and int(literal.name) <= _INT_MAX else None


def _is_date(cast: exp.Cast) -> bool:
    """True for `DATE'2026-11-23'`, and for the cast of such a text."""
    literal, to = cast.this, cast.to
    if to.this is not exp.DataType.Type.DATE or not isinstance(literal, exp.Literal) or not literal.is_string:
        return False
    try:
        return date.fromisoformat(literal.name).isoformat() == literal.name
    except ValueError:
        return False
