"""Facts of some number of files, with and without partitions, and small sides of some number of keys."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kept_tables import COMPLETE_PROPERTY, Question, is_complete
from known_formats import TableFormat
from pyhive import hive

from demo.hive import run
from demo.progress import Progress

# A file of some 50 KB, so that ten thousand of them are written in minutes.
ROWS_OF_A_FILE = 1_000
KEYS = (10, 100, 1_000, 10_000)
STRATEGIES = ("MERGE", "BROADCAST")


@dataclass(frozen=True)
class FormatFacts:
    """The tables of a format for one number of files, in a namespace of their own."""

    table_format: TableFormat
    files: int

    @property
    def namespace(self) -> str:
        """The namespace of the tables."""
        return f"{self.table_format.catalog}files_{self.files}"

    @property
    def _rows(self) -> int:
        return self.files * ROWS_OF_A_FILE

    def ensure(self, session: hive.Connection, progress: Progress) -> None:
        """Make the tables that are missing."""
        run(session, f"CREATE DATABASE IF NOT EXISTS {self.namespace}")
        for name in ("by_key", "by_partition", "keys"):
            table = f"{self.namespace}.{name}"
            if is_complete(session, table):
                continue
            progress(f"Making {table}")
            run(session, f"DROP TABLE IF EXISTS {table}")
            run(session, self._creation(name, table))

    def _creation(self, name: str, table: str) -> str:
        """Make and fill a table at once. A fact's files each have keys of their own; a partition is a file."""
        query = self._keys_query if name == "keys" else self._fact_query
        partitioned = "PARTITIONED BY (p)" if name == "by_partition" else ""
        properties = f"TBLPROPERTIES ({self.table_format.properties}{COMPLETE_PROPERTY})"
        return f"CREATE TABLE {table} USING {self.table_format.name} {partitioned} {properties} AS {query}"

    @property
    def _fact_query(self) -> str:
        return (
            f"SELECT CAST(id AS INT) AS k, CAST(id DIV {ROWS_OF_A_FILE} AS INT) AS p, "
            "CAST(pmod(hash(id), 10000) AS INT) AS amount, left(sha2(string(id), 256), 32) AS note "
            f"FROM range(0, {self._rows}, 1, {self.files})"
        )

    @property
    def _keys_query(self) -> str:
        """By the group `g`: keys side by side, with gaps; keys all over the table; partitions."""
        parts = [
            f"SELECT CAST({k} AS INT) AS k, CAST({p} AS INT) AS p, '{group}' AS g FROM range({count})"
            for count in KEYS
            for group, k, p in (
                (f"near {count}", f"{self._rows // 2} + id * 3", "-1"),
                (f"spread {count}", f"id * {self._rows // count} + 7", "-1"),
                (f"partitions {count}", "-1", "id * 3"),
            )
        ]
        return " UNION ALL ".join(parts)

    def questions(self, numbers_of_keys: Sequence[int]) -> Iterator[Question]:
        """Each number of keys, by each strategy. More partitions than a third of them are no small part."""
        for strategy in STRATEGIES:
            for count in numbers_of_keys:
                for how in ("near", "spread"):
                    yield self._question("by_key", "k", f"{how} {count}", f"{count:,} keys, {how}", strategy)
                if count * 3 <= self.files:
                    name = f"{count:,} partitions"
                    yield self._question("by_partition", "p", f"partitions {count}", name, strategy)

    def _question(self, table: str, column: str, group: str, name: str, strategy: str) -> Question:
        sql = (
            f"SELECT /*+ {strategy}(d) */ count(*), sum(f.amount), max(f.note) FROM {self.namespace}.{table} f "
            f"JOIN {self.namespace}.keys d ON f.{column} = d.{column} WHERE d.g = '{group}'"
        )
        return Question(f"{name}, {strategy.lower()}", table, sql)
