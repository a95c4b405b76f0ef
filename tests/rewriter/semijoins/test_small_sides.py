"""What is known of the tables that a key query reads: their names, behind views and in subqueries, and sizes."""

from dataclasses import replace

import pytest

from rewriter import (
    Column,
    KeyQuery,
    Plan,
    RewriteLimits,
    SkipReason,
    TableFacts,
    TableKind,
    TableName,
    ViewText,
    parse,
    plan,
)

HERE = ("spark_catalog", "default")
ID, DS, G = Column("id", "int"), Column("ds", "string"), Column("g", "int")
FACT = TableFacts((ID, DS), ("ds",))
SMALL = TableFacts((DS, G))
VIEW = TableFacts(
    (DS, G), provider="", kind=TableKind.VIEW, view=ViewText("SELECT ds, g FROM e", HERE, ("ds", "g"))
)
TABLES = {"f": FACT, "d": SMALL, "e": SMALL, "other": SMALL, "v": VIEW, "spark_catalog.default.e": SMALL}


def planned(sql: str, *, limits: RewriteLimits | None = None, **sizes: int) -> Plan:
    statement = parse(sql, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    known: dict[TableName, TableFacts | None] = {
        TableName(tuple(name.split("."))): replace(facts, size_bytes=sizes.get(name.split(".")[-1]))
        for name, facts in TABLES.items()
    }
    known[TableName(("dark",))] = None
    found = plan(statement, known, limits or RewriteLimits())
    assert not found.missing
    return found


def questions(sql: str) -> tuple[KeyQuery, ...]:
    return planned(sql).key_queries


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1", {"d"}),
        ("SELECT f.id FROM f JOIN d ON f.ds = d.ds, other WHERE d.g = 1 AND other.g = 2", {"d"}),
        ("SELECT f.id FROM f JOIN v ON f.ds = v.ds WHERE v.g = 1", {"v", "spark_catalog.default.e"}),
        ("SELECT f.id FROM f JOIN d ON f.ds = d.ds JOIN e ON e.g = d.g WHERE e.ds = 'x'", {"d", "e"}),
        ("SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = (SELECT max(g) FROM e)", {"d", "e"}),
        (
            "SELECT f.id FROM f JOIN d ON f.ds = d.ds JOIN e ON e.g = d.g WHERE e.ds IN (SELECT ds FROM other)",
            {"d", "e", "other"},
        ),
        (
            "SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1 AND d.ds IN (SELECT ds FROM v)",
            {"d", "v", "spark_catalog.default.e"},
        ),
        ("SELECT f.id FROM f JOIN d ON f.ds = concat(d.ds, (SELECT max(ds) FROM e)) WHERE d.g = 1", {"d", "e"}),
        (
            "SELECT f.id FROM f JOIN (SELECT d.ds FROM d JOIN e USING (g)) x ON f.ds = x.ds WHERE x.ds > 'x'",
            {"d", "e"},
        ),
        ("SELECT f.id FROM f WHERE f.ds IN (SELECT d.ds FROM d WHERE d.g IN (SELECT g FROM e))", {"d", "e"}),
        (
            "SELECT f.id FROM f WHERE EXISTS (SELECT 1 FROM d WHERE d.ds = f.ds AND d.g IN (SELECT g FROM e))",
            {"d", "e"},
        ),
        (
            "SELECT * FROM (SELECT f.id, d.g FROM f JOIN d ON f.ds = d.ds) x WHERE x.g = (SELECT max(g) FROM e)",
            {"d", "e"},
        ),
        (
            "SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE (d.g IN (SELECT g FROM e) AND f.id = 1) OR d.g = 2",
            {"d", "e"},
        ),
        ("WITH w AS (SELECT ds FROM d WHERE g = 1) SELECT f.id FROM f JOIN w ON f.ds = w.ds", {"d"}),
    ],
)
def test_a_key_query_says_which_tables_it_reads(sql: str, expected: set[str]) -> None:
    (question,) = questions(sql)
    assert {str(name) for name in question.tables} == expected


def test_ranges_that_are_asked_for_instead_are_read_from_the_same_tables() -> None:
    (scan, _) = planned("SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = (SELECT max(g) FROM e)").scans[:2]
    (reducer,) = scan.reducers
    assert reducer.alternatives[0].key_query.tables == reducer.key_query.tables


SNOWFLAKE = "SELECT f.id FROM f JOIN d ON f.ds = d.ds JOIN v ON v.g = d.g WHERE v.ds = 'x'"


def reason(**sizes: int) -> SkipReason | None:
    scans = planned(SNOWFLAKE, limits=RewriteLimits(small_side_bytes_max=100), **sizes).scans
    return next(scan.skip for scan in scans if scan.alias == "f")


def test_small_sides_as_large_as_is_allowed_together_are_asked() -> None:
    assert reason(d=60, e=40) is None
    assert reason(d=60, e=41) is SkipReason.SMALL_SIDE_TOO_LARGE


