"""When a session does not narrow, what it asks for anew, and what it learns from a statement's end."""

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from support.hostile_statements import SHAPES, of_length
from support.parser_errors import parser_error
from support.played_sessions import (
    DESCRIBE,
    DETAILS,
    KEY_QUERY,
    KEYS,
    NARROWED,
    PARTITION_INFORMATION,
    SETTINGS,
    SQL,
    Asking,
    D,
    begun,
    ended,
    failed,
    played,
    rows,
    sent,
)
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.config import Config
from proxy.config.rewriting import CatalogSection, RewriteSection, ShadowSection
from proxy.operations.dispatch import Dispatch, Outcome, OutcomeKind
from proxy.operations.query import FailureKind, QueryFailed, QueryResult, Rows
from proxy.operations.session_port import SessionOpening
from proxy.operations.spark_versions import FILTER_REFUSED
from proxy.session import plan_memory
from proxy.session.analysis_room import BYTES_PER_CHARACTER, AnalysisRoom
from proxy.session.catalog.late_answers import UNANSWERED_S
from proxy.session.consistency.write_fence import CLOSING_S
from proxy.session.explain.text import text
from proxy.session.explain.view import view
from rewriter import Plan, Rule, SkipReason, TableName, plan

ONE_SESSION, PATH = "spark.sql.hive.thriftServer.singleSession", "spark.sql.defaultPath"
# How a session with default quoting answers.
QUOTING = [
    (f"SET spark.sql.{name}", rows(("..", "false")))
    for name in ("ansi.doubleQuotedIdentifiers", "parser.escapedStringLiterals")
]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def is_left_alone(
    session: TextSession, reason: str, sql: str = SQL, asked: Sequence[tuple[str, QueryResult]] = ()
) -> None:
    """The statement goes as it came, and EXPLAIN says why."""
    assert sent(session.rewrite(sql), asked) == sql
    assert view(played(session.explain(sql, run_key_queries=True), [])).skip_reason == reason


# --- the search path


