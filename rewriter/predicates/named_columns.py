"""Other names for the columns of a predicate, for a place outside the table's own scan."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from sqlglot import TokenType

from rewriter.sql.bounded_parser import tokenize


def of_table(predicate: str, table: str) -> str:
    """A predicate with its columns named by their table.

    >>> of_table("(`k` IN (1) OR typeof(`k`) <> '`k`')", "t")
    "(t.`k` IN (1) OR typeof(t.`k`) <> '`k`')"
    """
    return of_expressions(predicate, lambda column: f"{table}.{column}")


def of_expressions(predicate: str, expression_of: Callable[[str], str]) -> str:
    """A predicate with another expression for each of its columns, given as they are written in it.

    >>> of_expressions("(`k` IN (1) OR `l` = '`k`')", {"`k`": "(s.k + 1)", "`l`": "(s.l)"}.__getitem__)
    "((s.k + 1) IN (1) OR (s.l) = '`k`')"
    """
    pieces, copied = [], 0
    for before, token in pairwise([None, *tokenize(predicate)]):
        is_name = token is not None and token.token_type is TokenType.IDENTIFIER
        if token is not None and is_name and (before is None or before.token_type is not TokenType.DOT):
            pieces += [predicate[copied : token.start], expression_of(predicate[token.start : token.end + 1])]
            copied = token.end + 1
    return "".join([*pieces, predicate[copied:]])
