"""Partitioned tables as small sides: which partitions count as chosen, and what their size decides."""

from dataclasses import replace

import pytest

from rewriter import (
    Catalog,
    Column,
    PartOfTable,
    Plan,
    RewriteLimits,
    Rule,
    SkipReason,
    TableFacts,
    TableName,
    parse,
    plan,
)

FACT = TableFacts((Column("id", "int"), Column("shop", "string"), Column("ds", "string")), ("shop", "ds"))
SHOPS = TableFacts(
    (Column("shop", "string"), Column("city", "string"), Column("dt", "string"), Column("h", "int")), ("dt", "h")
)
F, S, C = (TableName((name,)) for name in ("f", "shops", "c"))
CATALOG: Catalog = {F: FACT, S: SHOPS, C: TableFacts((Column("shop", "string"), Column("g", "int")))}
ASKED = "SELECT DISTINCT s.`shop` AS key, typeof(s.`shop`) AS type FROM shops s WHERE 'starpruner' IS NOT NULL AND"
CHOSEN = "s.dt = '2026-11-05'"
JOINED = f"SELECT f.id FROM f JOIN shops s ON f.shop = s.shop WHERE {CHOSEN} AND s.city = 'Oslo'"
PART = PartOfTable(S, f"shops s WHERE ({CHOSEN})")
SIZE = 1_000


def planned(sql: str, size_bytes: int | None = SIZE, limits: RewriteLimits | None = None) -> Plan:
    """The plan once each part that it wants the size of has that."""
    statement = parse(sql, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    limits = limits or RewriteLimits()
    found = plan(statement, CATALOG, limits)
    if size_bytes is None or not found.unsized_parts:
        return found
    sizes = tuple((part.text, size_bytes) for part in found.unsized_parts)
    return plan(statement, {**CATALOG, S: replace(SHOPS, part_sizes=sizes)}, limits)


def reason(found: Plan) -> SkipReason | None:
    (scan,) = (scan for scan in found.scans if scan.reference.name == F)
    return scan.skip


def test_a_part_whose_size_is_not_known_is_asked_about_first() -> None:
    found = planned(JOINED, size_bytes=None)
    assert found.unsized_parts == {PART}
    assert not found.key_queries
    assert reason(found) is SkipReason.REDUCER_PARTITIONED


def test_a_part_of_known_size_is_asked_for_its_keys() -> None:
    found = planned(JOINED)
    assert not found.unsized_parts
    (query,) = found.key_queries
    assert query.sql == f"{ASKED} ({CHOSEN}) AND (s.city = 'Oslo') LIMIT 5001"
    assert query.tables == {S}
    (reducer,) = (reducer for scan in found.scans for reducer in scan.reducers)
    assert reducer.rules >= {Rule.PARTITIONED_SIDES}
    assert Rule.LATEST_PARTITION not in reducer.rules


@pytest.mark.parametrize(
    "chosen",
    [
        "s.dt IN ('2026-11-05', '2026-11-06')",
        "'2026-11-05' = s.dt",
        "s.h = 3",
        "s.h BETWEEN 3 AND 7",
        "s.dt IN ('2026-11-05', '2026-11-06') AND s.h > 3",
    ],
)
def test_values_of_a_partition_column_choose_partitions(chosen: str) -> None:
    sql = f"SELECT f.id FROM f JOIN shops s ON f.shop = s.shop WHERE {chosen} AND s.city = 'Oslo'"
    text = (
        " AND ".join(f"({term})" for term in chosen.split(" AND ")) if "BETWEEN" not in chosen else f"({chosen})"
    )
    assert planned(sql, size_bytes=None).unsized_parts == {PartOfTable(S, f"shops s WHERE {text}")}
    assert planned(sql).key_queries


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT f.id FROM f JOIN shops s ON f.shop = s.shop WHERE s.city = 'Oslo'",
        "SELECT f.id FROM f JOIN shops s ON f.shop = s.shop WHERE s.dt >= '2026-11-05' AND s.city = 'Oslo'",
        "SELECT f.id FROM f JOIN shops s ON f.shop = s.shop WHERE s.dt <> '2026-11-05' AND s.city = 'Oslo'",
        "SELECT f.id FROM f JOIN shops s ON f.shop = s.shop WHERE s.h BETWEEN 0 AND 1000 AND s.city = 'Oslo'",
        "SELECT f.id FROM f JOIN shops s ON f.shop = s.shop WHERE s.dt = '2026-11-05' OR s.city = 'Oslo'",
        f"SELECT f.id FROM f JOIN shops s ON f.shop = s.shop WHERE {CHOSEN} IS NULL",
        "SELECT f.id FROM f JOIN shops s ON f.shop = s.shop WHERE s.dt = concat('2026', '-11-05')",
        # The filter is not one of the key query's: the join keeps rows of shops that do not satisfy it.
        f"SELECT f.id FROM f JOIN shops s ON f.shop = s.shop FULL JOIN c ON c.shop = s.shop AND {CHOSEN}",
        # Literals choose partitions of the fact too, which Spark infers, or which stand in the statement.
        f"SELECT f.id FROM f JOIN shops s ON f.ds = s.dt WHERE {CHOSEN} AND s.city = 'Oslo'",
        JOINED.replace("f.shop = s.shop", "f.shop = s.shop AND f.ds = s.dt"),
        f"{JOINED} AND f.ds = '2026-11-05'",
        f"SELECT f.id FROM f WHERE ds = '1' AND EXISTS (SELECT 1 FROM shops s WHERE f.shop = s.shop AND {CHOSEN})",
    ],
)
def test_other_partitioned_tables_are_not_asked_about(sql: str) -> None:
    found = planned(sql, size_bytes=None)
    assert not found.unsized_parts
    assert not found.key_queries


