"""Tests whether the sums of a statement are the same in whatever order their values are added.

Sums of integers and decimals are. Floating-point numbers are rounded with each addition, so that the last digits
of a sum depend on the order, which is that of the tasks in which rows are read. Spark adds up the integers of an
average as floating-point numbers. A sum of decimals that passes 38 digits on the way is null or an error, although
the next value may bring it back: only sums with room for any order count as exact.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from sqlglot import TokenType, exp

from rewriter.sql.statement import Statement

# The type of the table's column that an aggregate adds up; None where it may be anything else, such as a field of
# a struct, or a column of a query.
TypeOf = Callable[[exp.Column], str | None]

# Aggregates that add up floating-point numbers whatever they are given.
_INEXACT = frozenset(
    """
    corr covar_pop covar_samp kurtosis mean skewness std stddev stddev_pop stddev_samp try_avg try_sum var_pop
    var_samp variance regr_avgx regr_avgy regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    """.split()
)

# The digits that integers take as decimals, or more (`DecimalType.forType`).
_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
# Their average is exact: no table has so many rows that their sum passes 2^53, which a double holds. This is true
# beside literals that are no larger, and not for products.
_AVERAGED = frozenset({"tinyint", "smallint"})
_AVERAGED_LITERAL_MAX = 10_000
_INTEGER_CASTS = {
    exp.DType.TINYINT: "tinyint",
    exp.DType.SMALLINT: "smallint",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "bigint",
}
_DECIMAL = re.compile(r"decimal\(([0-9]+),\s*([0-9]+)\)")

# Spark adds up decimals of p digits in one of p + 10, and of 38 at most (`Sum.resultType`, `Average.sumDataType`).
# No table has so many rows that ten more digits do not hold their sum.
_DECIMAL_DIGITS_MAX = 28

# These are exact where all their operands are. A quotient of integers is a floating-point number.
_KEEPING = (exp.Neg, exp.Paren, exp.Coalesce)
_CALCULATING = (exp.Add, exp.Sub, exp.Mul)


class Digits(NamedTuple):
    """The most digits that an exact number may have, before its point and behind it."""

    whole: int
    fraction: int
    is_decimal: bool = False

    @property
    def may_be_added(self) -> bool:
        """True if no sum of such numbers passes the range on the way: integers wrap around, or fail."""
        return not self.is_decimal or self.whole + self.fraction <= _DECIMAL_DIGITS_MAX


def are_sums_exact(statement: Statement, type_of: TypeOf) -> bool:
    """True if no sum or average of the statement depends on the order in which rows are read.

    `type_of` tells of columns of tables alone (`of_tables_alone`).
    """
    called = called_names(statement)
    if not _INEXACT.isdisjoint(called):
        return False
    found = list(statement.find_all(exp.Sum, exp.Avg))
    if len(found) != called.count("sum") + called.count("avg"):
        return False
    return all(_is_exact(one, type_of) for one in found)


def called_names(statement: Statement) -> list[str]:
    """The words before a parenthesis, in lower case, each as often as it stands there."""
    tokens = pairwise(statement.tokens)
    return [name.text.lower() for name, after in tokens if after.token_type is TokenType.L_PAREN]


def of_tables_alone(statement: Statement, type_of: TypeOf) -> TypeOf:
    """The types of columns whose names are no aliases: a query's column has an alias, and may be of any type."""
    named = {alias.alias.lower() for alias in statement.find_all(exp.Alias)}
    named |= {name.name.lower() for alias in statement.find_all(exp.TableAlias) for name in alias.columns}

    def known_type(column: exp.Column) -> str | None:
        return None if column.name.lower() in named else type_of(column)

    return known_type


def arguments(aggregate: exp.Expr) -> list[exp.Expr]:
    """The values that an aggregate takes, with or without DISTINCT."""
    given: exp.Expr = aggregate.this
    return given.expressions if isinstance(given, exp.Distinct) else [given]


def _is_exact(aggregate: exp.AggFunc, type_of: TypeOf) -> bool:
    is_average = isinstance(aggregate, exp.Avg)
    digits = [exact_digits(value, type_of, is_average=is_average) for value in arguments(aggregate)]
    return bool(digits) and all(one is not None and one.may_be_added for one in digits)


