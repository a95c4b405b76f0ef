"""Two texts of a statement side by side, with the parts that only one of them has."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Final

# Words of both texts together that are compared; of longer ones nothing is marked. The time is the square of it.
WORDS_MAX: Final = 6_000

_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")

Parts = list[tuple[str, bool]]


def compared(original: str, rewritten: str) -> tuple[Parts, Parts]:
    """Both texts in parts, each with whether only this one has it.

    >>> compared("FROM f", "FROM (SELECT * FROM f) AS f")[1]
    [('FROM ', False), ('(SELECT * FROM f) AS ', True), ('f', False)]
    """
    left, right = _WORD.findall(original), _WORD.findall(rewritten)
    if len(left) + len(right) > WORDS_MAX:
        return [(original, False)], [(rewritten, False)]
    # Words before the first insertion and behind the last one are equal in place.
    begin = _equal(zip(left, right, strict=False))
    end = _equal(zip(reversed(left[begin:]), reversed(right[begin:]), strict=False))
    own, inserted = _Parts(), _Parts()
    own.add(left[:begin], is_own=False)
    inserted.add(right[:begin], is_own=False)
    a, b = left[begin : len(left) - end], right[begin : len(right) - end]
    for kind, a1, a2, b1, b2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        own.add(a[a1:a2], is_own=kind != "equal")
        inserted.add(b[b1:b2], is_own=kind != "equal")
    own.add(left[len(left) - end :], is_own=False)
    inserted.add(right[len(right) - end :], is_own=False)
    return own.parts, inserted.parts


def _equal(pairs: Iterable[tuple[str, str]]) -> int:
    """The number of pairs up to the first whose words differ."""
    count = 0
    for one, other in pairs:
        if one != other:
            break
        count += 1
    return count


class _Parts:
    """Parts of a text, each as long as it can be."""

    def __init__(self) -> None:
        self.parts: Parts = []

    def add(self, words: list[str], *, is_own: bool) -> None:
        if not words:
            return
        text = "".join(words)
        if self.parts and self.parts[-1][1] == is_own:
            text = self.parts.pop()[0] + text
        self.parts.append((text, is_own))
