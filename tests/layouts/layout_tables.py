"""Random facts in the layouts that files can be told apart in, and in those where they cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from star_tables import KEY_TYPES, Row, Star, Table, Value, random_star, random_value

from rewriter import Column

# Enough that each of a few files holds several, few enough that a join of three facts stays small.
_ROWS = 24
# The part of the rows that have one value of the second key.
_SKEW = 0.5
# One key in six is null: files without any value are among those of small partitions.
_NULLS = 1 / 6


class Layout(Enum):
    """How the rows of a fact came into files."""

    LOADED = "list-bucketed by one column"
    LOADED_PAIRS = "list-bucketed by two columns, as ORC"
    SORTED = "sorted by a key, as Parquet"
    SORTED_ORC = "sorted by a key, as ORC"
    SORTED_CSV = "sorted by a key, as CSV"
    UNSORTED = "in any order, as Parquet"
    BUCKETED = "bucketed by a key"
    HIVE = "in Hive format"

    @property
    def is_loaded(self) -> bool:
        """Whether `starpruner pipeline load` writes it."""
        return self in {Layout.LOADED, Layout.LOADED_PAIRS}

    @property
    def is_indexed(self) -> bool:
        """Whether `starpruner pipeline index` takes it: what files of text say depends on more than the files."""
        return self is not Layout.SORTED_CSV

    @property
    def provider(self) -> str:
        """What stands behind USING."""
        return {Layout.LOADED_PAIRS: "orc", Layout.SORTED_ORC: "orc", Layout.SORTED_CSV: "csv"}.get(
            self, "parquet"
        )


# Of each star one fact has files that hints tell apart, and the other one something else.
_TOLD_APART = (Layout.LOADED, Layout.SORTED, Layout.LOADED_PAIRS, Layout.SORTED_ORC)
_OTHERS = (Layout.BUCKETED, Layout.SORTED_CSV, Layout.HIVE, Layout.UNSORTED)


@dataclass(frozen=True)
class Fact(Table):
    """A fact, partitioned or not, with the keys k1 and k2; its files tell apart those of `laid_by`."""

    layout: Layout = Layout.UNSORTED
    laid_by: tuple[str, ...] = ()

    @property
    def is_fact(self) -> bool:
        """Always, though only some are partitioned."""
        return True

    @property
    def is_native(self) -> bool:
        """Whether Spark tells which file a row is of."""
        return self.layout is not Layout.HIVE

    @property
    def rows_table(self) -> Table:
        """The rows as a plain table, which they are written from."""
        return Table(f"{self.name}_rows", self.columns, self.rows)

    def create_statement(self) -> str:
        """What makes the empty table; a load makes its own."""
        written = {c.name: f"{c.name} {c.type_name}" for c in self.columns}
        if self.layout is Layout.HIVE:
            partitions = ", ".join(written.pop(name) for name in self.partition_columns)
            partitioned = f" PARTITIONED BY ({partitions})" if partitions else ""
            columns = ", ".join(written.values())
            return f"CREATE TABLE {self.name} ({columns}){partitioned} STORED AS parquet"
        partitioned = f" PARTITIONED BY ({', '.join(self.partition_columns)})" if self.partition_columns else ""
        bucketed = ""
        if self.layout is Layout.BUCKETED:
            bucketed = f" CLUSTERED BY ({self.laid_by[0]}) INTO 4 BUCKETS"
        using = f"USING {self.layout.provider}{partitioned}{bucketed}"
        return f"CREATE TABLE {self.name} ({', '.join(written.values())}) {using}"

    def insert_statement(self, rows: str, *, how: str = "INSERT INTO") -> str:
        """What writes the rows of a relation into files of this layout."""
        by = ", ".join(self.laid_by)
        sorted_ = self.layout not in {Layout.UNSORTED, Layout.BUCKETED, Layout.HIVE}
        hint = f"/*+ REPARTITION_BY_RANGE(3, {by}) */" if sorted_ else "/*+ REPARTITION(2) */"
        return f"{how} {self.name} SELECT {hint} * FROM {rows}"

    def load_arguments(self, database: str, index: str, rng: Random, *, overwrite: bool = False) -> list[str]:
        """`starpruner pipeline load` of the rows, with one skew list or another."""
        arguments = [
            "load",
            "--table",
            f"{database}.{self.name}",
            "--source-table",
            f"{database}.{self.name}_rows",
        ]
        arguments += ["--skewed-by", ",".join(self.laid_by), "--table-format", self.layout.provider]
        arguments += ["--index", index, "--min-share", rng.choice(("0.1", "0.2", "0.4"))]
        if rng.random() < 0.5:
            arguments += ["--top", rng.choice("123")]
        if self.partition_columns:
            arguments += ["--partition-by", ",".join(self.partition_columns)]
        return [*arguments, "--mode", "overwrite"] if overwrite else arguments

    def retyped(self, rng: Random) -> Fact:
        """Another table of this name, whose second key is of another type."""
        other = rng.choice([name for name in KEY_TYPES if name != self.column("k2").type_name])
        columns = tuple(Column(c.name, other) if c.name == "k2" else c for c in self.columns)
        return replace(self, columns=columns, rows=some_rows(rng, columns, _ROWS))


def laid_out_star(rng: Random, number: int) -> Star:
    """A random star whose two facts stand in layouts, the layouts in turns."""
    star = random_star(rng)
    told_apart = _TOLD_APART[number % len(_TOLD_APART)]
    # After each round with another one, so that all meet.
    other = _OTHERS[(number + number // len(_TOLD_APART)) % len(_OTHERS)]
    layouts = {"f1": told_apart, "f2": other}
    facts = {name: _fact(rng, star.table(name), layout) for name, layout in layouts.items()}
    # Small sides without any row make empty keys, which the other differential tests have enough of.
    others = (
        table if table.rows else replace(table, rows=some_rows(rng, table.columns, 5)) for table in star.tables
    )
    return Star(tuple(facts.get(table.name, table) for table in others))


def _fact(rng: Random, table: Table, layout: Layout) -> Fact:
    types = {column.name: column.type_name for column in table.columns}
    if types["k2"] not in KEY_TYPES:
        types["k2"] = "int"
    if layout.is_loaded and types["k1"].endswith("char(3)"):
        # Spark pads and checks these while it inserts, so a load refuses them.
        types["k1"] = "string"
    partitioned = ("k1",) if rng.random() < 0.5 and types["k1"] in KEY_TYPES else ()
    names = [name for name in types if name not in partitioned] + list(partitioned)
    columns = tuple(Column(name, types[name]) for name in names)
    laid_by = ("k2", "m") if layout is Layout.LOADED_PAIRS else ("k2",)
    return Fact(table.name, columns, some_rows(rng, columns, _ROWS), partitioned, layout, laid_by)


def some_rows(rng: Random, columns: Sequence[Column], count: int) -> tuple[Row, ...]:
    """Rows in which one value of k2 is skewed."""
    context = {column.name: random_value(rng, column.type_name) for column in columns if column.name == "k2"}
    return tuple(tuple(_values(rng, columns, context)) for _ in range(count))


def _values(rng: Random, columns: Sequence[Column], context: dict[str, Value]) -> Iterator[Value]:
    for column in columns:
        if column.name in context and rng.random() < _SKEW:
            yield context[column.name]
        elif column.name[0] == "k" and rng.random() < _NULLS:
            yield None
        else:
            yield random_value(rng, column.type_name)
