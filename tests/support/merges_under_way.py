"""MERGEs through a proxy while something breaks, while others run, and while the source changes."""

import random
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from pipeline_server import PipelineServer
from pyhive import exc, hive
from serial_orders import Register
from TCLIService.ttypes import TOperationState
from thrift.Thrift import TException

from demo.hive import connect, run
from demo.proxy_process import ProxyProcess, proxy_process
from support.beeline_clients import breakable_session
from support.executed_texts import texts_after
from support.fault_acts import Cut, First, Moment
from support.fault_proxy import Fault, Middle, Seen
from support.narrowed_merges import SMALL, set_all
from support.profile import DEEP
from support.proxies import patient
from support.server_statements import StatementPage

DATABASE = "merges_under_way"
# Not one that can be run twice: a second one adds again.
MERGE = (
    "MERGE INTO {target} t USING {source} s ON t.id = s.id AND t.ds = s.ds"
    " WHEN MATCHED THEN UPDATE SET v = t.v + s.v WHEN NOT MATCHED THEN INSERT *"
)
NARROWED, AS_IT_CAME = r"^MERGE .*raise_error", r"^MERGE (?!.*raise_error)"
RUNNING = {TOperationState.INITIALIZED_STATE, TOperationState.PENDING_STATE, TOperationState.RUNNING_STATE}
SETTINGS = {
    **SMALL,
    "starpruner.merge_tables": "*",
    # Remembered keys are used however old they are.
    "starpruner.key_staleness_s": "600",
}
# After a failure the proxy would leave MERGEs alone for ten minutes, and run none again that fails after a minute.
# One that was cut counts as running for up to an hour, in which its table is not described anew.
FORGIVING = ("rewrite.quarantine_s=0.001", "rewrite.rerun_within_s=600", "catalog.facts_ttl_s=3600")

WRITERS, ROUNDS = 4, 3
CHANGING_S = 1800 if DEEP else 10
DAYS, IDS = 6, 12
# By its keys or by old ones, within its call or in the background: in the quick run each once.
CASES = [(False, True), (True, False), *([(False, False), (True, True)] if DEEP else [])]
# Parts of the changes.
PAST_THE_PROXY, UPDATED = 0.7, 0.5

# Spark 4.1.4 cannot read the checkpoint that Delta 4.2 writes at each tenth commit. A commit to Iceberg that
# conflicts with nothing fails nevertheless once others came before it five times.
PROPERTIES = "'delta.checkpointInterval' = '1000000', 'commit.retry.num-retries' = '100'"
# A statement that Spark has been sent is on its page within that time.
IDLE_S, POLL_S = 5.0, 0.1
# The rows of a source, and MERGEs whose effects on one row are counted in one number.
MERGED, BASE, CUTS_COUNTED = ((1, "d1"), (2, "d2"), (99, "d9")), 4, 24

Rows = dict[tuple[int, str], int]


def merged(rows: Rows, source: Rows) -> Rows:
    """The rows after the MERGE."""
    return {key: rows.get(key, 0) + source.get(key, 0) for key in rows | source}


@dataclass(frozen=True)
class Stage:
    """A proxy behind which calls can go wrong, and a server with a format."""

    server: PipelineServer
    middle: Middle
    proxy: ProxyProcess
    using: str
    direct: hive.Connection

    def make(self, table: str, rows: Rows) -> None:
        """Make a table of these rows, past the proxy."""
        values = ", ".join(f"({key}, '{day}', {v})" for (key, day), v in rows.items())
        run(self.direct, f"DROP TABLE IF EXISTS {table}")
        run(
            self.direct,
            f"CREATE TABLE {table} USING {self.using} PARTITIONED BY (ds) TBLPROPERTIES ({PROPERTIES})"
            f" AS SELECT id, ds, CAST(v AS BIGINT) AS v FROM VALUES {values} AS rows(id, ds, v)",
        )

    def rows(self, table: str) -> Rows:
        """The table's rows now."""
        return {(key, day): v for key, day, v in run(self.direct, f"SELECT id, ds, v FROM {table}")}

    @contextmanager
    def session(self, proxy: ProxyProcess | None = None, user: str = "demo") -> Iterator[hive.Connection]:
        """A session through a proxy, which may break."""
        with breakable_session((proxy or self.proxy).endpoint, user, DATABASE) as session:
            set_all(session, SETTINGS)
            yield session

    def wait_until_no_merge_runs(self) -> None:
        """Returns once the server has ended each MERGE, and none that it was sent can begin any more."""
        page, until = StatementPage(self.server.ui.url), time.monotonic() + IDLE_S
        while time.monotonic() < until:
            if self.server.ui.has_running_execution() or {*page.states("MERGE INTO")} - {"CLOSED"}:
                until = time.monotonic() + IDLE_S
            time.sleep(POLL_S)


