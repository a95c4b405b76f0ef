"""Rules and tables that are switched off: what needs them is left alone, and all else is narrowed as before."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
from support.golden_cases import Take, pure_catalog, takes
from support.goldens import planned_with
from support.narrowed_merges import MERGES, plan_of

from rewriter import (
    Column,
    KeySet,
    Plan,
    Reducer,
    Rewrite,
    RewriteLimits,
    Rule,
    SkipReason,
    Statement,
    TableFacts,
    TableKind,
    TableName,
    ViewText,
    apply,
    parse,
    plan,
)

K = Column("k", "int")
FACT = TableFacts((Column("id", "int"), K), ("k",), full_name=TableName(("main", "shop", "f")))
DIMENSION = TableFacts((K, Column("g", "int")))
JOINED = "SELECT f.id FROM f JOIN d ON f.k = d.k WHERE d.g = 1"


def planned(sql: str, limits: RewriteLimits) -> Plan:
    return planned_with(sql, pure_catalog, limits)


def reducers(found: Plan) -> Iterator[Reducer]:
    pending = [reducer for scan in found.scans for reducer in scan.reducers]
    while pending:
        reducer = pending.pop()
        yield reducer
        pending += reducer.alternatives


@cache
def rules_of(sql: str) -> frozenset[Rule]:
    return frozenset[Rule]().union(*(reducer.rules for reducer in reducers(planned(sql, RewriteLimits()))))


def test_every_rule_is_needed_by_some_golden_case() -> None:
    # Those about files and buckets say what keys come to, and have cases of their own by their names.
    of_parts = {rule for rule in Rule for case in takes("files") if case.rule == f"files/{rule.value}"}
    of_parts |= {Rule.PARTITION_LIST for case in takes("listed") if case.rule == "listed/partition_list"}
    of_parts |= {Rule.DELTA for case in takes("delta") if case.rule == "delta/delta"}
    of_parts |= {Rule.ICEBERG for case in takes("iceberg") if case.rule == "iceberg/iceberg"}
    # The target of a MERGE takes facts of a format, which the golden cases of other statements lack.
    merges = [plan_of(sql, "delta") for sql in MERGES.values()]
    of_parts |= {Rule.MERGE} & {rule for found in merges for reducer in reducers(found) for rule in reducer.rules}
    # The sizes of parts of tables are asked for.
    of_parts |= {Rule.PARTITIONED_SIDES}
    of_parts |= {Rule.TIMES for case in takes("iceberg") if case.rule == "iceberg/times"}
    assert of_parts.union(*(rules_of(case.sql) for case in takes())) == set(Rule)


@pytest.mark.parametrize("case", takes(), ids=str)
def test_nothing_is_narrowed_by_a_rule_that_is_off(case: Take) -> None:
    for rule in rules_of(case.sql):
        off = planned(case.sql, RewriteLimits(rules_off=frozenset({rule})))
        assert rule not in {needed for reducer in reducers(off) for needed in reducer.rules}, rule


# One statement for each rule that takes a way of its own: without the rule, this is what its scan `s` comes to.
REFUSED = {
    Rule.INNER_JOIN: "SELECT s.id FROM sales s, dates d WHERE s.ds = d.ds AND d.month = 12",
    Rule.OUTER_JOIN: "SELECT s.id FROM (SELECT * FROM dates WHERE dow = 5) d LEFT JOIN sales s ON s.ds = d.ds",
    Rule.SEMI_JOIN: "SELECT s.id FROM sales s LEFT SEMI JOIN dates d ON s.ds = d.ds AND d.month = 12",
    Rule.IN_SUBQUERY: "SELECT s.id FROM sales s WHERE s.ds IN (SELECT ds FROM dates WHERE month = 12)",
    Rule.SCALAR_SUBQUERY: "SELECT s.id FROM sales s WHERE s.ds = (SELECT max(ds) FROM dates)",
    Rule.EXISTS: "SELECT s.id FROM sales s WHERE EXISTS (SELECT 1 FROM dates d WHERE d.ds = s.ds AND d.dow = 5)",
    Rule.NULL_SAFE: "SELECT s.id FROM sales s JOIN dates d ON s.ds <=> d.ds WHERE d.month = 12",
    Rule.LATEST_PARTITION: "SELECT s.id FROM sales s WHERE s.ds = (SELECT max(ds) FROM sales)",
    Rule.SESSION_FUNCTIONS: "SELECT s.id FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.ds <> current_user()",
}


@pytest.mark.parametrize("rule", REFUSED, ids=lambda rule: rule.value)
def test_a_scan_that_needs_a_rule_that_is_off_says_so(rule: Rule) -> None:
    sql = REFUSED[rule]
    assert rule in rules_of(sql)
    found = planned(sql, RewriteLimits(rules_off=frozenset({rule})))
    assert [scan.skip for scan in found.scans if scan.alias == "s"] == [SkipReason.RULE_OFF]
    assert found.key_queries == ()


def test_without_pairs_each_column_is_asked_for_by_itself() -> None:
    sql = "SELECT s.id FROM sales s JOIN offers o ON s.ds = o.ds AND s.region = o.region WHERE o.g = 1"
    assert Rule.PAIRS in rules_of(sql)
    found = planned(sql, RewriteLimits(rules_off=frozenset({Rule.PAIRS})))
    assert {reducer.columns for scan in found.scans for reducer in scan.reducers} == {("ds",), ("region",)}


def test_without_ranges_too_many_keys_narrow_nothing() -> None:
    found = planned(REFUSED[Rule.INNER_JOIN], RewriteLimits(rules_off=frozenset({Rule.RANGES})))
    (query,) = found.key_queries
    assert found.pending({query: SkipReason.TOO_MANY_KEYS}) == ()


def test_without_snowflakes_the_small_sides_own_filters_are_left() -> None:
    sql = "SELECT f.id FROM f JOIN d ON f.k = d.k JOIN e ON d.g = e.g WHERE d.g = 1 AND e.h = 2"
    tables = {"f": FACT, "d": DIMENSION, "e": TableFacts((Column("g", "int"), Column("h", "int")))}
    found = by_tables(sql, RewriteLimits(rules_off=frozenset({Rule.SNOWFLAKE})), tables)
    (query,) = found.key_queries
    assert query.sql.endswith("FROM d WHERE 'starpruner' IS NOT NULL AND (d.g = 1) LIMIT 5001")


def test_without_outer_filters_those_beside_the_join_are_left() -> None:
    inner = "SELECT f.id, d.h AS h FROM f JOIN d ON f.k = d.k WHERE d.g = 1"
    tables = {"f": FACT, "d": TableFacts((K, Column("g", "int"), Column("h", "int")))}
    limits = RewriteLimits(rules_off=frozenset({Rule.OUTER_FILTERS}))
    (query,) = by_tables(f"SELECT x.id FROM ({inner}) x WHERE x.h = 2", limits, tables).key_queries
    assert query.sql.endswith("FROM d WHERE 'starpruner' IS NOT NULL AND (d.g = 1) LIMIT 5001")


def test_without_outer_joins_made_inner_the_other_joins_count_as_they_stand() -> None:
    sql = "SELECT f.id FROM f JOIN d ON f.k = d.k LEFT JOIN e ON d.g = e.g WHERE d.g = 1 AND e.h = 2"
    tables = {"f": FACT, "d": DIMENSION, "e": TableFacts((Column("g", "int"), Column("h", "int")))}
    (query,) = by_tables(sql, RewriteLimits(rules_off=frozenset({Rule.MADE_INNER})), tables).key_queries
    assert query.sql.endswith("FROM d WHERE 'starpruner' IS NOT NULL AND (d.g = 1) LIMIT 5001")


def by_tables(sql: str, limits: RewriteLimits, tables: dict[str, TableFacts]) -> Plan:
    statement = parse(sql, chars_max=1_000)
    assert isinstance(statement, Statement)
    return plan(statement, {TableName(tuple(name.split("."))): facts for name, facts in tables.items()}, limits)


def off(*names: str) -> RewriteLimits:
    return RewriteLimits(tables_off=frozenset(TableName(tuple(name.split("."))) for name in names))


def skip_of_f(limits: RewriteLimits, fact: TableFacts = FACT) -> SkipReason | None:
    found = by_tables(JOINED, limits, {"f": fact, "d": DIMENSION})
    return next(scan.skip for scan in found.scans if scan.alias == "f")


@pytest.mark.parametrize("name", ["f", "F", "shop.f", "Shop.F", "shop.*", "main.shop.f", "main.shop.*"])
def test_a_table_is_switched_off_by_any_of_its_names(name: str) -> None:
    assert skip_of_f(off(name)) is SkipReason.TABLE_OFF


@pytest.mark.parametrize("name", ["d", "shop.d", "other.f", "other.*", "f.*", "main.other.f", "*.f"])
def test_other_names_switch_nothing_off(name: str) -> None:
    assert skip_of_f(off(name)) is None


@pytest.mark.parametrize(("name", "expected"), [("shop.*", None), ("F", None), ("d", SkipReason.TABLE_OFF)])
def test_where_only_some_tables_are_on_the_others_are_off_and_are_small_sides_all_the_same(
    name: str, expected: SkipReason | None
) -> None:
    only = RewriteLimits(only_tables=off(name).tables_off)
    assert skip_of_f(only) is expected
    assert skip_of_f(replace(only, tables_off=off("f").tables_off)) is SkipReason.TABLE_OFF


def test_what_belongs_to_one_session_is_switched_off_by_its_own_name_alone() -> None:
    temporary = replace(FACT, full_name=None)
    assert skip_of_f(off("f"), temporary) is SkipReason.TABLE_OFF
    assert skip_of_f(off("shop.*"), temporary) is None


def view_of(name: str, facts: TableFacts) -> TableFacts:
    outputs = tuple(column.name for column in facts.columns)
    text = ViewText(f"SELECT * FROM {name}", ("main", "shop"), outputs)
    return TableFacts(facts.columns, provider="", kind=TableKind.VIEW, view=text)


def test_without_views_a_filter_that_asks_a_view_is_not_used() -> None:
    sql = "SELECT f.id FROM f JOIN d ON f.k = d.k WHERE d.g IN (SELECT g FROM v)"
    tables = {"f": FACT, "d": DIMENSION, "v": view_of("e", DIMENSION), "main.shop.e": DIMENSION}
    assert by_tables(sql, RewriteLimits(), tables).key_queries
    assert not by_tables(sql, RewriteLimits(rules_off=frozenset({Rule.VIEWS})), tables).key_queries


def test_a_table_is_switched_off_behind_a_cte_and_behind_a_view_too() -> None:
    tables = {"f": FACT, "main.shop.f": FACT, "d": DIMENSION, "v": view_of("f", FACT)}
    for sql in (f"WITH x AS (SELECT * FROM f) {JOINED.replace('f ', 'x f ')}", JOINED.replace("f ", "v f ")):
        assert by_tables(sql, RewriteLimits(), tables).key_queries
        assert not by_tables(sql, off("shop.f"), tables).key_queries


def test_a_small_side_may_be_a_table_that_is_switched_off() -> None:
    assert skip_of_f(off("d")) is None


def rewritten(sql: str, limits: RewriteLimits = RewriteLimits()) -> Rewrite:  # noqa: B008 - frozen
    found = by_tables(sql, limits, {"f": FACT, "d": DIMENSION})
    return apply(found, {query: KeySet.of(("int",), [(1,)]) for query in found.key_queries}, limits)


def test_a_rewrite_tells_what_it_took_and_which_tables_were_narrowed() -> None:
    result = rewritten(JOINED)
    assert result.rules == {Rule.INNER_JOIN}
    assert result.tables == {TableName(("main", "shop", "f"))}
    too_long = rewritten(JOINED, RewriteLimits(predicate_chars_max=5))
    for untouched in (rewritten("SELECT f.id FROM f JOIN d ON f.k = d.k"), too_long):
        assert (untouched.rules, untouched.tables) == (frozenset(), frozenset())


@pytest.mark.parametrize(
    ("converted", "unconverted", "is_narrowed"),
    [
        ("parquet", set(), True),
        ("orc", {"parquet"}, True),
        ("parquet", {"parquet"}, False),
        ("", set(), False),
    ],
)
def test_row_groups_of_hive_s_tables_count_where_spark_reads_them_itself(
    converted: str,
    unconverted: set[str],
    is_narrowed: bool,  # noqa: FBT001
) -> None:
    fact = TableFacts(
        (Column("id", "int"), K), provider="hive", indexed_columns=("k",), converted_format=converted
    )
    statement = parse(JOINED, chars_max=1_000, has_file_index=True)
    assert isinstance(statement, Statement)
    limits = RewriteLimits(has_file_index=True, unconverted_formats=frozenset(unconverted))
    found = plan(statement, {TableName(("f",)): fact, TableName(("d",)): DIMENSION}, limits)
    (scan,) = (scan for scan in found.scans if scan.alias == "f")
    assert bool(scan.reducers) is is_narrowed
    assert is_narrowed or scan.skip is SkipReason.HIVE_FORMAT
    # The statement's own filters skip no file, of which no condition can name any.
    assert scan.own_cover.is_all
    assert not fact.packs_files
    assert not fact.takes_file_hints
