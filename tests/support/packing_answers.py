"""The settings and plans by which Spark packs files, as it answers them."""

from proxy.operations.query import QueryResult
from proxy.session.catalog.split_packing import KnownPackings
from rewriter import TableName
from support.clock import Clock
from support.played_sessions import rows

T = TableName(("d", "t"))


def plan(text: str) -> QueryResult:
    return rows((f"== Physical Plan ==\n{text}",))


def setting(name: str, value: str) -> tuple[str, QueryResult]:
    return f"SET spark.sql.files.{name}", rows((f"spark.sql.files.{name}", value))


RANGE = ("EXPLAIN SELECT * FROM range(1)", plan("*(1) Range (0, 1, step=1, splits=8)"))
UNCHOSEN = [setting("minPartitionNum", "<undefined>"), setting("maxPartitionNum", "<undefined>")]
SIZES = [setting("maxPartitionBytes", "134217728b"), setting("openCostInBytes", "4MB")]
SETTINGS = [RANGE, *UNCHOSEN, *SIZES]
EXPLAIN = "EXPLAIN SELECT * FROM `d`.`t`"
FILES = (
    EXPLAIN,
    plan("*(1) ColumnarToRow\n+- FileScan parquet c.d.t[v#1L] Location: InMemoryFileIndex(1 paths)[..]"),
)


def nothing_known(clock: Clock | None = None) -> KnownPackings:
    return KnownPackings(clock or Clock())
