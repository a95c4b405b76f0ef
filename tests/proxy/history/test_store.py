"""The file of the history: its bounds, its damages, and several processes that write it."""

import multiprocessing
import re
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from support.histories import left_alone, record, scan

from proxy import history
from proxy.history.digests import RunTimes, TimeSpan, digests
from proxy.history.groups import GROUPED_BY, By, Group, groups
from proxy.history.queries import Filter, HistoryError, HistoryReader, midnight, today
from proxy.history.record import Record, ShadowRecord
from proxy.history.store import FILE_NAME, SCHEMA_VERSION, Store, StoreError
from proxy.session.explain.view import LimitView

ROOM = 4_000_000
# MATERIALIZED and RETURNING came with 3.35, UPDATE .. FROM before it, STRICT after it.
_NEWER_WORDS = re.compile(r"MATERIALIZED|RETURNING|\)\s*STRICT\b|UPDATE[^;]*\bSET\b[^;\"]*\bFROM\b")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path, bytes_max=ROOM)) as opened:
        yield opened


def reader(directory: Path) -> HistoryReader:
    return HistoryReader(directory / FILE_NAME)


def texts(directory: Path, wanted: Filter | None = None) -> list[str]:
    return [line.excerpt for line in reader(directory).statements(wanted or Filter()).statements]


def test_a_statement_is_found_after_a_restart(tmp_path: Path) -> None:
    one = record(message="it said so", shadow=ShadowRecord("equal", "", 2.0))
    store = Store(tmp_path, bytes_max=ROOM)
    store.add([one])
    store.close()
    Store(tmp_path, bytes_max=ROOM).close()
    assert reader(tmp_path).statement(one.id, None) == one
    assert reader(tmp_path).statement(one.id, "bob") is None
    assert reader(tmp_path).statement("nothing", None) is None


def test_a_statement_is_found_by_its_id_and_by_those_of_spark(store: Store, tmp_path: Path) -> None:
    first, second = "5f0c0a52-1111-4222-8333-0123456789ab", "5f0c0a52-1111-4222-8333-0123456789ac"
    fallen_back = record(spark_ids=[first, second])
    store.add([record(), fallen_back])
    for wanted in (first, second, fallen_back.id):
        (line,) = reader(tmp_path).statements(Filter(text=wanted)).statements
        assert line.id == fallen_back.id
    assert reader(tmp_path).statements(Filter(text=second, seen_by="bob")).statements == []
    store.delete_before(time.time() + 60)
    assert reader(tmp_path).statements(Filter(text=second)).statements == []


def test_a_file_of_before_the_first_release_is_put_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.executescript("CREATE TABLE statements (id TEXT); PRAGMA user_version = 6")
    store = Store(tmp_path, bytes_max=ROOM)
    store.add([record()])
    store.close()
    assert len(texts(tmp_path)) == 1
    assert "schema 6 is of before the first release" in caplog.text
    with closing(sqlite3.connect((tmp_path / FILE_NAME).with_suffix(".damaged"))) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (6,)


def test_statements_are_found_by_a_limit_that_they_met(store: Store, tmp_path: Path) -> None:
    met = [LimitView(name, table, "warned", "") for name, table in (("wide", "a"), ("wide", "b"), ("deep", "b"))]
    both, deep = record(limits=met, user="bob"), record(limits=met[2:])
    store.add([both, record(), deep])

    def found(name: str, **others: Any) -> list[str]:
        lines = reader(tmp_path).statements(Filter(limit_met=name, **others)).statements
        return [line.id for line in lines]

    assert (found("deep"), found("wide"), found("Wide")) == ([deep.id, both.id], [both.id], [])
    assert (found("deep", seen_by="bob"), found("wide", user="ann")) == ([both.id], [])
    store.delete_before(time.time() + 60)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        assert connection.execute("SELECT count(*) FROM limits_met").fetchone() == (0,)


def test_nobody_else_may_read_the_file(tmp_path: Path) -> None:
    store = Store(tmp_path / "new", bytes_max=ROOM)
    store.add([record()])
    for path in (tmp_path / "new").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    store.close()


