"""A session's decisions about tables of many small files: fewer splits, though nothing narrows their scans."""

import json

import pytest
from support.iceberg_answers import DAYS_SNAPSHOT
from support.iceberg_answers import described as of_iceberg
from support.packing_answers import SETTINGS as PACKING
from support.packing_answers import plan
from support.played_sessions import DETAILS, Script, failed, of, played, rows, sent
from support.text_session import TextSession

from proxy.config.config import Config
from proxy.config.rewriting import CatalogSection, FilesSection, RewriteSection, SplitsSection
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.query import FailureKind, QueryResult
from proxy.session.catalog.file_index import FILES_WITH_ROW_GROUPS_MAX, files_query
from proxy.session.catalog.metadata_cache import MetadataCache
from proxy.session.explain.text import text
from proxy.session.explain.view import view
from proxy.session.feedback.cost_gate import CostGate, GateReport, StatementKey
from proxy.session.feedback.cost_model import GateVerdict
from proxy.session.feedback.spark_listings import SessionListings
from proxy.session.metrics import Metrics
from proxy.session.shared_state import SharedState
from rewriter import Rule

FILES = 4_000
PLAIN = "SELECT v FROM t"
GROUPED = "(SELECT /*+ COALESCE(14) */ * FROM t) AS t"
JOINED = "SELECT v FROM t JOIN d ON t.x = d.x WHERE d.g = 1"
FILTERED = "SELECT v FROM t WHERE x = 5"
TABLES = (
    "SELECT table_name, count(*), sum(size_bytes), unix_micros(CAST(max(indexed_at) AS TIMESTAMP))"
    " FROM `s`.`files` GROUP BY table_name"
)
NAMED = tuple((name, value, "") for name, value in (("Catalog", "c"), ("Database", "d"), ("Table", "t")))


def described(size_bytes: int) -> tuple[str, QueryResult]:
    size = ("Statistics", f"{size_bytes} bytes", "")
    return "DESCRIBE TABLE EXTENDED `t`", rows(("x", "int", ""), ("v", "string", ""), *DETAILS, *NAMED, size)


T = described(FILES * 5_000)
SIZE_OF_T = ("Statistics", f"{FILES * 5_000} bytes", "")
D = ("DESCRIBE TABLE EXTENDED `d`", rows(("x", "int", ""), ("g", "int", ""), *DETAILS))
KEYS = "SELECT d.`x` AS key, typeof(d.`x`) AS type FROM d WHERE (d.g = 1) LIMIT 5001"
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
ON = SplitsSection()


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


def session(*, rewrite: RewriteSection | None = None, splits: SplitsSection | None = None) -> TextSession:
    files = FilesSection(index="s.files")
    return of(Config(files=files, rewrite=rewrite or RewriteSection(), splits=splits or ON))


def learn(one: TextSession, sql: str, asked: Script, beside: Script) -> None:
    """Send a statement that goes as it came, and answer what is asked beside it."""
    dispatch = played(one.rewrite(sql), asked)
    assert dispatch.text == sql
    assert dispatch.beside is not None
    played(dispatch.beside, beside)


def test_a_plain_scan_of_a_table_of_small_files_is_read_in_fewer_splits_once_these_are_known() -> None:
    one = session()
    learn(one, PLAIN, DESCRIBED, BESIDE)
    dispatch = played(one.rewrite(PLAIN), [])
    assert (dispatch.text, dispatch.beside) == (f"SELECT v FROM {GROUPED}", None)
    assert sent(one.rewrite(f"{PLAIN} a"), []) == f"SELECT v FROM {GROUPED.removesuffix(' AS t')} a"


def test_while_one_statement_learns_others_neither_wait_nor_ask_the_same() -> None:
    one = session()
    first = played(one.rewrite(PLAIN), DESCRIBED)
    second = played(one.rewrite(PLAIN), [])
    assert (second.text, second.beside) == (PLAIN, None)
    assert first.beside is not None
    played(first.beside, BESIDE)
    assert GROUPED in sent(one.rewrite(PLAIN), [])


def test_an_answer_from_after_a_change_of_the_session_is_not_remembered() -> None:
    one = session()
    dispatch = played(one.rewrite(PLAIN), DESCRIBED)
    assert dispatch.beside is not None
    assert next(dispatch.beside).sql == listed()[0]
    sent(one.rewrite("SET spark.sql.ansi.enabled=false"), [])
    with pytest.raises(StopIteration):
        dispatch.beside.send(listed()[1])


