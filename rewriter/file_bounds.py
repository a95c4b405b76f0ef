"""The bounds that files have in one column, looked up in domains: files [lo, hi] by ceiling search."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rewriter.domains.domain import Domain
from rewriter.domains.literals import Key, UnreadableKeyError
from rewriter.domains.positions import Line, Position, line
from rewriter.file_facts import Bounds

_NOTHING_KNOWN = Bounds(None, None, None)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnBounds:
    """Between which positions the values of each file lie, and which files may hold null, by the files' numbers.

    A file whose bound is not known may reach to that end of the line.
    """

    type_name: str
    lows: Sequence[Position]
    # Included, unlike where a range of a domain has ended: a bound may be the last position there is.
    highs: Sequence[Position]
    may_hold_null: Sequence[bool]

    @classmethod
    def of(cls, type_name: str, files: Iterable[Bounds | None]) -> ColumnBounds:
        """The bounds of files, of which None is not known."""
        on = line(type_name)
        known = [bounds or _NOTHING_KNOWN for bounds in files]
        lows = _positions(on, [bounds.low for bounds in known], on.bottom)
        highs = _positions(on, [bounds.high for bounds in known], on.top)
        for number, (low, high) in enumerate(zip(lows, highs, strict=True)):
            if low > high:
                # Such bounds are of no file. What they say is not worth guessing at.
                lows[number], highs[number], known[number] = on.bottom, on.top, _NOTHING_KNOWN
        return cls(type_name, lows, highs, [_may_hold_null(bounds) for bounds in known])

    def holding(self, numbers: Sequence[int], domain: Domain) -> Sequence[int]:
        """Those of the files that may hold a value of the domain: the first cut above `low` tells.

        Either the domain was entered below it, or it is entered there, and the file reaches that far. Files of
        which the domain is of another type may hold anything.
        """
        if domain.type_name != self.type_name:
            return numbers
        on = line(domain.type_name)
        # Above every bound, so that no file reaches a range behind the last one.
        cuts = (*domain.cuts, on.top + on.step)
        lows, highs, may_hold_null = self.lows, self.highs, self.may_hold_null
        with_null = {number for number in numbers if may_hold_null[number]} if domain.nullable else set()
        # Forty thousand files are common: one comprehension, and each file is looked up once.
        return [
            number
            for number in numbers
            if (at := bisect_right(cuts, lows[number])) % 2 or cuts[at] <= highs[number] or number in with_null
        ]


def _may_hold_null(bounds: Bounds) -> bool:
    """Whether there may be a null. A count that came without any bound is not believed."""
    return bounds.nulls != 0 or (bounds.low is None and bounds.high is None)


def _positions(on: Line, values: list[Key | None], unknown: Position) -> list[Position]:
    """The positions of values; of one that is missing or not of its type, the end of the line."""
    given = [value for value in values if value is not None]
    try:
        found = iter(on.positions(given))
    except UnreadableKeyError:
        return [_position(on, value, unknown) for value in values]
    return [unknown if value is None else next(found) for value in values]


def _position(on: Line, value: Key | None, unknown: Position) -> Position:
    try:
        return unknown if value is None else on.positions([value])[0]
    except UnreadableKeyError:
        return unknown
