"""Columns that a derived table computes of partition columns: which count, and how Spark is asked about them."""

import pytest

from rewriter import (
    Catalog,
    Column,
    PartitionMatches,
    Plan,
    RewriteLimits,
    SkipReason,
    TableFacts,
    TableName,
    apply,
    parse,
    plan,
)
from rewriter.partitions.index import PartitionIndex
from rewriter.semijoins.partition_query import PartitionsQuery

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")
FACT = TableFacts((Column("id", "int"), Column("ds", "string"), Column("y", "int")), ("ds", "y"))
CATALOG: Catalog = {
    TableName(("f",)): FACT,
    TableName(("c",)): TableFacts((Column("d", "date"), Column("y", "int"), Column("g", "int"))),
    TableName(("c2",)): TableFacts((Column("id", "int"), Column("d", "date"))),
    TableName(("e",)): TableFacts((Column("id", "int"), Column("ds", "string"))),
}
LISTS = {
    TableName(("f",)): PartitionIndex.of(("ds", "y"), ("string", "int"), [f"ds={day}/y=2026" for day in DAYS])
}
JOINED = "SELECT s.id FROM s JOIN c ON s.day = c.d WHERE c.g = 1"
STAGED = "SELECT id, CAST(ds AS DATE) AS day FROM f"


def planned(sql: str) -> Plan:
    statement = parse(sql, chars_max=10_000)
    assert not isinstance(statement, SkipReason)
    found = plan(statement, CATALOG, RewriteLimits(), LISTS)
    assert not found.missing
    return found


def query(sql: str) -> PartitionsQuery:
    (found,) = planned(sql).key_queries
    assert isinstance(found, PartitionsQuery)
    return found


def test_spark_is_asked_with_the_partitions_in_the_place_of_what_computes_the_column() -> None:
    sql = f"WITH s AS ({STAGED}) {JOINED}"
    asked = query(sql)
    assert asked.outline == (
        "SELECT s.`starpruner_1` AS key, typeof(s.`starpruner_1`) AS type FROM (SELECT CAST(ds AS DATE) AS `day`,"
        " f.`ds` AS `starpruner_1` FROM (partitions) AS f(`ds`)) AS s, c"
        " WHERE 'starpruner' IS NOT NULL AND (c.g = 1) AND (s.day = c.d) LIMIT 4"
    )
    assert "(VALUES ('2026-01-01'), ('2026-01-02'), ('2026-01-03')) AS f(`ds`)" in asked.sql
    matching = PartitionMatches(("string",), asked.asked, frozenset({(DAYS[0],)}))
    text = apply(planned(sql), {asked: matching}, RewriteLimits()).text
    assert "FROM (SELECT * FROM f WHERE" in text
    assert text.endswith(f") {JOINED}")


@pytest.mark.parametrize(
    "staged",
    [
        "SELECT e.id, CAST(f.ds AS DATE) AS day FROM e LEFT JOIN f ON e.id = f.id",
        f"SELECT e.id, x.day FROM e LEFT JOIN ({STAGED}) x ON e.id = x.id",
        f"SELECT y.id, y.dd AS day FROM (SELECT e.id, x.day AS dd FROM e LEFT JOIN ({STAGED}) x ON e.id = x.id) y",
        "SELECT x.id, CAST(x.ds AS DATE) AS day FROM (SELECT e.id, f.ds FROM e LEFT JOIN f ON e.id = f.id) x",
    ],
)
def test_an_outer_join_pads_what_is_computed_and_what_it_is_computed_of(staged: str) -> None:
    nulls_too = JOINED.replace("s.day = c.d", "(s.day = c.d OR s.day IS NULL)")
    asked = query(f"WITH s AS ({staged}) {nulls_too}")
    assert asked.may_be_padding
    assert "(VALUES (CAST(NULL AS string)), ('2026-01-01')" in asked.sql
    assert "UNION ALL SELECT NULL, NULL)" in asked.sql
    assert not query(f"WITH s AS ({STAGED}) {nulls_too}").may_be_padding