def test_statements_are_found_by_user_outcome_reason_table_and_text(store: Store, tmp_path: Path) -> None:
    at = time.time()
    store.add(
        [
            record(at=at - 3, original="SELECT 'ann_s' FROM sales"),
            left_alone(
                at=at - 2,
                user="bob",
                original="SELECT 50% FROM returns",
                scans=[scan("returns", skip="TYPES_DIFFER")],
            ),
            left_alone(at=at - 1, original="SELECT 1", skip_reason="NO_JOIN_IN_TEXT", scans=[]),
        ]
    )
    assert texts(tmp_path) == ["SELECT 1", "SELECT 50% FROM returns", "SELECT 'ann_s' FROM sales"]
    assert texts(tmp_path, Filter(seen_by="bob", user="ann")) == []
    for wanted in (Filter(outcome="rewritten"), Filter(text="n_s")):
        assert texts(tmp_path, wanted) == ["SELECT 'ann_s' FROM sales"]
    of_returns: dict[str, Any] = {"seen_by": "bob", "reason": "TYPES_DIFFER", "table": "Returns", "text": "50%"}
    for name, value in of_returns.items():
        assert texts(tmp_path, Filter(**{name: value})) == ["SELECT 50% FROM returns"], name
    assert texts(tmp_path, Filter(since=at - 1.5)) == ["SELECT 1"]
    assert texts(tmp_path, Filter(since=at - 2.5, until=at - 1.5)) == ["SELECT 50% FROM returns"]
    store.add([record(at=at, original="SELECT 3", client="10.0.0.9", label="board", deciding_s=0.5, run_s=2.5)])
    for wanted in (Filter(client="10.0.0.9"), Filter(label="board"), Filter(least_s=3.0)):
        assert texts(tmp_path, wanted) == ["SELECT 3"]
    assert texts(tmp_path, Filter(least_s=3.1)) == []


def test_both_runs_of_one_that_fell_back_count(store: Store, tmp_path: Path) -> None:
    kept = record(deciding_s=0.5, run_s=1.0, outcome="fallback", fallback_s=2.5)
    store.add([kept, record(deciding_s=0.5, run_s=3.0)])
    slower, _ = reader(tmp_path).statements(Filter(order="slowest"), 2).statements
    assert (slower.id, slower.total_s) == (kept.id, 4.0)
    assert [group.seconds for group in reader(tmp_path).groups(Filter(), "user")] == [7.5]


@pytest.mark.parametrize("order", ["newest", "slowest"])
def test_pages_follow_one_another_without_a_gap(store: Store, tmp_path: Path, order: Any) -> None:
    # Many took equally long, as 0.1 + 0.2 says; of one the time is not known.
    kept = [record(at=1_000 + n, deciding_s=0.1, run_s=[0.2, 7.0, None][n % 3]) for n in range(25)]
    store.add(kept)
    seen: list[str] = []
    before: str | None = ""
    while before is not None:
        page = reader(tmp_path).statements(Filter(before=before, order=order), 4)
        seen += [line.id for line in page.statements]
        before = page.next
    totals = {one.id: one.run_s or 0.0 for one in kept if order == "slowest"}
    assert seen == sorted((one.id for one in kept), key=lambda name: (totals.get(name), name), reverse=True)
    for odd in ("nothing", "nan~", "inf~x", "~", "1e999~'", "é~\0"):
        reader(tmp_path).statements(Filter(before=odd, order=order))


def test_sums_count_only_what_was_measured(store: Store, tmp_path: Path) -> None:
    store.add([record(), record(scans=[scan(kept=None)]), left_alone(), record(outcome="failed")])
    found = reader(tmp_path).sums(Filter(since=today()))
    assert found.outcomes == {"rewritten": 2, "original": 1, "failed": 1}
    assert (found.partitions_spared, found.partitions_total, found.partitions_known) == (2_800, 2_924, 1)
    assert (found.bytes_known, found.candidates) == (0, 4)


def test_reasons_are_counted_by_day_and_those_without_remedy_come_last(store: Store, tmp_path: Path) -> None:
    store.add(
        [
            left_alone("NO_EQUALITY", at=today() + 1),
            left_alone("NO_EQUALITY", at=today() - 5),
            left_alone("TYPES_DIFFER", at=today() + 2, user="bob"),
            *(left_alone(skip_reason="NO_JOIN_IN_TEXT", scans=[], at=today() + 3) for _ in range(5)),
        ]
    )
    found = reader(tmp_path).reasons(Filter(), 7)
    assert [(line.reason, line.statements, line.days[-2:]) for line in found] == [
        ("NO_EQUALITY", 2, [1, 1]),
        ("TYPES_DIFFER", 1, [0, 1]),
        ("NO_JOIN_IN_TEXT", 5, [0, 5]),
    ]
    assert found[0].tables == ["sales"]
    assert [line.reason for line in reader(tmp_path).reasons(Filter(seen_by="bob"), 7)] == ["TYPES_DIFFER"]


