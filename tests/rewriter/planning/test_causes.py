"""A refusal names what in the statement caused it, in words that a user can act upon."""

from dataclasses import replace

import pytest
from support.golden_cases import pure_catalog
from support.goldens import planned_with

from rewriter import (
    Catalog,
    Column,
    IcebergFacts,
    KeySet,
    Plan,
    PlannedScan,
    RewriteLimits,
    Rule,
    SkipReason,
    TableFacts,
    TableKind,
    TableName,
    ViewText,
    apply,
)
from rewriter.catalog.prunable import key_refusal
from rewriter.sql.deterministic_functions import NEWER_FUNCTIONS

LIMITS = RewriteLimits()
# Most conditions that no keys tell are asked about otherwise, once the partitions are listed.
WITHOUT_LISTS = RewriteLimits(rules_off=frozenset({Rule.PARTITION_LIST}))
STAR = "SELECT s.id FROM sales s JOIN dates d ON s.ds = d.ds"


def planned(sql: str, limits: RewriteLimits = LIMITS) -> Plan:
    return planned_with(sql, pure_catalog, limits)


def scan_of(sql: str, alias: str = "s", limits: RewriteLimits = LIMITS) -> PlannedScan:
    (found,) = (scan for scan in planned(sql, limits).scans if scan.alias == alias)
    return found


@pytest.mark.parametrize(
    ("condition", "cause"),
    [
        ("d.dow > rand() - 1", "rand(..) is not known to give the same value each time"),
        ("array_sort(array(d.month))[0] <> '5'", "array_sort(..) is not known to give the same value each time"),
        (
            "golden.lower(d.month) <> 'x'",
            "lower(..) is called by its database's name, so that it may be a user's own function",
        ),
        (
            "d.month < 'today'",
            "Spark may read a string in it as the clock, as it reads 'today' and 'now'",
        ),
        (
            "d.year < unix_timestamp()",
            "unix_timestamp(..) without arguments, or by another unit, may be another function or the clock",
        ),
        ("d.dow = nowhere.dow", "it is not certain that `nowhere.dow` is a column of d"),
        (
            "d.dow IN (SELECT dow FROM dates LIMIT 1)",
            "its subquery may answer otherwise: LIMIT may choose other rows each time",
        ),
        (
            "d.month IN (SELECT ds FROM sales_2025)",
            "its subquery may answer otherwise: sales_2025 is partitioned by ds, region",
        ),
        ("(d.dow = 5 AND s.amount > 3) OR s.amount > 9", "a branch of its OR says nothing of d alone"),
    ],
)
def test_a_filter_that_a_key_query_cannot_use_is_named_with_the_word_at_fault(condition: str, cause: str) -> None:
    scan = scan_of(f"{STAR} WHERE {condition}")
    assert scan.skip is SkipReason.REDUCER_UNFILTERED
    assert scan.cause == f"the filter `{condition}` was not used: {cause}"


@pytest.mark.parametrize(
    ("sql", "cause"),
    [
        (STAR, "its SELECT has no filter on d alone, and the size of dates is not known"),
        (
            (
                "SELECT t.id FROM stores t LEFT JOIN (sales s JOIN dates d ON s.ds = d.ds) ON t.region = s.region"
                " WHERE coalesce(d.dow, 5) = 5"
            ),
            (
                "the filter `coalesce(d.dow, 5) = 5` was not used: an outer join may put nulls in place of d"
                " before it is tested"
            ),
        ),
        (
            (
                "SELECT x.id FROM (SELECT s.id, d.dow FROM sales s JOIN dates d ON s.ds = d.ds LIMIT 3) x"
                " WHERE x.dow = 5"
            ),
            "the filter `x.dow = 5` outside was not used: LIMIT within would choose other rows",
        ),
        (
            (
                "SELECT x.n FROM (SELECT d.dow, count(*) OVER () AS n FROM sales s JOIN dates d ON s.ds = d.ds) x"
                " WHERE x.dow = 5"
            ),
            "the filter `x.dow = 5` outside was not used: a window function within looks at other rows too",
        ),
        (
            (
                "SELECT x.dow FROM (SELECT max(d.dow) AS dow FROM sales s JOIN dates d ON s.ds = d.ds) x"
                " WHERE x.dow = 5"
            ),
            "the filter `x.dow = 5` outside was not used: an aggregate within puts rows together",
        ),
        (
            (
                f"WITH x AS (SELECT d.dow FROM {STAR.partition(' FROM ')[2]}) SELECT dow FROM x WHERE dow = 5"
                " UNION ALL SELECT count(*) FROM x"
            ),
            "the filter `dow = 5` outside was not used: another reader of the same SELECT may have no such filter",
        ),
        (
            "SELECT s.id FROM sales s WHERE s.ds IN (SELECT ds FROM dates)",
            "the subquery in `s.ds = (subquery)` has no filter, and the size of dates is not known",
        ),
    ],
)
def test_a_small_side_without_a_filter_tells_where_one_would_have_to_be(sql: str, cause: str) -> None:
    scan = scan_of(sql)
    assert (scan.skip, scan.cause) == (SkipReason.REDUCER_UNFILTERED, cause)


