"""Filters on partition columns, read from SQL text: what stands behind WHERE in EXPLAIN PARTITIONS.

A condition that is not read is refused with a sentence. NOT is carried down to the comparisons, each of which has
an opposite; there a null makes neither true:

>>> from rewriter.partitions.key_encoding import PartitionKeys
>>> read_filter("NOT (y = 2020 OR m > 6)", PartitionKeys(("y", "m"), ("int", "int"))).terms
(Compare(column='y', operator=<Operator.NOT_EQUAL: '!='>, value=2020), Compare(column='m', operator=<Operator.AT_MOST: '<='>, value=6))
"""  # noqa: E501 - one line of output

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sqlglot import exp
from sqlglot.errors import SqlglotError

from rewriter.domains.literals import Key, UnreadableKeyError, integers_of
from rewriter.domains.written_literals import decimal_of, integer_of, is_date_literal
from rewriter.partitions.filter_tree import And, Compare, In, IsNull, Like, Operator, Or, PartitionFilter
from rewriter.partitions.key_encoding import PartitionKeys
from rewriter.partitions.value_encoding import NotIndexableError
from rewriter.sql.bounded_parser import parsed_into
from rewriter.sql.classify import depends_on_quoting

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,20}")
# The parts of a condition that are read. A condition with any other part, such as an IN's query, is refused.
_READ: Final = frozenset({"this", "expression", "expressions", "low", "high", "negate"})
_EVERYTHING: Final = And(())
_NOTHING: Final = Or(())
_OPERATORS: Final[dict[type[exp.Expr], Operator]] = {
    exp.EQ: Operator.EQUAL,
    exp.NEQ: Operator.NOT_EQUAL,
    exp.LT: Operator.LESS,
    exp.LTE: Operator.AT_MOST,
    exp.GT: Operator.GREATER,
    exp.GTE: Operator.AT_LEAST,
}
_NEGATED: Final = {
    Operator.EQUAL: Operator.NOT_EQUAL,
    Operator.NOT_EQUAL: Operator.EQUAL,
    Operator.LESS: Operator.AT_LEAST,
    Operator.AT_MOST: Operator.GREATER,
    Operator.GREATER: Operator.AT_MOST,
    Operator.AT_LEAST: Operator.LESS,
}
# `5 < y` is `y > 5`.
_MIRRORED: Final = {
    Operator.LESS: Operator.GREATER,
    Operator.AT_MOST: Operator.AT_LEAST,
    Operator.GREATER: Operator.LESS,
    Operator.AT_LEAST: Operator.AT_MOST,
}


class FilterError(ValueError):
    """A text that cannot be read as a filter on partition columns; the message is a sentence for the user."""


def read_filter(text: str, keys: PartitionKeys) -> PartitionFilter:
    """The filter that a text means on these columns. Raises FilterError."""
    if depends_on_quoting(text):
        raise FilterError("A double quote or a backslash means another thing under other settings: write none.")
    try:
        condition = parsed_into(exp.Condition, text)
        if condition is None:
            raise FilterError("The filter is empty.")
        return _Reader(keys).read(condition, negated=False)
    except RecursionError:
        raise FilterError("The filter is nested too deeply.") from None
    except NotIndexableError as error:
        raise FilterError(f"The filter cannot be answered by ranges: {error}.") from None
    except (SqlglotError, ValueError, LookupError, TypeError, AttributeError) as error:
        if isinstance(error, FilterError):
            raise
        raise FilterError("The filter is not understood as a condition of Spark SQL.") from None


