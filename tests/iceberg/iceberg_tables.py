"""Random stars whose facts are Iceberg tables, partitioned by transforms, by several, or by none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from random import Random

from layout_tables import some_rows
from star_tables import Row, Star, Table, literal, random_star

from rewriter import Column, TableFacts
from rewriter.catalog.table_facts import IcebergFacts
from rewriter.domains.literals import is_data_key_type

_ROWS = 24
_DIMENSION_ROWS = 5

# Iceberg has no type for these and takes them for wider ones, or does not take them.
_AS_ICEBERG_HAS_IT = {"tinyint": "int", "smallint": "int", "char(3)": "string", "varchar(3)": "string"}
# What a column of a type may be partitioned by.
_TRANSFORMS = {
    "int": ("{0}", "bucket(3, {0})", "truncate(2, {0})"),
    "bigint": ("{0}", "bucket(3, {0})", "truncate(2, {0})"),
    "string": ("{0}", "bucket(3, {0})", "truncate(1, {0})"),
    "date": ("{0}", "days({0})", "months({0})", "years({0})", "bucket(3, {0})"),
    "timestamp": ("days({0})", "hours({0})", "bucket(3, {0})"),
    "boolean": ("{0}",),
    "decimal(5,2)": ("{0}", "bucket(3, {0})", "truncate(100, {0})"),
}
_PROPERTIES: tuple[dict[str, str], ...] = (
    {},
    {"write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"},
    {"write.delete.mode": "merge-on-read", "write.format.default": "orc"},
    {"format-version": "3", "write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"},
)


@dataclass(frozen=True)
class IcebergTable(Table):
    """A table of Iceberg's, as it is now: what its rows were first, events have changed since."""

    is_large: bool = False
    transforms: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()

    @property
    def is_fact(self) -> bool:
        """Though no column of it is a partition column to Spark."""
        return self.is_large

    @property
    def facts(self) -> TableFacts:
        """What the proxy would learn of the table, at a snapshot of some number."""
        keys = tuple(column.name for column in self.columns if is_data_key_type(column.type_name))
        iceberg = IcebergFacts(snapshot_id=1, partitioning=self.transforms)
        return TableFacts(self.columns, provider="iceberg", indexed_columns=keys, iceberg=iceberg)

    def spark_statements(self) -> list[str]:
        """What makes and fills it, a fact in two commits."""
        columns = ", ".join(f"{c.name} {c.type_name}" for c in self.columns)
        partitioned = f" PARTITIONED BY ({', '.join(self.transforms)})" if self.transforms else ""
        properties = ", ".join(f"'{name}'='{value}'" for name, value in self.properties)
        table = f"CREATE TABLE {self.name} ({columns}) USING iceberg{partitioned}"
        half = len(self.rows) // 2 if self.is_large else 0
        return [
            f"{table} TBLPROPERTIES ({properties})" if properties else table,
            *(self.insert_statement(rows) for rows in (self.rows[:half], self.rows[half:]) if rows),
        ]

    def insert_statement(self, rows: Iterable[Row], *, how: str = "INSERT INTO") -> str:
        """What writes rows, in the order of a key into several files."""
        names = ", ".join(c.name for c in self.columns)
        values = ", ".join(f"({', '.join(self._typed(row))})" for row in rows)
        hint = "/*+ REPARTITION_BY_RANGE(3, k2) */ " if self.is_large else ""
        return f"{how} {self.name} ({names}) SELECT {hint}* FROM VALUES {values} AS t({names})"

    def _typed(self, row: Row) -> Iterator[str]:
        for column, value in zip(self.columns, row, strict=True):
            yield f"CAST({literal(column.type_name, value)} AS {column.type_name})"

    def with_column_of(self, name: str, type_name: str) -> IcebergTable:
        """The table after a column's type has changed."""
        return replace(
            self, columns=tuple(Column(c.name, type_name) if c.name == name else c for c in self.columns)
        )


def iceberg_star(rng: Random, *, all_iceberg: bool) -> Star:
    """A random star of Iceberg facts, whose dimensions are of Iceberg too or in part plain files."""
    return Star(tuple(_table(rng, table, all_iceberg=all_iceberg) for table in random_star(rng).tables))


def some_transforms(rng: Random, columns: Iterable[Column]) -> tuple[str, ...]:
    """A partition spec: of no column, of one key, or of both."""
    keys = [column for column in columns if column.name in {"k1", "k2"} and column.type_name in _TRANSFORMS]
    chosen = rng.sample(keys, k=min(len(keys), rng.choice((0, 1, 1, 2))))
    return tuple(rng.choice(_TRANSFORMS[column.type_name]).format(column.name) for column in chosen)


def _table(rng: Random, table: Table, *, all_iceberg: bool) -> Table:
    columns = tuple(Column(c.name, _AS_ICEBERG_HAS_IT.get(c.type_name, c.type_name)) for c in table.columns)
    # Small sides without any row make empty keys, which the other differential tests have enough of.
    rows = some_rows(rng, columns, _ROWS if table.is_fact else max(len(table.rows), _DIMENSION_ROWS))
    if not table.is_fact and not all_iceberg and rng.random() < 0.5:
        return Table(table.name, columns, rows)
    transforms = some_transforms(rng, columns) if table.is_fact else ()
    properties = tuple(rng.choice(_PROPERTIES).items())
    return IcebergTable(table.name, columns, rows, (), table.is_fact, transforms, properties)
