"""What the statements of one dashboard have in common: their text without its constants.

Two statements of one shape may differ in all that a user picks from a list or a calendar. They are taken to cost
about the same, which is a guess: nothing but an estimate of time may rest on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

from sqlglot import Token, TokenType

from rewriter.sql.statement import Statement
from rewriter.vocabulary.identifiers import quoted

# Enough that two shapes of a process never meet by chance, and little to keep for thousands.
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
    """A digest of the statement's text without its constants, however many a list of them holds."""
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
    """Take away the last of two equal members of a list: of `x IN (?, ?`, the comma and what follows."""
    for width in _REPEATED_WIDTHS:
        comma = len(words) - width - 1
        if comma >= width and words[comma] == "," and words[comma + 1 :] == words[comma - width : comma]:
            del words[comma:]
            return
