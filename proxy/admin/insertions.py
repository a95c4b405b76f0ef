"""Two texts of a statement side by side, with the parts that only one of them has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")

Parts = list[tuple[str, bool]]


def compared(original: str, rewritten: str) -> tuple[Parts, Parts]:
    """Both texts in parts, each with whether only this one has it.

    The rewritten text is the original with insertions, so that one walk through both finds them. Where it is not,
    as where one of them was cut, all between the words that they begin and end with counts as different.

    >>> compared("FROM f", "FROM (SELECT * FROM f) AS f")[1]
    [('FROM ', False), ('(SELECT * FROM f) AS ', True), ('f', False)]
    """
    left, right = _WORD.findall(original), _WORD.findall(rewritten)
    begin = _equal(zip(left, right, strict=False))
    end = _equal(zip(reversed(left[begin:]), reversed(right[begin:]), strict=False))
    middle, longer = left[begin : len(left) - end], right[begin : len(right) - end]
    inserted = list(_inserted(middle, longer))
    is_cut = len(longer) - sum(inserted) < len(middle)

    def whole(are_own: list[bool]) -> list[bool]:
        return [False] * begin + are_own + [False] * end

    own = whole([is_cut] * len(middle))
    return _parts(left, own), _parts(right, whole([True] * len(longer) if is_cut else inserted))


def _inserted(words: Sequence[str], longer: Iterable[str]) -> Iterator[bool]:
    """Yield for each word of the longer text whether it is inserted between words of the shorter one."""
    place = 0
    for word in longer:
        is_next = place < len(words) and word == words[place]
        place += is_next
        yield not is_next


def _parts(words: Iterable[str], are_own: Iterable[bool]) -> Parts:
    """The parts of a text, each as long as it can be."""
    runs = groupby(zip(words, are_own, strict=True), key=itemgetter(1))
    return [("".join(word for word, _ in run), is_own) for is_own, run in runs]


def _equal(pairs: Iterable[tuple[str, str]]) -> int:
    """The number of pairs up to the first whose words differ."""
    count = 0
    for one, other in pairs:
        if one != other:
            break
        count += 1
    return count
