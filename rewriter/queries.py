"""Whole subqueries as text: where they stand, and whether they give the same rows when they are asked again."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from sqlglot import TokenType, exp

from rewriter.conditions import closing
from rewriter.functions import (
    DETERMINISTIC_AGGREGATES,
    DETERMINISTIC_FUNCTIONS,
    LITERAL_FUNCTIONS,
    QUERY_FUNCTIONS,
    QUERY_WORDS,
)
from rewriter.repeatable import all_known
from rewriter.statement import Statement, parsed_statement
from rewriter.time_travel import version_starts

# Parentheses around the query's first name that are tried as the query's own.
_CANDIDATES_MAX = 20

# Rows chosen by their order or by chance, and rows made of rows.
_UNREPEATABLE = (exp.Limit, exp.Offset, exp.Window, exp.TableSample, exp.Pivot, exp.Lateral, exp.With)


def located_query(statement: Statement, query: exp.Expr) -> Statement | None:
    """A query that stands in parentheses, by itself, or None where its place is not certain."""
    offsets = [node.meta["start"] for node in query.find_all(exp.Identifier) if "start" in node.meta]
    first = statement.token_at(min(offsets)) if offsets else None
    if first is None:
        return None
    for opening in _parentheses_around(statement, first):
        end = closing(statement.tokens, opening)
        if end is None:
            return None
        # From word to word: a comment behind the last one would hide what a key query says next.
        inside = statement.tokens[opening + 1 : end]
        found = parsed_statement(statement.text[inside[0].start : inside[-1].end + 1])
        if found is not None and found.tree == query:
            return found
    return None


def is_repeatable_query(query: Statement, bare_functions: AbstractSet[str]) -> bool:
    """Whether a query consists of what is known to be deterministic.

    Session functions count as that: the key query tells what they answered.
    """
    return has_certain_rows(query.tree) and _all_known(query, QUERY_WORDS | bare_functions, QUERY_FUNCTIONS)


def is_repeatable_view(view: Statement) -> bool:
    """Whether the text of a view consists of what is known to be deterministic.

    No session functions: the key query holds the view's name alone, and could not tell what they answered.
    """
    functions = DETERMINISTIC_FUNCTIONS | DETERMINISTIC_AGGREGATES
    return has_certain_rows(view.tree) and _all_known(view, QUERY_WORDS, functions)


def _all_known(query: Statement, words: AbstractSet[str], functions: AbstractSet[str]) -> bool:
    names = {i.meta["start"] for i in query.tree.find_all(exp.Identifier) if "start" in i.meta}
    names |= version_starts(query, query.tree)
    return all_known(query.text, query.tokens, names, words, functions)


def has_certain_rows(query: exp.Expr) -> bool:
    """Whether no clause of the query chooses rows by their order or by chance, or reads the clock by name."""
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
