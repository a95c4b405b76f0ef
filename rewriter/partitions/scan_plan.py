"""Scan plans: a filter on partition columns as range scans of the ordered index, each with a residual filter.

The plans are those of the Hive metastore on HBase (HIVE-9452): a condition on leading columns is a range of keys,
AND intersects ranges, OR unites them and merges those that overlap. There an AND of ORs is multiplied out; here
two ascending lists of ranges meet in one pass, and the result is never longer than both together.

Every plan has this property: a partition satisfies the filter if and only if it is in a scan and satisfies that
scan's residual. A node of the tree is always a correct residual of its own scans, so a plan that gets too large
ends at the node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from rewriter.partitions.byte_ranges import ByteRange, ByteRanges, successor
from rewriter.partitions.filter_tree import And, ColumnCondition, FieldTest, Or, PartitionFilter, terms_of
from rewriter.partitions.key_encoding import END, PartitionKeys

# Changes between AND and OR on the way down. Deeper conditions are tested and not planned: each level may leave
# scans with a residual of its own, over the whole tree below it. Conditions that people write have two or three.
LEVELS_MAX = 10
# Scans that may be added by combining the values of several columns, `p IN (..) AND q IN (..)`. A scan of the
# index costs some ten microseconds; past this a partition is cheaper tested than looked up.
COMBINED_SCANS_MAX = 10_000
# Terms of one AND that are ORs over several columns and still intersected; the rest is tested. Each costs a pass
# over the scans, and more than a few rarely leave fewer of them.
INTERSECTIONS_MAX = 8


class Scan(NamedTuple):
    """The keys from `start` up to `stop`, excluded, and the conditions that are left to test.

    Scans share the conditions: each is to be prepared once, and not once a scan.
    """

    start: bytes
    stop: bytes
    residual: tuple[PartitionFilter, ...] = ()


@dataclass(frozen=True)
class ScanPlan:
    """Scans in ascending order that do not overlap."""

    scans: tuple[Scan, ...]


@dataclass(frozen=True)
class _Part:
    """The terms of a conjunction that read one column, and the fields that they allow."""

    ranges: ByteRanges
    terms: tuple[PartitionFilter, ...]
    # True if all fields in the ranges satisfy the terms.
    is_exact: bool


@dataclass(frozen=True)
class _Box:
    """A conjunction of conditions on one column each."""

    parts: dict[int, _Part]


_Scans: TypeAlias = list[Scan]
_Outcome: TypeAlias = _Box | _Scans


def plan_scans(condition: PartitionFilter, keys: PartitionKeys) -> ScanPlan:
    """The plan of a filter. Raises NotIndexableError."""
    return _Planner(keys).plan(condition)


class _Planner:
    def __init__(self, keys: PartitionKeys) -> None:
        self._keys = keys
        self._combined_scans_left = COMBINED_SCANS_MAX

    def plan(self, root: PartitionFilter) -> ScanPlan:
        outcomes: list[_Outcome] = []
        for node, terms in _bottom_up(root):
            first = len(outcomes) - len(terms)
            outcome = self._outcome(node, list(zip(terms, outcomes[first:], strict=True)))
            outcomes[first:] = [outcome]
        return ScanPlan(tuple(_joined(self._scans(outcomes[0]))))

    def _outcome(self, node: PartitionFilter, terms: Sequence[tuple[PartitionFilter, _Outcome]]) -> _Outcome:
        if not isinstance(node, And | Or):
            return self._leaf(node)
        if node.terms and not terms:
            return [Scan(b"", END, (node,))]  # deeper than is planned
        return self._and(terms) if isinstance(node, And) else self._or(node, terms)

    def _leaf(self, leaf: ColumnCondition) -> _Box:
        test = FieldTest.of(leaf, self._keys)
        return _Box({test.column: _Part(test.ranges, (leaf,), test.pattern is None)})

    def _and(self, terms: Sequence[tuple[PartitionFilter, _Outcome]]) -> _Outcome:
        box = _intersected_boxes([outcome for _, outcome in terms if isinstance(outcome, _Box)])
        others = [(term, outcome) for term, outcome in terms if not isinstance(outcome, _Box)]
        if not others:
            return box
        # The fewest scans are likely to be the most selective ones.
        others.sort(key=lambda other: len(other[1]))
        scans = self._scans(box)
        for _, other in others[:INTERSECTIONS_MAX]:
            scans = _intersected(scans, other)
        rest = _one_condition([term for term, _ in others[INTERSECTIONS_MAX:]])
        return [Scan(start, stop, residual + rest) for start, stop, residual in scans]

    def _or(self, node: Or, terms: Sequence[tuple[PartitionFilter, _Outcome]]) -> _Outcome:
        parts = [part for _, outcome in terms if isinstance(outcome, _Box) for part in outcome.parts.items()]
        if len(parts) == len(terms) and len({column for column, _ in parts}) == 1:
            column = parts[0][0]
            ranges = ByteRanges.union(range_ for _, part in parts for range_ in part.ranges.ranges)
            return _Box({column: _Part(ranges, (node,), all(part.is_exact for _, part in parts))})
        found = [(scan, term) for term, outcome in terms for scan in self._scans(outcome)]
        return _united(node, found)

    def _scans(self, outcome: _Outcome) -> _Scans:
        """The scans of a box: single values of leading columns are prefixes of ranges of the next one."""
        if not isinstance(outcome, _Box):
            return outcome
        parts, scans, prefixes, column = outcome.parts, [], [b""], 0
        if not all(part.ranges.ranges for part in parts.values()):
            return []
        while column in parts and self._may_combine(prefixes, parts[column]):
            points, spans = self._split(column, parts[column])
            residual = _residual(parts, column + 1)
            scans += [Scan(p + span.start, p + span.stop, residual) for p in prefixes for span in spans]
            prefixes = [prefix + point.start for prefix in prefixes for point in points]
            column += 1
        residual = _residual(parts, column)
        scans += [Scan(p, successor(p) if p else END, residual) for p in prefixes]
        return sorted(scans, key=lambda scan: scan.start)

    def _may_combine(self, prefixes: list[bytes], part: _Part) -> bool:
        added = len(prefixes) * (len(part.ranges.ranges) - 1) if prefixes != [b""] else 0
        if added > self._combined_scans_left:
            return False
        self._combined_scans_left -= added
        return True

    def _split(self, column: int, part: _Part) -> tuple[list[ByteRange], list[ByteRange]]:
        """The ranges that hold a single value of the column, and the others."""
        points: list[ByteRange] = []
        spans: list[ByteRange] = []
        for found in part.ranges.ranges:
            is_point = found == ByteRange.of_prefix(found.start) and self._keys.is_field(column, found.start)
            (points if is_point else spans).append(found)
        return points, spans


def _bottom_up(root: PartitionFilter) -> Iterator[tuple[PartitionFilter, list[PartitionFilter]]]:
    """Each node with its terms, in order; all terms come before their node."""
    order: list[tuple[PartitionFilter, list[PartitionFilter]]] = []
    pending = [(root, 0)]
    while pending:
        node, level = pending.pop()
        terms = terms_of(node) if isinstance(node, And | Or) and level < LEVELS_MAX else []
        order.append((node, terms))
        pending += [(term, level + 1) for term in terms]
    return reversed(order)


def _intersected_boxes(boxes: Sequence[_Box]) -> _Box:
    parts: dict[int, list[_Part]] = {}
    for box in boxes:
        for column, part in box.parts.items():
            parts.setdefault(column, []).append(part)
    return _Box({column: _intersected_parts(found) for column, found in parts.items()})


def _intersected_parts(parts: Sequence[_Part]) -> _Part:
    ranges = ByteRanges.intersection([part.ranges for part in parts])
    terms = tuple(term for part in parts for term in part.terms)
    return _Part(ranges, terms, all(part.is_exact for part in parts))


def _residual(parts: dict[int, _Part], columns_scanned: int) -> tuple[PartitionFilter, ...]:
    """The conditions that ranges of the leading columns leave to test."""
    left = [part for column, part in parts.items() if column >= columns_scanned or not part.is_exact]
    return _one_condition([term for part in left for term in part.terms])


def _one_condition(terms: Sequence[PartitionFilter]) -> tuple[PartitionFilter, ...]:
    return (And(tuple(terms)),) if len(terms) > 1 else tuple(terms)


def _intersected(left: _Scans, right: _Scans) -> _Scans:
    """The intersection of both lists of scans: one pass over both."""
    found: _Scans = []
    at_left = at_right = 0
    while at_left < len(left) and at_right < len(right):
        one, other = left[at_left], right[at_right]
        start, stop = max(one.start, other.start), min(one.stop, other.stop)
        if start < stop:
            found.append(Scan(start, stop, one.residual + other.residual))
        at_left += one.stop == stop
        at_right += other.stop == stop
    return found


def _united(node: Or, found: list[tuple[Scan, PartitionFilter]]) -> _Scans:
    """The scans of an OR's terms; those that overlap become one."""
    scan_counts = Counter(id(term) for _, term in found)
    united: _Scans = []
    for group in _overlapping(sorted(found, key=lambda pair: pair[0].start)):
        scans = [scan for scan, _ in group]
        if len(scans) > 1:
            # A term in many groups would be prepared as often: then the whole OR is the condition of all.
            is_spread = any(scan_counts[id(term)] > 1 for _, term in group)
            is_whole = is_spread or len(group) == len(found)
            condition = node if is_whole else Or(tuple(term for _, term in group))
            residual = (condition,) if any(scan.residual for scan in scans) else ()
            scans = [Scan(scans[0].start, max(scan.stop for scan in scans), residual)]
        united += scans
    return united


def _overlapping(ordered: Sequence[tuple[Scan, PartitionFilter]]) -> Iterator[list[tuple[Scan, PartitionFilter]]]:
    """Groups of scans, in order, that no scan of another group overlaps."""
    group: list[tuple[Scan, PartitionFilter]] = []
    stop = b""
    for scan, term in ordered:
        if group and scan.start >= stop:
            yield group
            group = []
        group.append((scan, term))
        stop = max(stop, scan.stop)
    if group:
        yield group


def _joined(scans: Sequence[Scan]) -> Iterator[Scan]:
    """The scans, with neighbours joined that touch and have the same residual."""
    pending: Scan | None = None
    for scan in scans:
        if pending is not None and pending.stop == scan.start and pending.residual == scan.residual:
            pending = Scan(pending.start, scan.stop, scan.residual)
            continue
        if pending is not None:
            yield pending
        pending = scan
    if pending is not None:
        yield pending
