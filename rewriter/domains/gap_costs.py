"""What it costs to read more of a fact than its keys need: the partitions between them, or their bytes."""

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

# Bytes of a string that tell how far it is from another one: a day or a longish code differs within them.
_PREFIX_BYTES = 16

# How far ahead the next of ascending positions is looked for before the rest of a million values is searched.
_STRIDE = 64


class Costs(Protocol):
    """How much of a fact lies where along one of its columns."""

    @property
    def type_name(self) -> str:
        """The type of the column."""

    def below(self, positions: Sequence[Position]) -> Sequence[int]:
        """For each of some ascending positions, what lies below it: between two with one answer lies nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class PartitionCosts:
    """The values that a partition column has, ascending, and how much lies below each and below the end."""

    type_name: str
    values: tuple[Position, ...]
    totals: Sequence[int]

    @classmethod
    def of(cls, type_name: str, values: Iterable[Key], weights: Iterable[int] | None = None) -> PartitionCosts:
        """The costs of partitions by their values in one column; each costs its weight, such as its bytes, or 1.

        A partition whose value cannot be read is to be left out: it then costs nothing, and nothing is lost.
        Raises UnreadableKeyError.
        """
        positions = line(type_name).positions(values)
        if weights is None:
            ordered = sorted(positions)
            return cls(type_name, tuple(ordered), range(len(ordered) + 1))
        pairs = sorted(zip(positions, weights, strict=True))
        return cls(type_name, tuple(p for p, _ in pairs), (0, *accumulate(weight for _, weight in pairs)))

    def below(self, positions: Sequence[Position]) -> Sequence[int]:
        """For each of some ascending positions, what lies below it."""
        values, totals, top = self.values, self.totals, line(self.type_name).top
        found, at, end = [], 0, len(values)
        value = values[0] if values else top
        for position in positions:
            if value < position:
                # Where a point ends, only its own value lies below that did not lie below where it begins.
                at += 1
                if at < end and values[at] < position:
                    near = at + _STRIDE
                    at = bisect_left(
                        values, position, at, near if near < end and values[near] >= position else end
                    )
                value = values[at] if at < end else top
            found.append(at)
        # Where each partition costs 1, what lies below is how many there are.
        return found if isinstance(totals, range) else [totals[number] for number in found]


@dataclass(frozen=True, slots=True)
class Distance:
    """The costs of a column of whose values nothing is known: the wider a gap, the more may lie in it.

    No gap is free, for nothing says that it is empty.
    """

    type_name: str

    def below(self, positions: Sequence[Position]) -> Sequence[int]:
        """For each of some ascending positions, how far it is from the bottom, and one more than for the last."""
        if self.type_name != "string":
            return positions
        return [_prefix(text) + index for index, text in enumerate(positions)]


@dataclass(frozen=True, slots=True)
class Gaps:
    """What lies outside of a column's domain: in front of each of its ranges, and behind the last one."""

    lengths: list[int]
    # What lies anywhere, in the domain too. Null is not counted.
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
        """What lies behind each range but the last one."""
        return self.lengths[1:-1]

    @property
    def outside(self) -> int:
        """What lies in front of the first range and behind the last one."""
        return self.lengths[0] + self.lengths[-1]

    @property
    def share(self) -> float:
        """The part of the fact that lies in the domain, from 0 to 1."""
        return (self.total - sum(self.lengths)) / self.total if self.total else 0.0


def adds_to(wider: Domain, domain: Domain, costs: Costs) -> bool:
    """Whether something lies in the wider domain that does not lie in the other one, which is inside of it.

    Range by range: of a domain of many points, most often the first of a wider one's ranges tells.
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
