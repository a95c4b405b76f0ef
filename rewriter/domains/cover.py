"""Covers: sets of rows by the values of several columns together, so that pairs of keys stay pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rewriter.domains.domain import Domain
from rewriter.domains.literals import Key
from rewriter.domains.positions import Position, line
from rewriter.vocabulary.identifiers import Column

# Ranges compared to find the boxes that are inside another one: each range is looked up in each box. The boxes of
# rows are disjoint and never need it; beyond this, a box that could be left out costs some text, never a row.
ENCLOSED_COMPARISONS_MAX = 1 << 16

# Rounds of merging boxes that differ in one column. Each round merges along every column, so rows need one.
_MERGE_ROUNDS_MAX = 8


@dataclass(frozen=True, slots=True)
class Box:
    """A domain for each of some columns, which a row must satisfy in all; a column that is missing holds anything.

    A box has no domain that is all, and none that is empty: an empty box is None. `domains` are in the order of
    the columns' names, so that equal boxes are equal objects.
    """

    domains: tuple[tuple[str, Domain], ...]

    def __post_init__(self) -> None:
        columns = [column for column, _ in self.domains]
        if columns != sorted(set(columns)) or any(d.is_none or d.is_all for _, d in self.domains):
            raise ValueError("a box has ascending columns, each with a domain that is neither none nor all")

    @classmethod
    def of(cls, domains: Mapping[str, Domain]) -> Box | None:
        """The box of some domains, or None if it is empty."""
        if any(domain.is_none for domain in domains.values()):
            return None
        return cls(tuple(pair for pair in sorted(domains.items()) if not pair[1].is_all))

    def domain(self, column: str) -> Domain | None:
        """The values that the column may hold; None for any value."""
        return next((domain for name, domain in self.domains if name == column), None)

    def without(self, column: str) -> Box:
        """The box with the column free to hold anything."""
        return Box(tuple(pair for pair in self.domains if pair[0] != column))

    def without_rows_of(self, other: Box) -> list[Box]:
        """The rows of this box that the other one does not hold, as boxes that have no row in common."""
        pieces, rest = [], self
        for column, theirs in other.domains:
            mine = rest.domain(column) or Domain.all(theirs.type_name)
            outside = Box.of({**dict(rest.domains), column: mine.intersection(theirs.complement())})
            inside = Box.of({**dict(rest.domains), column: mine.intersection(theirs)})
            pieces += [outside] if outside is not None else []
            if inside is None:
                return pieces
            rest = inside
        return pieces

    def holds(self, row: Mapping[str, Key | None]) -> bool:
        """True if a row, given at least the columns of the box, is in it."""
        return all(domain.holds(row[column]) for column, domain in self.domains)

    def contains(self, other: Box) -> bool:
        """True if it holds all that the other one does."""
        theirs = dict(other.domains)
        return all(column in theirs and domain.contains(theirs[column]) for column, domain in self.domains)

    def meets(self, other: Box) -> bool:
        """True if any row is in both."""
        theirs = dict(other.domains)
        return all(column not in theirs or domain.meets(theirs[column]) for column, domain in self.domains)

    def intersection(self, other: Box) -> Box | None:
        """The rows of both, or None if there are none."""
        both = dict(self.domains)
        for column, domain in other.domains:
            both[column] = both[column].intersection(domain) if column in both else domain
        return Box.of(both)


@dataclass(frozen=True, slots=True)
class Cover:
    """A set of rows: those that are in any of its boxes. No boxes are no rows, the box of no domains is all rows.

    Boxes keep pairs together. The union column by column is not the union: of (1, 'a') and (2, 'b') it would hold
    (1, 'b') as well.

    `Cover.of` leaves no box that is inside another, and none that differs from another in one column only, since
    those two are exactly one box. Still a set has many spellings: boxes may overlap, and {1, 2} x {'a'} with
    {2} x {'b'} holds the same rows as {1} x {'a'} with {2} x {'a', 'b'}. Equal covers hold the same rows; covers
    that hold the same rows need not be equal, but for a single column they are.

    There is no complement: that of n boxes over k columns can need n to the power of k boxes.
    """

    boxes: tuple[Box, ...]

    @classmethod
    def none(cls) -> Cover:
        """The cover that holds no row."""
        return cls(())

    @classmethod
    def all(cls) -> Cover:
        """The cover that holds every row."""
        return cls((Box(()),))

    @classmethod
    def of(cls, boxes: Iterable[Box]) -> Cover:
        """The rows of any of the boxes."""
        found = list(dict.fromkeys(boxes))
        for _ in range(_MERGE_ROUNDS_MAX):
            before = len(found)
            found = _merged(_not_enclosed(found))
            if len(found) == before:
                break
        return cls(tuple(sorted(found, key=_sort_key)))

    @classmethod
    def of_apart(cls, boxes: Iterable[Box]) -> Cover:
        """The rows of boxes of which no two share a value of one certain column: none is inside another one.

        Two such boxes are one box only if they differ in that column alone, so one round finds all such pairs.
        """
        return cls(tuple(sorted(_merged(list(boxes)), key=_sort_key)))

    @classmethod
    def of_domain(cls, column: str, domain: Domain) -> Cover:
        """The rows whose one column is in the domain."""
        box = Box.of({column: domain})
        return cls((box,) if box is not None else ())

    @classmethod
    def of_rows(cls, columns: Sequence[Column], rows: Iterable[Sequence[Key | None]]) -> Cover:
        """Exactly the rows given, in any order and with duplicates. Raises UnreadableKeyError.

        A null in a row is one that matches null (`<=>`): where it does not, the caller has dropped the row.
        n log n: rows that agree in all columns but the last become one box, then those boxes that agree in all
        but the column before it, and so on.
        """
        given = list(rows)
        if len(columns) == 1:
            (column,) = columns
            # One box in any case, and many keys: they need not be put into rows of positions and back.
            values = [value for (value,) in given if value is not None]
            nullable = len(values) < len(given)
            return cls.of_domain(column.name, Domain.of(column.type_name, values, nullable=nullable))
        transposed = zip(columns, zip(*given, strict=True), strict=bool(given))
        by_column = [_positions(column, values) for column, values in transposed]
        parts: list[tuple[tuple[Position, ...], tuple[Domain, ...]]]
        parts = [(row, ()) for row in set(zip(*by_column, strict=True))]
        for column in reversed(columns):
            parts = _grouped(column.type_name, parts)
        names = [column.name for column in columns]
        boxes = (Box.of(dict(zip(names, domains, strict=True))) for _, domains in parts)
        return cls(tuple(sorted((box for box in boxes if box is not None), key=_sort_key)))

    @property
    def is_none(self) -> bool:
        """True if it holds no row."""
        return not self.boxes

    @property
    def is_all(self) -> bool:
        """True if one box holds every row. Several boxes may hold all rows together: a <> 1, b <> 1 and (1, 1)."""
        return self == Cover.all()

    def holds(self, row: Mapping[str, Key | None]) -> bool:
        """True if a row, given at least the columns of the cover, is in it."""
        return any(box.holds(row) for box in self.boxes)

    def union(self, other: Cover) -> Cover:
        """The rows of either."""
        return Cover.of((*self.boxes, *other.boxes))

    def intersection(self, other: Cover) -> Cover:
        """The rows of both. It meets every box with every box: widen what has many boxes first."""
        met = (mine.intersection(theirs) for mine in self.boxes for theirs in other.boxes)
        return Cover.of(box for box in met if box is not None)

    def encloses(self, other: Cover) -> bool:
        """True if it holds all rows of the other one. False too if that takes too many steps to find out.

        A box may be inside several boxes together and inside none of them: {1, 2} x {'a'} is in {1} x {'a', 'b'}
        with {2} x {'a', 'c'}. So the rest that each box leaves is looked for in the other boxes.
        """
        return all(self._encloses_box(box) for box in other.boxes)

    def _encloses_box(self, box: Box) -> bool:
        if any(mine.contains(box) for mine in self.boxes):
            return True
        left = [box]
        # Boxes that do not meet it remove nothing, and to find that out piece by piece takes seconds for
        # thousands.
        for mine in (mine for mine in self.boxes if mine.meets(box)):
            left = [piece for part in left for piece in part.without_rows_of(mine)]
            if not left or len(left) > _PIECES_MAX:
                break
        return not left


# Pieces of a box, not yet found in a cover, that are looked for in the cover's other boxes.
_PIECES_MAX = 1_000


def _positions(column: Column, values: Sequence[Key | None]) -> list[Position | None]:
    found = line(column.type_name).positions([value for value in values if value is not None])
    if len(found) == len(values):
        return found
    rest = iter(found)
    return [None if value is None else next(rest) for value in values]


def _grouped(
    type_name: str, parts: list[tuple[tuple[Position, ...], tuple[Domain, ...]]]
) -> list[tuple[tuple[Position, ...], tuple[Domain, ...]]]:
    """Join the last positions of the parts that agree in all else: what comes before, and the domains after."""
    members: dict[tuple[tuple[Position, ...], tuple[Domain, ...]], list[Position]] = defaultdict(list)
    for row, domains in parts:
        members[row[:-1], domains].append(row[-1])
    return [(row, (_domain(type_name, found), *domains)) for (row, domains), found in members.items()]


def _domain(type_name: str, positions: list[Position]) -> Domain:
    nullable = None in positions
    values = (position for position in positions if position is not None) if nullable else positions
    return Domain.of_positions(type_name, values, nullable=nullable)


def _not_enclosed(boxes: list[Box]) -> list[Box]:
    """The boxes, all different, that are not inside another one."""
    ranges = sum(len(domain.cuts) for box in boxes for _, domain in box.domains) // 2
    if len(boxes) * ranges > ENCLOSED_COMPARISONS_MAX:
        return boxes
    return [box for box in boxes if not any(other is not box and other.contains(box) for other in boxes)]


def _merged(boxes: list[Box]) -> list[Box]:
    """The same rows, where boxes that differ in one column only are one box."""
    for column in sorted({column for box in boxes for column, _ in box.domains}):
        members: dict[Box, list[Domain | None]] = defaultdict(list)
        for box in boxes:
            members[box.without(column)].append(box.domain(column))
        boxes = [_joined(column, rest, domains) for rest, domains in members.items()]
    return boxes


def _joined(column: str, rest: Box, domains: list[Domain | None]) -> Box:
    known = [domain for domain in domains if domain is not None]
    if len(known) < len(domains):
        return rest
    joined = Domain.union_of(known[0].type_name, known)
    return rest if joined.is_all else Box(tuple(sorted((*rest.domains, (column, joined)))))


def _sort_key(box: Box) -> tuple[tuple[str, tuple[Position, ...], bool], ...]:
    return tuple((column, domain.cuts, domain.nullable) for column, domain in box.domains)
