"""A key query that fails by its own text is not asked again for a while, by sessions of the same state alone."""

import logging

import pytest
from support.played_sessions import DESCRIBE, KEY_QUERY, KEYS, NARROWED, SQL, Script, played, rows, sent
from support.text_session import FINISHED, Stage, TextSession

from proxy.operations.query import FailureKind, QueryFailed
from proxy.operations.session_port import SessionOpening
from proxy.session.explain.text import text
from proxy.session.explain.view import view
from proxy.session.feedback.spark_errors import error_of
from rewriter import SkipReason

CAST = (
    'Error running query: [CAST_INVALID_INPUT] The value \'secret\' of the type "STRING" cannot be cast to "DATE"'
    " because it is malformed. (SQLSTATE 22018)"
)
LISTED: Script = [("SHOW PARTITIONS `f`", rows(("ds=a",)))]


def failing(message: str = CAST, kind: FailureKind = FailureKind.REJECTED) -> Script:
    return [(KEY_QUERY, QueryFailed(kind, message, 0.1))]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_sessions_of_one_state_ask_once_in_ten_minutes(stage: Stage) -> None:
    assert sent(stage.session().rewrite(SQL), [*DESCRIBE, *failing()]) == SQL
    assert sent(stage.session("bob").rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED, "a user's failure is no other's"
    lenient = SessionOpening(owner="ann", configuration={"set:hiveconf:spark.sql.ansi.enabled": "false"})
    assert sent(TextSession(stage.shared, lenient).rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    stage.now = 599.0
    assert sent(stage.session().rewrite(SQL), DESCRIBE) == SQL
    stage.now = 601.0
    assert sent(stage.session().rewrite(SQL), [KEYS]) == NARROWED


def test_a_replaced_table_is_asked_about_anew(stage: Stage) -> None:
    session = stage.session()
    assert sent(session.rewrite(SQL), [*DESCRIBE, *failing("[UNRESOLVED_COLUMN] .. (SQLSTATE 42703)")]) == SQL
    altered = played(session.rewrite("ALTER TABLE d ADD COLUMN h INT"), [])
    altered.on_outcome(FINISHED)
    assert sent(stage.session().rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Job aborted due to stage failure: ExecutorLostFailure", FailureKind.REJECTED),
        ("[OPERATION_CANCELED] Operation has been canceled. (SQLSTATE HY008)", FailureKind.REJECTED),
        (CAST, FailureKind.DEADLINE),
        (CAST, FailureKind.BUSY),
        (CAST, FailureKind.UNREADABLE),
    ],
)
def test_a_failure_that_may_not_come_again_is_forgotten(stage: Stage, message: str, kind: FailureKind) -> None:
    session = stage.session()
    assert sent(session.rewrite(SQL), [*DESCRIBE, *failing(message, kind)]) == SQL
    assert sent(session.rewrite(SQL), [KEYS]) == NARROWED


def test_explain_and_the_log_say_what_spark_said_without_a_value(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    session = stage.session()
    first = view(played(session.explain(SQL, run_key_queries=True), [*DESCRIBE, *failing(), *LISTED]))
    assert first.scans[0].skip_reason == SkipReason.KEY_QUERY_FAILED.name
    assert first.scans[0].cause == "`f.ds = d.ds`: Spark said CAST_INVALID_INPUT (SQLSTATE 22018)"
    stage.now = 20.0
    later = view(played(session.explain(SQL, run_key_queries=True), LISTED[1:]))
    assert later.scans[0].cause == (
        "`f.ds = d.ds`: Spark said CAST_INVALID_INPUT (SQLSTATE 22018) 20 s ago, and is asked again in 580 s"
    )
    (line,) = (record.getMessage() for record in caplog.records if "key query" in record.getMessage())
    assert line == "a key query of d failed: Spark said CAST_INVALID_INPUT (SQLSTATE 22018)"
    assert "secret" not in text(later) + caplog.text


# As a status tells an error, and as Spark 3 tells what raise_error says.
QUERY = "org.apache.hive.service.cli.HiveSQLException: Error running query: "
ABORTED = f"{QUERY}org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'. SQLSTATE: 42601 (line 1)", "PARSE_SYNTAX_ERROR"),
        (f"{QUERY}[DIVIDE_BY_ZERO] org.apache.spark. SQLSTATE: 22012", "DIVIDE_BY_ZERO"),
        ("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `c`. SQLSTATE: 42703", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("java.lang.RuntimeException: no '[SECRET]' here. SQLSTATE: 22000", "an error without a class"),
        (f"{ABORTED}: java.lang.RuntimeException: [SECRET] SQLSTATE: 22012", "an error without a class"),
        ("", "an error without a class"),
    ],
)
def test_no_word_of_the_statement_is_taken_for_an_error(message: str, shown: str) -> None:
    assert str(error_of(message)).split(" (SQLSTATE")[0] == shown
    assert error_of(message).is_lasting is (shown != "an error without a class")


def test_an_error_that_a_subquery_of_the_statement_may_have_is_left_to_spark_each_time(stage: Stage) -> None:
    session, sql = stage.session(), SQL.replace("d.g = 1", "f.ds > (SELECT max(x.ds) FROM d x WHERE x.g = 2)")
    asked = (
        "SELECT f.`ds` AS key, typeof(f.`ds`) AS type FROM (VALUES ('a')) AS f(`ds`)"
        " WHERE 'starpruner' IS NOT NULL AND (f.ds > (SELECT"
    )
    asked += " max(x.ds) FROM d x WHERE x.g = 2)) LIMIT 2"
    error = QueryFailed(FailureKind.REJECTED, "[SCALAR_SUBQUERY_TOO_MANY_ROWS] .. (SQLSTATE 21000)", 0.1)
    size = ("EXPLAIN COST SELECT * FROM `d`", QueryFailed(FailureKind.REJECTED, "", 0.1))
    assert sent(session.rewrite(sql), [*DESCRIBE, size, *LISTED, (asked, error)]) == sql
    assert sent(session.rewrite(sql), LISTED[1:]) == sql