@pytest.mark.parametrize(
    "sql",
    [
        "SET PATH = spark_catalog.b, system.builtin",
        "set /* a.b */ path=DEFAULT_PATH",
        "SET spark.sql.path.enabled=true",
        "SET spark.sql.defaultPath=spark_catalog.b",
        "SET spark.sql.functionResolution.sessionOrder=first",
        "EXECUTE IMMEDIATE 'SET PATH = spark_catalog.b'",
        "EXPLAIN EXECUTE IMMEDIATE 'SET PATH = spark_catalog.b'",
        "BEGIN SET PATH = spark_catalog.b; END",
    ],
)
def test_a_session_that_searches_names_along_a_path_is_left_alone(stage: Stage, sql: str) -> None:
    session = stage.session()
    played(session.rewrite(sql), []).on_outcome(FINISHED)
    is_left_alone(session, "SEARCH_PATH")
    assert sent(stage.session().rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


@pytest.mark.parametrize(
    "sql",
    [
        *("CREATE OR REPLACE TEMPORARY FUNCTION unix_date AS 'a.Year'", "SET spark.sql.${v}.sessionOrder=first"),
        *("EXECUTE IMMEDIATE made", "BEGIN EXECUTE IMMEDIATE made; END", "/*${text}*/ SELECT 1"),
        *("/* /* */ SET x */ DECLARE G INT", "EXPLAIN EXECUTE IMMEDIATE 'USE other'", "SPEAK TO AN EXTENSION"),
    ],
)
@pytest.mark.parametrize("end", [OutcomeKind.FINISHED, OutcomeKind.FAILED])
def test_a_session_that_may_have_functions_of_its_own_is_left_alone(
    stage: Stage, sql: str, end: OutcomeKind
) -> None:
    session = stage.session()
    played(session.rewrite(sql), []).on_outcome(Outcome(end, 0.0))
    # Nor given up by a DROP, which Spark refuses for a name of its own.
    _ = played(session.rewrite("DROP TEMPORARY FUNCTION IF EXISTS unix_date"), [])
    is_left_alone(session, "OWN_FUNCTIONS")


@pytest.mark.parametrize("sql", ["SELEC 1", "CREATE TEMPORARY FUNCTION unix_date", "BEGIN SELEC 1; END"])
def test_a_statement_that_was_not_understood_leaves_sessions_and_tables_as_they_were(
    stage: Stage, sql: str
) -> None:
    one, other = stage.session(), stage.session()
    narrowed = played(one.rewrite(SQL), [*DESCRIBE, KEYS])
    assert narrowed.text == NARROWED
    refused = played(other.rewrite(sql), [])
    assert refused.is_unread(parser_error(sql))
    assert not refused.is_unread(parser_error("SELEC 2"))
    refused.on_outcome(Outcome(OutcomeKind.FAILED, 0.0, is_unread=True))
    assert narrowed.premises.are_tables_unchanged()
    assert sent(other.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


def test_a_session_that_is_opened_with_a_path_is_left_alone(stage: Stage) -> None:
    opened = SessionOpening({"set:hiveconf:spark.sql.defaultPath": "spark_catalog.b"}, "ann")
    assert sent(TextSession(stage.shared, opened).rewrite(SQL), []) == SQL


@pytest.mark.parametrize(
    "sql",
    [
        "SET hive.exec.path=/x",
        "USE path",
        "CREATE TEMP VIEW v USING parquet OPTIONS (path '/x')",
        "CREATE FUNCTION shop.unix_date AS 'a.Year'",
    ],
)
def test_another_path_and_a_function_of_a_database_leave_the_session_as_it_was(stage: Stage, sql: str) -> None:
    session = stage.session()
    played(session.rewrite(sql), []).on_outcome(FINISHED)
    assert sent(session.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


# --- memory


def test_a_statement_for_whose_tree_there_is_no_room_is_left_alone(stage: Stage) -> None:
    stage.shared.analysis = room = AnalysisRoom(len(SQL) * BYTES_PER_CHARACTER)
    session = stage.session()
    # One that waits for the answers to its questions keeps its room.
    waiting = session.rewrite(SQL)
    assert begun(waiting).sql
    is_left_alone(session, "NO_MEMORY")
    assert room.refused == 2
    assert 'starpruner_skips_total{reason="no_memory"} 1.0' in stage.shared.metrics.exposition().decode()
    # Its client has left.
    waiting.close()
    assert sent(session.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    assert sent(session.rewrite(SQL), [KEYS]) == NARROWED


def test_what_needs_no_tree_needs_no_room(stage: Stage) -> None:
    stage.shared.analysis = room = AnalysisRoom(0)
    assert sent(stage.session().rewrite("SELECT 1"), []) == "SELECT 1"
    assert room.refused == 0


# --- variables


@pytest.mark.parametrize(
    ("sql", "declares"),
    [
        ("DECLARE G INT DEFAULT 2", True),
        ("-- a tool\nDECLARE OR REPLACE VARIABLE G INT", True),
        ("SET spark.sql.caseSensitive=true", False),
        ("USE other", False),
        ("CREATE TEMPORARY VIEW v AS SELECT 1", False),
    ],
)
def test_a_name_in_another_case_is_no_column_where_there_may_be_variables(
    stage: Stage, sql: str, *, declares: bool
) -> None:
    session = stage.session()
    played(session.rewrite(sql), []).on_outcome(FINISHED)
    other_case = SQL.replace("d.g", "G")
    narrowed = NARROWED.replace("d.g", "G")
    unsized = ("EXPLAIN COST SELECT * FROM `d`", rows())
    asked = [*DESCRIBE, unsized] if declares else [*DESCRIBE, (KEY_QUERY.replace("d.g", "G"), KEYS[1])]
    assert sent(session.rewrite(other_case), asked) == (other_case if declares else narrowed)


# --- the server's own settings


@pytest.mark.parametrize(
    ("found", "skip"),
    [
        (rows((ONE_SESSION, "true")), SkipReason.SHARED_SESSION),
        (rows((ONE_SESSION, "*********(redacted)")), SkipReason.SHARED_SESSION),
        (rows((PATH, "spark_catalog.b"), (ONE_SESSION, "false")), SkipReason.SEARCH_PATH),
        (rows(("spark.sql.functionResolution.sessionOrder", "FIRST")), SkipReason.SEARCH_PATH),
        (failed(FailureKind.REJECTED), SkipReason.SETTINGS_UNKNOWN),
        (failed(FailureKind.TOO_MANY_ROWS), SkipReason.SETTINGS_UNKNOWN),
    ],
)
def test_a_server_whose_settings_make_names_uncertain_is_left_alone(
    stage: Stage, found: QueryResult, skip: SkipReason
) -> None:
    one = stage.session()
    is_left_alone(one, skip.name, asked=[("SET", found)])
    assert sent(stage.session("bob").rewrite(SQL), [SETTINGS, *DESCRIBE, KEYS]) == NARROWED


@pytest.mark.parametrize("harmless", [(ONE_SESSION, "FALSE"), (PATH, ""), ("spark.sql.pathological", "x")])
def test_a_server_that_has_set_nothing_else_than_what_holds_anyway_is_narrowed(
    stage: Stage, harmless: tuple[str, str | None]
) -> None:
    assert sent(stage.session().rewrite(SQL), [("SET", rows(harmless)), *DESCRIBE, KEYS]) == NARROWED


def test_the_settings_are_asked_for_anew_after_a_while_and_after_a_statement_that_may_change_them(
    stage: Stage,
) -> None:
    one = stage.session()
    for script in ([SETTINGS, *DESCRIBE, KEYS], [KEYS]):
        assert sent(one.rewrite(SQL), script) == NARROWED
    stage.now += CatalogSection().facts_ttl_s
    assert sent(one.rewrite(SQL), [SETTINGS, *DESCRIBE, KEYS]) == NARROWED
    played(one.rewrite("SET x=1"), []).on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), [SETTINGS, *DESCRIBE, KEYS]) == NARROWED
    stage.now += CatalogSection().facts_ttl_s
    assert sent(one.rewrite(SQL), [("SET", rows((ONE_SESSION, "true")))]) == SQL


def test_how_quotes_are_read_is_asked_for_anew_after_a_while(stage: Stage) -> None:
    one, sql = stage.session(), SQL + ' AND f.id <> "1"'
    assert sent(one.rewrite(sql), [(QUOTING[0][0], failed(FailureKind.BUSY)), QUOTING[1]]) == sql
    assert sent(one.rewrite(sql), []) == sql
    stage.now += CatalogSection().facts_ttl_s
    assert sent(one.rewrite(sql), [*QUOTING, *DESCRIBE, KEYS]) != sql


@pytest.mark.parametrize("facts_ttl_s", [30, 3600])
def test_a_server_that_could_not_say_is_asked_again_after_a_minute_at_most(stage: Stage, facts_ttl_s: int) -> None:
    stage.shared.reload(Config(catalog=CatalogSection(facts_ttl_s=facts_ttl_s)))
    one, quoted = stage.session(), SQL + ' AND f.id <> "1"'
    busy = failed(FailureKind.DEADLINE)
    assert sent(one.rewrite(SQL), [("SET", busy)]) == SQL
    assert sent(one.rewrite(quoted), [(name, busy) for name, _ in QUOTING]) == quoted
    stage.now += min(facts_ttl_s, UNANSWERED_S)
    assert sent(one.rewrite(quoted), [*QUOTING, SETTINGS, *DESCRIBE, KEYS]) != quoted


# --- the write fence


@pytest.mark.parametrize("write", ["INSERT INTO d VALUES ('b', 1)", "DELETE FROM shop.d", "CALL anything()"])
def test_a_small_side_that_is_written_while_its_keys_are_read_leaves_the_statement_as_it_is(
    stage: Stage, write: str
) -> None:
    one, other = stage.session(), stage.session("bob")
    queries = one.rewrite(SQL)
    assert begun(queries, DESCRIBE).sql == KEY_QUERY
    described = [("DESCRIBE TABLE EXTENDED `shop`.`d`", D)] if write.startswith("DELETE") else []
    assert sent(other.rewrite(write), described) == write
    assert ended(queries, KEYS[1]).text == SQL


@pytest.mark.parametrize(
    ("write", "is_narrowed"),
    [
        *(("OPTIMIZE x", True), ("VACUUM x", True), ("CALL ice.system.rewrite_data_files('shop.x')", True)),
        *(("OPTIMIZE d", False), ("VACUUM d", False), ("CALL ice.system.rewrite_data_files('shop.d')", False)),
    ],
)
def test_who_maintains_a_table_holds_up_no_statement_on_others(
    stage: Stage, write: str, *, is_narrowed: bool
) -> None:
    _ = played(stage.session("bob").rewrite(write), [])
    text = sent(stage.session().rewrite(SQL), [*DESCRIBE, KEYS] if is_narrowed else DESCRIBE)
    assert text == (NARROWED if is_narrowed else SQL)


@pytest.mark.parametrize(("described", "is_narrowed"), [(D, True), (failed(FailureKind.REJECTED), False)])
def test_who_refreshes_a_table_holds_up_no_statement_on_others_and_a_view_may_stand_for_any(
    stage: Stage, described: QueryResult, *, is_narrowed: bool
) -> None:
    first, other = stage.session(), stage.session("bob")
    running = played(first.rewrite(SQL), [*DESCRIBE, KEYS])
    refreshing = played(other.rewrite("REFRESH TABLE x"), [("DESCRIBE TABLE EXTENDED `x`", described)])
    refreshing.on_outcome(FINISHED)
    assert running.premises.are_tables_unchanged() is is_narrowed


def test_a_table_that_gets_other_columns_while_the_statement_is_planned_leaves_it_as_it_is(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stage.session(), stage.session("bob")
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED

    def overtaken(*given: Any) -> Plan:
        planned = plan(*given)
        # In the meantime: statements are planned in threads.
        played(other.rewrite("ALTER TABLE f ADD COLUMN extra INT"), []).on_outcome(FINISHED)
        return planned

    monkeypatch.setattr("proxy.session.plan_memory.plan", overtaken)
    assert sent(one.rewrite(SQL), [KEYS]) == SQL


def test_where_one_of_two_small_sides_is_being_written_the_other_one_narrows(stage: Stage) -> None:
    one, other = stage.session(), stage.session("bob")
    _ = sent(other.rewrite("INSERT INTO d VALUES ('b', 1)"), [])
    sql = f"{SQL.replace(' WHERE', ' JOIN e ON f.ds = e.ds WHERE')} AND e.g = 1"
    e = ("DESCRIBE TABLE EXTENDED `e`", D)
    keys = (KEY_QUERY.replace("FROM d", "FROM e").replace("d.", "e."), KEYS[1])
    text = sent(one.rewrite(sql), [DESCRIBE[0], e, DESCRIBE[1], keys])
    assert text == sql.replace("FROM f", NARROWED[NARROWED.index("FROM (") : NARROWED.index(" JOIN")])


def test_a_statement_whose_small_side_was_being_written_is_narrowed_as_soon_as_it_is_not(stage: Stage) -> None:
    one, other = stage.session(), stage.session("bob")
    writing = played(other.rewrite("INSERT INTO d VALUES ('b', 1)"), [])
    for script in (DESCRIBE, [], []):
        played(one.rewrite(SQL), script).on_outcome(FINISHED)
    writing.on_outcome(FINISHED)
    explained = view(played(one.explain(SQL, run_key_queries=False), [UNLISTED]))
    assert explained.cost_report == "It ran 3 times as the original in 1.00 s: rewritten, to see what that takes."
    assert sent(one.rewrite(SQL), [KEYS]) == NARROWED


@pytest.mark.parametrize(
    ("described", "is_known"),
    [(D, True), (rows(("ds", "string", "")), False), (failed(FailureKind.REJECTED), False)],
)
def test_what_is_deleted_from_counts_for_any_table_unless_it_is_one(
    stage: Stage, described: QueryResult, *, is_known: bool
) -> None:
    """Spark 4.1 with Iceberg takes a DELETE FROM a view of a table, and removes the rows from that."""
    one, other = stage.session(), stage.session("bob")
    script = [("DESCRIBE TABLE EXTENDED `v`", described)]
    if isinstance(described, Rows) and not is_known:
        script.append(("DESCRIBE TABLE EXTENDED `v` AS JSON", failed(FailureKind.REJECTED)))
        script.append(("SHOW TABLE EXTENDED LIKE 'v'", failed(FailureKind.REJECTED)))
    deleting = played(other.rewrite("DELETE FROM v WHERE a = 1"), script)
    # Nor are tables described that may be changing.
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS] if is_known else []) == (NARROWED if is_known else SQL)
    deleting.on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), [KEYS] if is_known else [*DESCRIBE, KEYS]) == NARROWED


