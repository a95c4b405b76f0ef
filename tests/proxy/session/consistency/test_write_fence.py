"""The write fence: which statements it is told of, and when what was read behind it no longer holds."""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.synchronize import Event
from pathlib import Path

import lmdb
import pytest
from support.shared_state import DIGESTS, Beside, ledger

from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.session.consistency.session_writes import SessionWrites
from proxy.session.consistency.write_fence import CLOSING_S, LOST_S, LocalWriteLog, WriteLog
from proxy.statements.statement_class import StatementClass
from proxy.statements.written_tables import AnyTable, WrittenTables, tables_written
from proxy.workers.ledger import Ledger, ledger_directory
from proxy.workers.shared_write_log import SharedWriteLog
from rewriter import TableName

# Far above what a process takes to start on a busy machine.
PATIENCE_S = 60.0
OWN, SHARED = "one process", "several"
D = TableName(("d",))
LONG = ", ".join(f"({number}, 'x')" for number in range(5_000))


def name(*parts: str) -> TableName:
    return TableName(parts)


def may_write(sql: str, table: TableName = D) -> bool:
    tables = tables_written(sql)
    return tables is not None and tables.hold(table)


@pytest.mark.parametrize(
    "sql",
    [
        *("SELECT * FROM d", "  (SELECT * FROM d)"),
        "/* a comment -- of a tool */ -- and another\nselect * from d",
        *("WITH x AS (SELECT * FROM d) SELECT * FROM x", "FROM d SELECT *", "VALUES (1)", "TABLE d"),
        *("SHOW PARTITIONS d", "DESCRIBE d", "EXPLAIN SELECT * FROM d", "SET spark.sql.ansi.enabled=true"),
        *("USE d", "CREATE DATABASE IF NOT EXISTS d LOCATION '/x'", "/* a tool */ create schema\nd"),
        *("CREATE NAMESPACE d", f"SELECT * FROM d WHERE (a, b) IN ({LONG})"),
        *(
            "CREATE TEMPORARY VIEW d AS SELECT 1",
            "create or replace temp view d using parquet options (path '/d')",
        ),
        "/* dbt */\ncreate temporary view d as with x as (select 1) select * from x",
        *(
            "CREATE TEMPORARY FUNCTION d AS 'a.B' USING JAR '/x'",
            "CREATE OR REPLACE TEMPORARY FUNCTION d() RETURN 1",
        ),
        "DROP TEMPORARY FUNCTION IF EXISTS d",
    ],
)
def test_a_statement_that_certainly_reads_writes_nothing(sql: str) -> None:
    assert tables_written(sql) is None


@pytest.mark.parametrize(
    "sql",
    [
        *("INSERT INTO d VALUES (1)", "insert overwrite table `a`.`D` partition (p = 1) select 1"),
        "WITH x AS (SELECT 1) INSERT INTO d SELECT * FROM x",
        "FROM x INSERT INTO e SELECT a INSERT INTO d SELECT b",
        "-- daily load\nCREATE OR REPLACE TABLE d AS SELECT 1",
        "-- a carriage return ends a comment\rINSERT INTO d\nSELECT * FROM e",
        *("CREATE OR REPLACE VIEW d AS SELECT 1", "DROP TABLE IF EXISTS d", "ALTER TABLE e RENAME TO d"),
        *("TRUNCATE TABLE d", "DELETE FROM d", "UPDATE d SET a = 1"),
        *("MERGE INTO d USING e ON d.a = e.a WHEN MATCHED THEN DELETE", "LOAD DATA INPATH '/x' INTO TABLE d"),
        *("MSCK REPAIR TABLE d", f"INSERT INTO d VALUES {LONG}"),
    ],
)
def test_a_statement_that_writes_says_so_of_what_it_names_and_not_of_others(sql: str) -> None:
    assert may_write(sql)
    assert not may_write(sql, name("other"))