def test_a_small_side_that_is_not_tiny_tells_its_size() -> None:
    def sized(names: frozenset[TableName]) -> Catalog:
        known = pure_catalog(names)
        return {
            name: replace(facts, size_bytes=20_000) if facts and name.parts[-1] == "dates" else facts
            for name, facts in known.items()
        }

    scan = planned_with(STAR, sized, LIMITS).scans[0]
    assert scan.cause == (
        "its SELECT has no filter on d alone, and 20,000 bytes of dates are more than rewrite.tiny_side_bytes_max"
    )


@pytest.mark.parametrize(
    ("joined", "cause"),
    [
        ("(SELECT ds FROM dates WHERE dow > 4 LIMIT 1) d", "d: LIMIT may choose other rows each time"),
        (
            "(SELECT ds, row_number() OVER (ORDER BY dow) AS n FROM dates) d",
            "d: a window function may choose other rows each time",
        ),
        ("(SELECT ds FROM dates TABLESAMPLE (3 ROWS)) d", "d: TABLESAMPLE may choose other rows each time"),
        ("(SELECT ds FROM dates WHERE rand() > 0) d", "d: rand(..) is not known to give the same value each time"),
        ("dates_random d", "d: the view dates_random: rand(..) is not known to give the same value each time"),
        ("(SELECT ds FROM range(3)) d", "d: it reads a table function"),
        ("(SELECT ds FROM collated WHERE g = 1) d", "d: collated has a column with a collation, ds"),
    ],
)
def test_a_small_side_that_may_give_other_rows_names_the_word_at_fault(joined: str, cause: str) -> None:
    scan = scan_of(f"SELECT s.id FROM sales s JOIN {joined} ON s.ds = d.ds")
    assert (scan.skip, scan.cause) == (SkipReason.REDUCER_NOT_UNDERSTOOD, cause)


def test_a_subquery_that_reads_a_column_from_outside_names_it() -> None:
    sql = "SELECT s.id FROM sales s WHERE s.ds IN (SELECT d.ds FROM dates d WHERE d.month < s.region)"
    scan = scan_of(sql, limits=WITHOUT_LISTS)
    assert scan.skip is SkipReason.REDUCER_NOT_UNDERSTOOD
    assert scan.cause == "the subquery: it reads `s.region` from outside"