def test_a_session_that_is_switched_off_says_all_the_same_what_it_writes(stage: Stage) -> None:
    one, other = stage.session(), stage.session("bob")
    played(other.rewrite("SET starpruner.enabled=false"), []).on_outcome(FINISHED)
    _ = played(other.rewrite("DELETE FROM x"), [("DESCRIBE TABLE EXTENDED `x`", D)])
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    _ = played(other.rewrite("INSERT INTO d VALUES ('b', 1)"), [])
    assert sent(one.rewrite(SQL), []) == SQL


def test_where_nothing_is_rewritten_nothing_is_asked_of_what_is_written() -> None:
    off = Stage(rewrite=RewriteSection(enabled=False))
    assert sent(off.session().rewrite("DELETE FROM x"), []) == "DELETE FROM x"


def test_while_its_session_changes_a_name_may_become_that_of_a_view(stage: Stage) -> None:
    one = stage.session()
    _ = played(one.rewrite("CREATE TEMP VIEW x AS SELECT 1"), [])
    _ = played(one.explain(SQL, run_key_queries=False), [*DESCRIBE, UNLISTED])
    _ = played(one.rewrite("WITH c AS (SELECT 1) DELETE FROM d"), [])
    assert not stage.shared.writes.open().holds([TableName(("any",))])


