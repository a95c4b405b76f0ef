"""Conditions over nulls: what a condition can be where an operand is null."""

import pytest
from sqlglot import exp
from support.null_propagating_calls import FORMS, LETS_NULL_PASS, calls

from rewriter.sql.null_logic import Possible, is_always_null, is_never_true, possible_values
from rewriter.sql.statement import parse_tree

DEEP = 5_000


def read(expression: str) -> exp.Expr:
    tree = parse_tree(f"SELECT 1 WHERE {expression}")
    assert isinstance(tree, exp.Select)
    condition = tree.args["where"].this
    assert isinstance(condition, exp.Expr)
    return condition


def is_n(column: exp.Column) -> bool:
    return column.name == "n"


@pytest.mark.parametrize(("name", "operands"), calls())
def test_a_call_is_null_where_an_operand_is_that_makes_it_null(name: str, operands: list[str]) -> None:
    for index, operand in enumerate(operands):
        texts = [text.strip("[]") for text in operands]
        texts[index] = "n"
        assert is_always_null(read(f"{name}({', '.join(texts)})"), is_n) is not operand.startswith("[")


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_null_where_an_operand_is(form: str) -> None:
    for index in "12":
        if f"{{{index}}}" in form:
            text = form.replace(f"{{{index}}}", "n").replace("{1}", "1").replace("{2}", "1")
            assert is_always_null(read(text), is_n)


@pytest.mark.parametrize("condition", LETS_NULL_PASS)
def test_a_condition_that_lets_null_pass_may_be_true(condition: str) -> None:
    assert not is_never_true(read(condition.replace("{1}", "n")), is_n)


@pytest.mark.parametrize(
    "condition",
    [
        "coalesce(n, FALSE)",
        "n IS NOT NULL",
        "n IS TRUE",
        "n IS NOT NULL AND x = 1",
        "(n = 1 OR n = 2) AND x = 1",
        "n = 1 OR n > x OR FALSE",
        "NOT (n = 1 OR x = 2)",
        "n <=> 1",
        "NOT n IS DISTINCT FROM 1",
        "2 BETWEEN n AND 3",
        "5 IN (n)",
        "n IN (SELECT 1)",
        "CASE WHEN n = 1 THEN x ELSE FALSE END",
        "isnotnull(n)",
        "coalesce(n = 1, n = 2, FALSE)",
        "if(n IS NULL, FALSE, x)",
        "CASE WHEN n THEN 'Yes' ELSE 'No' END = 'Yes'",
        "'Yes' = (CASE WHEN n > 1 THEN 'Yes' ELSE 'No' END)",
        "CASE WHEN n > 1 THEN 1 ELSE 0 END = 1",
        "CASE n WHEN 1 THEN 'a' WHEN 2 THEN 'b' END = 'a'",
        "if(n > 1, 'a', 'b') IN ('a', 'c')",
        "if(n > 1, 'a', 'b') <> 'b'",
        "if(n > 1, 1, 0) = if(n > 2, 1, 3)",
    ],
)
def test_a_condition_that_is_false_or_null_for_null_is_never_true(condition: str) -> None:
    assert is_never_true(read(condition), is_n)


@pytest.mark.parametrize(
    "condition",
    [
        "CASE WHEN n THEN 'Yes' ELSE 'No' END = 'No'",
        "CASE WHEN n THEN 'Yes' ELSE 'no ' END = 'No'",
        "CASE WHEN n THEN 'Yes' ELSE 'No' END <> 'Yes'",
        "CASE WHEN n THEN 'a' ELSE x END = 'a'",
        "CASE WHEN x THEN 'a' ELSE 'b' END = 'a'",
        "CASE WHEN n THEN 2 ELSE '01' END = 1",
        "CASE WHEN n THEN 2 ELSE 1.0 END = 1",
        "CASE WHEN n THEN 1.5 ELSE '2' END = '2.0'",
        "if(n, 1e0, '2') IN ('2.0')",
        "CASE WHEN n THEN 'b' ELSE '01' END = 1",
        "CASE WHEN n THEN 'a' ELSE 'été' END = 'ete'",
        r"CASE WHEN n THEN 'a' ELSE '\101' END = 'A'",
        "if(n > 1, 'a', 'b') IN ('a', 'b')",
        "if(n > 1, 'a', 'b') IN ('a', x)",
        "if(n > 1, 'a', 'b') NOT IN ('a')",
    ],
)
def test_a_choice_that_may_give_the_literal_may_be_true(condition: str) -> None:
    assert not is_never_true(read(condition), is_n)


@pytest.mark.parametrize("term", ["n <=> x LIKE 'a'", "(n = 1) = x", "(n IN (1)) <=> NULL", "x = (n IS NULL)"])
def test_of_a_comparison_of_comparisons_nothing_is_certain(term: str) -> None:
    assert Possible.TRUE in possible_values(read(term), is_n)


def test_connectives_are_those_of_three_valued_logic() -> None:
    values = {"TRUE": Possible.TRUE, "FALSE": Possible.FALSE, "NULL": Possible.NULL}
    order = ["FALSE", "NULL", "TRUE"]
    for one in values:
        assert possible_values(read(f"NOT {one}"), is_n) is values[order[2 - order.index(one)]]
        for other in values:
            both = sorted((one, other), key=order.index)
            assert possible_values(read(f"{one} AND {other}"), is_n) is values[both[0]]
            assert possible_values(read(f"{one} OR {other}"), is_n) is values[both[1]]


def test_a_long_disjunction_and_a_deep_expression_are_no_error() -> None:
    term = read("n = 0")
    for number in range(DEEP):
        term = exp.Or(this=term, expression=exp.EQ(this=exp.column("n"), expression=exp.Literal.number(number)))
    assert is_never_true(term, is_n)
    deep: exp.Expr = exp.column("n")
    for _ in range(DEEP):
        deep = exp.Neg(this=deep)
    assert not is_always_null(deep, is_n)