OF_C = "SELECT s.id FROM s JOIN c ON"
RENAMED = f"""WITH a AS (SELECT id, CAST(x.ds AS DATE) AS dd FROM f x), b AS (SELECT * FROM a),
s AS (SELECT b.id, b.dd AS day FROM b) {JOINED}"""
TWO = f"""WITH s AS (SELECT id, ds || y AS day, CAST(ds AS DATE) AS e, y + 1 AS z FROM f)
{OF_C} s.e = c.d AND s.z = c.y WHERE c.g = 1"""
PADDED = f"WITH s AS (SELECT e.id, CAST(f.ds AS DATE) AS day FROM e LEFT JOIN f ON e.id = f.id) {JOINED}"
READ = f"WITH s AS ({STAGED}) SELECT id FROM s WHERE"
IN_GROUPS_OR_ORDER = (
    "SELECT DISTINCT CAST(ds AS DATE) AS day, 1 AS id FROM f",
    "SELECT CAST(ds AS DATE) AS day, max(id) AS id FROM f GROUP BY ds, y",
    "SELECT CAST(ds AS DATE) AS day, max(id) AS id FROM f GROUP BY 1 HAVING count(*) > 1",
    f"SELECT day, max(id) AS id FROM ({STAGED}) x GROUP BY day",
    f"SELECT day, sum(id) OVER (PARTITION BY day) AS id FROM ({STAGED}) x",
    f"{STAGED} LATERAL VIEW explode(array(1, 2)) t AS z ORDER BY id",
)
FOLLOWED = {
    f"SELECT s.id FROM ({STAGED} WHERE id > 3) s JOIN c ON s.day = c.d WHERE c.g = 1": "CAST(ds AS DATE) AS `day`",
    f"WITH s AS (SELECT f.id, /* , */ CAST(f.ds AS DATE) day FROM f) {JOINED}": "CAST(f.ds AS DATE) AS `day`",
    RENAMED: "CAST(x.ds AS DATE) AS `day`, x.`ds` AS",
    TWO: "CAST(ds AS DATE) AS `e`, y + 1 AS `z`, f.`ds` AS `starpruner_1`, f.`y` AS `starpruner_2`",
    PADDED: "CAST(f.ds AS DATE) AS `day`",
    **dict.fromkeys(
        (f"WITH s AS ({staged}) {JOINED}" for staged in IN_GROUPS_OR_ORDER), "CAST(ds AS DATE) AS `day`"
    ),
    "SELECT s.id FROM (SELECT id, CAST(ds AS DATE) AS d FROM f) s JOIN c USING (d) WHERE g = 1": "CAST(ds AS",
    f"{READ} day > (SELECT max(d) FROM c WHERE g = 1)": "CAST(ds AS DATE) AS `day`",
    f"{READ} day IN (SELECT d FROM c WHERE g = 1)": "CAST(ds AS DATE) AS `day`",
    f"{READ} EXISTS (SELECT 1 FROM c WHERE g = 1 AND d = day)": "CAST(ds AS DATE) AS `day`",
}


@pytest.mark.parametrize("sql", FOLLOWED)
def test_a_column_is_followed_to_where_it_is_computed(sql: str) -> None:
    assert f"(SELECT {FOLLOWED[sql]}" in query(sql).outline


@pytest.mark.parametrize(
    ("staged", "asked"),
    [
        (f"{STAGED} UNION ALL {STAGED}", 2),
        (f"{STAGED} UNION SELECT id, CAST(ds AS DATE) FROM e", 1),
        ("SELECT id, d AS day FROM c2 UNION ALL SELECT id, CAST(coalesce(ds, '1') AS DATE) FROM f", 1),
        (f"SELECT * FROM ({STAGED} UNION ALL SELECT id, CAST(ds AS DATE) FROM f WHERE id > 1) x", 2),
    ],
)
def test_each_branch_of_a_union_computes_a_column_of_its_own(staged: str, asked: int) -> None:
    found = planned(f"WITH s AS ({staged}) {JOINED}")
    scans = [scan for scan in found.scans if scan.reference.name == TableName(("f",))]
    assert [scan.skip for scan in scans] == [None] * asked