@dataclass(frozen=True)
class _Reader:
    keys: PartitionKeys

    def read(self, node: exp.Expr, *, negated: bool) -> PartitionFilter:
        """The filter that is true where the condition is true or, if negated, where it is false."""
        node = node.unnest()
        if isinstance(node, exp.Not):
            return self.read(node.this, negated=not negated)
        if isinstance(node, exp.And | exp.Or):
            terms = tuple(self.read(term, negated=negated) for term in node.flatten())
            return And(terms) if isinstance(node, exp.And) is not negated else Or(terms)
        if isinstance(node, exp.Boolean):
            return _EVERYTHING if bool(node.this) is not negated else _NOTHING
        if isinstance(node, exp.Null):
            return _NOTHING
        return self._condition(node, negated=negated)

    def _condition(self, node: exp.Expr, *, negated: bool) -> PartitionFilter:
        if any(value for name, value in node.args.items() if name not in _READ):
            raise _refused(node)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return IsNull(self._column(node.this), negated)
        if isinstance(node, exp.In) and node.expressions:
            return self._in(node, negated=negated)
        if isinstance(node, exp.Between):
            column = self._column(node.this)
            low = self._compare(column, Operator.AT_LEAST, node.args["low"], negated=negated)
            high = self._compare(column, Operator.AT_MOST, node.args["high"], negated=negated)
            return Or((low, high)) if negated else And((low, high))
        if isinstance(node, exp.Like):
            return self._like(node, "\\", negated=negated)
        if isinstance(node, exp.Escape) and isinstance(node.this, exp.Like):
            return self._like(node.this, _text(node.expression), negated=negated)
        if isinstance(node, exp.NullSafeEQ) or type(node) in _OPERATORS:
            return self._comparison(node, negated=negated)
        raise _refused(node)

    def _comparison(self, node: exp.Expr, *, negated: bool) -> PartitionFilter:
        left, right = node.this.unnest(), node.expression.unnest()
        operator = _OPERATORS.get(type(node), Operator.EQUAL)
        if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
            left, right, operator = right, left, _MIRRORED.get(operator, operator)
        column = self._column(left)
        if not isinstance(node, exp.NullSafeEQ):
            return self._compare(column, operator, right, negated=negated)
        if isinstance(right, exp.Null):
            return IsNull(column, negated)
        compared = self._compare(column, operator, right, negated=negated)
        return Or((IsNull(column), compared)) if negated else compared

    def _compare(self, column: str, operator: Operator, right: exp.Expr, *, negated: bool) -> Compare:
        return Compare(column, _NEGATED[operator] if negated else operator, self._value(column, right))

    def _in(self, node: exp.In, *, negated: bool) -> PartitionFilter:
        column = self._column(node.this)
        values = tuple(self._value(column, value) for value in node.expressions)
        if not negated:
            return In(column, values)
        # NOT IN of a list with a null in it is never true.
        return And(tuple(Compare(column, Operator.NOT_EQUAL, value) for value in values))

    def _like(self, node: exp.Like, escape: str, *, negated: bool) -> PartitionFilter:
        column = self._column(node.this)
        type_name = self.keys.type_names[self.keys.position(column)]
        if type_name != "string":
            raise FilterError(f"{column} is of type {type_name}: LIKE is for texts.")
        if isinstance(node.expression, exp.Null):
            return _NOTHING
        # `NOT LIKE` is one node; `NOT x LIKE` is two.
        return Like(column, _text(node.expression), escape, negated is not bool(node.args.get("negate")))

    def _column(self, node: exp.Expr) -> str:
        node = node.unnest()
        if not isinstance(node, exp.Column):
            raise _refused(node)
        if len(node.parts) > 1:
            raise FilterError(f"Write {node.name} without the name of the table.")
        try:
            return self.keys.columns[self.keys.position(node.name)]
        except NotIndexableError:
            columns = ", ".join(self.keys.columns)
            raise FilterError(f"{node.name} is not a partition column; the columns are {columns}.") from None

    def _value(self, column: str, node: exp.Expr) -> Key | None:
        """The value that Spark compares the column with, where it leaves the column as it is."""
        position = self.keys.position(column)
        type_name, node = self.keys.type_names[position], node.unnest()
        if isinstance(node, exp.Null):
            return None
        try:
            value = _value_of(type_name, node)
            _ = self.keys.encode_field(position, value)
        except (UnreadableKeyError, NotIndexableError):
            written = node.sql(dialect="spark")
            raise FilterError(
                f"{column} is of type {type_name}: {written} is not certainly a value of it."
            ) from None
        return value


def _value_of(type_name: str, node: exp.Expr) -> Key:
    """A literal as a value of the type: Spark casts a text to the type of a column that is none."""
    if isinstance(node, exp.Literal) and node.is_string:
        text = str(node.this)
        if type_name in {"string", "date"}:
            return text
        if integers_of(type_name) is not None and _INTEGER.fullmatch(text):
            return int(text)
    elif integers_of(type_name) is not None:
        return integer_of(node)
    elif type_name == "date" and is_date_literal(node):
        return str(node.this.this)
    elif type_name == "boolean" and isinstance(node, exp.Boolean):
        return bool(node.this)
    elif type_name.startswith("decimal"):
        return decimal_of(node, type_name)
    raise UnreadableKeyError(f"no literal that is a {type_name} for certain")


def _text(node: exp.Expr) -> str:
    node = node.unnest()
    if not isinstance(node, exp.Literal) or not node.is_string:
        raise _refused(node)
    return str(node.this)


def _refused(node: exp.Expr) -> FilterError:
    return FilterError(f"{node.sql(dialect='spark')} is no comparison of a partition column with a literal.")


def filter_sql(node: PartitionFilter) -> str:
    """A filter as SQL, for people to read.

    >>> filter_sql(Or((Compare("y", Operator.LESS, 2020), And((IsNull("m", negated=True), Like("s", "a%"))))))
    "y < 2020 OR (m IS NOT NULL AND s LIKE 'a%')"
    """
    if isinstance(node, And | Or):
        word, empty = (" AND ", "TRUE") if isinstance(node, And) else (" OR ", "FALSE")
        return word.join(_as_term(term) for term in node.terms) or empty
    if isinstance(node, IsNull):
        return f"{node.column} IS {'NOT ' if node.negated else ''}NULL"
    if isinstance(node, In):
        return f"{node.column} IN ({', '.join(map(shown, node.values))})" if node.values else "FALSE"
    if isinstance(node, Like):
        escape = "" if node.escape == "\\" else f" ESCAPE {shown(node.escape)}"
        return f"{node.column} {'NOT ' if node.negated else ''}LIKE {shown(node.pattern)}{escape}"
    return f"{node.column} {node.operator.value} {shown(node.value)}"


def _as_term(term: PartitionFilter) -> str:
    is_list = isinstance(term, And | Or) and len(term.terms) > 1
    return f"({filter_sql(term)})" if is_list else filter_sql(term)


def shown(value: Key | None) -> str:
    """A value for people to read: dates and decimals are texts."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return f"'{value}'" if isinstance(value, str) else str(value)