def test_what_is_known_of_splits_is_used_while_it_is_asked_for_again() -> None:
    now = 0.0
    shared = SharedState.of(Config(files=FilesSection(index="s.files"), splits=ON), lambda: now)
    one = TextSession(shared)
    learn(one, PLAIN, DESCRIBED, BESIDE)
    now = 350.0
    dispatch = played(one.rewrite(PLAIN), [])
    assert dispatch.text == f"SELECT v FROM {GROUPED}"
    assert dispatch.beside is not None
    played(dispatch.beside, [indexed(), T, *PACKED])
    assert played(one.rewrite(PLAIN), []).beside is None


@pytest.mark.parametrize("shown", ["sum(x)", "max(x)"])
def test_answers_that_depend_on_types_are_not_grouped_by_types_that_have_expired(shown: str) -> None:
    now, sums = 0.0, f"SELECT {shown} FROM t"
    shared = SharedState.of(Config(files=FilesSection(index="s.files"), splits=ON), lambda: now)
    one = TextSession(shared)
    learn(one, sums, DESCRIBED, BESIDE)
    assert GROUPED in sent(one.rewrite(sums), [])
    now = 250.0
    # The table may have been replaced past the proxy.
    as_doubles = rows(("x", "double", ""), ("v", "string", ""), *DETAILS, *NAMED, SIZE_OF_T)
    learn(one, sums, [], [(T[0], as_doubles)])
    assert sent(one.rewrite(sums), []) == sums


def test_while_a_statement_has_the_files_asked_for_the_next_one_is_not_left_alone_for_long() -> None:
    one = session()
    first = played(one.rewrite(PLAIN), DESCRIBED)
    assert first.beside is not None
    assert next(first.beside).sql == listed()[0]
    assert sent(one.rewrite(PLAIN), []) == PLAIN
    assert first.beside.send(listed()[1]).sql == PACKED[0][0]
    first.beside.close()
    assert not one.is_quick(PLAIN)


def test_what_is_forgotten_includes_that_statements_keep_their_splits() -> None:
    metadata = MetadataCache(CatalogSection(), lambda: 0.0).of_nobody_else()
    metadata.ungrouped.add(PLAIN)
    metadata.forget()
    assert not metadata.ungrouped.holds(PLAIN)


@pytest.mark.parametrize("kind", [FailureKind.DEADLINE, FailureKind.REJECTED])
def test_an_index_that_could_not_be_read_is_asked_again_beside_a_statement(kind: FailureKind) -> None:
    now = 0.0
    shared = SharedState.of(Config(files=FilesSection(index="s.files"), splits=ON), lambda: now)
    one = TextSession(shared)
    assert sent(one.rewrite(PLAIN), [(TABLES, failed(kind)), T]) == PLAIN
    assert one.is_quick(PLAIN)
    now = 301.0
    assert not one.is_quick(PLAIN)
    learn(one, PLAIN, [], [indexed(), T, *BESIDE])
    assert GROUPED in sent(one.rewrite(PLAIN), [])


OF_ICEBERG = ("DESCRIBE TABLE EXTENDED `t`", of_iceberg("c.d.t", ("x", "int"), ("v", "string")))
SUMMARY = "SELECT CAST(summary['total-data-files'] AS BIGINT), CAST(summary['total-files-size'] AS BIGINT) FROM"
SIZES = "SELECT file_path, file_size_in_bytes, 0L, record_count, '{}', NULL FROM"
PLANNED = ("EXPLAIN SELECT * FROM `t`", plan("BatchScan c.d.t[v#1L] IcebergScan(table=c.d.t, groupedBy=)"))


def summed_up(name: str, files: int, size_bytes: int) -> tuple[str, QueryResult]:
    return f"{SUMMARY} {name}.`snapshots` WHERE snapshot_id = {DAYS_SNAPSHOT}", rows((files, size_bytes))


def sized(name: str, files: int) -> tuple[str, QueryResult]:
    found = rows(*((f"file:/t/{number}", 5_000, 0, 10, "{}", None) for number in range(files)))
    return f"{SIZES} {name}.`data_files`", found


def test_an_iceberg_table_of_small_files_is_read_in_fewer_splits_without_any_index() -> None:
    one = of(Config(splits=ON))
    assert sent(one.rewrite(PLAIN), [OF_ICEBERG]) == PLAIN
    name = "`c`.`d`.`t`"
    asked = [summed_up(name, FILES, FILES * 5_000), sized(name, FILES), *PACKED[:-1], PLANNED]
    learn(one, PLAIN, [], asked)
    assert sent(one.rewrite(PLAIN), []) == "SELECT v FROM (SELECT /*+ COALESCE(100) */ * FROM t) AS t"


def test_the_files_of_an_iceberg_table_of_large_files_are_not_listed() -> None:
    one = of(Config(splits=ON))
    assert sent(one.rewrite(PLAIN), [OF_ICEBERG]) == PLAIN
    learn(one, PLAIN, [], [summed_up("`c`.`d`.`t`", 100, 100 << 30)])
    assert one.is_quick(PLAIN)