def test_with_a_search_path_a_name_may_be_that_of_a_view(stage: Stage) -> None:
    one, other = stage.session(), stage.session("bob")
    played(other.rewrite("SET PATH = spark_catalog.b"), []).on_outcome(FINISHED)
    _ = played(other.rewrite("DELETE FROM x"), [])
    assert sent(one.rewrite(SQL), []) == SQL


def test_a_write_of_a_session_that_has_been_closed_for_a_while_is_over(stage: Stage) -> None:
    one, other = stage.session(), stage.session("bob")
    _ = played(other.rewrite("INSERT INTO d VALUES ('b', 1)"), [])
    other.closed()
    assert sent(one.rewrite(SQL), DESCRIBE) == SQL
    stage.now = CLOSING_S - 1.0
    assert sent(one.rewrite(SQL), []) == SQL
    stage.now = CLOSING_S
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


# --- what is looked at again before an answer is let out


REPLACES = ("DROP TABLE f", "CREATE OR REPLACE TABLE f AS SELECT 1")


@pytest.mark.parametrize(
    "write",
    ["INSERT INTO d VALUES ('b', 1)", "CREATE OR REPLACE VIEW d AS SELECT 1", *REPLACES, "CALL anything()"],
)
def test_a_text_rests_on_the_tables_until_another_session_begins_to_write_them(stage: Stage, write: str) -> None:
    one, other = stage.session(), stage.session("bob")
    dispatch = played(one.rewrite(SQL), [*DESCRIBE, KEYS])
    for sql, asked in (("INSERT INTO f VALUES (1, 'b')", []), ("SELECT * FROM d", DESCRIBE[:1])):
        played(other.rewrite(sql), asked).on_outcome(FINISHED)
    assert dispatch.premises.are_tables_unchanged()
    writing = played(other.rewrite(write), [])
    assert not dispatch.premises.are_tables_unchanged(), "from before it goes to the server"
    writing.on_outcome(FINISHED)
    assert not dispatch.premises.are_tables_unchanged()


# --- a statement that writes cannot be run twice


