"""Fingerprints of statements: equal for statements of one dashboard, whose texts differ in constants alone.

Two statements with one fingerprint may differ in all values that a user picks from a list or a calendar. They are
assumed to cost about the same, which is a guess: nothing but an estimate of time may depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from sqlglot import Token, TokenType

from rewriter.sql.statement import Statement
from rewriter.vocabulary.identifiers import quoted

# Long enough that two fingerprints of a process are never equal by chance, and short enough to keep thousands.
_DIGEST_BYTES = 16

_LITERALS = frozenset(
    {
        TokenType.NUMBER,
        TokenType.STRING,
        TokenType.RAW_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.HEX_STRING,
        TokenType.BIT_STRING,
        TokenType.BYTE_STRING,
    }
)
_LITERAL = "?"

# A list of constants repeats one of these: `?`, `- ?` or `DATE ?`, and the tuples `( ? )` that it may consist of.
_REPEATED_WIDTHS = (1, 2, 3)


def fingerprint(statement: Statement) -> str:
    """A digest of the statement's text without its constants, whatever the length of lists of them."""
    words: list[str] = []
    for word in _words(statement.tokens):
        if word == _LITERAL and words[-1:] == [_LITERAL]:
            continue  # strings beside one another are one string
        words.append(word)
        if word in {_LITERAL, ")"}:
            _drop_repeated(words)
    return blake2b("\n".join(words).encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _words(tokens: tuple[Token, ...]) -> Iterator[str]:
    before = -1
    for token in tokens:
        # The suffix of `1L` arrives as `::` and a type, at the offset of the number.
        if token.start != before:
            yield _word(token)
        before = token.start


def _word(token: Token) -> str:
    if token.token_type in _LITERALS:
        return _LITERAL
    folded = token.text.lower()
    return quoted(folded) if token.token_type is TokenType.IDENTIFIER else " ".join(folded.split())


def _drop_repeated(words: list[str]) -> None:
    """Remove the last of two equal members of a list: the comma and the last `?` of `x IN (?, ?`."""
    for width in _REPEATED_WIDTHS:
        comma = len(words) - width - 1
        if comma >= width and words[comma] == "," and words[comma + 1 :] == words[comma - width : comma]:
            del words[comma:]
            return
