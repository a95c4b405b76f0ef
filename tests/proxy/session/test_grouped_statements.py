"""A session's decisions about tables of many small files: fewer splits, though nothing narrows their scans."""

import json
from collections.abc import Mapping

import pytest
from support.file_list_answers import TABLES
from support.iceberg_answers import DAYS_SNAPSHOT
from support.iceberg_answers import described as of_iceberg
from support.packing_answers import SETTINGS as PACKING
from support.packing_answers import plan
from support.played_sessions import DETAILS, Asking, Script, failed, played, rows, sent
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.rewriting import CatalogSection, FilesSection, RewriteSection, SplitsSection
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.key_check import KeyTerms
from proxy.operations.query import FailureKind, QueryResult
from proxy.session.catalog.file_index import FILES_WITH_ROW_GROUPS_MAX, files_query
from proxy.session.catalog.metadata_cache import MetadataCache
from proxy.session.explain.text import text
from proxy.session.explain.view import view
from proxy.session.feedback.cost_gate import CostGate, GateReport, StatementKey
from proxy.session.feedback.cost_model import GateVerdict
from proxy.session.feedback.spark_listings import SessionListings
from proxy.session.metrics import Metrics
from rewriter import Rule

FILES = 4_000
PLAIN = "SELECT v FROM t"
GROUPED = "(SELECT /*+ COALESCE(14) */ * FROM t) AS t"
JOINED = "SELECT v FROM t JOIN d ON t.x = d.x WHERE d.g = 1"
FILTERED = "SELECT v FROM t WHERE x = 5"
NAMED = tuple((name, value, "") for name, value in (("Catalog", "c"), ("Database", "d"), ("Table", "t")))


def described(size_bytes: int) -> tuple[str, QueryResult]:
    size = ("Statistics", f"{size_bytes} bytes", "")
    return "DESCRIBE TABLE EXTENDED `t`", rows(("x", "int", ""), ("v", "string", ""), *DETAILS, *NAMED, size)


T = described(FILES * 5_000)
SIZE_OF_T = ("Statistics", f"{FILES * 5_000} bytes", "")
D = ("DESCRIBE TABLE EXTENDED `d`", rows(("x", "int", ""), ("g", "int", ""), *DETAILS))
KEYS = "SELECT d.`x` AS key, typeof(d.`x`) AS type FROM d WHERE 'starpruner' IS NOT NULL AND (d.g = 1) LIMIT 5001"
TWO_SLOTS = ("EXPLAIN SELECT * FROM range(1)", plan("*(1) Range (0, 1, step=1, splits=2)"))
EXPLAIN = ("EXPLAIN SELECT * FROM `t`", plan("FileScan parquet c.d.t[v#1L]"))


def setting(name: str, value: str) -> tuple[str, QueryResult]:
    return f"SET {name}", rows((name, value))


FIXED: Script = [
    setting("spark.sql.thriftServer.incrementalCollect", "false"),
    setting("spark.dynamicAllocation.enabled", "false"),
    setting("spark.default.parallelism", "<undefined>"),
    setting("spark.sql.leafNodeDefaultParallelism", "<undefined>"),
]
PACKED: Script = [TWO_SLOTS, *PACKING[1:], *FIXED, EXPLAIN]


def indexed(files: int = FILES, size_bytes: int = FILES * 5_000) -> tuple[str, QueryResult]:
    return TABLES, rows(("c.d.t", files, size_bytes, 5))


def listed(files: int = FILES) -> tuple[str, QueryResult]:
    bounds = json.dumps({"x": {"type": "int", "low": "1", "high": "9", "nulls": 0}})
    settings, with_row_groups = FilesSection(index="s.files"), files <= FILES_WITH_ROW_GROUPS_MAX
    sql = files_query("c.d.t", settings, with_row_groups=with_row_groups).sql
    return sql, rows(*((f"file:/t/{number}", 5_000, 7, 10, bounds, None) for number in range(files)))