@pytest.mark.parametrize(
    ("branch", "is_narrowed"),
    [
        ("CAST(d AS STRING)", True),
        ("d::string", True),
        ("TRY_CAST(d AS STRING)", True),
        ("CAST(d AS STRING COLLATE UTF8_LCASE)", False),
        ("CAST(d AS STRING) COLLATE UTF8_LCASE", False),
        # A function of the user's own may have the name.
        ("string(d)", False),
        ("CAST(d AS DATE)", False),
        ("concat(d, '')", False),
    ],
)
def test_a_branch_shows_a_column_as_it_is_beside_casts_to_its_type(branch: str, *, is_narrowed: bool) -> None:
    found = planned(
        f"SELECT u.id FROM (SELECT id, ds FROM f UNION ALL SELECT id, {branch} FROM c2) u"
        " JOIN e ON u.ds = e.ds WHERE e.id = 1"
    )
    assert bool(found.key_queries) is is_narrowed


@pytest.mark.parametrize(
    "staged",
    [
        # Rows of several days make one, or the number of rows decides which there are.
        "SELECT max(CAST(ds AS DATE)) AS day, 1 AS id FROM f",
        "SELECT id, max(CAST(ds AS DATE)) AS day FROM f GROUP BY id",
        "SELECT id, CAST(max(ds) AS DATE) AS day FROM f GROUP BY id",
        "SELECT id, any(CAST(ds AS DATE) = DATE'2026-01-01') AS day FROM f GROUP BY id",
        "SELECT CAST(ds AS DATE) AS day, max(id) AS id FROM f GROUP BY ROLLUP (CAST(ds AS DATE))",
        "SELECT CAST(ds AS DATE) AS day, max(id) AS id FROM f GROUP BY 1 WITH CUBE",
        "SELECT CAST(ds AS DATE) AS day, max(id) AS id FROM f GROUP BY GROUPING SETS ((ds), ())",
        f"SELECT day, max(id) AS id FROM ({STAGED}) x GROUP BY ROLLUP (day)",
        f"SELECT day, sum(id) OVER () AS id FROM ({STAGED}) x",
        f"SELECT max(day) AS day, 1 AS id FROM ({STAGED}) x",
        f"{STAGED} LIMIT 10",
        f"{STAGED} OFFSET 1",
        f"{STAGED} ORDER BY id LIMIT 10",
        f"{STAGED} UNION ALL SELECT id, ds FROM e",
        f"{STAGED} UNION ALL SELECT id, to_date(ds) FROM e",
        "SELECT CAST(ds AS DATE) AS day, row_number() OVER (ORDER BY id) AS id FROM f",
        "SELECT x AS id, CAST(ds AS DATE) AS day FROM f LATERAL VIEW explode(array('2026-01-01')) t AS ds",
        # Not of partition columns of one table alone.
        "SELECT id, date_add(CAST(ds AS DATE), id) AS day FROM f",
        "SELECT f.id, CAST(concat(f.ds, e.ds) AS DATE) AS day FROM f JOIN e ON f.id = e.id",
        "SELECT id, CAST('2026-01-01' AS DATE) AS day FROM f",
        "SELECT id, CAST((SELECT max(f.ds) FROM e) AS DATE) AS day FROM f",
        # Not the same each time, or not certain to be.
        "SELECT id, date_add(CAST(ds AS DATE), CAST(rand() AS INT)) AS day FROM f",
        "SELECT id, CAST(my_function(ds) AS DATE) AS day FROM f",
    ],
)
def test_any_other_column_is_left_alone(staged: str) -> None:
    found = planned(f"WITH s AS ({staged}) {JOINED}")
    assert not found.key_queries


def test_a_cte_that_is_read_twice_is_left_alone() -> None:
    assert not planned(f"WITH s AS ({STAGED}) {JOINED} AND s.id IN (SELECT id FROM s)").key_queries


def test_of_columns_that_are_computed_in_two_places_one_condition_counts() -> None:
    sql = (
        "WITH a AS (SELECT id, CAST(ds AS DATE) AS day, y FROM f), s AS (SELECT id, day, y + 1 AS z FROM a)"
        " SELECT s.id FROM s JOIN c ON s.day = c.d AND s.z = c.y WHERE c.g = 1"
    )
    assert "(s.day = c.d)" in query(sql).outline
    assert "s.z" not in query(sql).outline
    both = sql.replace("s.day = c.d AND s.z = c.y", "year(s.day) + s.z = c.y")
    assert not planned(both).key_queries
