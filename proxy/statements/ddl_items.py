"""The items of a DDL statement: its words in order, each string and each pair of parentheses as one item.

They are sqlglot's tokens, with offsets into the text. Its parser is not asked: it knows other clauses than Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot.errors import SqlglotError

from rewriter.sql.bounded_parser import tokenize

# Symbols of items that are no keyword.
QUOTED_NAME: Final = "`"
STRING: Final = "''"
NUMBER: Final = "0"
GROUP: Final = "()"
# Strings of other kinds (r'..', x'..'), and words that run into something.
_UNKNOWN: Final = "?"

_PIECE: Final = re.compile(r"\S+")
_NO_SIGN: Final = re.compile(r"[\w'\"`\s]")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_NUMBER: Final = re.compile(r"[0-9][0-9A-Za-z_.]*")
# The depth of nested parentheses. Each group keeps its whole text, inner groups included.
_DEPTH_MAX: Final = 50
# Spark lets a backslash at the end of a line carry a `--` comment on, sqlglot does not. Spark nests comments but
# not hints: within a comment, `/*+` begins none. `${` is replaced before the text is read.
_UNLIKE: Final = re.compile(r"\\\r?\n|\$\{|/\*\+")


@dataclass(frozen=True, slots=True)
class Item:
    """One word, string, number, sign or pair of parentheses; `end` is behind its last character."""

    symbol: str
    text: str
    start: int
    end: int
    # The items between the parentheses.
    members: tuple[Item, ...] = ()

    @property
    def name(self) -> str | None:
        """The item as a name, without its quotes; None where it is no name."""
        if self.symbol == QUOTED_NAME:
            return self.text[1:-1].replace("``", "`")
        return self.text if _WORD.fullmatch(self.text) else None


def ddl_items(text: str) -> tuple[Item, ...] | None:
    """The items of a text; None where Spark may read it otherwise, or where parentheses do not close."""
    if _UNLIKE.search(text):
        return None
    try:
        pieces = list(_pieces(text))
    except SqlglotError:
        return None
    open_groups: list[tuple[int, list[Item]]] = [(0, [])]
    for piece in pieces:
        if len(open_groups) > _DEPTH_MAX:
            return None
        if piece.symbol == "(":
            open_groups.append((piece.start, []))
        elif piece.symbol == ")":
            start, members = open_groups.pop()
            if not open_groups:
                return None
            open_groups[-1][1].append(Item(GROUP, text[start : piece.end], start, piece.end, tuple(members)))
        else:
            open_groups[-1][1].append(piece)
    return tuple(open_groups[0][1]) if len(open_groups) == 1 else None


def shape(items: Sequence[Item]) -> str:
    """The symbols, each with a space behind it, for a regular expression to look through."""
    return "".join(f"{item.symbol} " for item in items)


def separated(items: Sequence[Item]) -> list[list[Item]]:
    """The parts of a list between its commas. Commas between the `<` and `>` of a type do not count."""
    parts: list[list[Item]] = [[]]
    depth = 0
    for before, item in zip([None, *items], items, strict=False):
        if item.symbol == "<" and before is not None and before.symbol in {"ARRAY", "MAP", "STRUCT"}:
            depth += 1
        elif depth and set(item.symbol) == {">"}:
            depth -= len(item.symbol)
        if item.symbol == "," and depth <= 0:
            parts.append([])
        else:
            parts[-1].append(item)
    return parts


def _pieces(text: str) -> Iterator[Item]:
    """The items of a text, but for groups."""
    behind = 0
    for token in tokenize(text):
        raw = text[token.start : token.end + 1]
        # `30L` is three tokens in one place.
        if token.start < behind or not raw:
            continue
        behind = token.end + 1
        if raw[0] == "`":
            yield Item(QUOTED_NAME, raw, token.start, behind)
        elif raw[0] in "'\"":
            yield Item(STRING, raw, token.start, behind)
        else:
            # `PARTITIONED BY` is one token.
            for piece in _PIECE.finditer(raw):
                start = token.start + piece.start()
                yield Item(_symbol(piece[0]), piece[0], start, start + len(piece[0]))


def _symbol(piece: str) -> str:
    if _WORD.fullmatch(piece):
        return piece.upper()
    if _NUMBER.fullmatch(piece):
        return NUMBER
    return _UNKNOWN if _NO_SIGN.search(piece) else piece