@pytest.mark.parametrize(
    ("sql", "is_clear"),
    [
        ("WITH x AS (SELECT 1) SELECT a FROM d WHERE a IN ('', ..)", True),
        ("WITH x AS (SELECT 1) SELECT a FROM d WHERE a IN ('é', ..)", False),
        ("WITH x AS (SELECT 1) SELECT inserted FROM d WHERE a IN ('', ..)", False),
        ("EXPLAIN SELECT a FROM d WHERE a IN ('', ..)", True),
        ("EXPLAIN SELECT a FROM d WHERE a IN ('é', ..)", False),
        ("EXPLAIN SELECT executed FROM d WHERE a IN ('', ..)", False),
    ],
)
def test_no_pattern_searches_a_text_of_more_than_250_kb(sql: str, *, is_clear: bool) -> None:
    long = sql.replace("..", "'x', " * 60_000 + "''")
    assert tables_written(sql) is None
    assert (tables_written(long) is None) is is_clear


@pytest.mark.parametrize(
    "sql",
    [
        *("CALL system.rollback('x')", "EXECUTE IMMEDIATE 'INSERT INTO ' || 'd VALUES (1)'"),
        "EXPLAIN EXECUTE IMMEDIATE 'INSERT INTO d VALUES (1)'",
        *("explain /* the */ extended\n execute immediate x", "EXPLAIN ${statement}"),
        *("BEGIN INSERT INTO e VALUES (1); END", "REFRESH '/warehouse/x'", "CLEAR CACHE", "ADD JAR '${a}'"),
        *("DROP DATABASE db CASCADE", "CREATE /* */ DATABASE db", "CREATE DATABASE ${rest}"),
        "CREATE TEMP VIEW ${rest}",
        *("/*${rest}*/ SELECT 1", "DROP SCHEMA db CASCADE", "INSERT OVERWRITE DIRECTORY '/warehouse/x' SELECT 1"),
        *("INSERT INTO IDENTIFIER('a' || 'b') VALUES (1)", "INSERT INTO parquet.`/warehouse/x` SELECT 1"),
        *("INSERT INTO ${target} SELECT 1", "WITH x AS (SELECT 1) ${rest}"),
        f"INSERT INTO e /* {LONG} */ VALUES (1)",
        f"WITH x AS (SELECT * FROM VALUES {LONG}, ('insert', 'x')) INSERT INTO e SELECT * FROM x",
        f"MERGE INTO e USING (SELECT * FROM VALUES {LONG}) /* x */ ON e.a = x.a WHEN MATCHED THEN DELETE".replace(
            "INTO e", "INTO e /* it */"
        ),
        # Spark nests comments, and carries them over a backslash at the end of a line.
        *("/* /* */ select */ INSERT INTO e VALUES (1)", "-- \\\nselect\nINSERT INTO e VALUES (1)"),
        *("NO SUCH STATEMENT", "", "?"),
    ],
)
def test_a_statement_that_does_not_name_its_tables_may_write_any(sql: str) -> None:
    assert may_write(sql, name("other"))


def test_a_name_that_is_not_one_word_is_found_by_its_parts() -> None:
    assert may_write("INSERT INTO `my-Table 1` VALUES (1)", name("db", "My-table 1"))
    assert not may_write("INSERT INTO `my-Table` VALUES (2)", name("my-table 1"))
    assert may_write("INSERT INTO e VALUES (1)", name("`-`")), "a name without a word may be anything"


@pytest.mark.parametrize(
    "part",
    ["snapshots", "Files", "all_data_files", "partitions", "history", "branch_audit", "tag_x", "snapshot_id_1"],
)
def test_what_is_told_of_a_table_is_written_with_the_table(part: str) -> None:
    assert may_write("INSERT INTO db.d VALUES (1)", name("db", "D", part))
    assert may_write("ALTER TABLE d REPLACE BRANCH audit AS OF VERSION 5", name("d", part))
    assert not may_write("INSERT INTO db.e VALUES (1)", name("cat", "db", "d", part))
    assert not may_write("INSERT INTO db.d VALUES (1)", name("db", "e"))


def test_what_is_read_by_its_path_may_be_written_by_any_name() -> None:
    assert may_write("INSERT INTO d VALUES (1)", name("delta", "/warehouse/x/d"))
    assert not may_write("SELECT 1", name("delta", "/warehouse/x/d"))


def ended(end: OutcomeKind = OutcomeKind.FINISHED) -> Outcome:
    return Outcome(end, 1.0)


