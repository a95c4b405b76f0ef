"""The fingerprints of texts that were parsed before, so that a statement that is left alone is not parsed again.

A text is known again when it differs in strings, numbers and the length of lists of them alone, as the statements
of a dashboard do. Two texts that are taken for one have one fingerprint; the reverse need not hold.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from hashlib import blake2b
from typing import Final

# Fingerprints have several texts, of as many tools. One takes about 250 bytes.
_TEXTS_MAX: Final = 20_000
# A text of this length is searched in two milliseconds, and parsed in a hundred.
_CHARS_MAX: Final = 64 * 1024
_DIGEST_BYTES: Final = 16

# Text whose constants are not certain to be what the patterns below say: escapes, strings in double quotes, Jinja
# (whose comments sqlglot knows), parameters, and the sign that stands for a constant.
_UNCERTAIN: Final = re.compile(r'["\\\0$@]|\{[#%{]')
# Spark nests comments.
_COMMENT_BEGINS: Final = "/*"
# A quoted name or a comment, which are kept, or a constant.
_CONSTANT: Final = re.compile(
    r"(`[^`]*`|--[^\r\n]*|/\*.*?\*/)|'[^']*'|(?<![\w.])[0-9]+(?:\.[0-9]+)?(?![\w.])", re.DOTALL
)
_CONSTANTS: Final = re.compile(r"\0(?:\s*,\s*\0)+")


class KnownTexts:
    """The fingerprints of the texts that were parsed last, of all sessions. Safe to use from several threads."""

    def __init__(self) -> None:
        self._fingerprints: OrderedDict[bytes, str] = OrderedDict()

    def fingerprint(self, text: str) -> str | None:
        """The fingerprint of a text, if one like it was parsed."""
        digest = _digest(text)
        return None if digest is None else self._fingerprints.get(digest)

    def parsed(self, text: str, fingerprint: str) -> None:
        """Remember the fingerprint of a text."""
        digest = _digest(text)
        if digest is None:
            return
        self._fingerprints[digest] = fingerprint
        if len(self._fingerprints) > _TEXTS_MAX:
            _ = self._fingerprints.popitem(last=False)


def without_constants(text: str) -> str | None:
    r"""The text with a sign for each list of constants; None where it is not certain what is one.

    >>> without_constants("SELECT a1 FROM t WHERE x IN (1, 2.5) AND `d 1` = DATE '2024-01-01' -- it's 1")
    "SELECT a1 FROM t WHERE x IN (\x00) AND `d 1` = DATE \x00 -- it's 1"
    """
    if len(text) > _CHARS_MAX or _UNCERTAIN.search(text) or text.count(_COMMENT_BEGINS) > 1:
        return None
    return _CONSTANTS.sub("\0", _CONSTANT.sub(_kept, text))


def _kept(found: re.Match[str]) -> str:
    return found[1] or "\0"


def _digest(text: str) -> bytes | None:
    known_by = without_constants(text)
    if known_by is None:
        return None
    return blake2b(known_by.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()
