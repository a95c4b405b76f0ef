"""EXPLAIN REWRITE as a statement of the client."""

import time
from collections.abc import Generator, Sequence

import pytest

from proxy.operations.dispatch import Dispatch, WriteUnderWay
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.operations.query import Query, QueryResult
from proxy.session.decision import Decision
from proxy.session.explain.explain_rewrite import ExplainingSession, lines_query
from proxy.statements.statement_class import StatementClass

# Far above the microseconds that a look at a statement takes.
PATIENCE_S = 5.0


class Inner:
    """A session that remembers what it was given."""

    def __init__(self) -> None:
        self.rewritten: list[str] = []
        self.explained: list[str] = []
        self.has_closed = False

    def rewrite(
        self, statement: StatementClass, _keys: KeyTerms = ASK_FIRST
    ) -> Generator[Query, QueryResult, Dispatch]:
        self.rewritten.append(statement.text)
        yield from ()
        return Dispatch(f"rewritten {statement.text}")

    def explain(self, sql: str, *, run_key_queries: bool) -> Generator[Query, QueryResult, Decision]:
        assert run_key_queries
        self.explained.append(sql)
        yield from ()
        return Decision(sql)

    def is_quick(self, statement: StatementClass) -> bool:
        return statement.text == "SELECT 1"

    def forward_unchanged(self, statement: StatementClass) -> Dispatch:
        return Dispatch(statement.text)

    def writes_before(self, statement: StatementClass) -> Sequence[WriteUnderWay]:
        return () if statement.text == "SELECT 1" else (WriteUnderWay(),)

    def closed(self) -> None:
        self.has_closed = True


def sent(inner: Inner, sql: str) -> str:
    generator = ExplainingSession(inner).rewrite(StatementClass(sql))
    with pytest.raises(StopIteration) as end:
        next(generator)
    dispatch = end.value.value
    assert isinstance(dispatch, Dispatch)
    return dispatch.text


def test_comments_without_a_statement_are_passed_in_one_go() -> None:
    started = time.process_time()
    assert sent(Inner(), "/**/ " * 500 + "1").startswith("rewritten /**/")
    assert time.process_time() - started < PATIENCE_S


@pytest.mark.parametrize(
    "prefix",
    ["EXPLAIN REWRITE ", "explain\n\trewrite\n", "-- a\n/* b */ Explain Rewrite "],
)
def test_explain_rewrite_is_answered_by_the_lines_of_the_explanation(prefix: str) -> None:
    inner = Inner()
    text = sent(inner, f"{prefix}SELECT 'it''s'")
    assert inner.explained == ["SELECT 'it''s'"]
    assert text.startswith("SELECT rewrite FROM VALUES ('Left as it is:'), (CAST(X'")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "EXPLAIN SELECT 1",
        "EXPLAIN EXTENDED SELECT 1",
        "EXPLAIN REWRITE",
        "EXPLAIN REWRITES SELECT 1",
        "",
    ],
)
def test_every_other_statement_is_left_to_the_session(sql: str) -> None:
    inner = Inner()
    assert sent(inner, sql) == f"rewritten {sql}"
    assert inner.rewritten == [sql]


@pytest.mark.parametrize(("sql", "count"), [("SELECT 1", 0), ("USE other", 1)])
def test_the_session_inside_says_what_has_to_end_before(sql: str, count: int) -> None:
    assert len(ExplainingSession(Inner()).writes_before(StatementClass(sql))) == count


def test_the_sessions_end_is_passed_on() -> None:
    inner = Inner()
    ExplainingSession(inner).closed()
    assert inner.has_closed


def test_lines_of_any_kind_are_one_row_each() -> None:
    assert (
        lines_query(["", "a\\b"])
        == "SELECT rewrite FROM VALUES (''), (CAST(X'615C62' AS STRING)) AS explained(rewrite)"
    )


@pytest.mark.parametrize(("sql", "is_quick"), [("SELECT 1", True), ("SELECT 2", False)])
def test_what_is_quick_says_the_session_inside(sql: str, is_quick: bool) -> None:  # noqa: FBT001
    assert ExplainingSession(Inner()).is_quick(StatementClass(sql)) is is_quick
