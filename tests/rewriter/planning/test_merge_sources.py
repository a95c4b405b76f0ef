"""MERGE: scans in the query of its source are narrowed as those of any query."""

from dataclasses import replace

import pytest

from rewriter import (
    Catalog,
    Column,
    KeySet,
    Rewrite,
    RewriteLimits,
    SkipReason,
    TableFacts,
    TableKind,
    TableName,
    apply,
    parse,
    plan,
)
from rewriter.catalog.table_facts import DeltaFacts, IcebergFacts

ID, DS, G = Column("id", "int"), Column("ds", "string"), Column("g", "int")
F, D, T = (TableName((name,)) for name in "fdt")
TABLES: dict[TableName, TableFacts | None] = {
    F: TableFacts((ID, DS), ("ds",)),
    D: TableFacts((DS, G)),
    T: TableFacts((ID, DS)),
    TableName(("v",)): TableFacts((ID, DS), provider="", kind=TableKind.VIEW),
    TableName(("unknown",)): None,
}
LIMITS = RewriteLimits()
KEYS = KeySet(("string",), (("a",),))
SOURCE = "(SELECT f.id, f.ds FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1)"
NARROWED = SOURCE.replace(
    "FROM f", "FROM (SELECT * FROM f WHERE (`ds` IN ('a') OR typeof(`ds`) <> 'string')) AS f"
)
CLAUSES = (
    "WHEN MATCHED AND (s.id > 3) THEN UPDATE SET id = abs(s.id) WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
)
ALSO_BY_SOURCE = "WHEN NOT MATCHED BY SOURCE AND t.id > 1 THEN UPDATE SET id = 1"


def rewritten(sql: str, tables: Catalog, keys: KeySet) -> Rewrite | SkipReason:
    statement = parse(sql, chars_max=10_000)
    if isinstance(statement, SkipReason):
        return statement
    found = plan(statement, tables, LIMITS)
    assert not found.missing
    return apply(found, dict.fromkeys(found.key_queries, keys), LIMITS)


def skip_of(sql: str, tables: Catalog = TABLES, keys: KeySet = KEYS) -> SkipReason | None:
    """Why the scan of f stays as it is; None if it is narrowed."""
    found = rewritten(sql, tables, keys)
    if isinstance(found, SkipReason):
        return found
    return next(outcome.skip for outcome in found.scans if outcome.scan.reference.name == F)


@pytest.mark.parametrize(
    "sql",
    [
        f"MERGE INTO t USING {SOURCE} s ON t.id = s.id {CLAUSES}",
        f"MERGE INTO t AS x USING {SOURCE} AS s ON (x.id = s.id AND x.ds = s.ds) WHEN MATCHED THEN DELETE",
        f"WITH s AS {SOURCE} MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY TARGET THEN INSERT *",
        f"MERGE INTO t USING (SELECT max(id) AS id FROM {SOURCE} q GROUP BY ds) s ON t.id = s.id {CLAUSES}",
    ],
)
def test_a_scan_in_the_source_is_narrowed(sql: str) -> None:
    found = rewritten(sql, TABLES, KEYS)
    assert isinstance(found, Rewrite)
    assert found.text == sql.replace(SOURCE, NARROWED)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        # It would delete what the source lacks by now.
        (f"MERGE INTO t USING {SOURCE} s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE", "NOT_A_QUERY"),
        (f"MERGE INTO t USING {SOURCE} s ON t.id = s.id {CLAUSES} {ALSO_BY_SOURCE}", "NOT_A_QUERY"),
        # Spark's grammar has no such MERGE.
        (f"MERGE INTO t USING {SOURCE} s WHEN MATCHED THEN DELETE", "NOT_A_QUERY"),
        (f"MERGE INTO t USING {SOURCE} s USING (id) WHEN MATCHED THEN DELETE", "NOT_A_QUERY"),
        (f"MERGE INTO t USING {SOURCE} s ON WHEN MATCHED THEN DELETE", "NOT_A_QUERY"),
        (f"MERGE INTO t USING {SOURCE} s ON t.id = s.id WHEN MATCHED THEN DELETE RETURNING t.id", "NOT_A_QUERY"),
        # Its names may be columns of the target, which nobody looks up here.
        (
            f"MERGE INTO t USING {SOURCE} s ON t.id IN (SELECT id FROM f, d) WHEN MATCHED THEN DELETE",
            "NOT_A_QUERY",
        ),
        (
            f"MERGE INTO t USING {SOURCE} s ON t.id = s.id WHEN MATCHED AND EXISTS {SOURCE} THEN DELETE",
            "NOT_A_QUERY",
        ),
        # Formats look for conflicts with what a transaction has read of its target.
        (f"MERGE INTO d USING {SOURCE} s ON d.ds = s.ds WHEN MATCHED THEN DELETE", "WRITES_WHAT_IT_READS"),
        (f"MERGE INTO x.F USING {SOURCE} s ON f.ds = s.ds WHEN MATCHED THEN DELETE", "WRITES_WHAT_IT_READS"),
        (
            f"MERGE INTO delta.`/f` t USING {SOURCE} s ON t.ds = s.ds WHEN MATCHED THEN DELETE",
            "WRITES_WHAT_IT_READS",
        ),
        (f"MERGE INTO v USING {SOURCE} s ON v.ds = s.ds WHEN MATCHED THEN DELETE", "WRITES_WHAT_IT_READS"),
        (f"MERGE INTO unknown t USING {SOURCE} s ON t.ds = s.ds WHEN MATCHED THEN DELETE", "WRITES_WHAT_IT_READS"),
    ],
)
def test_a_merge_is_left_alone(sql: str, reason: str) -> None:
    assert skip_of(sql) is SkipReason[reason]


