"""Literals of a statement, read as values of a column's type."""

from __future__ import annotations

import re

from sqlglot import exp

from rewriter.domains.literals import UnreadableKeyError, integers_of

_DIGITS = re.compile(r"[0-9]{1,20}")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_DECIMAL_TYPE = re.compile(r"decimal\((\d+),(\d+)\)")
_INTEGER_TYPES = {
    exp.DType.TINYINT: "tinyint",
    exp.DType.SMALLINT: "smallint",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "bigint",
}
# sqlglot reads `int(7)`, which may be a function of the user's own, as exp.Cast.
_CASTS: tuple[type[exp.Expr], ...] = (exp.TryCast,)
# Digits of the decimals as which Spark compares integers: IN takes so many for any value, `=` by a setting.
_DIGITS_OF_INTEGERS = {"int": 10, "bigint": 20}
_DECIMAL_DIGITS_MAX = 38


def integer_of(node: exp.Expr) -> int:
    """An integer as it is written: 7, -7 or 7L, which sqlglot takes for a cast of 7. Raises UnreadableKeyError."""
    sign = -1 if isinstance(node, exp.Neg) else 1
    node = node.this if isinstance(node, exp.Neg) else node
    type_name, written = "bigint", node
    if isinstance(node, exp.Cast) and isinstance(node, _CASTS):
        type_name, written = _INTEGER_TYPES.get(node.to.this, ""), node.this
    if isinstance(written, exp.Literal) and not written.is_string and _DIGITS.fullmatch(written.name):
        value, held = int(written.name), integers_of(type_name)
        if held is not None and value in held:
            return sign * value
    raise UnreadableKeyError("no integer literal")


def decimal_of(node: exp.Expr, type_name: str) -> str:
    """A decimal literal that Spark compares in the column's own type: it could round in a wider one.

    Raises UnreadableKeyError.
    """
    sign = "-" if isinstance(node, exp.Neg) else ""
    node = node.this if sign else node
    held, written = _DECIMAL_TYPE.fullmatch(type_name), None
    if isinstance(node, exp.Literal) and not node.is_string:
        written = _NUMBER.fullmatch(node.name)
    if held is None or written is None:
        raise UnreadableKeyError("no decimal literal")
    whole, _, fraction = written[0].partition(".")
    precision, scale = map(int, held.groups())
    if len(whole) > precision - scale or len(fraction) > scale:
        raise UnreadableKeyError("a decimal literal that is wider than its column")
    if not fraction and _digits_of_integer(int(sign + whole)) + scale > _DECIMAL_DIGITS_MAX:
        # With 30 places, `c IN (5)` holds of 5.000000000000000000000000000001: Spark rounds it to 28.
        raise UnreadableKeyError("an integer for which Spark rounds the column")
    return sign + written[0]


def _digits_of_integer(value: int) -> int:
    for type_name, digits in _DIGITS_OF_INTEGERS.items():
        if value in (integers_of(type_name) or ()):
            return digits
    return len(str(value))


def is_date_literal(node: exp.Expr) -> bool:
    """True for DATE'2026-01-01', which reads as the call date('2026-01-01') does."""
    is_date = isinstance(node, exp.Cast) and node.to.this is exp.DType.DATE and not node.args.get("format")
    return is_date and isinstance(node.this, exp.Literal) and node.this.is_string
