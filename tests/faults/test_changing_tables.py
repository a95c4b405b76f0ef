"""Tables that change under a proxy that knows them: no answer comes from what they were.

The sessions have asked before, so that everything is known that can be; then the tables change, through the
proxy or behind its back.
"""

from collections.abc import Iterator

import pytest
from fault_stage import DAYS, JOIN, WANTED_DAYS, Seen, Stage, fault_stage, make_tables, seen
from support.profile import DEEP

from demo.hive import run
from demo.thrift_server import ThriftServer

DAY = "concat('d', id + 10)"
FILL = f"INSERT INTO fact (v, ds) SELECT CAST(id AS INT), {DAY} FROM range({DAYS})"

# What the tables become, in statements after which `fact` and `dim` are there again.
CHANGES = {
    "partitioned by a column of another type": [
        "DROP TABLE fact",
        "CREATE TABLE fact (v INT, ds DATE) USING parquet PARTITIONED BY (ds)",
        "INSERT INTO fact SELECT CAST(id AS INT), date_add(DATE'2026-01-01', CAST(id AS INT)) FROM range(5)",
        "INSERT OVERWRITE dim VALUES ('2026-01-02', 'wanted', 2), ('2026-01-04', 'wanted', 2)",
    ],
    "partitioned by numbers, which strings are compared with as numbers": [
        "DROP TABLE fact",
        "CREATE TABLE fact (v INT, ds INT) USING parquet PARTITIONED BY (ds)",
        "INSERT INTO fact SELECT CAST(id AS INT), CAST(id AS INT) FROM range(5)",
        "INSERT OVERWRITE dim VALUES ('01', 'wanted', 2), ('3', 'wanted', 2)",
    ],
    "partitioned by another column": [
        "DROP TABLE fact",
        "CREATE TABLE fact (ds STRING, v INT) USING parquet PARTITIONED BY (v)",
        FILL,
    ],
    "not partitioned at all": ["DROP TABLE fact", "CREATE TABLE fact (v INT, ds STRING) USING parquet", FILL],
    "without the column": [
        "DROP TABLE fact",
        "CREATE TABLE fact (v INT, other STRING) USING parquet PARTITIONED BY (other)",
        f"INSERT INTO fact SELECT CAST(id AS INT), {DAY} FROM range({DAYS})",
    ],
    "with other columns in another order": [
        "DROP TABLE fact",
        "CREATE TABLE fact (more STRING, v INT, ds STRING) USING parquet PARTITIONED BY (ds)",
        f"INSERT INTO fact SELECT 'more', CAST(id AS INT), {DAY} FROM range({DAYS})",
    ],
    "a view over other rows": [
        "DROP TABLE fact",
        "CREATE VIEW fact AS SELECT CAST(id AS INT) AS v, concat('d', id + 20) AS ds FROM range(9)",
    ],
    "a small side with keys of another type": [
        "DROP TABLE dim",
        "CREATE TABLE dim USING parquet AS SELECT 10 AS ds, 'wanted' AS name, 1 AS n",
        "INSERT INTO fact VALUES (1000, '10'), (1001, '010')",
    ],
    "a small side that is a random view": [
        "DROP TABLE dim",
        f"CREATE VIEW dim AS SELECT {DAY} AS ds, if(rand() < 2, 'wanted', '') AS name, 1 AS n FROM range({DAYS})",
    ],
    "no tables": ["DROP TABLE fact", "DROP TABLE dim"],
    "more days on both sides": [
        "INSERT INTO fact VALUES (500, 'e1'), (501, 'd15b'), (502, NULL)",
        "INSERT INTO dim VALUES ('e1', 'wanted', 1), ('d15b', 'wanted', 1), (NULL, 'wanted', 1)",
    ],
    "fewer days on both sides": [
        "ALTER TABLE fact DROP PARTITION (ds = 'd12')",
        f"INSERT OVERWRITE dim SELECT {DAY}, if(id > {WANTED_DAYS - 5}, 'wanted', ''), 1 FROM range({DAYS})",
    ],
}

QUICK = ("partitioned by a column of another type", "not partitioned at all", "more days on both sides")

# Spark caches which files a table has, in each session: a session that is not told reads those that were.
FILES_ARE_GONE = "KD001"

STAR_JOIN = JOIN.replace("f.ds, f.v", "*")


@pytest.fixture(scope="module")
def stage(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with fault_stage(spark, tmp_path_factory.mktemp("changing")) as stage:
        yield stage


def alike(found: Seen, expected: Seen) -> bool:
    """Whether two sessions see the same. Which of several files Spark misses first is chance."""
    return found == expected or (files_are_gone(found) and files_are_gone(expected))


def files_are_gone(found: Seen) -> bool:
    """Without adaptive plans Spark says so in the message alone."""
    kind, said = found
    return kind == "error" and FILES_ARE_GONE in f"{said[0]} {said[-1]}"


@pytest.mark.parametrize("what", list(CHANGES) if DEEP else QUICK)
def test_a_session_that_knew_the_tables_answers_as_a_direct_one_once_they_are_others(
    stage: Stage, what: str
) -> None:
    make_tables(stage.server)
    with (
        stage.proxied() as watching,
        stage.direct() as twin,
        stage.proxied() as changing,
        stage.direct() as behind,
    ):
        assert seen(watching, JOIN) == seen(changing, JOIN) == seen(twin, JOIN)
        # Half of the changes are made through the proxy; the watching session and its twin are never told.
        through_proxy = list(CHANGES).index(what) % 2 == 1
        for sql in CHANGES[what]:
            run(changing if through_proxy else behind, sql)
        for sql in (JOIN, STAR_JOIN):
            pairs = [(seen(watching, sql), seen(twin, sql))]
            pairs += [(seen(changing, sql), seen(behind, sql))] if through_proxy else []
            for found, expected in pairs:
                assert alike(found, expected), f"{sql}\nproxied: {found}\ndirect:  {expected}"
