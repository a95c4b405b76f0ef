"""Conjuncts of a condition: as trees, and as the client's own text.

sqlglot's operators carry no offsets, so the text of a conjunct is found among the tokens and then proven: the
slice, parsed by itself, must be the very tree that it stands for. What cannot be proven is not used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from rewriter.functions import CLOCK_WORDS, DETERMINISTIC_FUNCTIONS, FILTER_WORDS, WORDS_BEFORE_PARENTHESIS
from rewriter.statement import Statement, parse_tree, tokenize

_STARTS = frozenset({TokenType.WHERE, TokenType.ON})
# What can follow a condition at its own depth.
_ENDS = frozenset(
    {
        TokenType.COMMA,
        TokenType.SEMICOLON,
        TokenType.WHERE,
        TokenType.ON,
        TokenType.USING,
        TokenType.JOIN,
        TokenType.INNER,
        TokenType.LEFT,
        TokenType.RIGHT,
        TokenType.FULL,
        TokenType.CROSS,
        TokenType.SEMI,
        TokenType.ANTI,
        TokenType.NATURAL,
        TokenType.LATERAL,
        TokenType.GROUP_BY,
        TokenType.HAVING,
        TokenType.QUALIFY,
        TokenType.WINDOW,
        TokenType.ORDER_BY,
        TokenType.SORT_BY,
        TokenType.CLUSTER_BY,
        TokenType.DISTRIBUTE_BY,
        TokenType.LIMIT,
        TokenType.OFFSET,
        TokenType.UNION,
        TokenType.INTERSECT,
        TokenType.EXCEPT,
        TokenType.SELECT,
    }
)
_OPERATORS = frozenset(
    {
        TokenType.L_PAREN,
        TokenType.R_PAREN,
        TokenType.COMMA,
        TokenType.DOT,
        TokenType.EQ,
        TokenType.NEQ,
        TokenType.LT,
        TokenType.LTE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.NULLSAFE_EQ,
        TokenType.PLUS,
        TokenType.DASH,
        TokenType.STAR,
        TokenType.SLASH,
        TokenType.MOD,
        TokenType.DPIPE,
        TokenType.NOT,
        TokenType.DCOLON,
        TokenType.NUMBER,
    }
)


def conjuncts(condition: exp.Expr | None) -> Iterator[exp.Expr]:
    """The terms of a conjunction, left to right, through any parentheses around it or around its parts."""
    pending = [condition] if condition is not None else []
    while pending:
        term = pending.pop()
        if isinstance(term, exp.Paren):
            pending.append(term.this)
        elif isinstance(term, exp.And):
            pending += [term.expression, term.this]
        else:
            yield term


@dataclass(frozen=True)
class Conjunct:
    """A conjunct and where it stands: tokens `first` to `last`, both included."""

    tree: exp.Expr
    first: int
    last: int

    def text(self, statement: Statement) -> str:
        """The conjunct as the client wrote it."""
        tokens = statement.tokens
        return statement.text[tokens[self.first].start : tokens[self.last].end + 1]


def located(statement: Statement, condition: exp.Expr) -> tuple[Conjunct, ...]:
    """The conjuncts of a WHERE or ON with their places in the text; empty if the places are not certain."""
    span = _span(statement, condition)
    if span is None:
        return ()
    trees = list(conjuncts(condition))
    pieces = _split(statement.tokens, *span)
    if len(pieces) != len(trees):
        return ()
    found = tuple(Conjunct(tree, *piece) for tree, piece in zip(trees, pieces, strict=True))
    return found if all(_proven(statement, conjunct) for conjunct in found) else ()


def is_repeatable(statement: Statement, conjunct: Conjunct) -> bool:
    """Whether every token of the conjunct is known to mean the same in a key query as in the statement.

    A positive list: column names, and the words, operators and functions that are known. That its columns are
    those of the small table is for the caller to see.
    """
    tokens = statement.tokens[conjunct.first : conjunct.last + 1]
    columns = {
        identifier.meta.get("start")
        for column in conjunct.tree.find_all(exp.Column)
        for identifier in column.find_all(exp.Identifier)
    }
    followed = [*tokens[1:], None]
    return all(
        token.start in columns or _is_known(statement, token, after)
        for token, after in zip(tokens, followed, strict=True)
    )


def _is_known(statement: Statement, token: Token, after: Token | None) -> bool:
    if token.token_type is TokenType.STRING:
        return not any(token.text.strip().lower().startswith(word) for word in CLOCK_WORDS)
    if token.token_type in _OPERATORS:
        return True
    # A suffix such as 1L arrives as NUMBER, DCOLON, BIGINT at one offset: the text is the suffix then.
    word = token.text.lower()
    if after is not None and after.token_type is TokenType.L_PAREN:
        return word in DETERMINISTIC_FUNCTIONS or word in WORDS_BEFORE_PARENTHESIS
    return word in FILTER_WORDS or _is_number_suffix(statement, token)


def _is_number_suffix(statement: Statement, token: Token) -> bool:
    return statement.text[token.start].isdigit() and token.text.lower() in {"l", "s", "y", "f", "d", "bd"}


def _span(statement: Statement, condition: exp.Expr) -> tuple[int, int] | None:
    """The tokens of the condition: from its keyword (excluded) to what ends it (excluded)."""
    anchor = _first_identifier(statement, condition)
    if anchor is None:
        return None
    start = _keyword_before(statement.tokens, anchor)
    return None if start is None else (start + 1, _end(statement.tokens, start + 1))


def _first_identifier(statement: Statement, condition: exp.Expr) -> int | None:
    offsets = [node.meta["start"] for node in condition.find_all(exp.Identifier) if "start" in node.meta]
    return statement.token_at(min(offsets)) if offsets else None


def _keyword_before(tokens: tuple[Token, ...], anchor: int) -> int | None:
    depth = 0
    for index in range(anchor - 1, -1, -1):
        kind = tokens[index].token_type
        depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
        if kind in _STARTS and depth <= 0:
            return index
    return None


def _end(tokens: tuple[Token, ...], start: int) -> int:
    depth = 0
    for index in range(start, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth < 0 or (depth == 0 and kind in _ENDS and not _is_call(tokens, index)):
            return index
    return len(tokens)


def _is_call(tokens: tuple[Token, ...], index: int) -> bool:
    # LEFT( and RIGHT( are functions; a join would say JOIN, OUTER, SEMI or ANTI next.
    after = tokens[index + 1].token_type if index + 1 < len(tokens) else None
    return tokens[index].token_type in {TokenType.LEFT, TokenType.RIGHT} and after is TokenType.L_PAREN


def _split(tokens: tuple[Token, ...], start: int, stop: int) -> list[tuple[int, int]]:
    """Token ranges (both ends included) of the terms of a conjunction, left to right."""
    pending, pieces = [(start, stop)], []
    while pending:
        start, stop = pending.pop()
        parts = _top_level_terms(tokens, start, stop)
        if len(parts) > 1:
            pending += reversed(parts)
        elif _is_parenthesised(tokens, start, stop):
            pending.append((start + 1, stop - 1))
        elif start < stop:
            pieces.append((start, stop - 1))
    return pieces


def _top_level_terms(tokens: tuple[Token, ...], start: int, stop: int) -> list[tuple[int, int]]:
    terms, depth, betweens, first = [], 0, 0, start
    for index in range(start, stop):
        kind = tokens[index].token_type
        depth += kind in {TokenType.L_PAREN, TokenType.CASE}
        depth -= kind in {TokenType.R_PAREN, TokenType.END}
        if depth:
            continue
        if kind is TokenType.OR:
            return [(start, stop)]  # AND binds tighter: the whole is one disjunction
        if kind is TokenType.BETWEEN:
            betweens += 1
        elif kind is TokenType.AND and betweens:
            betweens -= 1
        elif kind is TokenType.AND:
            terms.append((first, index))
            first = index + 1
    return [*terms, (first, stop)]


def _is_parenthesised(tokens: tuple[Token, ...], start: int, stop: int) -> bool:
    """Whether one pair of parentheses encloses the whole range."""
    if stop - start < 2 or tokens[start].token_type is not TokenType.L_PAREN:  # noqa: PLR2004 - a pair is two
        return False
    depth = 0
    for index in range(start, stop):
        kind = tokens[index].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth == 0:
            return index == stop - 1
    return False


def _proven(statement: Statement, conjunct: Conjunct) -> bool:
    probe = f"SELECT 1 WHERE {conjunct.text(statement)}"
    try:
        (tree,) = parse_tree(tokenize(probe), probe)
    except (SqlglotError, RecursionError, ValueError):
        return False
    where = tree.args.get("where") if isinstance(tree, exp.Select) else None
    return where is not None and where.this.unnest() == conjunct.tree