def begun(where: SessionWrites | WriteLog, sql: str = "INSERT INTO d VALUES (1)") -> Callable[[Outcome], None]:
    """A statement that writes, in a session of its own if not in this; its end is told by a call."""
    session = where if isinstance(where, SessionWrites) else SessionWrites(where)
    tell = session.begin(StatementClass(sql))
    assert tell is not None
    return tell


@pytest.fixture
def now() -> list[float]:
    """What the clock of `writes` says."""
    return [0.0]


@pytest.fixture(params=[OWN, SHARED])
def writes(request: pytest.FixtureRequest, now: list[float]) -> Iterator[WriteLog]:
    if request.param == OWN:
        yield LocalWriteLog(lambda: now[0])
        return
    with ledger() as opened:
        yield SharedWriteLog(opened, DIGESTS, lambda: now[0])


def test_a_fence_does_not_hold_for_a_table_that_is_written_behind_it(writes: WriteLog) -> None:
    fence = writes.open()
    assert fence.holds([D, name("d", "files")])
    tell = begun(writes)
    assert not fence.holds([name("e"), name("db", "D")])
    assert not fence.holds([name("d", "files")])
    assert fence.holds([name("e")])
    tell(ended())
    assert not fence.holds([D]), "the keys may have been read before or after"
    assert writes.open().holds([D])


def test_another_table_of_the_same_database_is_not_written(writes: WriteLog) -> None:
    fence, tables = writes.open(), [name("db", "d"), name("db", "e")]
    begun(writes, "INSERT INTO db.e VALUES (1)")
    assert fence.written(tables) == {name("db", "e")}
    assert fence.changed_columns(tables) == set()


def test_a_name_of_several_words_is_written_where_all_of_them_are(writes: WriteLog) -> None:
    fence = writes.open()
    tables = [name("d-e"), name("e-f"), name("delta", "/lake/x/d")]
    begun(writes, "INSERT INTO `d-e` VALUES (1)")
    assert fence.written(tables) == {name("d-e"), name("delta", "/lake/x/d")}


def test_what_does_not_say_what_it_writes_may_change_the_columns_of_any_table(writes: WriteLog) -> None:
    fence = writes.open()
    writes.end(writes.begin(AnyTable()))
    assert fence.changed_columns([D]) == {D}


def test_a_write_that_was_running_as_the_fence_was_opened_counts(writes: WriteLog) -> None:
    tell = SessionWrites(writes).begin(StatementClass("INSERT INTO d VALUES (1)"))
    fence = writes.open()
    assert not fence.holds([D])
    assert tell is not None
    tell(ended(OutcomeKind.FAILED))
    assert not fence.holds([D])
    assert writes.open().holds([D])


@pytest.mark.parametrize("sql", ["SELEC 1", "INSERT INTO d VALUES (1)", "DROP DATABASE db CASCADE"])
@pytest.mark.parametrize("end", [Outcome(OutcomeKind.FAILED, 1.0, is_unread=True), ended(OutcomeKind.NOT_SENT)])
def test_a_statement_of_which_nothing_has_run_has_written_nothing(
    writes: WriteLog, sql: str, end: Outcome
) -> None:
    before = writes.open()
    tell = begun(writes, sql)
    beside = writes.open()
    assert not before.holds([D])
    assert not beside.holds([D])
    tell(end)
    assert before.holds([D]), "nothing was written since"
    assert beside.holds([D])
    assert before.is_quiet()
    assert not before.changed_columns([D])
    tell(end)
    assert writes.open().holds([D])


@pytest.mark.parametrize(
    "sql", ["NO SUCH STATEMENT", "INSERT INTO d SELECT x", "BEGIN DELETE FROM d; SELEC 1; END"]
)
@pytest.mark.parametrize("kind", [OutcomeKind.FAILED, OutcomeKind.FAILED_TWICE])
def test_a_statement_that_failed_later_may_have_written_a_part(
    writes: WriteLog, sql: str, kind: OutcomeKind
) -> None:
    fence = writes.open()
    tell = begun(writes, sql)
    tell(Outcome(kind, 1.0, "it failed midway"))
    assert not fence.holds([D])