@contextmanager
def merge_stage(server: PipelineServer, directory: Path, using: str) -> Iterator[Stage]:
    """A proxy with a middle behind it, in front of a server whose tables are USING that.

    Each test takes one of its own: a proxy counts a MERGE that was cut within its call as running for an hour, and
    as writing any table if it could not describe the target.
    """
    with closing(Middle(server.endpoint)) as middle, closing(connect(server.endpoint)) as direct:
        threading.Thread(target=middle.serve, daemon=True).start()
        run(direct, f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        run(direct, f"USE {DATABASE}")
        set_all(direct, SMALL)
        with proxy_process(middle.endpoint, directory, options=patient(*FORGIVING)) as proxy:
            yield Stage(server, middle, proxy, using, direct)


def make_tables(stage: Stage) -> None:
    """Make a target and a source anew."""
    stage.make("t", {(key, f"d{key % DAYS}"): 0 for key in range(IDS)})
    stage.make("src", dict.fromkeys(MERGED, 1))


def merge_adding(number: int) -> str:
    """The MERGE with a number in place of the source's."""
    merge = MERGE.format(target="t", source="src").replace("t.v + s.v", f"t.v + {number}")
    return merge.replace("INSERT *", f"INSERT (id, ds, v) VALUES (s.id, s.ds, {number})")


def failure(session: hive.Connection, sql: str, *, run_async: bool) -> str | None:
    """Tell why the client is not told that the statement has finished; None if it is."""
    try:
        cursor = session.cursor()
        cursor.execute(sql, async_=run_async)
        while run_async and (state := cursor.poll().operationState) in RUNNING:
            time.sleep(POLL_S)
    except (TException, OSError, exc.Error) as error:
        return str(error)
    return None if not run_async or state == TOperationState.FINISHED_STATE else str(state)


def finishes(session: hive.Connection, sql: str, *, run_async: bool) -> bool:
    """True if the client is told that the statement has finished."""
    return failure(session, sql, run_async=run_async) is None


@contextmanager
def about_to_merge(stage: Stage, *, is_late: bool) -> Iterator[hive.Connection]:
    """A session to run the MERGE in; a late one has keys that lack one of the source's by now."""
    with stage.session() as session:
        if is_late:
            # The MERGE before may still run, though nobody waits for it.
            while not finishes(session, merge_adding(0), run_async=False):
                time.sleep(POLL_S)
            number = len(stage.rows("src")) + 1000
            # Past the proxy.
            run(stage.direct, f"INSERT INTO src VALUES ({number}, 'n{number}', 1)")
        yield session


def calls_of_a_merge(stage: Stage, *, is_late: bool, run_async: bool) -> list[tuple[str, str]]:
    """The calls of one MERGE, by name and text; of one with old keys, those of both of its texts."""
    with about_to_merge(stage, is_late=is_late) as session:
        stage.middle.calls.clear()
        assert finishes(session, merge_adding(0), run_async=run_async)
        return list(dict.fromkeys(filter(None, map(step_of, stage.middle.calls))))


def step_of(call: Seen) -> tuple[str, str] | None:
    if not (DEEP or call.statement.startswith("MERGE")):
        return None
    patterns = (NARROWED, AS_IT_CAME, "^" + re.escape(call.statement[:30]))
    return call.name, next(pattern for pattern in patterns if re.search(pattern, call.statement))


def cut_short(stage: Stage, *, is_late: bool, run_async: bool) -> list[object]:
    """Cut the connection at each call of a MERGE; what is wrong in the table after that.

    Each MERGE adds another power of a base, so that the sums tell how often each of them took effect. A late one
    has old keys: it fails, and is then run as it came.
    """
    make_tables(stage)
    # Until a proxy knows the settings of its server, a MERGE may add columns, and the next one is left as it is.
    _ = calls_of_a_merge(stage, is_late=is_late, run_async=run_async)
    steps = calls_of_a_merge(stage, is_late=is_late, run_async=run_async)
    assert ("ExecuteStatement", NARROWED) in steps
    assert (("ExecuteStatement", AS_IT_CAME) in steps) is is_late
    # Descriptions come last: after one that was cut, its table is left alone for a while.
    steps.sort(key=lambda step: step[1] not in {NARROWED, AS_IT_CAME})
    cuts = list(product(steps, Moment if DEEP else (Moment.AFTER_THE_CALL, Moment.BEFORE_THE_REPLY)))
    wrong = list[object]()
    for begin in range(0, len(cuts), CUTS_COUNTED):
        make_tables(stage)
        some, finished = cuts[begin : begin + CUTS_COUNTED], list[bool]()
        for number, ((name, pattern), moment) in enumerate(some):
            fault = Fault(Cut(moment), name, pattern, times=1)
            with about_to_merge(stage, is_late=is_late) as session, stage.middle.faulty(fault):
                finished.append(finishes(session, merge_adding(BASE**number), run_async=run_async))
            # An operation may be closed later, beside what the client does next, and descriptions are remembered.
            is_certain = pattern in {NARROWED, AS_IT_CAME} and name != "CloseOperation"
            # The client does not ask for the state of a statement whose keys the proxy found to be old in time.
            is_certain &= not (is_late and name == "GetOperationStatus" and pattern == NARROWED)
            wrong += [] if fault.done or not is_certain else [("no such call", name, pattern)]
        stage.wait_until_no_merge_runs()
        rows = stage.rows("t")
        for number, (cut, is_finished) in enumerate(zip(some, finished, strict=True)):
            times = {rows.get(row, 0) // BASE**number % BASE for row in MERGED}
            wrong += [] if times in ([{1}] if is_finished else [{0}, {1}]) else [(cut, is_finished, times)]
    return wrong


def killed(stage: Stage, call: str, directory: Path) -> list[object]:
    """Kill a proxy at a call of a MERGE, and run the MERGE by another one; each wrong content of the table."""
    make_tables(stage)
    merge = MERGE.format(target="t", source="src")
    before, once = stage.rows("t"), merged(stage.rows("t"), stage.rows("src"))
    with proxy_process(stage.middle.endpoint, directory, options=patient()) as proxy:
        fault = Fault(First(proxy.child.process.kill), call, NARROWED, times=1)
        with stage.session(proxy) as session, stage.middle.faulty(fault):
            assert not finishes(session, merge, run_async=True)
    assert fault.done
    stage.wait_until_no_merge_runs()
    after = stage.rows("t")
    with stage.session() as session:
        assert finishes(session, merge, run_async=True)
    again = stage.rows("t")
    return [
        found
        for found, right in ((after, (before, once)), (again, (merged(after, stage.rows("src")),)))
        if found not in right
    ]


def of_several_days_at_once(
    stage: Stage, cost_gate: str, database: str = DATABASE
) -> tuple[list[tuple[str, str]], Rows, Rows]:
    """Merge days of their own into one table by several sessions, each again where it fails.

    The narrowed texts that failed, with their errors, the table's rows, and the right ones. With the cost gate,
    which leaves MERGEs of such tables alone at first, some are narrowed since their originals conflicted.
    """
    rows, target = {(key, f"d{key % WRITERS}"): 0 for key in range(IDS)}, f"{database}.at_once"
    stage.make(target, rows)
    for writer in range(WRITERS):
        stage.make(f"{database}.src_{writer}", {key: writer + 1 for key in rows if key[1] == f"d{writer}"})
    stage.middle.calls.clear()

    def failed_narrowed(writer: int) -> list[tuple[str, str]]:
        failures = list[str | None]()
        with stage.session(user=f"writer{writer}") as session:
            run(session, f"SET starpruner.cost_gate={cost_gate}")
            sql = MERGE.format(target=target, source=f"{database}.src_{writer}")
            while failures.count(None) < ROUNDS:
                failures.append(failure(session, sql, run_async=False))
        sent = [
            call.statement
            for call in stage.middle.calls
            if call.user == f"writer{writer}" and call.name == "ExecuteStatement" and "MERGE" in call.statement
        ]
        pairs = zip(sent, failures, strict=True)
        return [(text, error) for text, error in pairs if error is not None and re.search(NARROWED, text)]

    with ThreadPoolExecutor(WRITERS) as pool:
        failed = [pair for pairs in pool.map(failed_narrowed, range(WRITERS)) for pair in pairs]
    assert stage.middle.executed(NARROWED)
    # A catalog of Iceberg's may keep the table as this session has made it.
    run(stage.direct, f"REFRESH TABLE {target}")
    return failed, stage.rows(target), {(key, day): (int(day[1:]) + 1) * ROUNDS for key, day in rows}


@dataclass
class Source:
    """A source that one thread at a time changes, and all that it has been."""

    states: list[Rows]
    register: Register
    chance: random.Random

    def change(self, session: hive.Connection) -> None:
        """Insert, update or delete something."""
        now, number = self.states[-1], len(self.states)
        key, day, v = (
            self.chance.randrange(IDS),
            f"d{self.chance.randrange(DAYS + 3)}",
            self.chance.randrange(1, 9),
        )
        if (key, day) not in now:
            sql, then = f"INSERT INTO changing VALUES ({key}, '{day}', {v})", now | {(key, day): v}
        elif self.chance.random() < UPDATED:
            sql = f"UPDATE changing SET v = {v} WHERE id = {key} AND ds = '{day}'"
            then = now | {(key, day): v}
        else:
            sql = f"DELETE FROM changing WHERE ds = '{day}'"
            then = {row: value for row, value in now.items() if row[1] != day}
        self.states.append(then)
        self.register.change(number, lambda: run(session, sql))


def while_the_source_changes(stage: Stage) -> list[object]:
    """Merge a source again and again that others change meanwhile, past the proxy and through it; what is wrong.

    Right is the table after a MERGE by any state that the source had while it ran.
    """
    chance = random.Random(None if DEEP else 7)  # noqa: S311 - no secret
    first: Rows = {(1, "d1"): 1, (2, "d2"): 1}
    stage.make("of_changing", {(key, f"d{key % DAYS}"): 0 for key in range(IDS)})
    stage.make("changing", first)
    source, is_over = Source([first], Register("changing", 0), chance), threading.Event()
    before, wrong, ran = stage.rows("of_changing"), list[object](), stage.server.ui.last_execution()

    def write() -> None:
        with closing(connect(stage.server.endpoint, database=DATABASE)) as past, stage.session() as through:
            set_all(past, SMALL)
            while not is_over.is_set():
                source.change(past if chance.random() < PAST_THE_PROXY else through)
                is_over.wait(chance.random() * 2)

    with ThreadPoolExecutor(1) as pool, stage.session() as session:
        writing = pool.submit(write)
        end = time.monotonic() + CHANGING_S
        while time.monotonic() < end and not wrong and not writing.done():
            since = time.monotonic()
            run(session, MERGE.format(target="of_changing", source="changing"))
            possible = [span.value for span in source.register.possible(since, time.monotonic())]
            after = stage.rows("of_changing")
            if after not in [merged(before, source.states[value]) for value in possible]:
                wrong.append((before, after, [source.states[value] for value in possible]))
            before = after
        is_over.set()
        writing.result()
    texts = [text for text in texts_after(stage.server.ui, ran) if text.startswith("MERGE INTO of_changing ")]
    assert any(re.search(NARROWED, text, re.DOTALL) for text in texts)
    return wrong
