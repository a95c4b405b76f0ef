"""Tests whether the sums of a statement are the same in whatever order their values are added.

Sums of integers and decimals are. Floating-point numbers are rounded with each addition, so that the last digits
of a sum depend on the order, which is that of the tasks in which rows are read. Spark adds an average of integers
up as a floating-point number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

from sqlglot import TokenType, exp

from rewriter.sql.statement import Statement

# The types of a column of some name, in all tables that a statement reads.
TypesOf = Callable[[str], Iterable[str]]

# Aggregates that add up floating-point numbers whatever they are given.
_INEXACT = frozenset(
    """
    corr covar_pop covar_samp kurtosis mean skewness std stddev stddev_pop stddev_samp try_avg try_sum var_pop
    var_samp variance regr_avgx regr_avgy regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
    """.split()
)

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
# Their average is exact: so many rows that their sum passes 2^53, which a double holds, are in no table.
_AVERAGED = frozenset({"tinyint", "smallint"})
_EXACT_CASTS = frozenset(
    {exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.DECIMAL}
)

# Operands of these are exact where all their parts are. A quotient of integers is a floating-point number.
_KEEPING = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren, exp.Coalesce)


def are_sums_exact(statement: Statement, types_of: TypesOf) -> bool:
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

    def types(name: str) -> Iterable[str]:
        return () if name.lower() in named else types_of(name)

    return all(_is_exact(one, types) for one in found)


def _is_exact(aggregate: exp.AggFunc, types: TypesOf) -> bool:
    added = aggregate.this.expressions if isinstance(aggregate.this, exp.Distinct) else [aggregate.this]
    integers = _AVERAGED if isinstance(aggregate, exp.Avg) else _INTEGERS
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
        elif isinstance(value, _KEEPING):
            pending += value.iter_expressions()
        elif not _is_exact_value(value, integers, types):
            return False
    return bool(added)


def _is_exact_value(value: exp.Expr, integers: frozenset[str], types: TypesOf) -> bool:
    if isinstance(value, exp.Null):
        return True
    if isinstance(value, exp.Literal):
        return not value.is_string and _is_plain_number(value.name)
    if isinstance(value, exp.Cast):
        return integers is _INTEGERS and value.to.this in _EXACT_CASTS
    if not isinstance(value, exp.Column) or isinstance(value.this, exp.Star):
        return False
    found = list(types(value.name))
    if value.table and any(types(value.table)):
        # It may be a field of a struct.
        return False
    return bool(found) and all(one in integers or one.startswith("decimal") for one in found)


def _is_plain_number(text: str) -> bool:
    """True for the text of an integer or a decimal. With an exponent or a suffix it is another number.

    >>> [_is_plain_number(text) for text in ("12", "1.5", "1e3", "2.0D")]
    [True, True, False, False]
    """
    return text.replace(".", "", 1).isdecimal()
