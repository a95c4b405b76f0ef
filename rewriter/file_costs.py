"""What it costs to read between the keys of a column that files have bounds in."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import sub

from rewriter.domains.gap_costs import Distance
from rewriter.domains.positions import Position
from rewriter.file_bounds import ColumnBounds

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
    # Whether files have but a part of the values each, as in a sorted table; a single file may be sorted too.
    is_clustered: bool

    @classmethod
    def of(cls, bounds: ColumnBounds, sizes: Iterable[int]) -> FileCosts:
        """The costs of files by their bounds in one column, and by their bytes."""
        changes: dict[int, int] = defaultdict(int)
        lows, highs = (_on_scale(bounds.type_name, ends) for ends in (bounds.lows, bounds.highs))
        for low, high, size_bytes in zip(lows, highs, sizes, strict=True):
            slope = (size_bytes << _FRACTION_BITS) // (high + 1 - low)
            changes[low] += slope
            changes[high + 1] -= slope
        places, slopes, totals = sorted(changes), [0], [0]
        for place, next_place in zip(places, [*places[1:], *places[-1:]], strict=True):
            slopes.append(slopes[-1] + changes[place])
            totals.append(totals[-1] + slopes[-1] * (next_place - place))
        return cls(bounds.type_name, places, slopes, totals, _is_clustered(lows, highs))

    def below(self, positions: Sequence[Position]) -> Sequence[int]:
        """For each of some ascending positions, how many bytes lie below it."""
        found = []
        for place in _on_scale(self.type_name, positions):
            at = bisect_right(self.places, place)
            beyond = place - self.places[at - 1] if at else 0
            found.append(self.totals[max(0, at - 1)] + self.slopes[at] * beyond >> _FRACTION_BITS)
        return found


def _is_clustered(lows: Sequence[int], highs: Sequence[int]) -> bool:
    """Whether files span at most half of what all of them do, in mean."""
    if len(lows) < _FILES_TOLD_APART:
        return True
    spans, whole = sum(map(sub, highs, lows)), max(highs) - min(lows)
    return bool(spans * 2 <= whole * len(lows))


# A single file spans all of what there is, in whatever order.
_FILES_TOLD_APART = 2


def _on_scale(type_name: str, positions: Sequence[Position]) -> Sequence[int]:
    """Positions as numbers: strings by their first bytes, which tell how far they are from one another."""
    if type_name != "string":
        return positions
    return [Distance(type_name).below([position])[0] for position in positions]
