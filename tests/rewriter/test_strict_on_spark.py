"""Strict consistency on the real server: the same rows while the keys hold, an error before any row otherwise."""

from contextlib import closing
from dataclasses import dataclass

import pytest
from pyhive import hive
from support import golden_sets
from support.golden_stage import answer
from support.goldens import planned_with

from demo.hive import connect, run
from demo.metrics import SparkUi
from demo.thrift_server import ThriftServer
from rewriter import Catalog, Column, KeyQuery, Keys, RewriteLimits, SkipReason, TableFacts, TableName, apply
from rewriter.predicates.strict_check import KEYS_CHANGED

STRICT, BY_RANGES = golden_sets.STRICT.limits, golden_sets.BY_RANGES.limits


def rewritten(session: hive.Connection, sql: str, limits: RewriteLimits, facts: Catalog) -> str:
    """The statement with its keys and their check, as the session answers now."""
    found = planned_with(sql, lambda _: facts, limits)
    answers: dict[KeyQuery, Keys | SkipReason] = {}
    while pending := found.pending(answers):
        answers |= {question: question.read(run(session, question.sql)) for question in pending}
    result = apply(found, answers, limits)
    assert result.skip is None
    return result.text


FACT = TableName(("strict_fact",))
SMALL = TableName(("strict_small",))
FACTS: Catalog = {
    FACT: TableFacts((Column("v", "int"), Column("ds", "string"), Column("n", "tinyint")), ("ds", "n")),
    SMALL: TableFacts((Column("ds", "string"), Column("n", "int"), Column("g", "int"))),
}
SMALL_ROWS = "('a', 1, 1), ('b', 2, 1), ('c', 3, 2), (NULL, 4, 2)"


@dataclass(frozen=True)
class Change:
    """Rows that come to the small side, or take its rows' place, and a statement that reads it."""

    name: str
    statement: str
    rows: str
    raises: bool
    instead: bool = False
    # Where ranges were asked for, which hold null for `<=>`, and of several columns are those of each by itself.
    raises_by_ranges: bool | None = None

    def __str__(self) -> str:
        return self.name


ONE_KEY = "SELECT v FROM strict_fact f JOIN strict_small s ON f.ds = s.ds WHERE s.g = 1"
NULL_SAFE = "SELECT v FROM strict_fact f JOIN strict_small s ON f.ds <=> s.ds WHERE s.g = 1"
TWO_COLUMNS = "SELECT v FROM strict_fact f JOIN strict_small s ON f.ds = s.ds AND f.n = s.n WHERE s.g = 1"
TWO_COLUMNS_NULL_SAFE = TWO_COLUMNS.replace("f.n = s.n", "f.n <=> s.n")
NO_KEY = "SELECT count(*) FROM strict_fact f JOIN strict_small s ON f.ds = s.ds WHERE s.g = 9"
OTHER_TYPE = "SELECT v FROM strict_fact f JOIN strict_small s ON f.n = s.n WHERE s.g = 1"
TWO_SIDES = """SELECT f.v FROM strict_fact f JOIN strict_small s ON f.ds = s.ds JOIN strict_small t ON f.n = t.n
WHERE s.g = 1 AND t.g = 2"""
WITH_DAY = ONE_KEY.replace("SELECT v", "SELECT v, f.ds")
BROADCAST = ONE_KEY.replace("SELECT", "SELECT /*+ BROADCAST(s) */")

CHANGES = [
    Change("a further key", ONE_KEY, "('d', 1, 1)", raises=True),
    Change("a key that there was", ONE_KEY, "('a', 7, 1)", raises=False),
    Change("a key that the filter keeps out", ONE_KEY, "('d', 1, 2)", raises=False),
    Change("null, which = never matches", ONE_KEY, "(NULL, 1, 1)", raises=False),
    Change("null, which <=> matches", NULL_SAFE, "(NULL, 1, 1)", raises=True, raises_by_ranges=False),
    Change("a further key beside <=>", NULL_SAFE, "('d', 1, 1)", raises=True),
    Change("another pair of the same values", TWO_COLUMNS, "('a', 2, 1)", raises=True, raises_by_ranges=False),
    Change("a pair that there was", TWO_COLUMNS, "('a', 1, 1)", raises=False),
    Change("a pair with a null", TWO_COLUMNS, "('d', NULL, 1)", raises=False, raises_by_ranges=True),
    Change(
        "a pair with a null that <=> matches",
        TWO_COLUMNS_NULL_SAFE,
        "('a', NULL, 1)",
        raises=True,
        raises_by_ranges=False,
    ),
    Change("the first key", NO_KEY, "('a', 1, 9)", raises=True),
    Change("a key too large for the column", OTHER_TYPE, "('d', 1000, 1)", raises=False),
    Change("a key of a wider type", OTHER_TYPE, "('d', 4, 1)", raises=True),
    Change("a key of the first of two small sides", TWO_SIDES, "('d', 1, 1)", raises=True),
    Change("a key of the second of two small sides", TWO_SIDES, "('d', 9, 2)", raises=True),
    # Without care, Spark takes these for empty before it looks for further keys.
    Change("what the statement asks for alone", f"{ONE_KEY} AND f.ds = 'd'", "('d', 1, 1)", raises=True),
    Change("all that is left", f"{BROADCAST} AND f.v > 0", "('d', 1, 1)", raises=True, instead=True),
    Change("no row is left", ONE_KEY, "('a', 1, 2)", raises=False, instead=True),
    Change("fewer keys", ONE_KEY, "('a', 1, 1)", raises=False, instead=True),
]


