"""The history beside the statements: it follows sessions, and costs them nothing where it fails."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.histories import history_in, until
from support.played_sessions import DESCRIBE, KEYS, NARROWED, SETTINGS, SQL, Script, played, rows
from support.text_session import TextSession

from proxy.config.config import Config
from proxy.config.rewriting import CatalogSection, RewriteSection
from proxy.history import history as history_module
from proxy.history.directory import history_directory
from proxy.history.history import History
from proxy.history.queries import Filter, HistoryError, HistoryReader
from proxy.history.record import Record, reasons_of
from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.session_port import SessionOpening
from proxy.session.explain.answered_statements import AnsweringSession
from proxy.session.layout.open_store import open_store
from proxy.session.layout.partition_store import PartitionStore
from proxy.session.session import Session
from proxy.session.shadow.checksum import Columns
from proxy.session.shared_state import SharedState
from proxy.statements.statement_class import StatementClass

from support.played_sessions import LISTED, MANY_KEYS  # isort: skip

FINISHED = Outcome(OutcomeKind.FINISHED, 1.5)
ANN = SessionOpening({"use:database": "shop"}, "owner", "ann", "10.0.0.1")


def session(history: History, config: Config | None = None, store: PartitionStore | None = None) -> TextSession:
    shared = SharedState.of(config or Config(), lambda: 0.0, store)
    one = TextSession(shared)
    one.inner = Session(shared, ANN, history)
    return one


@pytest.fixture
def history(tmp_path: Path) -> History:
    return history_in(tmp_path)


@pytest.fixture
def one(history: History) -> TextSession:
    return session(history)


def readable(history: History) -> list[Record]:
    """All statements that are in the file, the oldest first."""
    assert history.path is not None
    reader = HistoryReader(history.path)
    found = [reader.statement(line.id, None) for line in reader.statements(Filter()).statements]
    return [one for one in reversed(found) if one is not None]


def kept(history: History) -> list[Record]:
    """The same, after the writer has ended."""
    history.start()
    history.close()
    return readable(history)


def written(history: History) -> Record:
    """The only statement, after the writer has ended."""
    (found,) = kept(history)
    return found


def test_a_rewritten_statement_is_kept_with_what_was_decided(history: History) -> None:
    dispatch = played(session(history).rewrite(SQL), [*DESCRIBE, KEYS])
    (running,) = history.state().running
    assert (running.outcome, running.original) == ("running", SQL)
    dispatch.on_outcome(FINISHED)
    assert history.state().running == []
    found = written(history)
    assert (found.user, found.client, found.database) == ("ann", "10.0.0.1", "shop")
    assert (found.outcome, found.end, found.run_s, found.rewritten) == ("rewritten", "finished", 1.5, NARROWED)
    assert found.fingerprint is not None
    assert found.rules == ["inner_join"]
    assert found.cost_report is not None
    assert "not seen before" in found.cost_report
    fact = next(scan for scan in found.scans if scan.is_fact)
    assert (fact.table, fact.reducers[0].keys) == ("f", 1)


def test_an_original_that_was_sent_in_place_of_the_rewritten_text_is_kept_as_such(history: History) -> None:
    dispatch = played(session(history).rewrite(SQL), [*DESCRIBE, KEYS])
    dispatch.on_outcome(Outcome(OutcomeKind.FINISHED, 1.5, original_instead=True))
    found = written(history)
    assert (found.outcome, found.rewritten, found.rules) == ("original", None, [])
    assert found.cause is not None
    assert "too long to be sent" in found.cause


def test_statements_that_were_not_parsed_have_a_fingerprint_of_their_text(
    history: History, one: TextSession
) -> None:
    for sql in ("SELECT a FROM t WHERE b = 1", "SELECT a FROM t WHERE b = 2", "SELECT a FROM t WHERE c = 2"):
        one.forward_unchanged(sql).on_outcome(FINISHED)
    history.start()
    history.close()
    assert history.path is not None
    digests = HistoryReader(history.path).digests(Filter())
    assert sorted((one.runs, one.fingerprint[:5]) for one in digests) == [(1, "text-"), (2, "text-")]
    assert HistoryReader(history.path).sums(Filter()).candidates == 0


def test_partitions_are_counted_where_their_list_is_at_hand(history: History) -> None:
    with open_store(CatalogSection()) as store:
        one = session(history, store=store)
        played(one.rewrite(SQL), [*DESCRIBE, MANY_KEYS, LISTED]).on_outcome(FINISHED)
        found = written(history)
    fact = next(scan for scan in found.scans if scan.is_fact)
    assert (fact.partitions.total, fact.partitions.kept) == (31, 28)


@pytest.mark.parametrize(
    ("outcome", "wanted"),
    [
        (Outcome(OutcomeKind.FAILED, 1.0, "no such table"), "failed"),
        (Outcome(OutcomeKind.FAILED_TWICE, 1.0), "failed"),
        (Outcome(OutcomeKind.RECOVERED, 1.0), "fallback"),
        (Outcome(OutcomeKind.OVERTAKEN, 1.0), "fallback"),
        (Outcome(OutcomeKind.UNKNOWN, 1.0), "cancelled"),
        (Outcome(OutcomeKind.NOT_SENT, 0.0), "cancelled"),
        (Outcome(OutcomeKind.REFUSED, 0.0, "[STARPRUNER_LIMIT] no"), "refused"),
        (Outcome(OutcomeKind.LOST, 1.0), "unseen"),
        (Outcome(OutcomeKind.UNKNOWN, 0.0), "unseen"),
    ],
)
def test_every_end_is_told_apart(history: History, outcome: Outcome, wanted: str) -> None:
    played(session(history).rewrite(SQL), [*DESCRIBE, KEYS]).on_outcome(outcome)
    found = written(history)
    assert found.outcome == wanted
    assert found.message == (outcome.message or None)


def test_a_statement_that_is_decided_about_again_is_one_statement(history: History, one: TextSession) -> None:
    first = played(one.rewrite(SQL), [*DESCRIBE, KEYS])
    first.on_outcome(Outcome(OutcomeKind.DECIDED_AGAIN, 0.2))
    assert (history.held, history.state().running, one.inner.last_statements()) == (0, [], [])
    played(one.rewrite(SQL), [KEYS]).on_outcome(FINISHED)
    assert written(history).outcome == "rewritten"


def test_statements_without_a_decision_say_why(history: History) -> None:
    off = Config(rewrite=RewriteSection(enabled=False))
    played(session(history, off).rewrite(SQL), []).on_outcome(FINISHED)
    found = written(history)
    assert (found.outcome, found.skip_reason, found.rewritten) == ("original", "SWITCHED_OFF", None)


def test_it_is_kept_whether_spark_has_to_list_files_for_the_original(history: History, one: TextSession) -> None:
    """The first narrowed run would have had them listed. The first original has: narrowed ones do not."""
    scripts = [[*DESCRIBE, KEYS], [KEYS], [], [], []]
    texts = [SQL, SQL, "SET starpruner.enabled=false", SQL, SQL.replace("1", "2")]
    for sql, script in zip(texts, scripts, strict=True):
        played(one.rewrite(sql), script).on_outcome(FINISHED)
    found = [record for record in kept(history) if record.original.startswith("SELECT")]
    assert [record.outcome for record in found] == ["rewritten", "rewritten", "original", "original"]
    assert [record.lists_files for record in found] == [True, False, True, False]
    assert len({record.fingerprint for record in found}) == 1, "also of those that were not parsed"


def test_a_statement_that_cannot_be_narrowed_says_why_each_time(history: History, one: TextSession) -> None:
    """The cost gate has it planned once in a while, and says nothing of what it takes to ask for keys."""
    sql = "SELECT f.id FROM f LEFT JOIN d ON f.ds = d.ds AND d.g = 1"
    for script in ([*DESCRIBE], [], []):
        played(one.rewrite(sql), script).on_outcome(FINISHED)
    found = kept(history)
    assert [reasons_of(record) for record in found] == [[("OUTER_JOIN", "f")], *[[("OUTER_JOIN", "")]] * 2]
    assert found[0].cost_report is None
    assert found[2].cost_report == (
        "It was planned once, and nothing could be inserted: left alone for another 600 s."
    )


def test_originals_in_shadow_mode_are_kept_so_too(history: History) -> None:
    shadow = session(history, Config(rewrite=RewriteSection(mode="shadow")))
    for _ in range(3):
        dispatch = played(shadow.rewrite(SQL), [])
        assert dispatch.beside is not None
        with pytest.raises(AssertionError, match="not in the script: "):  # the queries that compare the answers
            played(dispatch.beside(), [*DESCRIBE, KEYS])
        dispatch.on_outcome(FINISHED)
    assert [record.lists_files for record in kept(history)] == [None, False, False]


def test_a_label_is_kept_and_changes_nothing_else_of_its_session(history: History, one: TextSession) -> None:
    history.literals = False
    # The tables are not described again behind the first SET; of the second one nobody knows what else it sets.
    described = [*DESCRIBE, KEYS]
    texts = {"SET starpruner.label = `Sales board`": [KEYS], "SET starpruner.label=a;SET b=c": described}
    played(one.rewrite(SQL), described).on_outcome(FINISHED)
    for sql, script in texts.items():
        played(one.rewrite(sql), []).on_outcome(FINISHED)
        played(one.rewrite(SQL), script).on_outcome(FINISHED)
    for sql in ("RESET starpruner.label", "/* dashboard_id: 7 */ SET"):
        played(one.rewrite(sql), []).on_outcome(FINISHED)
    found = kept(history)
    labels = ["", "Sales board", "Sales board", "a;SET b=c", "a;SET b=c", "", "dashboard 7"]
    assert [record.label for record in found] == labels
    assert "dashboard" not in found[-1].original, "no more is kept of the comment"


def test_a_shadow_run_leaves_its_reason(history: History) -> None:
    shadow = Config(rewrite=RewriteSection(mode="shadow"))
    dispatch = played(session(history, shadow).rewrite(SQL), [])
    assert dispatch.beside is not None
    dispatch.on_outcome(FINISHED)
    assert written(history).skip_reason == "IN_SHADOW"
    assert history.has_shadows


@pytest.mark.parametrize(
    ("sql", "asked", "wanted"),
    [
        (SQL.replace("f.ds = d.ds", "f.id = d.g"), [], ("unchanged", "", ["NOT_A_PARTITION_COLUMN"])),
        (f"{SQL} AND (", None, ("unchanged", "", ["DOES_NOT_PARSE"])),
        (f"INSERT INTO other {SQL}", [KEYS], ("uncomparable", "the statement does not only read", [])),
    ],
)
def test_a_shadow_that_runs_nothing_leaves_the_reason(
    history: History, sql: str, asked: Script | None, wanted: tuple[str, str, list[str]]
) -> None:
    dispatch = played(session(history, Config(rewrite=RewriteSection(mode="shadow"))).rewrite(sql), [])
    assert dispatch.beside is not None
    played(dispatch.beside(), [] if asked is None else [SETTINGS, *DESCRIBE, *asked])
    dispatch.on_outcome(FINISHED)
    kept = written(history).shadow
    assert kept is not None
    assert (kept.verdict, kept.why, kept.reasons) == wanted


def test_a_pair_of_runs_leaves_its_times_and_the_tables_that_are_narrowed(history: History) -> None:
    dispatch = played(session(history, Config(rewrite=RewriteSection(mode="shadow"))).rewrite(SQL), [])
    assert dispatch.beside is not None
    columns = Columns.of(["int"])
    runs = [
        (columns.query(text), replace(rows((5, "55")), seconds=s)) for text, s in ((SQL, 9.0), (NARROWED, 2.0))
    ]
    played(
        dispatch.beside(),
        [SETTINGS, *DESCRIBE, KEYS, (f"DESCRIBE QUERY {SQL}", rows(("id", "int", None))), *runs],
    )
    dispatch.on_outcome(FINISHED)
    kept = written(history).shadow
    assert kept is not None
    assert (kept.verdict, kept.original_s, kept.rewritten_s, kept.tables) == ("equal", 9.0, 2.0, ["f"])


def test_the_database_follows_use(history: History, one: TextSession) -> None:
    one.forward_unchanged("USE `other`").on_outcome(FINISHED)
    one.forward_unchanged("USE nowhere").on_outcome(Outcome(OutcomeKind.FAILED, 0.1))
    (state,) = history.state().sessions
    assert (state.database, state.statements) == ("other", 2)
    one.closed()
    assert history.state().session_count == 0


# --- shown to the session itself


def test_a_session_is_shown_its_own_last_statements_while_they_run_and_afterwards(history: History) -> None:
    one, other = session(history), session(history)
    other.forward_unchanged("SELECT 'of another session'")
    played(one.rewrite(SQL), [*DESCRIBE, KEYS]).on_outcome(FINISHED)
    one.forward_unchanged("SELECT 2")
    running, ended = one.inner.last_statements()
    assert (running.statement, running.outcome, running.seconds) == ("SELECT 2", "running", None)
    assert (ended.statement, ended.outcome, ended.reasons) == (SQL, "rewritten", "")
    assert ended.seconds is not None
    assert ended.seconds >= 1.5
    assert written(history).id == ended.id


def test_they_are_there_without_a_history_and_bounded() -> None:
    one = session(history_in(None))
    for number in range(history_module.LAST_STATEMENTS_MAX + 5):
        one.forward_unchanged(f"SELECT c{number} -- {'x' * 1_000}").on_outcome(FINISHED)
    shown = one.inner.last_statements()
    assert len(shown) == history_module.LAST_STATEMENTS_MAX
    assert [statement.statement for statement in shown[:2]] == ["SELECT c24", "SELECT c23"]
    assert len(shown[0].statement) < 400


def test_they_hold_no_secrets_and_no_literals_where_none_are_kept() -> None:
    for literals, told in ((True, "SELECT 'private'"), (False, "SELECT ?")):
        one = session(history_in(None, literals=literals))
        one.forward_unchanged("SELECT 'private'").on_outcome(FINISHED)
        one.forward_unchanged("SET fs.key=hunter2").on_outcome(FINISHED)
        assert [statement.statement for statement in one.inner.last_statements()] == ["SET fs.key=?", told]


def test_statements_that_the_proxy_answers_itself_are_kept_as_answered(history: History, one: TextSession) -> None:
    statement = StatementClass(f"EXPLAIN REWRITE {SQL}")
    dispatch = played(AnsweringSession(one.inner).rewrite(statement), [*DESCRIBE, KEYS, LISTED])
    (running,) = history.state().running
    assert running.is_answered
    dispatch.on_outcome(FINISHED)
    found = written(history)
    assert (found.outcome, found.original, found.rewritten) == ("answered", statement.text, None)
    assert (found.skip_reason, found.scans) == (None, [])


@pytest.mark.parametrize(
    ("sql", "outcome"), [("SET starpruner.enabled", "answered"), ("SET starpruner.enabled=true", "original")]
)
def test_statements_about_settings_of_ours_are_kept(history: History, sql: str, outcome: str) -> None:
    played(session(history).rewrite(sql), []).on_outcome(FINISHED)
    assert written(history).outcome == outcome


@pytest.mark.parametrize(
    ("literals", "sql", "shown"),
    [(True, "SET fs.key=private", "SET fs.key=?"), (False, "SELECT 'private'", "SELECT ?")],
)
def test_no_secrets_are_kept_nor_literals_where_none_are_wanted(
    tmp_path: Path, sql: str, shown: str, *, literals: bool
) -> None:
    history = history_in(tmp_path, literals=literals)
    dispatch = session(history).forward_unchanged(sql)
    assert history.state().running[0].original == shown
    dispatch.on_outcome(FINISHED)
    assert written(history).original == shown
    assert b"private" not in (tmp_path / "history.sqlite").read_bytes()


def test_switched_off_nothing_is_kept_and_what_runs_is_shown() -> None:
    with history_directory(history_in(None, enabled=False).settings) as directory:
        assert directory is None
    history = history_in(None)
    dispatch = session(history).forward_unchanged("SELECT 1")
    assert history.state().running_count == 1
    history.start()
    dispatch.on_outcome(FINISHED)
    history.close()
    assert history.state().running_count == 0


def test_without_a_path_it_ends_with_the_process_and_is_small() -> None:
    history = history_in(None)
    with history_directory(history.settings) as directory:
        assert directory is not None
        assert directory.is_dir()
    assert not directory.exists()
    assert history.bytes_max == history_module.TEMPORARY_BYTES_MAX


def test_a_full_queue_costs_history_and_no_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "HELD_MAX", 3)
    history = history_in(tmp_path)
    one = session(history)
    dispatches = [one.forward_unchanged(f"SELECT {n}") for n in range(5)]
    for dispatch in dispatches:
        dispatch.on_outcome(FINISHED)
    assert [dispatch.text for dispatch in dispatches] == [f"SELECT {n}" for n in range(5)]
    assert history.losses.queue_full == 2
    history.start()
    until(lambda: history.held == 0)
    one.forward_unchanged("SELECT 6").on_outcome(FINISHED)
    history.close()
    assert len(HistoryReader(tmp_path / "history.sqlite").statements(Filter()).statements) == 4


def test_long_texts_take_a_bounded_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "HELD_CHARS_MAX", 1_000_000)
    history = history_in(tmp_path)
    one = session(history)
    for _ in range(10):
        one.forward_unchanged("x" * 10_000_000)
    assert history.state().running_count == 3
    assert history.losses.queue_full == 7


def test_many_long_statements_are_written_in_the_smallest_room(tmp_path: Path) -> None:
    history = history_in(tmp_path, bytes_max=4_000_000)
    one = session(history)
    for number in range(60):
        one.forward_unchanged(f"SELECT {number:03} '{'x' * 250_000}'").on_outcome(FINISHED)
    history.start()
    until(lambda: history.held == 0)
    history.close()
    assert history.error is None
    assert history.held == 0
    newest = HistoryReader(tmp_path / "history.sqlite").statements(Filter()).statements
    assert newest[0].excerpt.startswith("SELECT 059")
    assert len(newest) > 5
    assert (tmp_path / "history.sqlite").stat().st_size <= 4_000_000


def test_a_disk_that_is_away_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(history_module, "RETRY_S", 0.05)
    monkeypatch.setattr(history_module, "WRITE_EVERY_S", 0.02)
    place = tmp_path / "disk"
    place.write_text("no directory yet")
    history = history_in(place)
    history.start()
    session(history).forward_unchanged("SELECT 'private'").on_outcome(FINISHED)
    until(lambda: history.error is not None and "not added to the history" in caplog.text)
    time.sleep(0.3)
    assert caplog.text.count("not added to the history") == 1
    assert "private" not in caplog.text
    place.unlink()
    until(lambda: history.error is None)
    until(lambda: history.held == 0)
    history.close()
    assert [one.original for one in readable(history)] == ["SELECT 'private'"]


def test_a_decision_that_cannot_be_read_costs_its_record_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("SELECT 'private'")

    monkeypatch.setattr(history_module, "decide", fails)
    history = history_in(tmp_path)
    dispatch = played(session(history).rewrite(SQL), [*DESCRIBE, KEYS])
    dispatch.on_outcome(FINISHED)
    assert dispatch.text == NARROWED
    assert "RuntimeError" in caplog.text
    assert "private" not in caplog.text


def test_other_processes_see_what_runs_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "WRITE_EVERY_S", 0.02)
    history = history_in(tmp_path)
    session(history).forward_unchanged("SELECT 1")
    history.start()
    reader = HistoryReader(tmp_path / "history.sqlite")

    def is_seen() -> bool:
        try:
            return bool(reader.others("another"))
        except HistoryError:
            return False

    until(is_seen)
    (state,) = reader.others("another")
    assert state.running[0].original == "SELECT 1"
    assert reader.others(history.process) == []
    history.close()
    assert reader.others("another") == []


def test_an_end_is_counted_once(history: History) -> None:
    dispatch = session(history).rewrite("SELECT 1")
    ended = played(dispatch, [])
    ended.on_outcome(FINISHED)
    ended.on_outcome(Outcome(OutcomeKind.FAILED, 9.0))
    assert written(history).outcome == "original"
