"""Domains: sets of values that one column may hold, as ranges of values and null."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, compress, repeat
from operator import add, lt

from rewriter.domains.literals import Key
from rewriter.domains.positions import Bound, Position, line


@dataclass(frozen=True, slots=True)
class Interval:
    """A range of values. It has no end on a side whose bound is None. Null is never part of it."""

    low: Bound | None
    high: Bound | None

    @property
    def is_point(self) -> bool:
        """True if it holds a single value."""
        return self.low is not None and self.low == self.high


@dataclass(frozen=True, slots=True)
class Domain:
    """A set of values of one type, and whether null is in it.

    The `cuts` are the positions where the line enters and leaves the set, in turns: 5, 6 and 9 of type int are
    the cuts (5, 7, 9, 10). So each set has one spelling, equal domains are equal objects, and neighbours such as
    5 and 6, or two days that follow each other, are one range. `Domain.none` and `Domain.all` are values like any.

    The complement is that of sets, not SQL's NOT: the complement of {1} holds null, and `NOT (k IN (1))` is not
    true of null. {1, 2} and [1, 2] of type int are the same domain.
    """

    type_name: str
    cuts: tuple[Position, ...] = ()
    nullable: bool = False

    def __post_init__(self) -> None:
        # The check is linear, and worth it: with cuts out of order a key would silently be outside its own domain.
        if len(self.cuts) % 2 or not all(map(lt, self.cuts, self.cuts[1:])):
            raise ValueError("the cuts of a domain are ascending, and as many enter it as leave it")

    @classmethod
    def none(cls, type_name: str) -> Domain:
        """The domain that holds nothing."""
        return cls(type_name)

    @classmethod
    def all(cls, type_name: str) -> Domain:
        """The domain that holds every value and null."""
        return cls(type_name).complement()

    @classmethod
    def of(cls, type_name: str, values: Iterable[Key], *, nullable: bool = False) -> Domain:
        """The domain of some values, in any order and with duplicates. Raises UnreadableKeyError."""
        return cls.of_positions(type_name, line(type_name).positions(values), nullable=nullable)

    @classmethod
    def of_positions(cls, type_name: str, positions: Iterable[Position], *, nullable: bool = False) -> Domain:
        """The domain of the values at some positions."""
        lows = sorted(positions)
        highs = list(map(add, lows, repeat(line(type_name).step)))
        return cls(type_name, _joined(lows, highs), nullable)

    @classmethod
    def between(cls, type_name: str, low: Key | None, high: Key | None) -> Domain:
        """The values from `low` to `high`, both included; None is no bound. Raises UnreadableKeyError."""
        on = line(type_name)
        start = on.bottom if low is None else on.positions([low])[0]
        stop = on.top if high is None else on.positions([high])[0] + on.step
        return cls(type_name, (start, stop) if start < stop else ())

    @classmethod
    def union_of(cls, type_name: str, domains: Iterable[Domain]) -> Domain:
        """The union of the domains, all at once rather than two at a time: n log n for n ranges in all."""
        parts = tuple(domains)
        if any(part.type_name != type_name for part in parts):
            raise ValueError(f"domains of other types than {type_name} cannot be joined with it")
        lows = sorted(chain.from_iterable(part.cuts[::2] for part in parts))
        highs = sorted(chain.from_iterable(part.cuts[1::2] for part in parts))
        return cls(type_name, _joined(lows, highs), any(part.nullable for part in parts))

    @property
    def ranges(self) -> Iterable[tuple[Position, Position]]:
        """The first position of each of its ranges and the first position behind it, ascending."""
        return zip(self.cuts[::2], self.cuts[1::2], strict=True)

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """Its ranges as values with bounds, ascending: the least number of them."""
        return tuple(self._interval(low, high) for low, high in self.ranges)

    @property
    def is_none(self) -> bool:
        """True if it holds nothing, not even null."""
        return not self.cuts and not self.nullable

    @property
    def is_all(self) -> bool:
        """True if it holds every value and null."""
        if not self.nullable:
            return False
        on = line(self.type_name)
        return self.cuts == (on.bottom, on.top)

    @property
    def width(self) -> float:
        """The number of its values, null not counted; infinity for most ranges of strings."""
        width = line(self.type_name).width
        return sum(width(low, high) for low, high in self.ranges)

    @property
    def values(self) -> tuple[Key, ...]:
        """Its values, ascending, without null. Check the width first: a wide domain has too many."""
        on = line(self.type_name)
        if self.width == math.inf:
            raise ValueError("a range of strings has no end of values")
        found: list[Key] = []
        for low, high in self.ranges:
            at = low
            while at < high:
                found.append(on.value(at))
                at += on.step
        return tuple(found)

    def complement(self) -> Domain:
        """Everything that it does not hold; null too, unless it is nullable."""
        on = line(self.type_name)
        # A cut that left the set enters it now. Only cuts at the ends of the line are added or removed.
        inner = self.cuts[1:] if self.cuts[:1] == (on.bottom,) else (on.bottom, *self.cuts)
        outer = inner[:-1] if inner[-1:] == (on.top,) else (*inner, on.top)
        return Domain(self.type_name, outer, not self.nullable)

    def union(self, other: Domain) -> Domain:
        """The values of either."""
        return Domain.union_of(self.type_name, (self, other))

    def intersection(self, other: Domain) -> Domain:
        """The values of both."""
        return self.complement().union(other.complement()).complement()

    def holds(self, value: Key | None) -> bool:
        """True if it holds a value, or null. Raises UnreadableKeyError for a value of another type."""
        return self.nullable if value is None else self.holds_position(line(self.type_name).positions([value])[0])

    def holds_position(self, position: Position) -> bool:
        """True if it holds the value at a position."""
        return bisect_right(self.cuts, position) % 2 == 1

    def contains(self, other: Domain) -> bool:
        """True if it holds all values of the other one."""
        if other.nullable and not self.nullable:
            return False
        if other.cuts and not self.holds_position(other.cuts[0]):
            return False  # most of thousands of domains that are compared end here
        if len(self.cuts) < len(other.cuts):
            # Fewer ranges to look up: this domain contains the other one if that has nothing of its complement.
            return not any(other.holds_any_of(low, high) for low, high in self.complement().ranges)
        cuts = self.cuts
        return all((at := bisect_right(cuts, low)) % 2 and high <= cuts[at] for low, high in other.ranges)

    def meets(self, other: Domain) -> bool:
        """True if it holds any value of the other one."""
        few, many = (self, other) if len(self.cuts) < len(other.cuts) else (other, self)
        return (self.nullable and other.nullable) or any(many.holds_any_of(low, high) for low, high in few.ranges)

    def holds_any_of(self, low: Position, high: Position) -> bool:
        """True if it holds a value from `low` up to but not including `high`."""
        at = bisect_right(self.cuts, low)
        return at % 2 == 1 or (at < len(self.cuts) and self.cuts[at] < high)

    def _interval(self, low: Position, high: Position) -> Interval:
        on = line(self.type_name)
        if high == low + on.step:
            point = Bound(on.value(low), inclusive=True)
            return Interval(point, point)
        return Interval(
            None if low == on.bottom else on.low_bound(low), None if high == on.top else on.high_bound(high)
        )


def _joined(lows: list[Position], highs: list[Position]) -> tuple[Position, ...]:
    """The cuts of ranges that may touch or overlap, by where they begin and where they have ended, each ascending.

    >>> _joined([1, 2, 5, 6], [2, 3, 7, 9])
    (1, 3, 5, 9)
    """
    # A gap is a position at which as many ranges have ended as have begun, whichever they are. A hundred thousand
    # ranges are common, so this is no loop of Python's.
    has_gap = list(map(lt, highs, lows[1:]))
    starts = [*lows[:1], *compress(lows[1:], has_gap)]
    cuts = starts * 2
    cuts[::2], cuts[1::2] = starts, [*compress(highs, has_gap), *highs[-1:]]
    return tuple(cuts)
