"""A session's decisions about Iceberg tables: what it asks, which snapshots it names, and what it remembers."""

from dataclasses import replace

import pytest
from support.iceberg_answers import DAYS_SNAPSHOT, FILES_SQL, NEXT_SNAPSHOT, a_file, described, scan
from support.played_sessions import Script, begun, ended, failed, played, rows, sent
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.rewriting import RewriteSection
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.key_check import KeyTerms
from proxy.operations.query import FailureKind, QueryResult
from proxy.session.catalog.iceberg_snapshots import SNAPSHOT_GONE
from proxy.session.explain.text import text
from proxy.session.explain.view import ExplainView, IcebergView, view
from proxy.session.session_catalog import _is_as
from rewriter import Column, IcebergFacts, TableFacts, UnpinnedReason
from rewriter.predicates.merge_clause import KEYS_CHANGED

SQL = "SELECT f.v FROM f JOIN d ON f.k = d.k WHERE d.g = 1"
AT = f"VERSION AS OF {DAYS_SNAPSHOT}"
NEXT = f"VERSION AS OF {NEXT_SNAPSHOT}"
UNPINNED_KEYS = (
    "SELECT d.`k` AS key, typeof(d.`k`) AS type FROM d WHERE 'starpruner' IS NOT NULL AND (d.g = 1) LIMIT 5001"
)
PINNED_KEYS = UNPINNED_KEYS.replace("FROM d", f"FROM d {AT}")
FOUND = rows((7, "int"), (9, "int"))
NARROWED = (
    "SELECT f.v FROM (SELECT * FROM f WHERE (`k` IN (7, 9) OR typeof(`k`) <> 'int')) AS f"
    f" JOIN d {AT} ON f.k = d.k WHERE d.g = 1"
)
UNPINNED = NARROWED.replace(f" {AT}", "")
DESCRIBE: Script = [
    ("DESCRIBE TABLE EXTENDED `d`", described("ice.db.d", ("k", "int"), ("g", "int"))),
    ("DESCRIBE TABLE EXTENDED `f`", described("ice.db.f", ("k", "int"), ("v", "string"), size_bytes=10**11)),
]
MERGE = "MERGE INTO f USING d s ON f.k = s.k WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.g)"
UNPROVEN = "a rewritten MERGE failed with it, and its original was not sent, or failed too."
NOW = ("EXPLAIN SELECT 1 FROM `d`", scan("ice.db.d"))
LATER = (NOW[0], scan("ice.db.d", snapshot=NEXT_SNAPSHOT))
VERSION = (f"EXPLAIN SELECT 1 FROM `d` {AT}", scan("ice.db.d"))
PINNED: Script = [NOW, VERSION, (PINNED_KEYS, FOUND)]

COUNTS_SQL = (
    "SELECT content, spec_id, count(*), sum(file_size_in_bytes)"
    " FROM `ice`.`db`.`f`.`files` GROUP BY content, spec_id"
)
COUNTS = (COUNTS_SQL, rows((0, 0, 18, 18_000), (0, 2, 2, 2_000), (1, 0, 3, 90_000), (2, 2, 1, 10_000)))
FILES = (FILES_SQL, rows(*(a_file(f"/f/{at}", at, at) for at in range(20))))
ASKED: Script = [*DESCRIBE, *PINNED, FILES]


@pytest.fixture
def stage() -> Stage:
    return Stage(rewrite=RewriteSection(key_snapshot_s=300))


@pytest.fixture
def one(stage: Stage) -> TextSession:
    """A session that has run the statement."""
    session = stage.session()
    assert sent(session.rewrite(SQL), ASKED) == NARROWED
    return session


def explained(session: TextSession, script: Script) -> ExplainView:
    return view(played(session.explain(SQL, run_key_queries=True), script))


def test_keys_of_another_snapshot_are_asked_for_anew(one: TextSession) -> None:
    version = (VERSION[0].replace(AT, NEXT), LATER[1])
    narrowed = sent(one.rewrite(SQL), [LATER, version, (PINNED_KEYS.replace(AT, NEXT), FOUND)])
    assert narrowed == NARROWED.replace(AT, NEXT)


