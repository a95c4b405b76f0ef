"""A database of facts in layouts, two sessions in it, and what happens to it between the index and a query."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import ClassVar, Self
from urllib.parse import unquote

from layout_tables import Fact, Layout, some_rows
from pipeline_server import FILE_INDEX, CommandError, PipelineServer
from pyhive import hive
from star_tables import Star, literal

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess

# A file written again is told by its time alone if it is as large as before; writers are further apart than this.
_LATER_NS = 3_000_000

# How often an index that was made anew is also believed anew, by a user who has not asked for it before.
_NEW_USER = 0.7


class World:
    """What a seed stands for, as it is now. Whoever changes a table tells both sessions, as Spark wants it."""

    test: ClassVar[str] = "tests/layouts/test_layouts_differential.py"

    def __init__(
        self, rng: Random, star: Star, database: str, server: PipelineServer, proxy: ProxyProcess
    ) -> None:
        self.rng, self.star, self.database = rng, star, database
        self.events: list[str] = []
        self.server, self._proxy = server, proxy
        self._ansi = rng.random() < 0.5
        # As whom the proxy is asked: what it was told of the index, another user does not know.
        self._user = f"{database}_0"
        self.direct = self._session(proxied=False)
        self.proxied = self._session(proxied=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with closing(self.direct), closing(self.proxied):
            run(self.direct, f"DROP DATABASE IF EXISTS {self.database} CASCADE")

    def make(self) -> None:
        """Make all tables, in their layouts, and index the facts."""
        self.events.append("make")
        for table in self.star.tables:
            if isinstance(table, Fact):
                self._make_fact(table)
            else:
                for statement in table.spark_statements():
                    run(self.direct, statement)
        self.index()

    def index(self) -> None:
        """`starpruner pipeline index` of the facts that it takes."""
        names = [f"{self.database}.{fact.name}" for fact in self.facts if fact.layout.is_indexed]
        if names:
            self._pipeline("index", *(word for name in names for word in ("--table", name)), "--index", FILE_INDEX)
        self.events.append("index")
        if self.rng.random() < _NEW_USER:
            self._user = f"{self.database}_{len(self.events)}"
            self._reconnect()

    @property
    def facts(self) -> list[Fact]:
        """The facts as they were made last."""
        return [table for table in self.star.tables if isinstance(table, Fact)]

    def change(self) -> None:
        """One thing that happens to one fact; the index is then out of date."""
        fact = self.rng.choice(self.facts)
        event = self.rng.choice(_EVENTS)
        self.events.append(f"{event.__name__} {fact.name} ({fact.layout.value})")
        event(self, fact)
        self._tell_of(fact.name)

    def append(self, fact: Fact) -> None:
        """Rows in files that the index does not know."""
        self._insert(fact, "INSERT INTO")

    def overwrite(self, fact: Fact) -> None:
        """All files give way to new ones, or one partition's do."""
        if not fact.partition_columns:
            self._insert(fact, "INSERT OVERWRITE")
            return
        run(self.direct, "SET spark.sql.sources.partitionOverwriteMode=dynamic")
        run(self.direct, "SET hive.exec.dynamic.partition.mode=nonstrict")
        self._insert(fact, "INSERT OVERWRITE", rows_max=2)

    def drop_partition(self, fact: Fact) -> None:
        """A partition that the index knows is gone."""
        found = run(self.direct, f"SELECT DISTINCT k1 FROM {fact.name} WHERE k1 IS NOT NULL ORDER BY k1")
        if not fact.partition_columns or not found:
            self.append(fact)
            return
        type_name = fact.column("k1").type_name
        value = literal(type_name, self.rng.choice(found)[0])
        value = f"DATE{value}" if type_name == "date" and not value.startswith("DATE") else value
        run(self.direct, f"ALTER TABLE {fact.name} DROP IF EXISTS PARTITION (k1 = {value})")

    def delete_file(self, fact: Fact) -> None:
        """A file is removed by hand."""
        files = self._files(fact)
        if files:
            self.rng.choice(files).unlink()

    def rewrite_file(self, fact: Fact) -> None:
        """Other rows stand under a file's old name: in a file as large, where there is one."""
        files = sorted(self._files(fact))
        if len(files) < 2 or fact.layout is Layout.BUCKETED:
            # A bucket's file with rows of another bucket would be a broken table.
            self.append(fact)
            return
        target = self.rng.choice(files)
        others = [file for file in files if file != target]
        as_large = [file for file in others if file.stat().st_size == target.stat().st_size]
        put(self.rng.choice(as_large or others), target)

    def copy_file(self, fact: Fact) -> None:
        """A file stands there twice, the second time under a name that the index does not know."""
        for file in self._files(fact)[:1]:
            _ = shutil.copyfile(file, file.with_name(f"copy-of-{file.name}"))

    def load_again(self, fact: Fact) -> None:
        """Another skew list: for more rows, or for those of the partitions that are loaded again."""
        if fact.layout.is_loaded:
            self._load(self._with_new_rows(fact), overwrite=self.rng.random() < 0.5)
        else:
            self.append(fact)

    def recreate(self, fact: Fact) -> None:
        """Another table of the same name, whose key is of another type, where the index knows the old one."""
        run(self.direct, f"DROP TABLE {fact.name}")
        other = fact.retyped(self.rng)
        self._replace(other)
        self._make_fact(other, with_index=self.rng.random() < 0.5)

    def _insert(self, fact: Fact, how: str, rows_max: int = 8) -> None:
        fact = self._with_new_rows(fact, self.rng.randint(1, rows_max))
        run(self.direct, fact.insert_statement(fact.rows_table.name, how=how))

    def _with_new_rows(self, fact: Fact, count: int = 12) -> Fact:
        """The fact with other rows, which then stand in the table that it is written from."""
        fact = replace(fact, rows=some_rows(self.rng, fact.columns, count))
        self._write_rows(fact)
        return fact

    def _write_rows(self, fact: Fact) -> None:
        run(self.direct, f"DROP TABLE IF EXISTS {fact.rows_table.name}")
        for statement in fact.rows_table.spark_statements():
            run(self.direct, statement)

    def _make_fact(self, fact: Fact, *, with_index: bool = True) -> None:
        self._write_rows(fact)
        if fact.layout.is_loaded and with_index:
            self._load(fact, overwrite=False)
            return
        run(self.direct, "SET hive.exec.dynamic.partition.mode=nonstrict")
        run(self.direct, fact.create_statement())
        run(self.direct, fact.insert_statement(fact.rows_table.name))

    def _load(self, fact: Fact, *, overwrite: bool) -> None:
        self._pipeline(*fact.load_arguments(self.database, FILE_INDEX, self.rng, overwrite=overwrite))

    def _pipeline(self, *arguments: str) -> None:
        try:
            _ = self.server.pipeline(*arguments)
        except CommandError as error:
            raise AssertionError(f"{error}\nafter {', '.join(self.events)}\n{self.star}") from error

    def _replace(self, fact: Fact) -> None:
        tables = self.star.tables
        self.star = Star(tuple(fact if table.name == fact.name else table for table in tables))

    def _files(self, fact: Fact) -> list[Path]:
        run(self.direct, f"REFRESH TABLE {fact.name}")
        found = run(self.direct, f"SELECT DISTINCT _metadata.file_path FROM {fact.name}") if fact.is_native else []
        return [on_disk(str(path)) for (path,) in found]

    def _tell_of(self, table: str) -> None:
        """Sessions keep the files that they listed. A new one lists them, of which the proxy learns nothing."""
        run(self.direct, f"REFRESH TABLE {table}")
        if self.rng.random() < 0.5:
            run(self.proxied, f"REFRESH TABLE {table}")
        else:
            self._reconnect()

    def _reconnect(self) -> None:
        self.proxied.close()
        self.proxied = self._session(proxied=True)

    def _session(self, *, proxied: bool) -> hive.Connection:
        endpoint = self._proxy.endpoint if proxied else self.server.endpoint
        session = connect(endpoint, user=self._user)
        run(session, f"CREATE DATABASE IF NOT EXISTS {self.database}")
        run(session, f"USE {self.database}")
        # What `=` and IN cast to depends on it.
        run(session, f"SET spark.sql.ansi.enabled={str(self._ansi).lower()}")
        return session


_EVENTS: tuple[Callable[[World, Fact], None], ...] = (
    World.append,
    World.overwrite,
    World.drop_partition,
    World.delete_file,
    World.rewrite_file,
    World.rewrite_file,
    World.copy_file,
    World.load_again,
    World.recreate,
)


def on_disk(path: str) -> Path:
    """The file that Spark's `_metadata.file_path` names."""
    return Path(unquote(path.removeprefix("file://").removeprefix("file:")))


def put(source: Path, target: Path) -> None:
    """Write a file again under its old name, a little later than it was written before."""
    written_ns = target.stat().st_mtime_ns
    # What Hadoop keeps beside it to check the old bytes with.
    target.with_name(f".{target.name}.crc").unlink(missing_ok=True)
    _ = shutil.copyfile(source, target)
    os.utime(target, ns=(written_ns + _LATER_NS, written_ns + _LATER_NS))
