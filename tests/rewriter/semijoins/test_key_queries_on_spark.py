"""Every query that is put together from the client's own words is one that Spark understands."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from pyhive import hive
from support.goldens import planned_with

from demo.hive import connect, run
from demo.thrift_server import ThriftServer
from rewriter import Catalog, Column, Reducer, RewriteLimits, TableFacts, TableName
from rewriter.partitions.index import PartitionIndex

DATABASE = "key_queries"
K = Column("k", "int")
CAL = TableFacts(
    tuple(Column(*each.split()) for each in ("ds string", "hol boolean", "a int", "b int", "key int", "day date"))
)
SALES = TableFacts(
    (Column("id", "int"), Column("at", "timestamp"), Column("dt", "string"), Column("is_open", "boolean"), K),
    ("dt", "is_open", "k"),
    indexed_columns=("at",),
)
TABLES = {"cal": CAL, "sales": SALES, "returns": SALES}
LISTED = ["dt=a/is_open=true/k=1", "dt=b/is_open=false/k=2"]

# An item of a FROM and its name; in most the table has no alias, behind which a WHERE could be taken for one.
SOURCES = [
    ("cal", "cal"),
    ("cal -- a comment\n", "cal"),
    ("cal AS c /* and another */", "c"),
    *((f"cal {alias}", alias) for alias in ("key", "day", "`where`")),
    ("(SELECT * FROM cal)", ""),
    ("(SELECT * FROM cal WHERE hol -- a comment\n) c", "c"),
    ("(VALUES ('a', true, 1, 2, 3, DATE'2026-01-01')) AS c(ds, hol, a, b, key, day)", "c"),
]
FILTERS = [
    "hol",
    "(hol)",
    "`hol`",
    "{name}hol",
    "NOT hol",
    "hol -- a comment\n",
    "hol /* a comment */",
    "(a, b) = (1, 2)",
    "(a) = 1",
    "(a + b) * 2 > 3 -- a comment\n",
    "(a = 1) OR (hol)",
    "key = 1 AND hol",
    "a IN (SELECT a FROM cal WHERE hol)",
    "day < current_date()",
]
# Conditions of a join: by which keys, days, ranges or lists of partitions are asked for.
JOINED = [
    "s.dt = {name}ds",
    "s.is_open = {name}hol",
    "s.is_open = ({name}a = {name}b)",
    "s.dt = upper({name}ds) AND s.k = {name}key",
    "CAST(s.at AS DATE) = {name}day",
    "s.dt > {name}ds",
]
# Statements around small sides that stand elsewhere: outside, in a subquery, behind another fact or dimension.
OTHERS = [
    "SELECT x.id FROM (SELECT s.id, hol FROM sales s JOIN (SELECT ds, hol FROM cal) c ON s.dt = c.ds) x WHERE hol",
    "SELECT id FROM (SELECT s.id, cal.hol AS h FROM sales s JOIN cal ON s.dt = cal.ds) WHERE h",
    (
        "WITH x AS (SELECT s.id, cal.hol AS h, cal.b FROM sales s JOIN cal ON s.dt = cal.ds)"
        " SELECT id FROM x WHERE h UNION ALL SELECT id FROM x WHERE b = 1"
    ),
    "SELECT s.id FROM sales s WHERE s.dt IN (SELECT ds FROM cal WHERE hol -- a comment\n)",
    "SELECT s.id FROM sales s WHERE (s.dt, s.k) IN (SELECT ds, key FROM cal WHERE hol)",
    "SELECT s.id FROM sales s WHERE s.dt = (SELECT max(ds) FROM cal WHERE hol)",
    "SELECT s.id FROM sales s WHERE EXISTS (SELECT 1 FROM cal WHERE cal.ds = s.dt AND hol)",
    "SELECT s.id FROM sales s WHERE EXISTS (SELECT 1 FROM cal WHERE cal.ds > s.dt AND hol)",
    "SELECT s.id FROM sales s JOIN cal ON s.dt = cal.ds JOIN returns r ON r.dt = s.dt WHERE (cal.hol)",
    "SELECT s.id FROM sales s JOIN cal ON s.dt = cal.ds JOIN returns r ON upper(r.dt) = upper(s.dt) WHERE a = 1",
    "SELECT s.id FROM sales s JOIN cal ON dt = ds WHERE a = 1 AND b = 2",
    (
        "SELECT s.id FROM sales s JOIN cal ON s.dt = cal.ds JOIN (SELECT key AS kk, hol AS h FROM cal) g"
        " ON cal.key = kk WHERE h"
    ),
]


def statements() -> Iterator[str]:
    for source, alias in SOURCES:
        name = f"{alias}." if alias else ""
        for at, joined in enumerate(JOINED):
            chosen = joined.format(name=name)
            for by, filtered in enumerate(FILTERS):
                # Each filter with each source and with each condition, but not all three.
                if not at or by == 0 or (by + len(source)) % len(JOINED) == at:
                    yield f"SELECT s.id FROM sales s JOIN {source} ON {chosen} WHERE {filtered.format(name=name)}"
    yield from OTHERS


def tables(names: frozenset[TableName]) -> Catalog:
    return {name: TABLES.get(name.parts[-1]) for name in names}


def of_reducer(reducer: Reducer) -> Iterator[str]:
    query = reducer.key_query
    yield query.sql
    others = (reducer.if_types_differ,) if isinstance(reducer.if_types_differ, Reducer) else ()
    for other in (*reducer.alternatives, *others):
        yield from of_reducer(other)


def key_queries(sql: str) -> list[str]:
    index = PartitionIndex.of(SALES.partition_columns, ["string", "boolean", "int"], LISTED)
    lists = {TableName((name,)): index for name in ("sales", "returns")}
    plan = planned_with(sql, tables, RewriteLimits(has_file_index=True), has_file_index=True, partitions=lists)
    reducers = [reducer for scan in plan.scans for reducer in scan.reducers]
    assert reducers, [(scan.alias, scan.skip, scan.cause) for scan in plan.scans]
    return [query for reducer in reducers for query in of_reducer(reducer) if query]


@pytest.fixture(scope="module")
def session(spark: ThriftServer) -> Iterator[hive.Connection]:
    with closing(connect(spark.endpoint)) as connection:
        run(connection, f"CREATE DATABASE {DATABASE}")
        run(connection, f"USE {DATABASE}")
        columns = ", ".join(f"{column.name} {column.type_name}" for column in CAL.columns)
        run(connection, f"CREATE TABLE cal ({columns}) USING parquet")
        run(connection, "INSERT INTO cal VALUES ('a', true, 1, 2, 3, DATE'2026-01-01')")
        yield connection


def test_spark_understands_every_query_that_is_made_of_the_client_s_words(session: hive.Connection) -> None:
    asked = dict.fromkeys(query for sql in statements() for query in key_queries(sql))
    assert len(asked) > 300
    misread = {}
    for query in asked:
        try:
            _ = run(session, f"DESCRIBE QUERY {query}")
        except hive.OperationalError as error:
            misread[query] = str(error)[:300]
    assert misread == {}


def test_a_filter_that_is_a_column_s_name_alone_finds_its_rows(session: hive.Connection) -> None:
    (query, *_) = key_queries("SELECT s.id FROM sales s JOIN cal ON s.dt = cal.ds WHERE hol")
    assert run(session, query) == [("a", "string")]