def test_an_iceberg_table_that_has_got_many_small_files_is_asked_again_in_time() -> None:
    now, name = 0.0, "`c`.`d`.`t`"
    one = TextSession(SharedState.of(Config(splits=ON), lambda: now))
    assert sent(one.rewrite(PLAIN), [OF_ICEBERG]) == PLAIN
    learn(one, PLAIN, [], [summed_up(name, 3, 15_000)])
    assert one.is_quick(PLAIN)
    now = 301.0
    assert not one.is_quick(PLAIN)
    asked = [OF_ICEBERG, summed_up(name, FILES, FILES * 5_000), sized(name, FILES), *PACKED[:-1], PLANNED]
    learn(one, PLAIN, [], asked)
    assert "COALESCE(100)" in sent(one.rewrite(PLAIN), [])


def test_an_iceberg_table_that_was_not_told_of_in_time_is_asked_again() -> None:
    now, name = 0.0, "`c`.`d`.`t`"
    one = TextSession(SharedState.of(Config(splits=ON), lambda: now))
    assert sent(one.rewrite(PLAIN), [OF_ICEBERG]) == PLAIN
    learn(one, PLAIN, [], [(summed_up(name, 0, 0)[0], failed(FailureKind.DEADLINE))])
    assert sent(one.rewrite(PLAIN), []) == PLAIN
    assert one.is_quick(PLAIN)
    now = 61.0
    assert not one.is_quick(PLAIN)


def test_an_iceberg_table_is_not_grouped_by_a_snapshot_that_has_expired() -> None:
    now, name = 0.0, "`c`.`d`.`t`"
    one = TextSession(SharedState.of(Config(splits=ON), lambda: now))
    assert sent(one.rewrite(PLAIN), [OF_ICEBERG]) == PLAIN
    learn(one, PLAIN, [], [summed_up(name, FILES, FILES * 5_000), sized(name, FILES), *PACKED[:-1], PLANNED])
    now = 90.0
    learn(one, PLAIN, [], [OF_ICEBERG])
    assert "COALESCE(100)" in sent(one.rewrite(PLAIN), [])


@pytest.mark.parametrize(
    ("message", "falls_back"),
    [
        ("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", False),
        (
            "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL (line 1, position 8) ==\nSELECT 1 / 0",
            False,
        ),
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
def test_a_statement_that_fails_by_its_own_data_is_not_run_twice(message: str, *, falls_back: bool) -> None:
    one = session()
    learn(one, PLAIN, DESCRIBED, BESIDE)
    dispatch = played(one.rewrite(PLAIN), [])
    assert dispatch.may_fall_back
    assert dispatch.is_own_fault(message) is not falls_back


def test_a_statement_that_keeps_its_splits_is_not_parsed_over_and_over() -> None:
    one = session()
    learn(one, PLAIN, DESCRIBED, BESIDE)
    first_rows = f"{PLAIN} LIMIT 3"
    assert not one.is_quick(first_rows)
    assert sent(one.rewrite(first_rows), []) == first_rows
    assert one.is_quick(first_rows)
    # A user is told the reasons all the same.
    assert view(played(one.explain(first_rows, run_key_queries=True), [])).scans


@pytest.mark.parametrize("index", [indexed(28), indexed(40, 40 << 30)], ids=["few", "large"])
def test_a_table_of_few_or_large_files_is_left_alone_by_a_look_at_the_text(index: tuple[str, QueryResult]) -> None:
    one = session()
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
        "rows are fetched task by task",
        "executors may be added",
        "slots are told",
        "slots of scans are told",
        "nothing is told",
    ],
)
def test_where_it_is_not_certain_how_many_tasks_run_at_once_a_plain_scan_is_left_alone(told: Script) -> None:
    one = session()
    learn(one, PLAIN, DESCRIBED, [listed(), TWO_SLOTS, *PACKING[1:], *told, EXPLAIN])
    assert sent(one.rewrite(PLAIN), []) == PLAIN


def test_of_the_sizes_of_few_files_nothing_is_fetched() -> None:
    one = session()
    unusable = (KEYS, failed(FailureKind.REJECTED))
    assert sent(one.rewrite(JOINED), [D, T, indexed(28), unusable]) == JOINED


def test_where_the_index_has_expired_it_is_asked_again_beside_a_statement_that_names_no_small_files() -> None:
    now = 0.0
    shared = SharedState.of(Config(files=FilesSection(index="s.files"), splits=ON), lambda: now)
    one = TextSession(shared)
    learn(one, PLAIN, DESCRIBED, BESIDE)
    assert sent(one.rewrite("SELECT g FROM d"), [D]) == "SELECT g FROM d"
    assert one.is_quick("SELECT g FROM d")
    now = 1_000.0
    learn(one, "SELECT g FROM d", [], [indexed()])
    assert one.is_quick("SELECT g FROM d")
    assert not one.is_quick(PLAIN)
    now = 1_002.0
    learn(one, PLAIN, [], [T, *PACKED])
    assert GROUPED in sent(one.rewrite(PLAIN), [])


