"""What narrowing relies on, as the Iceberg that tests run on does it: which conditions skip files, and which not.

Where one of these fails with another version of Iceberg, the design has to be looked at, not only the test.
"""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from iceberg_scans import IcebergScan, scans_of
from pipeline_server import PipelineServer
from pyhive import hive
from support.server_version import INSERT_OPTIONS, needs

from demo.hive import Row, connect, run

# Ten files of a thousand keys each, v being seven times k; and what is hashed into sixteen buckets.
FILES, ROWS_OF_A_FILE, BUCKETS = 10, 1_000, 16
# Iceberg looks at no file's bounds for a longer IN.
IN_VALUES_MAX = 200

TABLES = f"""
CREATE DATABASE ice.facts;
USE ice.facts;
CREATE TABLE sorted (k INT, v BIGINT) USING iceberg;
INSERT INTO sorted SELECT CAST(id AS INT), id * 7 FROM range(0, {FILES * ROWS_OF_A_FILE}, 1, {FILES});
CREATE TABLE bucketed (k INT) USING iceberg PARTITIONED BY (bucket({BUCKETS}, k));
INSERT INTO bucketed SELECT CAST(id AS INT) FROM range(2000);
CREATE TABLE days (ds DATE) USING iceberg PARTITIONED BY (days(ds));
INSERT INTO days SELECT date_add(DATE'2026-01-01', CAST(id % 8 AS INT)) FROM range(80);
CREATE TABLE crossed (v INT, a INT, b INT) USING iceberg PARTITIONED BY (a, b);
INSERT INTO crossed SELECT CAST(id AS INT), 1 + CAST(id DIV 50 AS INT), 1 + CAST(id % 2 AS INT) FROM range(100);
CREATE TABLE wanted (a INT, b INT, g INT) USING iceberg;
INSERT INTO wanted VALUES (1, 1, 1), (2, 2, 1), (1, 2, 2)"""

Scanned = Callable[[str], tuple[list[Row], IcebergScan]]


def points(*bounds: int) -> str:
    return ", ".join(map(str, range(*bounds)))


@pytest.fixture(scope="module")
def session(iceberg_server: PipelineServer) -> Iterator[hive.Connection]:
    with closing(connect(iceberg_server.endpoint)) as connection:
        for statement in TABLES.split(";"):
            run(connection, statement)
        yield connection
        for _, table, _ in run(connection, "SHOW TABLES"):
            run(connection, f"DROP TABLE {table} PURGE")
        run(connection, "DROP DATABASE ice.facts")


@pytest.fixture
def scanned(session: hive.Connection, iceberg_server: PipelineServer) -> Scanned:
    """The rows of a statement, and what the first table of its FROM was scanned for."""

    def scan(sql: str) -> tuple[list[Row], IcebergScan]:
        table = sql.partition("FROM ")[2].partition(" ")[0]
        before = iceberg_server.ui.last_execution()
        return run(session, sql), scans_of(iceberg_server.ui, table, after=before)

    return scan


@pytest.mark.parametrize(
    ("condition", "files"),
    [
        (f"k IN ({points(IN_VALUES_MAX)})", 1),
        (f"k IN ({points(IN_VALUES_MAX + 1)})", FILES),
        (f"k IN ({points(150)}) OR k IN ({points(150, 300)})", 1),
        ("(k >= 0 AND k < 500) OR (k >= 4000 AND k < 4100)", 2),
        ("(k = 1 AND v = 7) OR (k = 5001 AND v = 35007)", 2),
        # Each column is within the bounds of its file, but not of the same one.
        ("(k = 1 AND v = 35007) OR (k = 5001 AND v = 7)", 0),
        ("(k, v) IN ((1, 7L), (5001, 35007L))", FILES),
        ("k IN (5, 5001) OR typeof(k) <> 'int'", 2),
        ("k IN (5, 5001) OR current_date() <> current_date()", 2),
        ("k IN (5, 5001) AND (SELECT if(count(*) = 0, true, raise_error('x')) FROM wanted WHERE a > 7)", 2),
        ("CAST(k AS BIGINT) = 5001", 1),
        ("abs(k) = 5001", FILES),
    ],
)
def test_files_are_skipped_by_bounds_for_these_conditions_and_not_for_others(
    scanned: Scanned, condition: str, files: int
) -> None:
    _, scan = scanned(f"SELECT count(v) FROM sorted WHERE {condition}")
    assert scan.files_planned == files


@pytest.mark.parametrize(
    ("condition", "files_max"),
    [("k IN (1, 2, 3)", 3), ("k IN (1, 2) OR k IN (3, 4)", 4), ("(k = 1 AND k < 9) OR k = 2", 2)],
)
def test_points_are_hashed_into_buckets(scanned: Scanned, condition: str, files_max: int) -> None:
    _, scan = scanned(f"SELECT count(k) FROM bucketed WHERE {condition}")
    assert 1 <= scan.files_planned <= files_max


