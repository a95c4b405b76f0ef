"""A database of Iceberg tables, two sessions in it, and the commits that others make between their statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from random import Random
from typing import ClassVar, Self, TypeAlias

from iceberg_tables import IcebergTable, some_transforms
from layout_tables import some_rows
from pipeline_server import PipelineServer
from pyhive import hive
from star_tables import VALUES, Row, Star, literal

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess


class IcebergWorld:
    """What a seed stands for, as it is now."""

    test: ClassVar[str] = "tests/iceberg/test_iceberg_differential.py"

    def __init__(
        self, rng: Random, star: Star, database: str, server: PipelineServer, proxy: ProxyProcess
    ) -> None:
        self.rng, self.star = rng, star
        self.events: list[str] = []
        self.server, self._proxy = server, proxy
        # With the catalog that has it, which Iceberg's procedures are of.
        self.database = database
        self._catalog, _, self._name = database.partition(".")
        self._ansi = rng.random() < 0.5
        self.direct = self._session(proxied=False)
        self.proxied = self._session(proxied=True)

    def __enter__(self) -> Self:
        for table in self.star.tables:
            for statement in table.spark_statements():
                run(self.direct, statement)
        return self

    def __exit__(self, *_: object) -> None:
        with closing(self.direct), closing(self.proxied):
            for _namespace, table, _temporary in run(self.direct, f"SHOW TABLES IN {self.database}"):
                run(self.direct, f"DROP TABLE IF EXISTS {self.database}.{table}")
            run(self.direct, f"DROP DATABASE {self.database}")

    def change(self) -> None:
        """One commit, to a fact most often; by the proxied session itself now and then."""
        table, event = self._chosen(_COMMITS + _CHANGES)
        writer = self.proxied if self.rng.random() < 0.3 else self.direct
        by = "the proxied session" if writer is self.proxied else "the direct one"
        self.events.append(f"{event.__name__} {table.name} by {by}")
        event(self, table, writer)
        self._tell_of(table.name)

    def next_commit(self) -> Callable[[], None]:
        """What makes one commit by the direct session once it is called."""
        table, event = self._chosen(_COMMITS)

        def commit() -> None:
            self.events.append(f"{event.__name__} {table.name}")
            event(self, table, self.direct)

        return commit

    def append(self, table: IcebergTable, writer: hive.Connection) -> None:
        """Rows in new files."""
        run(writer, table.insert_statement(self._new_rows(table, 8)))

    def overwrite(self, table: IcebergTable, writer: hive.Connection) -> None:
        """All files give way to new ones, or those of the partitions that are written."""
        mode = self.rng.choice(("dynamic", "static"))
        run(writer, f"SET spark.sql.sources.partitionOverwriteMode={mode}")
        run(writer, table.insert_statement(self._new_rows(table, 6), how="INSERT OVERWRITE"))

    def delete(self, table: IcebergTable, writer: hive.Connection) -> None:
        """Rows are deleted, in files of their own or by writing theirs again."""
        run(writer, f"DELETE FROM {table.name} WHERE {self._condition(table)}")

    def update(self, table: IcebergTable, writer: hive.Connection) -> None:
        """Keys become others."""
        column = table.columns[-1]
        value = literal(column.type_name, self.rng.choice(VALUES[column.type_name]))
        run(writer, f"UPDATE {table.name} SET {column.name} = {value} WHERE {self._condition(table)}")

    def compact(self, table: IcebergTable, writer: hive.Connection) -> None:
        """The same rows in other files, those that were deleted left out."""
        how = "map('rewrite-all', 'true', 'delete-file-threshold', '1')"
        what = f"table => '{self._name}.{table.name}', options => {how}"
        run(writer, f"CALL {self._catalog}.system.rewrite_data_files({what})")

    def roll_back(self, table: IcebergTable, writer: hive.Connection) -> None:
        """An older snapshot is the current one again, or a later one."""
        snapshots = f"SELECT snapshot_id FROM {self.database}.{table.name}.snapshots ORDER BY committed_at"
        found = [snapshot for (snapshot,) in run(writer, snapshots)]
        if found:
            wanted = self.rng.choice(found)
            run(writer, f"CALL {self._catalog}.system.set_current_snapshot('{self._name}.{table.name}', {wanted})")

    def expire(self, table: IcebergTable, writer: hive.Connection) -> None:
        """Nothing but the current snapshot is left."""
        now = "older_than => TIMESTAMP'2100-01-01', retain_last => 1"
        run(writer, f"CALL {self._catalog}.system.expire_snapshots(table => '{self._name}.{table.name}', {now})")

    def repartition(self, table: IcebergTable, writer: hive.Connection) -> None:
        """Another field of the partition spec, for rows that come later."""
        chosen = some_transforms(self.rng, table.columns)
        for transform in [transform for transform in chosen if transform not in table.transforms][:1]:
            field = f"p{len(self.events)}"
            run(writer, f"ALTER TABLE {table.name} ADD PARTITION FIELD {transform} AS {field}")
            self._replace(replace(table, transforms=(*table.transforms, transform)))
        self.append(table, writer)

    def widen(self, table: IcebergTable, writer: hive.Connection) -> None:
        """A key is of a wider type from now on, without a new snapshot."""
        narrow = [column.name for column in table.columns if column.type_name == "int" and column.name[0] == "k"]
        if not narrow:
            self.add_column(table, writer)
            return
        name = self.rng.choice(narrow)
        run(writer, f"ALTER TABLE {table.name} ALTER COLUMN {name} TYPE bigint")
        self._replace(table.with_column_of(name, "bigint"))

    def add_column(self, table: IcebergTable, writer: hive.Connection) -> None:
        """A column more, without a new snapshot: a star has it, the snapshot does not."""
        run(writer, f"ALTER TABLE {table.name} ADD COLUMN z{len(self.events)} INT")

    def _chosen(self, events: Sequence[Event]) -> tuple[IcebergTable, Event]:
        tables = [table for table in self.star.tables if isinstance(table, IcebergTable)]
        facts = [table for table in tables if table.is_large]
        return self.rng.choice([*tables, *facts]), self.rng.choice(events)

    def _new_rows(self, table: IcebergTable, rows_max: int) -> tuple[Row, ...]:
        return some_rows(self.rng, table.columns, self.rng.randint(1, rows_max))

    def _condition(self, table: IcebergTable) -> str:
        column = self.rng.choice(table.columns)
        value = self.rng.choice(VALUES[column.type_name])
        return f"{column.name} = {literal(column.type_name, value)}"

    def _replace(self, changed: IcebergTable) -> None:
        tables = self.star.tables
        self.star = Star(tuple(changed if table.name == changed.name else table for table in tables))

    def _tell_of(self, table: str) -> None:
        """A session may keep a table as it saw it for half a minute, which is no fault of a proxy's."""
        run(self.direct, f"REFRESH TABLE {table}")
        if self.rng.random() < 0.5:
            run(self.proxied, f"REFRESH TABLE {table}")
        else:
            self.proxied.close()
            self.proxied = self._session(proxied=True)

    def _session(self, *, proxied: bool) -> hive.Connection:
        session = connect(self._proxy.endpoint if proxied else self.server.endpoint)
        # Tables that are made anew for each statement would else be those of the statement before.
        run(session, f"SET `spark.sql.catalog.{self._catalog}.cache-enabled`=false")
        run(session, f"CREATE DATABASE IF NOT EXISTS {self.database}")
        run(session, f"USE {self.database}")
        # What `=` and IN cast to depends on it.
        run(session, f"SET spark.sql.ansi.enabled={str(self._ansi).lower()}")
        return session


Event: TypeAlias = Callable[[IcebergWorld, IcebergTable, hive.Connection], None]

# Of one snapshot each, or of none that has other rows.
_COMMITS: tuple[Event, ...] = (
    IcebergWorld.append,
    IcebergWorld.append,
    IcebergWorld.overwrite,
    IcebergWorld.delete,
    IcebergWorld.delete,
    IcebergWorld.update,
    IcebergWorld.compact,
    IcebergWorld.compact,
    IcebergWorld.roll_back,
    IcebergWorld.expire,
)
# What a star is and what types keys have is another thing afterwards.
_CHANGES: tuple[Event, ...] = (IcebergWorld.repartition, IcebergWorld.widen, IcebergWorld.add_column)
