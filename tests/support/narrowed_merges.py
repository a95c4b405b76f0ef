"""MERGEs whose target is narrowed, made by the rewriter alone: by whichever keys, as if they were all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from pyhive import hive
from pyhive.exc import OperationalError

from demo.hive import run
from rewriter import (
    Column,
    IcebergFacts,
    Keys,
    KeySet,
    KeySetQuery,
    Plan,
    RewriteLimits,
    Statement,
    TableFacts,
    TableName,
    apply,
    parse,
    plan,
)
from rewriter.catalog.table_facts import DeltaFacts
from rewriter.predicates.merge_clause import KEYS_CHANGED

COLUMNS = (Column("id", "int"), Column("v", "int"), Column("ds", "string"))
TARGET, SOURCE = TableName(("t",)), TableName(("src",))
LIMITS = RewriteLimits(merge_tables=frozenset({TableName(("*",))}))
_NAMES = tuple(column.name for column in COLUMNS)
_OF_FORMAT: Mapping[str, TableFacts] = {
    "delta": TableFacts(COLUMNS, provider="delta", delta=DeltaFacts(("ds",)), indexed_columns=_NAMES),
    "iceberg": TableFacts(COLUMNS, provider="iceberg", iceberg=IcebergFacts(1, ("ds",)), indexed_columns=_NAMES),
}

_UPSERT = "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
# Every kind and order of clauses, and of conditions beside the equality of days.
MERGES = {
    "update and insert": f"MERGE INTO t USING src s ON t.id = s.id AND t.ds = s.ds {_UPSERT}",
    "insert": "MERGE INTO t USING src s ON t.ds = s.ds AND s.id = t.id WHEN NOT MATCHED BY TARGET THEN INSERT *",
    "insert without the key": (
        "MERGE INTO t USING src s ON (t.id = s.id AND t.ds = s.ds)"
        " WHEN NOT MATCHED THEN INSERT (id, v, ds) VALUES (s.id, s.v, 'new')"
    ),
    "insert some": (
        "MERGE INTO t USING src s ON t.id = s.id AND t.ds = s.ds WHEN NOT MATCHED AND s.v < 0 THEN INSERT *"
        " WHEN NOT MATCHED AND s.v > 500 THEN"
        " INSERT (id, ds) VALUES (s.id, CASE WHEN s.v > 600 THEN 'a' ELSE 'b' END)"
    ),
    "delete or update, insert some": (
        "MERGE INTO t USING src s ON t.id = s.id AND t.ds = s.ds WHEN MATCHED AND s.v > 650 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET v = s.v + t.v WHEN NOT MATCHED AND s.v < 0 THEN INSERT *"
    ),
    "a condition on both": f"MERGE INTO t USING src s ON t.id = s.id AND t.v <= s.v AND t.ds = s.ds {_UPSERT}",
    "a condition on the source": f"MERGE INTO t USING src s ON t.id = s.id AND s.v <> 1 AND t.ds = s.ds {_UPSERT}",
    # As dbt writes its `incremental_predicates`: the other column is narrowed alone.
    "a literal that bounds a key": (
        f"MERGE INTO t USING src s ON t.ds >= 'd7' AND s.id = t.id AND s.ds = t.ds {_UPSERT}"
    ),
    "a literal for a key": f"MERGE INTO t USING src s ON t.ds = 'd7' AND s.id = t.id AND s.ds = t.ds {_UPSERT}",
    "an expression": f"MERGE INTO t USING src s ON t.id = s.id AND t.ds = concat('d', int(s.id / 10)) {_UPSERT}",
    "a query": (
        "MERGE INTO t USING (SELECT max(id) AS id, max(v) AS v, ds FROM src GROUP BY ds, id) s"
        f" ON t.id = s.id AND t.ds = s.ds {_UPSERT}"
    ),
}
SOURCES = {
    "old and new days, and nulls": (
        "(11, 100, 'd1'), (71, 700, 'd7'), (72, -5, 'd7'), (12, 1, 'd1'), (13, 4, NULL), (999, 600, 'd1'),"
        " (5, 501, 'd99'), (NULL, 1, 'd7')"
    ),
    "nulls and one day": "(71, 700, NULL), (2, 3, 'd0'), (1, 2, NULL)",
    "one day": "(71, 700, 'd7'), (998, -5, 'd7')",
}
# A day of the first source, and the ids that it has there, since not each MERGE asks for both.
_FORGOTTEN = {"d7", 71, 72}
# One for each of the sources, where answers are compared.
TARGETS = {
    "a hundred rows": "SELECT INT(id) AS id, INT(0) AS v, concat('d', id DIV 10) AS ds FROM range(100)",
    "nulls too": (
        "SELECT INT(id) AS id, INT(0) AS v, IF(id % 3 = 0, NULL, concat('d', id DIV 10)) AS ds FROM range(100)"
    ),
    "nothing": "SELECT INT(id) AS id, INT(0) AS v, '' AS ds FROM range(0)",
}
# Spark's ways to join, and to end a join early.
SETTINGS: Sequence[Mapping[str, str]] = [
    {
        "spark.sql.adaptive.enabled": adaptive,
        "spark.sql.autoBroadcastJoinThreshold": broadcast,
        "spark.sql.codegen.wholeStage": adaptive,
    }
    for adaptive, broadcast in product(("true", "false"), ("10485760", "-1"))
]


def plan_of(sql: str, table_format: str) -> Plan:
    """The plan of a MERGE into a table of that format."""
    facts = {TARGET: _OF_FORMAT[table_format], SOURCE: TableFacts(COLUMNS, size_bytes=1)}
    statement = parse(sql, chars_max=10_000)
    assert isinstance(statement, Statement)
    return plan(statement, facts, LIMITS)


def narrowed(sql: str, table_format: str, keys: Keys) -> str:
    """The MERGE narrowed by keys."""
    found = plan_of(sql, table_format)
    (asked,) = found.key_queries
    text = apply(found, {asked: keys}, LIMITS).text
    assert text != sql
    return text


def keys_now(session: hive.Connection, sql: str, table_format: str) -> KeySet:
    """The keys that the source has now."""
    (asked,) = plan_of(sql, table_format).key_queries
    assert isinstance(asked, KeySetQuery)
    found = asked.read(run(session, asked.sql))
    assert isinstance(found, KeySet)
    return found


# Tables of some hundred rows in few tasks.
SMALL = {"spark.sql.shuffle.partitions": "2", "spark.databricks.delta.snapshotPartitions": "1"}


def set_all(session: hive.Connection, settings: Mapping[str, str]) -> None:
    """Set the settings in a session."""
    for name, value in settings.items():
        run(session, f"SET {name}={value}")


def in_table(text: str, target: str) -> str:
    """The text with another target."""
    return text.replace("INTO t ", f"INTO {target} t ")


def made(session: hive.Connection, table: str, using: str, query: str) -> None:
    """Make a table of a query's rows, partitioned by day."""
    # Not REPLACE: Spark 4.1.4 cannot read the checkpoint that Delta 4.2 writes at the tenth version.
    run(session, f"DROP TABLE IF EXISTS {table}")
    run(session, f"CREATE TABLE {table} {using} AS {query}")