def test_a_digest_has_times_of_both_kinds_of_runs_that_were_made(store: Store, tmp_path: Path) -> None:
    at = time.time()
    runs = [record(at=at - n, run_s=float(n), deciding_s=0.0, lists_files=True) for n in range(1, 21)]
    trials = [
        record(
            at=at - 90_000 - n, rewritten=None, outcome="original", run_s=50.0, deciding_s=0.0, lists_files=True
        )
        for n in range(3)
    ]
    failed = record(at=at - 30, outcome="failed", run_s=999.0)
    other = left_alone(at=at - 5, run_s=4_000.0, user="bob")
    store.add([*runs, *trials, failed, other])
    first, second = reader(tmp_path).digests(Filter())
    assert (first.fingerprint, first.runs, first.reasons) == ("f2", 1, ["NO_EQUALITY"])
    assert (second.runs, second.rewritten, second.failures, second.reasons) == (24, 20, 1, [])
    assert second.times_rewritten == RunTimes(20, 10.0, 19.0, 210.0)
    assert second.times_original == RunTimes(3, 50.0, 50.0, 150.0)
    assert (second.times_later, second.times_earlier) == (second.times_rewritten, second.times_original)
    assert second.savings.measured_s == 20 * 50.0 - 210.0
    assert (first.savings.is_known, first.is_slower) == (False, False)
    assert second.partitions_spared == 20 * 2_800
    assert (second.first_seen, second.last_seen) == (trials[-1].started_at, runs[0].started_at)
    assert [one.fingerprint for one in reader(tmp_path).digests(Filter(seen_by="bob"))] == ["f2"]
    assert [one.runs for one in reader(tmp_path).digests(Filter(since=at - 3_600, outcome="rewritten"))] == [20]


def test_two_days_are_compared(store: Store, tmp_path: Path) -> None:
    noon = 12 * 3_600.0
    days = [date(2026, 3, day) for day in (1, 2, 3)]
    store.add(
        [record(at=midnight(day) + noon, run_s=run_s) for day, run_s in zip(days, (1.0, 7.0, 2.0), strict=True)]
    )
    (line,) = reader(tmp_path).digests(Filter(), (days[0], days[2]))
    assert line.times_earlier is not None
    assert line.times_later is not None
    assert (line.times_earlier.runs, line.times_later.runs, line.is_slower) == (1, 1, True)


def test_a_verdict_comes_to_a_statement_that_is_there_with_its_fingerprint(store: Store, tmp_path: Path) -> None:
    one = record(fingerprint=None)
    verdict = ShadowRecord("different", "another row", 1.0, "f9")
    store.add([one])
    store.add([], [(one.id, verdict), ("gone", verdict)])
    found = reader(tmp_path).statement(one.id, None)
    assert found is not None
    assert (found.shadow, found.fingerprint, found.original) == (verdict, "f9", one.original)
    assert [line.fingerprint for line in reader(tmp_path).statements(Filter()).statements] == ["f9"]


def test_old_statements_go(store: Store, tmp_path: Path) -> None:
    store.add([record(at=at) for at in (100.0, 200.0, 300.0)])
    store.delete_before(250.0)
    assert [line.started_at for line in reader(tmp_path).statements(Filter()).statements] == [300.0]
    assert reader(tmp_path).reasons(Filter(), 1) == []


def test_the_file_does_not_grow_past_its_bound_and_the_oldest_go_first(store: Store, tmp_path: Path) -> None:
    for n in range(30):
        store.add([record(at=1_000.0 + 10 * n + i, original=f"SELECT {n:05} '{'x' * 20_000}'") for i in range(10)])
        assert (tmp_path / FILE_NAME).stat().st_size <= ROOM
    newest = texts(tmp_path)[0]
    assert newest.startswith("SELECT 00029")
    assert reader(tmp_path).statements(Filter(text="SELECT 00000")).statements == []


def test_a_file_of_a_newer_version_is_left_as_it_is(tmp_path: Path) -> None:
    Store(tmp_path, bytes_max=ROOM).close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    with pytest.raises(
        StoreError, match=r"written by a newer Starpruner \(schema 9, this one knows 8\).*history\.path"
    ):
        Store(tmp_path, bytes_max=ROOM)


def test_an_older_sqlite_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 26, 0))
    with pytest.raises(StoreError, match=r"needs SQLite 3\.32\.0 or later"):
        Store(tmp_path, bytes_max=ROOM)


def test_no_question_has_words_of_a_newer_sqlite_than_3_34() -> None:
    # RHEL 9 has 3.34.
    sources = {path.name: path.read_text() for path in Path(history.__file__).parent.glob("*.py")}
    assert not [name for name, text in sources.items() if _NEWER_WORDS.search(text)]


def test_a_file_that_is_no_history_is_put_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"this is no database" * 500)
    store = Store(tmp_path, bytes_max=ROOM)
    store.add([record()])
    store.close()
    assert len(texts(tmp_path)) == 1
    assert (tmp_path / "history.damaged").read_bytes().startswith(b"this is no")
    assert "history.sqlite is damaged (file is not a database): it is kept as history.damaged" in caplog.text


