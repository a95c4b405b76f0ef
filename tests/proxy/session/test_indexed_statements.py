"""A session's decisions where files are indexed: what it asks, and which files its statements skip."""

import json

import pytest
from support.file_list_answers import FILES as FILES_SQL
from support.file_list_answers import TABLES
from support.played_sessions import (
    DETAILS,
    IDENTITY,
    PARTITION_INFORMATION,
    Script,
    failed,
    of,
    played,
    rows,
    sent,
)
from support.text_session import FINISHED, Stage, TextSession

from proxy.config.config import Config
from proxy.config.rewriting import FilesSection, RewriteSection
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.query import FailureKind
from proxy.session.explain.text import text
from proxy.session.explain.view import view
from rewriter import Rule

FILTERED = "SELECT v FROM t WHERE x = 5"
INDEXED = (TABLES, rows(("c.d.t", 2, 3_000_000_000, 5)))
NAMED = tuple((name, value, "") for name, value in (("Catalog", "c"), ("Database", "d"), ("Table", "t")))
T = ("DESCRIBE TABLE EXTENDED `t`", rows(("x", "int", ""), ("v", "string", ""), *DETAILS, *NAMED))


def a_file(path: str, low: int, high: int) -> tuple[str, int, int, int, str, None]:
    bounds = {"type": "int", "low": str(low), "high": str(high), "nulls": 0}
    return path, 1_500_000_000, 7, 10, json.dumps({"x": bounds}), None


FILES = (FILES_SQL, rows(a_file("file:/t/a", 1, 4), a_file("file:/t/b", 5, 9)))
ASKED: Script = [INDEXED, T, FILES]
HINT = "NOT IN ('file:/t/a|1500000000|7')"
SMALL = ("DESCRIBE TABLE EXTENDED `d`", rows(("x", "int", ""), ("g", "int", ""), *DETAILS))
JOINED = "SELECT v FROM t JOIN d ON t.x = d.x WHERE d.g = 1"
KEYS = (
    "SELECT d.`x` AS key, typeof(d.`x`) AS type FROM d WHERE 'starpruner' IS NOT NULL AND (d.g = 1) LIMIT 5001",
    rows((6, "int"), (7, "int")),
)


def session(*, index: str = "s.files", rewrite: RewriteSection | None = None) -> TextSession:
    return of(Config(files=FilesSection(index=index), rewrite=rewrite or RewriteSection()))


def test_a_filter_on_an_indexed_column_skips_the_files_without_its_values() -> None:
    one = session()
    narrowed = sent(one.rewrite(FILTERED), ASKED)
    assert HINT in narrowed
    assert narrowed.endswith(") AS t WHERE x = 5")
    # Everything is known by now.
    assert sent(one.rewrite(FILTERED), []) == narrowed


def test_a_filter_that_every_file_may_satisfy_changes_nothing() -> None:
    sql = FILTERED.replace("= 5", "> 0")
    assert sent(session().rewrite(sql), ASKED) == sql


def test_a_join_skips_the_files_without_its_keys() -> None:
    one = session()
    narrowed = sent(one.rewrite(JOINED), [SMALL, T, INDEXED, KEYS, FILES])
    assert HINT in narrowed
    assert sent(one.rewrite(JOINED), [KEYS]) == narrowed


def test_without_a_file_index_nothing_is_asked_of_a_statement_that_joins_nothing_and_reads_a_known_table() -> None:
    one = session(index="")
    assert sent(one.rewrite(FILTERED), [T]) == FILTERED
    assert one.is_quick(FILTERED)
    assert sent(one.rewrite(FILTERED), []) == FILTERED


def test_without_a_file_index_and_view_joins_nothing_is_asked_of_a_statement_that_joins_nothing() -> None:
    one = session(index="", rewrite=RewriteSection(rules_off=(Rule.VIEW_JOINS,)))
    assert one.is_quick(FILTERED)
    assert sent(one.rewrite(FILTERED), []) == FILTERED


@pytest.mark.parametrize(
    "script",
    [[(TABLES, failed(FailureKind.REJECTED)), T], [*ASKED[:2], (FILES_SQL, failed(FailureKind.DEADLINE))]],
    ids=["who may not read the index", "rows that cannot be had"],
)
def test_where_the_index_cannot_be_read_there_are_no_hints_and_it_is_not_asked_again(script: Script) -> None:
    one = session()
    assert sent(one.rewrite(FILTERED), script) == FILTERED
    assert sent(one.rewrite(FILTERED), []) == FILTERED


@pytest.mark.parametrize("sql", ["SELECT 1", "SELECT * FROM other WHERE x = 5", "SELECT v FROM t", "SHOW TABLES"])
def test_of_a_statement_without_a_filter_on_an_indexed_table_nothing_is_asked(sql: str) -> None:
    one = session()
    sent(one.rewrite(FILTERED), ASKED)
    other = ("DESCRIBE TABLE EXTENDED `other`", T[1])
    _ = sent(one.rewrite("SELECT y FROM other"), [other])
    assert one.is_quick(sql)
    assert sent(one.rewrite(sql), []) == sql


@pytest.mark.parametrize(("sql", "is_quick"), [(FILTERED, False), (JOINED, False), ("SELECT 1", True)])
def test_until_it_is_known_what_is_indexed_any_filter_is_looked_into(sql: str, is_quick: bool) -> None:  # noqa: FBT001
    assert session().is_quick(sql) is is_quick


