"""The fingerprints of texts that were parsed before, so that a statement that is left alone is not parsed again.

A text is known again when it differs in strings, numbers, the length of lists of them and comments alone, as the
statements of a dashboard do. Two texts that are taken for one have one fingerprint; the reverse need not hold.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from hashlib import blake2b
from typing import Final

# Fingerprints have several texts, of as many tools and constants. One takes about 250 bytes.
_DIGESTS_MAX: Final = 20_000
# A text of this length is searched in two milliseconds, and parsed in a hundred.
_CHARS_MAX: Final = 64 * 1024
_DIGEST_BYTES: Final = 16
# Tells the digest of a text without its constants from that of a text that looks like it.
_WITHOUT_CONSTANTS: Final = b"constants"

# Text in which the patterns below may not find the constants: escapes, Jinja (whose comments sqlglot knows), and
# the sign that stands for a constant.
_UNCERTAIN: Final = re.compile(r"[\\\0]|\{[#%{]")
# Parameters, whose number sqlglot takes for a name. A backslash stands for nested comments, which Spark reads as
# such, and for a comment without an end.
_UNCERTAIN_REST: Final = re.compile(r"[\\$@]")
# A quoted name, a hint or a comment; or a constant.
_CONSTANT: Final = re.compile(
    r"(`[^`]*`|--[^\r\n]*|/\*.*?(?:\*/|\Z))|'[^']*'|\"[^\"]*\"|(?<![\w.])[0-9]+(?:\.[0-9]+)?(?![\w.])", re.DOTALL
)
_CONSTANTS: Final = re.compile(r"\0(?:\s*,\s*\0)+")


class KnownTexts:
    """The fingerprints of the texts that were parsed last, of all sessions. Safe to use from several threads."""

    def __init__(self) -> None:
        self._fingerprints: OrderedDict[bytes, str] = OrderedDict()

    def fingerprint(self, text: str) -> str | None:
        """The fingerprint of a text, if it or one like it was parsed."""
        exact = _digest(text)
        found = self._fingerprints.get(exact)
        like = without_constants(text) if found is None else None
        if like is not None:
            found = self._fingerprints.get(_digest(like, _WITHOUT_CONSTANTS))
            if found is not None:
                # The next look finds the exact text.
                self._remember(exact, found)
        return found

    def parsed(self, text: str, fingerprint: str) -> None:
        """Remember the fingerprint of a text."""
        self._remember(_digest(text), fingerprint)
        like = without_constants(text)
        if like is not None:
            self._remember(_digest(like, _WITHOUT_CONSTANTS), fingerprint)

    def _remember(self, digest: bytes, fingerprint: str) -> None:
        self._fingerprints[digest] = fingerprint
        if len(self._fingerprints) > _DIGESTS_MAX:
            _ = self._fingerprints.popitem(last=False)


def without_constants(text: str) -> str | None:
    r"""The text without comments, a sign for each list of constants; None where it is not certain what is one.

    >>> without_constants("SELECT a1 FROM t WHERE x IN (1, 2.5) AND `d 1` = DATE '2024-01-01' -- it's 1")
    'SELECT a1 FROM t WHERE x IN (\x00) AND `d 1` = DATE \x00  '
    """
    if len(text) > _CHARS_MAX or _UNCERTAIN.search(text):
        return None
    without = _CONSTANTS.sub("\0", _CONSTANT.sub(_kept, text))
    return None if _UNCERTAIN_REST.search(without) else without


def _kept(found: re.Match[str]) -> str:
    word: str | None = found[1]
    if word is None:
        return "\0"
    is_bracketed = word.startswith("/*")
    if is_bracketed and ("/*" in word[2:] or not word[2:].endswith("*/")):
        return "\\"
    return word if word.startswith(("`", "/*+")) else " "


def _digest(text: str, kind: bytes = b"") -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES, person=kind).digest()
