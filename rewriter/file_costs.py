"""What it costs to read between the keys of a column that files have bounds in."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rewriter.costs import Distance
from rewriter.file_bounds import ColumnBounds
from rewriter.positions import Position

# Bytes for each step along the line are whole numbers, so that what is added where a file begins is gone where it
# has ended. The bits beyond those of a string's position (128) keep them from being nothing.
_FRACTION_BITS = 160


@dataclass(frozen=True, slots=True, eq=False)
class FileCosts:
    """The bytes of files, each spread evenly between its bounds.

    Each step from one of the `places` to the next adds the slope there; `totals` are what lies below each place.
    """

    type_name: str
    places: Sequence[int]
    slopes: Sequence[int]
    totals: Sequence[int]

    @classmethod
    def of(cls, bounds: ColumnBounds, sizes: Iterable[int]) -> FileCosts:
        """The costs of files by their bounds in one column, and by their bytes."""
        changes: dict[int, int] = defaultdict(int)
        lows, highs = _on_scale(bounds.type_name, bounds.lows), _on_scale(bounds.type_name, bounds.highs)
        for low, high, size_bytes in zip(lows, highs, sizes, strict=True):
            slope = (size_bytes << _FRACTION_BITS) // (high + 1 - low)
            changes[low] += slope
            changes[high + 1] -= slope
        places, slopes, totals = sorted(changes), [0], [0]
        for place, next_place in zip(places, [*places[1:], *places[-1:]], strict=True):
            slopes.append(slopes[-1] + changes[place])
            totals.append(totals[-1] + slopes[-1] * (next_place - place))
        return cls(bounds.type_name, places, slopes, totals)

    def below(self, positions: Sequence[Position]) -> Sequence[int]:
        """For each of some ascending positions, how many bytes lie below it."""
        found = []
        for place in _on_scale(self.type_name, positions):
            at = bisect_right(self.places, place)
            beyond = place - self.places[at - 1] if at else 0
            found.append(self.totals[max(0, at - 1)] + self.slopes[at] * beyond >> _FRACTION_BITS)
        return found


def _on_scale(type_name: str, positions: Sequence[Position]) -> Sequence[int]:
    """Positions as numbers: strings by their first bytes, which tell how far they are from one another."""
    if type_name != "string":
        return positions
    return [Distance(type_name).below([position])[0] for position in positions]
