"""sqlglot's parser of Spark SQL, for texts that it reads in a time that grows with their length.

It reads some parts twice, and such parts within one another 4 times, 8 times, 16 times:

* A type's name before a parenthesis or a bracket, as in `date(a)`, as a type with arguments, and then as a call.
* All that stands behind OFFSET, since that may be an alias with columns.
* The joins behind one without a condition, as joins within it, as in `a JOIN b JOIN c ON .. ON ..`.

So thirty levels of `date(date(..` would take hours. The tokens tell how often before anything is parsed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.parsers.spark import SparkParser

_SPARK: Final = Spark()
# `x:a.b` reads fields of a variant. Set for the whole process: with `sqlglot[c]` the class is compiled, and has
# neither subclasses in Python nor settings of an instance.
SparkParser.COLON_IS_VARIANT_EXTRACT = True


# Tokens that may be read again, which takes a second or two. The 99 texts of TPC-DS together have 3,000.
TOKENS_READ_AGAIN_MAX: Final = 60_000
# Levels beyond which a single token would be too many.
_DOUBLINGS_MAX: Final = TOKENS_READ_AGAIN_MAX.bit_length()

_READ_TWICE: Final = _SPARK.parser_class.TYPE_TOKENS
_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})

_JOINS: Final = frozenset({TokenType.JOIN, TokenType.STRAIGHT_JOIN})
_WITHOUT_CONDITION: Final = frozenset({TokenType.CROSS, TokenType.NATURAL})
_CONDITIONS: Final = frozenset({TokenType.ON, TokenType.USING})
_BEHIND_JOINS: Final = frozenset(
    {
        *(TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING),
        *(TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.LIMIT),
        *(TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT),
    }
)


class ReadAgainError(ParseError):
    """Too much of the text would be read again and again."""


def tokenize(text: str) -> list[Token]:
    """The tokens of the text. Raises SqlglotError."""
    return _SPARK.tokenize(text)


def parsed(tokens: list[Token], text: str) -> list[exp.Expr | None]:
    """The trees of the statements in a text. Raises SqlglotError, and what sqlglot's functions raise beside it."""
    _check(tokens)
    return SparkParser(dialect=_SPARK).parse(tokens, text)


def parsed_into(kind: type[exp.Expr], text: str) -> exp.Expr | None:
    """The tree of a text that is a part of a statement. Raises as `parsed` does."""
    tokens = tokenize(text)
    _check(tokens)
    return SparkParser(dialect=_SPARK).parse_into(kind, tokens, text)[0]


def _check(tokens: Sequence[Token]) -> None:
    if tokens_read_again(tokens) > TOKENS_READ_AGAIN_MAX:
        raise ReadAgainError("it would be read again and again")


@dataclass
class _Level:
    """A pair of parentheses or brackets, or the whole text, and how often its content is read."""

    # Doublings by the word before it and by all levels around it; by joins without a condition; and by OFFSET.
    outer: int
    by_joins: int = 0
    by_offset: int = 0
    # True behind a join as long as it may get a condition.
    is_open: bool = False

    @property
    def doublings(self) -> int:
        """The number of times that the readings double."""
        return self.outer + self.by_joins + self.by_offset

    def pass_by(self, kind: TokenType, before: TokenType | None) -> None:
        """Note a token at this level."""
        if self.is_open and (kind in _JOINS or kind is TokenType.COMMA):
            self.by_joins += 1
            self.is_open = False
        if kind in _JOINS:
            self.is_open = before not in _WITHOUT_CONDITION
        elif kind in _CONDITIONS:
            self.is_open = False
        elif kind in _BEHIND_JOINS:
            self.by_joins, self.is_open = 0, False
        elif kind is TokenType.OFFSET:
            self.by_offset = 1


def tokens_read_again(tokens: Sequence[Token]) -> int:
    """The number of times that tokens are read after the first, or some number beyond what is accepted.

    >>> tokens_read_again(tokenize("f(a)")), tokens_read_again(tokenize("date(a)"))
    (0, 2)
    """
    found = 0
    levels = [_Level(0)]
    before: TokenType | None = None
    for token in tokens:
        kind, level = token.token_type, levels[-1]
        if kind in _OPENING:
            levels.append(_Level(level.doublings + (before in _READ_TWICE)))
        elif kind in _CLOSING and len(levels) > 1:
            _ = levels.pop()
        else:
            level.pass_by(kind, before)
        found += (1 << min(levels[-1].doublings, _DOUBLINGS_MAX)) - 1
        before = kind
    return found
