"""Widening of covers: a cover with too many ranges for its consumer gets larger, and so has fewer of them.

A wider cover holds every row of the narrower one; soundness needs no more of this module. The places to widen are
chosen by cost, which `rewriter.domains.gap_costs` knows or guesses:

1. A gap is closed if it has no partition, or so few that fetching them costs the consumer less than one more
   range: in `ds IN (1, 5, 9)` over partitions 1, 5, 6 and 9, 1 to 5 is one range. A partition 3 that appears later
   is read although it has no key; a range never excludes a key.
2. The gaps that cost least are closed, wherever they are. The outside of a column's ranges is a gap too: when it
   is closed, the column no longer restricts its box.
3. If that costs much, or boxes are too many, neighbours along one column are joined to one box each.
4. Trailing columns are dropped, or all columns but one.
5. Every row is let through, and no condition is needed.

For one column no cover of as few ranges is cheaper. For two columns the cover keeps a few percent more than the
best one, and half as much again at the worst; the tests compare it with every possible cover.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from rewriter.domains.cover import Box, Cover
from rewriter.domains.domain import Domain
from rewriter.domains.gap_costs import Costs, Distance, Gaps


@dataclass(frozen=True, slots=True)
class Consumer:
    """A reader of filters with its limits: it accepts at most that many points, or that many ranges.

    `unordered` names the columns that it may order otherwise than Spark does, as a metastore's database does with
    strings: a range could lose a key there, so these columns get points or no condition.
    """

    points_max: int
    ranges_max: int
    unordered: frozenset[str] = frozenset()
    # It fetches that many partitions in the time that one more range takes it.
    range_partitions: int = 0

    @property
    def accepts_nothing(self) -> bool:
        """True if every filter is too much."""
        return not self.points_max and not self.ranges_max

    def accepts(self, cover: Cover) -> bool:
        """True if the cover is within the limits. Null is one short test, and not counted."""
        domains = [pair for box in cover.boxes for pair in box.domains]
        if _points(domains, self.points_max) <= self.points_max:
            return True
        unordered = [pair for pair in domains if pair[0] in self.unordered]
        ranges = sum(len(domain.cuts) // 2 for column, domain in domains if column not in self.unordered)
        return ranges <= self.ranges_max and _points(unordered, self.points_max) <= self.points_max


def _points(domains: Sequence[tuple[str, Domain]], most: int) -> float:
    """The number of values in the domains, or any number above `most`."""
    ranges = sum(len(domain.cuts) for _, domain in domains) // 2
    return math.inf if ranges > most else sum(domain.width for _, domain in domains)


def widen(cover: Cover, columns: Sequence[str], consumer: Consumer, costs: Mapping[str, Costs]) -> Cover:
    """The cheapest cover found that holds all rows of this one and that the consumer accepts.

    `columns` are the fact's, leading one first. A column without costs of its type is judged by distance.
    """
    return _Widening(columns, consumer, costs).of(cover)


# Leading columns along which boxes are joined, or that are kept alone. Each is tried for each number of columns:
# the steps grow with the square of it, and tables with more than three partition columns are rare.
_COLUMNS_MAX = 4

# A gap of a cover: the part of the fact that closing it would add, the box, the column, and the number of the
# range before it. A plain tuple, for there can be hundreds of thousands.
_Gap: TypeAlias = tuple[float, int, str, int]


class _Widening:
    """The steps for one consumer and one fact."""

    def __init__(self, columns: Sequence[str], consumer: Consumer, costs: Mapping[str, Costs]) -> None:
        self._columns = columns
        self._consumer = consumer
        self._costs = costs

    def of(self, cover: Cover) -> Cover:
        gaps = self._gaps(cover)
        closed = self._closed(cover, gaps)
        if len(gaps) <= self._consumer.ranges_max and self._consumer.accepts(closed):
            return closed
        if self._consumer.accepts(cover):
            return cover
        found = [wider for wider in (closed, *self._coarser(cover)) if self._consumer.accepts(wider)]
        return min(found, key=self._kept, default=Cover.all())

    def _coarser(self, cover: Cover) -> Iterator[Cover]:
        """Covers of fewer boxes and of fewer columns, some of which may still be too much."""
        yield from self._with_fewer_boxes(cover, self._columns)
        for columns in self._fewer_columns():
            projected = _projected(cover, columns)
            yield self._closed(projected, self._gaps(projected))
            yield from self._with_fewer_boxes(projected, columns)

    def _with_fewer_boxes(self, cover: Cover, columns: Sequence[str]) -> Iterator[Cover]:
        """Join neighbours along each column: to as many boxes as there may be ranges, then to half as many."""
        for column in columns[:_COLUMNS_MAX] if len(columns) > 1 else ():
            joined, boxes_max = cover, self._consumer.ranges_max
            while boxes_max:
                joined = self._with_neighbours_joined(joined, column, boxes_max)
                joined = self._closed(joined, self._gaps(joined))
                yield joined
                boxes_max //= 2

    def _fewer_columns(self) -> Iterator[Sequence[str]]:
        """The columns without the last one, without the last two and so on; those with ranges; each by itself."""
        columns = self._columns
        for count in range(min(len(columns) - 1, _COLUMNS_MAX), 1, -1):
            yield columns[:count]
        ordered = [column for column in columns if self._is_ordered(column)]
        if 1 < len(ordered) < len(columns):
            yield ordered
        if len(columns) > 1:
            yield from ((column,) for column in columns[:_COLUMNS_MAX])

    def _gaps(self, cover: Cover) -> list[_Gap]:
        """The gaps in which something lies, and the outside of every domain: closed last, it drops the column."""
        found: list[_Gap] = []
        for number, box in enumerate(cover.boxes if self._may_fit(cover) else ()):
            gaps = {column: self._gaps_of(column, domain) for column, domain in box.domains}
            for column, domain in box.domains:
                if domain.cuts and self._is_ordered(column):
                    inner, outside = gaps[column].inner, gaps[column].outside
                    others = math.prod(gaps[other].share for other in gaps if other != column)
                    # The least costly gaps of a domain, most of a hundred thousand, are closed in any case.
                    most = heapq.nlargest(self._consumer.ranges_max + 1, range(len(inner)), key=inner.__getitem__)
                    costly = [
                        i for i in most if inner[i] and not self._is_cheap(inner[i] * others, column, domain)
                    ]
                    found += [(inner[i] * others, number, column, i) for i in costly]
                    found.append((max(outside, max(inner, default=0)) * others, number, column, len(inner)))
        return found

    def _closed(self, cover: Cover, gaps: list[_Gap]) -> Cover:
        """Keep the most costly gaps open, as many as there may be ranges, and close all others."""
        if not self._may_fit(cover):
            return cover
        opened: dict[tuple[int, str], list[int]] = defaultdict(list)
        for _, number, column, index in heapq.nlargest(self._consumer.ranges_max, gaps):
            opened[number, column].append(index)
        boxes = (
            Box.of({c: _with_gaps(d, opened[number, c]) if self._is_ordered(c) else d for c, d in box.domains})
            for number, box in enumerate(cover.boxes)
        )
        return Cover.of(box for box in boxes if box is not None)

    def _may_fit(self, cover: Cover) -> bool:
        """True if closing gaps can be enough: a box needs at least one range or point, whatever is closed."""
        return len(cover.boxes) <= self._consumer.ranges_max + self._consumer.points_max

    def _with_neighbours_joined(self, cover: Cover, column: str, boxes_max: int) -> Cover:
        """Join the boxes that lie between two of the most costly gaps of a column, each column for itself."""
        along = [box.domain(column) for box in cover.boxes]
        domains = [domain for domain in along if domain is not None]
        if len(domains) < len(along) or not domains:
            return cover
        segments = self._segments(Domain.union_of(domains[0].type_name, domains), column, boxes_max)
        starts = [segment.cuts[0] for segment in segments if segment.cuts]
        members: dict[int, list[Box]] = defaultdict(list)
        for box, domain in zip(cover.boxes, domains, strict=True):
            for number in {bisect_right(starts, low) - 1 for low, _ in domain.ranges}:
                members[number].append(box)
            if domain.nullable:
                members[len(starts)].append(box)
        joined = (Box.of({**column_by_column(boxes), column: segments[n]}) for n, boxes in members.items())
        return Cover.of_apart(box for box in joined if box is not None)

    def _segments(self, domain: Domain, column: str, segments_max: int) -> list[Domain]:
        """The domain cut into pieces at its most costly gaps; null, if the domain holds it, is the last piece."""
        gaps = self._gaps_of(column, domain).inner
        cut_at = heapq.nlargest(segments_max - 1 - domain.nullable, range(len(gaps)), key=gaps.__getitem__)
        ends = [*(2 * gap + 2 for gap in sorted(cut_at)), len(domain.cuts)]
        pieces = [domain.cuts[a:b] for a, b in zip([0, *ends], ends, strict=False)]
        null = [Domain(domain.type_name, (), nullable=True)] if domain.nullable else []
        return [*(Domain(domain.type_name, piece) for piece in pieces if piece), *null]

    def _kept(self, cover: Cover) -> float:
        """The part of the fact that the cover lets through, as if columns were independent and boxes disjoint."""
        return sum(map(self._kept_by, cover.boxes))

    def _kept_by(self, box: Box) -> float:
        return math.prod(self._gaps_of(column, domain).share for column, domain in box.domains)

    def _gaps_of(self, column: str, domain: Domain) -> Gaps:
        return Gaps.of(domain, self._known(column, domain) or Distance(domain.type_name))

    def _is_cheap(self, cost: float, column: str, domain: Domain) -> bool:
        """True if a gap's partitions are fetched sooner than one more range. Distances do not show that."""
        return self._known(column, domain) is not None and cost < self._consumer.range_partitions

    def _known(self, column: str, domain: Domain) -> Costs | None:
        """The costs of the column, unless they are of another type than the domain."""
        known = self._costs.get(column)
        return known if known is not None and known.type_name == domain.type_name else None

    def _is_ordered(self, column: str) -> bool:
        return column not in self._consumer.unordered