def test_a_write_beside_one_that_did_nothing_counts(writes: WriteLog) -> None:
    fence, session = writes.open(), SessionWrites(writes)
    tells = [begun(session), begun(session, "SELEC 1")]
    for tell, is_unread in zip(tells, (False, True), strict=True):
        tell(Outcome(OutcomeKind.FAILED, 1.0, is_unread=is_unread))
    assert fence.written([D, name("e")]) == {D}


def test_a_table_that_a_writing_statement_reads_is_none_that_it_writes(writes: WriteLog) -> None:
    fence, session = writes.open(), SessionWrites(writes)
    begun(session, "CREATE TABLE e AS SELECT * FROM d JOIN f USING (k)")
    begun(session, "WITH x AS (SELECT * FROM d) INSERT INTO e SELECT * FROM x")
    assert fence.holds([D, name("f")])
    assert not fence.changed_columns([D, name("f")])
    assert not fence.holds([name("e")])
    assert writes.open().written([D, name("db", "e")]) == {name("db", "e")}


def test_what_is_deleted_from_is_any_table_unless_it_is_known_to_be_one(writes: WriteLog) -> None:
    session, sql = SessionWrites(writes), "DELETE FROM db.e WHERE a = 1"
    tell = session.begin(StatementClass(sql), name("db", "e").__eq__)
    assert tell is not None
    assert writes.open().holds([D])
    assert not writes.open().holds([name("e")])
    tell(ended())
    assert session.begin(StatementClass(sql), name("e").__eq__) is not None
    assert not writes.open().holds([D])


def test_a_reading_statement_is_no_write(writes: WriteLog) -> None:
    assert SessionWrites(writes).begin(StatementClass("SELECT * FROM d")) is None
    assert writes.open().holds([D])


# One that the server runs to its end outlives its session for longer.
UNSEEN = pytest.mark.parametrize(
    ("end", "lasts_s"), [(OutcomeKind.UNKNOWN, CLOSING_S), (OutcomeKind.LOST, LOST_S)], ids=["unknown", "lost"]
)


@UNSEEN
def test_a_write_whose_end_was_not_seen_runs_until_its_session_has_been_closed_for_a_while(
    writes: WriteLog, now: list[float], end: OutcomeKind, lasts_s: float
) -> None:
    session = SessionWrites(writes)
    tell = begun(session)
    before = writes.open()
    tell(ended(end))
    assert not writes.open().holds([D])
    session.closed()
    fence = writes.open()
    now[0] = lasts_s - 1
    assert not writes.open().holds([D]), "what was committing as it was cancelled goes on"
    assert writes.open().holds([name("e")])
    now[0] = lasts_s
    assert writes.open().holds([D])
    assert not fence.holds([D]), "it has ended since, for all that is known"
    assert not before.holds([D])


@UNSEEN
def test_a_worker_ends_what_it_lost_without_being_asked_for_a_fence(
    here: SharedWriteLog, there: SharedWriteLog, now: list[float], end: OutcomeKind, lasts_s: float
) -> None:
    session = SessionWrites(there)
    begun(session)(ended(end))
    session.closed()
    now[0] = lasts_s
    assert not here.open().holds([D])
    there.end_old()
    assert here.open().holds([D])


def test_of_several_lost_writes_each_ends_in_its_time_however_often_they_are_looked_at(
    writes: WriteLog, now: list[float]
) -> None:
    for table in ("d", "e"):
        tell = begun(writes, f"INSERT INTO {table} VALUES (1)")
        tell(ended(OutcomeKind.LOST))
        now[0] = 1.0
        _ = writes.open()
    now[0] = LOST_S
    fence = writes.open()
    assert fence.holds([D])
    assert not fence.holds([name("e")])


def test_a_write_that_is_begun_as_its_session_closes_ends_with_it(writes: WriteLog, now: list[float]) -> None:
    session = SessionWrites(writes)
    session.closed()
    begun(session)
    now[0] = CLOSING_S
    assert writes.open().holds([D])


