"""Random star schemas: small tables of every key type, with nulls, duplicates, empty ones and odd strings.

One set of tables serves many queries: making tables costs more than asking them, on Spark far more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from random import Random
from typing import TypeAlias

from rewriter import Catalog, Column, TableFacts, TableKind, TableName, ViewText

Value: TypeAlias = int | str | bool | float | Decimal | date | datetime | None
Row: TypeAlias = tuple[Value, ...]

# Few values of each type, so that keys meet: a join that matches nothing proves nothing.
VALUES: dict[str, tuple[Value, ...]] = {
    "tinyint": (-128, 0, 1, 2),
    "smallint": (-32768, 0, 1, 2),
    "int": (-1, 0, 1, 2),
    "bigint": (-9223372036854775808, 0, 1, 2),
    "string": ("01", "1", "a", "it's", "b\\c", "é中", "2026-01-01"),
    "date": (date(1969, 12, 31), date(2024, 2, 29), date(2026, 1, 1), date(2026, 1, 2)),
    "boolean": (True, False),
    "decimal(5,2)": (Decimal("-1.50"), Decimal("0.10"), Decimal("1.00"), Decimal("999.99")),
    # Refused as keys: -0.0 and NaN, local times, padding.
    "double": (0.0, -0.0, 1.0, float("nan")),
    "timestamp": (datetime(2026, 1, 1), datetime(2026, 1, 1, 12)),  # noqa: DTZ001 - the session's own zone
    "char(3)": ("a", "ab", "1"),
    "varchar(3)": ("a", "a ", "1"),
}
KEY_TYPES = tuple(VALUES)[:8]
REFUSED_TYPES = tuple(VALUES)[8:]
# Types that Spark compares with the key's by casting one side.
COMPARABLE: dict[str, tuple[str, ...]] = {
    "tinyint": ("int", "string"),
    "smallint": ("bigint",),
    "int": ("string", "bigint", "decimal(5,2)"),
    "bigint": ("int", "string"),
    "string": ("int", "date"),
    "date": ("string",),
    "decimal(5,2)": ("int",),
}

_DUCKDB_TYPES = {"string": "VARCHAR", "char(3)": "VARCHAR", "varchar(3)": "VARCHAR"}

_FACT_ROWS_MAX = 12
_DIMENSION_ROWS_MAX = 8


@dataclass(frozen=True)
class Table:
    """A table and its rows; as in Spark, partition columns come last."""

    name: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    partition_columns: tuple[str, ...] = ()

    @property
    def is_fact(self) -> bool:
        """Whether the table is partitioned, as only facts are here."""
        return bool(self.partition_columns)

    @property
    def facts(self) -> TableFacts:
        """What the proxy would learn of the table."""
        return TableFacts(self.columns, self.partition_columns)

    def column(self, name: str) -> Column:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)

    def duckdb_statement(self) -> str:
        """What makes the empty table in DuckDB."""
        columns = (f"{c.name} {_DUCKDB_TYPES.get(c.type_name, c.type_name)}" for c in self.columns)
        return f"CREATE TABLE {self.name} ({', '.join(columns)})"

    def spark_statements(self) -> list[str]:
        """What makes and fills the table on Spark."""
        columns = ", ".join(f"{c.name} {c.type_name}" for c in self.columns)
        partitioned = f" PARTITIONED BY ({', '.join(self.partition_columns)})" if self.is_fact else ""
        create = f"CREATE TABLE {self.name} ({columns}) USING parquet{partitioned}"
        rows = (
            ", ".join(literal(c.type_name, value) for c, value in zip(self.columns, row, strict=True))
            for row in self.rows
        )
        values = ", ".join(f"({row})" for row in rows)
        return [create, f"INSERT INTO {self.name} VALUES {values}"] if self.rows else [create]

    def __str__(self) -> str:
        header = ", ".join(f"{c.name} {c.type_name}" for c in self.columns)
        partitioned = f" partitioned by {', '.join(self.partition_columns)}" if self.is_fact else ""
        return "\n".join([f"{self.name}({header}){partitioned}", *(f"    {row!r}" for row in self.rows)])


# The catalog and the database of a DuckDB in memory.
_NAMESPACE = ("memory", "main")


@dataclass(frozen=True)
class StarView:
    """A view over the tables: its columns, the names that its text has for them, and the text."""

    name: str
    columns: tuple[Column, ...]
    outputs: tuple[str, ...]
    text: str

    @property
    def facts(self) -> TableFacts:
        """What the proxy would learn of the view, in DuckDB."""
        view = ViewText(self.text, _NAMESPACE, self.outputs)
        return TableFacts(self.columns, provider="", kind=TableKind.VIEW, view=view)

    @property
    def statement(self) -> str:
        """What makes the view."""
        names = ", ".join(column.name for column in self.columns)
        return f"CREATE OR REPLACE VIEW {self.name} ({names}) AS {self.text}"


# Tables by name. A tuple, so that what is derived from it can be cached.
Schema: TypeAlias = tuple[tuple[str, TableFacts], ...]


def catalog(schema: Schema, names: Iterable[TableName]) -> Catalog:
    """The facts of the names that a plan misses; None for one that is no table."""
    known = dict(schema)
    return {name: known.get(name.parts[-1].lower()) for name in names}


@dataclass(frozen=True)
class Star:
    """The tables that a seed stands for."""

    tables: tuple[Table, ...]

    def table(self, name: str) -> Table:
        """The table of that name."""
        return next(table for table in self.tables if table.name == name)

    @cached_property
    def schema(self) -> Schema:
        """The tables without their rows: what a plan and a translation depend on."""
        return tuple((table.name, table.facts) for table in self.tables)

    def __str__(self) -> str:
        return "\n".join(map(str, self.tables))


def random_star(rng: Random) -> Star:
    """Two facts with two keys, three dimensions for them, and a snowflake branch behind the first.

    A dimension's key has its fact column's name (for USING and NATURAL), except in `d3`.
    """
    first, second = (rng.choice(KEY_TYPES if rng.random() < 0.95 else REFUSED_TYPES) for _ in "12")
    layouts = ("k1",), ("k1", "k2"), ("k2", "k1")
    partitioned, also = rng.choices(layouts, (1, 2, 2), k=2)
    return Star(
        (
            _fact(rng, "f1", {"m": "int", "q": "int", "k1": first, "k2": second}, partitioned),
            _fact(rng, "f2", {"m": "int", "q2": "int", "k1": first, "k2": second}, also),
            _dimension(rng, "d1", {"k1": _near(rng, first), "a1": "int", "b1": "string", "s": "int"}),
            _dimension(rng, "d2", {"k2": _near(rng, second), "a2": "int", "b2": "string"}),
            _dimension(rng, "d3", {"k": _near(rng, first), "l": _near(rng, second), "a3": "int", "b3": "string"}),
            _dimension(rng, "s1", {"s": "int", "x": "int", "y": "string"}),
        )
    )


def _near(rng: Random, type_name: str) -> str:
    """The type itself, or now and then one that Spark would cast."""
    others = COMPARABLE.get(type_name, ())
    return rng.choice(others) if others and rng.random() < 0.1 else type_name


def _fact(rng: Random, name: str, types: dict[str, str], partitioned: tuple[str, ...]) -> Table:
    ordered = [c for c in types if c not in partitioned] + list(partitioned)
    columns = tuple(Column(c, types[c]) for c in ordered)
    return Table(name, columns, _rows(rng, columns, _FACT_ROWS_MAX), partitioned)


def _dimension(rng: Random, name: str, types: dict[str, str]) -> Table:
    columns = tuple(Column(c, types[c]) for c in types)
    return Table(name, columns, _rows(rng, columns, _DIMENSION_ROWS_MAX))


def _rows(rng: Random, columns: tuple[Column, ...], rows_max: int) -> tuple[Row, ...]:
    """Rows that may repeat; one table in eight is empty."""
    count = 0 if rng.random() < 1 / 8 else rng.randint(1, rows_max)
    return tuple(tuple(random_value(rng, column.type_name) for column in columns) for _ in range(count))


def random_value(rng: Random, type_name: str) -> Value:
    """A value of the type, or null."""
    return None if rng.random() < 1 / 8 else rng.choice(VALUES[type_name])


def literal(type_name: str, value: Value) -> str:
    """A value as a Spark SQL literal of its own type, as a user may write it."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, date):
        return f"{'TIMESTAMP' if isinstance(value, datetime) else 'DATE'}'{value}'"
    if isinstance(value, float):
        return f"CAST('{value}' AS DOUBLE)"
    if type_name == "bigint":
        # The literal -9223372036854775808L is a minus before a number that does not fit.
        return f"CAST('{value}' AS BIGINT)"
    return str(value).upper()
