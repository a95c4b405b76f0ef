"""Conjuncts of a condition: as trees, and as the client's own text.

sqlglot's operators carry no offsets, so the text of a conjunct is found among the tokens and then proven: the
slice, parsed by itself, must equal the conjunct's tree. A text that is not proven is not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import Token, TokenType, exp

from rewriter.sql.statement import Statement, parse_tree

# Branches of a disjunction that conditions are implied from. A generated one with thousands is used whole or not
# at all.
ALTERNATIVES_MAX = 100

# Conditions that are remembered, 4 MB at most, with the types and hashes of their trees: those of a join come
# again with each refresh of a dashboard, and in a statement that is planned again.
_REMEMBERED_MAX, _REMEMBERED_CHARS_MAX = 10_000, 300

_EQUALS = frozenset({TokenType.EQ, TokenType.NULLSAFE_EQ})
_BEFORE_OUTPUT = frozenset({TokenType.COMMA, TokenType.SELECT, TokenType.DISTINCT, TokenType.ALL})
_BEHIND_OUTPUT = frozenset({TokenType.COMMA, TokenType.FROM})
_STARTS = frozenset({TokenType.WHERE, TokenType.ON})
# Tokens that can follow a condition at its own depth.
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
    """An expression, mostly a conjunct, and where it stands: tokens `first` to `last`, both included."""

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
    return _placed(statement, condition, *span)


def operands_of(statement: Statement, equality: Conjunct) -> tuple[Conjunct, ...]:
    """The two sides of `=` or `<=>` with their places; none if the places are not certain."""
    tokens = statement.tokens
    outside = (i for i, depth in depths(tokens, equality.first, equality.last + 1) if depth == 0)
    places = [i for i in outside if tokens[i].token_type in _EQUALS]
    if len(places) != 1 or not isinstance(equality.tree, exp.EQ | exp.NullSafeEQ):
        return ()
    left = Conjunct(equality.tree.this.unnest(), equality.first, places[0] - 1)
    right = Conjunct(equality.tree.expression.unnest(), places[0] + 1, equality.last)
    return (left, right) if _proven(statement, left) and _proven(statement, right) else ()


@dataclass(frozen=True)
class EndOfBetween:
    """One of the two comparisons that a BETWEEN is, as text, and its operands, which stand in the statement."""

    operands: tuple[exp.Expr, exp.Expr]
    text: str


def ends_of_between(statement: Statement, conjunct: Conjunct) -> tuple[EndOfBetween, ...]:
    """`a >= b` and `a <= c` of `a BETWEEN b AND c`; none of other conditions, and if a place is not certain.

    Spark casts the operands of each comparison by themselves: `'9' BETWEEN 1 AND '10'` is false.
    """
    tokens, between = statement.tokens, conjunct.tree
    outside = (i for i, depth in depths(tokens, conjunct.first, conjunct.last + 1) if depth == 0)
    places = [i for i in outside if tokens[i].token_type in {TokenType.BETWEEN, TokenType.AND}]
    if not isinstance(between, exp.Between) or len(places) != 2:  # noqa: PLR2004 - BETWEEN and its AND
        return ()
    pieces = ((conjunct.first, places[0]), (places[0] + 1, places[1]), (places[1] + 1, conjunct.last + 1))
    of, low, high = (Conjunct(between, first, stop - 1).text(statement) for first, stop in pieces)
    ends = (
        EndOfBetween((between.this, between.args["low"]), f"{of} >= {low}"),
        EndOfBetween((between.this, between.args["high"]), f"{of} <= {high}"),
    )
    return ends if all(map(_is_end, ends, (exp.GTE, exp.LTE))) else ()


def _is_end(end: EndOfBetween, kind: type[exp.Expr]) -> bool:
    tree = parse_tree(f"SELECT 1 WHERE {end.text}")
    found = tree.args["where"].this if isinstance(tree, exp.Select) else None
    return isinstance(found, kind) and (found.this, found.expression) == end.operands


def located_output(statement: Statement, output: exp.Expr) -> Conjunct | None:
    """The expression of a select list's output with its place; None if the place is not certain.

    It may have a name, as in `expression AS name`.
    """
    first, last = _named(statement, output) if isinstance(output, exp.Alias) else _unnamed(statement, output)
    found = Conjunct(output.unalias().unnest(), first, last)
    return found if first <= last and _proven(statement, found) else None


def _named(statement: Statement, output: exp.Alias) -> tuple[int, int]:
    """The tokens of an output with a name, or (1, 0) where its name is not found."""
    start = output.args["alias"].meta.get("start")
    end = statement.token_at(start) if start is not None else None
    if end is None:
        return 1, 0
    last = end - 1 if statement.tokens[end - 1].token_type is not TokenType.ALIAS else end - 2
    return _start_of_output(statement.tokens, last), last


def _unnamed(statement: Statement, output: exp.Expr) -> tuple[int, int]:
    """The tokens of an output that has no name, by the first name in it; or (1, 0) where it has none."""
    inside = _first_identifier(statement, output)
    if inside is None:
        return 1, 0
    first = _start_of_output(statement.tokens, inside)
    behind = depths(statement.tokens, first, len(statement.tokens))
    kinds = ((index, depth, statement.tokens[index].token_type) for index, depth in behind)
    ends = (index for index, depth, kind in kinds if depth < 0 or (not depth and kind in _BEHIND_OUTPUT))
    return first, next(ends, len(statement.tokens)) - 1


def _start_of_output(tokens: tuple[Token, ...], last: int) -> int:
    """The first token of the output that a token is in: the one behind a comma, or behind SELECT."""
    depth = 0
    for index in range(last, -1, -1):
        kind = tokens[index].token_type
        depth += kind in {TokenType.R_PAREN, TokenType.END}
        if depth == 0 and kind in _BEFORE_OUTPUT:
            return index + 1
        depth = max(0, depth - (kind in {TokenType.L_PAREN, TokenType.CASE}))
    return last + 1


def alternatives(statement: Statement, disjunction: Conjunct) -> list[tuple[Conjunct, ...]]:
    """The conjuncts of each branch of a disjunction; none if their places are uncertain, or they are too many."""
    trees, pending = [], [disjunction.tree]
    while pending:
        tree = pending.pop()
        if isinstance(tree, exp.Or):
            pending += [tree.expression, tree.this]
        else:
            trees.append(tree)
    ranges = _branches(statement.tokens, disjunction.first, disjunction.last + 1)
    if len(ranges) != len(trees) or len(trees) > ALTERNATIVES_MAX:
        return []
    found = [_placed(statement, tree, *place) for tree, place in zip(trees, ranges, strict=True)]
    return found if all(found) else []


def _placed(statement: Statement, tree: exp.Expr, start: int, stop: int) -> tuple[Conjunct, ...]:
    """The conjuncts of a tree that stands between two tokens; none if their places are not certain."""
    terms, pieces = list(conjuncts(tree)), _split(statement.tokens, start, stop)
    if len(terms) != len(pieces):
        return ()
    placed = tuple(Conjunct(term, *piece) for term, piece in zip(terms, pieces, strict=True))
    return placed if all(_proven(statement, conjunct) for conjunct in placed) else ()


def _branches(tokens: tuple[Token, ...], start: int, stop: int) -> list[tuple[int, int]]:
    """Token ranges of the branches of a disjunction that is not enclosed in parentheses as a whole."""
    ors = [i for i, depth in depths(tokens, start, stop) if not depth and tokens[i].token_type is TokenType.OR]
    return list(zip([start, *(i + 1 for i in ors)], [*ors, stop], strict=True))


def depths(tokens: tuple[Token, ...], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Each token's index with the number of parentheses and CASEs that are open behind it."""
    depth = 0
    for index in range(start, stop):
        kind = tokens[index].token_type
        depth += kind in {TokenType.L_PAREN, TokenType.CASE}
        depth -= kind in {TokenType.R_PAREN, TokenType.END}
        yield index, depth