@pytest.mark.parametrize(
    ("sql", "reason", "cause"),
    [
        (
            "SELECT s.id FROM sales s JOIN dates d ON s.ds = d.ds OR s.amount > 5",
            SkipReason.OTHER_COLUMNS_READ,
            "`s.ds = d.ds OR s.amount > 5` reads amount; it can be narrowed by ds, region",
        ),
        (
            "SELECT s.id FROM sales s CROSS JOIN dates d WHERE s.ds LIKE '%-01'",
            SkipReason.OWN_FILTERS_ALONE,
            "`s.ds LIKE '%-01'`",
        ),
        (
            "SELECT s.id FROM sales s CROSS JOIN dates d WHERE d.dow = 5",
            SkipReason.NO_EQUALITY,
            "no condition of its SELECT compares it with d",
        ),
        (
            "SELECT d.ds FROM dates d WHERE d.dow IN (SELECT count(*) FROM sales s)",
            SkipReason.NO_EQUALITY,
            "no condition of its SELECT is on it",
        ),
        (
            "SELECT d.ds FROM dates d WHERE NOT EXISTS (SELECT 1 FROM sales s WHERE s.ds > d.ds)",
            SkipReason.NO_EQUALITY,
            "`s.ds > d.ds` cannot be used: `d.ds` is a column of a query around this one",
        ),
        (
            "SELECT s.id FROM sales s JOIN dates d JOIN stores t ON s.ds > concat(d.ds, t.opened)",
            SkipReason.NO_EQUALITY,
            "`s.ds > concat(d.ds, t.opened)` cannot be used: it reads d, t, and not one alone",
        ),
        (
            "SELECT s.id FROM sales s JOIN dates d ON concat(s.ds, uuid()) = d.ds",
            SkipReason.NO_EQUALITY,
            "`concat(s.ds, uuid()) = d.ds` cannot be used: uuid(..) is not known to give the same value each time",
        ),
        (
            "SELECT s.id FROM sales s JOIN nowhere n ON s.ds = n.ds",
            SkipReason.NO_EQUALITY,
            "`s.ds = n.ds` cannot be used: the columns of n are not certain",
        ),
        (
            "SELECT x.id FROM (SELECT s.id, s.ds FROM sales s LIMIT 3) x JOIN dates d ON x.ds = d.ds",
            SkipReason.NO_EQUALITY,
            "`x.ds = d.ds` stands outside x, where s is read: LIMIT within would choose other rows",
        ),
        (
            "SELECT x.id FROM (SELECT s.id, concat(s.ds, s.id) AS ds FROM sales s) x JOIN dates d ON x.ds = d.ds",
            SkipReason.NO_EQUALITY,
            (
                "`x.ds = d.ds` stands outside x, where s is read: the column is computed within, or is one"
                " of another table"
            ),
        ),
    ],
)
def test_a_fact_without_a_usable_condition_tells_which_comes_nearest_to_one(
    sql: str, reason: SkipReason, cause: str
) -> None:
    scan = scan_of(sql)
    assert (scan.skip, scan.cause) == (reason, cause)


def test_a_condition_that_the_list_of_partitions_would_take_names_the_rule_that_is_off() -> None:
    scan = scan_of("SELECT s.id FROM sales s JOIN dates d ON s.ds > d.ds WHERE d.dow = 5", limits=WITHOUT_LISTS)
    assert scan.cause == (
        "`s.ds > d.ds` cannot be used: it is no equality of the column alone that every row must satisfy, and the"
        " rule partition_list is off"
    )


ID, DS = Column("id", "int"), Column("ds", "string")
JOINED = ViewText(
    "SELECT f.id, f.ds FROM f JOIN d ON f.ds = d.ds UNION ALL SELECT id, ds FROM f",
    ("spark_catalog", "default"),
    ("id", "ds"),
)
OTHERS = {
    "f": TableFacts((ID, DS), ("ds",)),
    "d": TableFacts((DS, ID)),
    "v": TableFacts((ID, DS), provider="", kind=TableKind.VIEW, view=JOINED),
    "i": TableFacts((ID, DS), provider="iceberg", iceberg=IcebergFacts(7), indexed_columns=("id", "ds")),
    "x": TableFacts((ID, DS), indexed_columns=("id",)),
}


def other_tables(names: frozenset[TableName]) -> Catalog:
    return {name: OTHERS.get(name.parts[-1]) for name in names}


@pytest.mark.parametrize(
    ("sql", "reason", "cause"),
    [
        (
            "SELECT s.id FROM v s CROSS JOIN d WHERE s.ds = '2026-01-01'",
            SkipReason.JOINED_IN_VIEW,
            "`s.ds = '2026-01-01'`",
        ),
        ("SELECT s.id FROM v s CROSS JOIN d WHERE d.id = 5", SkipReason.JOINED_IN_VIEW, None),
        (
            "SELECT s.id FROM i s JOIN d ON s.ds > d.ds",
            SkipReason.NO_EQUALITY,
            (
                "`s.ds > d.ds` cannot be used: it is no equality of the column alone, and nothing else narrows a"
                " table by columns of its files"
            ),
        ),
        (
            "SELECT s.id FROM x s JOIN d ON s.ds = d.ds",
            SkipReason.NOT_A_PARTITION_COLUMN,
            "the equality is on ds; it can be narrowed by id",
        ),
        (
            "SELECT s.id FROM x s CROSS JOIN d WHERE s.ds = '2026-01-01'",
            SkipReason.NO_EQUALITY,
            "the file index knows no files to skip by `s.ds = '2026-01-01'`",
        ),
    ],
)
def test_views_that_join_and_tables_with_other_layouts_have_causes_of_their_own(
    sql: str, reason: SkipReason, cause: str | None
) -> None:
    (scan,) = (scan for scan in planned_with(sql, other_tables, LIMITS).scans if scan.alias == "s")
    assert (scan.skip, scan.cause) == (reason, cause)


