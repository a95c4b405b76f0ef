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
    TableKind,
    TableName,
    ViewText,
    parse,
    plan,
)
from rewriter.partitions.index import PartitionIndex

FACT = TableFacts((Column("id", "int"), Column("shop", "string"), Column("ds", "string")), ("shop", "ds"))
SHOPS = TableFacts(
    (Column("shop", "string"), Column("city", "string"), Column("dt", "string"), Column("h", "int")), ("dt", "h")
)
F, S, C = (TableName((name,)) for name in ("f", "shops", "c"))
CATALOG: Catalog = {F: FACT, S: SHOPS, C: TableFacts((Column("shop", "string"), Column("g", "int")))}
ASKED = "SELECT DISTINCT s.`shop` AS key, typeof(s.`shop`) AS type FROM shops s WHERE 'starpruner' IS NOT NULL AND"
CHOSEN = "s.dt = '2026-11-05'"
JOINED = f"SELECT f.id FROM f JOIN shops s ON f.shop = s.shop WHERE {CHOSEN} AND s.city = 'Oslo'"
PART = PartOfTable(S, "`shops` WHERE `dt` IN ('2026-11-05')")
SIZE = 1_000
LATEST = "s.dt = (SELECT max(dt) FROM shops)"
LATEST_PART = "`shops` WHERE `dt` IN ('2026-11-06')"
SPECS = [f"dt=2026-11-0{day}/h={hour}" for day in range(1, 7) for hour in range(10)]
LISTS = {S: PartitionIndex.of(["dt", "h"], ["string", "int"], SPECS)}


def planned(sql: str, size_bytes: int | None = SIZE, limits: RewriteLimits | None = None) -> Plan:
    """The plan once each part that it wants the size of has that."""
    statement = parse(sql, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    limits = limits or RewriteLimits()
    found = plan(statement, CATALOG, limits, LISTS)
    if size_bytes is None or not found.unsized_parts:
        return found
    sizes = tuple((part.text, size_bytes) for part in found.unsized_parts)
    return plan(statement, {**CATALOG, S: replace(SHOPS, part_sizes=sizes)}, limits, LISTS)


def reason(found: Plan) -> SkipReason | None:
    (scan,) = (scan for scan in found.scans if scan.reference.name == F)
    return scan.skip


def asked_of_shops(found: Plan) -> list[str]:
    """The key queries for shops of the fact. The partitions of shops are told by subqueries of their own."""
    scans = (scan for scan in found.scans if scan.reference.name == F)
    reducers = (reducer for scan in scans for reducer in scan.reducers)
    return [reducer.key_query.sql for reducer in reducers if reducer.columns == ("shop",)]


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
    ("chosen", "part"),
    [
        ("s.dt IN ('2026-11-05', '2026-11-06')", "`dt` IN ('2026-11-05', '2026-11-06')"),
        ("'2026-11-05' = s.dt", "`dt` IN ('2026-11-05')"),
        ("s.h = 3", "`h` IN (3)"),
        ("s.h BETWEEN 3 AND 7", "`h` BETWEEN 3 AND 7"),
        ("s.h >= 3 AND s.h < 8", "`h` BETWEEN 3 AND 7"),
        (
            "s.dt IN ('2026-11-05', '2026-11-06') AND s.h > 3",
            "(`dt` IN ('2026-11-05', '2026-11-06') AND `h` >= 4)",
        ),
        (LATEST, "`dt` IN ('2026-11-06')"),
        ("(SELECT min(t.dt) FROM shops t WHERE t.h > 3) = s.dt", "`dt` IN ('2026-11-01')"),
    ],
)
def test_values_of_a_partition_column_choose_partitions(chosen: str, part: str) -> None:
    sql = f"SELECT f.id FROM f JOIN shops s ON f.shop = s.shop WHERE {chosen} AND s.city = 'Oslo'"
    assert planned(sql, size_bytes=None).unsized_parts == {PartOfTable(S, f"`shops` WHERE {part}")}
    (asked,) = asked_of_shops(planned(sql))
    assert all(word in asked for word in (*chosen.split(" AND "), "s.city = 'Oslo'"))