def _span(statement: Statement, condition: exp.Expr) -> tuple[int, int] | None:
    """The tokens of the condition: from its keyword to the token that ends it, both excluded."""
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
    depth = cases = 0
    for index in range(start, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        cases = max(0, cases + (kind is TokenType.CASE) - (kind is TokenType.END))
        # Behind the ON of a MERGE.
        is_clause = kind is TokenType.WHEN and not cases
        if depth < 0 or (depth == 0 and (is_clause or kind in _ENDS) and not _is_call(tokens, index)):
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
    terms, betweens, first = [], 0, start
    for index, depth in depths(tokens, start, stop):
        kind = tokens[index].token_type
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
    """True if one pair of parentheses encloses the whole range."""
    if stop - start < 2 or tokens[start].token_type is not TokenType.L_PAREN:  # noqa: PLR2004 - a pair is two
        return False
    return closing(tokens, start) == stop - 1


def closing(tokens: Sequence[Token], opening: int) -> int | None:
    """The parenthesis that closes the one at `opening`."""
    depth = 0
    for index in range(opening, len(tokens)):
        kind = tokens[index].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if depth == 0:
            return index
    return None


def _proven(statement: Statement, conjunct: Conjunct) -> bool:
    text = conjunct.text(statement)
    read = remembered(text) if len(text) <= _REMEMBERED_CHARS_MAX else _read(text)
    return read == (type(conjunct.tree), hash(conjunct.tree))


def _read(text: str) -> tuple[type[exp.Expr], int] | None:
    """The type and the hash of a condition's tree, by which sqlglot compares trees; None of any other text."""
    tree = parse_tree(f"SELECT 1 WHERE {text}")
    where = tree.args.get("where") if isinstance(tree, exp.Select) else None
    found = where.this.unnest() if where is not None else None
    return (type(found), hash(found)) if found is not None else None


remembered = lru_cache(_REMEMBERED_MAX)(_read)