def test_keys_of_a_snapshot_are_remembered_for_the_session_alone_that_asked_for_them(
    stage: Stage, one: TextSession
) -> None:
    assert sent(one.rewrite(SQL), [NOW]) == NARROWED
    assert sent(stage.session().rewrite(SQL), [NOW, (PINNED_KEYS, FOUND)]) == NARROWED
    assert sent(stage.session("bob").rewrite(SQL), ASKED) == NARROWED
    stage.now = 301.0
    assert sent(one.rewrite(SQL), [*DESCRIBE, NOW, (PINNED_KEYS, FOUND)]) == NARROWED, "asked again after minutes"


def test_keys_of_a_snapshot_are_not_remembered_unless_that_is_allowed() -> None:
    one = Stage().session()
    _ = sent(one.rewrite(SQL), ASKED)
    assert sent(one.rewrite(SQL), [NOW, (PINNED_KEYS, FOUND)]) == NARROWED


def test_a_small_fact_is_narrowed_once_it_was_seen_to_take_long() -> None:
    """It may stand in ten thousand files."""
    columns = described("ice.db.f", ("k", "int"), ("v", "string"), size_bytes=10_000_000)
    one = Stage().session()
    for seconds in (0.3, 16.0, 16.0):
        dispatch = played(one.rewrite(SQL), [DESCRIBE[0], (DESCRIBE[1][0], columns)] if seconds == 0.3 else [])
        assert dispatch.text == SQL
        dispatch.on_outcome(Outcome(OutcomeKind.FINISHED, seconds))
    assert sent(one.rewrite(SQL), [*PINNED, FILES]) == NARROWED


@pytest.mark.parametrize("write", ["INSERT INTO d VALUES (8, 1)", "INSERT INTO f VALUES (8, 'new')"])
def test_one_write_under_way_is_no_reason_to_leave_a_pinned_statement_alone(stage: Stage, write: str) -> None:
    _ = played(stage.session("bob").rewrite(write), [])
    assert sent(stage.session().rewrite(SQL), ASKED) == NARROWED


def test_writes_of_two_tables_under_way_leave_a_pinned_statement_alone(stage: Stage) -> None:
    """Whoever sees the fact's new rows and not the small side's, sees what never was."""
    for sql in ("INSERT INTO d VALUES (8, 1)", "INSERT INTO f VALUES (8, 'new')"):
        _ = played(stage.session("bob").rewrite(sql), [])
    assert sent(stage.session().rewrite(SQL), ASKED) == SQL


def test_nothing_is_asked_while_a_statement_is_under_way_that_may_change_any_table(stage: Stage) -> None:
    _ = played(stage.session("bob").rewrite("CALL ice.system.rollback_to_snapshot('db.d', 1)"), [])
    assert sent(stage.session().rewrite(SQL), []) == SQL


def test_columns_that_change_while_keys_are_read_leave_a_statement_alone(stage: Stage) -> None:
    queries = stage.session().rewrite(SQL)
    assert begun(queries, ASKED[:-1]).sql == FILES_SQL
    played(stage.session("bob").rewrite("ALTER TABLE d ADD COLUMN v INT"), []).on_outcome(FINISHED)
    assert ended(queries, FILES[1]).text == SQL


def test_where_the_name_reads_something_else_than_the_version_neither_names_it(stage: Stage) -> None:
    altered = (NOW[0], scan("ice.db.d", schema=2))
    asked: Script = [*DESCRIBE, altered, VERSION, (UNPINNED_KEYS, FOUND), FILES]
    assert sent(stage.session().rewrite(SQL), asked) == UNPINNED


def test_without_a_snapshot_to_name_the_write_fence_counts(stage: Stage) -> None:
    other = stage.session("bob")
    _ = played(other.rewrite("INSERT INTO d VALUES (8, 1)"), [])
    staged = (NOW[0], scan("ice.db.d", branch="audit"))
    assert sent(stage.session().rewrite(SQL), [*DESCRIBE, staged]) == SQL


def test_a_statement_that_is_not_narrowed_goes_on_as_it_came(stage: Stage) -> None:
    asked: Script = [*DESCRIBE, NOW, VERSION, (PINNED_KEYS, failed(FailureKind.REJECTED))]
    assert sent(stage.session().rewrite(SQL), asked) == SQL