@pytest.fixture(scope="module")
def tables(spark: ThriftServer) -> None:
    with closing(connect(spark.endpoint)) as connection:
        for statement in (
            "DROP TABLE IF EXISTS strict_fact",
            "DROP TABLE IF EXISTS strict_small",
            "CREATE TABLE strict_fact (v INT, ds STRING, n TINYINT) USING parquet PARTITIONED BY (ds, n)",
            """INSERT INTO strict_fact VALUES
            (1, 'a', 1Y), (2, 'b', 2Y), (3, 'c', 3Y), (4, 'd', 4Y), (5, NULL, 1Y), (6, 'a', NULL), (7, 'a', 2Y)""",
            "CREATE TABLE strict_small (ds STRING, n INT, g INT) USING parquet",
        ):
            run(connection, statement)


def write(spark: ThriftServer, what: str) -> None:
    """Write to the small side in another session."""
    with closing(connect(spark.endpoint)) as connection:
        run(connection, f"INSERT {what}")


@pytest.fixture
def unchanged(spark: ThriftServer, tables: None) -> None:  # noqa: ARG001 - the tables are there
    write(spark, f"OVERWRITE strict_small VALUES {SMALL_ROWS}")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("limits", [STRICT, BY_RANGES], ids=["keys", "ranges"])
@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_keys_that_came_after_they_were_read_fail_the_statement_and_nothing_else_does(
    change: Change, limits: RewriteLimits, spark: ThriftServer
) -> None:
    with closing(connect(spark.endpoint)) as session:
        text = rewritten(session, change.statement, limits, FACTS)
        assert text != change.statement
        assert answer(session, text) == answer(session, change.statement)
    write(spark, f"{'OVERWRITE' if change.instead else 'INTO'} strict_small VALUES {change.rows}")
    # A session of its own: one that has read a table goes on with the files that it knew.
    with closing(connect(spark.endpoint)) as session:
        if change.raises if limits is STRICT or change.raises_by_ranges is None else change.raises_by_ranges:
            with pytest.raises(hive.Error) as failed:
                run(session, text)
            assert KEYS_CHANGED in str(failed.value)
            assert KEYS_CHANGED not in text, "an error that quotes the statement would hold the words"
        else:
            assert answer(session, text) == answer(session, change.statement)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("pruning", ["true", "false"])
@pytest.mark.parametrize("provider", ["csv", "json", "text"])
def test_a_table_of_text_files_can_be_checked_where_its_partition_columns_alone_are_read(
    spark: ThriftServer, provider: str, pruning: str
) -> None:
    table = f"strict_{provider}"
    facts: Catalog = {
        TableName((table,)): TableFacts((Column("v", "string"), Column("ds", "string")), ("ds",), provider),
        SMALL: FACTS[SMALL],
    }
    sql = ONE_KEY.replace("SELECT v FROM strict_fact", f"SELECT count(*) FROM {table}")
    with closing(connect(spark.endpoint)) as session:
        run(
            session,
            f"CREATE TABLE IF NOT EXISTS {table} (v STRING, ds STRING) USING {provider} PARTITIONED BY (ds)",
        )
        run(session, f"INSERT OVERWRITE {table} VALUES ('1', 'a'), ('2', 'b'), ('3', 'c'), ('4', 'd')")
        run(session, f"SET spark.sql.hive.metastorePartitionPruning={pruning}")
        text = rewritten(session, sql, STRICT, facts)
        assert text != sql
        assert answer(session, text) == answer(session, sql)
        write(spark, "INTO strict_small VALUES ('d', 1, 1)")
        run(session, "REFRESH TABLE strict_small")
        with pytest.raises(hive.Error, match=KEYS_CHANGED):
            run(session, text)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("incremental", ["true", "false"])
def test_no_row_comes_before_the_error(spark: ThriftServer, incremental: str, adaptive: str) -> None:
    branches = f"SELECT 1 AS v FROM range(1000) UNION ALL {ONE_KEY}"
    with closing(connect(spark.endpoint)) as session:
        text = rewritten(session, branches, STRICT, FACTS)
    write(spark, "INTO strict_small VALUES ('d', 1, 1)")
    with closing(connect(spark.endpoint)) as session, session.cursor() as cursor:
        run(session, f"SET spark.sql.thriftServer.incrementalCollect={incremental}")
        run(session, f"SET spark.sql.adaptive.enabled={adaptive}")
        # PyHive waits for the end of the statement, which here it does not reach.
        with pytest.raises(hive.Error, match=KEYS_CHANGED):
            cursor.execute(text)


