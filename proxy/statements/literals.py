r"""Texts of statements without their literals, by Spark's tokens: the text need not parse.

Where a quote or a comment has no end, everything from there on goes.

>>> without_literals("SELECT 'a', 1.5e3 FROM t1 WHERE ds IN (DATE'2024-01-01') OR ds = (r'\\') -- anna")
'SELECT ?, .. FROM t1 WHERE ds IN (DATE?) OR ds = (?)'
"""

from __future__ import annotations

import re
from typing import Final

from rewriter.sql.classify import COMMENT_OR_SPACE

LITERAL: Final = "?"

_STRINGS: Final = r"""
    \b[rR]'[^']*+' | \b[rR]"[^"]*+" | '(?:[^'\\]|\\.)*+' | "(?:[^"\\]|\\.)*+"
"""
# A word that begins with a digit is a number, or else the rare name that begins so.
_NUMBER: Final = r"(?P<number>\.?\d[\w.]*+)"
# A part of a name; plans have a number behind it.
_PART: Final = r"(?:[^\W\d][\w\#]*+|`(?:[^`]|``)*+`)"
TOKEN: Final = re.compile(
    rf"(?P<string>{_STRINGS}) | (?P<comment>--(?:\\\n|[^\r\n])*+|/\*(?!\+)) | (?P<word>{_PART}(?:[.-]{_PART})*+)"
    rf"| {_NUMBER} | (?P<open>['\"`].*+)",
    re.VERBOSE | re.DOTALL,
)
# For sentences about a statement, which cite its conditions between backquotes.
_CITED: Final = re.compile(
    rf"(?P<string>{_STRINGS}) | (?P<open>['\"].*+) | {_NUMBER} | (?P<word>[^\W\d]\w*+)", re.VERBOSE | re.DOTALL
)
_BOUND: Final = re.compile(r"/\*|\*/")
_LIST: Final = re.compile(r"\?(?:\s*+,\s*+\?)++")
_SPACE: Final = re.compile(r"\s++")
# Paths of files, which have no quotes.
ADDED: Final = re.compile(
    rf"(?:{COMMENT_OR_SPACE})*+(?P<name>(?:ADD|LIST|DELETE)\s++(?:JAR|FILE|ARCHIVE)S?\b)\s*+(?P<path>\S.*+)",
    re.IGNORECASE | re.DOTALL,
)


def without_literals(text: str) -> str:
    """The text without literals and comments, its space folded; hints stay, their numbers go."""
    added = ADDED.fullmatch(text)
    if added is not None:
        return f"{added['name']} {LITERAL}"
    parts: list[str] = []
    at = 0
    while (token := TOKEN.search(text, at)) is not None:
        parts.append(text[at : token.start()])
        at = token.end()
        match token.lastgroup:
            case "word":
                parts.append(token.group())
            case "comment":
                parts.append(" ")
                at = end_of_comment(text, token)
            case _:
                parts.append(LITERAL)
    parts.append(text[at:])
    return _LIST.sub("?, ..", _SPACE.sub(" ", "".join(parts))).strip()


def sentence_without_literals(sentence: str) -> str:
    """A sentence about a statement without the literals that it cites."""
    return _CITED.sub(lambda found: found.group() if found.lastgroup == "word" else LITERAL, sentence)


def end_of_comment(text: str, token: re.Match[str]) -> int:
    """The end of a comment; a bracketed comment may hold other comments."""
    if token.group() != "/*":
        return token.end()
    depth = 0
    for bound in _BOUND.finditer(text, token.start()):
        depth += 1 if bound.group() == "/*" else -1
        if depth == 0:
            return bound.end()
    return len(text)