# The names of a statement are described in any case: they may be those of views.
DESCRIBED: Script = [indexed(), T]
BESIDE: Script = [listed(), *PACKED]


@pytest.fixture
def stage() -> Stage:
    return Stage(files=FilesSection(index="s.files"))


@pytest.fixture
def one(stage: Stage) -> TextSession:
    return stage.stranger()


@pytest.fixture
def learned(one: TextSession) -> TextSession:
    """A session that knows the files of the table, and how they are packed."""
    learn(one, PLAIN, DESCRIBED, BESIDE)
    return one


def learn(one: TextSession, sql: str, asked: Script, beside: Script) -> None:
    """Send a statement that goes as it came, and answer what is asked beside it."""
    dispatch = played(one.rewrite(sql), asked)
    assert dispatch.text == sql
    assert dispatch.beside is not None
    played(dispatch.beside(), beside)


def test_a_plain_scan_of_a_table_of_small_files_is_read_in_fewer_splits_once_these_are_known(
    learned: TextSession,
) -> None:
    dispatch = played(learned.rewrite(PLAIN), [])
    assert (dispatch.text, dispatch.beside) == (f"SELECT v FROM {GROUPED}", None)
    assert sent(learned.rewrite(f"{PLAIN} a"), []) == f"SELECT v FROM {GROUPED.removesuffix(' AS t')} a"


def test_while_one_statement_learns_others_neither_wait_nor_ask_the_same(one: TextSession) -> None:
    first = played(one.rewrite(PLAIN), DESCRIBED)
    second = played(one.rewrite(PLAIN), [])
    assert (second.text, second.beside) == (PLAIN, None)
    assert first.beside is not None
    played(first.beside(), BESIDE)
    assert GROUPED in sent(one.rewrite(PLAIN), [])


def test_an_answer_from_after_a_change_of_the_session_is_not_remembered(one: TextSession) -> None:
    dispatch = played(one.rewrite(PLAIN), DESCRIBED)
    assert dispatch.beside is not None
    beside: Asking[None] = dispatch.beside()
    assert beside.send(None).sql == listed()[0]
    sent(one.rewrite("SET spark.sql.ansi.enabled=false"), [])
    with pytest.raises(StopIteration):
        beside.send(listed()[1])


def test_what_is_known_of_splits_is_used_while_it_is_asked_for_again() -> None:
    stage = Stage(files=FilesSection(index="s.files"), catalog=CatalogSection(facts_ttl_s=3_600.0))
    one = stage.stranger()
    learn(one, PLAIN, DESCRIBED, BESIDE)
    stage.now = 350.0
    dispatch = played(one.rewrite(PLAIN), [])
    assert dispatch.text == f"SELECT v FROM {GROUPED}"
    assert dispatch.beside is not None
    played(dispatch.beside(), [indexed(), *PACKED])
    assert played(one.rewrite(PLAIN), []).beside is None


@pytest.mark.parametrize(
    ("sql", "now"),
    [
        ("SELECT sum(x) FROM t", ("x", "double", "")),
        ("SELECT max(x) FROM t", ("x", "double", "")),
        # Of equal texts, another spelling may be shown.
        ("SELECT v FROM t GROUP BY v", ("v", "string collate UTF8_LCASE", "")),
        ("SELECT DISTINCT v FROM t", ("v", "string collate UTF8_LCASE", "")),
    ],
)
def test_splits_are_not_grouped_by_descriptions_that_have_expired(
    stage: Stage, one: TextSession, sql: str, now: tuple[str, ...]
) -> None:
    learn(one, sql, DESCRIBED, BESIDE)
    assert GROUPED in sent(one.rewrite(sql), [])
    stage.now = 250.0
    # The table may have been replaced past the proxy.
    columns = {"x": ("x", "int", ""), "v": ("v", "string", ""), now[0]: now}
    learn(one, sql, [], [(T[0], rows(*columns.values(), *DETAILS, *NAMED, SIZE_OF_T))])
    assert sent(one.rewrite(sql), []) == sql