@pytest.mark.usefixtures("unchanged")
def test_partitions_are_pruned_before_they_are_listed_and_the_check_runs_once(
    spark: ThriftServer, spark_ui: SparkUi
) -> None:
    with closing(connect(spark.endpoint)) as session:
        text = rewritten(session, ONE_KEY, STRICT, FACTS)
        before = spark_ui.last_execution()
        direct = answer(session, ONE_KEY)
        alone = spark_ui.scans_of("strict_small", after=before)
        before = spark_ui.last_execution()
        assert answer(session, text) == direct
        assert spark_ui.scans_of("strict_fact", after=before).files_listed == 4
        assert spark_ui.scans_of("strict_small", after=before).files_read == 2 * alone.files_read


WRITES = [
    ("INTO", "USING parquet", {}),
    ("INTO", "USING parquet PARTITIONED BY (ds)", {"spark.sql.adaptive.enabled": "false"}),
    # With it a task moves its files to their place itself, whatever becomes of the other tasks.
    ("INTO", "USING parquet", {"mapreduce.fileoutputcommitter.algorithm.version": "2"}),
    # Without a planned sort, tasks keep several files open and move them to their place themselves.
    (
        "INTO",
        "USING parquet PARTITIONED BY (ds) CLUSTERED BY (v) SORTED BY (v) INTO 4 BUCKETS",
        {
            "mapreduce.fileoutputcommitter.algorithm.version": "2",
            "spark.sql.adaptive.enabled": "true",
            "spark.sql.maxConcurrentOutputFileWriters": "3",
            "spark.sql.optimizer.plannedWrite.enabled": "false",
        },
    ),
    ("INTO", "STORED AS TEXTFILE", {}),
    (
        "OVERWRITE",
        "USING hive OPTIONS (fileFormat 'textfile') PARTITIONED BY (ds)",
        {"hive.exec.dynamic.partition.mode": "nonstrict"},
    ),
    ("OVERWRITE", "USING parquet PARTITIONED BY (ds)", {"spark.sql.sources.partitionOverwriteMode": "dynamic"}),
]


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize(("verb", "layout", "settings"), WRITES)
def test_an_insert_that_its_check_fails_has_written_nothing(
    spark: ThriftServer, verb: str, layout: str, settings: dict[str, str]
) -> None:
    # Rows of a branch that is not checked could be written before the check of the other one has run.
    branches = f"SELECT CAST(id AS INT), 'x' FROM range(0, 1000, 1, 4) UNION ALL {WITH_DAY}"
    insert = f"INSERT {verb} strict_target {branches}"
    with closing(connect(spark.endpoint)) as session:
        for name, value in settings.items():
            run(session, f"SET {name}={value}")
        run(session, "DROP TABLE IF EXISTS strict_target")
        run(session, f"CREATE TABLE strict_target (v INT, ds STRING) {layout}")
        run(session, "INSERT INTO strict_target VALUES (0, 'x')")
        text = rewritten(session, insert, STRICT, FACTS)
        assert text != insert
    write(spark, "INTO strict_small VALUES ('d', 1, 1)")
    with closing(connect(spark.endpoint)) as session:
        for name, value in settings.items():
            run(session, f"SET {name}={value}")
        with pytest.raises(hive.Error, match=KEYS_CHANGED):
            run(session, text)
        assert run(session, "SELECT * FROM strict_target") == [(0, "x")]
        run(session, insert)
        assert run(session, "SELECT count(*) FROM strict_target WHERE ds = 'd'") == [(1,)]


DERBY = "jdbc:derby:memory:strict;create=true"
DRIVER = "org.apache.derby.jdbc.EmbeddedDriver"


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_an_insert_into_a_database_that_its_check_fails_has_written_nothing(
    spark: ThriftServer, adaptive: str
) -> None:
    # Each task commits its own rows there.
    insert = (
        "INSERT INTO strict_derby.APP.loaded"
        f" SELECT CAST(id AS INT), 'x' FROM range(0, 1000, 1, 4) UNION ALL {WITH_DAY}"
    )
    settings = {
        "spark.sql.adaptive.enabled": adaptive,
        "spark.sql.catalog.strict_derby": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        "spark.sql.catalog.strict_derby.url": f"`{DERBY}`",
        "spark.sql.catalog.strict_derby.driver": DRIVER,
    }
    with closing(connect(spark.endpoint)) as session:
        for name, value in settings.items():
            run(session, f"SET {name}={value}")
        run(session, "DROP TABLE IF EXISTS strict_derby.APP.loaded")
        run(session, "CREATE TABLE strict_derby.APP.loaded (v INT, ds STRING)")
        text = rewritten(session, insert, STRICT, FACTS)
        assert text != insert
        write(spark, "INTO strict_small VALUES ('d', 1, 1)")
        run(session, "REFRESH TABLE strict_small")
        with pytest.raises(hive.Error, match=KEYS_CHANGED):
            run(session, text)
        assert run(session, "SELECT count(*) FROM strict_derby.APP.loaded") == [(0,)]
        run(session, insert)
        assert run(session, "SELECT count(*) FROM strict_derby.APP.loaded") == [(1005,)]
