"""Facts of very many partitions, and small sides with key sets of every size and shape for them."""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from pyhive import hive

from demo.hive import Row, run

FIRST_DAY = date(1990, 1, 1)
# Spark adds partitions to the metastore in batches; Hive 4.0 fails on Derby at a thousand.
PARTITIONS_PER_BATCH = 300
# One key in ten names no partition.
MISSES_PER_TEN = 1
# Clustered keys come in this many runs of neighbours.
CLUSTERS = 8


@dataclass(frozen=True)
class FactTable:
    """A table with a partition of one row for every second position: the others are keys that match nothing."""

    name: str
    # The names and types of the partition columns.
    columns: tuple[tuple[str, str], ...]
    partitions: int
    values_at: Callable[[int], tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def directory_at(self, position: int) -> str:
        return "/".join(
            f"{name}={value}" for name, value in zip(self.names, self.values_at(position), strict=True)
        )

    def literals_at(self, position: int) -> str:
        return ", ".join(
            value if type_name == "INT" else f"{'DATE' if type_name == 'DATE' else ''}'{value}'"
            for value, (_, type_name) in zip(self.values_at(position), self.columns, strict=True)
        )

    def row_at(self, position: int) -> Row:
        """What PyHive answers for the partition's columns: dates come as strings."""
        return tuple(
            int(value) if type_name == "INT" else value
            for value, (_, type_name) in zip(self.values_at(position), self.columns, strict=True)
        )


@dataclass(frozen=True)
class KeyShape:
    """How many keys, and how they lie among the partitions."""

    size: int
    clustered: bool

    def __str__(self) -> str:
        return f"{self.size} {'clustered' if self.clustered else 'scattered'} keys"

    def positions(self, fact: FactTable) -> Sequence[int]:
        """The positions of the keys: even ones name a partition, odd ones do not."""
        chosen = random.Random(str(self))  # noqa: S311 - the same keys in every run, not secrets
        misses = self.size * MISSES_PER_TEN // 10
        hits = self.size - misses
        indices = _clustered(fact.partitions, hits, chosen) if self.clustered else range(fact.partitions)
        return [
            *(2 * index for index in chosen.sample(indices, hits)),
            *(2 * index + 1 for index in chosen.sample(indices, misses)),
        ]

    def rows(self, fact: FactTable) -> list[Row]:
        """The partitions that the keys name."""
        return [fact.row_at(position) for position in self.positions(fact) if position % 2 == 0]


def _clustered(partitions: int, hits: int, chosen: random.Random) -> list[int]:
    """Some runs of neighbours with gaps between them, as many partitions as there are hits."""
    runs = min(CLUSTERS, hits)
    step = partitions // runs
    longest = -(-hits // runs)
    starts = [number * step + chosen.randrange(step - longest + 1) for number in range(runs)]
    return [start + offset for offset in range(longest) for start in starts][:hits]


def fact_tables(partitions: int) -> tuple[FactTable, ...]:
    """One of each partition type that a metastore compares in its own way, and one of two columns."""
    side = int(partitions**0.5)
    return (
        FactTable("by_int", (("p", "INT"),), partitions, lambda at: (str(at),)),
        FactTable("by_date", (("p", "DATE"),), partitions, lambda at: ((FIRST_DAY + timedelta(at)).isoformat(),)),
        FactTable("by_code", (("p", "STRING"),), partitions, lambda at: (_code(at),)),
        FactTable("by_pair", (("a", "INT"), ("b", "STRING")), side * side, lambda at: _pair(at, side)),
    )


def _code(position: int) -> str:
    """Codes whose order depends on who compares: by bytes, capitals come before small letters and '_' between."""
    return f"{'aBcD_'[position // 2 % 5]}{'Zx'[position // 10 % 2]}{position:05d}"


def _pair(position: int, side: int) -> tuple[str, str]:
    a, b = divmod(position // 2, side)
    # An odd position is the pair of its neighbour with an `a` that no partition has.
    return str(2 * a + position % 2), _code(2 * b)


def make_tables(
    connection: hive.Connection, facts: Sequence[FactTable], shapes: Sequence[KeyShape], directory: Path
) -> None:
    """Makes the facts, each with a small side `<fact>_keys` that names its key sets in the column `shape`.

    A partition's file is a link to one file: Spark would write ten thousand of them in many minutes.
    """
    run(connection, f"SET spark.sql.addPartitionInBatch.size={PARTITIONS_PER_BATCH}")
    template = directory / "template"
    run(
        connection,
        f"INSERT OVERWRITE DIRECTORY '{template}' USING parquet SELECT /*+ COALESCE(1) */ CAST(1 AS INT) AS v",
    )
    (row,) = template.glob("*.parquet")
    for fact in facts:
        _link_partitions(fact, row, directory / fact.name)
        columns = ", ".join(f"{name} {type_name}" for name, type_name in fact.columns)
        run(
            connection,
            f"CREATE TABLE {fact.name} (v INT, {columns}) USING parquet PARTITIONED BY ({', '.join(fact.names)}) "
            f"LOCATION '{directory / fact.name}'",
        )
        run(connection, f"MSCK REPAIR TABLE {fact.name}")
        keys = ", ".join(_key_rows(fact, shapes))
        run(
            connection,
            f"CREATE TABLE {fact.name}_keys USING parquet AS "
            f"SELECT * FROM VALUES {keys} AS keys(shape, {', '.join(fact.names)})",
        )


def _link_partitions(fact: FactTable, row: Path, directory: Path) -> None:
    for index in range(fact.partitions):
        partition = directory / fact.directory_at(2 * index)
        partition.mkdir(parents=True)
        (partition / "row.parquet").hardlink_to(row)


def _key_rows(fact: FactTable, shapes: Sequence[KeyShape]) -> Iterator[str]:
    for shape in shapes:
        yield from (f"('{shape}', {fact.literals_at(position)})" for position in shape.positions(fact))
