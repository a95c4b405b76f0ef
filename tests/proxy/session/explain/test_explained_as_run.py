"""Explain shows what happens to a statement; of one that is left alone, what could be done is shown as such."""

from typing import Any, Literal

import pytest
from support.played_sessions import (
    DESCRIBE,
    KEY_QUERY,
    KEYS,
    NARROWED,
    SQL,
    Script,
    begun,
    ended,
    played,
    rows,
    sent,
)
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.rewriting import RewriteSection
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.tracked_statements import KEPT_CALL_BYTES_MAX
from proxy.session.explain.text import text
from proxy.session.explain.view import ExplainView, view
from rewriter import SkipReason

LISTED: Script = [("SHOW PARTITIONS `f`", rows(("ds=a",), ("ds=b",), ("ds=c",)))]
PREDICATE = NARROWED[NARROWED.index("(`ds`") : NARROWED.index(") AS f")]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def explained(session: TextSession, script: Script) -> ExplainView:
    return view(played(session.explain(SQL, run_key_queries=True), [*script, *LISTED]))


def assert_is_left_alone(found: ExplainView, reason: SkipReason) -> None:
    """The statement goes as it came for this reason, and says by itself what would have been done."""
    assert (found.rewritten, found.changed, found.skip_reason) == (SQL, False, reason.name)
    fact = found.scans[0]
    assert (fact.predicate, fact.exact, fact.skip_reason) == (None, None, reason.name)
    assert (fact.partitions.total, fact.partitions.kept) == (3, None)
    assert fact.would is not None
    assert (fact.would.predicate, fact.would.exact) == (PREDICATE, True)
    assert (fact.would.partitions.total, fact.would.partitions.kept) == (3, 1)
    first, missed, _, *lines = text(found).splitlines()
    assert first.startswith(f"Not rewritten: {reason.sentence}")
    assert missed.startswith("Scan of f: 1 of 3 partitions would be kept, keys of d, 1 key")
    assert lines[:3] == ["Left as it is:", f"  {SQL}", f"  {reason.sentence}"]
    assert f"  left alone   {reason.sentence}" in lines
    assert f"  would insert {PREDICATE}" in lines
    assert "  partitions   1 of 3 would be kept" in lines
    assert not any(line.endswith(" 1 of 3 kept") for line in lines)


def test_a_statement_that_is_narrowed_would_do_nothing_else(stage: Stage) -> None:
    found = explained(stage.session(), [*DESCRIBE, KEYS])
    assert found.changed
    assert [scan.would for scan in found.scans] == [None, None]
    assert "would" not in text(found)


@pytest.mark.parametrize("by", ["session", "configuration"])
@pytest.mark.parametrize(
    ("off", "reason"), [({"enabled": False}, SkipReason.SWITCHED_OFF), ({"mode": "shadow"}, SkipReason.IN_SHADOW)]
)
def test_where_nothing_is_rewritten_a_session_is_told_so(off: dict[str, Any], reason: SkipReason, by: str) -> None:
    one = Stage(rewrite=RewriteSection(**off if by == "configuration" else {})).session()
    if by == "session":
        ((name, value),) = off.items()
        played(one.rewrite(f"SET starpruner.{name}={str(value).lower()}"), []).on_outcome(FINISHED)
    assert played(one.rewrite(SQL), []).text == SQL
    assert_is_left_alone(explained(one, [*DESCRIBE, KEYS]), reason)


def test_a_small_side_that_is_written_while_it_is_explained_keeps_the_fact_whole(stage: Stage) -> None:
    one, other = stage.session(), stage.session("bob")
    queries = one.explain(SQL, run_key_queries=True)
    assert begun(queries, DESCRIBE).sql == KEY_QUERY
    _ = sent(other.rewrite("INSERT INTO d VALUES ('b', 1)"), [])
    _ = queries.send(KEYS[1])
    found = view(ended(queries, LISTED[0][1]))
    assert_is_left_alone(found, SkipReason.SMALL_SIDE_WRITTEN)
    assert (found.cause, found.scans[0].cause) == ("written: d", "written: d")
    assert "  Cause: written: d" in text(found).splitlines()