OF_FILES = "it is no equality of the column alone, and nothing else narrows a table by columns of its files"
AT, X = Column("at", "timestamp"), Column("x", "double")
TIMED = {
    "s": TableFacts((ID, AT, DS), ("at",)),
    "by_x": TableFacts((ID, X), ("x",)),
    "files": TableFacts((ID, AT, DS), ("ds",), indexed_columns=("at",)),
    "d": TableFacts((DS, ID, X, Column("day", "date"))),
}


@pytest.mark.parametrize(
    ("sql", "cause"),
    [
        (
            "SELECT s.id FROM s JOIN d ON CAST(s.at AS DATE) = d.day WHERE d.id = 1",
            (
                "`CAST(s.at AS DATE) = d.day` cannot be used: at is of type timestamp, whose values Spark is not"
                " asked about"
            ),
        ),
        (
            "SELECT s.id FROM by_x s JOIN d ON abs(s.x) = d.x WHERE d.id = 1",
            "`abs(s.x) = d.x` cannot be used: x is of type double, whose values Spark is not asked about",
        ),
        (
            "SELECT s.id FROM files s JOIN d ON date(s.at) = d.day WHERE d.id = 1",
            f"`date(s.at) = d.day` cannot be used: {OF_FILES}",
        ),
        (
            "SELECT s.id FROM files s JOIN d ON s.at > d.day WHERE d.id = 1",
            f"`s.at > d.day` cannot be used: {OF_FILES}",
        ),
    ],
)
def test_a_condition_on_a_column_that_no_partitions_are_asked_about_by_tells_its_type(
    sql: str, cause: str
) -> None:
    def timed(names: frozenset[TableName]) -> Catalog:
        return {name: TIMED.get(name.parts[-1]) for name in names}

    found = planned_with(sql, timed, LIMITS).scans[0]
    assert (found.skip, found.cause) == (SkipReason.NO_EQUALITY, cause)


@pytest.mark.parametrize(
    ("sql", "cause"),
    [
        (
            "SELECT s.id FROM dates d RIGHT JOIN offers o USING (ds) JOIN sales s USING (ds) WHERE d.dow = 5",
            "`USING (ds)` compares its ds with what joins before it make of d, o",
        ),
        (
            "SELECT s.id FROM dates d FULL JOIN offers o USING (ds) JOIN sales s USING (DS) WHERE d.dow = 5",
            "`USING (DS)` compares its ds with what joins before it make of d, o",
        ),
        (
            "SELECT s.id FROM dates d RIGHT JOIN clocks o USING (ds) NATURAL JOIN sales s WHERE d.dow = 5",
            "`NATURAL JOIN` compares its ds with what joins before it make of d, o",
        ),
        (
            "SELECT s.id FROM sales s CROSS JOIN keys q JOIN offers o USING (g) WHERE o.g = 1",
            "no condition of its SELECT compares it with q, o",
        ),
        (
            "SELECT s.id FROM sales s CROSS JOIN dates d JOIN keys q ON q.g = d.dow WHERE q.g = 1",
            "no condition of its SELECT compares it with d, q",
        ),
        (
            "SELECT (SELECT max(d.ds) FROM dates d WHERE d.ds = s.ds) FROM sales s",
            "no condition of its SELECT is on it",
        ),
        (
            "SELECT sales.id FROM golden.sales JOIN dates d ON golden.sales.ds > d.ds WHERE d.dow = 5",
            (
                "`golden.sales.ds > d.ds` cannot be used: the statement names the table's columns by database,"
                " which a list of its partitions would hide"
            ),
        ),
        (
            (
                "SELECT s.id FROM sales s JOIN (stores t LEFT JOIN dates d ON t.country = d.month)"
                " ON s.ds > coalesce(d.ds, '2026') WHERE t.country = 'IT'"
            ),
            (
                "`s.ds > coalesce(d.ds, '2026')` cannot be used: an outer join may put nulls in place of d before"
                " it is tested"
            ),
        ),
    ],
)
def test_what_joins_compare_is_told_as_it_is(sql: str, cause: str) -> None:
    (scan,) = (scan for scan in planned(sql).scans if scan.alias in {"s", "sales"})
    assert (scan.skip, scan.cause) == (SkipReason.NO_EQUALITY, cause)


