"""Queries that CACHE TABLE has put in memory, while a writer past Spark changes a table that they read.

Spark finds them in other queries by their plans. If a key query were read from memory and its statement were not,
or the other way round, keys and rows would be those of two moments for as long as the query is in memory.
"""

from collections.abc import Iterator

import pytest
from pyhive import hive

from demo.hive import run
from demo.thrift_server import ThriftServer

TABLES = """
DROP DATABASE IF EXISTS kept CASCADE;
CREATE DATABASE kept;
CREATE TABLE kept.f USING parquet PARTITIONED BY (k) AS SELECT id, int(id % 20) AS k FROM range(0, 200, 1, 1);
CREATE TABLE kept.d (k INT, g STRING) STORED AS TEXTFILE;
INSERT INTO kept.d VALUES (1, 'x'), (2, 'x'), (3, 'y');
CREATE TABLE kept.e (h STRING, i INT) STORED AS TEXTFILE;
INSERT INTO kept.e VALUES ('x', 1), ('y', 2);
CREATE VIEW kept.v AS SELECT f.id, f.k, d.g FROM kept.f f JOIN kept.d d ON f.k = d.k"""

SNOWFLAKE = (
    "SELECT f.k, count(*) FROM kept.f f JOIN kept.d d ON f.k = d.k JOIN kept.e e ON d.g = e.h WHERE e.i = 1"
)
VIEW = "kept.v"
# A query in memory or, with None, the view itself; a statement; and whether that is narrowed all the same.
CASES = {
    "a filtered table": (
        "SELECT * FROM kept.d WHERE g = 'x'",
        "SELECT f.k, count(*) FROM kept.f f JOIN kept.d d ON f.k = d.k WHERE d.g = 'x' GROUP BY f.k",
        True,
    ),
    "all pairs of two tables": ("SELECT * FROM kept.d, kept.e", f"{SNOWFLAKE} GROUP BY f.k", True),
    "rows that a generator makes of a table": (
        "SELECT * FROM kept.d LATERAL VIEW explode(array(k, k + 10)) x AS n",
        """SELECT f.k, count(*) FROM kept.f f, kept.d d LATERAL VIEW explode(array(d.k, d.k + 10)) x AS n
        WHERE f.k = x.n AND d.g = 'x' GROUP BY f.k""",
        True,
    ),
    "a view": (
        None,
        "SELECT k, count(*) FROM kept.v WHERE g = 'x' GROUP BY k",
        False,
    ),
    "the join of a view": (
        "SELECT f.id, f.k, d.g FROM kept.f f JOIN kept.d d ON f.k = d.k",
        "SELECT k, count(*) FROM kept.v WHERE g = 'x' GROUP BY k",
        False,
    ),
}


@pytest.fixture
def kept(direct: hive.Connection) -> Iterator[hive.Connection]:
    for statement in TABLES.split(";"):
        run(direct, statement)
    yield direct
    for name in ("in_memory", VIEW):
        run(direct, f"UNCACHE TABLE IF EXISTS {name}")


@pytest.mark.parametrize("case", CASES)
def test_keys_and_rows_are_those_of_one_moment(
    kept: hive.Connection, proxied: hive.Connection, spark: ThriftServer, case: str
) -> None:
    query, statement, is_narrowed = CASES[case]
    name = VIEW if query is None else "in_memory"
    run(kept, f"CACHE TABLE {name}" if query is None else f"CACHE TABLE {name} AS {query}")
    before = sorted(run(kept, f"SELECT * FROM {name}"))
    folder = spark.directory / "warehouse" / "kept.db" / "d"
    for file in folder.iterdir():
        file.unlink()
    (folder / "rows").write_text("5\x01x\n3\x01x\n1\x01y\n")
    answer = sorted(run(kept, statement))
    assert sorted(run(proxied, statement)) == answer != []
    assert sorted(run(kept, f"SELECT * FROM {name}")) == before
    explained = "\n".join(map(str, run(proxied, f"EXPLAIN REWRITE {statement}")))
    assert ("Rewritten:" in explained) is is_narrowed