def test_a_snapshot_that_was_expired_in_the_meantime_puts_nothing_aside(stage: Stage) -> None:
    one = stage.session()
    dispatch = played(one.rewrite(SQL), ASKED)
    assert dispatch.may_fall_back
    dispatch.on_outcome(Outcome(OutcomeKind.RECOVERED, 0.1, f"{SNAPSHOT_GONE} {DAYS_SNAPSHOT}"))
    assert sent(one.rewrite(SQL), [NOW]) == NARROWED


def test_with_strict_consistency_a_pinned_statement_is_narrowed() -> None:
    one = Stage(rewrite=RewriteSection(consistency="strict")).session()
    assert sent(one.rewrite(SQL), ASKED) == NARROWED


def test_a_version_that_the_statement_names_itself_is_described_by_its_own_columns(stage: Stage) -> None:
    sql = SQL.replace("JOIN d", "JOIN d VERSION AS OF 5")
    asked: Script = [
        *DESCRIBE[:1],
        ("DESCRIBE QUERY SELECT * FROM `d` VERSION AS OF 5", rows(("k", "int", ""), ("g", "int", ""))),
        DESCRIBE[1],
        (PINNED_KEYS.replace(AT, "VERSION AS OF 5"), FOUND),
        FILES,
    ]
    assert sent(stage.session().rewrite(sql), asked) == NARROWED.replace(AT, "VERSION AS OF 5")


def test_what_is_known_of_a_version_is_not_younger_for_another_ones_use(stage: Stage) -> None:
    one, sql = stage.session(), SQL.replace("JOIN d", "JOIN d VERSION AS OF 'audit'")
    columns = ("DESCRIBE QUERY SELECT * FROM `d` VERSION AS OF 'audit'", rows(("k", "int", ""), ("g", "int", "")))
    keys = (UNPINNED_KEYS.replace("FROM d", "FROM d VERSION AS OF 'audit'"), FOUND)
    _ = sent(one.rewrite(sql), [DESCRIBE[0], columns, DESCRIBE[1], keys, FILES])
    stage.now = 59.0
    _ = sent(one.rewrite(SQL), [DESCRIBE[0], *PINNED])
    stage.now = 61.0
    narrowed = sent(one.rewrite(sql), [columns, DESCRIBE[1], keys])
    assert narrowed == NARROWED.replace(AT, "VERSION AS OF 'audit'")


def test_the_files_of_a_table_are_listed_once_for_each_user_and_column(one: TextSession) -> None:
    other_keys = (PINNED_KEYS.replace("d.g = 1", "d.g = 2"), FOUND)
    assert "IN (7, 9)" in sent(one.rewrite(SQL.replace("d.g = 1", "d.g = 2")), [NOW, other_keys])


def test_where_files_cannot_be_listed_the_statement_is_narrowed_all_the_same(stage: Stage) -> None:
    unlisted = (FILES_SQL, failed(FailureKind.TOO_MANY_ROWS))
    one = stage.session()
    assert sent(one.rewrite(SQL), [*DESCRIBE, *PINNED, unlisted]) == NARROWED
    # Nor is it tried again for a while.
    assert sent(one.rewrite(SQL), [NOW]) == NARROWED


def test_explain_says_which_snapshots_the_keys_are_of_and_how_many_files_are_kept(stage: Stage) -> None:
    one = stage.session()
    found = explained(one, [*ASKED, COUNTS])
    assert [(one.table, one.snapshot_id) for one in found.snapshots] == [("d", DAYS_SNAPSHOT)]
    assert (found.scans[0].files.kept, found.scans[0].files.total) == (2, 20)
    assert f"Keys of d are those of snapshot {DAYS_SNAPSHOT}." in text(found)


@pytest.mark.parametrize(
    ("plans", "why"),
    [
        ([(NOW[0], scan("ice.db.d", branch="audit"))], UnpinnedReason.ON_A_BRANCH),
        ([(NOW[0], scan("ice.db.d", schema=2)), VERSION], UnpinnedReason.SCHEMA_CHANGED),
        ([(NOW[0], failed(FailureKind.DEADLINE))], UnpinnedReason.PLAN_FAILED),
    ],
)
def test_explain_says_why_keys_are_not_those_of_a_snapshot(
    stage: Stage, plans: Script, why: UnpinnedReason
) -> None:
    script: Script = [*DESCRIBE, *plans, (UNPINNED_KEYS, FOUND), FILES, COUNTS]
    found = explained(stage.session(), script)
    assert [(one.table, one.snapshot_id, one.skip_reason) for one in found.snapshots] == [("d", None, why.name)]
    assert f"d is not read at a snapshot. {why.sentence}" in text(found)