def test_a_longer_list_of_points_prunes_no_bucket(scanned: Scanned) -> None:
    _, scan = scanned(f"SELECT count(k) FROM bucketed WHERE k IN ({points(IN_VALUES_MAX + 1)})")
    assert scan.files_planned == BUCKETS


def test_days_are_pruned_by_dates_that_do_not_name_the_partition(scanned: Scanned) -> None:
    _, scan = scanned("SELECT count(ds) FROM days WHERE ds IN (DATE'2026-01-02', DATE'2026-01-07')")
    assert scan.files_planned == 2


def test_runtime_filters_lose_pairs_which_ored_conditions_keep(scanned: Scanned) -> None:
    """Spark gives each column a filter of its own, so that all of {1, 2} x {1, 2} are read."""
    by_spark, of_runtime = scanned(
        "SELECT /*+ BROADCAST(d) */ count(*), sum(f.v) FROM crossed f JOIN wanted d ON f.a = d.a AND f.b = d.b "
        "WHERE d.g = 1"
    )
    narrowed, of_pairs = scanned(
        "SELECT /*+ BROADCAST(d) */ count(*), sum(f.v) FROM "
        "crossed f JOIN wanted d ON f.a = d.a AND f.b = d.b WHERE d.g = 1 "
        "AND ((f.a = 1 AND f.b = 1) OR (f.a = 2 AND f.b = 2))"
    )
    assert by_spark == narrowed
    assert (of_runtime.splits_read, of_pairs.splits_read) == (4, 2)


def test_without_a_broadcast_there_is_no_runtime_filter_at_all(scanned: Scanned) -> None:
    _, scan = scanned(
        "SELECT /*+ MERGE(d) */ count(*) FROM crossed f JOIN wanted d ON f.a = d.a AND f.b = d.b WHERE d.g = 2"
    )
    assert scan.splits_read == 4


def test_a_version_is_read_with_the_schema_that_it_was_written_with(session: hive.Connection) -> None:
    run(session, "CREATE TABLE grown (k INT) USING iceberg")
    run(session, "INSERT INTO grown VALUES (1)")
    ((snapshot,),) = run(session, "SELECT snapshot_id FROM ice.facts.grown.refs WHERE name = 'main'")
    run(session, "ALTER TABLE grown ADD COLUMN more INT")
    assert run(session, "SELECT * FROM grown") == [(1, None)]
    assert run(session, f"SELECT * FROM grown VERSION AS OF {snapshot}") == [(1,)]
    described = run(session, f"DESCRIBE QUERY SELECT * FROM grown VERSION AS OF {snapshot}")
    assert [name for name, *_ in described] == ["k"]


def test_a_description_tells_the_current_snapshot(session: hive.Connection) -> None:
    ((snapshot,),) = run(session, "SELECT snapshot_id FROM ice.facts.wanted.refs WHERE name = 'main'")
    details = {str(row[0]): str(row[1]) for row in run(session, "DESCRIBE TABLE EXTENDED wanted")}
    assert f"current-snapshot-id={snapshot}," in details["Table Properties"]
    assert (details["Name"], details["Provider"]) == ("ice.facts.wanted", "iceberg")


def test_metadata_columns_are_no_part_of_a_star_and_are_lost_behind_a_subquery(session: hive.Connection) -> None:
    assert run(session, "SELECT * FROM wanted WHERE _file IS NULL") == []
    assert len(run(session, "SELECT * FROM wanted LIMIT 1")[0]) == 3
    with pytest.raises(hive.Error, match="_file"):
        run(session, "SELECT _file FROM (SELECT * FROM wanted) wanted")


@pytest.mark.parametrize("query", ["SELECT * FROM dropped", "SELECT a, g FROM dropped"])
def test_rows_are_deleted_through_a_view_of_all_rows(session: hive.Connection, query: str) -> None:
    """So a DELETE need not name what it writes: where it drops whole files, Spark looks behind the view."""
    run(session, "CREATE TABLE IF NOT EXISTS dropped (a INT, g INT) USING iceberg PARTITIONED BY (a)")
    run(session, "INSERT OVERWRITE dropped VALUES (1, 1), (2, 2)")
    run(session, f"CREATE OR REPLACE TEMPORARY VIEW of_dropped AS {query}")
    run(session, "DELETE FROM of_dropped WHERE a = 1")
    assert run(session, "SELECT * FROM dropped") == [(2, 2)]


def test_an_option_of_an_insert_adds_columns(session: hive.Connection) -> None:
    needs(session, *INSERT_OPTIONS)
    properties = "TBLPROPERTIES ('write.spark.accept-any-schema' = 'true')"
    run(session, f"CREATE TABLE widened (k INT) USING iceberg {properties}")
    for option, column in (("merge-schema", "a"), ("mergeSchema", "b")):
        run(session, f"INSERT INTO widened WITH ('{option}' = 'true') SELECT 1 AS k, 2 AS {column}")
        assert [name for name, *_ in run(session, "DESCRIBE widened")][-1] == column
