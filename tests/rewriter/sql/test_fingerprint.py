"""Shapes: statements that differ in constants only have one, others do not."""

import time

import pytest
from sqlglot import exp

from rewriter import Statement, parse
from rewriter.sql.bounded_parser import tokenize
from rewriter.sql.fingerprint import fingerprint

BASE = "SELECT sum(f.x) FROM f JOIN d ON f.k = d.k WHERE "


def shape_of(text: str) -> str:
    statement = parse(text, chars_max=10_000_000)
    assert isinstance(statement, Statement), statement
    return fingerprint(statement)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("d.g = 1", "d.g = 234567L"),
        ("d.g = 1.5BD", "d.g = 1"),
        ("d.g = 'a'", "d.g = 'it''s'"),
        ("d.g = 'a'", "d.g = r'a'"),
        ("d.g = DATE'2026-01-01'", "d.g = date '1999-12-31'"),
        ("d.g IN (1)", "d.g IN (1, 2, 3L)"),
        ("d.g IN (-1, -2, -3)", "d.g in (-7)"),
        ("d.g IN (DATE'2026-01-01', DATE'2026-01-02')", "d.g IN (DATE'2026-01-03')"),
        ("(d.g, d.h) IN ((1, 'a'), (2, 'b'))", "(d.g, d.h) IN ((1, 'a'))"),
        ("d.g BETWEEN 1 AND 2", "d.g   between 3 AND\n4 -- days"),
        ("d.g = 1 GROUP BY d.h", "d.g = 2 group  by d.h"),
        ("d.g = 1 LIMIT 10", "d.g = 1 LIMIT 100"),
    ],
)
def test_statements_that_differ_in_constants_only_have_one_shape(one: str, other: str) -> None:
    assert shape_of(BASE + one) == shape_of(BASE + other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("d.g = 1", "d.h = 1"),
        ("d.g = 1", "d.g > 1"),
        ("d.g = 1", "d.g = d.h"),
        ("d.g = 1", "d.g = '?' OR d.g = 1"),
        ("d.g IN (1, d.h)", "d.g IN (1)"),
        ("d.g IN (d.h, d.h)", "d.g IN (d.h)"),
        ("d.g = 1", "d.g = `?`"),
        ("d.`g` = 1 AND d.`a b` = 1", "d.`g` = 1 AND d.`a  b` = 1"),
    ],
)
def test_statements_that_differ_in_more_than_constants_have_two_shapes(one: str, other: str) -> None:
    assert shape_of(BASE + one) != shape_of(BASE + other)


def test_a_shape_tells_nothing_of_the_constants() -> None:
    found = shape_of(BASE + "d.g = 'secret'")
    assert (len(found), int(found, 16) > 0) == (32, True)


def test_the_shape_of_a_long_list_is_found_in_linear_time() -> None:
    pairs = ", ".join(f"({number}, 'x')" for number in range(20_000))
    text = f"{BASE}(d.g, d.h) IN ({pairs})"
    statement = Statement(text, exp.Select(), tuple(tokenize(text)))
    start = time.process_time()
    found = fingerprint(statement)
    assert time.process_time() - start < 5.0  # a fraction of that on an idle core; quadratic would take minutes
    assert found == shape_of(f"{BASE}(d.g, d.h) IN ((1, 'x'))")