def test_the_target_is_looked_up_where_a_scan_may_be_narrowed() -> None:
    for source, names in ((SOURCE, {"f", "d", "t"}), ("(SELECT 1 AS id, 2)", set())):
        statement = parse(
            f"MERGE INTO t USING {source} s ON t.id = s.id WHEN MATCHED THEN DELETE", chars_max=1_000
        )
        assert not isinstance(statement, SkipReason)
        assert {str(name) for name in plan(statement, {}, LIMITS).missing} == names


AT, PRICE = Column("at", "timestamp"), Column("price", "decimal(20,4)")
MOMENT = 1_577_836_800_123_456
PARQUET = TableFacts((ID, DS, AT, PRICE), ("ds",))
ICEBERG = replace(PARQUET, provider="iceberg", iceberg=IcebergFacts(7), indexed_columns=("at", "price"))
ORC = replace(ICEBERG, iceberg=IcebergFacts(7, may_hold_orc=True))
DELTA = replace(PARQUET, provider="delta", delta=DeltaFacts(), indexed_columns=("at", "price"))


@pytest.mark.parametrize(
    ("column", "key", "target", "reason"),
    [
        (AT, MOMENT, ICEBERG, None),
        # A filter on it loses times, as one in ORC does.
        (
            AT,
            MOMENT,
            replace(ICEBERG, iceberg=IcebergFacts(7, may_hold_orc=True)),
            "TYPE_REFUSED",
        ),
        (AT, MOMENT, DELTA, "TYPE_REFUSED"),
        # Its bounds may be rounded.
        (PRICE, "1.5000", ICEBERG, None),
        (PRICE, "1.5000", DELTA, "TYPE_REFUSED"),
        # Its partition column may be generated from another one.
        (PRICE, "1.5000", replace(DELTA, delta=None, allows_generated=True), "PROVIDER"),
    ],
)
def test_a_filter_that_spark_infers_for_the_target_has_to_be_right_there(
    column: Column, key: str | int, target: TableFacts, reason: str | None
) -> None:
    name = column.name
    source = f"(SELECT f.id, f.{name} FROM f JOIN d ON f.{name} = d.{name} WHERE d.g = 1)"
    merge = f"MERGE INTO t USING {source} s ON t.{name} = s.{name} WHEN MATCHED THEN DELETE"
    insert = f"INSERT INTO x SELECT t.id FROM t JOIN {source} s ON t.{name} = s.{name}"
    tables = {T: target, F: ICEBERG, D: TableFacts((column, G))}
    keys = KeySet((column.type_name,), ((key,),))
    assert (
        skip_of(merge, tables, keys) == skip_of(insert, tables, keys) == (SkipReason[reason] if reason else None)
    )