@pytest.mark.parametrize(
    "condition",
    [
        "struct(s.ds) = struct(d.ds)",
        "struct(s.ds AS a) = struct(d.ds AS a)",
        "named_struct('a', s.ds) = named_struct('a', d.ds)",
        "array(s.ds) = array(d.ds)",
        "(s.ds, s.region) = (d.ds, d.month)",
        "CASE WHEN s.ds = d.ds THEN 1 ELSE 0 END = 1",
        "s.ds = d.ds OR s.ds = d.month",
        "NOT (s.ds <> d.ds)",
        "(s.ds = d.ds) IS TRUE",
        "s.ds::date = d.ds::date",
        "s.ds LIKE ANY (d.ds, d.month)",
        "printf('%s', s.ds) = d.ds",
        "try_to_date(s.ds) = try_to_date(d.ds)",
        "sha2(s.ds, 256) = sha2(d.ds, 256)",
        "xxhash64(s.ds) = xxhash64(d.ds)",
    ],
)
def test_conditions_that_spark_can_be_asked_about_want_the_partitions(condition: str) -> None:
    scan = scan_of(f"SELECT s.id FROM sales s JOIN dates d ON {condition} WHERE d.dow = 5")
    assert (scan.skip, scan.wants_list) == (SkipReason.PARTITIONS_NOT_LISTED, True)


def test_a_rule_that_is_off_is_named() -> None:
    limits = RewriteLimits(rules_off=frozenset({Rule.INNER_JOIN}))
    scan = scan_of(f"{STAR} WHERE d.dow = 5", limits=limits)
    assert (scan.skip, scan.cause) == (SkipReason.RULE_OFF, "inner_join")


@pytest.mark.parametrize(
    ("sql", "cause"),
    [
        (
            "SELECT s.id FROM sales s LEFT JOIN dates d ON s.ds = d.ds AND d.dow = 5",
            "s LEFT JOIN d keeps rows of s that have no partner, and no filter on d rejects them",
        ),
        (
            "SELECT s.id FROM sales s LEFT JOIN dates d ON s.ds = d.ds WHERE d.dow = 5 OR d.dow IS NULL",
            (
                "s LEFT JOIN d keeps rows of s that have no partner, and the filter `d.dow = 5 OR d.dow IS NULL`"
                " is not known to reject them"
            ),
        ),
        (
            (
                "SELECT x.id FROM (SELECT s.id, d.dow FROM sales s LEFT JOIN dates d ON s.ds = d.ds LIMIT 3) x"
                " WHERE x.dow = 5"
            ),
            (
                "s LEFT JOIN d keeps rows of s that have no partner, and the filter `x.dow = 5` outside is not"
                " known to reject them: LIMIT within would choose other rows"
            ),
        ),
        (
            "SELECT s.id FROM sales s LEFT ANTI JOIN dates d ON s.ds = d.ds",
            "an anti join keeps the rows of s that have no partner",
        ),
        (
            "SELECT d.ds FROM dates d LEFT ANTI JOIN sales s ON s.ds > d.ds",
            "s is on the right of an anti join",
        ),
        (
            "SELECT s.id FROM sales s LEFT JOIN dates d ON s.ds BETWEEN d.ds AND d.month",
            "s LEFT JOIN d keeps rows of s that have no partner, and no filter on d rejects them",
        ),
    ],
)
def test_a_join_that_keeps_rows_is_named_with_the_filter_that_does_not_reject_them(sql: str, cause: str) -> None:
    scan = scan_of(sql)
    assert (scan.skip, scan.cause) == (SkipReason.OUTER_JOIN, cause)


