"""Two facts, skewed and clustered, with copies in other layouts, and the questions that are asked of them."""

from collections.abc import Iterator
from dataclasses import dataclass

from kept_tables import Question, is_complete, mark_complete
from pipeline_server import PipelineServer
from pyhive import hive

from demo.hive import run
from demo.progress import Progress

# Ten values hold eight of ten rows; the others have a hundred rows each.
_SKEWED_VALUES = 10
_ROWS_OF_A_RARE_VALUE = 100
# Spark's own default for what a file's reader takes at once; a copy without skew has as many files.
_FILE_BYTES = 128 << 20
# The size of a row, which has three numbers and a text that does not compress.
_BYTES_OF_A_ROW = 50

SMALL_KEYS, LARGE_KEYS = 20, 2_000


@dataclass(frozen=True)
class LayoutTables:
    """The tables for one number of rows, in a database of their own."""

    rows: int

    @property
    def database(self) -> str:
        """The database that holds them, and the index of their files."""
        return f"layouts_{self.rows}"

    @property
    def index(self) -> str:
        """The index of their files."""
        return f"{self.database}.file_index"

    @property
    def _files(self) -> int:
        return max(8, self.rows * _BYTES_OF_A_ROW // _FILE_BYTES)

    @property
    def _rare_values(self) -> int:
        return self.rows // 5 // _ROWS_OF_A_RARE_VALUE

    @property
    def _rows_query(self) -> str:
        """All rows: `x` is skewed, `k` grows with time as order numbers do, with some disorder."""
        rare = f"{_SKEWED_VALUES} + pmod(hash(id, 1), {self._rare_values})"
        skewed = f"pmod(hash(id, 3), {_SKEWED_VALUES})"
        return (
            f"SELECT id, CAST(IF(pmod(hash(id, 2), 10) < 8, {skewed}, {rare}) AS INT) AS x, "
            f"CAST(id + pmod(hash(id, 4), 1000) AS INT) AS k, CAST(pmod(hash(id, 5), 10000) AS INT) AS amount, "
            f"left(sha2(string(id), 256), 32) AS note FROM range(0, {self.rows}, 1, {self._files})"
        )

    def ensure(self, server: PipelineServer, session: hive.Connection, progress: Progress) -> None:
        """Make the tables that are missing; the session then stays in their database."""
        run(session, f"CREATE DATABASE IF NOT EXISTS {self.database}")
        run(session, f"USE {self.database}")
        for name in ("clustered", "plain", "bucketed_by_skew", "sorted_inside", "keys"):
            if is_complete(session, name):
                continue
            progress(f"Making {name}, {self.rows:,} rows")
            run(session, f"DROP TABLE IF EXISTS {name}")
            self._make(name, server, session)
            mark_complete(session, name)

    def _make(self, name: str, server: PipelineServer, session: hive.Connection) -> None:
        if name == "keys":
            run(session, f"CREATE TABLE keys USING parquet AS {self._keys_query}")
        elif name == "bucketed_by_skew":
            source = ("--source-table", f"{self.database}.clustered")
            how = ("--skewed-by", "x", "--top", str(_SKEWED_VALUES), "--min-share", "0.05", "--index", self.index)
            _ = server.pipeline("load", "--table", f"{self.database}.{name}", *source, *how)
        else:
            spread = f"SELECT /*+ REPARTITION({self._files}) */ * FROM clustered"
            # As loads that each hold keys from everywhere, and sort them.
            rows = {"clustered": self._rows_query, "sorted_inside": f"SELECT * FROM ({spread}) SORT BY k"}
            run(session, f"CREATE TABLE {name} USING parquet AS {rows.get(name, spread)}")
            _ = server.pipeline("index", "--table", f"{self.database}.{name}", "--index", self.index)

    @property
    def _keys_query(self) -> str:
        """Small dimensions in one table: keys of x and keys of k, by the group `g`."""
        groups = (
            (
                "skewed and rare",
                f"SELECT IF(id < 2, id, {_SKEWED_VALUES} + id * 7) AS x, 0 AS k FROM range({SMALL_KEYS})",
            ),
            ("rare", f"SELECT {_SKEWED_VALUES} + id * 7 AS x, 0 AS k FROM range({LARGE_KEYS})"),
            ("near", f"SELECT 0 AS x, {self.rows // 2} + id * 11 AS k FROM range({SMALL_KEYS})"),
            ("near by the thousand", f"SELECT 0 AS x, {self.rows // 2} + id * 11 AS k FROM range({LARGE_KEYS})"),
            ("spread", f"SELECT 0 AS x, id * {self.rows // SMALL_KEYS} AS k FROM range({SMALL_KEYS})"),
        )
        parts = (
            f"SELECT CAST(x AS INT) AS x, CAST(k AS INT) AS k, '{name}' AS g FROM ({sql})" for name, sql in groups
        )
        return " UNION ALL ".join(parts)

    def questions(self) -> Iterator[Question]:
        """The questions: the same for both skewed copies; for the clustered fact some that its order helps."""
        for table in ("bucketed_by_skew", "plain"):
            yield from (
                Question("skewed value", table, _filtered(table, "x = 3")),
                Question("rare value", table, _filtered(table, f"x = {_SKEWED_VALUES + 7}")),
                Question("a list of both", table, _filtered(table, f"x IN (1, 2, {_SKEWED_VALUES + 7})")),
                Question("20 keys, sort-merge", table, _joined(table, "x", "skewed and rare", "MERGE(d)")),
                Question("20 keys, broadcast", table, _joined(table, "x", "skewed and rare", "BROADCAST(d)")),
                Question("2,000 keys, sort-merge", table, _joined(table, "x", "rare", "MERGE(d)")),
            )
        table, half = "clustered", self.rows // 2
        yield from (
            Question("one value", table, _filtered(table, f"k = {half}")),
            Question("a range", table, _filtered(table, f"k BETWEEN {half} AND {half + 10_000}")),
            Question("20 near keys, sort-merge", table, _joined(table, "k", "near", "MERGE(d)")),
            Question("20 near keys, broadcast", table, _joined(table, "k", "near", "BROADCAST(d)")),
            Question(
                "2,000 near keys, sort-merge", table, _joined(table, "k", "near by the thousand", "MERGE(d)")
            ),
            Question("20 spread keys, sort-merge", table, _joined(table, "k", "spread", "MERGE(d)")),
            Question("20 spread keys, broadcast", table, _joined(table, "k", "spread", "BROADCAST(d)")),
            Question("a column that no file is told by", table, _filtered(table, "amount = 77")),
        )
        table = "sorted_inside"
        for group in ("near", "spread", "near by the thousand"):
            for hint in ("MERGE(d)", "BROADCAST(d)"):
                yield Question(f"{group}, {hint}", table, _joined(table, "k", group, hint))


def _filtered(table: str, condition: str) -> str:
    return f"SELECT count(*), sum(amount), max(note) FROM {table} WHERE {condition}"


def _joined(table: str, column: str, group: str, hint: str) -> str:
    return (
        f"SELECT /*+ {hint} */ count(*), sum(f.amount), max(f.note) FROM {table} f "
        f"JOIN keys d ON f.{column} = d.{column} WHERE d.g = '{group}'"
    )
