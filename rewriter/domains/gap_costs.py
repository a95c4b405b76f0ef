"""Costs of reading more of a fact than its keys need: the partitions between them, or their bytes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import sub
from typing import Protocol

from rewriter.domains.domain import Domain
from rewriter.domains.literals import Key
from rewriter.domains.positions import Position, line

# Bytes of a string that its distance from another one is computed by: a day or a longer code differs within them.
_PREFIX_BYTES = 16

# Values that are searched first for the next of ascending positions: the column may have a million more.
_STRIDE = 64


class Costs(Protocol):
    """The distribution of a fact's partitions or bytes along one of its columns."""

    @property
    def type_name(self) -> str:
        """The type of the column."""

    def below(self, positions: Sequence[Position]) -> Sequence[int]:
        """The amount below each of some ascending positions. Two equal answers have nothing between them."""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionCosts:
    """The values of a partition column, ascending, and the amount below each and below the end."""

    type_name: str
    values: tuple[Position, ...]
    totals: Sequence[int]

    @classmethod
    def of(cls, type_name: str, values: Iterable[Key], weights: Iterable[int] | None = None) -> PartitionCosts:
        """The costs of partitions by their values in one column; each costs its weight, such as its bytes, or 1.

        The caller leaves out partitions whose value cannot be read: they cost nothing, and no key is lost. Raises
        UnreadableKeyError.
        """
        positions = line(type_name).positions(values)
        if weights is None:
            ordered = sorted(positions)
            return cls(type_name, tuple(ordered), range(len(ordered) + 1))
        pairs = sorted(zip(positions, weights, strict=True))
        return cls(type_name, tuple(p for p, _ in pairs), (0, *accumulate(weight for _, weight in pairs)))

    def below(self, positions: Sequence[Position]) -> Sequence[int]:
        """The amount below each of some ascending positions."""
        values, totals, top = self.values, self.totals, line(self.type_name).top
        found, at, end = [], 0, len(values)
        value = values[0] if values else top
        for position in positions:
            if value < position:
                # The end of a point has one more value below it than its beginning: the point itself.
                at += 1
                if at < end and values[at] < position:
                    near = at + _STRIDE
                    at = bisect_left(
                        values, position, at, near if near < end and values[near] >= position else end
                    )
                value = values[at] if at < end else top
            found.append(at)
        # If each partition costs 1, the amount below is their number.
        return found if isinstance(totals, range) else [totals[number] for number in found]


@dataclass(frozen=True, slots=True)
class Distance:
    """The costs of a column whose values are not known: the wider a gap, the more may lie in it.

    No gap is free, since no gap is known to be empty.
    """

    type_name: str

    def below(self, positions: Sequence[Position]) -> Sequence[int]:
        """The distance of each of some ascending positions from the bottom, each more than the one before it."""
        if self.type_name != "string":
            return positions
        return [_prefix(text) + index for index, text in enumerate(positions)]


@dataclass(frozen=True, slots=True)
class Gaps:
    """The amounts outside of a column's domain: in front of each of its ranges, and behind the last one."""

    lengths: list[int]
    # The amount along the whole column, in the domain too. Null is not counted.
    total: int

    @classmethod
    def of(cls, domain: Domain, costs: Costs) -> Gaps:
        """The gaps of a domain.

        >>> Gaps.of(Domain.of("int", [3, 7]), PartitionCosts.of("int", [1, 3, 4, 5, 7, 8]))
        Gaps(lengths=[1, 2, 1], total=6)
        """
        on = line(domain.type_name)
        below = costs.below((on.bottom, *domain.cuts, on.top))
        return cls(list(map(sub, below[1::2], below[::2])), below[-1] - below[0])

    @property
    def inner(self) -> list[int]:
        """The amount behind each range but the last one."""
        return self.lengths[1:-1]

    @property
    def outside(self) -> int:
        """The amount in front of the first range and behind the last one."""
        return self.lengths[0] + self.lengths[-1]

    @property
    def share(self) -> float:
        """The part of the fact that lies in the domain, from 0 to 1."""
        return (self.total - sum(self.lengths)) / self.total if self.total else 0.0


def adds_to(wider: Domain, domain: Domain, costs: Costs) -> bool:
    """True if the wider domain holds more of the fact than the other one, which is inside of it.

    The ranges are compared one by one: for a domain of many points, the first range of the wider one mostly
    decides.
    """
    cuts = domain.cuts
    for low, high in wider.ranges:
        held = cuts[bisect_left(cuts, low) : bisect_right(cuts, high)]
        first, *below, last = costs.below((low, *held, high))
        if sum(below[1::2]) - sum(below[::2]) < last - first:
            return True
    return False


def _prefix(text: bytes) -> int:
    return int.from_bytes(text[:_PREFIX_BYTES].ljust(_PREFIX_BYTES, b"\0"), "big")