def test_a_damaged_file_is_put_aside_once_it_is_suspected(tmp_path: Path) -> None:
    store = Store(tmp_path, bytes_max=ROOM)
    store.add([record() for _ in range(200)])
    store.close()
    path = tmp_path / FILE_NAME
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 16_384) + whole[-8192:])
    opened = Store(tmp_path, bytes_max=ROOM, is_suspect=True)
    opened.add([record()])
    assert len(texts(tmp_path)) == 1
    before = opened.is_current
    path.unlink()
    assert (before, opened.is_current) == (True, False)
    opened.close()


def test_a_file_that_is_gone_or_no_database_gives_a_sentence_to_who_asks(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="No statement has been kept yet"):
        reader(tmp_path).statements(Filter())
    (tmp_path / FILE_NAME).write_bytes(b"this is no database" * 500)
    with pytest.raises(HistoryError, match="The history cannot be read"):
        reader(tmp_path).sums(Filter())


def write_some(directory: Path, user: str, count: int) -> None:
    store = Store(directory, bytes_max=100_000_000)
    for _ in range(count):
        store.add([record(user=user)])
    store.close()


def test_processes_write_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_some, args=(tmp_path, f"u{n}", 40)) for n in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert len(reader(tmp_path).statements(Filter(), 500).statements) == 120


def test_a_search_through_too_much_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Store(tmp_path, bytes_max=100_000_000)) as store:
        store.add([record(original="x" * 100_000) for _ in range(200)])
    monkeypatch.setattr("proxy.history.queries.QUESTION_S", -1.0)
    monkeypatch.setattr("proxy.history.queries._STEPS", 1)
    with pytest.raises(HistoryError, match="took longer"):
        reader(tmp_path).statements(Filter(text="nowhere"))


def test_texts_that_utf_8_cannot_say_are_kept_all_the_same(store: Store, tmp_path: Path) -> None:
    odd: Record = record(original="SELECT '\ud800'", rewritten="SELECT '\ud800' ", message="\udfff")
    store.add([odd])
    found = reader(tmp_path).statement(odd.id, None)
    assert found is not None
    assert found.original == "SELECT '?'"


def test_statements_are_grouped_with_their_sums_and_their_savings(store: Store, tmp_path: Path) -> None:
    at = time.time() - 1_000

    def found(by: By, seen_by: str | None = None) -> dict[str | None, Group]:
        lines = reader(tmp_path).groups(Filter(seen_by=seen_by), by)
        assert [one.seconds for one in lines] == sorted((one.seconds for one in lines), reverse=True)
        return {one.name: one for one in lines}

    left: dict[str, Any] = {"fingerprint": "f1", "lists_files": False, "deciding_s": 0.0, "at": at}
    store.add([left_alone(run_s=10.0, label="board", **left) for _ in range(2)])
    runs = {"lists_files": False, "deciding_s": 0.5, "at": at, "user": "bob", "client": "10.0.0.9"}
    store.add([record(run_s=1.5, scans=[scan("Sales"), scan("returns")], **runs)])
    store.add([left_alone(run_s=4.0, at=at, skip_reason="NO_JOIN_IN_TEXT", fingerprint="text-a", scans=[])])
    assert {by: set(found(by)) for by in GROUPED_BY} == {
        "table": {"sales", "returns"},
        "user": {"ann", "bob"},
        "client": {"127.0.0.1", "10.0.0.9"},
        "label": {"board", None},
    }
    bob = found("user")["bob"]
    assert (bob.runs, bob.rewritten, bob.seconds, bob.left_s) == (1, 1, 2.0, 0.0)
    assert (bob.partitions_spared, bob.partitions_total) == (5_600, 5_848)
    assert bob.savings.measured_s == pytest.approx(10.0 - 2.0), "by ann's originals"
    assert found("table")["returns"].savings == found("client")["10.0.0.9"].savings == bob.savings
    assert found("user")["ann"].left_s == 20.0, "nobody would have rewritten the third"
    assert found("table")["sales"].runs == 3
    assert set(found("user", seen_by="ann")) == {"ann"}
    assert not found("client", seen_by="bob")["10.0.0.9"].savings.is_known


@pytest.mark.parametrize("by", [*GROUPED_BY, None])
def test_a_week_is_summed_without_its_rows(store: Store, tmp_path: Path, by: By | None) -> None:
    """With 200,000 statements that took 36 s. None asks for digests, which read the rows that they show."""
    store.add([record(), left_alone()])
    asked: list[str] = []
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as connection:
        connection.set_trace_callback(asked.append)
        if by is None:
            digests(connection, "s.id >= ?", ["0"], (TimeSpan("0", "1"), TimeSpan("1", "2")), 200)
        else:
            groups(connection, by, "s.id >= ?", ["0"], "1")
        connection.set_trace_callback(None)
        steps = [row[3] for sql in asked for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
    assert any("statements_sums" in step for step in steps)
    read = [step for step in steps if step.startswith(("SCAN s ", "SEARCH s ", "SCAN t ", "SEARCH t "))]
    assert not [step for step in read if "COVERING" not in step]
