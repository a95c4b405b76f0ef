"""Key query and statement at one snapshot, on a server where others commit in between."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

import pytest
from pipeline_server import PipelineServer
from pyhive import hive

from demo.hive import Row, connect, run
from rewriter import (
    Column,
    IcebergFacts,
    RewriteLimits,
    SkipReason,
    TableFacts,
    TableName,
    apply,
    catalog_at_snapshots,
    parse,
    pin_snapshots,
    plan,
)

DATABASE = "ice.snapshots"
FACT = (Column("id", "bigint"), Column("k", "int"))
KEYS = (Column("k", "int"), Column("g", "string"))
TABLES = (
    f"CREATE DATABASE {DATABASE}",
    f"CREATE TABLE {DATABASE}.f USING iceberg PARTITIONED BY (k) AS SELECT id, int(id % 50) AS k FROM range(1000)",
    f"CREATE TABLE {DATABASE}.d USING iceberg AS SELECT int(id) AS k, string(id % 7) AS g FROM range(50)",
    f"CREATE TABLE {DATABASE}.e USING iceberg AS SELECT int(id) AS k, string(id % 5) AS g FROM range(50)",
)
# What another session does to the small tables between the key queries and the statements.
COMMITS = (
    f"INSERT INTO {DATABASE}.d VALUES (7, '3'), (8, '3'), (9, '3')",
    f"DELETE FROM {DATABASE}.d WHERE k = 3",
    f"INSERT OVERWRITE {DATABASE}.e SELECT k + 1, g FROM {DATABASE}.e",
)
STATEMENTS = (
    "SELECT f.id, d.* FROM f JOIN d ON f.k = d.k WHERE d.g = '3'",
    "SELECT /*+ BROADCAST(x) */ x.g, count(*) FROM f, d x WHERE f.k = x.k AND x.g = '3' GROUP BY 1",
    "SELECT d.g, count(*) FROM f JOIN ice.snapshots.d ON f.k = d.k WHERE d.g = '3' GROUP BY 1",
    "SELECT count(*) FROM f WHERE k IN (SELECT k FROM d WHERE g = '3')",
    "SELECT count(*) FROM f WHERE EXISTS (SELECT 1 FROM d /* small */ AS x WHERE x.k = f.k AND x.g = '3')",
    "SELECT count(*) FROM f JOIN (SELECT k FROM d WHERE g = '3') x USING (k) JOIN d y USING (k)",
    "WITH x AS (SELECT k FROM `d` WHERE g = '3') SELECT count(*), max(x.k) FROM f JOIN x ON f.k = x.k",
    "SELECT count(*) FROM f JOIN d ON f.k = d.k JOIN e ON d.k = e.k WHERE d.g = '3' AND e.g = '4'",
    "SELECT sum(f.id) FROM f JOIN d ON f.k = d.k WHERE d.g = (SELECT max(g) FROM e WHERE e.k < 4)",
    "SELECT id FROM f JOIN d USING (k) WHERE d.g = '3' UNION SELECT id FROM f JOIN e USING (k) WHERE e.g = '3'",
    "SELECT count(y) FROM f LEFT SEMI JOIN d ON f.k = d.k AND d.g = '3' LATERAL VIEW explode(array(f.id)) t AS y",
)


@dataclass(frozen=True)
class Asked:
    """A statement as it was answered when its keys were read, and what is sent after others have written."""

    answer: Counter[Row]
    by_window: str
    by_strict: str


@pytest.fixture(scope="module")
def session(iceberg_server: PipelineServer) -> Iterator[hive.Connection]:
    """A session in a database with a fact and two small tables."""
    with closing(connect(iceberg_server.endpoint)) as connection:
        for statement in (*TABLES, f"USE {DATABASE}"):
            run(connection, statement)
        yield connection


@pytest.fixture(scope="module")
def asked(session: hive.Connection, iceberg_server: PipelineServer) -> dict[str, Asked]:
    """Every statement, its keys read before the commits of another session."""
    catalog = described(session)
    found = {
        sql: Asked(
            Counter[Row](run(session, sql)),
            narrowed(session, catalog, sql, RewriteLimits()),
            narrowed(session, catalog, sql, RewriteLimits(strict=True)),
        )
        for sql in STATEMENTS
    }
    with closing(connect(iceberg_server.endpoint)) as other:
        for commit in COMMITS:
            run(other, commit)
    # A session goes on to see a table as it was for a while.
    for table in ("d", "e"):
        run(session, f"REFRESH TABLE {table}")
    return found


def described(session: hive.Connection) -> dict[TableName, TableFacts]:
    """The tables, by the names that the statements have for them."""
    found: dict[TableName, TableFacts] = {}
    for table, columns, size_bytes in (("f", FACT, 10**9), ("d", KEYS, 1), ("e", KEYS, 1)):
        full_name = TableName(("ice", "snapshots", table))
        ((snapshot_id,),) = run(session, f"SELECT snapshot_id FROM {full_name}.refs WHERE name = 'main'")
        facts = TableFacts(
            columns,
            provider="iceberg",
            full_name=full_name,
            size_bytes=size_bytes,
            indexed_columns=tuple(column.name for column in columns),
            iceberg=IcebergFacts(snapshot_id),
        )
        found |= {TableName((table,)): facts, full_name: facts}
    return found


def narrowed(
    session: hive.Connection, catalog: Mapping[TableName, TableFacts], sql: str, limits: RewriteLimits
) -> str:
    """The statement at the snapshots of the tables that its keys are read from, narrowed by those keys."""
    statement = parse(sql, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    snapshots = {}
    for name in plan(statement, catalog, limits).pinnable:
        facts = catalog[name].iceberg
        assert facts is not None
        assert facts.snapshot_id is not None
        snapshots[name] = facts.snapshot_id
    at_snapshots = pin_snapshots(statement, snapshots)
    assert at_snapshots is not None
    found = plan(at_snapshots, catalog_at_snapshots(catalog, snapshots), limits)
    answers = {query: query.read(run(session, query.sql)) for query in found.key_queries}
    result = apply(found, answers, limits)
    assert result.skip is None
    assert any(outcome.predicate is not None for outcome in result.scans)
    return result.text


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_commit_between_key_query_and_statement_changes_no_answer(
    session: hive.Connection, asked: dict[str, Asked], sql: str
) -> None:
    found = asked[sql]
    assert Counter[Row](run(session, found.by_window)) == found.answer
    # The same text: what is read at a snapshot needs no check.
    assert found.by_strict == found.by_window
    # The commits do change what is read without the versions.
    assert Counter[Row](run(session, sql)) != found.answer