def test_splits_are_not_grouped_by_settings_that_have_expired(stage: Stage, learned: TextSession) -> None:
    stage.now = 50.0
    dispatch = played(learned.rewrite("INSERT INTO t VALUES (1, 'a')"), [])
    dispatch.on_outcome(Outcome(OutcomeKind.FINISHED, 0.1))
    # Its description is of now, and the settings are those of before.
    learn(learned, PLAIN, [], [T])
    assert GROUPED in sent(learned.rewrite(PLAIN), [])
    stage.now = 70.0
    learn(learned, PLAIN, [], [])


def test_a_statement_that_may_be_planned_by_expired_settings_is_not_grouped_by_them(stage: Stage) -> None:
    one, checked, keys = stage.session(), KeyTerms(may_be_checked=True), (KEYS, rows((5, "int")))
    played(one.rewrite(JOINED, checked), [D, T, indexed(), keys, listed(), *PACKED[:5], EXPLAIN])
    stage.now = 50.0
    for name in "dt":
        played(one.rewrite(f"INSERT INTO {name} VALUES (1, 2)"), []).on_outcome(FINISHED)
    learn(one, JOINED, [D, T, keys], FIXED)
    # Each file may hold the key: nothing narrows the scan.
    grouped = JOINED.replace("FROM t JOIN", f"FROM {GROUPED} JOIN")
    assert played(one.rewrite(JOINED, checked), []).text == grouped
    # Its keys and descriptions are current, and the settings have expired.
    stage.now = 70.0
    assert played(one.rewrite(JOINED, checked), []).text == JOINED


def test_while_a_statement_has_the_files_asked_for_the_next_one_is_not_left_alone_for_long(
    one: TextSession,
) -> None:
    first = played(one.rewrite(PLAIN), DESCRIBED)
    assert first.beside is not None
    beside: Asking[None] = first.beside()
    assert beside.send(None).sql == listed()[0]
    assert sent(one.rewrite(PLAIN), []) == PLAIN
    assert beside.send(listed()[1]).sql == PACKED[0][0]
    beside.close()
    assert not one.is_quick(PLAIN)


def test_what_is_forgotten_includes_that_statements_keep_their_splits() -> None:
    metadata = MetadataCache(CatalogSection(), lambda: 0.0).of_nobody_else()
    metadata.ungrouped.add(PLAIN)
    metadata.forget()
    assert not metadata.ungrouped.holds(PLAIN)


@pytest.mark.parametrize("kind", [FailureKind.DEADLINE, FailureKind.REJECTED])
def test_an_index_that_could_not_be_read_is_asked_again_beside_a_statement(
    stage: Stage, one: TextSession, kind: FailureKind
) -> None:
    assert sent(one.rewrite(PLAIN), [(TABLES, failed(kind)), T]) == PLAIN
    assert one.is_quick(PLAIN)
    stage.now = 301.0
    assert not one.is_quick(PLAIN)
    learn(one, PLAIN, [], [indexed(), T, *BESIDE])
    assert GROUPED in sent(one.rewrite(PLAIN), [])


OF_ICEBERG = ("DESCRIBE TABLE EXTENDED `t`", of_iceberg("c.d.t", ("x", "int"), ("v", "string")))
SUMMARY = "SELECT CAST(summary['total-data-files'] AS BIGINT), CAST(summary['total-files-size'] AS BIGINT) FROM"
PLANNED = ("EXPLAIN SELECT * FROM `t`", plan("BatchScan c.d.t[v#1L] IcebergScan(table=c.d.t, groupedBy=)"))


def summed_up(files: int, size_bytes: int) -> tuple[str, QueryResult]:
    return f"{SUMMARY} `c`.`d`.`t`.`snapshots` WHERE snapshot_id = {DAYS_SNAPSHOT}", rows((files, size_bytes))


