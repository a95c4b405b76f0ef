"""Tables, views, databases and settings that change while statements read them, and what each of them holds when.

A small side has one of a dozen versions. Each version wants as many keys as the others and no two want the same,
so an answer tells which version Spark read; and an answer by the keys of one and the rows of another is none's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import product
from random import Random
from typing import Final

from pyhive import exc, hive
from serial_orders import Register, Value, is_serial
from TCLIService import ttypes

from demo.hive import run

KEYS: Final = [f"k{number:02}" for number in range(16)]
WANTED_KEYS: Final = 6
VERSIONS: Final = 12
DATABASES: Final = 3
DATABASE: Final = "changing"
SESSIONS: Final = 4

# How long a statement may wait for its end before the test gives up on it: far more than on a busy machine.
PATIENCE_S: Final = 300.0

# A session that has listed the files of Parquet does not look for others, and one that lists those of text may
# come upon one that a writer is about to remove: so it is without us.
_FILES_ARE_GONE: Final = (("overwritten", "FAILED_READ_FILE"), ("growing", ".hive-staging"))

Keys = frozenset[str]
# Opens a session through the proxy, or past it.
Opening = Callable[[], hive.Connection]
# Of each register the versions that come to the same.
Reading = Mapping[Register, list[Value]]


def _versions() -> list[Keys]:
    """Sets of keys, of which none is held by another: also no part of one and another."""
    random, found = Random("the same in every run"), set[Keys]()  # noqa: S311 - it is repeated on purpose
    while len(found) < VERSIONS:
        found.add(frozenset(random.sample(KEYS, WANTED_KEYS)))
    return sorted(found, key=sorted)


WANTED: Final = _versions()


def _rows(version: Value) -> str:
    rows = ", ".join(f"('{key}', {int(key in WANTED[version])}, '{_text(key)}')" for key in KEYS)
    return f"SELECT * FROM VALUES {rows} AS t(k, g, s)"


def _text(key: str) -> str:
    """A number, but for one key's: a cast of that one fails with ANSI's rules and is null without them."""
    return "x" if key == KEYS[0] else "1"


def tables() -> list[str]:
    """The statements that make them."""
    keys = ", ".join(f"('{key}')" for key in KEYS)
    fact = f"USING parquet PARTITIONED BY (k) AS SELECT 1 AS v, k FROM VALUES {keys} AS t(k)"
    made = [f"DROP DATABASE IF EXISTS {DATABASE} CASCADE", f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}"]
    made += [f"CREATE TABLE fact {fact}"]
    made += [f"CREATE TABLE d{version} USING parquet AS {_rows(version)}" for version in range(VERSIONS)]
    made += ["CREATE VIEW inside AS SELECT * FROM d0", "CREATE VIEW outside AS SELECT * FROM d0"]
    made += [f"CREATE TABLE overwritten USING parquet AS {_rows(0)}"]
    made += _grown("growing_0", 0)
    made += [f"CREATE TABLE written_{number} (k STRING) USING parquet" for number in range(SESSIONS)]
    for number in range(DATABASES):
        name = f"{DATABASE}_{number}"
        made += [f"DROP DATABASE IF EXISTS {name} CASCADE", f"CREATE DATABASE {name}"]
        made += [f"CREATE TABLE {name}.fact {fact}"]
        made += [f"CREATE VIEW {name}.dim AS SELECT * FROM {DATABASE}.d{number}"]
    return made


def _grown(table: str, size: int) -> list[str]:
    """The statements by which a table gets that size, from one less. Text is listed anew for each statement."""
    if size:
        return [f"INSERT INTO {table} VALUES ('{KEYS[size - 1]}', 1)"]
    return [f"DROP TABLE IF EXISTS {table}", f"CREATE TABLE {table} (k STRING, g INT) STORED AS TEXTFILE"]


@dataclass
class World:
    """The views and tables that all sessions share, and the outcome of the search."""

    inside: Register = field(default_factory=lambda: Register("inside", 0))
    outside: Register = field(default_factory=lambda: Register("outside", 0))
    overwritten: Register = field(default_factory=lambda: Register("overwritten", 0))
    # How many keys it has; once it has all, another table begins to grow.
    growing: Register = field(default_factory=lambda: Register("growing_0", 0))
    stop: threading.Event = field(default_factory=threading.Event)
    wrong: list[str] = field(default_factory=list)
    # How statements ended.
    counts: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str) -> None:
        with self._lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def fail(self, what: str) -> None:
        with self._lock:
            self.wrong.append(what)
        self.stop.set()


def change_tables(world: World, opening: Opening, random: Random, names: Sequence[str]) -> None:
    """Change tables and views that several sessions read, until it is enough."""
    with closing(opening()) as session:
        run(session, f"USE {DATABASE}")
        while not world.stop.wait(random.choice((0.0, 0.1, 0.5, 2.0))):
            name = random.choice(names)
            register, version = getattr(world, name), random.randrange(VERSIONS)
            if name == "growing":
                version = register.latest + 1
                if version > len(KEYS):
                    _grow_another(world, session)
                    continue
                sql, *_ = _grown(register.name, version)
            elif name == "overwritten":
                sql = f"INSERT OVERWRITE overwritten SELECT * FROM d{version}"
            else:
                sql = f"ALTER VIEW {name} AS SELECT * FROM {DATABASE}.d{version}"
            register.change(version, lambda sql=sql: run(session, sql))
            world.count(f"changes of {name}")


def _grow_another(world: World, session: hive.Connection) -> None:
    number = int(world.growing.name.rpartition("_")[2]) + 1
    for sql in _grown(f"growing_{number}", 0):
        run(session, sql)
    world.growing = Register(f"growing_{number}", 0)


# --- one session


@dataclass(frozen=True)
class Question:
    """A statement, and the registers that it reads with how they show in an answer."""

    sql: str
    # By the keys of an answer, the states that it may have been read from: one or the other of these.
    readings: Callable[[Keys], list[Reading]]
    # The table that the statement writes, where it is no query: the keys are in there then.
    target: str = ""
    # A table that Spark shows without rows while it is overwritten: it deletes the old files first.
    empty_while: Register | None = None


class ChangingSession:
    """A session that asks in the background, and changes while it is answered."""

    def __init__(self, number: int, world: World, opening: Opening, random: Random) -> None:
        self._target = f"{DATABASE}.written_{number}"
        self.world = world
        self._random = random
        self._opening = opening
        self.shown = Register("shown", 0)
        self.database = Register("database", 0)
        self.ansi = Register("ansi", 1)

    def run(self, *, own_connection: bool) -> None:
        """Ask and change on one connection, or change on another one of the same session."""
        with closing(self._opening()) as asking:
            run(asking, f"USE {DATABASE}_0")
            run(asking, f"CREATE OR REPLACE TEMPORARY VIEW shown AS SELECT * FROM {DATABASE}.d0")
            run(asking, "SET spark.sql.ansi.enabled=true")
            if not own_connection:
                while not self.world.stop.is_set():
                    self._ask(asking, lambda: self._change(asking))
                return
            with closing(self._opening()) as changing:
                own, changing._sessionHandle = changing._sessionHandle, asking._sessionHandle  # noqa: SLF001
                beside = threading.Thread(target=self._keep_changing, args=(changing,))
                beside.start()
                while not self.world.stop.is_set():
                    self._ask(asking, lambda: None)
                beside.join()
                changing._sessionHandle = own  # noqa: SLF001

    def _keep_changing(self, connection: hive.Connection) -> None:
        while not self.world.stop.wait(self._random.choice((0.0, 0.1, 0.5, 2.0))):
            self._change(connection)

    def _change(self, connection: hive.Connection) -> None:
        what = self._random.choice(("shown", "database", "ansi", "nothing"))
        if what == "shown":
            version = self._random.randrange(VERSIONS)
            sql = f"CREATE OR REPLACE TEMPORARY VIEW shown AS SELECT * FROM {DATABASE}.d{version}"
            self.shown.change(version, lambda: run(connection, sql))
        elif what == "database":
            number = self._random.randrange(DATABASES)
            self.database.change(number, lambda: run(connection, f"USE {DATABASE}_{number}"))
        elif what == "ansi":
            value = self._random.randrange(2)
            setting = f"SET spark.sql.ansi.enabled={'true' if value else 'false'}"
            self.ansi.change(value, lambda: run(connection, setting))
        if what != "nothing":
            self.world.count(f"changes of a session's {what}")

    def _ask(self, connection: hive.Connection, meanwhile: Callable[[], None]) -> None:
        question = self._random.choice(self._questions())
        if question.empty_while:
            # The session would go on with the files, or the lack of any, that it saw amid an earlier overwrite.
            run(connection, f"REFRESH TABLE {DATABASE}.{question.empty_while.name}")
        since = time.monotonic()
        outcome = self._answer(connection, question.sql, meanwhile)
        until = time.monotonic()
        if question.target and not isinstance(outcome, str):
            outcome = frozenset(key for (key,) in run(connection, f"SELECT k FROM {question.target}"))
        if isinstance(outcome, str):
            self._judge_error(question, outcome, since, until)
            return
        if not outcome and question.empty_while and len(question.empty_while.possible(since, until)) > 1:
            self.world.count("answers amid an overwrite")
            return
        self.world.count("answers")
        readings = question.readings(outcome)
        if not any(is_serial(reading, since, until) for reading in readings):
            told = {one.name: one.possible(since, until) for reading in readings for one in reading}
            answered = f"answered {sorted(outcome)} between {since} and {until}"
            self.world.fail(f"{question.sql}\n{answered}\nwhile possible: {told}")

    def _judge_error(self, question: Question, message: str, since: float, until: float) -> None:
        if "CAST_INVALID_INPUT" in message:
            self.world.count("errors of ANSI")
            if "CAST" not in question.sql or not is_serial({self.ansi: [1]}, since, until):
                self.world.fail(f"{question.sql}\nfailed: {message}")
        elif any(table in question.sql and words in message for table, words in _FILES_ARE_GONE):
            self.world.count("errors of files that are gone")
        elif "40001" in message:
            self.world.count("answers dropped")
        else:
            self.world.fail(f"{question.sql}\nfailed: {message}")

    def _answer(self, connection: hive.Connection, sql: str, meanwhile: Callable[[], None]) -> Keys | str:
        """The keys of an answer, or how the statement failed."""
        cursor = connection.cursor()
        try:
            if self._random.random() < 0.2:
                cursor.execute(sql)
            else:
                cursor.execute(sql, async_=True)
                if self._random.random() < 0.2:
                    _ = cursor.description
                meanwhile()
                failure = _wait(cursor)
                if failure is not None:
                    return failure
            return frozenset(row[0] for row in cursor.fetchall()) if cursor.description else frozenset()
        except exc.OperationalError as error:
            return _words(error)
        finally:
            cursor.close()

    # --- what is asked

    def _questions(self) -> list[Question]:
        return [
            *(self._of("shown", self.shown),) * 4,
            *(self._of("dim", self.database, range(DATABASES)),) * 2,
            self._of(f"{DATABASE}.inside", self.world.inside),
            self._of_outside(),
            self._of_overwritten(),
            self._of_two(),
            self._of_a_cast(),
            self._of_growing(),
            *(self._written(self._of("shown", self.shown)),) * 2,
        ]

    def _written(self, question: Question) -> Question:
        """The same, whose answer is written into a table of the session's own."""
        return replace(question, sql=f"INSERT OVERWRITE {self._target} {question.sql}", target=self._target)

    def _of(self, small_side: str, register: Register, versions: Sequence[Value] = range(VERSIONS)) -> Question:
        return Question(_join(small_side), lambda keys: [{register: [v for v in versions if WANTED[v] == keys]}])

    def _of_outside(self) -> Question:
        """A view that is changed past the proxy. The keys may be of another moment than its rows."""
        register = self.world.outside

        def readings(keys: Keys) -> list[Reading]:
            read_twice = product(range(VERSIONS), repeat=2)
            return [{register: [v]} for v, u in read_twice if WANTED[v] & WANTED[u] == keys]

        return Question(_join(f"{DATABASE}.outside"), readings)

    def _of_overwritten(self) -> Question:
        register = self.world.overwritten
        return replace(self._of(f"{DATABASE}.overwritten", register), empty_while=register)

    def _of_two(self) -> Question:
        """Two small sides on one key, which both have to want."""
        sql = (
            f"SELECT f.k FROM {DATABASE}.fact f JOIN shown a ON f.k = a.k"
            f" JOIN {DATABASE}.inside b ON f.k = b.k WHERE a.g = 1 AND b.g = 1"
        )

        def readings(keys: Keys) -> list[Reading]:
            pairs = product(range(VERSIONS), repeat=2)
            return [{self.shown: [a], self.world.inside: [b]} for a, b in pairs if WANTED[a] & WANTED[b] == keys]

        return Question(sql, readings)

    def _of_a_cast(self) -> Question:
        """A filter of the small side that fails by one rule and holds by the other."""
        small_side = f"JOIN {DATABASE}.d3 d ON f.k = d.k WHERE coalesce(CAST(d.s AS INT), 1) = 1"
        sql = f"SELECT f.k FROM fact f {small_side}"
        return Question(sql, lambda keys: [{self.ansi: [0] if keys == frozenset(KEYS) else []}])

    def _of_growing(self) -> Question:
        sizes, register = range(len(KEYS) + 1), self.world.growing
        return Question(
            _join(f"{DATABASE}.{register.name}"),
            lambda keys: [{register: [n for n in sizes if keys == frozenset(KEYS[:n])]}],
        )


def _join(small_side: str) -> str:
    return f"SELECT f.k FROM fact f JOIN {small_side} d ON f.k = d.k WHERE d.g = 1"


_WAITING: Final = frozenset(
    {
        ttypes.TOperationState.INITIALIZED_STATE,
        ttypes.TOperationState.PENDING_STATE,
        ttypes.TOperationState.RUNNING_STATE,
    }
)


def _wait(cursor: hive.Cursor) -> str | None:
    """How the statement failed, or None once it has finished."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        state = cursor.poll()
        if state.operationState == ttypes.TOperationState.FINISHED_STATE:
            return None
        if state.operationState not in _WAITING:
            return f"{state.sqlState} {state.errorMessage}"
    return "it has not ended"


def _words(error: Exception) -> str:
    status = getattr(error.args[0], "status", None)
    return str(error) if status is None else f"{status.sqlState} {status.errorMessage} {status.infoMessages}"