CURRENT = f"SELECT * FROM shops s WHERE {LATEST}"


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT f.id FROM f JOIN ({CURRENT}) c ON f.shop = c.shop WHERE c.city = 'Oslo'",
        f"WITH c AS ({CURRENT}) SELECT f.id FROM f JOIN c ON f.shop = c.shop WHERE c.city = 'Oslo'",
        (
            f"WITH s AS (SELECT * FROM shops), c AS (SELECT * FROM s WHERE {LATEST}) "
            "SELECT f.id FROM f JOIN c ON f.shop = c.shop WHERE c.city = 'Oslo'"
        ),
        (
            "WITH c AS (SELECT shop, city, dt AS day FROM shops) SELECT f.id FROM f JOIN c ON f.shop = c.shop "
            "WHERE c.city = 'Oslo' AND c.day = (SELECT max(dt) FROM shops)"
        ),
        f"SELECT f.id FROM f WHERE f.shop IN (SELECT s.shop FROM shops s WHERE {LATEST} AND s.city = 'Oslo')",
    ],
)
def test_partitions_are_chosen_inside_and_around_a_query(sql: str) -> None:
    assert planned(sql, size_bytes=None).unsized_parts == {PartOfTable(S, LATEST_PART)}
    (asked,) = asked_of_shops(planned(sql))
    assert "SELECT max(dt) FROM shops" in asked


def test_the_list_of_partitions_is_asked_for_where_a_subquery_chooses() -> None:
    sql = f"SELECT f.id FROM f JOIN shops s ON f.shop = s.shop WHERE {LATEST} AND s.city = 'Oslo'"
    statement = parse(sql, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    assert plan(statement, CATALOG, RewriteLimits()).wants_lists({}) == (S,)
    assert not plan(statement, CATALOG, RewriteLimits(), {S: None}).wants_lists({})
    assert not plan(statement, CATALOG, RewriteLimits(strict=True)).wants_lists({})


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
        JOINED.replace("f.shop = s.shop", "f.ds = s.dt").replace(CHOSEN, LATEST),
        f"{JOINED.replace(CHOSEN, LATEST)} AND f.ds = (SELECT max(dt) FROM shops)",
        # One of the tables is read whole.
        (
            f"SELECT f.id FROM f JOIN (SELECT t.shop FROM shops s JOIN shops t USING (shop) WHERE {CHOSEN}) c "
            "ON f.shop = c.shop"
        ),
        (
            f"SELECT f.id FROM f JOIN (SELECT s.shop FROM shops s LEFT JOIN c ON s.shop = c.shop AND {CHOSEN}) c "
            "ON f.shop = c.shop"
        ),
        # Two facts of one day.
        f"WITH a AS (SELECT shop FROM f WHERE ds = '1') SELECT 1 FROM a JOIN shops s USING (shop) WHERE {CHOSEN}",
        # It is not the extreme of a partition column, or not of partitions that are listed.
        JOINED.replace(CHOSEN, "s.dt = (SELECT max(city) FROM shops)"),
        JOINED.replace(CHOSEN, "s.dt = (SELECT max(shop) FROM c)"),
        JOINED.replace(CHOSEN, "s.h = (SELECT max(dt) FROM shops)"),
        JOINED.replace(CHOSEN, "s.dt >= (SELECT max(dt) FROM shops)"),
        f"SELECT f.id FROM f WHERE ds = '1' AND EXISTS (SELECT 1 FROM shops s WHERE f.shop = s.shop AND {CHOSEN})",
    ],
)
def test_other_partitioned_tables_are_not_asked_about(sql: str) -> None:
    found = planned(sql, size_bytes=None)
    assert not found.unsized_parts
    assert not asked_of_shops(found)


def test_parts_of_two_tables_are_asked_about_together() -> None:
    both = f"SELECT shop FROM shops s WHERE {CHOSEN} UNION ALL SELECT shop FROM f WHERE ds = '2026-11-05'"
    sql = f"SELECT t.id FROM f t JOIN ({both}) u ON t.shop = u.shop"
    asked = planned(sql, size_bytes=None).unsized_parts
    assert {part.table for part in asked} == {S, F}
    # Once that of one table has a size, the other one is left to ask about.
    left = planned(sql).unsized_parts
    assert {part.table for part in left} == {F}


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


# The tables by their full names, by which the text of a view names them.
HERE = ("spark_catalog", "default")
FULL_SHOPS = TableName((*HERE, "shops"))
FULL_PART = "`spark_catalog`.`default`.`shops` WHERE"
LATEST_OF_FULL = f"{FULL_PART} `dt` IN ('2026-11-06')"
ALL_COLUMNS = ("shop", "city", "dt", "h")
SHOWN = "SELECT * FROM shops"
LATEST_IN_VIEW = f"{SHOWN} WHERE dt = (SELECT max(dt) FROM shops)"


