"""Tables that are joined with a table behind JDBC, whose database compares texts in its own way."""

from collections.abc import Iterator, Mapping
from contextlib import closing

import pytest
from pipeline_server import PipelineServer
from pyhive import hive
from support.executed_texts import texts_after
from support.narrowed_merges import SMALL, session_in, set_all

from demo.hive import Row, connect, run
from demo.proxy_process import ProxyProcess

DATABASE = "beside_jdbc"
# Derby, which Spark brings, with upper and lower case side by side, as most databases have them.
DERBY = "jdbc:derby:memory:collated;create=true;territory=en_US;collation=TERRITORY_BASED"
# Texts of four letters in both cases, more than would be listed one by one.
KEYS = """SELECT DISTINCT substr(translate(sha1(STRING(id)), '0123456789abcdef', 'AaBbMmNnYyZz0159'), 1, 4) AS k
FROM range(3000)"""
# The same, to which 'k' and 'K' are equal, as to MySQL and SQL Server unless they are told otherwise.
FOLDING = DERBY.replace("collated", "folding") + ":PRIMARY"
FOLDED = {
    "spark.sql.catalog.folding": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
    "`spark.sql.catalog.folding.url`": f"`{FOLDING}`",
}
JOIN = "SELECT count(*) FROM f JOIN {} d ON f.k = d.k WHERE d.g = 1"


@pytest.fixture(scope="module")
def direct(delta_server: PipelineServer) -> Iterator[hive.Connection]:
    with closing(connect(delta_server.endpoint)) as found:
        session = session_in(DATABASE, found)
        set_all(session, SMALL)
        run(session, f"CREATE TABLE f USING delta AS SELECT /*+ REPARTITION_BY_RANGE(20, k) */ k FROM ({KEYS})")
        run(session, f"CREATE TABLE in_files USING parquet AS SELECT k, 1 AS g FROM ({KEYS})")
        options = f"url '{DERBY}', dbtable 'keys', createTableColumnTypes 'k VARCHAR(9)'"
        run(session, f"CREATE TABLE made USING jdbc OPTIONS ({options}) AS SELECT * FROM in_files")
        # Derby compares no long text, such as PostgreSQL's. To Spark this cast is none.
        run(session, "CREATE VIEW in_derby AS SELECT CAST(k AS STRING) AS k, g FROM made")
        run(
            session,
            "CREATE TABLE p USING parquet PARTITIONED BY (k) AS SELECT 1 AS x, k FROM VALUES ('A') AS v(k)",
        )
        for letter in "aBbMkK":  # One at a time: Derby takes names of partitions that differ in case for one.
            run(session, f"INSERT INTO p VALUES (1, '{letter}')")
        for url, table, rows in (
            (DERBY, "few", "SELECT k, 1 AS g FROM p"),
            (FOLDING, "letters", "SELECT if(id % 2 = 0, 'k', 'K') AS k, 1 AS g FROM range(6000)"),
        ):
            options = f"url '{url}', dbtable '{table}', createTableColumnTypes 'k VARCHAR(9)'"
            run(session, f"CREATE TABLE {table} USING jdbc OPTIONS ({options}) AS {rows}")
        yield session


@pytest.mark.parametrize(("small_side", "is_narrowed"), [("in_files", True), ("in_derby", False)])
def test_no_key_is_lost_to_a_database_that_orders_texts_by_a_language(
    delta_server: PipelineServer,
    delta_proxy: ProxyProcess,
    direct: hive.Connection,
    small_side: str,
    *,
    is_narrowed: bool,
) -> None:
    sql = JOIN.format(small_side)
    rows = run(direct, sql)
    before = delta_server.ui.last_execution()
    with closing(connect(delta_proxy.endpoint, database=DATABASE)) as proxied:
        set_all(proxied, SMALL)
        run(proxied, "SET starpruner.cost_gate=false")
        assert run(proxied, sql) == rows
    assert any("`k` BETWEEN" in text for text in texts_after(delta_server.ui, before)) == is_narrowed


def proxied_answer(proxy: ProxyProcess, sql: str, settings: Mapping[str, str] | None = None) -> list[Row]:
    with closing(connect(proxy.endpoint, database=DATABASE)) as proxied:
        set_all(proxied, {**SMALL, **(settings or {}), "starpruner.cost_gate": "false"})
        return run(proxied, sql)


def test_no_key_is_lost_to_a_condition_that_spark_tests_itself_and_a_database_otherwise(
    delta_proxy: ProxyProcess, direct: hive.Connection
) -> None:
    """Derby has no 'B' BETWEEN 'A' AND 'a'. Spark sends it no condition of an outer join on the rows it keeps."""
    sql = "SELECT count(p.x) FROM few d LEFT JOIN p ON p.k = d.k AND d.k BETWEEN 'A' AND 'a'"
    assert proxied_answer(delta_proxy, sql) == run(direct, sql) == [(5,)]


def test_no_key_is_lost_to_a_database_that_tells_distinct_texts_otherwise(
    delta_server: PipelineServer, delta_proxy: ProxyProcess, direct: hive.Connection
) -> None:
    sql = "SELECT count(*) FROM p JOIN folding.APP.LETTERS d ON p.k = d.k WHERE d.g = 1"
    set_all(direct, FOLDED)
    assert len(run(direct, "SELECT DISTINCT k FROM folding.APP.LETTERS")) == 1, "Spark leaves DISTINCT to it"
    before = delta_server.ui.last_execution()
    assert proxied_answer(delta_proxy, sql, FOLDED) == run(direct, sql) == [(6000,)]
    assert any("array_contains(array('K', 'k')" in text for text in texts_after(delta_server.ui, before))
