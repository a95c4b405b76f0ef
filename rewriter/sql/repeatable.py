"""Tests whether a part of the client's text means the same in a key query as in the statement, word by word.

A part is a condition, or a whole subquery, which must give the same rows when it is run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from sqlglot import Token, TokenType, exp

from rewriter.sql.conditions import Conjunct, closing
from rewriter.sql.deterministic_functions import (
    CLOCK_WORDS,
    DETERMINISTIC_AGGREGATES,
    DETERMINISTIC_FUNCTIONS,
    FILTER_FUNCTIONS,
    FILTER_WORDS,
    LITERAL_FUNCTIONS,
    QUERY_FUNCTIONS,
    QUERY_WORDS,
    TEXT_MAKERS,
    WORDS_BEFORE_PARENTHESIS,
)
from rewriter.sql.statement import Statement, parse_any
from rewriter.sql.time_travel import version_starts

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
        TokenType.STRING,
    }
)


def is_repeatable(statement: Statement, conjunct: Conjunct, bare_functions: AbstractSet[str]) -> bool:
    """True if every token of the conjunct is known to mean the same in a key query as in the statement.

    A positive list: names, and the words, operators and functions that are known, session functions among them,
    whose values the key query returns. `bare_functions` are those that need no parentheses. The caller makes sure
    that the columns are those of the small table, and that the subqueries are closed.
    """
    tokens = statement.tokens[conjunct.first : conjunct.last + 1]
    tree = conjunct.tree
    named: type[exp.Expr] = exp.Column
    words, functions = FILTER_WORDS | bare_functions, FILTER_FUNCTIONS
    if tree.find(exp.Query) is not None:
        named = exp.Expr
        words, functions = QUERY_WORDS | bare_functions, QUERY_FUNCTIONS
    identifiers = tree.find_all(exp.Identifier)
    names = {i.meta["start"] for i in identifiers if "start" in i.meta and isinstance(i.parent, named)}
    names |= version_starts(statement, tree)
    return all_known(statement.text, tokens, names, words, functions)


def all_known(
    text: str,
    tokens: Sequence[Token],
    names: AbstractSet[int],
    words: AbstractSet[str],
    functions: AbstractSet[str],
) -> bool:
    """True if every token is a name at one of the offsets `names`, a literal, or a known word or function."""
    strings = [token.text for token in tokens if token.token_type is TokenType.STRING]
    if _may_spell_the_clock(list(filter(None, strings))) or _makes_text_of_literals(tokens, names):
        return False
    followed = [*tokens[1:], None]
    for before, token, after in zip([None, *tokens], tokens, followed, strict=False):
        called = after is not None and after.token_type is TokenType.L_PAREN
        if token.start in names and not called:
            continue
        if called and before is not None and before.token_type is TokenType.DOT:
            return False  # a user's own function, by its database's name
        if not _is_known(text, token, words, functions, called=called):
            return False
    return True


def _may_spell_the_clock(strings: Sequence[str]) -> bool:
    """True if a string, or it and the next ones joined, begins with a word that Spark reads as the clock.

    Spark joins `'to' 'day'` and concat('to', 'day') before it casts them.
    """
    words = tuple(CLOCK_WORDS)
    # Each letter of a word may stand in a string of its own.
    strings_max = max(map(len, words), default=0)
    together = ("".join(strings[start : start + strings_max]) for start in range(len(strings)))
    return any(text.strip(_BLANKS).lower().startswith(words) for text in together)


# Characters that Java trims.
_BLANKS = "".join(map(chr, range(ord(" ") + 1)))


def _makes_text_of_literals(tokens: Sequence[Token], names: AbstractSet[int]) -> bool:
    """True if a function makes a text of literals alone: Spark looks for the clock's words in its result."""
    for opening, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN and opening and tokens[opening - 1].text.lower() in TEXT_MAKERS:
            end = closing(tokens, opening)
            if not any(inner.start in names for inner in tokens[opening:end]):
                return True
    return False


def _is_known(
    text: str, token: Token, words: AbstractSet[str], functions: AbstractSet[str], *, called: bool
) -> bool:
    if token.token_type in _OPERATORS:
        return True
    if token.token_type is TokenType.IDENTIFIER:
        return False  # quoted: a name, whatever it says
    word = token.text.lower()
    if called:
        return word in functions or word in WORDS_BEFORE_PARENTHESIS
    return all(part in words for part in word.split()) or _is_number_suffix(text, token)


def _is_number_suffix(text: str, token: Token) -> bool:
    # A suffix such as 1L arrives as NUMBER, DCOLON, BIGINT at one offset, and its text is the suffix.
    return text[token.start].isdigit() and token.text.lower() in {"l", "s", "y", "f", "d", "bd"}


# Parentheses around the query's first name that are tried as the query's own.
_CANDIDATES_MAX = 20

# Rows chosen by their order or by chance, and rows made of rows.
_UNREPEATABLE = (exp.Limit, exp.Offset, exp.Window, exp.TableSample, exp.Pivot, exp.Lateral, exp.With)


def located_query(statement: Statement, query: exp.Expr) -> Statement | None:
    """A query in parentheses as a statement of its own, or None if its place is not certain."""
    offsets = [node.meta["start"] for node in query.find_all(exp.Identifier) if "start" in node.meta]
    first = statement.token_at(min(offsets)) if offsets else None
    if first is None:
        return None
    for opening in _parentheses_around(statement, first):
        end = closing(statement.tokens, opening)
        if end is None:
            return None
        # From word to word: a comment behind the last one would hide the next words of the key query.
        inside = statement.tokens[opening + 1 : end]
        found = parse_any(statement.text[inside[0].start : inside[-1].end + 1])
        if found is not None and found.tree == query:
            return found
    return None


def is_repeatable_query(query: Statement, bare_functions: AbstractSet[str]) -> bool:
    """True if all words and functions of a query are known to be deterministic.

    Session functions count as deterministic: the key query returns their values.
    """
    return has_certain_rows(query.tree) and _all_known(query, QUERY_WORDS | bare_functions, QUERY_FUNCTIONS)


def is_repeatable_view(view: Statement) -> bool:
    """True if all words and functions of a view's text are known to be deterministic.

    Session functions are excluded: the key query has the view's name alone, and cannot return their values.
    """
    functions = DETERMINISTIC_FUNCTIONS | DETERMINISTIC_AGGREGATES
    return has_certain_rows(view.tree) and _all_known(view, QUERY_WORDS, functions)


def _all_known(query: Statement, words: AbstractSet[str], functions: AbstractSet[str]) -> bool:
    names = {i.meta["start"] for i in query.tree.find_all(exp.Identifier) if "start" in i.meta}
    names |= version_starts(query, query.tree)
    return all_known(query.text, query.tokens, names, words, functions)


def has_certain_rows(query: exp.Expr) -> bool:
    """True if no clause of the query chooses rows by their order or by chance, or reads the clock by name."""
    names = (c.name.lower() for c in query.find_all(exp.Column) if not c.table)
    return query.find(*_UNREPEATABLE) is None and not any(name in LITERAL_FUNCTIONS for name in names)


def _parentheses_around(statement: Statement, index: int) -> list[int]:
    """The opening parentheses around a token, the nearest first."""
    found, depth = [], 0
    for position in range(index - 1, -1, -1):
        kind = statement.tokens[position].token_type
        depth += (kind is TokenType.R_PAREN) - (kind is TokenType.L_PAREN)
        if depth < 0:
            found.append(position)
            depth = 0
        if len(found) == _CANDIDATES_MAX:
            break
    return found
