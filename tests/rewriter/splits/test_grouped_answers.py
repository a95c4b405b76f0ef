"""Statements that answer alike in any order of rows, whose scans are grouped, and neighbours that do not."""

import pytest
from small_file_tables import grouped_text

ANY_ORDER = [
    # Types that have one zero.
    "SELECT max(i), min(s), max(m2), min(t), median(n) FROM many",
    "SELECT max(CAST(d AS DATE)), max(date_trunc('MONTH', t)), max(upper(s)) FROM many",
    "SELECT max(CASE WHEN i > 0 THEN i ELSE n END), min(coalesce(s, 'x')), max(if(i > 0, m2, 1)) FROM many",
    "SELECT i, max(n + i) FROM many GROUP BY i",
    # There is no floating-point number anywhere.
    "SELECT max(v) FROM (SELECT i AS v FROM texts WHERE i > -1) q",
    "SELECT max(v) FROM (SELECT pairs[0].y AS v FROM paired) q",
    # So many digits have room for ten more.
    "SELECT sum(m2), avg(m2), sum(m2 * i), sum(CAST(d AS DECIMAL(28,2))) FROM many",
    "SELECT sum(CASE WHEN i > 0 THEN m2 WHEN i > 1 THEN m2 ELSE 0.5 END) FROM many",
    # Rows that are equal in their order are one.
    "SELECT id, i FROM many ORDER BY i, id LIMIT 3",
    "SELECT id AS a, i AS b FROM many ORDER BY 2 DESC, a LIMIT 3",
    "SELECT DISTINCT z FROM many ORDER BY z LIMIT 3",
    "SELECT i, s, count(*) FROM many GROUP BY i, s ORDER BY count(*) DESC, s, i LIMIT 3",
    "SELECT upper(s) AS u, max(i) FROM many GROUP BY upper(s) ORDER BY u LIMIT 3",
    "SELECT z, count(*) FROM many GROUP BY 1 ORDER BY 1 LIMIT 3 OFFSET 1",
    "SELECT count(*) FROM (SELECT DISTINCT z FROM many ORDER BY z LIMIT 3) q",
    # Fields of structs that are in nothing.
    "SELECT st.i FROM many",
]


@pytest.mark.parametrize("sql", ANY_ORDER)
def test_a_statement_that_answers_alike_in_any_order_is_grouped(sql: str) -> None:
    assert grouped_text(sql) is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT max(z) FROM many",
        "SELECT i, min(f) FROM many GROUP BY i HAVING min(f) = 0",
        "SELECT max(DISTINCT d), median(z) FROM many",
        "SELECT percentile(z, 0.5) FROM many",
        "SELECT max(e), max(st) FROM many",
        "SELECT max(struct(i, z)) FROM many",
        "SELECT max(z) OVER (PARTITION BY i) FROM many",
        "SELECT max(0 / i) FROM many",
        "SELECT max(i) FROM (SELECT z AS i FROM many) q",
        "SELECT max(v) FROM (SELECT -z AS v FROM many) q",
        # The text of a number becomes one, beside a decimal too.
        "SELECT max(coalesce(s, m2)) FROM many",
        "SELECT max(CASE WHEN i > 0 THEN s ELSE 0.5 END) FROM many",
        "SELECT max(v) FROM (SELECT s AS v FROM texts UNION ALL SELECT 0.5) q",
        "SELECT max(-d) FROM texts",
        "SELECT max(v) FROM (SELECT d - i AS v FROM texts) q",
        "SELECT max(v) FROM (SELECT round(d) AS v FROM texts) q",
        "SELECT max(v) FROM (SELECT CAST(d AS DOUBLE) AS v FROM texts) q",
        "SELECT max(v) FROM (SELECT i AS v FROM texts UNION ALL SELECT 1e0) q",
    ],
)
def test_where_an_extreme_may_be_a_zero_with_a_sign_splits_are_kept(sql: str) -> None:
    assert grouped_text(sql) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(m38) FROM many",
        "SELECT avg(m38) FROM many",
        "SELECT sum(m2 * m2 * m2) FROM many",
        "SELECT sum(CAST(i AS DECIMAL(29,0))) FROM many",
        "SELECT sum(m2 + m38) FROM many",
    ],
)
def test_where_a_sum_of_decimals_may_pass_the_range_on_the_way_splits_are_kept(sql: str) -> None:
    assert grouped_text(sql) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, i FROM many ORDER BY i LIMIT 3",
        "SELECT id, i FROM many ORDER BY i OFFSET 3",
        "SELECT * FROM many ORDER BY id LIMIT 3",
        "SELECT i FROM many ORDER BY i + 0 LIMIT 3",
        "SELECT z FROM many ORDER BY z LIMIT 3",
        "SELECT s, count(*) FROM many GROUP BY s ORDER BY count(*) LIMIT 3",
        "SELECT s, i, count(*) AS n FROM many GROUP BY s, i ORDER BY s, n LIMIT 3",
        "SELECT i, s, max(n) AS n FROM many GROUP BY ROLLUP (i, s) ORDER BY i, s LIMIT 3",
        "SELECT i, max(n) AS n FROM many GROUP BY i WITH CUBE ORDER BY i LIMIT 3",
        "SELECT i, explode(array(1, max(n))) AS e FROM many GROUP BY i ORDER BY i LIMIT 3",
        # Where letters of either case are told apart, this is the table's column.
        "SELECT id AS I, n FROM many ORDER BY i, n LIMIT 3",
        # The key is the table's column, and the rows are ordered by another.
        "SELECT max(i) AS s, count(*) FROM many GROUP BY s ORDER BY s LIMIT 3",
        "SELECT id AS i, n FROM many GROUP BY i, id, n ORDER BY i, n LIMIT 3",
        "SELECT max(i) FROM (SELECT i, s FROM many ORDER BY s LIMIT 3) q",
        "(SELECT i FROM many) ORDER BY i LIMIT 3",
        "SELECT i FROM many UNION SELECT i FROM other ORDER BY i LIMIT 3",
    ],
)
def test_where_other_rows_may_be_taken_of_those_that_are_equal_in_their_order_splits_are_kept(sql: str) -> None:
    assert grouped_text(sql) is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT many.i FROM many JOIN unknown u ON many.i = u.i",
        "SELECT i FROM many UNION ALL SELECT i FROM parquet.`/data`",
        "SELECT i FROM many UNION ALL SELECT i FROM other PIVOT (count(w) FOR label IN ('a'))",
    ],
)
def test_beside_a_table_or_a_clause_of_which_nothing_is_known_splits_are_kept(sql: str) -> None:
    assert grouped_text(sql) is None


@pytest.mark.parametrize(
    "value",
    ["element_at(pairs, 1).x", "reverse(pairs).x", "slice(pairs, 1, 2)[0].x", "filter(pairs, p -> p.x > 1)[0].x"],
)
def test_where_spark_reads_a_field_alone_through_a_function_splits_are_kept(value: str) -> None:
    assert grouped_text(f"SELECT {value} FROM paired") is None
    assert grouped_text("SELECT pairs[0].x FROM paired") is not None