INSERT = f"INSERT INTO other {SQL}"
CHANGES = ["USE other", "SET x=1", "RESET", "CREATE TEMP VIEW d AS SELECT 1", "CACHE TABLE d", "NO SUCH STATEMENT"]
OTHERS = ["SELECT 1", SQL, "INSERT INTO d VALUES ('b', 1)", "DROP VIEW d", "SET starpruner.enabled=false"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_session_waits_for_a_rewritten_statement_that_writes(stage: Stage, change: str) -> None:
    one, other = stage.session(), stage.session("bob")
    writing = played(one.rewrite(INSERT), [*DESCRIBE, KEYS])
    assert writing.text == f"INSERT INTO other {NARROWED}"
    assert one.writes_before(change) == (writing.write,)
    assert other.writes_before(change) == ()
    assert [sql for sql in OTHERS if one.writes_before(sql)] == []
    writing.on_outcome(FINISHED)
    assert one.writes_before(change) == ()


def test_a_temporary_view_is_not_dropped_before_either(stage: Stage) -> None:
    one = stage.session()
    played(one.rewrite("CREATE TEMP VIEW e AS SELECT 1"), []).on_outcome(FINISHED)
    writing = played(one.rewrite(INSERT), [*DESCRIBE, KEYS])
    assert one.writes_before("DROP VIEW e") == (writing.write,)


def test_nothing_waits_for_a_write_that_goes_as_it_came_or_has_ended_for_the_server(stage: Stage) -> None:
    one = stage.session()
    _ = played(one.rewrite("INSERT INTO other SELECT 1"), [])
    assert one.writes_before("USE other") == ()
    dispatch = played(one.rewrite(INSERT), [*DESCRIBE, KEYS])
    assert dispatch.write is not None
    dispatch.write.is_over = True
    assert one.writes_before("USE other") == ()


@pytest.mark.parametrize(
    ("write", "count"), [("INSERT INTO d VALUES ('b', 1)", 1.0), ("INSERT INTO e VALUES (1)", 0.0)]
)
def test_a_statement_that_wrote_while_its_small_side_was_written_is_told_of(
    stage: Stage, caplog: pytest.LogCaptureFixture, write: str, count: float
) -> None:
    one, other = stage.session(), stage.session("bob")
    writing = played(one.rewrite(INSERT), [*DESCRIBE, KEYS])
    played(other.rewrite(write), []).on_outcome(FINISHED)
    writing.on_outcome(FINISHED)
    told = [record for record in caplog.records if "may lack rows" in record.message]
    assert len(told) == count
    assert f"starpruner_overtaken_writes_total {count}" in stage.shared.metrics.exposition().decode()


def test_a_statement_that_writes_a_directory_is_not_overtaken_by_itself(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    writing = played(stage.session().rewrite(f"INSERT OVERWRITE DIRECTORY '/lake/d' {SQL}"), [*DESCRIBE, KEYS])
    assert writing.text.endswith(NARROWED)
    assert writing.write is not None
    assert not stage.shared.writes.open().holds([TableName(("d",))]), "the directory may be any table's"
    writing.on_outcome(FINISHED)
    assert not [record for record in caplog.records if "may lack rows" in record.message]


# --- remembered keys


def test_keys_are_asked_for_each_time_unless_the_user_allows_a_staleness(stage: Stage) -> None:
    one = stage.session()
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    assert sent(one.rewrite(SQL), [KEYS]) == NARROWED
    played(one.rewrite("SET starpruner.key_staleness_s=10"), []).on_outcome(FINISHED)
    # No other session was in that state.
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    for stage.now, script in ((0.0, []), (9.0, []), (11.0, [KEYS])):
        assert sent(one.rewrite(SQL), script) == NARROWED


def test_remembered_keys_serve_the_session_alone_that_asked_for_them_until_their_table_is_written() -> None:
    stage = Stage(rewrite=RewriteSection(key_staleness_s=60))
    one = stage.session()
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    assert sent(one.rewrite(SQL), []) == NARROWED
    assert sent(stage.session().rewrite(SQL), [KEYS]) == NARROWED, "nobody knows what was done to the first one"
    bob = stage.session("bob")
    assert sent(bob.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    played(bob.rewrite("INSERT INTO d VALUES ('b', 1)"), []).on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), [KEYS]) == NARROWED, "they do not outlive a write to their table"


# --- statements of many megabytes


@pytest.mark.parametrize(
    "sql",
    [
        f"INSERT INTO e VALUES {'(123456, 0), ' * 250_000}",
        f"SELECT f.id FROM f JOIN d ON f.ds = d.ds WHERE f.id IN ({'123456789, ' * 300_000}0)",
        f"WITH w AS (SELECT 1) SELECT * FROM w WHERE a IN ({'123456789 ' * 300_000})",
        f"SET x={'123456789 ' * 300_000}",
    ],
    ids=lambda sql: sql[:6],
)
def test_a_very_long_statement_is_not_looked_through(stage: Stage, sql: str) -> None:
    """No other connection is served meanwhile: a pattern that is searched takes all of the process."""
    started = time.process_time()
    assert re.search(r"\bno\b|\bsuch\b", sql, re.IGNORECASE) is None
    one_search_s, rewrites_s = time.process_time() - started, []
    # One of them may be charged with garbage that others have left.
    for _ in range(3):
        started = time.process_time()
        assert sent(stage.session().rewrite(sql), []) is sql
        rewrites_s.append(time.process_time() - started)
    assert min(rewrites_s) < one_search_s / 2


@pytest.mark.parametrize("sql", ["CREATE TEMP VIEW v AS SELECT ", "SET x="])
def test_a_session_that_a_very_long_statement_may_have_changed_shares_nothing(stage: Stage, sql: str) -> None:
    one = stage.session()
    assert sent(stage.session().rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    played(one.rewrite(sql + "1 " * 250_000), []).on_outcome(FINISHED)
    is_left_alone(one, "SEARCH_PATH" if sql.startswith("SET") else "OWN_FUNCTIONS")


# --- statements of a session that changes meanwhile


@pytest.mark.parametrize("change", ["USE other", "SET spark.sql.ansi.enabled=false", "ADD JAR x.jar"])
def test_a_statement_that_comes_while_another_one_changes_the_session_goes_on_as_it_came(
    stage: Stage, change: str
) -> None:
    one = stage.session()
    changing = played(one.rewrite(change), [])
    assert sent(one.rewrite(SQL), []) == SQL
    changing.on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


@pytest.mark.parametrize("change", ["USE other", "SET x=1", "CREATE TEMP VIEW d AS SELECT 1", "NO SUCH STATEMENT"])
def test_a_statement_means_the_same_until_another_one_changes_its_session(stage: Stage, change: str) -> None:
    one = stage.session()
    dispatch = played(one.rewrite(SQL), [*DESCRIBE, KEYS])
    for sql in ("SELECT 1", "INSERT INTO e VALUES (1)"):
        played(one.rewrite(sql), []).on_outcome(FINISHED)
    assert dispatch.premises.is_session_unchanged()
    changing = played(one.rewrite(change), [])
    assert not dispatch.premises.is_session_unchanged(), "from before it goes to the server"
    changing.on_outcome(FINISHED)
    assert not dispatch.premises.is_session_unchanged()


@pytest.mark.parametrize("change", ["DROP VIEW d", "ALTER VIEW d RENAME TO e"])
def test_a_statement_means_something_else_once_a_view_of_the_session_is_gone(stage: Stage, change: str) -> None:
    one, other = stage.session(), stage.session("bob")
    played(one.rewrite("CREATE TEMP VIEW d AS SELECT 'x' AS ds, 1 AS g"), []).on_outcome(FINISHED)
    dispatches = [played(session.rewrite(SQL), [*DESCRIBE, KEYS]) for session in (one, other)]
    played(one.rewrite(change), []).on_outcome(FINISHED)
    played(other.rewrite("DROP TABLE e"), []).on_outcome(FINISHED)
    assert [dispatch.premises.is_session_unchanged() for dispatch in dispatches] == [False, True]


def test_a_statement_whose_session_is_changed_past_it_while_its_keys_are_read_goes_on_as_it_came(
    stage: Stage,
) -> None:
    one = stage.session()
    queries = one.rewrite(SQL)
    begun(queries, DESCRIBE)
    one.forward_unchanged("USE other").on_outcome(Outcome(OutcomeKind.UNKNOWN, 0.0))
    assert ended(queries, KEYS[1]).text == SQL


def private(stage: Stage) -> TextSession:
    """A session that shares nothing, and knows its tables for an hour."""
    stage.shared.reload(Config(catalog=CatalogSection(facts_ttl_s=3600)))
    one = stage.session()
    played(one.rewrite("CREATE TEMP VIEW v AS SELECT 1"), []).on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    assert sent(one.rewrite(SQL), [KEYS]) == NARROWED
    return one


def test_a_session_that_another_statement_has_changed_past_it_is_told_anew(stage: Stage) -> None:
    one = private(stage)
    one.forward_unchanged("USE other").on_outcome(Outcome(OutcomeKind.UNKNOWN, 0.0))
    stage.now = CLOSING_S
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


def test_what_is_told_for_an_explanation_while_the_session_changes_is_not_believed(stage: Stage) -> None:
    one = private(stage)
    changing = played(one.rewrite("USE other"), [])
    _ = played(one.explain(SQL, run_key_queries=False), [*DESCRIBE, UNLISTED])
    changing.on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


@pytest.mark.parametrize("end", [OutcomeKind.UNKNOWN, OutcomeKind.LOST])
@pytest.mark.parametrize("change", ["USE other", "CREATE TEMP VIEW v AS SELECT 1"])
def test_a_change_whose_end_is_not_seen_is_over_after_a_while(stage: Stage, change: str, end: OutcomeKind) -> None:
    one = stage.session()
    played(one.rewrite(change), []).on_outcome(Outcome(end, 0.0))
    assert sent(one.rewrite(SQL), []) == SQL, "closed before its end, it may be at work yet"
    stage.now = CLOSING_S
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


@pytest.mark.parametrize("sql", ["USE other", "CREATE TEMP VIEW v AS SELECT 1", "INSERT INTO d VALUES ('b', 1)"])
def test_a_statement_that_was_never_sent_keeps_nothing_from_being_narrowed(stage: Stage, sql: str) -> None:
    one = stage.session()
    played(one.rewrite(sql), []).on_outcome(Outcome(OutcomeKind.NOT_SENT, 0.0))
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


# --- what sessions of one state know in common


def test_what_a_session_was_told_serves_the_next_one_of_the_same_user_and_settings_alone(stage: Stage) -> None:
    assert sent(stage.session().rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    assert sent(stage.session().rewrite(SQL), [KEYS]) == NARROWED
    assert sent(stage.session("bob").rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    other = stage.session()
    played(other.rewrite("USE shop"), []).on_outcome(FINISHED)
    assert sent(other.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


@pytest.mark.parametrize(
    "own", ["CREATE TEMP VIEW d AS SELECT 'x' AS ds, 1 AS g", "DECLARE g STRING DEFAULT uuid()"]
)
def test_a_session_with_something_of_its_own_shares_nothing(stage: Stage, own: str) -> None:
    one, other, plain = stage.session(), stage.session(), stage.session()
    for session in (one, other):
        played(session.rewrite(own), []).on_outcome(FINISHED)
    for session in (one, other, plain):
        assert sent(session.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


@pytest.mark.parametrize("change", ["EXPLAIN EXECUTE IMMEDIATE 'USE other'", "/* /* */ SELECT */ USE other"])
def test_what_changes_a_session_behind_another_first_word_leaves_others_as_they_are(
    stage: Stage, change: str
) -> None:
    one, other = stage.session(), stage.session()
    changing = played(one.rewrite(change), [])
    assert sent(one.rewrite(SQL), []) == SQL
    changing.on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), []) == SQL
    assert sent(other.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


def test_a_table_that_one_session_may_have_changed_is_described_anew_for_all(stage: Stage) -> None:
    one, other = stage.session(), stage.session()
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    played(other.rewrite("ALTER TABLE d ADD COLUMN extra INT"), []).on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


def test_what_a_session_is_told_while_another_one_changes_a_table_is_not_believed(stage: Stage) -> None:
    one, other = stage.session(), stage.session()
    queries = one.rewrite(SQL)
    begun(queries)
    played(other.rewrite("ALTER TABLE d ADD COLUMN extra INT"), []).on_outcome(FINISHED)
    queries.send(DESCRIBE[0][1])
    assert ended(queries, DESCRIBE[1][1]).text == SQL
    # The second table was described after the change.
    assert sent(other.rewrite(SQL), [DESCRIBE[0], KEYS]) == NARROWED


def test_a_configuration_with_another_catalog_section_forgets_what_was_told(stage: Stage) -> None:
    assert sent(stage.session().rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    stage.shared.reload(Config(catalog=CatalogSection(facts_ttl_s=1)))
    assert sent(stage.session().rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    stage.now = 2.0
    assert sent(stage.session().rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


# --- knobs


def test_a_reset_of_everything_resets_what_is_known_of_the_session_too() -> None:
    stage = Stage(rewrite=RewriteSection(cost_gate=False))
    one = stage.session()
    played(one.rewrite("SET starpruner.consistency=window"), []).on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    assert sent(one.rewrite(SQL), [KEYS]) == NARROWED
    played(one.rewrite("RESET"), []).on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


# --- the cost gate


LISTED = ("SHOW PARTITIONS `f`", rows(("ds=a",), ("ds=b",)))


def test_a_statement_for_which_asking_does_not_pay_is_left_alone_before_anything_is_asked_or_parsed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = stage.session()
    # Of 0.8 s narrowed, 0.3 s go to the key query. The third time its fact's partitions are counted.
    for script in ([SETTINGS, *DESCRIBE, KEYS], [KEYS], [LISTED, KEYS]):
        dispatch = _slowly(stage, one, script)
        assert dispatch.text == NARROWED
        dispatch.on_outcome(Outcome(OutcomeKind.FINISHED, 0.5))
    # As it came it takes no longer.
    with monkeypatch.context() as unparsed:
        unparsed.setattr(plan_memory, "parse", None)
        for number in (1, 2, 77):
            of_another_day = SQL.replace("1", str(number))
            dispatch = played(one.rewrite(of_another_day), [])
            assert dispatch.text == of_another_day
            dispatch.on_outcome(Outcome(OutcomeKind.FINISHED, 0.5))
    played(one.rewrite("SET starpruner.cost_gate=false"), []).on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


def _slowly(stage: Stage, session: TextSession, script: Sequence[tuple[str, QueryResult]]) -> Dispatch:
    """The ruling after a script in which each answer takes a while."""
    queries, answers = session.rewrite(SQL), list(script)
    asked = queries.send(None)
    while True:
        expected, answer = answers.pop(0)
        assert asked.sql == expected
        stage.now += 0.3
        try:
            asked = queries.send(answer)
        except StopIteration as end:
            assert not answers
            dispatch: Dispatch = end.value
            return dispatch


def test_a_statement_counts_once_though_a_first_attempt_was_given_up_at_its_first_question(stage: Stage) -> None:
    one = stage.session()
    attempt = one.rewrite(SQL)
    assert attempt.send(None).sql == SETTINGS[0]
    attempt.close()
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    counts = stage.shared.metrics.exposition().decode()
    assert 'starpruner_gate_decisions_total{verdict="rewrite"} 1.0' in counts


UNLISTED = ("SHOW PARTITIONS `f`", failed(FailureKind.REJECTED))


# --- what failed, and what is switched off


def test_a_statement_that_was_rescued_is_left_alone_for_a_while(stage: Stage) -> None:
    one = stage.session()
    played(one.rewrite(SQL), [*DESCRIBE, KEYS]).on_outcome(Outcome(OutcomeKind.RECOVERED, 1.0, "no such column"))
    assert sent(one.rewrite(SQL), []) == SQL
    found = view(played(one.explain(SQL, run_key_queries=False), [UNLISTED]))
    assert (found.changed, found.skip_reason) == (False, "QUARANTINED")
    assert len(found.quarantined) == 1
    assert found.quarantined[0].endswith(
        "is quarantined for another 600 s: a rewritten statement failed with it, and its original worked."
    )
    assert found.quarantined[0] in text(found)
    # It is left alone for another user's statement neither longer nor at all.
    bob = stage.session("bob")
    assert sent(bob.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    assert view(played(bob.explain(SQL, run_key_queries=False), [UNLISTED])).quarantined == []
    stage.now = 601.0
    played(one.rewrite("SET starpruner.cost_gate=false"), []).on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


def test_sessions_of_one_user_with_views_of_their_own_share_what_was_learned(stage: Stage) -> None:
    for user, is_left in (("ann", False), ("ann", True), ("bob", False)):
        one = stage.session(user)
        played(one.rewrite("CREATE TEMP VIEW v AS SELECT 1"), []).on_outcome(FINISHED)
        dispatch = played(one.rewrite(SQL), [] if is_left else [*DESCRIBE, KEYS])
        assert dispatch.text == (SQL if is_left else NARROWED)
        dispatch.on_outcome(Outcome(OutcomeKind.RECOVERED, 1.0, "no such column"))
    assert sent(stage.session("ann").rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED


def test_a_rule_that_fails_for_one_user_is_left_out_of_that_user_s_statements_alone(stage: Stage) -> None:
    failed_at_times = Outcome(OutcomeKind.RECOVERED, 1.0, "[USER_RAISED_EXCEPTION] 'rand() < 0.5' is not true!")
    for shape, described in (("f.id", DESCRIBE), ("f.id + 1", []), ("f.id + 1 + 1", [])):
        sql = SQL.replace("f.id", shape, 1)
        played(stage.session().rewrite(sql), [*described, KEYS]).on_outcome(failed_at_times)
    other = SQL.replace("f.id", "f.id * 2", 1)
    assert sent(stage.session().rewrite(other), []) == other
    found = view(played(stage.session().explain(other, run_key_queries=False), []))
    assert "is quarantined for statements of one user for another 600 s" in found.quarantined[0]
    bob = stage.session("bob")
    assert sent(bob.rewrite(other), [*DESCRIBE, KEYS]) == NARROWED.replace("f.id", "f.id * 2", 1)
    assert view(played(bob.explain(other, run_key_queries=False), [UNLISTED])).quarantined == []


@pytest.mark.parametrize(
    "rewrite",
    [RewriteSection(rules_off=(Rule.INNER_JOIN,)), RewriteSection(tables_off=("f",))],
    ids=["a rule", "a table"],
)
def test_what_is_switched_off_is_not_asked_for(rewrite: RewriteSection) -> None:
    assert sent(Stage(rewrite=rewrite).session().rewrite(SQL), DESCRIBE) == SQL


@pytest.mark.parametrize("databases", [("web", "finance"), ("finance", "web")])
def test_a_table_is_switched_off_also_where_one_of_its_name_in_another_database_is_not(
    databases: tuple[str, str],
) -> None:
    """The text and all else of the tables are the same, so that a plan might serve for both."""
    stage = Stage(rewrite=RewriteSection(tables_off=("finance.f",)))
    for database in databases:
        named = ("Database", database, ""), ("Table", "f", "")
        described = rows(("id", "int", ""), ("ds", "string", ""), *PARTITION_INFORMATION, *DETAILS, *named)
        asked = [("DESCRIBE TABLE EXTENDED `d`", D), ("DESCRIBE TABLE EXTENDED `f`", described)]
        is_off = database == "finance"
        expected = SQL if is_off else NARROWED
        assert sent(stage.stranger().rewrite(SQL), [*asked, *([] if is_off else [KEYS])]) == expected


def test_statements_of_the_users_that_are_named_are_rewritten_and_no_others(stage: Stage) -> None:
    stage.shared.reload(Config(rewrite=RewriteSection(only_users=("ann",))))
    assert sent(stage.session("ann").rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    bob = stage.session("bob")
    assert sent(bob.rewrite(SQL), []) == SQL
    stage.shared.reload(Config(rewrite=RewriteSection()))
    assert sent(bob.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED, "in the session that is open"


def test_while_the_switch_is_off_no_session_rewrites_anything(stage: Stage) -> None:
    one = stage.session()
    assert sent(one.rewrite(SQL), [*DESCRIBE, KEYS]) == NARROWED
    stage.shared.off_switch.is_off = True
    played(one.rewrite("SET starpruner.enabled=true"), []).on_outcome(FINISHED)
    assert sent(one.rewrite(SQL), []) == SQL
    explained = played(one.explain(SQL, run_key_queries=False), [*DESCRIBE, UNLISTED])
    assert explained.skip is SkipReason.SWITCHED_OFF
    stage.shared.off_switch.is_off = False
    assert sent(one.rewrite(SQL), [KEYS]) == NARROWED


# --- strict, and shadow


def test_with_strict_consistency_keys_that_may_change_are_not_asked_for() -> None:
    one = Stage(rewrite=RewriteSection(consistency="strict")).session()
    for sql, asked in ((SQL, DESCRIBE), (INSERT, [])):
        assert sent(one.rewrite(sql), asked) == sql


def test_a_statement_keeps_the_consistency_that_it_was_decided_by_while_the_configuration_is_read_anew() -> None:
    stage = Stage(rewrite=RewriteSection(consistency="strict"))
    queries = stage.session().rewrite(SQL)
    begun(queries, DESCRIBE[:1])
    stage.shared.reload(Config())
    assert ended(queries, DESCRIBE[1][1]).text == SQL


def test_in_shadow_mode_the_original_is_sent_before_anything_is_asked(stage: Stage) -> None:
    one = stage.session()
    played(one.rewrite("SET starpruner.mode=shadow"), []).on_outcome(FINISHED)
    dispatch = played(one.rewrite(SQL), [])
    assert dispatch.text == SQL
    assert beside(dispatch) == [*(sql for sql, _ in (SETTINGS, *DESCRIBE)), KEY_QUERY, f"DESCRIBE QUERY {SQL}"]
    assert played(one.rewrite("SELECT 1"), []).beside is None


def test_a_shadow_whose_filter_the_metastore_refuses_makes_filters_shorter_and_puts_nothing_aside() -> None:
    stage = Stage(rewrite=RewriteSection(mode="shadow"))
    dispatch = played(stage.session().rewrite(SQL), [])
    assert dispatch.beside is not None
    columns, checksum = rows(("id", "int", None)), rows((1, "7"))
    refused = QueryFailed(FailureKind.REJECTED, f"[{FILTER_REFUSED[-1]}] of a long filter", 0.1)
    told = dict([SETTINGS, *DESCRIBE, KEYS, (f"DESCRIBE QUERY {SQL}", columns)])
    steps: Asking[None] = dispatch.beside()
    query = steps.send(None)
    with suppress(StopIteration):
        while True:
            is_rewritten = "`ds` IN ('a')" in query.sql
            query = steps.send(told.get(query.sql, refused if is_rewritten else checksum))
    assert stage.shared.metastore.lowered_count == 1
    assert stage.shared.quarantine.current() == ()


def test_a_statement_that_writes_is_no_shadow() -> None:
    stage = Stage(rewrite=RewriteSection(mode="shadow"))
    dispatch = played(stage.session().rewrite(f"INSERT INTO other {SQL}"), [])
    assert beside(dispatch)[-1] == KEY_QUERY


def test_a_part_of_the_statements_can_be_sampled_for_shadow_mode() -> None:
    stage = Stage(shadow=ShadowSection(fraction=0.25))
    one, chances = stage.session(), iter([0.24, 0.26])
    stage.shared.chance = lambda: next(chances)
    assert played(one.rewrite(SQL), []).beside is not None
    dispatch = played(one.rewrite(SQL), [*DESCRIBE, KEYS])
    assert (dispatch.beside, dispatch.text) == (None, NARROWED)


def beside(dispatch: Dispatch) -> list[str]:
    """What is asked beside a statement, up to the comparison."""
    assert dispatch.beside is not None
    answers, asked = dict([SETTINGS, *DESCRIBE, KEYS]), []
    with suppress(StopIteration):
        beside: Asking[None] = dispatch.beside()
        asked.append(beside.send(None).sql)
        while asked[-1] in answers:
            asked.append(beside.send(answers[asked[-1]]).sql)
    return asked


# --- work


def test_a_statement_that_would_take_too_long_to_plan_goes_on_as_it_came(stage: Stage) -> None:
    hostile = of_length(SHAPES["readers of a long CTE"], 24_000)
    is_left_alone(stage.session(), "TOO_INTRICATE", hostile, DESCRIBE)