def test_a_statement_that_names_the_index_itself_has_it_asked_again() -> None:
    one = session()
    sent(one.rewrite(FILTERED), ASKED)
    played(one.rewrite("INSERT INTO s.files VALUES (1)"), []).on_outcome(FINISHED)
    assert HINT in sent(one.rewrite(FILTERED), [INDEXED])
    played(one.rewrite("INSERT INTO t VALUES (5, 'v')"), []).on_outcome(FINISHED)
    assert HINT in sent(one.rewrite(FILTERED), [T]), "a write to the table lets no files be fetched again"


def test_file_hints_can_be_switched_off() -> None:
    one = session(rewrite=RewriteSection(rules_off=(Rule.FILE_HINTS, Rule.RANGE_IN)))
    assert sent(one.rewrite(FILTERED), ASKED[:2]) == FILTERED


def test_a_table_that_is_read_in_no_time_is_not_worth_its_index() -> None:
    small = (TABLES, rows(("c.d.t", 2, 3_000, 5)))
    assert sent(session().rewrite(FILTERED), [small, T]) == FILTERED


def test_few_small_files_are_not_worth_narrowing_a_filter_that_spark_skips_row_groups_by() -> None:
    small = [(path, 400_000_000, *rest) for path, _, *rest in FILES[1].rows]
    one = session()
    assert sent(one.rewrite(FILTERED), [*ASKED[:2], (FILES_SQL, rows(*small))]) == FILTERED
    without_gate = session(rewrite=RewriteSection(cost_gate=False))
    assert "_metadata" in sent(without_gate.rewrite(FILTERED), [*ASKED[:2], (FILES_SQL, rows(*small))])


def test_statements_with_filters_alone_are_not_weighed_against_asking_for_keys() -> None:
    one = session()
    for _ in range(20):
        dispatch = played(one.rewrite(FILTERED), ASKED if _ == 0 else [])
        assert HINT in dispatch.text
        dispatch.on_outcome(Outcome(OutcomeKind.FINISHED, 30.0))


def test_explain_counts_the_files_and_bytes_that_are_kept() -> None:
    found = view(played(session().explain(FILTERED, run_key_queries=True), ASKED))
    (scan,) = found.scans
    assert found.changed
    assert (scan.files.total, scan.files.kept) == (2, 1)
    assert (scan.bytes.total, scan.bytes.kept) == (3_000_000_000, 1_500_000_000)
    assert HINT in (scan.predicate or "")
    assert found.cost_report is None


def test_explain_counts_the_row_groups_that_are_kept_where_every_file_holds_a_key() -> None:
    runs = [{"low": str(low), "high": str(low + 99), "count": 10, "steps": 10} for low in range(0, 1_000, 100)]
    bounds = {"x": {"type": "int", "low": "0", "high": "999", "nulls": 0, "row_groups": runs}}
    files = rows(*((f"file:/t/{name}", 1_500_000_000, 7, 10**7, json.dumps(bounds), None) for name in "ab"))
    script: Script = [SMALL, T, INDEXED, KEYS, (FILES_SQL, files)]
    (scan, _) = view(played(session().explain(JOINED, run_key_queries=True), script)).scans
    assert scan.predicate == "(`x` IN (6, 7) OR typeof(`x`) <> 'int')"
    assert (scan.files.total, scan.files.kept) == (2, 2)
    assert (scan.row_groups.total, scan.row_groups.kept) == (200, 2)


def test_the_text_of_explain_says_how_many_files_are_skipped_instead_of_their_names() -> None:
    names = [*(f"file:/t/{name}" for name in ("a", "it's", "c")), "file:/t/z"]
    files = (FILES_SQL, rows(*(a_file(name, 5 * (name[-1] == "z"), 9 * (name[-1] == "z")) for name in names)))
    explained = text(view(played(session().explain(FILTERED, run_key_queries=True), [*ASKED[:2], files])))
    assert explained.count("AS STRING)) NOT IN (.. 3 ..)") == 2
    assert "file:/t/" not in explained
    assert "files        1 of 4 kept, 1,500.0 MB of 6,000.0 MB" in explained


def test_a_file_index_tells_of_partition_columns_too() -> None:
    partitioned = rows(
        ("x", "int", ""), ("ds", "string", ""), *PARTITION_INFORMATION, *DETAILS, *NAMED, *IDENTITY[3:]
    )
    one = session()
    script: Script = [INDEXED, (T[0], partitioned), FILES]
    assert HINT in sent(one.rewrite("SELECT x FROM t WHERE x = 5 AND ds = 'a'"), script)


def test_a_reload_that_names_another_index_counts_at_once() -> None:
    stage = Stage(files=FilesSection(index="s.files"))
    one, shared = stage.stranger(), stage.shared
    sent(one.rewrite(FILTERED), ASKED)
    assert shared.reload(Config(files=FilesSection(index="s.others"))) == ()
    others = (TABLES.replace("files", "others"), rows())
    assert sent(one.rewrite(FILTERED), [others, T]) == FILTERED
    assert shared.reload(Config()) == ()
    assert sent(one.rewrite(FILTERED), [T]) == FILTERED
    assert one.is_quick(FILTERED)
