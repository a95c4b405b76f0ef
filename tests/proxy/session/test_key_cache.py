"""Remembered keys: whose they are, how old they may be, and what makes them worthless."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from threading import RLock
from typing import Self

import pytest
from support.text_session import FINISHED

from proxy.operations.dispatch import Outcome, OutcomeKind
from proxy.operations.session_port import SessionOpening
from proxy.session.consistency.session_state import SessionState
from proxy.session.consistency.session_writes import SessionWrites
from proxy.session.consistency.write_fence import Fence, LocalWriteLog
from proxy.session.key_cache import KeyCache
from proxy.statements.statement_class import StatementClass
from rewriter import KeyRanges, Keys, KeySet, KeySetQuery, TableName
from rewriter.semijoins.key_query import KeyColumn

D = frozenset({TableName(("d",))})
STATE, SQL = b"state", "SELECT DISTINCT d.ds .."


def question(sql: str = SQL) -> KeySetQuery:
    return KeySetQuery(sql, (KeyColumn("string"),), 5_000, tables=D)


def keys(*values: str) -> KeySet:
    return KeySet(("string",), tuple((value,) for value in values))


def put(cache: KeyCache, found: Keys, sql: str = SQL, asked_at: float = 100.0, fence: Fence | None = None) -> None:
    fence = fence or LocalWriteLog().open()
    cache.put(STATE, question(sql), found, asker="one", asked_at=asked_at, fence=fence)


def get(cache: KeyCache, *, state: bytes = STATE, sql: str = SQL, since: float = 90.0) -> Keys | None:
    return cache.trusted(state, question(sql), asker="one", asked_since=since)


def test_keys_are_remembered_for_the_same_question_of_the_same_state() -> None:
    cache = KeyCache()
    put(cache, keys("b"), asked_at=99.0)
    put(cache, keys("a"))
    assert get(cache) == get(cache, since=100.0) == keys("a"), "the last answer counts"
    assert get(cache, since=100.1) is None, "it is too old for this reader"
    assert len(cache) == 1
    assert get(cache, state=b"another") is None
    assert get(cache, sql="another") is None
    of_int = KeySetQuery(question().sql, (KeyColumn("int"),), 5_000, tables=D)
    assert cache.trusted(STATE, of_int, asker="one", asked_since=90.0) is None


def test_keys_of_another_session_do_not_come_between_the_look_and_the_answer() -> None:
    cache, fence = KeyCache(), LocalWriteLog().open()

    class Between(AbstractContextManager["Between"]):
        """A lock, at whose first release another session's keys come."""

        lock, has_come = RLock(), False

        def __enter__(self) -> Self:
            self.lock.acquire()
            return self

        def __exit__(self, *_: object) -> None:
            self.lock.release()
            if not self.has_come:
                self.has_come = True
                cache.put(STATE, question(), keys("of another"), asker="other", asked_at=100.0, fence=fence)

    put(cache, keys("its own"))
    cache._lock = Between()  # type: ignore[assignment]  # noqa: SLF001 - the place of another thread
    assert get(cache) in {keys("its own"), None}


def test_another_session_uses_them_only_where_it_asks_again() -> None:
    cache = KeyCache()
    put(cache, keys("a"))
    assert cache.trusted(STATE, question(), asker="other", asked_since=90.0) is None
    assert cache.checked_later(STATE, question(), asked_since=90.0) == keys("a")


def test_a_write_to_a_table_of_the_question_makes_its_keys_worthless() -> None:
    writes = LocalWriteLog()
    cache, session = KeyCache(), SessionWrites(writes)
    put(cache, keys("a"), fence=writes.open())
    assert session.begin(StatementClass("INSERT INTO other VALUES (1)")) is not None
    assert get(cache) == keys("a")
    before = writes.open()
    tell = session.begin(StatementClass("INSERT INTO d VALUES (1)"))
    assert tell is not None
    tell(FINISHED)
    assert get(cache) is None
    put(cache, keys("a"), fence=before)
    assert get(cache) is None, "whenever they are put"


def test_keys_of_a_view_that_has_other_tables_behind_it_by_now_are_worth_nothing() -> None:
    """The entry's fence does not see writes to the new ones."""
    cache = KeyCache()
    put(cache, keys("a"))
    replaced = replace(question(), tables=frozenset({TableName(("e",))}))
    assert replaced == question()
    assert cache.trusted(STATE, replaced, asker="one", asked_since=90.0) is None
    put(cache, keys("a"))
    assert cache.checked_later(STATE, replaced, asked_since=90.0) is None


def test_what_was_used_last_is_kept_longest() -> None:
    cache = KeyCache(entries_max=2)
    put(cache, keys("a"), sql="1")
    put(cache, keys("b"), sql="2")
    assert get(cache, sql="1") == keys("a")
    put(cache, keys("c"), sql="3")
    assert [get(cache, sql=sql) for sql in "123"] == [keys("a"), None, keys("c")]


@pytest.mark.parametrize(
    "large", [keys(*(f"{n:09}" for n in range(100))), KeyRanges("string", (("a" * 9_000, "b" * 9_000),))], ids=type
)
def test_entries_take_no_more_memory_than_is_allowed(large: Keys) -> None:
    cache = KeyCache(bytes_max=40_000)
    for number in range(10):
        put(cache, large, sql=f"{number}")
    assert 1 <= len(cache) <= 2
    assert get(cache, sql="9") == large
    too_large = KeyCache(bytes_max=5_000)
    put(too_large, large)
    assert len(too_large) == 0


def test_threads_may_use_it_at_once() -> None:
    cache = KeyCache(entries_max=10)

    def use(number: int) -> bool:
        sql = f"{number % 20}"
        put(cache, keys(sql), sql=sql)
        return get(cache, sql=sql) in {None, keys(sql)}

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(use, range(2_000)))
    assert len(cache) == 10