SIZED = rows(*((f"file:/t/{number}", 5_000, 0, 10, "{}", None) for number in range(FILES)))
OF_MANY_FILES: Script = [
    summed_up(FILES, FILES * 5_000),
    ("SELECT file_path, file_size_in_bytes, 0L, record_count, '{}', NULL FROM `c`.`d`.`t`.`data_files`", SIZED),
    *PACKED[:-1],
    PLANNED,
]


def of_lake() -> tuple[Stage, TextSession]:
    """A proxy without an index, and its session that has described an Iceberg table."""
    stage = Stage()
    one = stage.stranger()
    assert sent(one.rewrite(PLAIN), [OF_ICEBERG]) == PLAIN
    return stage, one


def test_an_iceberg_table_of_small_files_is_read_in_fewer_splits_without_any_index() -> None:
    stage, one = of_lake()
    learn(one, PLAIN, [], OF_MANY_FILES)
    grouped = "SELECT v FROM (SELECT /*+ COALESCE(100) */ * FROM t) AS t"
    assert sent(one.rewrite(PLAIN), []) == grouped
    stage.now = 90.0
    # Not by a snapshot that has expired.
    learn(one, PLAIN, [], [OF_ICEBERG])
    assert sent(one.rewrite(PLAIN), []) == grouped


@pytest.mark.parametrize(("files", "size_bytes"), [(100, 100 << 30), (3, 15_000)])
def test_the_files_of_an_iceberg_table_are_not_listed_until_it_has_got_many_small_ones(
    files: int, size_bytes: int
) -> None:
    stage, one = of_lake()
    learn(one, PLAIN, [], [summed_up(files, size_bytes)])
    assert one.is_quick(PLAIN)
    stage.now = 301.0
    assert not one.is_quick(PLAIN)
    learn(one, PLAIN, [], [OF_ICEBERG, *OF_MANY_FILES])
    assert "COALESCE(100)" in sent(one.rewrite(PLAIN), [])


def test_an_iceberg_table_that_was_not_told_of_in_time_is_asked_again() -> None:
    stage, one = of_lake()
    learn(one, PLAIN, [], [(summed_up(0, 0)[0], failed(FailureKind.DEADLINE))])
    assert sent(one.rewrite(PLAIN), []) == PLAIN
    assert one.is_quick(PLAIN)
    stage.now = 61.0
    assert not one.is_quick(PLAIN)


@pytest.mark.parametrize(
    ("message", "falls_back"),
    [
        ("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", False),
        ("[DIVIDE_BY_ZERO] Division. SQLSTATE: 22012\n== SQL (line 1, position 8) ==\nSELECT 1 / 0", False),
        ("Query failed: [USER_RAISED_EXCEPTION] no SQLSTATE: P0001; line 1 pos 3", False),
        ("[UNRESOLVED_COLUMN] SQLSTATE: 42703", True),
        # A literal of the statement may look like a state.
        ("[SCHEMA_NOT_FOUND] x SQLSTATE: 42704\n== SQL ==\nSELECT 'SQLSTATE: 22012'", True),
        ("[UNRESOLVED_COLUMN] x SQLSTATE: 42703; line 1 pos 7;\nFilter (e = SQLSTATE: 22012)", True),
        ("Job aborted: java.lang.OutOfMemoryError, Filter (e = 'SQLSTATE: 22012')", True),
        ("Job aborted: java.lang.OutOfMemoryError, Filter (e = SQLSTATE: 22012)", True),
        ("[INTERNAL_ERROR] Filter (e = 'SQLSTATE: 22012')", True),
    ],
)
def test_a_statement_that_fails_by_its_own_data_is_not_run_twice(
    learned: TextSession, message: str, *, falls_back: bool
) -> None:
    dispatch = played(learned.rewrite(PLAIN), [])
    assert dispatch.may_fall_back
    assert dispatch.is_own_fault(message) is not falls_back


