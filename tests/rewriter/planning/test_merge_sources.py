"""MERGE: scans in the query of its source are narrowed as those of any query."""

import pytest

from rewriter import (
    Column,
    KeySet,
    RewriteLimits,
    SkipReason,
    TableFacts,
    TableKind,
    TableName,
    apply,
    parse,
    plan,
)

ID, DS, G = Column("id", "int"), Column("ds", "string"), Column("g", "int")
TABLES: dict[TableName, TableFacts | None] = {
    TableName(("f",)): TableFacts((ID, DS), ("ds",)),
    TableName(("d",)): TableFacts((DS, G)),
    TableName(("t",)): TableFacts((ID, DS)),
    TableName(("v",)): TableFacts((ID, DS), provider="", kind=TableKind.VIEW),
    TableName(("unknown",)): None,
}
LIMITS = RewriteLimits()
SOURCE = "(SELECT f.id, f.ds FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1)"
NARROWED = SOURCE.replace(
    "FROM f", "FROM (SELECT * FROM f WHERE (`ds` IN ('a') OR typeof(`ds`) <> 'string')) AS f"
)
CLAUSES = (
    "WHEN MATCHED AND (s.id > 3) THEN UPDATE SET id = abs(s.id) WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
)

ALSO_BY_SOURCE = "WHEN NOT MATCHED BY SOURCE AND t.id > 1 THEN UPDATE SET id = 1"


def sent(sql: str) -> str | SkipReason | None:
    statement = parse(sql, chars_max=10_000)
    if isinstance(statement, SkipReason):
        return statement
    found = plan(statement, TABLES, LIMITS)
    assert not found.missing
    answers = {query: KeySet(("string",), (("a",),)) for query in found.key_queries}
    rewrite = apply(found, answers, LIMITS)
    return rewrite.text if rewrite.is_narrowed else next((scan.skip for scan in found.scans), None)


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
    assert sent(sql) == sql.replace(SOURCE, NARROWED)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        # What the source lacks by now would be deleted.
        (f"MERGE INTO t USING {SOURCE} s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE", "NOT_A_QUERY"),
        (f"MERGE INTO t USING {SOURCE} s ON t.id = s.id {CLAUSES} {ALSO_BY_SOURCE}", "NOT_A_QUERY"),
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
    assert sent(sql) is SkipReason[reason]


def test_the_target_is_looked_up_where_a_scan_may_be_narrowed() -> None:
    for source, names in ((SOURCE, {"f", "d", "t"}), ("(SELECT 1 AS id, 2)", set())):
        statement = parse(
            f"MERGE INTO t USING {source} s ON t.id = s.id WHEN MATCHED THEN DELETE", chars_max=1_000
        )
        assert not isinstance(statement, SkipReason)
        assert {str(name) for name in plan(statement, {}, LIMITS).missing} == names


def test_with_strict_consistency_a_merge_is_left_alone() -> None:
    statement = parse(f"MERGE INTO t USING {SOURCE} s ON t.id = s.id {CLAUSES}", chars_max=1_000)
    assert not isinstance(statement, SkipReason)
    found = plan(statement, TABLES, RewriteLimits(strict=True))
    assert {scan.skip for scan in found.scans} == {SkipReason.STRICT_WRITES}
