"""Random stars of Delta tables, and the commits that others make between a session's statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import ClassVar

from iceberg_tables import IcebergTable, iceberg_star
from iceberg_world import Event, IcebergWorld
from pyhive import hive
from star_tables import Star, Table

from demo.hive import run
from rewriter import TableFacts
from rewriter.catalog.table_facts import DeltaFacts
from rewriter.domains.literals import is_data_key_type

_PROPERTIES: tuple[dict[str, str], ...] = (
    {},
    {"delta.enableDeletionVectors": "true"},
    {"delta.columnMapping.mode": "name"},
    {"delta.dataSkippingNumIndexedCols": "1"},
)


class DeltaTable(IcebergTable):
    """A table of Delta's, as it is now; partitioned by columns as they are."""

    @property
    def facts(self) -> TableFacts:
        """The facts that the proxy would learn of the table."""
        keys = tuple(column.name for column in self.columns if is_data_key_type(column.type_name))
        return TableFacts(self.columns, provider="delta", indexed_columns=keys, delta=DeltaFacts(self.transforms))

    def spark_statements(self) -> list[str]:
        """The statements that make and fill it, a fact in two commits."""
        return [text.replace(" USING iceberg", " USING delta") for text in super().spark_statements()]


def delta_star(rng: Random) -> Star:
    """A random star of Delta facts, whose dimensions are Delta's too or in part plain files."""
    return Star(tuple(_in_delta(rng, table) for table in iceberg_star(rng, all_iceberg=False).tables))


def _in_delta(rng: Random, table: Table) -> Table:
    if not isinstance(table, IcebergTable):
        return table
    # Not by all columns, which Delta refuses.
    keys = [column.name for column in table.columns if column.name in {"k1", "k2"}][: len(table.columns) - 1]
    partitioned = tuple(rng.sample(keys, k=min(len(keys), rng.choice((0, 1, 1, 2))))) if table.is_large else ()
    properties = tuple(rng.choice(_PROPERTIES).items())
    return DeltaTable(table.name, table.columns, table.rows, (), table.is_large, partitioned, properties)


class DeltaWorld(IcebergWorld):
    """A database of Delta tables, and two sessions in it."""

    test: ClassVar[str] = "tests/delta/test_delta_differential.py"

    def optimize(self, table: IcebergTable, writer: hive.Connection) -> None:
        """The same rows in other files."""
        run(writer, f"OPTIMIZE {table.name}")

    def restore(self, table: IcebergTable, writer: hive.Connection) -> None:
        """The rows of an older version are the current ones again."""
        versions = [int(row[0]) for row in run(writer, f"DESCRIBE HISTORY {table.name}")]
        run(writer, f"RESTORE TABLE {table.name} TO VERSION AS OF {self.rng.choice(versions[:-1] or versions)}")

    def remake(self, table: IcebergTable, writer: hive.Connection) -> None:
        """Another table has the name from now on: its versions begin at 0."""
        run(writer, f"DROP TABLE {table.name}")
        made = replace(table, rows=self._new_rows(table, 8))
        for statement in made.spark_statements():
            run(writer, statement)

    def _chosen(self, events: Sequence[Event]) -> tuple[IcebergTable, Event]:
        del events
        return super()._chosen(_EVENTS)


_EVENTS: tuple[Event, ...] = (
    IcebergWorld.append,
    IcebergWorld.append,
    IcebergWorld.overwrite,
    IcebergWorld.delete,
    IcebergWorld.delete,
    IcebergWorld.update,
    lambda world, table, writer: _delta(world).optimize(table, writer),
    lambda world, table, writer: _delta(world).restore(table, writer),
    lambda world, table, writer: _delta(world).remake(table, writer),
)


def _delta(world: IcebergWorld) -> DeltaWorld:
    assert isinstance(world, DeltaWorld)
    return world
