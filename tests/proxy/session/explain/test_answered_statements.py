"""EXPLAIN REWRITE, EXPLAIN PARTITIONS and SHOW STARPRUNER STATEMENTS as statements of the client."""

import re
import time
from collections.abc import Sequence

import msgspec
import pytest
from support.played_sessions import played

from proxy.operations.dispatch import Dispatch, WriteUnderWay
from proxy.operations.key_check import ASK_FIRST, KeyTerms
from proxy.operations.session_port import KnownState
from proxy.session.decision import Decision
from proxy.session.explain.answered_statements import AnsweringSession, lines_query, statements_query
from proxy.session.explain.partition_plan import PartitionPlanView
from proxy.session.explain.view import ExplainView, view
from proxy.session.session_catalog import KnownPartitions
from proxy.session.statement_log import LoggedStatement
from proxy.statements.statement_class import StatementClass
from rewriter import TableName
from rewriter.partitions.index import PartitionIndex

# Far above the microseconds that a look at a statement takes.
PATIENCE_S = 5.0
# Two statements as a session remembers them, the newest first.
STATEMENTS = (
    LoggedStatement("2", 1_700_000_000.25, "running", None, 0.5, None, None, "", "SELECT 'a'"),
    LoggedStatement("1", 1_699_999_999.0, "original", 2.0, 0.0, 3, 9, "NO_EQUALITY, OUTER_JOIN", "SELECT 1"),
)


class Inner:
    """A session that remembers what it was given."""

    def __init__(self) -> None:
        self.rewritten: list[str] = []
        self.explained: list[str] = []
        self.answered: list[str] = []
        self.listed: list[TableName] = []
        self.has_closed = self.is_used_elsewhere = False

    async def rewrite(self, statement: StatementClass, _keys: KeyTerms = ASK_FIRST) -> Dispatch:
        self.rewritten.append(statement.text)
        return Dispatch(f"rewritten {statement.text}")

    async def explain(self, sql: str, *, run_key_queries: bool) -> Decision:
        assert run_key_queries
        self.explained.append(sql)
        return Decision(sql)

    async def known_partitions(self, name: TableName, _: str) -> KnownPartitions:
        self.listed.append(name)
        return KnownPartitions(None, PartitionIndex.of(["y"], ["int"], ["y=1", "y=2"]))

    def last_statements(self) -> Sequence[LoggedStatement]:
        return STATEMENTS

    def answer(self, statement: StatementClass, query: str, _deciding_s: float = 0.0) -> Dispatch:
        self.answered.append(statement.text)
        return Dispatch(query)

    def known_state(self) -> KnownState | None:
        return None

    def is_quick(self, statement: StatementClass) -> bool:
        return statement.text == "SELECT 1"

    def forward_unchanged(self, statement: StatementClass) -> Dispatch:
        return Dispatch(statement.text)

    def writes_before(self, statement: StatementClass) -> Sequence[WriteUnderWay]:
        return () if statement.text == "SELECT 1" else (WriteUnderWay(),)

    def used_elsewhere(self) -> None:
        self.is_used_elsewhere = True

    def closed(self, *, is_forgotten: bool = False) -> None:  # noqa: ARG002 - equal here
        self.has_closed = True


def sent(inner: Inner, sql: str) -> str:
    return played(AnsweringSession(inner).rewrite(StatementClass(sql)), []).text


@pytest.mark.parametrize("prefix", ["EXPLAIN REWRITE ", "explain\n\trewrite\n", "-- a\n/* b */ Explain Rewrite "])
def test_explain_rewrite_is_answered_by_the_lines_of_the_explanation(prefix: str) -> None:
    inner = Inner()
    text = sent(inner, f"{prefix}SELECT 'it''s'")
    assert inner.explained == ["SELECT 'it''s'"]
    assert inner.answered == [f"{prefix}SELECT 'it''s'"]
    assert text.startswith("SELECT rewrite FROM VALUES ('Not rewritten: ")
    assert "('Left as it is:'), (CAST(X'" in text


@pytest.mark.parametrize(
    "prefix", ["EXPLAIN REWRITE JSON ", "explain rewrite\njson\t", "-- a\nExplain Rewrite Json "]
)
def test_explain_rewrite_json_is_answered_by_one_row_with_the_document(prefix: str) -> None:
    inner = Inner()
    text = sent(inner, f"{prefix}SELECT 1")
    assert inner.explained == ["SELECT 1"]
    document = bytes.fromhex(text.removeprefix("SELECT rewrite FROM VALUES (CAST(X'").partition("'")[0])
    assert msgspec.json.decode(document, type=ExplainView) == view(Decision("SELECT 1"))
    assert text.endswith("' AS STRING)) AS explained(rewrite)")