def test_a_small_side_that_is_being_written_is_not_asked_for_its_keys_by_explain_either(stage: Stage) -> None:
    one, other = stage.session(), stage.session("bob")
    _ = sent(other.rewrite("INSERT INTO d VALUES ('b', 1)"), [])
    found = explained(one, [*DESCRIBE])
    assert (found.changed, found.skip_reason) == (False, "SMALL_SIDE_WRITTEN")
    assert [scan.skip_reason for scan in found.scans] == ["SMALL_SIDE_WRITTEN", "NOT_PARTITIONED"]
    assert [scan.would for scan in found.scans] == [None, None]
    assert (found.cause, found.scans[0].cause) == ("written: d", "`f.ds = d.ds`")


def test_the_cause_of_a_refusal_is_told_below_its_reason(stage: Stage) -> None:
    sql = SQL.replace("d.g = 1", "d.g > rand()")
    unsized = ("EXPLAIN COST SELECT * FROM `d`", rows())
    found = view(played(stage.session().explain(sql, run_key_queries=True), [*DESCRIBE, unsized]))
    fact, reason = found.scans[0], SkipReason.REDUCER_UNFILTERED
    assert (fact.skip_reason, fact.skip_sentence, fact.is_fact) == (reason.name, reason.sentence, True)
    assert fact.cause is not None
    assert fact.cause.startswith("the filter `d.g > rand()` was not used: rand(..)")
    lines = text(found).splitlines()
    at = lines.index(f"  left alone   {reason.sentence}")
    assert lines[at + 1] == f"  cause        {fact.cause}"


def test_tables_without_partitions_and_names_of_ctes_are_told_apart_from_facts(stage: Stage) -> None:
    sql = f"WITH x AS ({SQL}) SELECT * FROM x"
    found = view(played(stage.session().explain(sql, run_key_queries=True), [*DESCRIBE, KEYS, *LISTED]))
    assert [(scan.table, scan.is_fact) for scan in found.scans] == [("x", False), ("f", True), ("d", False)]
    lines = text(found).splitlines()
    assert [line for line in lines if line.startswith("Scan of")] == [
        "Scan of f: 1 of 3 partitions kept, keys of d, 1 key, 250 ms",
        "Scan of f",
    ]
    at = lines.index("No facts:")
    assert lines[at + 1 : at + 4] == [
        f"  x: {SkipReason.NOT_A_TABLE.sentence}",
        f"  d: {SkipReason.NOT_PARTITIONED.sentence}",
        "",
    ]


def test_a_quarantined_statement_is_shown_as_it_runs(stage: Stage) -> None:
    one = stage.session()
    played(one.rewrite(SQL), [*DESCRIBE, KEYS]).on_outcome(Outcome(OutcomeKind.RECOVERED, 1.0, "no such column"))
    assert sent(one.rewrite(SQL), []) == SQL
    assert_is_left_alone(explained(one, [KEYS]), SkipReason.QUARANTINED)


# --- statements that could not be run again


def too_long(sql: str) -> str:
    return sql.replace("d.g = 1", f"d.g = 1 -- {'x' * KEPT_CALL_BYTES_MAX}\n")


@pytest.mark.parametrize("consistency", ["window", "strict"])
def test_a_statement_too_long_to_be_kept_is_neither_asked_for_nor_counted_as_narrowed(
    caplog: pytest.LogCaptureFixture, consistency: Literal["window", "strict"]
) -> None:
    stage = Stage(rewrite=RewriteSection(consistency=consistency, statement_chars_max=10 * KEPT_CALL_BYTES_MAX))
    sql = too_long(SQL)
    with caplog.at_level("INFO"):
        dispatch = played(stage.session().rewrite(sql), [])
    assert dispatch.text == sql
    dispatch.on_outcome(FINISHED)
    counted = stage.shared.metrics.exposition().decode()
    assert 'starpruner_statements_total{outcome="original"} 1.0' in counted
    assert 'starpruner_skips_total{reason="too_large_to_repeat"} 1.0' in counted
    assert 'starpruner_statements_total{outcome="rewritten"} 0.0' in counted
    assert 'sent="original"' in counted
    assert 'sent="rewritten"' not in counted
    assert not any("narrowed 1" in message for message in caplog.messages)
    found = view(played(stage.session().explain(sql, run_key_queries=True), []))
    assert found.skip_reason == "TOO_LARGE_TO_REPEAT"