@pytest.mark.parametrize(
    "one",
    [
        session(splits=SplitsSection(enabled=False)),
        session(rewrite=RewriteSection(rules_off=(Rule.SPLITS,))),
        session(splits=SplitsSection(unnarrowed_scans=False)),
    ],
    ids=["by the section", "by the rule", "by its setting"],
)
def test_where_it_is_off_a_plain_scan_is_left_alone_by_a_look_at_the_text(one: TextSession) -> None:
    assert sent(one.rewrite(PLAIN), [indexed(), T]) == PLAIN
    assert one.is_quick(PLAIN)
    assert sent(one.rewrite(PLAIN), []) == PLAIN


def test_where_keys_are_of_no_use_the_fact_is_read_in_fewer_splits() -> None:
    one, keys = session(), (KEYS, failed(FailureKind.REJECTED))
    learn(one, JOINED, [D, T, indexed(), keys], BESIDE)
    assert sent(one.rewrite(JOINED), [keys]) == JOINED.replace("FROM t JOIN", f"FROM {GROUPED} JOIN")


def test_where_keys_are_not_worth_asking_for_the_fact_is_read_in_fewer_splits_and_nothing_is_asked() -> None:
    one, tiny = session(), indexed(size_bytes=FILES * 100)
    learn(one, JOINED, [D, described(FILES * 100), tiny], BESIDE)
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
def test_what_the_gate_leaves_alone_is_read_in_fewer_splits_by_no_keys(*, is_explained: bool) -> None:
    clock = lambda: 0.0  # noqa: E731
    shared = SharedState.of(Config(files=FilesSection(index="s.files"), splits=ON), clock)
    shared.gate = LeavingGate(clock)
    one = TextSession(shared)
    # Until the index was asked, nothing is known of small files, and the statement does not wait for that.
    learn(one, JOINED, [], [D, T, indexed(), *BESIDE])
    if is_explained:
        decision = played(one.explain(JOINED, run_key_queries=True), [])
        assert decision.gate_report is not None
        assert GROUPED in decision.text
    else:
        assert GROUPED in sent(one.rewrite(JOINED), [])


def test_a_filter_that_skips_too_few_files_leaves_the_hint_for_splits_alone() -> None:
    one = session()
    # Files that a filter may skip are waited for, and not how many tasks there will be at once.
    learn(one, FILTERED, [*DESCRIBED, listed(), TWO_SLOTS, *PACKING[1:], EXPLAIN], FIXED)
    assert sent(one.rewrite(FILTERED), []) == f"SELECT v FROM {GROUPED} WHERE x = 5"


def test_for_a_statement_that_writes_nothing_is_asked_about_splits() -> None:
    one = session()
    learn(one, PLAIN, DESCRIBED, BESIDE)
    dispatch = played(one.rewrite("INSERT INTO w SELECT v FROM t"), [])
    assert dispatch.beside is None
    assert not one.is_quick(PLAIN)


def test_explain_tells_splits_before_and_after_and_why_nothing_is_narrowed() -> None:
    found = view(played(session().explain(PLAIN, run_key_queries=True), [*DESCRIBED, *BESIDE]))
    (scan,) = found.scans
    assert (scan.splits.before, scan.splits.after, scan.predicate) == (125, 14, None)
    lines = text(found).splitlines()
    assert lines[0] == "Scan of t: read in 14 tasks instead of 125"
    assert "  splits       125 before, 14 after" in lines
    assert any(line.startswith("  not narrowed ") for line in lines)


def test_the_gate_learns_nothing_from_a_statement_that_has_fewer_splits_alone() -> None:
    one = session()
    learn(one, PLAIN, DESCRIBED, BESIDE)
    for _ in range(20):
        dispatch = played(one.rewrite(PLAIN), [])
        assert GROUPED in dispatch.text
        dispatch.on_outcome(Outcome(OutcomeKind.FINISHED, 30.0))


def test_a_scan_with_fewer_splits_alone_counts_as_grouped_and_not_as_left_alone() -> None:
    metrics = Metrics()
    metrics.decided(
        played(session().explain(PLAIN, run_key_queries=True), [*DESCRIBED, *BESIDE]).rewrite, None, 0.1
    )
    counts = metrics.exposition().decode()
    assert 'starpruner_scans_total{outcome="grouped"} 1.0' in counts
    assert "starpruner_skips_total{" not in counts