def test_a_fence_that_is_older_than_what_is_remembered_holds_no_longer(
    writes: WriteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.session.consistency.write_fence.ENDED_MAX", 2)
    monkeypatch.setattr("proxy.workers.shared_write_log.ENDED_MAX", 2)
    if isinstance(writes, LocalWriteLog):
        writes = LocalWriteLog()
    fence = writes.open()
    begun(writes, "INSERT INTO e VALUES (1)")(ended())
    later = writes.open()
    writes.end(writes.begin(WrittenTables(["f"])))
    assert fence.holds([D])
    assert not fence.written([D])
    begun(writes, "INSERT INTO e VALUES (1)")(ended())
    assert not fence.holds([D])
    assert fence.written([D]) == fence.changed_columns([D]) == {D}
    assert later.holds([D])
    assert not later.holds([name("f")])
    assert writes.open().holds([D])


def test_more_writes_than_are_remembered_count_for_any_table(
    writes: WriteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.session.consistency.write_fence.RUNNING_MAX", 1)
    monkeypatch.setattr("proxy.workers.shared_write_log.RUNNING_MAX", 1)
    first = writes.begin(WrittenTables(["e"]))
    assert writes.open().holds([D])
    second = writes.begin(WrittenTables(["e"]))
    assert not writes.open().holds([D])
    for write in (first, second):
        writes.end(write)
    assert writes.open().holds([D])


def test_a_session_of_too_many_writes_counts_for_any_table_until_it_is_closed(
    writes: WriteLog, now: list[float]
) -> None:
    session = SessionWrites(writes)
    tells = [begun(session, "INSERT INTO e VALUES (1)") for _ in range(1_000)]
    assert not writes.open().holds([D])
    for tell in tells:
        tell(ended())
    assert not writes.open().holds([D]), "of the last ones it is not known which have ended"
    session.closed()
    now[0] = CLOSING_S
    assert writes.open().holds([D])


def test_a_session_of_too_many_writes_keeps_no_more_of_them(writes: WriteLog) -> None:
    session, fence = SessionWrites(writes), writes.open()
    numbers = []
    for _ in range(40):
        begun(session, "INSERT INTO e VALUES (1)")
        numbers.append(len(writes.since(0) or ()))
    assert numbers == [*range(1, 17), *[17] * 24]
    assert not fence.holds([D])


def test_no_write_is_lost_between_threads(writes: WriteLog) -> None:

    def write(_: int) -> bool:
        session, fence = SessionWrites(writes), writes.open()
        tell = begun(session)
        tell(ended())
        return fence.holds([D])

    with ThreadPoolExecutor(4) as pool:
        assert not any(pool.map(write, range(500)))
    assert writes.open().holds([D])


# --- several processes


@pytest.fixture
def opened() -> Iterator[Ledger]:
    with ledger() as found:
        yield found


@pytest.fixture
def here(opened: Ledger) -> SharedWriteLog:
    """A worker's log."""
    return SharedWriteLog(opened, DIGESTS)


@pytest.fixture
def there(opened: Ledger, now: list[float]) -> SharedWriteLog:
    """Another worker's, with a clock of its own."""
    return SharedWriteLog(Beside(opened, 1), DIGESTS, lambda: now[0])


def test_a_statement_of_which_nothing_has_run_is_forgotten_by_all_workers(
    here: SharedWriteLog, there: SharedWriteLog
) -> None:
    fence = here.open()
    tell = begun(there, "SELEC 1")
    assert not fence.holds([D])
    tell(Outcome(OutcomeKind.FAILED, 1.0, is_unread=True))
    assert fence.holds([D])
    assert fence.is_quiet()


def test_a_write_through_one_worker_is_seen_by_the_fences_of_another(
    here: SharedWriteLog, there: SharedWriteLog
) -> None:
    fence = here.open()
    tell = begun(there)
    assert not fence.holds([D])
    assert fence.holds([name("e")])
    assert not here.open().holds([D]), "it runs"
    tell(ended())
    assert not fence.holds([D]), "it has run since"
    assert here.open().holds([D])


def test_a_killed_workers_writes_run_until_the_one_in_its_place_gives_them_up(
    opened: Ledger, here: SharedWriteLog
) -> None:
    killed = Beside(opened, 1)
    begun(SharedWriteLog(killed, DIGESTS))
    fence = here.open()
    assert not fence.holds([D])
    SharedWriteLog(Beside(opened, 2), DIGESTS).end_lost()
    assert not here.open().holds([D]), "that one has another place"
    again = SharedWriteLog(killed, DIGESTS)
    running = again.begin(WrittenTables(["e"]))
    assert not here.open().holds([D]), "the server may be at it still"
    again.end_lost()
    assert here.open().holds([D])
    assert not fence.holds([D])
    assert not here.open().holds([name("e")]), "its own is none of them"
    again.end(running)
    assert here.open().holds([name("e")])


def test_a_write_that_cannot_be_told_to_the_others_lets_no_fence_hold_any_more(
    opened: Ledger, here: SharedWriteLog, there: SharedWriteLog, caplog: pytest.LogCaptureFixture
) -> None:
    fence = here.open()
    opened.environment.set_mapsize(64 * 1024)
    for number in range(100):
        there.begin(WrittenTables(f"word{number}_{word}" for word in range(100)))
    assert not fence.holds([D])
    assert not here.open().holds([D])
    assert sum("no statement is rewritten any more" in message for message in caplog.messages) == 1


class Broken:
    """An environment of which no part can be read or written."""

    def begin(self, *, write: bool = False) -> object:
        raise lmdb.ReadersFullError(str(write))


def test_a_fence_that_cannot_be_looked_at_does_not_hold(
    here: SharedWriteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = here.open()
    with monkeypatch.context() as broken:
        broken.setattr(here, "_environment", Broken())
        meanwhile = here.open()
        assert not before.holds([D])
    assert before.holds([D])
    assert not meanwhile.holds([D]), "nobody knows what has been written by then"


@pytest.mark.parametrize("what", ["end", "withdraw"])
def test_an_end_that_cannot_be_told_to_the_others_lets_no_fence_hold_any_more(
    here: SharedWriteLog, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    write = here.begin(WrittenTables(["e"]))
    assert here.open().holds([D])
    with monkeypatch.context() as broken:
        broken.setattr(here, "_environment", Broken())
        getattr(here, what)(write)
    assert not here.open().holds([D])


def test_more_ended_writes_than_are_remembered_let_an_old_fence_hold_no_longer_across_workers(
    here: SharedWriteLog, there: SharedWriteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.workers.shared_write_log.ENDED_MAX", 2)
    fence = here.open()
    begun(there, "INSERT INTO e VALUES (1)")(ended())
    begun(here, "INSERT INTO e VALUES (1)")(ended())
    assert fence.holds([D])
    begun(there, "INSERT INTO e VALUES (1)")(ended())
    assert not fence.holds([D])
    assert here.open().holds([D])


def test_no_write_is_lost_between_processes() -> None:
    """Each process writes and looks, over and over; a fence that was open meanwhile never holds."""
    with ledger_directory() as directory:
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            assert list(pool.map(_write_and_look, [str(directory)] * 2, [1, 2])) == [0, 0]
        opened = Ledger(directory, 0)
        assert SharedWriteLog(opened, DIGESTS).open().holds([D])
        opened.close()


def _write_and_look(directory: str, slot: int) -> int:
    opened = Ledger(Path(directory), slot)
    writes = SharedWriteLog(opened, DIGESTS)
    held = 0
    for _ in range(300):
        fence = writes.open()
        writes.end(writes.begin(WrittenTables(["d"])))
        held += fence.holds([D])
    opened.close()
    return held


def test_a_process_that_is_killed_while_it_writes_holds_up_no_other() -> None:
    with ledger_directory() as directory:
        opened = Ledger(directory, 0)
        here = SharedWriteLog(opened, DIGESTS)
        spawn = multiprocessing.get_context("spawn")
        for slot in (1, 1):
            started = spawn.Event()
            writing = spawn.Process(target=_write_for_ever, args=(str(directory), slot, started))
            writing.start()
            assert started.wait(PATIENCE_S)
            writing.kill()
            writing.join()
            for _ in range(100):
                fence = here.open()
                here.end(here.begin(WrittenTables(["e"])))
                assert not fence.holds([name("e")])
        opened.close()


def _write_for_ever(directory: str, slot: int, started: Event) -> None:
    writes = SharedWriteLog(Ledger(Path(directory), slot), DIGESTS)
    while True:
        writes.end(writes.begin(WrittenTables(["d"])))
        started.set()
