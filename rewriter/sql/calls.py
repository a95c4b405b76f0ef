"""The functions that a text calls, by sqlglot's tree; where that shows none, by the words before a parenthesis.

Almost any word may be a function's name to Spark: `by(x)`, `union(x)` and `having(x)` are calls. sqlglot reads
most of them as calls too, and keeps the offset of the name. Where it reads a clause, the words around have to show
that Spark does so. A word in doubt counts as a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, Self

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
    """The calls in a text, and some words that may be none. `nodes` are those of its tree."""
    tree = _Tree.of(nodes)
    for at, (name, opening) in enumerate(pairwise(tokens)):
        if opening.token_type is not TokenType.L_PAREN or name.start in tree.columns_behind:
            continue
        before, behind = tokens[max(at - 2, 0) : at], tokens[at + 2 : at + 3]
        if name.start in tree.functions or not _is_clause(before, name, behind, tree.maybe_called):
            is_behind_dot = bool(before) and before[-1].token_type is TokenType.DOT
            yield Call(
                start=name.start,
                name=name.text.lower(),
                has_arguments=_has_more(behind),
                is_bare=not is_behind_dot and name.token_type is not TokenType.IDENTIFIER,
                makes_table=tree.has_for_table(name.start),
            )


@dataclass(frozen=True)
class _Tree:
    """Calls and names in a tree, by their offsets: None where sqlglot keeps no offset, as for IF(..)."""

    functions: set[int | None] = field(default_factory=set)
    # Calls that are items of a FROM.
    tables: set[int | None] = field(default_factory=set)
    # Names of tables and aliases, behind which columns may stand in parentheses.
    columns_behind: set[int | None] = field(default_factory=set)
    # Words that Spark may read as a function's name in this tree, though sqlglot read a query or DISTINCT.
    maybe_called: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, nodes: Iterable[exp.Expr]) -> Self:
        """The tree of these nodes."""
        tree = cls()
        for node in nodes:
            if isinstance(node, exp.Func):
                tree.functions.add(node.meta.get("start"))
            if isinstance(node, exp.Lateral) and node.args.get("view"):
                # Its function is one of those in conditions, and takes no DISTINCT.
                tree.maybe_called.add("distinct")
            elif isinstance(node, exp.Table | exp.Lateral | exp.TableAlias):
                item = node.this
                if isinstance(item, exp.Expr) and not isinstance(item, exp.Query):
                    found = tree.columns_behind if isinstance(item, exp.Identifier) else tree.tables
                    found.add(item.meta.get("start"))
            elif isinstance(node, exp.Select) and not node.args.get("from_"):
                # `IN (SELECT (5), 6)` is a list that begins with a call.
                tree.maybe_called.add("select")
            elif isinstance(node, exp.Values) and not isinstance(_around(node), _TAKES_ROWS):
                tree.maybe_called.add("values")
        return tree

    def has_for_table(self, start: int) -> bool:
        """True if the call there may be an item of a FROM, perhaps the item without a known offset."""
        return start in self.tables or (None in self.tables and start not in self.functions)


def _around(node: exp.Expr) -> exp.Expr | None:
    """The node around a node and its parentheses."""
    node = node.parent or node
    while isinstance(node, exp.Subquery | exp.Paren) and node.parent is not None:
        node = node.parent
    return node


# Around a VALUES that is an inline table, and no function.
_TAKES_ROWS = (exp.From, exp.Join, exp.Insert, exp.CTE, exp.SetOperation)


def _has_more(behind: Sequence[Token]) -> bool:
    """True unless the parenthesis closes at once."""
    return not behind or behind[0].token_type is not TokenType.R_PAREN


def _is_clause(before: Sequence[Token], name: Token, behind: Sequence[Token], maybe_called: set[str]) -> bool:
    """True if Spark surely reads no user's function, by two tokens before and one in the parentheses."""
    words = [token.text.lower() for token in before]
    kind, last = (before[-1].token_type, words[-1]) if before else (None, "")
    word = name.text.lower()
    if name.token_type is TokenType.IDENTIFIER or kind in _BEFORE_ANY_NAME:
        return False
    if " " in word or word in _BUILT_IN or kind in _BEFORE_TYPE or not _is_word(name):
        return True
    if word in _BEHIND:
        may_be_called = word in maybe_called and last == "("
        is_clause = last in _BEHIND[word] and _has_more(behind) and not may_be_called
    elif word == "lateral":
        is_clause = bool(behind) and behind[0].token_type is TokenType.SELECT
    elif word == "values":
        is_clause = word not in maybe_called and _has_more(behind)
    elif word == "select":
        begins = not before or last in _BEFORE_QUERY or (last == "(" and word not in maybe_called)
        is_clause = begins or _ends_operand(before) or not _SET_OPERATIONS.isdisjoint(words)
    else:
        continues = (last != "" and last == _ALSO_BEHIND.get(word)) or (word == "from" and words in _COMPARISONS)
        is_clause = word in _CLAUSE_WORDS and (continues or _ends_operand(before))
    return is_clause


def _is_word(token: Token) -> bool:
    return any(char == "_" or char.isalnum() for char in token.text)


def _ends_operand(before: Sequence[Token]) -> bool:
    """True if the last of two tokens ends an operand, or an item of a list."""
    *_, last = before or (None,)
    behind = before[0].token_type if len(before) > 1 else None
    if last is None or behind is TokenType.DOT or last.token_type in _ENDS:
        return last is not None
    if last.token_type is TokenType.STAR:
        return behind in _BEFORE_STAR
    word = last.text.lower()
    return _is_word(last) and " " not in word and word not in _BEFORE_OPERAND


# Tokens behind which any word may be a name.
_BEFORE_ANY_NAME = frozenset({TokenType.DOT, TokenType.LATERAL})

# Tokens behind which a name is that of a type, or of columns: `CAST(x AS decimal(5, 2))`, `x::decimal(5, 2)`.
_BEFORE_TYPE = frozenset({TokenType.ALIAS, TokenType.DCOLON})

_ENDS = frozenset(
    {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER}
)
# Before a star that stands for columns. Any other one multiplies.
_BEFORE_STAR = frozenset({TokenType.SELECT, TokenType.ALL, TokenType.DISTINCT, TokenType.COMMA, TokenType.L_PAREN})

# Words that may be operators or clauses, or functions, which are Spark's own.
_BUILT_IN = frozenset("case cube exists not rollup".split())

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
_BEFORE_QUERY = _SET_OPERATIONS | {"as"}
# `x IS DISTINCT FROM (y)`
_COMPARISONS = (["is", "distinct"], ["not", "distinct"])

# Words of operators and clauses, each behind an operand or an item of a list, or behind words that begin it.
_CLAUSE_WORDS = frozenset(
    """
    and as between div else except from having ilike in insert intersect is join like limit minus offset on or over
    partition pivot qualify regexp rlike tablesample then union unpivot using when where
    """.split()
)
_ALSO_BEHIND = {
    **dict.fromkeys("between ilike in like regexp rlike".split(), "not"),
    "when": "case",
    "insert": "then",
}
# Words behind which an operand, or an item of a list, is still to come.
_BEFORE_OPERAND = _BUILT_IN.union(
    _CLAUSE_WORDS, "all any by distinct escape interval lateral of select some values within".split()
)
