"""What a layout saves, by Spark's own count of the files and rows that it read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import pytest
from pipeline_server import FILE_INDEX, PipelineServer
from pyhive import hive

from demo.hive import connect, run, same_answer
from demo.metrics import ScanMetrics
from demo.proxy_process import ProxyProcess
from rewriter import SkipReason

# x is 10, 20 or 30 in two of three rows; the others have values of their own, 50 among them.
SKEWED = """SELECT CAST(id AS INT) AS id,
  CAST(IF(id % 3 = 0, 40 + id, 10 * (1 + id % 9 div 3)) AS INT) AS x FROM range(300)"""
# Three pairs are skewed: (10, 'a'), (10, 'b') and (20, 'c'). The others are (10, 'c'), (20, 'a') and (30, 'b').
PAIRS = """SELECT CAST(id AS INT) AS id, CAST(element_at(array(10, 10, 20, 10, 20, 30), p) AS INT) AS x,
  element_at(array('a', 'b', 'c', 'c', 'a', 'b'), p) AS y
  FROM (SELECT id, CAST(IF(id < 270, 1 + id % 3, 4 + id % 3) AS INT) AS p FROM range(300))"""
SPREAD_ROWS = 400_000
# Rows of each file, and of each of its pages, of tables in which every file holds values from everywhere.
INSIDE_FILES, INSIDE_ROWS, INSIDE_PAGE = 3, 100_000, 5_000


def insides(name: str, provider: str, options: str, order: str) -> str:
    """The statements for a table whose files all hold values from everywhere, each file in an order."""
    inserts = (
        f"""INSERT INTO examples.{name} SELECT /*+ COALESCE(1) */
          CAST({INSIDE_FILES} * ({order}) + {number} AS INT), sha2(string(id), 256)
          FROM range(0, {INSIDE_ROWS}, 1, 1)"""
        for number in range(INSIDE_FILES)
    )
    create = f"CREATE TABLE examples.{name} (x INT, v STRING) USING {provider} OPTIONS ({options})"
    return ";".join([create, *inserts])


PAGED = f"'parquet.page.row.count.limit' = '{INSIDE_PAGE}'"
STRIPED = "'orc.stripe.size' = '262144', 'orc.row.index.stride' = '1000'"
TABLES = f"""
CREATE DATABASE IF NOT EXISTS examples;
{insides("inside", "parquet", PAGED, "id")};
{insides("inside_orc", "orc", STRIPED, "id")};
{insides("shuffled", "parquet", PAGED, f"id * 7919 % {INSIDE_ROWS}")};
CREATE TABLE examples.wanted (x INT, g INT) USING parquet;
INSERT INTO examples.wanted VALUES (10, 1), (46, 1), (1, 2), (5, 2), (9, 2), (15, 2), (23, 2),
  (3, 3), (7, 3), (11, 3), (18, 3), (25, 3);
