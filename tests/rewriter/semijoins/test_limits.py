"""Limits of a rewrite: past them nothing is narrowed, and no part of the keys is taken for all of them."""

from rewriter import (
    Column,
    KeySet,
    Rewrite,
    RewriteLimits,
    SkipReason,
    Statement,
    TableFacts,
    TableKind,
    TableName,
    apply,
    parse,
    plan,
)

SQL = "SELECT f.id FROM f JOIN d ON f.k = d.k WHERE d.g = 1"
FACT = TableFacts((Column("id", "int"), Column("k", "int")), ("k",))
DIMENSION = TableFacts((Column("k", "int"), Column("g", "int")))


def rewritten(limits: RewriteLimits, *, keys: int, fact: TableFacts | None = FACT) -> Rewrite:
    statement = parse(SQL, chars_max=1_000)
    assert isinstance(statement, Statement)
    planned = plan(statement, {TableName(("f",)): fact, TableName(("d",)): DIMENSION}, limits)
    return apply(planned, {query: KeySet.of(("int",), zip(range(keys))) for query in planned.key_queries}, limits)


def reason(rewrite: Rewrite) -> SkipReason | None:
    return next(scan.skip for scan in rewrite.scans if scan.scan.alias == "f")


def test_as_many_keys_as_are_allowed_narrow_the_scan() -> None:
    assert rewritten(RewriteLimits(key_rows_max=3), keys=3).text != SQL


def test_more_keys_than_are_allowed_narrow_nothing() -> None:
    result = rewritten(RewriteLimits(key_rows_max=3), keys=4)
    assert (result.text, reason(result)) == (SQL, SkipReason.TOO_MANY_KEYS)


def test_a_predicate_that_is_too_long_is_not_inserted() -> None:
    result = rewritten(RewriteLimits(predicate_chars_max=20), keys=9)
    assert (result.text, reason(result)) == (SQL, SkipReason.PREDICATE_TOO_LARGE)


def test_no_key_query_is_asked_beyond_the_allowed_number() -> None:
    assert reason(rewritten(RewriteLimits(key_queries_max=0), keys=1)) is SkipReason.TOO_MANY_KEY_QUERIES


def test_a_table_of_another_kind_or_format_is_not_narrowed() -> None:
    expected = {
        SkipReason.UNKNOWN_TABLE: None,
        SkipReason.VIEW_NOT_FOLLOWED: TableFacts(FACT.columns, ("k",), kind=TableKind.VIEW),
        SkipReason.PROVIDER: TableFacts(FACT.columns, ("k",), provider="iceberg"),
        SkipReason.COLUMNS_DIFFER_BY_CASE: TableFacts((*FACT.columns, Column("K", "int")), ("k",)),
    }
    results = {reason: rewritten(RewriteLimits(), keys=1, fact=fact) for reason, fact in expected.items()}
    assert {found: reason(result) for found, result in results.items()} == {found: found for found in expected}
    assert {result.text for result in results.values()} == {SQL}
