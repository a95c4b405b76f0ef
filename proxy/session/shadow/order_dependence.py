"""Parts of a statement by which its answer depends on the order in which Spark reads rows, or on chance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import Token, TokenType
from sqlglot.errors import SqlglotError

from rewriter.sql.bounded_parser import tokenize

# The outermost LIMIT and OFFSET, with plain numbers: what may stand between the end of a query and its semicolons.
_BOUNDS: Final = (
    (TokenType.LIMIT, TokenType.NUMBER, TokenType.OFFSET, TokenType.NUMBER),
    (TokenType.LIMIT, TokenType.NUMBER),
    (TokenType.OFFSET, TokenType.NUMBER),
)

# Functions that choose among rows by their order or by chance, or that only approximate, and so differ where rows
# are read in other groups. Source: Spark 4.x's FunctionRegistry.scala. User functions could be any of these.
_FUNCTIONS: Final = frozenset(
    """
    any_value array_agg approx_percentile collect_list collect_set first first_value lag last
    last_value lead listagg max_by min_by mode monotonically_increasing_id nth_value ntile
    percentile_approx rand randn random randstr reflect row_number shuffle spark_partition_id string_agg
    try_reflect uniform uuid input_file_name input_file_block_start java_method histogram_numeric
    """.split()
)
_SKETCHES: Final = ("approx_top_k", "count_min_sketch", "kll_", "theta_", "hll_")
_CALL: Final = re.compile(r"(?<!\w)(\w++)\s*+\(")
# Words of any Spark SQL text, words of plans, and the names that plans give to user functions.
_CHOSEN: Final = re.compile(
    r"\b(?:LIMIT|OFFSET|TABLESAMPLE|TRANSFORM)\b|(?-i:\b(?:GlobalLimit|LocalLimit|Sample|ScriptTransformation)\b)"
    # A frame of rows holds the first of several rows with equal sort keys.
    r"|\bROWS\s+(?:BETWEEN|UNBOUNDED|CURRENT|\d)|(?-i:\bRowFrame\b)"
    # A group shows the first of several texts that are equal under a collation.
    r"|\bcollate\b"
    r"|\b\w*UD[AT]?F\w*\b",
    re.IGNORECASE,
)
_FLOATS: Final = re.compile(r"\b(?:double|float|real)\b", re.IGNORECASE)
_ROUNDS: Final = re.compile(
    r"\b(?:b?round|floor|ceil|ceiling|trunc|truncate|format_number)\s*\(|\bas decimal\b", re.IGNORECASE
)


def unbounded(text: str) -> tuple[str, str] | None:
    """A query without its outermost LIMIT and OFFSET, and what was cut off behind it, semicolons included.

    Which of several rows with equal sort keys a LIMIT lets through depends on the order in which they are read,
    so only what it chooses from can be compared. None where the text cannot be read.

    >>> unbounded("SELECT a FROM t ORDER BY b LIMIT 10; -- the top")
    ('SELECT a FROM t ORDER BY b ', 'LIMIT 10; -- the top')
    """
    try:
        tokens = tokenize(text)
    except SqlglotError:
        return None
    kept = len(tokens)
    while kept and tokens[kept - 1].token_type is TokenType.SEMICOLON:
        kept -= 1
    kept -= _bounds_at_the_end(tokens[:kept])
    end = tokens[kept].start if kept < len(tokens) else len(text)
    return text[:end], text[end:]


def _bounds_at_the_end(tokens: Sequence[Token]) -> int:
    """The number of tokens of the outermost LIMIT and OFFSET: an inner one has a parenthesis behind it."""
    kinds = tuple(token.token_type for token in tokens[-len(_BOUNDS[0]) :])
    return next((len(bounds) for bounds in _BOUNDS if kinds[-len(bounds) :] == bounds), 0)


@dataclass(frozen=True)
class OrderDoubts:
    """Reasons why two stable answers may differ although both are right."""

    # Rows are chosen by their order or by chance, so anything may differ.
    chosen: bool
    # Floating-point numbers are read or made, whose sums depend on the order of the rows in their last digits.
    floats: bool
    # Something is rounded, so that a last digit can become a large step.
    rounds: bool


def doubts(text: str, plan: str) -> OrderDoubts:
    """The doubts that a statement's text, and its plan by EXPLAIN EXTENDED, give reason for.

    The plan knows what stands in views and which types are read, but leaves out what is long: so both are looked
    at. Words in strings and names count too, which only keeps a difference from being blamed on anybody.
    """
    told = f"{text}\n{plan}"
    return OrderDoubts(
        chosen=_CHOSEN.search(told) is not None or any(_chooses(call[1].lower()) for call in _CALL.finditer(told)),
        floats=_FLOATS.search(told) is not None,
        rounds=_ROUNDS.search(told) is not None,
    )


def _chooses(function: str) -> bool:
    return function in _FUNCTIONS or function.startswith(_SKETCHES)