def test_a_small_side_of_unknown_size_is_asked() -> None:
    assert reason() is None


def test_the_size_of_the_fact_counts_for_nothing() -> None:
    assert reason(f=101) is None


def test_a_table_that_could_not_be_described_may_have_a_column_with_the_name_of_a_function() -> None:
    clock = "d.ds < current_date AND d.g = 1"
    (told,) = questions(f"SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE {clock}")
    assert "current_date" in told.sql
    (untold,) = questions(f"SELECT f.id FROM f JOIN d ON f.ds = d.ds JOIN dark ON dark.id = f.id WHERE {clock}")
    assert "current_date" not in untold.sql
    around = "SELECT dark.id FROM dark TABLESAMPLE (5 ROWS) WHERE EXISTS (SELECT f.id FROM f JOIN d ON f.ds = d.ds"
    (within,) = questions(f"{around} WHERE {clock} AND f.id = dark.id)")
    assert "current_date" not in within.sql


def beside_jdbc(sql: str, provider: str = "jdbc") -> Plan:
    statement = parse(sql, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    tables = {"f": FACT, "d": replace(SMALL, provider=provider), "e": SMALL}
    return plan(statement, {TableName((name,)): facts for name, facts in tables.items()}, RewriteLimits())


@pytest.mark.parametrize(
    ("sql", "is_asked"),
    [
        ("SELECT f.id FROM d LEFT JOIN f ON f.ds = d.ds AND d.g BETWEEN 1 AND 2", False),
        ("SELECT f.id FROM f RIGHT JOIN d ON f.ds = d.ds AND d.g = 1", False),
        ("SELECT f.id FROM d LEFT JOIN f ON f.ds = d.ds AND ((d.g = 1 AND f.id = 2) OR d.g = 3)", False),
        ("SELECT f.id FROM e JOIN d ON e.g = d.g LEFT JOIN f ON f.ds = e.ds AND d.ds < 'x'", False),
        ("SELECT f.id FROM d LEFT JOIN f ON f.ds = d.ds AND d.g = 1 WHERE f.id > 0", False),
        ("SELECT f.id FROM d LEFT JOIN f ON f.ds = d.ds WHERE d.g = 1", True),
        ("SELECT f.id FROM f LEFT JOIN d ON f.ds = d.ds WHERE d.g = 1", True),
        ("SELECT f.id FROM f JOIN d ON f.ds = d.ds AND d.g = 1", True),
        ("SELECT f.id FROM f LEFT SEMI JOIN d ON f.ds = d.ds AND d.g = 1", True),
    ],
)
def test_a_database_is_not_asked_by_a_condition_that_spark_tests_itself(sql: str, *, is_asked: bool) -> None:
    """A database may take a range in another order: Spark sends it none that an outer join keeps rows by."""
    assert beside_jdbc(sql, "parquet").key_queries, "of files Spark tests all conditions itself"
    assert bool(beside_jdbc(sql).key_queries) is is_asked
    causes = [scan.cause or "" for scan in beside_jdbc(sql).scans]
    assert any("another system" in cause for cause in causes) is not is_asked


@pytest.mark.parametrize("provider", ["", "paimon", "jdbc"])
def test_a_database_does_not_tell_distinct_keys_apart(provider: str) -> None:
    """From its catalog Spark fetches `SELECT k .. GROUP BY k`, without 'k' where it has 'K' and they are equal."""
    sql = "SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE d.g = 1"
    assert all("DISTINCT d.`ds` AS key" in query.sql for query in beside_jdbc(sql, "parquet").key_queries)
    (scan,) = (scan for scan in beside_jdbc(sql, provider).scans if scan.reducers)
    (reducer,) = scan.reducers
    asked = (reducer.key_query, *(found.key_query for found in reducer.alternatives))
    assert len(asked) > 1, "ranges are asked for where there are many"
    assert all("DISTINCT array_max(array(d.`ds`)) AS key" in query.sql for query in asked)


EXPLODE = "LATERAL VIEW explode"
ROWS = "LATERAL VIEW explode(array(d.ds, lower(d.ds))) x AS n"
OF_D = (
    "FROM d JOIN (SELECT 1) ON 'starpruner' IS NOT NULL LATERAL VIEW explode(array(d.ds, lower(d.ds))) `x` AS `n`"
)


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        (
            f"SELECT id FROM f, d {ROWS} WHERE f.ds = x.n AND d.g = 1",
            f"{OF_D} WHERE 'starpruner' IS NOT NULL AND (d.g = 1)",
        ),
        (f"SELECT id FROM d JOIN f ON d.g = 1 {ROWS} WHERE f.ds = n", "AND (d.g = 1)"),
        (f"SELECT id FROM f JOIN d ON f.id = d.g {ROWS} WHERE f.ds = n AND x.n <> 'a'", "AND (x.n <> 'a')"),
        # An outer join that a condition makes an inner one pads nothing.
        (f"SELECT id FROM f LEFT JOIN d ON f.id = d.g {ROWS} WHERE f.ds = n AND d.g = 1", "AND (d.g = 1)"),
        (
            "SELECT id FROM f, v LATERAL VIEW explode(split(v.ds, ',')) x AS n WHERE f.ds = n AND g = 1",
            f"FROM v JOIN (SELECT 1) ON 'starpruner' IS NOT NULL {EXPLODE}(split(v.ds, ',')) `x` AS `n`",
        ),
        (
            f"SELECT id FROM f {EXPLODE}(array('a')) x AS n {EXPLODE}(array(n, x.n)) y AS m WHERE ds = m",
            "LATERAL VIEW explode(array(n, x.n)) `y` AS `m`",
        ),
        # The other table's filter counts for it alone.
        (f"SELECT id FROM f, d, e {ROWS} WHERE f.ds = n AND d.g = 1 AND e.ds = n AND e.g = 2", f"{OF_D} WHERE"),
        (
            f"SELECT id FROM f JOIN (SELECT n FROM d {EXPLODE}(array(ds)) x AS n WHERE g = 1) y ON f.ds = n",
            "WHERE g = 1",
        ),
        (
            f"SELECT id FROM f WHERE ds IN (SELECT n FROM d {EXPLODE}(array(d.ds)) x AS n WHERE g = 1)",
            "WHERE g = 1",
        ),
    ],
)
def test_a_lateral_view_makes_keys_of_the_rows_of_one_table(sql: str, asked: str) -> None:
    assert any(asked in query.sql for query in questions(sql)), [query.sql for query in questions(sql)]