@pytest.mark.parametrize(
    ("sql", "reason", "cause"),
    [
        (
            "SELECT s.id FROM by_digits s JOIN keys q ON s.k = q.i WHERE q.g < 3",
            SkipReason.TYPES_DIFFER,
            "k is of type string, and the other side of type int",
        ),
        (
            "SELECT s.id FROM by_double s JOIN keys q ON s.k = q.f WHERE q.g = 1",
            SkipReason.TYPE_REFUSED,
            "k is of type double",
        ),
        (
            "SELECT s.id FROM sales s JOIN dates d ON s.id = d.dow WHERE d.dow = 5",
            SkipReason.NOT_A_PARTITION_COLUMN,
            "the equality is on id; it can be narrowed by ds, region",
        ),
        (
            "SELECT s.id FROM sales_computed s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5",
            SkipReason.NOT_A_PARTITION_COLUMN,
            "the equality is on ds; by its text the view can be narrowed by no column",
        ),
        (
            "SELECT s.id FROM global_temp.sales_files s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5",
            SkipReason.VIEW_NOT_FOLLOWED,
            "its text is not known",
        ),
        (
            "SELECT s.id FROM sales s JOIN dates_quoted d ON s.ds = d.ds WHERE d.dow = 5",
            SkipReason.REDUCER_NOT_A_TABLE,
            (
                "d: dates_quoted is a view, and its text is not understood, or has quotes or backslashes that a"
                " setting may change"
            ),
        ),
        (
            "SELECT s.id FROM sales s JOIN sales_2025 d ON s.ds = d.ds WHERE d.amount = 2",
            SkipReason.REDUCER_PARTITIONED,
            "d: sales_2025 is partitioned by ds, region",
        ),
        (
            "SELECT s.id FROM sales s JOIN days_large d ON s.ds = d.ds WHERE d.g = 1",
            SkipReason.SMALL_SIDE_TOO_LARGE,
            "days_large: 11,000,000,000 bytes",
        ),
        (
            "SELECT s.id FROM stores t LEFT JOIN sales s ON t.store_id = s.id JOIN dates d ON s.ds <=> d.ds",
            SkipReason.NULL_SAFE_OVER_NULLS,
            "`s.ds <=> d.ds`",
        ),
        (
            "SELECT s.id, spark_partition_id() FROM sales s JOIN dates d ON s.ds = d.ds WHERE d.dow = 5",
            SkipReason.NUMBERED_BY_TASK,
            "spark_partition_id(..)",
        ),
        (
            "SELECT s.id FROM sales s, stores t RIGHT JOIN dates d ON t.store_id = d.dow WHERE s.ds = d.ds",
            SkipReason.UNSUPPORTED_FROM,
            "a comma or CROSS JOIN beside RIGHT, FULL or NATURAL JOIN",
        ),
    ],
)
def test_columns_types_tables_and_words_are_named(sql: str, reason: SkipReason, cause: str) -> None:
    scan = scan_of(sql, limits=WITHOUT_LISTS)
    assert (scan.skip, scan.cause) == (reason, cause)


@pytest.mark.parametrize("called", ["len(d.month) = 2", "`LEN` (d.month) = 2", "golden.len(d.month) = 2"])
def test_a_function_that_the_server_lacks_may_be_a_users_own(called: str) -> None:
    sql = f"SELECT s.id FROM sales s JOIN dates d ON s.ds = d.ds WHERE {called} AND d.dow = 5"
    assert scan_of(sql).skip is None
    scan = scan_of(sql, limits=replace(LIMITS, missing_functions=NEWER_FUNCTIONS))
    assert (scan.skip, scan.cause) == (SkipReason.MISSING_FUNCTION, "len(..)")


def test_a_view_calls_a_function_that_the_server_lacks() -> None:
    days = TableFacts(
        (Column("ds", "string"), Column("dow", "int")),
        kind=TableKind.VIEW,
        view=ViewText("SELECT ds, len(month) AS dow FROM dates", ("spark_catalog", "golden"), ("ds", "dow")),
    )

    def with_view(names: frozenset[TableName]) -> Catalog:
        return {**pure_catalog(names), **{name: days for name in names if str(name) == "lengths"}}

    sql = "SELECT s.id FROM sales s JOIN lengths d ON s.ds = d.ds WHERE d.dow = 5"
    assert planned_with(sql, with_view, LIMITS).key_queries
    lacking = planned_with(sql, with_view, replace(LIMITS, missing_functions=frozenset({"len"})))
    assert lacking.calls_missing_function
    assert not lacking.key_queries


