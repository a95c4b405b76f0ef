"""Tests whether a statement may show that floating-point zeros have a sign: `-0.0 = 0.0`, and the two differ.

`max` and `min` keep one of equal values, by the order in which they come, and `percentile` may. Spark makes the
two zeros one where it groups, joins and tells values apart (`NormalizeFloatingNumbers`), but not in these
functions.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from rewriter.splits.exact_sums import TypeOf, arguments, called_names, exact_digits, operands
from rewriter.sql.statement import Statement

# Tells if any two equal values of an expression are identical.
IsToldApart = Callable[[exp.Expr], bool]

_EXTREMES = (exp.Max, exp.Min, exp.Median, exp.Quantile)
_EXTREME_NAMES = frozenset({"max", "min", "median", "percentile"})

# A choice between a text and a decimal is a floating-point number.
_FLOATING_TYPES = ("float", "double", "decimal")
_FLOATING = (exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DECIMAL)

# Functions that make floating-point numbers, some of them of integers and texts alone. The other functions that
# `rewriter.sql.task_dependence` knows make none.
_FLOATING_FUNCTIONS = frozenset(
    """
    abs bround cbrt corr covar_pop covar_samp double exp float kurtosis ln log log10 log2 mean median mod
    months_between nanvl negative percentile pmod positive pow power rint round sign signum skewness sqrt std
    stddev stddev_pop stddev_samp try_add try_avg try_divide try_multiply try_subtract try_sum var_pop var_samp
    variance
    """.split()
)
# These make a floating-point number of a text that says a number.
_CALCULATING = (exp.Add, exp.Sub, exp.Div, exp.Mul, exp.Mod, exp.Neg)

_WHOLE_CASTS = frozenset(
    {
        exp.DType.BOOLEAN,
        exp.DType.DATE,
        exp.DType.TEXT,
        exp.DType.TIMESTAMP,
        exp.DType.TIMESTAMPLTZ,
        exp.DType.TIMESTAMPNTZ,
    }
)
# These are no floating-point numbers, whatever they are given, and make none beside others of them.
_WHOLE = (
    exp.TsOrDsToDate,
    exp.TimestampTrunc,
    exp.DateTrunc,
    exp.Upper,
    exp.Lower,
    exp.Boolean,
    exp.Null,
)
_CHOOSING = (exp.Paren, exp.Coalesce)


def may_make_floats(type_name: str) -> bool:
    """True if values of a type are or hold floating-point numbers, or become some beside texts.

    >>> may_make_floats("struct<x:double>"), may_make_floats("decimal(10,2)"), may_make_floats("string")
    (True, True, False)
    """
    return any(name in type_name for name in _FLOATING_TYPES)


def makes_floats(statement: Statement) -> bool:
    """True if the statement may make floating-point numbers of values that are none."""
    tree = statement.tree
    if any(one.this in _FLOATING for one in tree.find_all(exp.DataType)) or not _has_integers_alone(tree):
        return True
    if any(not _is_negative_literal(one) for one in tree.find_all(*_CALCULATING)):
        return True
    return not _FLOATING_FUNCTIONS.isdisjoint(called_names(statement))


def are_extremes_exact(statement: Statement, is_told_apart: IsToldApart) -> bool:
    """True if each extreme of the statement is the same in whatever order its values come."""
    found = list(statement.find_all(*_EXTREMES))
    if len(found) != sum(name in _EXTREME_NAMES for name in called_names(statement)):
        return False
    return all(is_told_apart(value) for one in found for value in arguments(one))


def is_without_floats(value: exp.Expr, type_of: TypeOf) -> bool:
    """True if the parts of a value show that it neither is nor holds a floating-point number.

    A choice between a text and a decimal is a floating-point number.
    """
    if exact_digits(value, type_of) is not None:
        return True
    pending = [value]
    while pending:
        current = pending.pop()
        parts = operands(current, _CHOOSING)
        if not parts and not _is_whole(current, type_of):
            return False
        pending += parts
    return True


def _is_whole(value: exp.Expr, type_of: TypeOf) -> bool:
    if isinstance(value, exp.Column):
        type_name = type_of(value)
        return type_name is not None and not may_make_floats(type_name)
    if isinstance(value, exp.Literal):
        return value.is_string
    if isinstance(value, exp.Cast):
        return value.to.this in _WHOLE_CASTS
    return isinstance(value, _WHOLE)


def _is_negative_literal(value: exp.Expr) -> bool:
    return isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal) and not value.this.is_string


def _has_integers_alone(tree: exp.Expr) -> bool:
    """True if all numbers in the text are integers: one with an exponent is a floating-point number."""
    return all(one.is_string or one.name.isdecimal() for one in tree.find_all(exp.Literal))
