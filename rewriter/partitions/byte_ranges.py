"""Sets of byte strings as half-open ranges in byte order, which an ordered index can look up."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


def successor(prefix: bytes) -> bytes:
    r"""The first byte string behind all that start with the prefix.

    >>> successor(b"a\xff")
    b'b'
    """
    stem = prefix.rstrip(b"\xff")
    if not stem:
        raise ValueError("nothing stands behind all strings that start with bytes 255")
    return stem[:-1] + bytes((stem[-1] + 1,))


class ByteRange(NamedTuple):
    """The strings from `start` up to `stop`, which is not one of them."""

    start: bytes
    stop: bytes

    @classmethod
    def of_prefix(cls, prefix: bytes) -> ByteRange:
        """All strings that start with the prefix."""
        return cls(prefix, successor(prefix))


@dataclass(frozen=True)
class ByteRanges:
    """Ascending ranges that do not overlap and are not empty.

    Ranges that touch are not joined: the range of the value 5 and that of the value 6 remain ranges of one value
    each, which the ranges of a next column can extend.
    """

    ranges: tuple[ByteRange, ...]

    @classmethod
    def union(cls, ranges: Iterable[ByteRange]) -> ByteRanges:
        """The union of the ranges, which may come in any order, overlap and be empty."""
        merged: list[ByteRange] = []
        for start, stop in sorted(ranges):
            if merged and start < merged[-1].stop:
                merged[-1] = ByteRange(merged[-1].start, max(merged[-1].stop, stop))
            elif start < stop:
                merged.append(ByteRange(start, stop))
        return cls(tuple(merged))

    @classmethod
    def intersection(cls, sets: Sequence[ByteRanges]) -> ByteRanges:
        """The intersection of one or more sets, by one sweep over all their ends."""
        if len(sets) == 1:
            return sets[0]
        return cls(tuple(_covered(sorted(_ends(sets)), len(sets))))

    @cached_property
    def _starts(self) -> list[bytes]:
        return [start for start, _ in self.ranges]

    def __contains__(self, string: bytes) -> bool:
        index = bisect_right(self._starts, string) - 1
        return index >= 0 and string < self.ranges[index].stop


def _ends(sets: Iterable[ByteRanges]) -> Iterator[tuple[bytes, int]]:
    """The places where ranges open (1) and close (-1). Sorted, ends come before starts at the same place."""
    for members in sets:
        for start, stop in members.ranges:
            yield start, 1
            yield stop, -1


def _covered(ends: Iterable[tuple[bytes, int]], depth_wanted: int) -> Iterator[ByteRange]:
    depth, start = 0, b""
    for place, step in ends:
        if depth == depth_wanted and start < place:
            yield ByteRange(start, place)
        depth += step
        start = place