def test_json_alone_is_a_statement_that_is_explained() -> None:
    inner = Inner()
    _ = sent(inner, "EXPLAIN REWRITE JSON")
    assert inner.explained == ["JSON"]


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SHOW STARPRUNER STATEMENTS", 2),
        ("show\n starpruner\tstatements ;\n", 2),
        ("/* a tool */ SHOW STARPRUNER STATEMENTS LIMIT 1", 1),
        ("SHOW STARPRUNER STATEMENTS LIMIT 0", 0),
        ("SHOW STARPRUNER STATEMENTS LIMIT 999999999;", 2),
    ],
)
def test_the_last_statements_of_the_session_are_shown(sql: str, shown: int) -> None:
    inner = Inner()
    assert sent(inner, sql) == statements_query(STATEMENTS[:shown])
    assert (inner.answered, inner.rewritten) == ([sql], [])


def test_statements_are_rows_of_typed_columns() -> None:
    text = statements_query(STATEMENTS)
    assert text.startswith("SELECT CAST(id AS STRING) AS id, timestamp_seconds(started_at) AS started_at, ")
    assert (
        "('1', 1699999999.000000, 'original', 2.000000, 0.000000, 3, 9, 'NO_EQUALITY, OUTER_JOIN', 'SELECT 1')"
    ) in text
    assert "('2', 1700000000.250000, 'running', NULL, 0.500000, NULL, NULL, '', CAST(X'" in text
    assert statements_query([]).endswith(" LIMIT 0")


@pytest.mark.parametrize(
    "sql",
    [
        *("SELECT 1", "EXPLAIN SELECT 1", "EXPLAIN EXTENDED SELECT 1", "EXPLAIN REWRITE"),
        *("EXPLAIN REWRITES SELECT 1", "", "SHOW STARPRUNER STATEMENT", "SHOW STARPRUNER STATEMENTS LIMIT"),
        *("SHOW STARPRUNER STATEMENTS LIMIT 1 OFFSET 1", "SHOW STARPRUNER STATEMENTS LIMIT -1"),
        *("SHOW STARPRUNER STATEMENTS LIMIT 9999999999", "SHOW STARPRUNER STATEMENTS /* now */"),
        *("SHOW `STARPRUNER` STATEMENTS", "SHOW STARPRUNERSTATEMENTS", "SHOW TABLES; SHOW STARPRUNER STATEMENTS"),
        *(
            "EXPLAIN PARTITIONS",
            "EXPLAIN PARTITIONS WHERE y = 1",
            "EXPLAIN PARTITIONS a b",
            "EXPLAIN PARTITIONSX t",
        ),
    ],
)
def test_every_other_statement_is_left_to_the_session(sql: str) -> None:
    inner = Inner()
    assert sent(inner, sql) == f"rewritten {sql}"
    assert inner.rewritten == [sql]


@pytest.mark.parametrize(("sql", "count"), [("SELECT 1", 0), ("USE other", 1)])
def test_the_session_inside_says_what_has_to_end_before_and_what_is_quick(sql: str, count: int) -> None:
    assert len(AnsweringSession(Inner()).writes_before(StatementClass(sql))) == count
    assert AnsweringSession(Inner()).is_quick(StatementClass(sql)) is (count == 0)


def test_the_sessions_end_and_its_use_elsewhere_are_passed_on() -> None:
    inner = Inner()
    session = AnsweringSession(inner)
    session.used_elsewhere()
    session.closed()
    assert inner.is_used_elsewhere
    assert inner.has_closed


def test_lines_of_any_kind_are_one_row_each() -> None:
    assert (
        lines_query(["", "a\\b"])
        == "SELECT rewrite FROM VALUES (''), (CAST(X'615C62' AS STRING)) AS explained(rewrite)"
    )


@pytest.mark.parametrize(
    ("sql", "table", "kept"),
    [
        ("EXPLAIN PARTITIONS sales WHERE y = 1", "sales", 1),
        ("-- a\n explain\npartitions `my db`.`a b`\nwhere(y > 0) ;\n", "my db.a b", 2),
        ("EXPLAIN PARTITIONS sales;", "sales", 2),
        ("EXPLAIN PARTITIONS json WHERE y = 1", "json", 1),
    ],
)
def test_explain_partitions_answers_the_plan_of_a_filter(sql: str, table: str, kept: int) -> None:
    inner = Inner()
    assert f"'{kept} of 2 partitions of" in sent(inner, sql)
    assert (list(map(str, inner.listed)), inner.answered) == ([table], [sql])


def test_explain_partitions_answers_json_in_one_row() -> None:
    query = sent(Inner(), "EXPLAIN PARTITIONS JSON sales WHERE y = 1")
    assert query.startswith("SELECT plan FROM VALUES (CAST(X'")
    (encoded,) = re.findall(r"X'([0-9A-F]+)'", query)
    assert msgspec.json.decode(bytes.fromhex(encoded), type=PartitionPlanView).names == ["y=1"]


def test_a_long_text_is_told_from_ours_in_one_go() -> None:
    started, named = time.process_time(), "EXPLAIN PARTITIONS"
    for text in (f"{named} {'a' * 100_000} b", f"{named} t{' ' * 100_000}b", "/**/ " * 500 + "1"):
        assert sent(Inner(), text).startswith("rewritten")
    assert time.process_time() - started < PATIENCE_S
