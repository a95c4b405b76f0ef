"""Totals of what is inserted into one statement, whatever each of its scans may take by itself.

Three hundred scans of one fact, each with a list of keys that is short enough, are a text of 94 MB, for which the
driver of a server had no memory. Beyond the totals scans stay as they are; those that save most for their length
are narrowed first. Leaving one out changes no answer.

Scans that would get the same stay alike: all of them are narrowed, or none. Spark reads a table once for two scans
that are equal, and would read it twice if one of them were narrowed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from rewriter.domains.cover import Cover
from rewriter.domains.domain import Domain
from rewriter.domains.gap_costs import Costs, Gaps
from rewriter.semijoins.limits import INSERTED_CHARS_MAX, RewriteLimits

# Characters of a value: a day in quotes, and the separator behind it.
CHARS_PER_VALUE: Final = 16

# Keys that are made into predicates, and characters of predicates, before any is chosen. Beyond them a scan is not
# looked at: there are more of them than can be inserted, and each takes time and memory here.
KEYS_WRITTEN_MAX: Final = 200_000
CHARS_WRITTEN_MAX: Final = 4 * INSERTED_CHARS_MAX

# The size that is assumed of a table without a known one: that of a small fact.
_UNKNOWN_BYTES: Final = 1024**3
# Boxes of a cover whose shares are added up.
_BOXES_MAX: Final = 1_000


@dataclass(frozen=True)
class Insertions:
    """Insertions into scans that are alike, all together, and the bytes that these would not read."""

    chars: int
    values: int
    spared_bytes: float

    @property
    def gain(self) -> float:
        """The bytes spared for each character."""
        return self.spared_bytes / max(1, self.chars)


def share(limits: RewriteLimits, count: int) -> RewriteLimits:
    """The limits of each of so many scans that are alike: ranges narrow them where lists would be too long."""
    chars_max = min(limits.inserted_chars_max, limits.inserted_values_max * CHARS_PER_VALUE) // count
    if chars_max >= max(limits.predicate_chars_max, limits.file_hint_chars_max):
        return limits
    return replace(
        limits,
        predicate_chars_max=min(limits.predicate_chars_max, chars_max),
        file_hint_chars_max=min(limits.file_hint_chars_max, chars_max),
    )


def within_totals(found: Sequence[Insertions], chars_max: int, values_max: int) -> list[bool]:
    """For each of the insertions whether it is made: those that spare most for their length first.

    >>> within_totals([Insertions(60, 1, 1.0), Insertions(60, 1, 9.0), Insertions(40, 1, 0.1)], 100, 10)
    [False, True, True]
    """
    kept = [False] * len(found)
    for place in sorted(range(len(found)), key=lambda place: (-found[place].gain, place)):
        one = found[place]
        if one.chars <= chars_max and one.values <= values_max:
            kept[place] = True
            chars_max, values_max = chars_max - one.chars, values_max - one.values
    return kept


def values_in(text: str) -> int:
    """About the number of values and comparisons in a condition.

    >>> values_in("(`k` IN (1, 2, 3) OR typeof(`k`) <> 'int')")
    4
    """
    return 1 + text.count(",") + text.count(" AND ") + text.count(" OR ")


def spared_bytes(size_bytes: int | None, cover: Cover | None, costs: Mapping[str, Costs]) -> float:
    """The bytes that a cover leaves out of a table, by the distribution of its partitions where that is known."""
    share = 0.0 if cover is None else min(1.0, sum(_share(box.domains, costs) for box in cover.boxes[:_BOXES_MAX]))
    return (size_bytes or _UNKNOWN_BYTES) * (1.0 - share)


def _share(domains: Iterable[tuple[str, Domain]], costs: Mapping[str, Costs]) -> float:
    """The part of the table in a box; 0 where no distribution is known, as if the box left out the whole table."""
    known = ((domain, costs[name]) for name, domain in domains if name in costs)
    shares = [Gaps.of(domain, along).share for domain, along in known if along.type_name == domain.type_name]
    return prod(shares) if shares else 0.0