def test_beside_a_delta_table_whose_partition_columns_may_be_generated_nothing_is_narrowed() -> None:
    """Spark infers `x.s IN (..)` from what is said of `f.ds`, and Delta `x.p IN (..)` from that."""
    ds, s = Column("ds", "string"), Column("s", "string")
    tables = {
        "f": TableFacts((Column("id", "int"), ds), partition_columns=("ds",)),
        "d": TableFacts((ds, Column("g", "int"))),
        "x": TableFacts((s, Column("p", "date")), partition_columns=("p",), provider="delta"),
    }
    sql = "SELECT f.id FROM f JOIN d ON f.ds = d.ds JOIN x ON f.ds = x.s WHERE d.g = 1"

    def known(names: frozenset[TableName]) -> Catalog:
        return {name: tables[str(name)] for name in names}

    assert planned_with(sql, known, LIMITS).key_queries
    tables["x"] = replace(tables["x"], allows_generated=True)
    found = planned_with(sql, known, LIMITS)
    assert not found.key_queries
    assert {scan.skip for scan in found.scans} == {SkipReason.PROVIDER}


def test_a_delta_table_that_has_the_name_of_a_cte_may_be_generated_too() -> None:
    """The name in the CTE is the table's own: nothing is narrowed beside it either."""
    tables = {
        "f": TableFacts((Column("id", "int"), Column("ds", "string")), partition_columns=("ds",)),
        "d": TableFacts((Column("ds", "string"), Column("g", "int"))),
        "x": TableFacts((Column("s", "string"), Column("p", "date")), provider="delta", allows_generated=True),
    }
    sql = "WITH x AS (SELECT * FROM x) SELECT f.id FROM f JOIN d ON f.ds = d.ds JOIN x ON f.ds = x.s WHERE d.g = 1"
    found = planned_with(sql, lambda names: {name: tables[str(name)] for name in names}, LIMITS)
    assert not found.key_queries


@pytest.mark.parametrize(
    "other",
    [
        "JOIN unknown x ON f.ds = x.s",
        # Table functions of a user's own, each with the name of another function of Spark's.
        "JOIN split(f.ds, ',') x ON f.ds = x.a",
        "JOIN (SELECT x.a FROM d g, LATERAL split(g.ds, ',') x) y ON f.ds = y.a",
        "JOIN LATERAL if(true, f.ds, '') x",
        "JOIN (SELECT * FROM unknown PIVOT (sum(v) FOR k IN (1, 2))) x ON f.ds = x.s",
        "JOIN LATERAL rows_of(f.ds) x",
        "JOIN unnest(array(f.ds)) x",
        "AND seen(f.ds)",
        "AND mart.lower(f.ds) = 'a'",
        "JOIN v ON f.ds = v.s",  # a view that calls such a function
        "JOIN delta.`/lake/x` x ON f.ds = x.s",
    ],
)
def test_what_is_not_known_may_be_a_delta_table_where_the_server_has_them(other: str) -> None:
    namespace = ("spark_catalog", "default")
    view = ViewText("SELECT ds AS s FROM d WHERE seen(ds)", namespace, ("s",))
    tables = {
        "f": TableFacts((Column("id", "int"), Column("ds", "string")), partition_columns=("ds",)),
        "d": TableFacts((Column("ds", "string"), Column("g", "int"))),
        "v": TableFacts((Column("s", "string"),), provider="", kind=TableKind.VIEW, view=view),
    }
    tables[".".join((*namespace, "d"))] = tables["d"]

    def planned_by(limits: RewriteLimits) -> Plan:
        sql = f"SELECT f.id FROM f JOIN d ON f.ds = d.ds {other} WHERE d.g = 1"
        return planned_with(sql, lambda names: {name: tables.get(str(name)) for name in names}, limits)

    assert planned_by(LIMITS).key_queries or "LATERAL" in other or "unnest" in other
    found = planned_by(replace(LIMITS, has_delta=True))
    assert not found.key_queries
    assert {scan.skip for scan in found.scans} == {SkipReason.PROVIDER}


@pytest.mark.parametrize(
    "other",
    [
        "JOIN (VALUES ('a')) AS v(s) ON f.ds = v.s",
        "JOIN (SELECT explode(array('a'))) v(s) ON f.ds = v.s",
        "JOIN range(3) v ON f.ds = v.id",
        "JOIN (SELECT v.s FROM dates g, LATERAL explode(array(g.ds)) v(s)) v ON f.ds = v.s",
        "JOIN (SELECT listagg(d.ds) WITHIN GROUP (ORDER BY d.ds) s FROM dates d) v ON f.ds = v.s",
        "LATERAL VIEW explode(transform(array('a'), x -> upper(x))) v AS s",
    ],
)
def test_functions_of_sparks_own_and_columns_behind_an_alias_read_no_table(other: str) -> None:
    sql = f"SELECT /*+ BROADCAST(d) */ f.id FROM sales f JOIN dates d ON f.ds = d.ds {other} WHERE d.dow = 5"
    found = planned(sql, replace(LIMITS, has_delta=True))
    assert {scan.skip for scan in found.scans} != {SkipReason.PROVIDER}
    assert found.names