def test_a_statement_that_keeps_its_splits_is_not_parsed_over_and_over(learned: TextSession) -> None:
    first_rows = f"{PLAIN} LIMIT 3"
    assert not learned.is_quick(first_rows)
    assert sent(learned.rewrite(first_rows), []) == first_rows
    assert learned.is_quick(first_rows)
    # A user is told the reasons all the same.
    assert view(played(learned.explain(first_rows, run_key_queries=True), [])).scans


@pytest.mark.parametrize("index", [indexed(28), indexed(40, 40 << 30)], ids=["few", "large"])
def test_a_table_of_few_or_large_files_is_left_alone_by_a_look_at_the_text(
    one: TextSession, index: tuple[str, QueryResult]
) -> None:
    assert sent(one.rewrite(PLAIN), [index, T]) == PLAIN
    assert one.is_quick(PLAIN)
    assert sent(one.rewrite(PLAIN), []) == PLAIN


@pytest.mark.parametrize(
    "told",
    [
        [setting("spark.sql.thriftServer.incrementalCollect", "true")],
        [FIXED[0], setting("spark.dynamicAllocation.enabled", "true")],
        [*FIXED[:2], setting("spark.default.parallelism", "4")],
        [*FIXED[:3], setting("spark.sql.leafNodeDefaultParallelism", "2")],
        [(FIXED[0][0], failed(FailureKind.DEADLINE))],
    ],
    ids=[
        *("rows are fetched task by task", "executors may be added", "slots are told", "slots of scans are told"),
        "nothing is told",
    ],
)
def test_where_it_is_not_certain_how_many_tasks_run_at_once_a_plain_scan_is_left_alone(
    one: TextSession, told: Script
) -> None:
    learn(one, PLAIN, DESCRIBED, [listed(), TWO_SLOTS, *PACKING[1:], *told, EXPLAIN])
    assert sent(one.rewrite(PLAIN), []) == PLAIN


def test_of_the_sizes_of_few_files_nothing_is_fetched(one: TextSession) -> None:
    unusable = (KEYS, failed(FailureKind.REJECTED))
    assert sent(one.rewrite(JOINED), [D, T, indexed(28), unusable]) == JOINED


def test_where_the_index_has_expired_it_is_asked_again_beside_a_statement_that_names_no_small_files(
    stage: Stage, learned: TextSession
) -> None:
    assert sent(learned.rewrite("SELECT g FROM d"), [D]) == "SELECT g FROM d"
    assert learned.is_quick("SELECT g FROM d")
    stage.now = 1_000.0
    learn(learned, "SELECT g FROM d", [], [indexed()])
    assert learned.is_quick("SELECT g FROM d")
    assert not learned.is_quick(PLAIN)
    stage.now = 1_002.0
    learn(learned, PLAIN, [], [T, *PACKED])
    assert GROUPED in sent(learned.rewrite(PLAIN), [])


@pytest.mark.parametrize(
    "off",
    [
        {"splits": SplitsSection(enabled=False)},
        {"rewrite": RewriteSection(rules_off=(Rule.SPLITS,))},
        {"splits": SplitsSection(unnarrowed_scans=False)},
    ],
    ids=["by the section", "by the rule", "by its setting"],
)
def test_where_it_is_off_a_plain_scan_is_left_alone_by_a_look_at_the_text(off: Mapping[str, object]) -> None:
    one = Stage(files=FilesSection(index="s.files"), **off).stranger()
    assert sent(one.rewrite(PLAIN), [indexed(), T]) == PLAIN
    assert one.is_quick(PLAIN)
    assert sent(one.rewrite(PLAIN), []) == PLAIN


def test_where_keys_are_of_no_use_the_fact_is_read_in_fewer_splits(one: TextSession) -> None:
    keys = (KEYS, failed(FailureKind.REJECTED))
    learn(one, JOINED, [D, T, indexed(), keys], BESIDE)
    assert sent(one.rewrite(JOINED), [keys]) == JOINED.replace("FROM t JOIN", f"FROM {GROUPED} JOIN")


