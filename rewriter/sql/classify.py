"""Cheap tests of a statement's text before it is parsed: its first word, and if it could be rewritten."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Comments nest in Spark, but for hints: `/*+` begins none within a comment.
_COMMENTS_NESTED_MAX = 4
_IN_COMMENT = r"[^*/]++|\*(?!/)|/(?!\*(?!\+))"
_COMMENT = rf"/\*(?:{_IN_COMMENT})*+\*/"
for _ in range(_COMMENTS_NESTED_MAX):
    _COMMENT = rf"/\*(?:{_IN_COMMENT}|{_COMMENT})*+\*/"

# A comment or a space, with DOTALL. Repeat it possessively (`*+`), so that none is tried again: if the match fails
# behind them, there are as many ways to pair the ends of comments as subsets of them.
COMMENT_OR_SPACE = rf"\s|--[^\r\n]*(?:[\r\n]|$)|{_COMMENT}"

# A first word behind more comments counts as none. To look for it takes milliseconds, in which all clients wait.
_HEAD_CHARS_MAX = 64 * 1024
# A statement's first word, behind comments and parentheses.
_FIRST_WORD = re.compile(rf"(?:\(|{COMMENT_OR_SPACE})*+([a-z]+)", re.IGNORECASE | re.DOTALL)
# FROM-first queries are Spark SQL too. INSERT, CREATE and MERGE may hold a query.
QUERY_FIRST_WORDS = frozenset({"select", "with", "from", "insert", "create", "merge"})

_WHERE = re.compile(r"\bwhere\b", re.IGNORECASE)
# A name that may be a table's, with its database; and an argument of `extract(year FROM ..)`.
_READ = re.compile(r"\bfrom\s+((?:`[^`]+`|\w+)(?:\.(?:`[^`]+`|\w+)){0,2})", re.IGNORECASE)
_JOIN_OR_SELECTS = re.compile(r"\b(?:join|merge)\b|\bselect\b.*\bselect\b", re.IGNORECASE | re.DOTALL)


def is_found(pattern: re.Pattern[str], words: Sequence[str], text: str) -> bool:
    """True if the pattern is found in the text; each match of it must hold one of the words, in any case.

    The words are looked for first, a hundred times as fast: a pattern holds the interpreter, and other clients
    wait.
    """
    return not has_none(words, text) and pattern.search(text) is not None


def has_none(words: Sequence[str], text: str) -> bool:
    """True if the text certainly has none of the words, in any case.

    Spark takes some letters beyond ASCII, such as the long s, for others in lower case: such a text may have any.
    """
    if not text.isascii():
        return False
    lower = text.lower()
    return not any(word in lower for word in words)


def first_word(text: str) -> str:
    """The first word of a statement, which names its kind, in lower case; empty if there is none."""
    found = _found_first_word(text)
    return found[1].lower() if found is not None else ""


def before_first_word(text: str) -> str:
    """The text before the first word: comments, parentheses, white space; all of it if there is no word."""
    found = _found_first_word(text)
    return text[: found.start(1)] if found is not None else text


def _found_first_word(text: str) -> re.Match[str] | None:
    found = _FIRST_WORD.match(text, 0, _HEAD_CHARS_MAX)
    return found if found is not None and found.end() < _HEAD_CHARS_MAX else None


def may_have_a_join(text: str) -> bool:
    """True if the text could hold a query with a join: a cheap test, so that most statements are not parsed.

    A MERGE joins its target with its source.
    """
    if first_word(text) not in QUERY_FIRST_WORDS:
        return False
    return "," in text or is_found(_JOIN_OR_SELECTS, ("join", "merge", "select"), text)


def may_be_rewritten(
    text: str, *, has_file_index: bool, has_views: bool = False, has_small_files: bool = False
) -> bool:
    """True if the text could hold a query that reads less, or in fewer splits.

    It may hold a join, a filter where files are indexed, a view with a join in it if any name may be that of a
    view, or a table of small files if any name may be that of one.
    """
    return (
        may_have_a_join(text)
        or (has_file_index and first_word(text) in QUERY_FIRST_WORDS and is_found(_WHERE, ("where",), text))
        or ((has_views or has_small_files) and bool(names_read(text)))
    )


def names_read(text: str) -> frozenset[str]:
    """The names behind FROM in a query, in lower case and without quotes.

    >>> sorted(names_read("SELECT max(x) FROM mart.`Sales`"))
    ['mart.sales']
    """
    if first_word(text) not in QUERY_FIRST_WORDS:
        return frozenset()
    return frozenset(name.replace("`", "").lower() for name in _READ.findall(text))


def depends_on_quoting(text: str) -> bool:
    """True if doubleQuotedIdentifiers or escapedStringLiterals can change how the text reads."""
    return '"' in text or "\\" in text