def test_a_cte_is_no_unknown_table() -> None:
    sql = "WITH x AS (SELECT ds, dow FROM dates) SELECT s.id FROM sales s JOIN x ON s.ds = x.ds WHERE x.dow = 5"
    found = planned(sql, replace(LIMITS, has_delta=True))
    assert found.key_queries
    assert {str(name) for name in found.names} == {"sales", "dates"}


def test_decimals_whose_bounds_a_writer_rounds_are_no_keys_of_delta() -> None:
    """Some writers keep bounds of decimals in Delta's log as floating-point numbers."""
    amount = Column("n", "decimal(18,2)")
    facts = TableFacts((Column("id", "int"), amount), partition_columns=("n",))
    assert key_refusal(facts, amount, amount.type_name) is None
    refusal = key_refusal(replace(facts, is_beside_delta=True), amount, amount.type_name)
    assert refusal is not None
    assert refusal.reason is SkipReason.TYPE_REFUSED
    narrow = Column("n", "decimal(15,2)")
    facts = replace(facts, columns=(narrow,), is_beside_delta=True)
    assert key_refusal(facts, narrow, narrow.type_name) is None


@pytest.mark.parametrize(
    ("key", "skip"), [("x" * 31, None), ("x" * 32, SkipReason.UNREADABLE_KEY)], ids=["whole", "cut"]
)
def test_a_long_text_is_no_key_beside_a_delta_table(key: str, skip: SkipReason | None) -> None:
    """Spark infers the filter on `f.ds` for `d.ds` too, which Delta compares with the beginnings of texts."""
    tables = {
        "f": TableFacts((Column("id", "int"), Column("ds", "string")), partition_columns=("ds",)),
        "d": TableFacts((Column("ds", "string"), Column("g", "int")), provider="delta"),
    }
    sql = "SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1"
    plan = planned_with(sql, lambda names: {name: tables.get(str(name)) for name in names}, LIMITS)
    (question,) = plan.key_queries
    assert apply(plan, {question: question.read([(key, "string")])}, LIMITS).scans[0].skip is skip


def test_a_view_of_tables_without_partitions_is_no_fact() -> None:
    scan = scan_of("SELECT s.id FROM sales s JOIN dates_plain d ON s.ds = d.ds WHERE d.dow = 5", "d")
    assert scan.skip is SkipReason.NOT_PARTITIONED
    assert scan.cause == "it is a view, and no table behind it is partitioned"


def test_keys_of_another_type_name_the_column_and_why_partitions_were_not_asked_about() -> None:
    sql = "SELECT s.id FROM sales s JOIN (VALUES ('a')) AS d(ds) ON s.ds = d.ds"
    plan = planned(sql, RewriteLimits(strict=True))
    (question,) = plan.key_queries
    outcome = apply(plan, {question: question.read([("1", "int")])}, RewriteLimits()).scans[0]
    assert outcome.skip is SkipReason.KEY_TYPE_CHANGED
    assert outcome.cause == (
        "`s.ds = d.ds`: ds is of type string, and Spark would cast it or the key."
        f" Its partitions were not asked about: {SkipReason.STRICT_PARTITIONS.sentence}"
    )


def test_a_scan_that_is_narrowed_has_no_cause() -> None:
    plan = planned(f"{STAR} WHERE d.dow = 5")
    (question,) = plan.key_queries
    outcome = apply(plan, {question: KeySet.of(("string",), [("a",)])}, LIMITS).scans[0]
    assert (outcome.skip, outcome.cause) == (None, None)


def test_a_long_condition_is_cited_in_part() -> None:
    days = ", ".join(f"'{day}'" for day in range(10_000))
    scan = scan_of(f"{STAR} WHERE rand() < 1 AND concat(d.month, uuid()) IN ({days})")
    assert scan.cause is not None
    assert scan.cause.startswith("the filter `concat(d.month, uuid()) IN ('0', '1', ")
    assert len(scan.cause) < 250
