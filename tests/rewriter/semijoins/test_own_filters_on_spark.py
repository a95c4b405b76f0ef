"""The statement's own filters on Spark itself: each row that passes is among those that they are read to leave."""

from collections.abc import Iterator
from itertools import product

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from rewriter import Column, RewriteLimits, Statement, TableFacts, TableName, parse, plan
from rewriter.domains.cover import Cover

COLUMNS = (
    *(
        Column("x", "int"),
        Column("z", "int"),
        Column("s", "string"),
        Column("d", "date"),
        Column("c", "decimal(4,1)"),
        Column("r", "decimal(38,30)"),
    ),
    *(Column("f", "double"), Column("h", "char(3)"), Column("v", "varchar(3)")),
)
FACT = TableFacts(COLUMNS, (), indexed_columns=("x", "z", "s", "d", "c", "r"))
DAYS = ("NULL", "DATE'2026-01-01'", "DATE'+12026-01-01'")
ROWS = [
    *product(
        ("NULL", "-1", "2", "30"),
        ("NULL", "2", "30"),
        ("NULL", "'2'", "'030'"),
        ("NULL",),
        ("NULL", "30BD"),
        ("NULL",),
    ),
    *product(("30",), ("30",), ("'x'",), DAYS, ("30.5BD",), ("2BD", f"2.{1:030}BD")),
]
# Not of types with a certain equality: negative zero, NaN, and what Spark pads.
ODD = ("CAST(-0.0D AS DOUBLE), CAST('a' AS CHAR(3)), 'a'", "double('NaN'), 'a  ', 'a '", "0.0D, NULL, NULL")
SETTINGS = [
    {"spark.sql.ansi.enabled": "true"},
    {"spark.sql.ansi.enabled": "false"},
    {"spark.sql.ansi.enabled": "false", "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "true"},
]
TEXTS = ("'30'", "'-1'", "'030'", "' 30'", "'30.0'", "'x'", "'3000000000'")
CONDITIONS = [
    *(
        f"{column} {operator} {text}"
        for column, operator, text in product("xc", ("=", "<>", "<=>", "<", ">="), TEXTS)
    ),
    *(
        f"x {test} ({items})"
        for test in ("IN", "NOT IN")
        for items in ("'30', '2'", "'030', '2'", "30, '2'", "'30', 2L")
    ),
    *("x BETWEEN '2' AND '30'", "x NOT BETWEEN '2' AND 30", "NOT '30' > x", "x IS DISTINCT FROM '30'"),
    *(f"d {operator} '2026-01-01'" for operator in ("=", "<>", "<=>", "<", ">")),
    *(
        "d IN ('2026-01-01')",
        "d NOT IN ('2026-01-01', '2026-01-02')",
        "d = '2026-1-1'",
        "d BETWEEN '2026-01-01' AND '9'",
    ),
    *(f"{some} (x, z) {test}" for some, test in product(("", "NOT"), ("IN ((2, 2))", "IN ((2, 30), (30, 30))"))),
    *("(x, z, s) IN ((2, 2, '2'), (30, 30, '030'))", "(x, z, s) NOT IN ((2, 2, '2'), (30, 30, '030'))"),
    *(
        "(x, z) = (2, 2)",
        "NOT (x, z) = (2, 2)",
        "(x, z) <=> (30, 30)",
        "NOT (x, z) <=> (30, 30)",
        "(x, z) <> (2, 2)",
    ),
    "(x, z) NOT IN (" + ", ".join(f"({n}, {n})" for n in range(12)) + ")",
    *("NOT (x = 30 AND z = 2)", "NOT (x = 30 OR z = 2)", "NOT (x = 30 AND NOT (z = 2 OR s = '2'))"),
    *("NOT (x = 30 AND z IN (2, NULL))", "NOT (x IS NULL OR z <=> 2)", "NOT (x <> 30 OR (z IS NULL AND s = '2'))"),
    *("x IS NOT NULL", "NOT (x IS NULL AND z IS NULL)", "(x = 30 OR z = 2) AND NOT (s <> '2' AND x = 30)"),
    # IN compares an integer as one of ten digits, or twenty, for which Spark rounds 30 places to 28.
    *("r IN (2)", "r = 2", "r <> 2", "r NOT IN (2, 3.0)", "r IN (2.0)", "(x, r) IN ((30, 2))", "r < 3000000000"),
    *("f = 0", "f = '0'", "f IN (0.0D)", "h = 'a'", "h = 'a  '", "h IN ('a')", "v = 'a'", "(x, f) IN ((2, 0.0D))"),
    *(
        "(x, h) NOT IN ((2, 'a'))",
        "NOT (f = 0 AND x = 30)",
        "NOT (h = 'a' OR x = 30)",
        "NOT (f <> 0 OR x <> '30')",
    ),
]


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def session(request: pytest.FixtureRequest, local_spark: SparkSession) -> Iterator[SparkSession]:
    settings: dict[str, str] = request.param
    spark = local_spark.newSession()
    for name, value in settings.items():
        spark.conf.set(name, value)
    rows = ", ".join(f"({n}, {', '.join(row)}, {odd})" for n, (row, odd) in enumerate(product(ROWS, ODD)))
    names = ", ".join(column.name for column in COLUMNS)
    _ = spark.sql("DROP TABLE IF EXISTS own_filters")
    types = ", ".join(f"{column.name} {column.type_name}" for column in COLUMNS)
    _ = spark.sql(f"CREATE TABLE own_filters (n INT, {types}) USING parquet")
    _ = spark.sql(f"INSERT INTO own_filters SELECT * FROM VALUES {rows} AS t(n, {names})")
    yield spark
    _ = spark.sql("DROP TABLE own_filters")


def left(condition: str) -> Cover:
    """What a filter is read to leave of the table."""
    sql = f"SELECT n FROM own_filters WHERE {condition}"
    statement = parse(sql, chars_max=10_000, has_file_index=True)
    assert isinstance(statement, Statement), statement
    found = plan(statement, {TableName(("own_filters",)): FACT}, RewriteLimits(has_file_index=True))
    (scan,) = found.scans
    return scan.own_cover


def test_each_row_that_passes_a_filter_is_among_those_that_it_is_read_to_leave(session: SparkSession) -> None:
    known = {row.n: row.asDict() for row in session.table("own_filters").drop("d", "c", "r").collect()}
    as_texts = ", ".join(f"CAST({name} AS STRING) AS {name}" for name in "dcr")
    texts = session.sql(f"SELECT n, {as_texts} FROM own_filters").collect()
    for row in texts:
        # A day of the year 12026 is no key; it is in a file of which the index knows no bounds.
        known[row.n] |= {"d": row.d, "c": row.c, "r": row.r}
    answered = 0
    for condition in CONDITIONS:
        try:
            passing = session.sql(f"SELECT n FROM own_filters WHERE {condition}").collect()
        except PySparkException:
            continue  # ANSI refuses the cast
        answered += 1
        cover = left(condition)
        rows = [known[n] for (n,) in passing if not (known[n]["d"] or "").startswith("+")]
        assert all(map(cover.holds, rows)), f"{condition}\n{[row for row in rows if not cover.holds(row)][:3]}"
    assert answered > len(CONDITIONS) * 3 // 4
