r"""Texts of statements as they are kept: without secrets always, and without literals and comments on request.

The text need not parse. It is cut into Spark's tokens, and words, names in backquotes and operators stay. Where a
quote or a comment has no end, everything from there on goes.

>>> without_literals("SELECT 'a', 1.5e3 FROM t1 WHERE ds IN (DATE'2024-01-01') OR ds = (r'\\') -- anna")
'SELECT ?, .. FROM t1 WHERE ds IN (DATE?) OR ds = (?)'
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from proxy.history.record import Record
from proxy.session.explain.view import NarrowingView, ScanView
from rewriter.sql.classify import COMMENT_OR_SPACE

LITERAL: Final = "?"

_STRINGS: Final = r"""
    \b[rR]'[^']*+' | \b[rR]"[^"]*+" | '(?:[^'\\]|\\.)*+' | "(?:[^"\\]|\\.)*+"
"""
# A word that begins with a digit is a number, or else the rare name that begins so.
_REST: Final = r" | (?P<open>['\"`].*+) | (?P<number>\.?\d[\w.]*+) | (?P<word>[^\W\d]\w*+)"
_TOKEN: Final = re.compile(
    rf"(?P<string>{_STRINGS}) | (?P<name>`(?:[^`]|``)*+`) | (?P<line>--(?:\\\n|[^\r\n])*+)"
    rf"| (?P<block>/\*(?!\+)){_REST}",
    re.VERBOSE | re.DOTALL,
)
# Of sentences about a statement, which cite its conditions between backquotes.
_CITED: Final = re.compile(rf"(?P<string>{_STRINGS}){_REST.replace('`', '')}", re.VERBOSE | re.DOTALL)
_BOUND: Final = re.compile(r"/\*|\*/")
_LIST: Final = re.compile(r"\?(?:\s*+,\s*+\?)++")
_SPACE: Final = re.compile(r"\s++")

_SETTING: Final = re.compile(rf"(?:{COMMENT_OR_SPACE})*+(?P<name>SET\b[^='\"]*+=).*+", re.IGNORECASE | re.DOTALL)
_ADDED: Final = re.compile(
    rf"(?:{COMMENT_OR_SPACE})*+(?P<name>(?:ADD|LIST|DELETE)\s++(?:JAR|FILE|ARCHIVE)S?\b).*+",
    re.IGNORECASE | re.DOTALL,
)
# An option or a property whose name says that its value is a secret, as in OPTIONS (password 'x').
_SECRET: Final = re.compile(
    r"(?P<name>(?:secret|passw(?:or)?d|token|credential|access[._]?key|api[._]?key)[\w.]*+['\"`]?\s*+[=,]?\s*+)"
    r"(?:'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\")",
    re.IGNORECASE | re.DOTALL,
)


def without_secrets(text: str) -> str:
    """The text without the value of a SET, and without values of options that are named like secrets.

    >>> without_secrets("SET fs.s3a.secret.key=abc")
    'SET fs.s3a.secret.key=?'
    """
    setting = _SETTING.fullmatch(text)
    if setting is not None:
        return f"{setting['name']}{LITERAL}"
    return _SECRET.sub(rf"\g<name>{LITERAL}", text)


def without_literals(text: str) -> str:
    """The text without literals and comments, its space folded; hints stay, their numbers go."""
    added = _ADDED.fullmatch(text)
    if added is not None:
        return f"{added['name']} {LITERAL}"
    parts: list[str] = []
    at = 0
    while (found := _TOKEN.search(text, at)) is not None:
        parts.append(text[at : found.start()])
        at = found.end()
        match found.lastgroup:
            case "word" | "name":
                parts.append(found.group())
            case "line":
                parts.append(" ")
            case "block":
                parts.append(" ")
                at = _end_of_comment(text, found.start())
            case _:
                parts.append(LITERAL)
    parts.append(text[at:])
    return _LIST.sub("?, ..", _SPACE.sub(" ", "".join(parts))).strip()


def sentence_without_literals(sentence: str) -> str:
    """A sentence about a statement without the literals that it cites."""
    return _CITED.sub(lambda found: found.group() if found.lastgroup == "word" else LITERAL, sentence)


def _end_of_comment(text: str, start: int) -> int:
    """The end of a comment, which may hold others."""
    depth = 0
    for bound in _BOUND.finditer(text, start):
        depth += 1 if bound.group() == "/*" else -1
        if depth == 0:
            return bound.end()
    return len(text)


def kept(record: Record, *, literals: bool) -> Record:
    """The record as it may be kept and shown."""
    shown = msgspec.structs.replace(
        record,
        original=kept_text(record.original, literals=literals),
        rewritten=None if record.rewritten is None else kept_text(record.rewritten, literals=literals),
    )
    if literals:
        return shown
    return msgspec.structs.replace(
        shown,
        cause=_sentence(record.cause),
        scans=[_scan(scan) for scan in record.scans],
        # It quotes the statement, and values of rows.
        message=None,
    )


def kept_text(text: str, *, literals: bool) -> str:
    """The text as it may be kept and shown."""
    text = without_secrets(text)
    return text if literals else without_literals(text)


def _sentence(sentence: str | None) -> str | None:
    return None if sentence is None else sentence_without_literals(sentence)


def _scan(scan: ScanView) -> ScanView:
    reducers = [
        msgspec.structs.replace(one, join=without_literals(one.join), key_query=without_literals(one.key_query))
        for one in scan.reducers
    ]
    return msgspec.structs.replace(
        scan,
        reducers=reducers,
        predicate=None if scan.predicate is None else without_literals(scan.predicate),
        would=None if scan.would is None else _would(scan.would),
        cause=_sentence(scan.cause),
    )


def _would(found: NarrowingView) -> NarrowingView:
    predicate = None if found.predicate is None else without_literals(found.predicate)
    return msgspec.structs.replace(found, predicate=predicate)
