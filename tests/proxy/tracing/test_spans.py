"""The spans of a statement as plain values, made of its record."""

import time

import pytest
from opentelemetry.semconv.attributes import client_attributes, db_attributes, error_attributes, server_attributes
from support.histories import SQL, left_alone, record

from proxy.history.record import Record
from proxy.session.timings import AskedQuery
from proxy.tracing.spans import SpanOfStatement, TraceParent, span_of, trace_parent_of

AT = 1_800_000_000.0
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def span(one: Record) -> SpanOfStatement:
    return span_of(one, has_text=False, literals=True)


def part(one: Record, *names: str) -> SpanOfStatement:
    found = span(one)
    for name in names:
        (found,) = [child for child in found.children if child.name == name]
    return found


def test_a_statement_has_its_decision_and_its_run_one_after_the_other() -> None:
    one = record(at=AT, asked=[AskedQuery("descriptions", 0.002, 0.01), AskedQuery("keys", 0.015, 0.072)])
    whole = span(one)
    assert (whole.start, whole.end) == (AT, AT + 0.09 + 1.5)
    assert [(child.name, child.start, child.end) for child in whole.children] == [
        ("deciding", AT, AT + 0.09),
        ("run", AT + 0.09, AT + 0.09 + 1.5),
    ]
    keys = part(one, "deciding", "key query")
    assert (keys.start, keys.end) == (AT + 0.015, AT + 0.015 + 0.072)
    assert part(one, "deciding", "description").start == AT + 0.002


def test_a_fallback_is_a_span_of_its_own_behind_the_run_that_failed() -> None:
    one = record(at=AT, outcome="fallback", end="recovered", fallback_s=2.5, spark_ids=["first", "second"])
    run, fallback = part(one, "run"), part(one, "fallback")
    assert (run.error, fallback.error, span(one).error) == ("recovered", "", "")
    assert fallback.start == run.end
    assert fallback.end == span(one).end == run.end + 2.5
    assert run.attributes["starpruner.spark.id"] == "first"
    assert fallback.attributes["starpruner.spark.id"] == "second"


@pytest.mark.parametrize("end", ["failed", "failed_twice"])
def test_an_error_that_the_client_has_is_one_of_the_statement(end: str) -> None:
    one = record(outcome="failed", end=end, fallback_s=1.0 if end == "failed_twice" else None)
    assert span(one).error == span(one).children[-1].error == end


def test_a_statement_of_which_nobody_saw_the_end_has_no_run() -> None:
    one = left_alone(outcome="unseen", end="unknown", run_s=None, deciding_s=0.0, at=AT)
    assert (span(one).children, span(one).end) == ((), AT)


def test_attributes_have_the_names_of_the_semantic_conventions() -> None:
    one = record(backend="spark-1:10000", spark_ids=["5f0c0a52"], fingerprint="f1")
    found = dict(span(one).attributes)
    assert found.pop(db_attributes.DB_SYSTEM_NAME) == "spark"
    assert found.pop(db_attributes.DB_NAMESPACE) == "default"
    assert found.pop(db_attributes.DB_OPERATION_NAME) == "SELECT"
    assert found.pop(db_attributes.DB_QUERY_SUMMARY) == span(one).name == "SELECT sales"
    assert found.pop(server_attributes.SERVER_ADDRESS) == "spark-1"
    assert found.pop(server_attributes.SERVER_PORT) == 10_000
    assert found.pop(client_attributes.CLIENT_ADDRESS) == "127.0.0.1"
    assert found.pop("user.name") == "ann"
    assert error_attributes.ERROR_TYPE == "error.type"
    assert found == {
        "starpruner.statement.id": one.id,
        "starpruner.session.id": "s1",
        "starpruner.spark.ids": ("5f0c0a52",),
        "starpruner.outcome": "rewritten",
        "starpruner.sent": "rewritten",
        "starpruner.fingerprint": "f1",
        "starpruner.rules": ("inner_join",),
        "starpruner.partitions.total": 2_924,
        "starpruner.partitions.kept": 124,
    }


def test_a_long_row_of_comments_is_looked_through_in_no_time() -> None:
    began = time.process_time()
    assert span(record(original="/* a */" * 10_000 + "1", scans=[])).name == "spark"
    assert trace_parent_of(record(original="/* traceparent " * 10_000)) is None
    assert time.process_time() - began < 10


def test_reasons_stand_beside_a_statement_that_was_left_alone() -> None:
    found = span(left_alone()).attributes
    assert found["starpruner.reasons"] == ("NO_EQUALITY",)
    assert found["starpruner.sent"] == "original"


def test_the_text_stands_there_only_where_it_is_wanted_and_without_literals_where_they_are_not() -> None:
    secret = record(original="SET fs.s3a.secret.key=abc")
    assert db_attributes.DB_QUERY_TEXT not in span(secret).attributes
    assert span_of(record(), has_text=True, literals=True).attributes[db_attributes.DB_QUERY_TEXT] == SQL
    without = span_of(record(), has_text=True, literals=False).attributes[db_attributes.DB_QUERY_TEXT]
    assert "'may'" not in str(without)
    assert span_of(secret, has_text=True, literals=True).attributes[db_attributes.DB_QUERY_TEXT] == (
        "SET fs.s3a.secret.key=?"
    )


def test_the_client_s_span_is_taken_from_a_comment() -> None:
    comment = f"/*db_driver='pyhive',traceparent='00-{TRACE}-{SPAN}-01'*/"
    found = trace_parent_of(record(original=f"{SQL} {comment}"))
    assert found == TraceParent(int(TRACE, 16), int(SPAN, 16), is_sampled=True)
    not_recorded = trace_parent_of(record(original=f"/*traceparent='00-{TRACE}-{SPAN}-00'*/ {SQL}"))
    assert not_recorded is not None
    assert not not_recorded.is_sampled
    for other in (f"traceparent='00-{TRACE}-{SPAN}-01'", f"/*traceparent='00-{'0' * 32}-{SPAN}-01'*/"):
        assert trace_parent_of(record(original=f"{SQL} {other}")) is None


def test_a_statement_in_parentheses_or_behind_a_comment_is_named_by_its_first_word() -> None:
    assert span(record(original="/* a */ -- b\n (select 1)", scans=[])).name == "SELECT"
    assert span(record(original="???", scans=[])).name == "spark"
