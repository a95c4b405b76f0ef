"""Conditions are found in the text, and each is proven by being parsed: once, while it is remembered."""

import pytest
from sqlglot import exp

from rewriter import parse
from rewriter.sql import conditions
from rewriter.sql.conditions import located
from rewriter.sql.statement import Statement, parse_tree


def statement_where(condition: str) -> tuple[Statement, exp.Expr]:
    statement = parse(f"SELECT 1 FROM s JOIN d ON s.k = d.k WHERE {condition}", chars_max=10_000)
    assert isinstance(statement, Statement)
    return statement, statement.tree.args["where"].this


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are parsed to prove a condition."""
    read: list[str] = []

    def noting(text: str) -> exp.Expr | None:
        read.append(text)
        return parse_tree(text)

    monkeypatch.setattr(conditions, "parse_tree", noting)
    conditions.remembered.cache_clear()
    return read


def test_a_condition_that_comes_again_is_not_parsed_again(read: list[str]) -> None:
    for _ in range(2):
        statement, condition = statement_where("d.year = 2024 AND (d.month = 12)")
        assert [one.text(statement) for one in located(statement, condition)] == ["d.year = 2024", "d.month = 12"]
    assert read == ["SELECT 1 WHERE d.year = 2024", "SELECT 1 WHERE d.month = 12"]


def test_a_text_that_is_remembered_proves_no_other_tree() -> None:
    statement, condition = statement_where("d.year = 2024 AND d.month = 12")
    _, other = statement_where("d.year = 2024 AND d.month = 11")
    assert located(statement, condition)
    assert not located(statement, other)


def test_a_long_condition_is_not_remembered(read: list[str]) -> None:
    long = f"d.note IN ('{'x' * 300}')"
    for _ in range(2):
        statement, condition = statement_where(long)
        assert [one.text(statement) for one in located(statement, condition)] == [long]
    assert len(read) == 2
    assert conditions.remembered.cache_info().currsize == 0