def test_explain_says_why_not_before_anything_is_asked_where_the_statement_tells(stage: Stage) -> None:
    hinted = SQL.replace("SELECT", "SELECT /*+ BROADCAST(d) */")
    explained = view(played(stage.session().explain(hinted, run_key_queries=False), DESCRIBE))
    assert [one.skip_reason for one in explained.snapshots] == [UnpinnedReason.HINT_NEEDS_ALIAS.name]


def test_explain_says_where_a_text_with_a_version_is_not_proven(stage: Stage) -> None:
    unspaced = SQL.replace("JOIN d", "JOIN `d`x").replace("d.", "x.")
    keys = UNPINNED_KEYS.replace("d.", "x.").replace("FROM d", "FROM `d`x")
    script: Script = [*DESCRIBE, NOW, VERSION, (keys, FOUND), FILES, COUNTS]
    explained = view(played(stage.session().explain(unspaced, run_key_queries=True), script))
    assert [one.skip_reason for one in explained.snapshots] == [UnpinnedReason.NOT_PROVEN.name]
    assert explained.changed


def test_explain_says_of_how_many_specs_files_are_and_how_many_say_what_is_deleted(stage: Stage) -> None:
    found = explained(stage.session(), [*ASKED, COUNTS])
    assert found.scans[0].iceberg == IcebergView([], 2, 4, 100_000)
    assert found.scans[1].iceberg is None
    assert "by nothing now; files of 2 partition specs" in text(found)
    assert "4 files, 0.1 MB" in text(found)


@pytest.mark.parametrize(
    "answer", [failed(FailureKind.REJECTED), failed(FailureKind.DEADLINE), rows((0, 0, 18, None))]
)
def test_files_that_cannot_be_counted_are_unknown(stage: Stage, answer: QueryResult) -> None:
    script: Script = [*ASKED, (COUNTS_SQL, answer)]
    found = explained(stage.session(), script)
    assert found.changed
    assert found.scans[0].iceberg == IcebergView([], None, None, None)


def test_a_table_of_one_spec_without_deletes_is_nothing_to_tell_of(stage: Stage) -> None:
    script: Script = [*ASKED, (COUNTS_SQL, rows((0, 1, 20, 20_000)))]
    found = explained(stage.session(), script)
    assert found.scans[0].iceberg == IcebergView([], 1, 0, 0)
    assert "deletes" not in text(found)
    assert "specs" not in text(found)


def test_explain_says_how_old_keys_are_that_were_not_asked_for(stage: Stage) -> None:
    one = stage.session()
    first = explained(one, [*ASKED, COUNTS])
    stage.now = 12.0
    again = explained(one, [NOW, COUNTS])
    ages = [[reducer.keys_age_s for reducer in explained.scans[0].reducers] for explained in (first, again)]
    assert ages == [[None], [12.0]]
    assert "keys         2, read 12 s before" in text(again)


def test_explain_without_key_queries_names_no_snapshot(stage: Stage) -> None:
    explained = view(played(stage.session().explain(SQL, run_key_queries=False), DESCRIBE))
    assert explained.snapshots == []
    assert not explained.changed


def test_a_version_is_not_described_by_what_was_known_of_its_table_an_hour_ago(
    stage: Stage, one: TextSession
) -> None:
    sql = SQL.replace("JOIN d", "JOIN d VERSION AS OF 5")
    stage.now = 3_000.0
    asked: Script = [
        DESCRIBE[0],
        ("DESCRIBE QUERY SELECT * FROM `d` VERSION AS OF 5", rows(("k", "int", ""), ("g", "int", ""))),
        DESCRIBE[1],
        (PINNED_KEYS.replace(AT, "VERSION AS OF 5"), FOUND),
    ]
    assert sent(one.rewrite(sql), asked) == NARROWED.replace(AT, "VERSION AS OF 5")