def _with_gaps(domain: Domain, gaps: list[int]) -> Domain:
    """The domain with no gaps but these."""
    if not gaps:
        return Domain.all(domain.type_name) if domain.cuts else domain
    cuts = chain.from_iterable(domain.cuts[2 * gap + 1 : 2 * gap + 3] for gap in sorted(gaps))
    return Domain(domain.type_name, (*domain.cuts[:1], *cuts), domain.nullable)


def _projected(cover: Cover, columns: Sequence[str]) -> Cover:
    """The cover with all other columns free to hold anything."""
    if len(columns) == 1:
        box = Box.of({c: d for c, d in column_by_column(cover.boxes).items() if c in columns})
        return Cover.of([box] if box is not None else [])
    return Cover.of(Box(tuple(pair for pair in box.domains if pair[0] in columns)) for box in cover.boxes)


def column_by_column(boxes: Sequence[Box]) -> dict[str, Domain]:
    """A box around boxes: it holds what any of them does, and also what mixes them."""
    members: dict[str, list[Domain]] = defaultdict(list)
    for box in boxes:
        for column, domain in box.domains:
            members[column].append(domain)
    return {
        column: Domain.union_of(domains[0].type_name, domains)
        for column, domains in members.items()
        if len(domains) == len(boxes)
    }