def view(text: str, columns: tuple[str, ...] = ALL_COLUMNS, *, is_temporary: bool = False) -> TableFacts:
    types = [Column(name, "int" if name == "h" else "string") for name in columns]
    return TableFacts(
        tuple(types), provider="", kind=TableKind.VIEW, view=ViewText(text, HERE, columns, is_temporary)
    )


def planned_over(
    sql: str, views: dict[str, TableFacts], size_bytes: int | None = SIZE, *, with_lists: bool = True
) -> Plan:
    """The plan of a statement over views of the shops, once each part has the size."""
    statement = parse(sql, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    named = {TableName((*where, name)): facts for where in ((), HERE) for name, facts in views.items()}
    known: Catalog = {F: FACT, C: CATALOG[C], TableName((*HERE, "c")): CATALOG[C], FULL_SHOPS: SHOPS, **named}
    lists = {FULL_SHOPS: LISTS[S]} if with_lists else {}
    found = plan(statement, known, RewriteLimits(), lists)
    if size_bytes is None or not found.unsized_parts:
        return found
    assert {part.table for part in found.unsized_parts} == {FULL_SHOPS}
    sizes = tuple((part.text, size_bytes) for part in found.unsized_parts)
    return plan(statement, {**known, FULL_SHOPS: replace(SHOPS, part_sizes=sizes)}, RewriteLimits(), lists)


IN_OSLO = "SELECT f.id FROM f JOIN v ON f.shop = v.shop WHERE v.city = 'Oslo'"


@pytest.mark.parametrize(
    ("views", "sql", "part"),
    [
        ({"v": view(LATEST_IN_VIEW)}, IN_OSLO, LATEST_OF_FULL),
        ({"v": view(f"{SHOWN} s WHERE s.h = 3")}, IN_OSLO, f"{FULL_PART} `h` IN (3)"),
        (
            {"v": view("SELECT shop, city FROM shops WHERE dt = '2026-11-05'", ("shop", "city"))},
            IN_OSLO,
            f"{FULL_PART} `dt` IN ('2026-11-05')",
        ),
        ({"v": view(SHOWN)}, f"{IN_OSLO} AND v.dt = '2026-11-05'", f"{FULL_PART} `dt` IN ('2026-11-05')"),
        # By the view's name for the column, beside a choice in the text.
        (
            {
                "v": view("SELECT shop, city, dt AS day FROM shops WHERE h = 3", ("shop", "city", "day")),
            },
            f"{IN_OSLO} AND v.day IN ('a', 'b')",
            f"{FULL_PART} (`dt` IN ('a', 'b') AND `h` IN (3))",
        ),
        ({"v": view(SHOWN)}, f"{IN_OSLO} AND v.dt = (SELECT max(dt) FROM v)", LATEST_OF_FULL),
        ({"v": view(LATEST_IN_VIEW), "w": view("SELECT * FROM v")}, IN_OSLO.replace("v", "w"), LATEST_OF_FULL),
        (
            {"v": view(SHOWN), "w": view("SELECT * FROM v WHERE dt = '2026-11-01'")},
            IN_OSLO.replace("v", "w"),
            f"{FULL_PART} `dt` IN ('2026-11-01')",
        ),
        # A view that shows no partition column, in another one.
        (
            {
                "v": view("SELECT shop, city FROM shops WHERE dt = 'a'", ("shop", "city")),
                "w": view("SELECT * FROM v", ("shop", "city")),
            },
            IN_OSLO.replace("v", "w"),
            f"{FULL_PART} `dt` IN ('a')",
        ),
        (
            {"v": view(SHOWN)},
            "SELECT f.id FROM f JOIN (SELECT shop, city FROM v WHERE dt = 'a') x USING (shop) WHERE x.city = 'b'",
            f"{FULL_PART} `dt` IN ('a')",
        ),
        (
            {"v": view(LATEST_IN_VIEW)},
            "WITH x AS (SELECT shop FROM v WHERE city = 'a') SELECT id FROM f WHERE shop IN (SELECT shop FROM x)",
            LATEST_OF_FULL,
        ),
        (
            {"v": view(LATEST_IN_VIEW)},
            "SELECT f.id FROM f WHERE f.shop IN (SELECT shop FROM v WHERE city = 'Oslo')",
            LATEST_OF_FULL,
        ),
    ],
)
def test_a_view_tells_the_partitions_that_its_text_and_filters_on_it_choose(
    views: dict[str, TableFacts], sql: str, part: str
) -> None:
    unsized = planned_over(sql, views, size_bytes=None)
    assert unsized.unsized_parts == {PartOfTable(FULL_SHOPS, part)}
    assert not asked_of_shops(unsized)
    found = planned_over(sql, views)
    (asked,) = asked_of_shops(found)
    assert not set(found.key_queries[0].tables) & {S}
    assert FULL_SHOPS in found.key_queries[0].tables
    assert "`shops`" not in asked


@pytest.mark.parametrize(
    ("views", "sql"),
    [
        ({"v": view(SHOWN)}, IN_OSLO),
        ({"v": view(SHOWN)}, f"{IN_OSLO} AND v.dt >= 'a'"),
        ({"v": view(f"{SHOWN} WHERE dt = 'a' OR city = 'b'")}, IN_OSLO),
        ({"v": view(SHOWN), "w": view("SELECT * FROM v")}, IN_OSLO.replace("v", "w")),
        # The name is of another column in the text.
        (
            {"v": view("SELECT shop, dt AS city, city AS dt, h FROM shops")},
            f"{IN_OSLO} AND v.dt = 'a'".replace("v.city", "v.shop"),
        ),
        # Another table of the text, or of the query around the view, is read whole.
        ({"v": view("SELECT s.* FROM shops s JOIN shops t USING (city) WHERE s.dt = 'a'")}, IN_OSLO),
        (
            {"v": view(LATEST_IN_VIEW), "w": view(SHOWN)},
            "SELECT f.id FROM f JOIN (SELECT v.shop FROM v JOIN w USING (city)) x ON f.shop = x.shop",
        ),
        # One of two readers chooses: the view is in the place of each.
        (
            {"v": view(SHOWN)},
            "SELECT id FROM f JOIN (SELECT a.shop FROM v a JOIN v b USING (city) WHERE a.dt = 'a') x USING (shop)",
        ),
        # The text is not the same each time, or not certain.
        ({"v": view(f"{LATEST_IN_VIEW} LIMIT 3")}, IN_OSLO),
        ({"v": view(f"{LATEST_IN_VIEW} AND rand() < 0.5")}, IN_OSLO),
        ({"v": view(LATEST_IN_VIEW, is_temporary=True), "shops": view("SELECT 1", is_temporary=True)}, IN_OSLO),
        ({"v": view(f"{SHOWN} WHERE dt = 'a' UNION ALL {SHOWN} WHERE dt = 'b'")}, IN_OSLO),
        # Spark infers the literals for the fact.
        ({"v": view(f"{SHOWN} WHERE dt = 'a'")}, "SELECT f.id FROM f JOIN v ON f.ds = v.dt WHERE v.city = 'Oslo'"),
    ],
)
def test_other_views_of_partitioned_tables_are_not_asked_about(views: dict[str, TableFacts], sql: str) -> None:
    found = planned_over(sql, views, size_bytes=None)
    assert not found.unsized_parts
    assert not asked_of_shops(found)


def test_the_list_of_partitions_behind_a_view_is_asked_for_by_the_tables_full_name() -> None:
    found = planned_over(IN_OSLO, {"v": view(LATEST_IN_VIEW)}, size_bytes=None, with_lists=False)
    assert found.wants_lists({}) == (FULL_SHOPS,)


@pytest.mark.parametrize("other", [SHOPS, view("SELECT 1", is_temporary=True)], ids=["table", "temporary"])
def test_a_temporary_view_is_one_of_the_table_where_no_other_view_has_the_tables_name(other: TableFacts) -> None:
    statement = parse(IN_OSLO, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    temporary = view(LATEST_IN_VIEW, is_temporary=True)
    known: Catalog = {F: FACT, S: other, TableName(("v",)): temporary, FULL_SHOPS: SHOPS}
    found = plan(statement, known, RewriteLimits(), {FULL_SHOPS: LISTS[S]})
    assert {part.text for part in found.unsized_parts} == ({LATEST_OF_FULL} if other is SHOPS else set())
