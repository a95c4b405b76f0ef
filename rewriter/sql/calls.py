"""The functions that a text calls, by sqlglot's tree; where that shows none, by the words before a parenthesis.

Almost any word may be a function's name to Spark: `by(x)`, `union(x)` and `having(x)` are calls. sqlglot reads
most of them as calls too, and keeps the offset of the name. Where it reads a clause, the words around tell if
Spark may read a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from sqlglot import Token, TokenType, exp


class Call(NamedTuple):
    """A function's name in lower case, and the offset at which it begins."""

    start: int
    name: str
    has_arguments: bool
    # True if it is written without quotes, and neither a database nor a catalog before it.
    is_bare: bool
    # True for an item of a FROM, also behind LATERAL: Spark looks for its name among table functions.
    makes_table: bool


def calls_in(tokens: Sequence[Token], nodes: Iterable[exp.Expr]) -> Iterator[Call]:
    """The calls in a text, of which some words may be none. `nodes` are those of its tree."""
    # Offsets: sqlglot keeps none of a function that it reads in a way of its own, such as IF and MOD.
    functions, tables, names = set[int | None](), set[int | None](), set[int | None]()
    for node in nodes:
        if isinstance(node, exp.Func):
            functions.add(node.meta.get("start"))
        if isinstance(node, exp.Table | exp.Lateral | exp.TableAlias) and not node.args.get("view"):
            # LATERAL VIEW takes its functions from where conditions take theirs.
            item = node.this
            if isinstance(item, exp.Expr) and not isinstance(item, exp.Query):
                found = names if isinstance(item, exp.Identifier) else tables
                found.add(item.meta.get("start"))
    for at, (name, opening) in enumerate(pairwise(tokens)):
        if opening.token_type is not TokenType.L_PAREN or name.start in names:
            continue
        before = tokens[at - 1] if at else None
        behind = tokens[at + 2] if at + 2 < len(tokens) else None
        if name.start in functions or _may_be_call(before, name, behind):
            is_behind_dot = before is not None and before.token_type is TokenType.DOT
            yield Call(
                start=name.start,
                name=name.text.lower(),
                has_arguments=behind is not None and behind.token_type is not TokenType.R_PAREN,
                is_bare=not is_behind_dot and name.token_type is not TokenType.IDENTIFIER,
                makes_table=name.start in tables or (None in tables and name.start not in functions),
            )


def _may_be_call(before: Token | None, name: Token, behind: Token | None) -> bool:
    """True if Spark may read a call where the tree shows none; `behind` stands behind the parenthesis."""
    kind = before.token_type if before is not None else None
    if name.token_type is TokenType.IDENTIFIER or kind in _BEFORE_ANY_NAME:
        return True
    if kind in _BEFORE_TYPE or name.token_type in _CLAUSES:
        return False
    word = name.text.lower()
    if word in _BEHIND:
        return before is None or before.text.lower() not in _BEHIND[word]
    if word == "lateral":
        return behind is None or behind.token_type is not TokenType.SELECT
    begins_query = word in _FIRST_WORDS and kind is TokenType.L_PAREN
    is_clause = begins_query or (word in _CLAUSE_WORDS and kind not in _BEFORE_OPERAND)
    return not (is_clause or word in _ANYWHERE) and any(char == "_" or char.isalnum() for char in word)


# Tokens behind which any word may be a name.
_BEFORE_ANY_NAME = frozenset({TokenType.DOT, TokenType.LATERAL})

# Tokens behind which a name is that of a type, or of columns: `CAST(x AS decimal(5, 2))`, `x::decimal(5, 2)`.
_BEFORE_TYPE = frozenset({TokenType.ALIAS, TokenType.DCOLON})

# Clauses that sqlglot reads as one token, or that are none elsewhere.
_CLAUSES = frozenset(
    {
        *(TokenType.PARTITION, TokenType.PARTITION_BY, TokenType.PIVOT, TokenType.UNPIVOT),
        *(TokenType.TABLE_SAMPLE, TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.DISTRIBUTE_BY),
        TokenType.CLUSTER_BY,
    }
)

# Operators that are functions of Spark's too, and words of GROUP BY: sqlglot reads calls of these elsewhere.
_ANYWHERE = frozenset({"not", "case", "exists", "cube", "rollup", "grouping sets"})

# Words that are no functions behind some others: `LIKE ANY ('a%', 'b%')`, `UNION ALL (SELECT ..)`.
_LIKES = frozenset({"like", "ilike"})
_SET_OPERATIONS = frozenset({"union", "intersect", "except", "minus"})
_BEHIND = {
    "any": _LIKES,
    "some": _LIKES,
    "all": _LIKES | _SET_OPERATIONS | {"select"},
    "distinct": _SET_OPERATIONS | {"select", "("},
    "group": {"within"},
}

# Words with which a query in parentheses begins.
_FIRST_WORDS = frozenset({"select", "values"})

# Words of clauses and operators, and tokens behind which Spark expects an operand or an item of a FROM. So that of
# `FROM a, VALUES (1)` counts as a call.
_CLAUSE_WORDS = frozenset(
    """
    and as between div else except from having ilike in intersect is join like limit minus offset on or over
    qualify regexp rlike select then union using values when where
    """.split()
)
_BEFORE_OPERAND = frozenset(
    {
        *(TokenType.SELECT, TokenType.DISTINCT, TokenType.FROM, TokenType.JOIN, TokenType.ON),
        *(TokenType.COMMA, TokenType.L_PAREN, TokenType.L_BRACKET),
        *(TokenType.WHERE, TokenType.HAVING, TokenType.AND, TokenType.OR, TokenType.WHEN, TokenType.THEN),
        *(TokenType.ELSE, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.PARTITION_BY, TokenType.SORT_BY),
        *(TokenType.DISTRIBUTE_BY, TokenType.CLUSTER_BY, TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE),
        *(TokenType.GT, TokenType.GTE, TokenType.NULLSAFE_EQ, TokenType.PLUS, TokenType.DASH, TokenType.DPIPE),
    }
)
