"""Hive's list bucketing in Hive's words: said once through the proxy, and followed by all loads and readers."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from pipeline_server import FILE_INDEX, CommandError, PipelineServer
from pyhive import hive

from demo.hive import connect, run, same_answer
from demo.proxy_process import ProxyProcess

ROWS = """SELECT CAST(id AS INT) AS id, CAST(IF(id % 3 = 0, 50 + id, 30 + 10 * (id % 2)) AS INT) AS x,
  IF(id % 2 = 0, 'a', 'b') AS y, 'd1' AS ds FROM range(300)"""


@pytest.fixture(scope="module")
def hived(pipeline_spark: PipelineServer, indexed_proxy: ProxyProcess) -> Iterator[hive.Connection]:
    """A session through the proxy in a database of its own."""
    with closing(connect(pipeline_spark.endpoint)) as direct:
        run(direct, "CREATE DATABASE hived")
        with closing(connect(indexed_proxy.endpoint, database="hived", user="hived")) as proxied:
            yield proxied
        run(direct, "DROP DATABASE hived CASCADE")


def kept(session: hive.Connection, table: str) -> dict[str, str]:
    """The properties of a table that keep its skewed values."""
    return {
        name.removeprefix("starpruner.skewed."): value
        for name, value in run(session, f"SHOW TBLPROPERTIES {table}")
        if name.startswith("starpruner.skewed.")
    }


def load(server: PipelineServer, table: str, query: str = ROWS, *options: str) -> str:
    return server.pipeline("load", "--table", f"hived.{table}", "--query", query, "--index", FILE_INDEX, *options)


def test_a_list_that_is_said_once_is_followed_by_each_load_and_its_file_alone_is_read(
    hived: hive.Connection, pipeline_spark: PipelineServer
) -> None:
    run(
        hived,
        "CREATE TABLE clicks (id INT, x INT, y STRING, ds STRING) USING parquet PARTITIONED BY (ds)\n"
        "  SKEWED BY (x) -- frequent\n  ON (30, 40) STORED AS DIRECTORIES TBLPROPERTIES ('a' = 'b')",
    )
    assert kept(hived, "clicks") == {"by": '["x"]', "on": '[["30"], ["40"]]', "own-files": "true"}
    assert ("a", "b") in run(hived, "SHOW TBLPROPERTIES clicks")
    assert "300 rows in 3 files, 2 of them of one skewed value each" in load(pipeline_spark, "clicks")
    assert "3 files, 2 of them" in load(pipeline_spark, "clicks", ROWS.replace("'d1'", "'d2'"))
    run(hived, "REFRESH TABLE clicks")
    for condition, files in (("x = 30", 2), ("x = 53", 2), ("x = 30 AND ds = 'd2'", 1), ("x IN (30, 40)", 4)):
        before = pipeline_spark.ui.last_execution()
        sql = f"SELECT id FROM clicks WHERE {condition}"
        answer = run(hived, sql)
        scan = pipeline_spark.ui.scans_of("clicks", after=before)
        assert scan.files_read == files, condition
        run(hived, "SET starpruner.enabled=false")
        assert same_answer(answer, run(hived, sql))
        run(hived, "SET starpruner.enabled=true")


def test_nulls_among_the_skewed_values_have_a_file_that_other_filters_skip(
    hived: hive.Connection, pipeline_spark: PipelineServer
) -> None:
    run(hived, "CREATE TABLE holes (id INT, x INT, y STRING, ds STRING) USING parquet SKEWED BY (x) ON (30, NULL)")
    assert kept(hived, "holes") == {"by": '["x"]', "on": '[["30"], [null]]', "own-files": "true"}
    rows = ROWS.replace("30 + 10 * (id % 2)", "IF(id % 2 = 0, 30, NULL)")
    assert "300 rows in 3 files, 2 of them" in load(pipeline_spark, "holes", rows)
    run(hived, "REFRESH TABLE holes")
    # The last three as they are written by hand: NOT over OR, a text for a number, and a tuple.
    expected = {
        "x = 30": 1,
        "x IS NULL": 1,
        "x = 53": 1,
        "x IS NOT NULL": 2,
        "x IS NULL OR x = 30": 2,
        "x <> 30": 1,
    }
    expected |= {
        "NOT (x = 30 OR x IS NULL)": 1,
        "x = '30'": 1,
        "(x, y) IN ((30, 'a'), (53, 'b'))": 2,
        "NOT x <=> 30": 2,
    }
    for condition, files in expected.items():
        before = pipeline_spark.ui.last_execution()
        sql = f"SELECT id, x FROM holes WHERE {condition}"
        answer = run(hived, sql)
        assert pipeline_spark.ui.scans_of("holes", after=before).files_read == files, condition
        run(hived, "SET starpruner.enabled=false")
        assert same_answer(answer, run(hived, sql))
        run(hived, "SET starpruner.enabled=true")


def test_an_alteration_is_for_the_loads_to_come(hived: hive.Connection, pipeline_spark: PipelineServer) -> None:
    run(hived, "CREATE TABLE altered (id INT, x INT, y STRING, ds STRING) USING parquet")
    with pytest.raises(CommandError, match="has no skewed columns"):
        load(pipeline_spark, "altered")
    run(hived, "ALTER TABLE altered SKEWED BY (x, y) ON ((30,'a'), (40, 'b')) STORED AS DIRECTORIES")
    assert kept(hived, "altered") == {
        "by": '["x", "y"]',
        "on": '[["30", "a"], ["40", "b"]]',
        "own-files": "true",
    }
    assert "3 files, 2 of them" in load(pipeline_spark, "altered")
    assert "2 files, 1 of them" in load(
        pipeline_spark, "altered", ROWS, "--skewed-by", "x", "--skewed-value", "30"
    )
    run(hived, "ALTER TABLE hived.altered NOT STORED AS DIRECTORIES")
    assert kept(hived, "altered")["own-files"] == "false"
    with pytest.raises(CommandError, match="NOT STORED AS DIRECTORIES"):
        load(pipeline_spark, "altered")
    run(hived, "ALTER TABLE altered SKEWED BY (x) ON (30)")
    assert kept(hived, "altered") == {"by": '["x"]', "on": '[["30"]]', "own-files": "true"}
    run(hived, "ALTER TABLE altered NOT SKEWED")
    assert kept(hived, "altered") == {}
    # Twice is once, as in Hive.
    run(hived, "ALTER TABLE altered NOT SKEWED")
    with pytest.raises(CommandError, match="has no skewed columns"):
        load(pipeline_spark, "altered")


def test_tables_of_hive_s_own_formats_are_made_as_hive_s_scripts_write_them(hived: hive.Connection) -> None:
    run(
        hived,
        "create external table if not exists hived.old (x string, v double) partitioned by (ds string)\n"
        "skewed by (x) on ('a', 5) stored as directories\n"
        "row format delimited fields terminated by '\\001' stored as textfile location '/tmp/hived_old'",
    )
    assert kept(hived, "old")["on"] == '[["a"], ["5"]]'
    described: dict[str, str] = {row[0]: row[1] for row in run(hived, "DESCRIBE old")}
    assert (described["x"], described["v"], described["ds"]) == ("string", "double", "string")


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        (
            "CREATE TABLE wrong (x INT) SKEWED BY (y) ON (1)",
            "SKEWED BY (y): the table has no such column; it has x",
        ),
        ("CREATE TABLE wrong USING parquet SKEWED BY (x) ON (1) AS SELECT 1 AS x", "a query makes"),
        (
            "CREATE TABLE wrong (x INT, y INT) USING parquet SKEWED BY (x, y) ON ((1, NULL))",
            "NULL can have files of its own where one column is skewed",
        ),
        ("ALTER TABLE clicks SET SKEWED LOCATION (30 = '/x')", "SET SKEWED LOCATION cannot be kept"),
        # Of which Spark has the last word.
        ("CREATE TABLE wrong (x INT) SKEWED BY (x) ON (1e5)", "SKEWED BY"),
        ("CREATE TABLE wrong (x INT) SKEWED BY (x) ON (1) WHATEVER", "PARSE_SYNTAX_ERROR"),
    ],
)
def test_a_refusal_reaches_the_client_and_nothing_is_made(hived: hive.Connection, sql: str, sentence: str) -> None:
    with pytest.raises(hive.Error) as caught:
        run(hived, sql)
    assert sentence in str(caught.value)
    assert run(hived, "SHOW TABLES LIKE 'wrong'") == []


def test_a_session_that_switches_it_off_gets_spark_s_own_refusal(hived: hive.Connection) -> None:
    run(hived, "SET starpruner.skewed_by=false")
    try:
        for sql in ("CREATE TABLE wrong (x INT) SKEWED BY (x) ON (1)", "ALTER TABLE wrong NOT SKEWED"):
            with pytest.raises(hive.Error) as caught:
                run(hived, sql)
            assert "INVALID_STATEMENT_OR_CLAUSE" in str(caught.value) or "not allowed" in str(caught.value)
    finally:
        run(hived, "RESET starpruner.skewed_by")
