"""Keys that a reducer can match: a list of them, or ranges around them if they are too many to be listed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TypeAlias

from rewriter.domains.cover import Cover
from rewriter.domains.domain import Domain
from rewriter.domains.literals import Key, literals
from rewriter.domains.positions import Position, line
from rewriter.vocabulary.identifiers import Column, quoted

# Session functions that a key query read, as Spark SQL, each with the literal of its value.
Assumptions: TypeAlias = tuple[tuple[str, str], ...]


# The separator of a list's literals.
_SEPARATOR = ", "


@dataclass(frozen=True)
class KeySet:
    """The distinct keys that a reducer can match, of one column or of several that belong together; ascending.

    A null is in a key only where `<=>` compares the column: `=` never matches one.
    """

    type_names: tuple[str, ...]
    rows: tuple[tuple[Key | None, ...], ...]
    assumptions: Assumptions = ()

    @classmethod
    def of(
        cls,
        type_names: tuple[str, ...],
        rows: Iterable[tuple[Key | None, ...]],
        *,
        null_safe: tuple[bool, ...] = (),
    ) -> KeySet:
        """A key set from rows in any order, with duplicates, and with nulls, which count in `null_safe` columns.

        Raises UnreadableKeyError for a value that is not of its column's type.

        >>> KeySet.of(("int",), [(3,), (None,), (1,), (3,)]).rows
        ((1,), (3,))
        """
        matching = set(rows)
        for index, counts in enumerate(null_safe or (False,) * len(type_names)):
            if not counts:
                matching = {row for row in matching if row[index] is not None}
        return cls(type_names, _ascending(type_names, matching))

    @property
    def is_none(self) -> bool:
        """True if there is no key."""
        return not self.rows

    @property
    def has_null(self) -> bool:
        """True if any key holds a null."""
        return any(None in row for row in self.rows)

    @property
    def literals(self) -> tuple[tuple[str, ...], ...]:
        """The keys as Spark SQL literals of their columns' own types. Raises UnreadableKeyError."""
        return tuple(self._written())

    def cover(self, columns: Sequence[str]) -> Cover:
        """The rows whose columns have exactly these keys."""
        pairs = zip(columns, self.type_names, strict=True)
        return Cover.of_rows([Column(name, type_name) for name, type_name in pairs], self.rows)

    def exact(self, columns: Sequence[str], chars_max: int) -> str | None:
        """A condition for exactly these keys that Spark's planner prunes by and that no metastore is sent.

        None if a key has a null, or if the keys alone are longer than `chars_max`.

        >>> KeySet.of(("int",), [(1,), (7,)]).exact(["k"], 100)
        'array_contains(array(1, 7), `k`)'
        """
        # Before any key is written: a hundred thousand keys never fit.
        if len(self.rows) * (1 + len(_SEPARATOR)) > chars_max + len(_SEPARATOR) or self.has_null:
            return None
        names = [quoted(column) for column in columns]
        if len(names) == 1:
            values = _listed((text for (text,) in self._written()), chars_max)
            return None if values is None else f"array_contains(array({values}), {names[0]})"
        tuples = _listed((f"({', '.join(row)})" for row in self._written()), chars_max)
        return None if tuples is None else f"({', '.join(names)}) IN ({tuples})"

    def _written(self) -> Iterator[tuple[str, ...]]:
        by_column = [literals(name, map(itemgetter(i), self.rows)) for i, name in enumerate(self.type_names)]
        return zip(*by_column, strict=True)


@dataclass(frozen=True)
class KeyRanges:
    """Ranges of one column, both ends included, that hold all keys, and null where `<=>` compares the column."""

    type_name: str
    ranges: tuple[tuple[Key, Key], ...]
    nullable: bool = False
    assumptions: Assumptions = ()

    @property
    def type_names(self) -> tuple[str, ...]:
        """The type of the one column."""
        return (self.type_name,)

    @property
    def is_none(self) -> bool:
        """True if there is no key."""
        return not self.ranges and not self.nullable

    def cover(self, columns: Sequence[str]) -> Cover:
        """The rows whose column is in one of the ranges. Raises UnreadableKeyError."""
        (column,) = columns
        null = Domain(self.type_name, (), nullable=self.nullable)
        held = (Domain.between(self.type_name, low, high) for low, high in self.ranges)
        return Cover.of_domain(column, Domain.union_of(self.type_name, (null, *held)))


def _listed(texts: Iterable[str], chars_max: int) -> str | None:
    """The texts with commas between, or None as soon as they are too long: the rest is then never written."""
    found: list[str] = []
    chars_left = chars_max + len(_SEPARATOR)
    for text in texts:
        chars_left -= len(text) + len(_SEPARATOR)
        if chars_left < 0:
            return None
        found.append(text)
    return _SEPARATOR.join(found)


def _ascending(
    type_names: tuple[str, ...], rows: Iterable[tuple[Key | None, ...]]
) -> tuple[tuple[Key | None, ...], ...]:
    """The rows as Spark orders them: by the first column first, nulls before all values."""
    given = list(rows)
    by_column = [
        _positions(type_name, [row[index] for row in given]) for index, type_name in enumerate(type_names)
    ]
    # A hundred thousand positions are sorted several times as fast as tuples of one.
    places = by_column[0] if len(by_column) == 1 else list(zip(*by_column, strict=True))
    return tuple(given[number] for number in sorted(range(len(given)), key=places.__getitem__))


def _positions(type_name: str, values: Sequence[Key | None]) -> list[Position]:
    """The sort keys of a column's values."""
    found = line(type_name).positions([value for value in values if value is not None])
    if len(found) == len(values):
        return found
    rest = iter(found)
    return [(False, 0) if value is None else (True, next(rest)) for value in values]
