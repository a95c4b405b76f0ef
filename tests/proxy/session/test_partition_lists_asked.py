"""Statements whose conditions keys do not tell: the session lists the partitions, and asks which of them match."""

import pytest
from support.played_sessions import (
    DESCRIBE,
    DETAILS,
    IDENTITY,
    KEY_QUERY,
    LISTED,
    PARTITION_INFORMATION,
    failed,
    of,
    rows,
    sent,
)
from support.played_sessions import SQL as JOINED
from support.text_session import TextSession

from proxy.config.config import Config
from proxy.operations.query import FailureKind, QueryResult
from rewriter.semijoins.key_query import NOT_IN_MEMORY

SQL = "SELECT f.id FROM f JOIN d ON lower(f.ds) = d.ds WHERE d.g = 1"
TWO = (LISTED[0], rows(("ds=a",), ("ds=b",)))
ASKED = (
    "SELECT f.`ds` AS key, typeof(f.`ds`) AS type"
    " FROM (VALUES ('a'), ('b')) AS f(`ds`), d"
    " WHERE 'starpruner' IS NOT NULL AND (d.g = 1) AND (lower(f.ds) = d.ds) LIMIT 3"
)
WITHOUT_A = SQL.replace(
    "FROM f",
    "FROM (SELECT * FROM f WHERE (array_contains(array(TRUE), (`ds` < 'a' OR `ds` > 'a' OR `ds` IS NULL))"
    " OR typeof(`ds`) <> 'string')) AS f",
)
MANY = FailureKind.TOO_MANY_ROWS, FailureKind.TOO_MANY_BYTES
MATCH = rows(("b", "string"))


@pytest.fixture
def one() -> TextSession:
    return of(Config())


def test_the_partitions_are_listed_once_and_asked_about_for_each_statement(one: TextSession) -> None:
    assert sent(one.rewrite(SQL), [*DESCRIBE, TWO, (ASKED, MATCH)]) == WITHOUT_A
    assert sent(one.rewrite(SQL), [(ASKED, MATCH)]) == WITHOUT_A


@pytest.mark.parametrize("answer", [failed(FailureKind.REJECTED), failed(FailureKind.DEADLINE)])
def test_partitions_that_cannot_be_listed_leave_the_statement_as_it_is(
    one: TextSession, answer: QueryResult
) -> None:
    assert sent(one.rewrite(SQL), [*DESCRIBE, (LISTED[0], answer)]) == SQL


EVERY = rows(("a", "string"), ("b", "string"))


@pytest.mark.parametrize("answer", [EVERY, *(failed(kind) for kind in FailureKind if kind not in MANY)])
def test_a_question_that_fails_or_finds_every_partition_leaves_the_statement_as_it_is(
    one: TextSession, answer: QueryResult
) -> None:
    assert sent(one.rewrite(SQL), [*DESCRIBE, TWO, (ASKED, answer)]) == SQL


def test_partitions_that_match_many_rows_are_asked_about_once_each(one: TextSession) -> None:
    distinct = (ASKED.replace("SELECT f.", "SELECT DISTINCT f.", 1), MATCH)
    too_long = (ASKED, failed(FailureKind.TOO_MANY_ROWS))
    assert sent(one.rewrite(SQL), [*DESCRIBE, TWO, too_long, distinct]) == WITHOUT_A


def test_an_error_that_a_scalar_subquery_may_have_raised_is_left_for_spark_to_report(one: TextSession) -> None:
    """Keys of another join without a row would hide it."""
    sql = f"{SQL} AND f.ds > (SELECT max(x.ds) FROM d x WHERE x.g = 2)"
    subquery = ASKED.replace(
        f", d WHERE {NOT_IN_MEMORY} AND (d.g = 1) AND (lower(f.ds) = d.ds)",
        f" WHERE {NOT_IN_MEMORY} AND (f.ds > (SELECT max(x.ds) FROM d x WHERE x.g = 2))",
    )
    asked = (ASKED, rows()), (subquery, failed(FailureKind.REJECTED))
    assert sent(one.rewrite(sql), [*DESCRIBE, TWO, *asked]) == sql


NAMED = (*PARTITION_INFORMATION[:2], ("ds", "date", ""))
DAYS_F = rows(("id", "int", ""), ("ds", "date", ""), *NAMED, *DETAILS, *IDENTITY)
DAYS_D = rows(("ds", "date", ""), ("g", "int", ""), *DETAILS)
DESCRIBE_DAYS = [("DESCRIBE TABLE EXTENDED `d`", DAYS_D), ("DESCRIBE TABLE EXTENDED `f`", DAYS_F)]
LISTS: dict[str, tuple[QueryResult, bool]] = {
    "days": (rows(("ds=2026-01-01",), ("ds=2026-01-02",), ("ds=2026-01-03",)), True),
    "a year": (rows(("ds=2026-01-01",), ("ds=2026",)), False),
    "none": (failed(FailureKind.DEADLINE), False),
}


@pytest.mark.parametrize("listed", LISTS)
def test_a_day_is_sent_to_the_metastore_if_the_list_has_days_alone(one: TextSession, listed: str) -> None:
    answer, is_sent = LISTS[listed]
    keys = (
        KEY_QUERY.replace("d.`ds` AS key", "unix_date(d.`ds`) AS key"),
        rows((20_454, "date"), (20_456, "date")),
    )
    text = sent(one.rewrite(JOINED), [*DESCRIBE_DAYS, keys, (LISTED[0], answer)])
    assert ("array_contains(array(DATE'2026-01-01', DATE'2026-01-03'), `ds`)" in text) is not is_sent
    # The list is no reason to say a range in the place of a few keys.
    assert ("`ds` IN (DATE'2026-01-01', DATE'2026-01-03')" in text) is is_sent
