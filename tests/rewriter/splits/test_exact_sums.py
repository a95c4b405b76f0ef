"""Which sums are the same in whatever order their values are added."""

import pytest

from rewriter import SkipReason, parse
from rewriter.splits.exact_sums import are_sums_exact, of_tables_alone

TYPES = {
    "i": "int",
    "b": "bigint",
    "s": "smallint",
    "n": "decimal(10,2)",
    "w": "decimal(28,0)",
    "m": "decimal(29,1)",
    "f": "float",
    "d": "double",
    "t": "string",
}


def is_exact(sql: str) -> bool:
    statement = parse(sql, chars_max=1_000, has_small_files=True)
    assert not isinstance(statement, SkipReason)
    type_of = of_tables_alone(statement, lambda column: TYPES.get(column.name.lower()))
    return are_sums_exact(statement, type_of)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT d FROM t",
        "SELECT max(d), min(f), count(d), count(*) FROM t",
        "SELECT sum(i), sum(B), sum(n), sum(DISTINCT i) FROM t",
        "SELECT sum(a.i * (n + 1.5) - 2) AS total FROM t a GROUP BY b",
        "SELECT sum(CASE WHEN d > 1.5 THEN 1 ELSE 0 END), sum(if(d > 1, i, NULL)), sum(coalesce(i, 0)) FROM t",
        "SELECT sum(CAST(d AS BIGINT)) FILTER (WHERE f > 1) FROM t",
        "SELECT avg(s), avg(n), avg(coalesce(s, 0)), avg(if(d > 1, -s, 2)) FROM t",
        "SELECT sum(i) OVER (PARTITION BY t) FROM t",
        # Ten digits more are 38, and a choice between decimals has the digits of the larger one.
        "SELECT sum(w), avg(w), sum(if(d > 1, w, 0)), sum(n * i - n), sum(CAST(d AS DECIMAL(28,5))) FROM t",
        "SELECT sum(CAST(d AS DECIMAL)), sum(b * b * b) FROM t",
    ],
)
def test_sums_of_integers_and_decimals_are_exact(sql: str) -> None:
    assert is_exact(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(d) FROM t",
        "SELECT sum(f), count(*) FROM t",
        "SELECT sum(i), sum(i + d) FROM t",
        # A quotient, a text and an exponent make doubles.
        "SELECT sum(i / 2) FROM t",
        "SELECT sum(t) FROM t",
        "SELECT sum(i * 1e3) FROM t",
        "SELECT sum(CASE WHEN i > 1 THEN d ELSE 0 END) FROM t",
        # An average of integers is added up as a double.
        "SELECT avg(i), avg(d) FROM t",
        "SELECT avg(b) FROM t",
        "SELECT avg(s * 4611686018427387904) FROM t",
        "SELECT avg(coalesce(s, 9007199254740993)) FROM t",
        "SELECT avg(CAST(t AS BIGINT)) FROM t",
        "SELECT mean(n) FROM t",
        "SELECT stddev(i) FROM t",
        "SELECT i FROM t GROUP BY i HAVING `sum`(d) > 1",
        # A sum of such decimals may pass 38 digits on the way.
        "SELECT sum(m) FROM t",
        "SELECT avg(m) FROM t",
        "SELECT sum(w + 1) FROM t",
        "SELECT sum(if(d > 1, w, 0.5)) FROM t",
        "SELECT sum(n * n * n) FROM t",
        "SELECT sum(CAST(d AS DECIMAL(38,2))) FROM t",
        # These may be of any type.
        "SELECT sum(i) FROM (SELECT d AS i FROM t) a",
        "SELECT sum(q) FROM (SELECT d AS q FROM t) a",
        "WITH a (i) AS (SELECT d FROM t) SELECT sum(i) FROM a",
        "SELECT sum(length(t)) FROM t",
    ],
)
def test_other_sums_may_depend_on_the_order_in_which_rows_are_read(sql: str) -> None:
    assert not is_exact(sql)