def test_where_keys_are_not_worth_asking_for_the_fact_is_read_in_fewer_splits_and_nothing_is_asked(
    one: TextSession,
) -> None:
    learn(one, JOINED, [D, described(FILES * 100), indexed(size_bytes=FILES * 100)], BESIDE)
    for number in range(20):
        sql = JOINED.replace("= 1", f"= {number}")
        dispatch = played(one.rewrite(sql), [])
        assert GROUPED in dispatch.text
        dispatch.on_outcome(Outcome(OutcomeKind.FINISHED, 0.1))


class LeavingGate(CostGate):
    """A gate that has seen that a rewrite of any statement is not worth it."""

    def report(self, subject: StatementKey, listings: SessionListings) -> GateReport:
        _ = subject, listings
        return GateReport(GateVerdict.ORIGINAL, "it was seen before")


@pytest.mark.parametrize("is_explained", [False, True])
def test_what_the_gate_leaves_alone_is_read_in_fewer_splits_by_no_keys(
    stage: Stage, *, is_explained: bool
) -> None:
    stage.shared.gate = LeavingGate(lambda: stage.now)
    one = stage.stranger()
    # Until the index was asked, nothing is known of small files, and the statement does not wait for that.
    learn(one, JOINED, [], [D, T, indexed(), *BESIDE])
    if is_explained:
        decision = played(one.explain(JOINED, run_key_queries=True), [])
        assert decision.gate_report is not None
        assert GROUPED in decision.text
    else:
        assert GROUPED in sent(one.rewrite(JOINED), [])


def test_a_filter_that_skips_too_few_files_leaves_the_hint_for_splits_alone(one: TextSession) -> None:
    # Files that a filter may skip are waited for, and not how many tasks there will be at once.
    learn(one, FILTERED, [*DESCRIBED, listed(), TWO_SLOTS, *PACKING[1:], EXPLAIN], FIXED)
    assert sent(one.rewrite(FILTERED), []) == f"SELECT v FROM {GROUPED} WHERE x = 5"


def test_who_explains_a_statement_takes_no_turn_to_learn(one: TextSession) -> None:
    decision = played(one.explain(FILTERED, run_key_queries=True), [*DESCRIBED, *BESIDE])
    assert GROUPED in decision.text
    assert decision.beside is None


def test_for_a_statement_that_writes_nothing_is_asked_about_splits(learned: TextSession) -> None:
    dispatch = played(learned.rewrite("INSERT INTO w SELECT v FROM t"), [])
    assert dispatch.beside is None
    assert not learned.is_quick(PLAIN)


def test_explain_and_metrics_tell_of_splits_before_and_after_and_why_nothing_is_narrowed(one: TextSession) -> None:
    decision = played(one.explain(PLAIN, run_key_queries=True), [*DESCRIBED, *BESIDE])
    found = view(decision)
    (scan,) = found.scans
    assert (scan.splits.before, scan.splits.after, scan.predicate) == (125, 14, None)
    lines = text(found).splitlines()
    assert lines[0] == "Scan of t: read in 14 tasks instead of 125"
    assert "  splits       125 before, 14 after" in lines
    assert any(line.startswith("  not narrowed ") for line in lines)
    metrics = Metrics()
    metrics.decided(decision.rewrite, None, 0.1)
    counts = metrics.exposition().decode()
    assert 'starpruner_scans_total{outcome="grouped"} 1.0' in counts, "and not as one that is left alone"
    assert "starpruner_skips_total{" not in counts


def test_the_gate_learns_nothing_from_a_statement_that_has_fewer_splits_alone(learned: TextSession) -> None:
    for _ in range(20):
        dispatch = played(learned.rewrite(PLAIN), [])
        assert GROUPED in dispatch.text
        dispatch.on_outcome(Outcome(OutcomeKind.FINISHED, 30.0))
