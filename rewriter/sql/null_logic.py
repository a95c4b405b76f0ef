"""Three-valued logic over columns that are all null: what a condition can be for a row that a join padded.

An outer join pads the columns of one side with nulls. `YEAR(d.day) = 2024` is null for such a row, and
`coalesce(d.is_holiday, FALSE)` is false: neither lets it pass. The answers are sets of values that are certain to
hold the condition's own, so that an expression which is not understood may have any value.

A column is given as null or as unknown by the caller:

>>> from rewriter.sql.statement import parse_tree
>>> def passes(condition):
...     term = parse_tree(f"SELECT 1 WHERE {condition}").args["where"].this
...     return not is_never_true(term, lambda column: column.table == "d")
>>> [passes(condition) for condition in ("year(d.day) = 2024", "d.month = '1' OR d.month = f.month")]
[False, False]
>>> [passes(condition) for condition in ("coalesce(d.month, '1') = '1'", "d.month = '1' OR f.month = '1'")]
[True, True]
>>> [passes(condition) for condition in ("NOT d.is_open", "d.is_open IS NOT TRUE", "NOT d.month <=> '1'")]
[False, True, True]

A choice between literals is told by the literals that it can give, as Looker writes it for a truth value:

>>> passes("CASE WHEN d.is_open THEN 'Yes' ELSE 'No' END = 'Yes'")
False
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from enum import Flag, auto
from typing import TypeAlias

from sqlglot import exp


class Possible(Flag):
    """The values that an expression can have; one that is neither null nor a truth value counts as both truths."""

    NULL = auto()
    FALSE = auto()
    TRUE = auto()


_NULL, _FALSE, _TRUE = Possible.NULL, Possible.FALSE, Possible.TRUE
_NOT_NULL = _FALSE | _TRUE
_ANY = _NULL | _NOT_NULL
_NOTHING = Possible(0)

# Tells a column that is certain to be null.
IsNull: TypeAlias = Callable[[exp.Column], bool]

# Expressions inside one another. The limit bounds the recursion.
_NESTING_MAX = 60

# Expressions that are null if one of the named operands is. Source: the expressions of Spark 4.x that are
# NullIntolerant, or whose `nullSafeEval` is all that they evaluate (stringExpressions.scala,
# datetimeExpressions.scala, mathExpressions.scala, regexpExpressions.scala); a test asks Spark about each function
# and operand. Names are those of sqlglot's nodes. Left out on purpose: concat_ws, greatest, least, hash, struct,
# array, typeof, format_string, elt, the position of locate, and all aggregates.
NULL_PROPAGATING: dict[type[exp.Expr], tuple[str, ...]] = {
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod), ("this", "expression")),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.DPipe), ("this", "expression")),
    **dict.fromkeys((exp.Neg, exp.BitwiseNot, exp.Cast, exp.TryCast, exp.Collate), ("this",)),
    # Strings.
    **dict.fromkeys((exp.Lower, exp.Upper, exp.Length, exp.Initcap, exp.Reverse), ("this",)),
    **dict.fromkeys(
        (exp.Trim, exp.Left, exp.Right, exp.Contains, exp.StartsWith, exp.EndsWith), ("this", "expression")
    ),
    exp.Concat: ("expressions",),
    exp.Substring: ("this", "start", "length"),
    exp.Replace: ("this", "expression", "replacement"),
    exp.Pad: ("this", "expression", "fill_pattern"),
    exp.StrPosition: ("this", "substr"),
    exp.SplitPart: ("this", "delimiter", "part_index"),
    exp.RegexpExtract: ("this", "expression"),
    exp.RegexpReplace: ("this", "expression", "replacement"),
    # Numbers.
    **dict.fromkeys((exp.Abs, exp.Round, exp.Floor, exp.Ceil, exp.Sqrt, exp.Sign), ("this",)),
    exp.Pow: ("this", "expression"),
    # Dates.
    **dict.fromkeys((exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfMonth, exp.DayOfWeek), ("this",)),
    **dict.fromkeys((exp.DayOfYear, exp.WeekOfYear, exp.Hour, exp.Minute, exp.Second, exp.LastDay), ("this",)),
    **dict.fromkeys((exp.DateTrunc, exp.TimestampTrunc, exp.TsOrDsToDate, exp.TimeStrToTime), ("this",)),
    **dict.fromkeys((exp.TimeToStr, exp.StrToTime), ("this",)),
    **dict.fromkeys((exp.TsOrDsAdd, exp.DateDiff, exp.AddMonths, exp.MonthsBetween), ("this", "expression")),
    exp.Extract: ("expression",),
    # Tests, of which each operand counts as its text is written.
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), ("this", "expression")),
    **dict.fromkeys((exp.Like, exp.ILike, exp.RegexpLike), ("this", "expression")),
}
# The same for functions that sqlglot has no node for: their names, and their operands by number.
NULL_PROPAGATING_NAMES = {"date_part": (1,), "make_date": (0, 1, 2), "pmod": (0, 1), "weekday": (0,)}

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_PREDICATES = (*_COMPARISONS, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike)
# Spark and sqlglot may read a comparison of these from different ends: `a <=> b LIKE 'x'`.
_TRUTHS = (*_PREDICATES, exp.Connector, exp.Not, exp.Escape)
_NULL_TESTS = {"isnull": (_TRUE, _FALSE), "isnotnull": (_FALSE, _TRUE)}


def is_never_true(condition: exp.Expr, is_null: IsNull) -> bool:
    """True if the condition lets no row pass in which these columns are null."""
    return _TRUE not in possible_values(condition, is_null)


def is_always_null(expression: exp.Expr, is_null: IsNull) -> bool:
    """True if the expression is null in every row in which these columns are null."""
    return possible_values(expression, is_null) is _NULL


def possible_values(expression: exp.Expr, is_null: IsNull, nesting: int = 0) -> Possible:
    """The values that an expression can have where these columns are null; never too few."""
    node = expression.unnest()
    if nesting > _NESTING_MAX:
        return _ANY
    if isinstance(node, exp.Column):
        return _NULL if is_null(node) else _ANY
    if isinstance(node, exp.Null | exp.Boolean | exp.Literal):
        return _constant(node)
    rule = _RULES.get(type(node))
    if rule is not None:
        return rule(node, lambda operand: possible_values(operand, is_null, nesting + 1))
    is_null_of_one = any(
        possible_values(operand, is_null, nesting + 1) is _NULL for operand in _propagating_operands(node)
    )
    return _NULL if is_null_of_one else _ANY


def _constant(node: exp.Expr) -> Possible:
    if isinstance(node, exp.Boolean):
        return _TRUE if node.this else _FALSE
    return _NULL if isinstance(node, exp.Null) else _NOT_NULL


def _propagating_operands(node: exp.Expr) -> Iterator[exp.Expr]:
    """The operands of an expression that make it null."""
    if isinstance(node, _PREDICATES) and any(isinstance(o.unnest(), _TRUTHS) for o in node.iter_expressions()):
        return
    if isinstance(node, exp.Anonymous):
        numbers = NULL_PROPAGATING_NAMES.get(node.name.lower(), ())
        yield from (node.expressions[number] for number in numbers if number < len(node.expressions))
    for name in NULL_PROPAGATING.get(type(node), ()):
        operand = node.args.get(name)
        for part in operand if isinstance(operand, list) else [operand]:
            # The patterns of LIKE ANY and LIKE ALL are no operand that makes it null.
            if isinstance(part, exp.Expr) and not isinstance(part, exp.Any | exp.All):
                yield part


_Evaluate: TypeAlias = Callable[[exp.Expr], Possible]


def _and(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    return _connected(node, exp.And, evaluate, _FALSE, _TRUE)


def _or(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    return _connected(node, exp.Or, evaluate, _TRUE, _FALSE)


def _connected(
    node: exp.Expr, kind: type[exp.Expr], evaluate: _Evaluate, deciding: Possible, neutral: Possible
) -> Possible:
    """AND is false if a term is, else null if a term is, else true; OR is true if a term is, and so on."""
    found = neutral
    pending = [node]
    while pending:
        term = pending.pop().unnest()
        if isinstance(term, kind):
            pending += [term.args["expression"], term.this]
            continue
        values = evaluate(term)
        decided = deciding & (found | values)
        null = (
            _NULL
            if (_NULL in found and values & ~deciding) or (_NULL in values and found & ~deciding)
            else _NOTHING
        )
        found = decided | null | (neutral & found & values)
        if found is deciding:
            break
    return found


def _not(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    values = evaluate(node.this)
    opposite = (_TRUE if _FALSE in values else _NOTHING) | (_FALSE if _TRUE in values else _NOTHING)
    return opposite | values & _NULL


def _is(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    values, asked = evaluate(node.this), node.args["expression"]
    if isinstance(asked, exp.Null):
        wanted = _NULL
    elif isinstance(asked, exp.Boolean):
        wanted = _TRUE if asked.this else _FALSE
    else:
        return _NOT_NULL
    return _test(values, wanted)


def _test(values: Possible, wanted: Possible) -> Possible:
    """A test that is never null: true for the values that are wanted."""
    return (_TRUE if values & wanted else _NOTHING) | (_FALSE if values & ~wanted else _NOTHING)


def _null_safe(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    """`a <=> b` is never null: true if both are null, false if just one is."""
    sides = (node.this, node.args["expression"])
    if any(isinstance(side.unnest(), _TRUTHS) for side in sides):
        return _NOT_NULL
    one, other = map(evaluate, sides)
    may_be_equal = bool(one & other)
    may_differ = not (one is other is _NULL)
    return (_TRUE if may_be_equal else _NOTHING) | (_FALSE if may_differ else _NOTHING)


def _null_unsafe(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    return _opposite(_null_safe(node, evaluate))


def _opposite(values: Possible) -> Possible:
    return _test(values, _FALSE)


def _in(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    members = node.expressions
    if isinstance(node.this.unnest(), (*_TRUTHS, exp.Tuple)):
        return _ANY
    is_null = evaluate(node.this) is _NULL
    if node.args.get("query") is not None:
        # A subquery without rows holds nothing: then IN is false.
        return _NULL | _FALSE if is_null else _ANY
    are_null = bool(members) and all(evaluate(member) is _NULL for member in members)
    if members and (is_null or are_null):
        return _NULL
    value = node.this.unnest()
    is_in_none = bool(members) and all(_holds_for_all(value, m.unnest(), _differ, evaluate) for m in members)
    return _NULL | _FALSE if is_in_none else _ANY


def _between(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    """`x BETWEEN a AND b` is `x >= a AND x <= b`: false or null where a bound is null."""
    operands = (node.this, node.args["low"], node.args["high"])
    if any(isinstance(operand.unnest(), _TRUTHS) for operand in operands):
        return _ANY
    value, *bounds = (evaluate(operand) is _NULL for operand in operands)
    if value or all(bounds):
        return _NULL
    return _NULL | _FALSE if any(bounds) else _ANY


def _choice(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    """CASE and IF: the result of the first branch whose condition is true; null if there is none and no ELSE."""
    return _any_of(_results(_branches(node, evaluate), _default(node)), evaluate)


def _branches(node: exp.Expr, evaluate: _Evaluate) -> Iterator[tuple[Possible, exp.Expr]]:
    """The conditions and results of a CASE or an IF."""
    if isinstance(node, exp.If):
        yield evaluate(node.this), node.args["true"]
        return
    is_null = node.this is not None and evaluate(node.this) is _NULL
    for branch in node.args["ifs"]:
        values = evaluate(branch.this)
        if node.this is not None:
            values = _NULL if is_null or values is _NULL else _ANY
        yield values, branch.args["true"]


def _default(node: exp.Expr) -> exp.Expr | None:
    default = node.args.get("false" if isinstance(node, exp.If) else "default")
    return default if isinstance(default, exp.Expr) else None


def _results(branches: Iterable[tuple[Possible, exp.Expr]], default: exp.Expr | None) -> Iterator[exp.Expr | None]:
    """The results that can be the first one whose condition is true. None stands for no ELSE."""
    for condition, result in branches:
        if _TRUE in condition:
            yield result
        if condition is _TRUE:
            return
    yield default


def _any_of(results: Iterable[exp.Expr | None], evaluate: _Evaluate) -> Possible:
    found = _NOTHING
    for result in results:
        found |= evaluate(result) if result is not None else _NULL
    return found


def _equal(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    """`a = b`, and `a <> b`: of literals, and of choices between literals, it is known which ones are equal."""
    sides = (node.this.unnest(), node.args["expression"].unnest())
    if any(isinstance(side, _TRUTHS) for side in sides):
        return _ANY
    one, other = map(evaluate, sides)
    if _NULL in {one, other}:
        return _NULL
    is_never = _are_equal if isinstance(node, exp.NEQ) else _differ
    return _NULL | _FALSE if _holds_for_all(*sides, is_never, evaluate) else _ANY


def _holds_for_all(
    one: exp.Expr, other: exp.Expr, test: Callable[[exp.Expr, exp.Expr], bool], evaluate: _Evaluate
) -> bool:
    """True if a test holds for all literals that two expressions can be. False where these are not certain."""
    ones, others = _literals(one, evaluate), _literals(other, evaluate)
    return ones is not None and others is not None and all(test(a, b) for a in ones for b in others)


def _literals(node: exp.Expr, evaluate: _Evaluate) -> list[exp.Expr] | None:
    """The literals that a literal, or a CASE or IF between literals of one type, can be; None for any other."""
    if isinstance(node, exp.Literal):
        return [node]
    if not isinstance(node, exp.Case | exp.If):
        return None
    branches = list(_branches(node, evaluate))
    every = [result.unnest() for result in (*(result for _, result in branches), _default(node)) if result]
    # Spark makes one type of several, and in it other literals may be equal.
    written = [result for result in every if not isinstance(result, exp.Null)]
    if not all(isinstance(result, exp.Literal) for result in written):
        return None
    if not (all(result.args["is_string"] for result in written) or all(map(_is_whole_number, written))):
        return None
    results = (result.unnest() for result in _results(branches, _default(node)) if result is not None)
    return [result for result in results if not isinstance(result, exp.Null)]


def _is_whole_number(literal: exp.Expr) -> bool:
    return not literal.args["is_string"] and literal.name.isdecimal()


def _differ(one: exp.Expr, other: exp.Expr) -> bool:
    """True if two literals are unequal for certain, in every collation."""
    texts = (one.name, other.name)
    if all(map(_is_whole_number, (one, other))):
        return int(texts[0]) != int(texts[1])
    return _are_plain_strings(one, other) and texts[0].strip().lower() != texts[1].strip().lower()


def _are_equal(one: exp.Expr, other: exp.Expr) -> bool:
    """True if two literals are equal for certain."""
    if all(map(_is_whole_number, (one, other))):
        return int(one.name) == int(other.name)
    return _are_plain_strings(one, other) and one.name == other.name


def _are_plain_strings(one: exp.Expr, other: exp.Expr) -> bool:
    """True for strings of which collations ignore no more than the case, and spaces around."""
    return all(literal.args["is_string"] and _PLAIN_STRING.fullmatch(literal.name) for literal in (one, other))


_PLAIN_STRING = re.compile(r"[\w .,:/+-]*", re.ASCII)


def _coalesce(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    found = _NOTHING
    for operand in (node.this, *node.expressions):
        values = evaluate(operand)
        found |= values & _NOT_NULL
        if _NULL not in values:
            return found
    return found | _NULL


def _nvl2(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    condition = _test(evaluate(node.this), _NOT_NULL)
    return _any_of(_results([(condition, node.args["true"])], node.args.get("false")), evaluate)


def _nullif(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    return evaluate(node.this) | _NULL


def _escape(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    return evaluate(node.this)


def _call(node: exp.Expr, evaluate: _Evaluate) -> Possible:
    """A function that sqlglot has no node for."""
    if node.name.lower() in _NULL_TESTS and len(node.expressions) == 1:
        of_null, of_other = _NULL_TESTS[node.name.lower()]
        values = evaluate(node.expressions[0])
        return (of_null if _NULL in values else _NOTHING) | (of_other if values & _NOT_NULL else _NOTHING)
    is_null = any(evaluate(operand) is _NULL for operand in _propagating_operands(node))
    return _NULL if is_null else _ANY


_RULES: dict[type[exp.Expr], Callable[[exp.Expr, _Evaluate], Possible]] = {
    exp.And: _and,
    exp.Or: _or,
    exp.Not: _not,
    exp.Is: _is,
    exp.NullSafeEQ: _null_safe,
    exp.NullSafeNEQ: _null_unsafe,
    exp.In: _in,
    exp.Between: _between,
    exp.EQ: _equal,
    exp.NEQ: _equal,
    exp.Case: _choice,
    exp.If: _choice,
    exp.Coalesce: _coalesce,
    exp.Nvl2: _nvl2,
    exp.Nullif: _nullif,
    exp.Escape: _escape,
    exp.Anonymous: _call,
}
