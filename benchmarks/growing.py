"""Statements that grow in one direction each, for what planning costs as they do."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rewriter import Catalog, Column, TableFacts, TableName

CATALOG: Catalog = {
    TableName(("f",)): TableFacts((Column("id", "int"), Column("ds", "string")), ("ds",)),
    TableName(("d",)): TableFacts((Column("ds", "string"), Column("g", "int"))),
}

_JOIN = "SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE"


@dataclass(frozen=True)
class Series:
    """A kind of statement, the sizes that it is made in, and how."""

    name: str
    sizes: tuple[int, ...]
    statement: Callable[[int], str]

    def statements(self, largest: int) -> Iterator[tuple[int, str]]:
        """Each size up to the largest, and its statement."""
        return ((size, self.statement(size)) for size in self.sizes if size <= largest)


def _joins(count: int) -> str:
    joins = " ".join(f"JOIN d d{number} ON f.ds = d{number}.ds AND d{number}.g = 1" for number in range(count))
    return f"SELECT f.id FROM f {joins}"


def _scans(count: int) -> str:
    return " UNION ALL ".join(f"{_JOIN} d.g = {number}" for number in range(count))


def _ored_terms(count: int) -> str:
    return f"{_JOIN} ({' OR '.join(f'd.g = {number}' for number in range(count))})"


def _conjuncts(count: int) -> str:
    return f"{_JOIN} {' AND '.join(f'd.g <> {number}' for number in range(count))}"


def _parentheses(depth: int) -> str:
    return f"{_JOIN} {'(' * depth}d.g = 1{')' * depth}"


def _derived_tables(depth: int) -> str:
    opened = "".join(f"(SELECT * FROM {'f' if level == depth - 1 else ''}" for level in range(depth))
    closed = "".join(f") x{level}" for level in range(depth))
    return f"SELECT 1 FROM {opened}{closed} JOIN d ON x{depth - 1}.ds = d.ds WHERE d.g = 1"


def _in_list(count: int) -> str:
    return f"{_JOIN} d.g IN ({', '.join(map(str, range(count)))})"


def _kilobytes(count: int) -> str:
    # Values of 50 characters, as a tool writes that sends its selection.
    values = ", ".join(f"'{number:048}'" for number in range(count * 1_000 // 52))
    return f"{_JOIN} d.g = 1 AND f.id NOT IN ({values})"


SERIES = (
    Series("joins", (10, 30, 100, 300, 1_000), _joins),
    Series("narrowed scans", (5, 10, 25, 50, 100), _scans),
    Series("ORed terms", (10, 100, 1_000, 10_000), _ored_terms),
    Series("ANDed terms", (10, 100, 1_000, 10_000), _conjuncts),
    Series("nested parentheses", (10, 50, 100, 200, 500), _parentheses),
    Series("nested derived tables", (5, 10, 25), _derived_tables),
    Series("IN list", (10, 100, 1_000, 10_000, 100_000), _in_list),
    Series("kilobytes of values", (1_000, 5_000), _kilobytes),
)