def opened(owner: str = "me", **settings: str) -> SessionState:
    configuration = {name.replace("_", ":"): value for name, value in settings.items()}
    return SessionState(SessionOpening(configuration, owner, owner, login=owner))


def after(*statements: str, owner: str = "me", end: OutcomeKind = OutcomeKind.FINISHED) -> SessionState:
    state = opened(owner, use_database="sales")
    for sql in statements:
        tell = state.begin(StatementClass(sql))
        if tell is not None:
            assert state.digest is None, "while it runs nobody knows the state"
            tell(Outcome(end, 1.0))
    return state


@pytest.mark.parametrize("statements", [(), ("SET a=1", "USE db")])
def test_sessions_of_one_user_that_have_set_the_same_are_alike(statements: tuple[str, ...]) -> None:
    assert after(*statements).digest is not None
    assert after(*statements).digest == after(*statements).digest


@pytest.mark.parametrize(
    "other",
    [
        after(owner="you"),
        after("SET a=1"),
        after("SET a=1", "SET a=2"),
        after("SET a=2", "SET a=1"),
        after("USE db"),
        after("RESET a"),
        opened(use_database="other"),
        opened(),
    ],
)
def test_another_user_another_opening_or_other_settings_are_another_state(other: SessionState) -> None:
    assert other.digest is not None
    assert other.digest != after().digest


@pytest.mark.parametrize(
    "sql",
    [
        *("SELECT 1", "/* a tool */ SHOW TABLES", "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x"),
        *("INSERT INTO t VALUES ('temporary')", "CREATE TABLE t (a INT)", "DROP TABLE t"),
    ],
)
def test_what_reads_or_writes_tables_leaves_the_state_as_it_is(sql: str) -> None:
    assert after(sql).digest == after().digest


@pytest.mark.parametrize(
    "sql",
    [
        *("CREATE TEMPORARY VIEW v AS SELECT 1", "create or replace temp view v as select 1"),
        *("CREATE TEMPORARY FUNCTION f AS 'x'", "DECLARE x = 1", "SET VAR x = 2", "SET VARIABLE x = 2"),
        *("SET a=${b}", "ADD JAR '/a.jar'", "CACHE TABLE t", "REFRESH TABLE t", "EXECUTE IMMEDIATE 'SET a=1'"),
        *("BEGIN SET a = 1; END", "/* /* */ select */ SET a=1", "-- \\\nselect\nSET a=1", ""),
    ],
)
def test_what_may_make_a_session_unlike_any_other_makes_it_so(sql: str) -> None:
    assert after(sql).digest is None
    assert after(sql, "SET a=1").digest is None


@pytest.mark.parametrize(
    "end",
    [end for end in OutcomeKind if end not in {OutcomeKind.FINISHED, OutcomeKind.NOT_SENT, OutcomeKind.REFUSED}],
)
def test_a_setting_that_may_have_failed_leaves_an_unknown_state(end: OutcomeKind) -> None:
    assert after("USE db", end=end).digest is None


@pytest.mark.parametrize(
    "end",
    [
        Outcome(OutcomeKind.NOT_SENT, 0.0),
        Outcome(OutcomeKind.REFUSED, 0.0),
        Outcome(OutcomeKind.FAILED, 0.0, is_unread=True),
    ],
)
@pytest.mark.parametrize(
    "sql", ["USE db", "SELEC 1", "CREATE TEMPORARY FUNCTION f AS", "BEGIN SET PATH = db; SELEC 1"]
)
def test_a_statement_of_which_nothing_has_run_leaves_the_state_as_it_was(sql: str, end: Outcome) -> None:
    state = after()
    tell = state.begin(StatementClass(sql))
    assert tell is not None
    tell(end)
    assert state.digest == after().digest
    assert not state.is_changing
    assert state.hidden_names is None
    assert not state.has_variables


def test_two_settings_at_once_leave_an_unknown_state() -> None:
    state = after()
    first = state.begin(StatementClass("SET a=1"))
    assert first is not None
    second = state.begin(StatementClass("SET a=2"))
    assert second is not None
    first(FINISHED)
    assert (state.is_changing, state.digest) == (True, None)
    second(FINISHED)
    assert (state.is_changing, state.digest) == (False, None)


def test_a_session_of_the_proxys_own_is_brought_into_a_state_by_what_clients_ran() -> None:
    known = after("USE db", "SET a=1").known
    assert known is not None
    assert known.digest == after("USE db", "SET a=1").digest
    assert known.statements == ("USE db", "SET a=1")
    assert after("CREATE TEMPORARY FUNCTION current_user AS 'x'").known is None
    assert after(*(f"SET a={number}" for number in range(31))).known is None
    assert after(f"SET a={'x' * 2_000}").known is None
    assert SessionState(SessionOpening({}, "me")).known is None, "nobody knows who it is"


def owner_of(state: SessionState) -> tuple[str, ...]:
    assert state.known is not None
    return state.known.list_owner


def test_lists_belong_to_a_login_and_whom_it_acts_for_and_its_settings_of_spark() -> None:
    mine = owner_of(opened())
    assert mine == owner_of(after()), "a table has the same partitions whatever the current database"
    assert mine == owner_of(after("USE db"))
    assert mine == owner_of(
        SessionState(SessionOpening({"set:hiveconf:hive.server2.x": "1"}, "o", "me", login="me"))
    )
    others = [
        opened("you"),
        after("SET a=1"),
        SessionState(SessionOpening({}, "me", user="you", login="me")),
        SessionState(SessionOpening({"set:hiveconf:spark.sql.catalog.c": "evil"}, "me", "me", login="me")),
    ]
    assert len({mine, *map(owner_of, others)}) == 5