CREATE TABLE examples.few (x INT, g INT) USING parquet;
INSERT INTO examples.few SELECT id * {SPREAD_ROWS // 20} + 7, 1 FROM range(20);
CREATE TABLE examples.wanted_pairs (a INT, b INT, g INT) USING parquet;
INSERT INTO examples.wanted_pairs VALUES (1, 1, 1), (2, 2, 1);
CREATE TABLE examples.apart (x INT) USING parquet;
INSERT INTO examples.apart SELECT /*+ COALESCE(1) */ id FROM range(1, 10);
INSERT INTO examples.apart SELECT /*+ COALESCE(1) */ id FROM range(10, 15);
INSERT INTO examples.apart SELECT /*+ COALESCE(1) */ id FROM range(15, 24);
CREATE TABLE examples.overlapping (x INT) USING orc;
INSERT INTO examples.overlapping SELECT /*+ COALESCE(1) */ * FROM VALUES (1), (3);
INSERT INTO examples.overlapping SELECT /*+ COALESCE(1) */ * FROM VALUES (4), (6);
INSERT INTO examples.overlapping SELECT /*+ COALESCE(1) */ * FROM VALUES (6), (12);
INSERT INTO examples.overlapping SELECT /*+ COALESCE(1) */ * FROM VALUES (13), (17);
CREATE TABLE examples.crossed (v INT, a INT, b INT) USING parquet PARTITIONED BY (a, b);
INSERT INTO examples.crossed SELECT /*+ COALESCE(1) */ id, 1 + id div 50, 1 + id % 2 FROM range(100);
CREATE TABLE examples.spread (x INT, v STRING) USING parquet OPTIONS ('parquet.block.size' = '65536');
INSERT INTO examples.spread SELECT /*+ COALESCE(1) */ id, sha2(string(id), 256) FROM range(0, {SPREAD_ROWS}, 1, 1);
CREATE TABLE examples.bucketed (x INT, v INT) USING parquet CLUSTERED BY (x) INTO 16 BUCKETS;
INSERT INTO examples.bucketed SELECT /*+ COALESCE(1) */ id, id FROM range(0, 1000, 1, 1)"""

Read = Callable[[str], tuple[ScanMetrics, ScanMetrics]]


@pytest.fixture(scope="module")
def tables(pipeline_spark: PipelineServer) -> Iterator[None]:
    """The tables, made once, and their index."""
    with closing(connect(pipeline_spark.endpoint)) as connection:
        for statement in TABLES.split(";"):
            run(connection, statement)
        for name, query, by, values in (
            ("skewed", SKEWED, "x", ("10", "20", "30")),
            ("paired", PAIRS, "x,y", ("10,a", "10,b", "20,c")),
        ):
            given = [word for value in values for word in ("--skewed-value", value)]
            pipeline_spark.pipeline(
                *(
                    "load",
                    "--table",
                    f"examples.{name}",
                    "--query",
                    query,
                    "--skewed-by",
                    by,
                    "--index",
                    FILE_INDEX,
                ),
                *given,
            )
        names = ("apart", "overlapping", "crossed", "spread", "inside", "inside_orc", "shuffled")
        pipeline_spark.pipeline(
            "index", *(word for name in names for word in ("--table", f"examples.{name}")), "--index", FILE_INDEX
        )
        yield
        run(connection, "DROP DATABASE examples CASCADE")


@pytest.fixture
def sessions(
    tables: None, pipeline_spark: PipelineServer, indexed_proxy: ProxyProcess
) -> Iterator[Sequence[hive.Connection]]:
    """One that is direct and one through the proxy."""
    _ = tables
    with (
        closing(connect(pipeline_spark.endpoint, database="examples")) as direct,
        closing(connect(indexed_proxy.endpoint, database="examples", user="examples")) as proxied,
    ):
        yield direct, proxied


@pytest.fixture
def read(sessions: Sequence[hive.Connection], pipeline_spark: PipelineServer) -> Read:
    """What the first table of a FROM was scanned for, directly and through the proxy, with equal answers."""

    def run_both(sql: str) -> tuple[ScanMetrics, ScanMetrics]:
        table = sql.partition(" FROM ")[2].partition(" ")[0]
        metrics, answers = [], []
        for session in sessions:
            before = pipeline_spark.ui.last_execution()
            answers.append(run(session, sql))
            metrics.append(pipeline_spark.ui.scans_of(table, after=before))
        assert same_answer(*answers), sql
        direct, proxied = metrics
        return direct, proxied

    return run_both


@pytest.mark.parametrize(
    ("condition", "files", "rows"),
    [
        ("x = 30", 1, 66),
        ("x = 52", 1, 100),
        ("x IN (10, 52)", 2, 168),
        ("x BETWEEN 15 AND 25", 1, 66),
        ("x > 340", 0, 0),
        ("x = 10 OR x = 20", 2, 134),
        ("x <> 30", 3, 234),
        ("NOT x = 30 AND x <> 10", 2, 166),
        ("x NOT IN (10, 20, 30)", 1, 100),
        ("NOT x < 340", 0, 0),
        ("x IS NULL", 0, 0),
        ("x IS NULL OR x = 10", 1, 68),
    ],
)
def test_a_skewed_value_reads_its_file_and_any_other_value_the_others(
    read: Read, condition: str, files: int, rows: int
) -> None:
    direct, proxied = read(f"SELECT id FROM skewed WHERE {condition}")
    assert direct.files_read == 4
    assert proxied.files_read == files
    # A range may end within a file, whose rows Spark then leaves out by itself.
    assert proxied.rows_read <= rows


@pytest.mark.parametrize("hint", ["MERGE(d)", "BROADCAST(d)"])
def test_a_join_reads_the_files_of_its_keys(read: Read, hint: str) -> None:
    direct, proxied = read(f"SELECT /*+ {hint} */ f.id FROM skewed f JOIN wanted d ON f.x = d.x WHERE d.g = 1")
    assert (direct.files_read, proxied.files_read) == (4, 2)


@pytest.mark.parametrize(
    ("condition", "files"),
    [("x = 10", 3), ("y = 'b'", 2), ("x = 10 AND y = 'b'", 1), ("x = 20 AND y = 'c'", 1), ("x = 30", 1)],
)
def test_pairs_leave_out_what_holds_none_of_them(read: Read, condition: str, files: int) -> None:
    direct, proxied = read(f"SELECT id FROM paired WHERE {condition}")
    assert (direct.files_read, proxied.files_read) == (4, files)


@pytest.mark.parametrize(("table", "group", "kept"), [("apart", 2, 2), ("overlapping", 3, 2)])
def test_a_file_between_whose_bounds_no_key_lies_is_not_read(
    read: Read, table: str, group: int, kept: int
) -> None:
    # 1, 5, 9, 15, 23 in [1, 9], [10, 14], [15, 23], and 3, 7, 11, 18, 25 in [1, 3], [4, 6], [6, 12], [13, 17].
    direct, proxied = read(f"SELECT f.x FROM {table} f JOIN wanted d ON f.x = d.x WHERE d.g = {group}")
    assert direct.files_read == {"apart": 3, "overlapping": 4}[table]
    assert proxied.files_read == kept


def test_of_four_partitions_two_pairs_read_two(read: Read) -> None:
    sql = "SELECT f.v FROM crossed f JOIN wanted_pairs d ON f.a = d.a AND f.b = d.b WHERE d.g = 1"
    _, proxied = read(sql)
    assert proxied.files_read == 2


def test_row_groups_between_spread_keys_are_skipped(read: Read) -> None:
    # Spark takes an IN of more than ten for all that lies between its least and its greatest value.
    keys = ", ".join(str(number * (SPREAD_ROWS // 20) + 7) for number in range(20))
    with_in, _ = read(f"SELECT v FROM spread WHERE x IN ({keys})")
    direct, proxied = read("SELECT /*+ MERGE(d) */ f.v FROM spread f JOIN few d ON f.x = d.x WHERE d.g = 1")
    assert direct.rows_read == SPREAD_ROWS
    assert with_in.rows_read > SPREAD_ROWS / 2
    assert proxied.rows_read < SPREAD_ROWS / 5


INSIDE = "SELECT /*+ {hint} */ f.v FROM {table} f JOIN wanted d ON f.x = d.x WHERE d.g = 2"


@pytest.mark.parametrize("hint", ["MERGE(d)", "BROADCAST(d)"])
def test_keys_in_every_file_leave_out_pages_where_each_file_is_sorted(read: Read, hint: str) -> None:
    direct, proxied = read(INSIDE.format(hint=hint, table="inside"))
    assert (direct.files_read, proxied.files_read) == (INSIDE_FILES, INSIDE_FILES)
    assert direct.rows_read == INSIDE_FILES * INSIDE_ROWS
    assert proxied.rows_read == INSIDE_FILES * INSIDE_PAGE


def test_keys_in_every_file_leave_out_stripes_where_each_file_is_sorted(read: Read) -> None:
    direct, proxied = read(INSIDE.format(hint="MERGE(d)", table="inside_orc"))
    assert direct.rows_read == INSIDE_FILES * INSIDE_ROWS
    assert proxied.rows_read < INSIDE_ROWS / 5


def test_row_groups_before_and_after_are_told(sessions: Sequence[hive.Connection]) -> None:
    told = "\n".join(
        line for (line,) in run(sessions[1], "EXPLAIN REWRITE " + INSIDE.format(hint="MERGE(d)", table="inside"))
    )
    pages = INSIDE_FILES * INSIDE_ROWS // INSIDE_PAGE
    assert f"row groups   {INSIDE_FILES} of {pages} kept" in told


def test_nothing_is_said_where_every_page_may_hold_keys(sessions: Sequence[hive.Connection], read: Read) -> None:
    sql = INSIDE.format(hint="MERGE(d)", table="shuffled")
    direct, proxied = read(sql)
    assert direct.rows_read == proxied.rows_read == INSIDE_FILES * INSIDE_ROWS
    told = "\n".join(line for (line,) in run(sessions[1], f"EXPLAIN REWRITE {sql}"))
    assert SkipReason.NOTHING_TO_SKIP.sentence in told


def test_rows_of_buckets_without_a_key_are_not_read(read: Read) -> None:
    # Spark counts the files of all buckets as read, and then opens those of some.
    direct, proxied = read("SELECT f.v FROM bucketed f JOIN wanted d ON f.x = d.x WHERE d.g = 2")
    assert direct.rows_read == 1000
    assert proxied.rows_read < 400