def test_a_plan_at_a_snapshot_rests_on_no_expired_description_that_nobody_checks() -> None:
    stage, checked = Stage(rewrite=RewriteSection(cost_gate=False)), KeyTerms(may_be_checked=True)
    one = stage.session()
    # The snapshot is not told in time, so keys are remembered without one.
    late: Script = [(NOW[0], failed(FailureKind.DEADLINE)), (UNPINNED_KEYS, FOUND), FILES]
    assert sent(one.rewrite(SQL, checked), [*DESCRIBE, *late]) == UNPINNED
    stage.now = 1_000.0
    dispatch = played(one.rewrite(SQL, checked), [*DESCRIBE, *PINNED])
    assert (dispatch.text, dispatch.check) == (NARROWED, None)


def test_a_table_whose_writers_turned_to_orc_is_another_one_and_one_with_another_snapshot_is_not() -> None:
    iceberg = IcebergFacts(1, ("k",))
    then = TableFacts((Column("k", "int"),), provider="iceberg", iceberg=iceberg)
    assert _is_as(replace(then, iceberg=replace(iceberg, snapshot_id=2)), then)
    assert not _is_as(replace(then, iceberg=replace(iceberg, may_hold_orc=True)), then)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (OutcomeKind.RECOVERED, "a rewritten statement failed with it, and its original worked."),
        (OutcomeKind.FAILED, UNPROVEN),
        (OutcomeKind.FAILED_TWICE, UNPROVEN),
    ],
)
def test_a_failed_merge_is_left_alone_for_a_reason_that_is_true(kind: OutcomeKind, why: str) -> None:
    one = Stage(rewrite=RewriteSection(merge_tables=("*",))).session()
    source, target = DESCRIBE
    keys = ("SELECT s.`k` AS key, typeof(s.`k`) AS type FROM d s LIMIT 5001", FOUND)
    dispatch = played(one.rewrite(MERGE), [target, source, keys, FILES])
    assert "raise_error" in dispatch.text
    dispatch.on_outcome(Outcome(kind, 1.0, "another writer was faster"))
    assert sent(one.rewrite(MERGE), [target]) == MERGE
    (said,) = view(played(one.explain(MERGE, run_key_queries=False), [])).quarantined
    assert said.endswith(f"is quarantined for another 600 s: {why}")


def test_a_merge_runs_again_only_if_its_own_check_has_failed_it_and_no_data_can_pass_for_that() -> None:
    one = Stage(rewrite=RewriteSection(merge_tables=("*",))).session()
    source, target = DESCRIBE
    keys = ("SELECT s.`k` AS key, typeof(s.`k`) AS type FROM d s LIMIT 5001", FOUND)
    dispatch = played(one.rewrite(MERGE), [target, source, keys, FILES])
    changed = f"[USER_RAISED_EXCEPTION] {dispatch.fall_back_on}"
    failures = changed, "the connection was lost", f"The value '{KEYS_CHANGED}' cannot be cast to INT"
    assert [dispatch.is_own_fault(words) for words in failures] == [False, True, True]
    assert dispatch.may_fall_back
    assert dispatch.fall_back_on not in dispatch.text
    other = played(
        Stage(rewrite=RewriteSection(merge_tables=("*",))).session().rewrite(MERGE), [target, source, keys, FILES]
    )
    assert other.fall_back_on != dispatch.fall_back_on


def test_a_merge_that_conflicted_with_another_writer_is_narrowed_again_but_not_if_its_original_ran() -> None:
    one = Stage(rewrite=RewriteSection(merge_tables=("*",))).session()
    source, target = DESCRIBE
    keys = ("SELECT s.`k` AS key, typeof(s.`k`) AS type FROM d s LIMIT 5001", FOUND)
    dispatch = played(one.rewrite(MERGE), [target, source, keys, FILES])
    dispatch.on_outcome(Outcome(OutcomeKind.FAILED, 1.0, "[DELTA_CONCURRENT_APPEND] another writer was faster"))
    assert not view(played(one.explain(MERGE, run_key_queries=False), [])).quarantined
    dispatch.on_outcome(Outcome(OutcomeKind.FAILED_TWICE, 1.0, "[DELTA_CONCURRENT_APPEND] once more"))
    assert view(played(one.explain(MERGE, run_key_queries=False), [])).quarantined