@pytest.mark.parametrize(
    "sql",
    [
        # An outer join pads the table: of a padded row the array may have elements.
        "SELECT id FROM f LEFT JOIN d ON d.g = 1 LATERAL VIEW explode(array('a', d.ds)) x AS n WHERE f.ds = n",
        "SELECT id FROM d RIGHT JOIN f ON d.g = 1 LATERAL VIEW explode(array('a', d.ds)) x AS n WHERE f.ds = n",
        # It reads two items, one of them perhaps the fact; a name that a later view has; a subquery.
        "SELECT id FROM f, d, e LATERAL VIEW explode(array(d.ds, e.ds)) x AS n WHERE f.ds = n AND d.g = 1",
        "SELECT id FROM f, d LATERAL VIEW explode(array(d.ds, f.ds)) x AS n WHERE f.ds = n AND d.g = 1",
        f"SELECT id FROM f, d {EXPLODE}(array(m)) x AS n {EXPLODE}(array('a')) y AS m WHERE f.ds = n",
        "SELECT id FROM f, d LATERAL VIEW explode(array(n)) x AS n WHERE f.ds = n AND d.g = 1",
        f"SELECT id FROM f, d {EXPLODE}(array(d.ds, (SELECT max(ds) FROM e))) x AS n WHERE f.ds = n AND d.g = 1",
        # A view over what another one makes; OUTER; a row of two columns.
        f"SELECT id FROM f, d {ROWS} LATERAL VIEW explode(array(x.n)) y AS m WHERE f.ds = m AND d.g = 1",
        f"SELECT id FROM f, d {ROWS.replace('VIEW', 'VIEW OUTER')} WHERE f.ds = n AND d.g = 1",
        "SELECT id FROM f, d LATERAL VIEW posexplode(array(d.ds)) x AS p, n WHERE f.ds = n AND d.g = 1",
        # A name that is not certain: of two items, or of a column that the table has too.
        "SELECT id FROM f, d LATERAL VIEW explode(array(d.ds)) d AS n WHERE f.ds = d.n AND g = 1",
        "SELECT id FROM f, d LATERAL VIEW explode(array(ds)) x AS n WHERE f.ds = n AND d.g = 1",
        # Calls that may give something else each time.
        "SELECT id FROM f, d LATERAL VIEW explode(array(d.ds, uuid())) x AS n WHERE f.ds = n AND d.g = 1",
        f"SELECT id FROM f, d {EXPLODE}(array(d.ds, string(now()))) x AS n WHERE f.ds = n AND d.g = 1",
        f"SELECT id FROM f JOIN (SELECT n FROM d {EXPLODE}(array(uuid(), ds)) x AS n WHERE g = 1) y ON f.ds = n",
        "SELECT id FROM f JOIN (SELECT n FROM d, LATERAL (SELECT d.ds AS n) x WHERE g = 1) y ON f.ds = y.n",
        # The table is not known, or has no filter; the block around a subquery may be in memory.
        "SELECT id FROM f, dark LATERAL VIEW explode(array(dark.ds)) x AS n WHERE f.ds = n AND dark.g = 1",
        f"SELECT id FROM f, d {ROWS} WHERE f.ds = x.n",
        f"SELECT (SELECT count(*) FROM f WHERE f.ds = x.n) FROM d {ROWS} WHERE d.g = 1",
    ],
)
def test_other_lateral_views_are_not_asked_for_keys(sql: str) -> None:
    assert not questions(sql)
