"""Views with a join in their text: names in it, the user, extensions, and statements without a join."""

from dataclasses import replace

import pytest

from rewriter import (
    Column,
    KeySet,
    Plan,
    RewriteLimits,
    Rule,
    SkipReason,
    TableFacts,
    TableKind,
    TableName,
    ViewText,
    apply,
    parse,
    plan,
)

ID, DS, REGION, G = Column("id", "int"), Column("ds", "string"), Column("region", "string"), Column("g", "int")
SALES = TableFacts((ID, DS, REGION), ("ds", "region"))
DATES = TableFacts((DS, G))
USERS = TableFacts((Column("login", "string"), REGION))
HERE = ("spark_catalog", "mart")
LIMITS = RewriteLimits()
FILTERED = "SELECT max(id) FROM v WHERE g = 5"
JOIN = "SELECT s.id, s.ds, d.g FROM sales s JOIN dates d ON s.ds = d.ds"


def view(text: str, columns: tuple[Column, ...] = (ID, DS, G), *, is_temporary: bool = False) -> TableFacts:
    outputs = tuple(column.name for column in columns)
    return TableFacts(columns, provider="", kind=TableKind.VIEW, view=ViewText(text, HERE, outputs, is_temporary))


def planned(sql: str, limits: RewriteLimits = LIMITS, **views: TableFacts) -> Plan:
    """The plan over tables of the database `mart`, and views of the session's own."""
    statement = parse(sql, chars_max=10_000, has_views=True)
    assert not isinstance(statement, SkipReason)
    tables = {"sales": SALES, "dates": DATES, "users": USERS}
    known: dict[TableName, TableFacts | None] = {}
    while (found := plan(statement, known, limits)).missing:
        full = {".".join((*HERE, name)): facts for name, facts in {**tables, **views}.items()}
        known |= {name: {**full, **views}.get(str(name)) for name in found.missing}
    return found


def skips(found: Plan) -> list[SkipReason | None]:
    return [scan.skip for scan in found.scans]


def test_a_filter_without_a_join_narrows_a_view_that_joins() -> None:
    found = planned(FILTERED, v=view(JOIN))
    (query,) = found.key_queries
    text = apply(found, {query: KeySet.of(("string",), [("a",)])}, LIMITS).text
    predicate = "(`ds` IN ('a') OR typeof(`ds`) <> 'string')"
    assert text == f"SELECT max(id) FROM (SELECT * FROM v WHERE {predicate}) AS v WHERE g = 5"
    assert query.tables == {TableName((*HERE, "dates"))}


def test_the_user_that_a_view_asks_for_is_assumed() -> None:
    text = "SELECT s.* FROM sales s JOIN users u ON s.region = u.region WHERE u.login = current_user()"
    found = planned("SELECT max(id) FROM v", v=view(text, (ID, DS, REGION)))
    (query,) = found.key_queries
    keys = replace(KeySet.of(("string",), [("north",)]), assumptions=(("current_user()", "'ann'"),))
    rewritten = apply(found, {query: keys}, LIMITS).text
    assert rewritten == (
        "SELECT max(id) FROM (SELECT * FROM v WHERE (`region` IN ('north') OR typeof(`region`) <> 'string'"
        " OR current_user() <> 'ann')) AS v"
    )


@pytest.mark.parametrize(
    "condition",
    [
        "d.g = 5",
        "(d.g IN (5, -6) OR d.g IS NULL) AND NOT d.ds LIKE 'x%'",
        "d.ds BETWEEN 'a' AND 'b'",
        "coalesce(d.ds, 'a') <> 'b'",
    ],
)
def test_a_condition_in_a_view_counts_if_no_setting_changes_it(condition: str) -> None:
    assert skips(planned("SELECT id FROM v", v=view(f"{JOIN} WHERE {condition}"))) == [None]


