"""Exact values: any two of them that are equal are identical.

0.0 equals -0.0, so that GROUP BY puts both into one group, which shows one of them; as text they differ. A key
query repeats a filter for each row of a small side. It must not tell apart values that the statement has grouped.
"""

from __future__ import annotations

from sqlglot import exp

from rewriter.domains.literals import is_key_type
from rewriter.scopes.blocks import Operand, Scope
from rewriter.scopes.join_tree import Leaf
from rewriter.scopes.lineage import ColumnTypes, branches
from rewriter.scopes.scopes import Scopes

# Derived tables inside one another. The limit bounds the recursion.
_NESTING_MAX = 20

# Types that keys do not have, for other reasons: a local time can occur twice, char is padded.
_ALSO_EXACT = ("timestamp", "char(", "varchar(", "binary")

# Expressions that make exact values of exact ones.
_EXACT = (
    *(exp.Column, exp.Identifier, exp.Boolean, exp.Null, exp.Paren, exp.Var),
    *(exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.And, exp.Or, exp.Not, exp.Is, exp.In, exp.Between),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Like, exp.ILike),
    *(exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek, exp.DayOfYear, exp.WeekOfYear),
    *(exp.DateTrunc, exp.TimestampTrunc, exp.TsOrDsToDate, exp.TimeStrToTime, exp.LastDay, exp.Extract),
    *(exp.Cast, exp.TryCast, exp.DataTypeParam),
)
_EXACT_TYPES = frozenset("TINYINT SMALLINT INT BIGINT DECIMAL DATE BOOLEAN".split())
# The same, but not beside arithmetic: Spark adds a text to a number as doubles.
_TEXTS = (exp.Substring, exp.Lower, exp.Upper, exp.Trim, exp.Left, exp.Right, exp.Concat, exp.DPipe, exp.TimeToStr)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Neg)


class ExactValues:
    """Tells exact columns and expressions of one statement."""

    def __init__(self, scopes: Scopes, types: ColumnTypes) -> None:
        self._scopes = scopes
        self._types = types
        self._found: dict[tuple[Leaf, str], bool] = {}

    def is_exact(self, operand: Operand, nesting: int = 0) -> bool:
        """True if the values of a column are exact, by its type or by what queries compute it from."""
        column = operand.leaf, operand.name.lower()
        if column not in self._found:
            self._found[column] = self._look_up(operand, nesting)
        return self._found[column]

    def _look_up(self, operand: Operand, nesting: int) -> bool:
        type_name = self._types.of(operand)
        if type_name is not None:
            return is_key_type(type_name) or type_name.startswith(_ALSO_EXACT)
        query = self._scopes.query_of(operand.leaf)
        position = self._scopes.position_of(operand.leaf, operand.name)
        if query is None or position is None or nesting > _NESTING_MAX:
            return False
        selects = branches(query)
        return bool(selects) and all(self._is_exact_output(select, position, nesting) for select in selects)

    def _is_exact_output(self, select: exp.Select, position: int, nesting: int) -> bool:
        scope, outputs = self._scopes.scope_of(select), self._scopes.outputs_of(select) or ()
        if scope is None or position >= len(outputs):
            return False
        shown = outputs[position].shows
        if isinstance(shown, Operand):
            return self.is_exact(shown, nesting + 1)
        return self.is_exact_expression(scope, shown, nesting + 1)

    def is_exact_expression(self, scope: Scope, tree: exp.Expr, nesting: int = 0) -> bool:
        """True if an expression makes exact values of exact columns."""
        nodes = list(tree.walk())
        is_arithmetic = any(isinstance(node, _ARITHMETIC) for node in nodes)
        return all(self._is_exact_node(scope, node, nesting, is_arithmetic=is_arithmetic) for node in nodes)

    def _is_exact_node(self, scope: Scope, node: exp.Expr, nesting: int, *, is_arithmetic: bool) -> bool:
        if isinstance(node, exp.Literal):
            # A number with an exponent is a double.
            return not is_arithmetic if node.is_string else node.name.replace(".", "").isdigit()
        if isinstance(node, exp.DataType):
            return node.this.name in _EXACT_TYPES or (node.this.name == "TEXT" and not is_arithmetic)
        if not isinstance(node, exp.Column):
            return isinstance(node, (*_EXACT, *_ARITHMETIC)) or (isinstance(node, _TEXTS) and not is_arithmetic)
        operand = scope.resolve(node, scope.block.tree.joins[-1])
        if operand is None or not self.is_exact(operand, nesting):
            return False
        return not is_arithmetic or self._types.of(operand) not in {None, "string"}
