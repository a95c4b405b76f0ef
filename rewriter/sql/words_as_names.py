"""Words of SQL that name columns, tables and CTEs, as in `SELECT from, max(values)`, told by their place.

Spark reads almost any word as a name where it can be nothing else; sqlglot refuses many, and takes some for
clauses. A word is named here only where no clause or operator of Spark's grammar goes on as the text does. So
Spark reads a name there too, or refuses the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from typing import Final

from sqlglot import Token, TokenType


def _kinds(names: str) -> frozenset[TokenType]:
    return frozenset(TokenType[name] for name in names.split())


# Operators, and clauses that go on: none begins an item of a list.
_OPERATORS: Final = _kinds("AND BETWEEN ELSE ILIKE IN LIKE OR RLIKE THEN WHEN")
_GO_ON: Final = _OPERATORS | _kinds(
    "ALIAS CROSS EXCEPT FOR FROM HAVING INNER INTERSECT INTO JOIN ON OUTER QUALIFY TABLE_SAMPLE UNION USING WHERE"
    " WITH"
)
# Words that begin statements, and FETCH, which Spark's queries do not have.
_COMMANDS: Final = _kinds("ALTER CREATE DROP FETCH GRANT REVOKE ROLLBACK UNCACHE")
_WORDS: Final = _GO_ON | _COMMANDS | _kinds("ALL DESCRIBE DISTINCT INSERT LATERAL NOT SELECT VALUES")

# No word above is the last one of a clause, or of an operand, but in LIMIT ALL and GROUP BY ALL.
_ENDED: Final = frozenset({TokenType.R_PAREN, TokenType.SEMICOLON, None})
_BEHIND_NAME: Final = _ENDED | _kinds(
    "COMMA R_BRACKET L_BRACKET DCOLON DPIPE SLASH EQ NEQ NULLSAFE_EQ LT LTE GT GTE"
)
_BEFORE_QUERY: Final = _kinds("ALL DISTINCT EXCEPT INTERSECT L_PAREN R_PAREN UNION") | {None}
# Words that need a relation before them, and are one themselves right behind the first FROM of a SELECT.
_BEHIND_RELATION: Final = _kinds("CROSS INNER JOIN ON OUTER USING")
_BEFORE_CTE: Final = _kinds("COMMA WITH")
_QUERIES: Final = _kinds("FROM SELECT VALUES WITH")
# Behind a list item that is a name alone. A key query could take the text `from IN (1)` out of `, from IN (1)`.
_BEHIND_ITEM: Final = _kinds("ALIAS FROM GROUP_BY IDENTIFIER JOIN ORDER_BY VAR WHERE")
# Words that rows of literals do not begin with: `VALUES from` would be a row of a column.
_BEHIND_VALUES: Final = _kinds("ALIAS AND FROM GROUP_BY IS JOIN ON OR ORDER_BY USING WHERE")

# Pairs of which sqlglot reads the first or the second as a clause, and Spark as a name: `SELECT join FROM t`.
_CLAUSE_TO_SQLGLOT: Final = frozenset(
    {
        *product(_kinds("COMMA"), _GO_ON),
        *product(_kinds("DISTINCT L_PAREN SELECT"), _kinds("ALIAS")),
        *product(_kinds("FROM JOIN"), _kinds("DESCRIBE")),
        *product(_kinds("ALL FROM JOIN LATERAL SELECT"), _kinds("FROM")),
        *product(_kinds("COMMA FROM JOIN"), _kinds("SELECT")),
        *product(_kinds("DESCRIBE LATERAL VALUES"), _kinds("IDENTIFIER VAR")),
    }
)
# Words that may be a table's alias before a join.
_BEFORE_JOIN: Final = _GO_ON | _kinds("LIMIT OFFSET VALUES")
_JOIN_KINDS: Final = frozenset("anti cross full inner join left natural right semi".split())
_JOINED: Final = _JOIN_KINDS - {"natural"} | {"outer"}


def name_words(tokens: Sequence[Token]) -> None:
    """Make names of the words among a statement's tokens that can be nothing else."""
    kinds = [None, *(token.token_type for token in tokens), None, None, None]
    # For each parenthesis: True behind a SELECT that has no FROM yet.
    selects = [False]
    begins_relation = False
    for at, token in enumerate(tokens, 1):
        kind, before, behind = token.token_type, kinds[at - 1], kinds[at + 1 : at + 4]
        is_relation = begins_relation and kind in _BEHIND_RELATION and behind[0] is not TokenType.L_PAREN
        is_output = kind is TokenType.VALUES and before is TokenType.ALIAS and selects[-1]
        is_here = is_relation or is_output or _is_name(kind, before, behind)
        is_name = kind in _WORDS and token.text.isidentifier() and is_here
        begins_relation = False
        if is_name:
            token.token_type = TokenType.IDENTIFIER
        elif kind is TokenType.L_PAREN:
            selects.append(False)
        elif kind is TokenType.R_PAREN and len(selects) > 1:
            _ = selects.pop()
        elif kind is TokenType.SELECT:
            selects[-1] = before in _BEFORE_QUERY
        elif kind is TokenType.FROM:
            begins_relation = selects[-1] and before is not TokenType.DISTINCT
            selects[-1] = False


def _is_name(kind: TokenType, before: TokenType | None, behind: Sequence[TokenType | None]) -> bool:
    after, second, third = behind
    if after is TokenType.L_PAREN:
        found = False
    elif before is TokenType.DOT or (after is TokenType.DOT and second is not TokenType.NUMBER):
        found = True
    elif after in _BEHIND_NAME:
        found = kind is not TokenType.ALL or after not in _ENDED
    elif (after, second) == (TokenType.ALIAS, TokenType.L_PAREN):
        # `x AND as (1)` calls a function.
        found = before in _BEFORE_CTE and third in _QUERIES and kind not in _OPERATORS | {TokenType.NOT}
    elif kind is TokenType.VALUES:
        found = after in _BEHIND_VALUES and second is not TokenType.L_PAREN
    else:
        is_item = kind in _GO_ON and before is TokenType.COMMA and after in _BEHIND_ITEM
        found = is_item or (kind in _COMMANDS and before is not None)
    return found


def has_clause_of_sqlglot(tokens: Sequence[Token]) -> bool:
    """True if sqlglot reads a word as a clause or an alias that is none to Spark.

    In `f AS left JOIN d` the alias is AS, and in `f where LEFT JOIN d` it is WHERE: all rows of f are kept.
    """
    kinds = [None, *(token.token_type for token in tokens), None]
    words = ["" if token.token_type is TokenType.IDENTIFIER else token.text.lower() for token in tokens]
    is_clause = any(
        pair in _CLAUSE_TO_SQLGLOT and before is not TokenType.ALIAS and after is not TokenType.L_PAREN
        for before, pair, after in zip(kinds, pairwise(kinds[1:]), kinds[3:], strict=False)
    )
    return is_clause or any(
        (kind in _BEFORE_JOIN and side in _JOIN_KINDS and joined in _JOINED)
        or (kind is TokenType.ALIAS and (side, joined) == ("join", "("))
        for kind, side, joined in zip(kinds[1:], words[1:], words[2:], strict=False)
    )
