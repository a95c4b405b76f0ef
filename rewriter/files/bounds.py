"""Bounds of files in one column: the files that may hold values of a domain, and the bytes along the column.

Files [low, high] are looked up by ceiling search.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import sub

from rewriter.domains.domain import Domain
from rewriter.domains.gap_costs import Distance
from rewriter.domains.literals import Key, UnreadableKeyError
from rewriter.domains.positions import Line, Position, line
from rewriter.files.file_facts import Bounds

_NOTHING_KNOWN = Bounds(None, None, None)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnBounds:
    """The positions between which the values of each file lie, and the files that may hold null, by number.

    A file whose bound is not known may reach to that end of the line.
    """

    type_name: str
    lows: Sequence[Position]
    # Included, unlike the end of a domain's range: a bound may be the last position of the line.
    highs: Sequence[Position]
    may_hold_null: Sequence[bool]

    @classmethod
    def of(cls, type_name: str, files: Iterable[Bounds | None]) -> ColumnBounds:
        """The bounds of files; None stands for a file whose bounds are not known."""
        on = line(type_name)
        known = [bounds or _NOTHING_KNOWN for bounds in files]
        lows = _positions(on, [bounds.low for bounds in known], on.bottom)
        highs = _positions(on, [bounds.high for bounds in known], on.top)
        for number, (low, high) in enumerate(zip(lows, highs, strict=True)):
            if low > high:
                # No file has such bounds: they count as unknown.
                lows[number], highs[number], known[number] = on.bottom, on.top, _NOTHING_KNOWN
        return cls(type_name, lows, highs, [_may_hold_null(bounds) for bounds in known])

    @classmethod
    def of_row_groups(cls, type_name: str, files: Iterable[Bounds | None]) -> ColumnBounds:
        """The bounds of each file's runs of row groups, or of the file itself if it has none."""
        return cls.of(type_name, (part for bounds in files for part in _parts(bounds)))

    def holding(self, numbers: Sequence[int], domain: Domain) -> Sequence[int]:
        """The files that may hold a value of the domain, decided by the first cut above `low`.

        Either `low` is in the domain, or the domain begins at that cut and the file reaches that far. All files
        may hold a value of a domain of another type.
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


def _parts(bounds: Bounds | None) -> Iterable[Bounds | None]:
    if bounds is None or not bounds.row_groups:
        return (bounds,)
    return (Bounds(run.low, run.high, None) for run in bounds.row_groups)


def _may_hold_null(bounds: Bounds) -> bool:
    """True if there may be a null. A count without any bound is not used."""
    return bounds.nulls != 0 or (bounds.low is None and bounds.high is None)


def _positions(on: Line, values: list[Key | None], unknown: Position) -> list[Position]:
    """The positions of values; the end of the line for one that is missing or not of its type."""
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


# Bytes for each step along the line are whole numbers, so that the amount added at a file's beginning is removed
# exactly at its end. The bits beyond those of a string's position (128) prevent a result of 0.
_FRACTION_BITS = 160


@dataclass(frozen=True, slots=True, eq=False)
class FileCosts:
    """The bytes of files, each spread evenly between its bounds.

    Each step from one of the `places` to the next adds the slope there; `totals` are the bytes below each place.
    """

    type_name: str
    places: Sequence[int]
    slopes: Sequence[int]
    totals: Sequence[int]
    # True if each file has only a part of the values, as in a sorted table; a single file may be sorted too.
    is_clustered: bool

    @classmethod
    def of(cls, bounds: ColumnBounds, sizes: Iterable[int], of_files: ColumnBounds | None = None) -> FileCosts:
        """The costs of files by their bounds in one column, and by their bytes.

        `of_files` are the files' own bounds where the others are those of parts of them.
        """
        changes: dict[int, int] = defaultdict(int)
        lows, highs = (on_scale(bounds.type_name, ends) for ends in (bounds.lows, bounds.highs))
        for low, high, size_bytes in zip(lows, highs, sizes, strict=True):
            slope = (size_bytes << _FRACTION_BITS) // (high + 1 - low)
            changes[low] += slope
            changes[high + 1] -= slope
        places, slopes, totals = sorted(changes), [0], [0]
        for place, next_place in zip(places, [*places[1:], *places[-1:]], strict=True):
            slopes.append(slopes[-1] + changes[place])
            totals.append(totals[-1] + slopes[-1] * (next_place - place))
        return cls(bounds.type_name, places, slopes, totals, _is_clustered(of_files or bounds))

    def below(self, positions: Sequence[Position]) -> Sequence[int]:
        """The number of bytes below each of some ascending positions."""
        found = []
        for place in on_scale(self.type_name, positions):
            at = bisect_right(self.places, place)
            beyond = place - self.places[at - 1] if at else 0
            found.append(self.totals[max(0, at - 1)] + self.slopes[at] * beyond >> _FRACTION_BITS)
        return found


def _is_clustered(bounds: ColumnBounds) -> bool:
    """True if files span at most half of what all of them do, in mean."""
    lows, highs = (on_scale(bounds.type_name, ends) for ends in (bounds.lows, bounds.highs))
    if len(lows) < _FILES_TOLD_APART:
        return True
    spans, whole = sum(map(sub, highs, lows)), max(highs) - min(lows)
    return bool(spans * 2 <= whole * len(lows))


# A single file spans all values, in whatever order.
_FILES_TOLD_APART = 2


def on_scale(type_name: str, positions: Sequence[Position]) -> Sequence[int]:
    """Positions as numbers: strings by their first bytes, which show how far they are from one another."""
    if type_name != "string":
        return positions
    return [Distance(type_name).below([position])[0] for position in positions]
