"""Tests whether the sums of a statement are the same in whatever order their values are added.

Sums of integers and decimals are. Floating-point numbers are rounded with each addition, so that the last digits
of a sum depend on the order, which is that of the tasks in which rows are read. Spark adds an average of integers
up as a floating-point number.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

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

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
# Their average is exact: so many rows that their sum passes 2^53, which a double holds, are in no table. This
# holds beside literals that are no larger, and not for products.
_AVERAGED = frozenset({"tinyint", "smallint"})
_AVERAGED_LITERAL_MAX = 10_000
_EXACT_CASTS = frozenset(
    {exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.DECIMAL}
)

# Operands of these are exact where all their parts are. A quotient of integers is a floating-point number.
_KEEPING = (exp.Neg, exp.Paren, exp.Coalesce)
_CALCULATING = (exp.Add, exp.Sub, exp.Mul)


def are_sums_exact(statement: Statement, type_of: TypeOf) -> bool:
    """True if no sum or average of the statement depends on the order in which rows are read."""
    tokens = statement.tokens
    called = [
        name.text.lower() for name, parenthesis in pairwise(tokens) if parenthesis.token_type is TokenType.L_PAREN
    ]
    if not _INEXACT.isdisjoint(called):
        return False
    found = list(statement.tree.find_all(exp.Sum, exp.Avg))
    if len(found) != called.count("sum") + called.count("avg"):
        return False
    # A column of a query has the name of its alias, and any type.
    named = {alias.alias.lower() for alias in statement.tree.find_all(exp.Alias)}
    named |= {name.name.lower() for alias in statement.tree.find_all(exp.TableAlias) for name in alias.columns}

    def known_type(column: exp.Column) -> str | None:
        return None if column.name.lower() in named else type_of(column)

    return all(_is_exact(one, known_type) for one in found)


def _is_exact(aggregate: exp.AggFunc, type_of: TypeOf) -> bool:
    added = aggregate.this.expressions if isinstance(aggregate.this, exp.Distinct) else [aggregate.this]
    is_average = isinstance(aggregate, exp.Avg)
    keeping = _KEEPING if is_average else (*_KEEPING, *_CALCULATING)
    pending: list[exp.Expr] = list(added)
    while pending:
        value = pending.pop()
        if isinstance(value, exp.Case):
            pending += [
                *(one.args["true"] for one in value.args["ifs"]),
                *filter(None, [value.args.get("default")]),
            ]
        elif isinstance(value, exp.If):
            pending += filter(None, [value.args["true"], value.args.get("false")])
        elif isinstance(value, keeping):
            pending += value.iter_expressions()
        elif not _is_exact_value(value, type_of, is_average=is_average):
            return False
    return bool(added)


def _is_exact_value(value: exp.Expr, type_of: TypeOf, *, is_average: bool) -> bool:
    if isinstance(value, exp.Null):
        return True
    if isinstance(value, exp.Literal):
        is_number = not value.is_string and _is_plain_number(value.name)
        return is_number and (not is_average or float(value.name) <= _AVERAGED_LITERAL_MAX)
    if isinstance(value, exp.Cast):
        return not is_average and value.to.this in _EXACT_CASTS
    found = type_of(value) if isinstance(value, exp.Column) else None
    return found is not None and (found in (_AVERAGED if is_average else _INTEGERS) or found.startswith("decimal"))


def _is_plain_number(text: str) -> bool:
    """True for the text of an integer or a decimal. With an exponent or a suffix it is another number.

    >>> [_is_plain_number(text) for text in ("12", "1.5", "1e3", "2.0D")]
    [True, True, False, False]
    """
    return text.replace(".", "", 1).isdecimal()