def exact_digits(value: exp.Expr, type_of: TypeOf, *, is_average: bool = False) -> Digits | None:
    """The digits of a value that is an exact number in each row; None if it may be any other one."""
    keeping = _KEEPING if is_average else (*_KEEPING, *_CALCULATING)
    found: list[tuple[exp.Expr, list[exp.Expr]]] = []
    pending = [value]
    while pending:
        current = pending.pop()
        parts = operands(current, keeping)
        found.append((current, parts))
        pending += parts
    # Each value stands before its operands.
    digits: dict[int, Digits] = {}
    for current, parts in reversed(found):
        of_parts = [digits[id(part)] for part in parts]
        own = _combined(current, of_parts) if of_parts else _digits(current, type_of, is_average=is_average)
        if own is None:
            return None
        digits[id(current)] = own
    return digits[id(value)]


def operands(value: exp.Expr, keeping: tuple[type[exp.Expr], ...]) -> list[exp.Expr]:
    """The values that a value is made of, or one of which it is; none if it is to be looked at itself."""
    if isinstance(value, exp.Case):
        return [*(one.args["true"] for one in value.args["ifs"]), *filter(None, [value.args.get("default")])]
    if isinstance(value, exp.If):
        return list(filter(None, [value.args["true"], value.args.get("false")]))
    return list(value.iter_expressions()) if isinstance(value, keeping) else []


def _combined(value: exp.Expr, parts: Sequence[Digits]) -> Digits:
    is_decimal = any(part.is_decimal for part in parts)
    whole, fraction = max(part.whole for part in parts), max(part.fraction for part in parts)
    if isinstance(value, exp.Mul):
        return Digits(sum(part.whole for part in parts) + 1, sum(part.fraction for part in parts), is_decimal)
    return Digits(whole + isinstance(value, exp.Add | exp.Sub), fraction, is_decimal)


def _digits(value: exp.Expr, type_of: TypeOf, *, is_average: bool) -> Digits | None:
    if isinstance(value, exp.Null):
        return Digits(0, 0)
    if isinstance(value, exp.Literal):
        return _digits_of_literal(value, is_average=is_average)
    if isinstance(value, exp.Cast):
        return None if is_average else _digits_of_type(_cast_type(value.to))
    found = type_of(value) if isinstance(value, exp.Column) else None
    if found is None or (is_average and found in _INTEGERS and found not in _AVERAGED):
        return None
    return _digits_of_type(found)


def _digits_of_literal(value: exp.Literal, *, is_average: bool) -> Digits | None:
    if value.is_string or not _is_plain_number(value.name):
        return None
    whole, point, fraction = value.name.partition(".")
    if is_average and float(value.name) > _AVERAGED_LITERAL_MAX:
        return None
    return Digits(len(whole), len(fraction), bool(point))


def _digits_of_type(type_name: str) -> Digits | None:
    """The digits of numbers of a type.

    >>> _digits_of_type("decimal(12,2)"), _digits_of_type("int"), _digits_of_type("double")
    (Digits(whole=10, fraction=2, is_decimal=True), Digits(whole=10, fraction=0, is_decimal=False), None)
    """
    if type_name in _INTEGERS:
        return Digits(_INTEGERS[type_name], 0)
    found = _DECIMAL.fullmatch(type_name)
    return Digits(int(found[1]) - int(found[2]), int(found[2]), is_decimal=True) if found is not None else None


def _cast_type(found: exp.DataType) -> str:
    """The name of an integer or decimal type as Spark describes it: DECIMAL alone is of ten digits."""
    if found.this is not exp.DType.DECIMAL:
        return _INTEGER_CASTS.get(found.this, "")
    told = [one.name for one in found.expressions] or ["10"]
    precision, scale = (*told, "0")[:2]
    return f"decimal({precision},{scale})"


def _is_plain_number(text: str) -> bool:
    """True for the text of an integer or a decimal. With an exponent or a suffix it is another number.

    >>> [_is_plain_number(text) for text in ("12", "1.5", "1e3", "2.0D")]
    [True, True, False, False]
    """
    return text.replace(".", "", 1).isdecimal()
