"""What makes an answer depend on the order of rows, by the words of a statement and of its plan."""

import pytest

from proxy.session.shadow.order_dependence import OrderDoubts, doubts, unbounded


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("SELECT a FROM t", "SELECT a FROM t"),
        ("SELECT a FROM t ;; ", "SELECT a FROM t "),
        ("SELECT a FROM t LIMIT 5", "SELECT a FROM t "),
        ("SELECT a FROM t ORDER BY a LIMIT 5 OFFSET 2;", "SELECT a FROM t ORDER BY a "),
        ("SELECT a FROM t OFFSET 2 -- two", "SELECT a FROM t "),
        ("SELECT a FROM t /* LIMIT 5 */ LIMIT 5", "SELECT a FROM t /* LIMIT 5 */ "),
        ("SELECT a FROM (SELECT a FROM t LIMIT 5)", "SELECT a FROM (SELECT a FROM t LIMIT 5)"),
        ("SELECT 'LIMIT 5'", "SELECT 'LIMIT 5'"),
        ("SELECT a FROM t ORDER BY limit", "SELECT a FROM t ORDER BY limit"),
        ("SELECT a -- LIMIT 5", "SELECT a -- LIMIT 5"),
    ],
)
def test_the_outermost_limit_is_cut_off_with_what_stands_behind(text: str, kept: str) -> None:
    assert unbounded(text) == (kept, text.removeprefix(kept))


def test_a_text_that_cannot_be_read_is_not_cut() -> None:
    assert unbounded("SELECT 'a") is None


@pytest.mark.parametrize(
    "words",
    [
        *("collect_list(a)", "First (a)", "row_number() OVER (ORDER BY a)", "max_by(a, b)", "rand()", "uuid()"),
        *("LIMIT 5", "TABLESAMPLE (5 PERCENT)", "percentile_approx(a, 0.5)", "hll_sketch_agg(a)"),
        *(
            "sum(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
            "pythonUDF0#3",
            "HiveSimpleUDF#f(a)",
        ),
    ],
)
def test_what_chooses_rows_is_seen_in_the_text_and_in_the_plan(words: str) -> None:
    assert doubts(words, "").chosen
    assert doubts("", words).chosen


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, sum(b), max(c), count(DISTINCT d) FROM sample s JOIN offsets o ON s.k = o.k GROUP BY a",
        "SELECT sum(a) OVER (PARTITION BY b), rank() OVER (ORDER BY c) FROM first_orders",
        "SELECT firstname, unlimited, rows FROM t WHERE random_walk > 1",
    ],
)
def test_what_answers_the_same_in_any_order_is_not_doubted(text: str) -> None:
    assert doubts(text, "") == OrderDoubts(chosen=False, floats=False, rounds=False)


def test_floating_point_numbers_and_roundings_are_seen() -> None:
    assert doubts("SELECT sum(a) FROM t", "ReadSchema: struct<a:double>").floats
    assert doubts("SELECT round(sum(a), 2) FROM t", "").rounds