@pytest.mark.parametrize(
    "condition",
    [
        "d.g = '5'",
        "d.g = 5.0",
        "d.g + 1 = 6",
        "d.ds = 5",
        "upper(d.ds) = 'A'",
        "CAST(d.g AS STRING) = '5'",
        "CAST(d.ds AS DATE) = DATE'2026-01-01'",
        "d.ds < current_date()",
        "d.ds < current_timezone()",
        "d.g IN (SELECT g FROM dates)",
        "coalesce(d.g, 5) = 5",
        "rand() < 2",
    ],
)
def test_a_condition_in_a_view_does_not_count_if_its_makers_settings_may_differ(condition: str) -> None:
    found = planned("SELECT id FROM v", v=view(f"{JOIN} WHERE {condition}"))
    assert skips(found) == [SkipReason.REDUCER_UNFILTERED]


def test_with_an_extension_that_is_not_known_a_view_is_left_alone() -> None:
    limits = replace(LIMITS, has_unknown_extensions=True)
    assert skips(planned(FILTERED, limits, v=view(JOIN))) == [SkipReason.VIEW_UNDER_EXTENSION]
    # Keys from outside of the view are those of tables that the statement names.
    outside = planned("SELECT v.id FROM v JOIN dates o ON v.ds = o.ds WHERE o.g = 5", limits, v=view(JOIN))
    assert len(outside.key_queries) == 0
    joined = planned(
        "SELECT v.id FROM v JOIN mart.dates o ON v.ds = o.ds WHERE o.g = 5",
        limits,
        v=view(JOIN),
        **{"mart.dates": DATES},
    )
    assert [scan.skip for scan in joined.scans if scan.alias == "v"] == [None]


@pytest.mark.parametrize("rule", [Rule.VIEWS, Rule.VIEW_JOINS])
def test_with_the_rule_off_no_name_is_asked_about(rule: Rule) -> None:
    statement = parse(FILTERED, chars_max=10_000, has_views=True)
    assert not isinstance(statement, SkipReason)
    limits = replace(LIMITS, rules_off=frozenset({rule}))
    assert plan(statement, {}, limits).missing == frozenset()


def test_the_clients_ctes_are_not_those_of_a_view() -> None:
    text = "WITH c AS (SELECT ds, id FROM sales) SELECT c.id, c.ds, d.g FROM c JOIN dates d ON c.ds = d.ds"
    assert skips(planned(FILTERED, v=view(text))) == [None]
    sql = "WITH c AS (SELECT 1 AS x), dates AS (SELECT 'a' AS ds, 5 AS g) SELECT id, x FROM v, c WHERE v.g = 5"
    found = planned(sql, v=view(text))
    assert found.key_queries == ()
    (query,) = planned(sql, v=view(JOIN)).key_queries
    assert "FROM `spark_catalog`.`mart`.`dates` d" in query.sql


def test_a_name_in_a_temporary_views_text_may_be_another_temporary_views() -> None:
    of_session = view(JOIN, is_temporary=True)
    assert skips(planned(FILTERED, v=of_session)) == [SkipReason.JOINED_IN_VIEW]
    found = planned(FILTERED, v=of_session, sales=SALES, dates=DATES)
    assert skips(found) == [None]


@pytest.mark.parametrize(
    "text",
    [
        f"{JOIN} UNION ALL SELECT id, ds, 5 FROM sales",
        "SELECT s.id, s.ds, d.g FROM sales s JOIN dates d TABLESAMPLE (5 ROWS) ON s.ds = d.ds",
        "SELECT s.id, s.ds, d.g FROM sales s JOIN dates AS d(ds, g) ON s.ds = d.ds",
        "SELECT s.id, s.ds, d.g FROM sales s JOIN mart.dates ON s.ds = mart.dates.ds",
        "SELECT s.id, s.ds, count(d.g) FROM sales s JOIN dates d ON s.ds = d.ds GROUP BY ALL",
    ],
)
def test_a_text_that_is_not_certain_is_not_planned(text: str) -> None:
    assert planned(FILTERED, v=view(text)).key_queries == ()


def test_an_alias_that_is_ours_is_left_alone() -> None:
    assert planned("SELECT reduced_view0.id, 1 FROM v reduced_view0 WHERE g = 5", v=view(JOIN)).key_queries == ()


def test_a_view_of_a_view_that_joins_is_narrowed_at_its_own_name() -> None:
    over = view("SELECT id, ds, g FROM v WHERE id > 0")
    found = planned("SELECT max(id) FROM w WHERE g = 5", v=view(JOIN), w=over)
    assert [(scan.alias, scan.skip) for scan in found.scans] == [("w", None)]