def test_an_expression_over_what_literals_fix_is_asked_for() -> None:
    (query,) = planned(JOINED.replace("f.shop = s.shop", "f.ds = concat(s.dt, '')")).key_queries
    assert query.sql.endswith(f"AND ({CHOSEN}) AND (s.city = 'Oslo') LIMIT 5001")


def test_a_part_that_is_too_large_is_not_asked_for_its_keys() -> None:
    limits = RewriteLimits(small_side_bytes_max=SIZE - 1)
    assert not planned(JOINED, limits=limits).key_queries
    assert planned(JOINED, limits=replace(limits, small_side_bytes_max=SIZE)).key_queries


def test_a_part_as_large_as_the_fact_leaves_out_no_files_of_it() -> None:
    by_files = replace(FACT, partition_columns=("ds",), indexed_columns=("shop",), size_bytes=SIZE)
    catalog: Catalog = {**CATALOG, F: by_files, S: replace(SHOPS, part_sizes=((PART.text, SIZE),))}
    statement = parse(JOINED, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    limits = RewriteLimits(has_file_index=True)
    assert reason(plan(statement, catalog, limits)) is SkipReason.SMALL_SIDE_LARGER
    larger: Catalog = {**catalog, F: replace(by_files, size_bytes=SIZE + 1)}
    assert plan(statement, larger, limits).key_queries


@pytest.mark.parametrize(("provider", "is_asked"), [("parquet", True), ("hive", True), ("hudi", False)])
def test_a_table_that_prunes_partitions_in_its_own_way_is_not_asked(provider: str, *, is_asked: bool) -> None:
    statement = parse(JOINED, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    found = plan(statement, {**CATALOG, S: replace(SHOPS, provider=provider)}, RewriteLimits())
    assert bool(found.unsized_parts) == is_asked


def test_with_the_rule_off_nothing_is_asked() -> None:
    found = planned(JOINED, size_bytes=None, limits=RewriteLimits(rules_off=frozenset({Rule.PARTITIONED_SIDES})))
    assert not found.unsized_parts


def test_under_strict_consistency_no_keys_of_it_are_used() -> None:
    assert reason(planned(JOINED, limits=RewriteLimits(strict=True))) is SkipReason.STRICT_KEYS