def session_in(database: str, connection: hive.Connection) -> hive.Connection:
    """The session in a new database, with settings for small tables."""
    run(connection, f"CREATE NAMESPACE {database}")
    run(connection, f"USE {database}")
    set_all(connection, SMALL)
    return connection


def rows_of(session: hive.Connection, table: str) -> list[str]:
    """The table's rows, in an order of their own."""
    return sorted(map(str, run(session, f"SELECT * FROM {table}")))


def differences(session: hive.Connection, sql: str, table_format: str, using: str) -> list[str]:
    """For each content of source and target, the names of those that the narrowed MERGE leaves otherwise."""
    found = []
    for (source, rows), (target, query) in zip(SOURCES.items(), TARGETS.items(), strict=True):
        made(session, "src", using, f"SELECT * FROM VALUES {rows} AS rows(id, v, ds)")
        texts = [sql, narrowed(sql, table_format, keys_now(session, sql, table_format))]
        left = []
        for table, text in zip(("direct_t", "narrowed_t"), texts, strict=True):
            made(session, table, using, query)
            run(session, in_table(text, table))
            left.append(rows_of(session, table))
        found += [f"{source} into {target}"] if left[0] != left[1] else []
    return found


def passed_unnoticed(session: hive.Connection, sql: str, table_format: str, using: str) -> list[str]:
    """The settings, keys and targets with which the narrowed MERGE does not fail although keys are missing."""
    found = []
    made(session, "src", using, f"SELECT * FROM VALUES {next(iter(SOURCES.values()))} AS rows(id, v, ds)")
    now = keys_now(session, sql, table_format)
    keys = replace(now, rows=tuple(row for row in now.rows if _FORGOTTEN.isdisjoint(row)))
    text = in_table(narrowed(sql, table_format, keys), "checked_t")
    for target, query in TARGETS.items():
        made(session, "checked_t", using, query)
        before = rows_of(session, "checked_t")
        for settings in SETTINGS:
            set_all(session, settings)
            try:
                run(session, text)
                found.append(f"{target}, {settings}: no error")
            except OperationalError as error:
                if KEYS_CHANGED not in str(error):
                    found.append(f"{target}, {settings}: {error}")
        if rows_of(session, "checked_t") != before:
            found.append(f"{target}: changed")
    set_all(session, SETTINGS[0])
    return found
