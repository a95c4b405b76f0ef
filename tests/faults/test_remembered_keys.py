"""Remembered keys that are checked while their statement runs: whatever happens meanwhile, the answer is right."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import pytest
from fault_stage import DATABASE, KEY_QUERY, NARROWED, Seen, Stage, fault_stage, make_tables, seen
from pyhive import hive
from support.beeline_clients import breakable_session
from support.fault_acts import Cut, First, Moment, Refuse, Slow, Throw
from support.fault_proxy import Act, Fault
from support.metrics_of_proxy import key_checks
from support.profile import DEEP
from support.worker_processes import TWO_WORKERS, session_on
from test_changing_keys import LATE, STATEMENT, UNDO, WRITE, behind_its_back, through_proxy
from test_clients_that_leave import abort, goodbye
from test_overtaken_statements import in_background, second_connection
from thrift.Thrift import TException

from demo.hive import connect, run
from demo.thrift_server import ThriftServer

REMEMBERS = ("--set", "rewrite.keys_remembered_s=3600", "--set", "rewrite.quarantine_s=0.001")
# The deadline of a key query where one comes past it, and the time by which a test lets it.
DEADLINE_S, LATE_S = 10, 60
PATIENCE_S = 60

Ask = Callable[[hive.Connection, str], Seen]


@pytest.fixture(scope="module", autouse=True)
def tables(spark: ThriftServer) -> None:
    make_tables(spark)
    with closing(connect(spark.endpoint, database=DATABASE)) as session:
        for sql in LATE:
            run(session, sql)


@pytest.fixture(scope="module")
def patient_stage(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with fault_stage(spark, tmp_path_factory.mktemp("remembered"), *REMEMBERS) as stage:
        yield stage


@pytest.fixture
def stage(patient_stage: Stage) -> Iterator[Stage]:
    with patient_stage.direct() as session:
        run(session, UNDO)
    with patient_stage.nothing_left_behind():
        yield patient_stage
        patient_stage.middle.faults = []


@contextmanager
def remembering(stage: Stage, user: str | None = None) -> Iterator[hive.Connection]:
    """A session of a user, by default of a new one, who has just had the statement answered."""
    with stage.proxied(user=user or f"user{time.monotonic_ns()}") as session:
        assert seen(session, STATEMENT) == stage.directly(STATEMENT)
        stage.middle.calls.clear()
        yield session


def counted(stage: Stage, before: Counter[str]) -> Counter[str]:
    return key_checks(stage.proxy) - before


@pytest.mark.parametrize("ask", [seen, in_background])
def test_a_statement_is_sent_before_its_keys_are_asked_for(stage: Stage, ask: Ask) -> None:
    before = key_checks(stage.proxy)

    def until_sent() -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not stage.middle.executed(NARROWED):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    fault = Fault(First(until_sent), "ExecuteStatement", KEY_QUERY)
    with remembering(stage) as session, stage.middle.faulty(fault):
        assert ask(session, STATEMENT) == stage.directly(STATEMENT)
    assert fault.done == 1
    assert counted(stage, before) == {"held": 1}


@pytest.mark.parametrize("ask", [seen, in_background])
@pytest.mark.parametrize("write", [behind_its_back, through_proxy])
def test_keys_that_were_written_since_are_seen(stage: Stage, ask: Ask, write: Callable[[Stage], None]) -> None:
    before = key_checks(stage.proxy)
    with remembering(stage) as session:
        write(stage)
        stage.middle.calls.clear()
        assert ask(session, STATEMENT) == stage.directly(STATEMENT)
        # Past the proxy: once by the remembered keys, and once by those that the check has read.
        assert len(stage.middle.executed(NARROWED)) == (2 if write is behind_its_back else 1)
        assert len(stage.middle.executed(KEY_QUERY)) == 1
    assert counted(stage, before) == ({"changed": 1} if write is behind_its_back else {})


@pytest.mark.parametrize("ask", [seen, in_background])
def test_a_write_past_the_proxy_while_the_statement_is_on_its_way_is_seen(stage: Stage, ask: Ask) -> None:
    is_written = threading.Event()

    def write() -> None:
        behind_its_back(stage)
        is_written.set()

    fault = Fault(First(write), "ExecuteStatement", NARROWED, times=1)
    with remembering(stage) as session:
        # The keys are asked for once the write is done.
        waiting = Fault(First(lambda: is_written.wait(PATIENCE_S)), "ExecuteStatement", KEY_QUERY)
        with stage.middle.faulty(fault, waiting):
            found = ask(session, STATEMENT)
    assert fault.done
    assert found == stage.directly(STATEMENT)


@pytest.mark.parametrize("ask", [seen, in_background])
def test_a_write_through_the_proxy_while_keys_are_checked_is_seen(stage: Stage, ask: Ask) -> None:
    fault = Fault(First(lambda: through_proxy(stage)), "CloseOperation", KEY_QUERY, times=1)
    with remembering(stage) as session, stage.middle.faulty(fault):
        found = ask(session, STATEMENT)
    assert fault.done
    assert found == stage.directly(STATEMENT)


FAULTS: dict[str, tuple[str, Act]] = {
    "the question is refused": ("ExecuteStatement", Refuse("no")),
    "the server fails at the question": ("ExecuteStatement", Throw()),
    "its rows are refused": ("FetchResults", Refuse("no")),
    "the connection breaks before the question": ("ExecuteStatement", Cut(Moment.BEFORE_THE_CALL)),
    "the connection breaks after the question": ("ExecuteStatement", Cut(Moment.AFTER_THE_CALL)),
    "the connection breaks in its rows": ("FetchResults", Cut(Moment.IN_THE_REPLY)),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("changes", [(WRITE,), ()] if DEEP else [(WRITE,)], ids=" ".join)
def test_a_check_that_fails_lets_no_answer_out(stage: Stage, name: str, changes: tuple[str, ...]) -> None:
    call, act = FAULTS[name]
    fault = Fault(act, call, KEY_QUERY, times=1)
    with remembering(stage) as session:
        with stage.direct() as direct:
            for sql in changes:
                run(direct, sql)
        with stage.middle.faulty(fault):
            assert seen(session, STATEMENT) == stage.directly(STATEMENT)
        assert fault.done
        assert seen(session, STATEMENT) == stage.directly(STATEMENT)


def test_a_check_that_is_late_is_given_up(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    options = ("--set", f"rewrite.key_query_deadline_s={DEADLINE_S}")
    with fault_stage(spark, tmp_path_factory.mktemp("late"), *REMEMBERS, *options) as stage:
        late = Fault(Slow(LATE_S), "ExecuteStatement", KEY_QUERY, times=1)
        with stage.nothing_left_behind(), remembering(stage) as session:
            behind_its_back(stage)
            with stage.middle.faulty(late):
                assert seen(session, STATEMENT) == stage.directly(STATEMENT)
            assert late.done
            assert key_checks(stage.proxy)["unanswered"] == 1


def test_where_a_second_connection_is_refused_keys_are_asked_for_first(
    spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with fault_stage(spark, tmp_path_factory.mktemp("refusing"), *REMEMBERS) as stage:
        with remembering(stage) as session:
            stage.middle.refuses_connections = True
            for _ in range(2):
                assert seen(session, STATEMENT) == stage.directly(STATEMENT)
        # The second time nobody tried.
        assert key_checks(stage.proxy) == {"not_asked": 1}


@pytest.mark.parametrize("leave", [goodbye, abort])
def test_a_client_may_leave_while_its_keys_are_checked(
    stage: Stage, leave: Callable[[hive.Connection], None]
) -> None:
    with breakable_session(stage.proxy.endpoint) as session:
        run(session, f"USE {DATABASE}")
        assert seen(session, STATEMENT) == stage.directly(STATEMENT)
        fault = Fault(First(lambda: leave(session)), "GetOperationStatus", KEY_QUERY, times=1)
        with stage.middle.faulty(fault), suppress(TException, OSError):
            seen(session, STATEMENT)
    assert fault.done


def test_the_backend_may_leave_while_keys_are_checked(stage: Stage) -> None:
    cut = Fault(Cut(Moment.BEFORE_THE_REPLY), "ExecuteStatement", NARROWED, times=1)
    with remembering(stage) as session, stage.middle.faulty(cut), suppress(TException, OSError):
        seen(session, STATEMENT)
    assert cut.done


def test_the_session_may_change_while_keys_are_checked(stage: Stage) -> None:
    view = "CREATE OR REPLACE TEMPORARY VIEW late AS SELECT 'd12' AS ds, 'wanted' AS name"
    with remembering(stage, "demo") as session, second_connection(stage, session) as other:
        fault = Fault(First(lambda: run(other, view)), "ExecuteStatement", KEY_QUERY, times=1)
        with stage.middle.faulty(fault):
            found = in_background(session, STATEMENT)
        assert fault.done
        # It may have run before the change or after it.
        run(session, "DROP VIEW IF EXISTS late")
        before = seen(session, STATEMENT)
        run(session, view)
        assert found in (before, seen(session, STATEMENT))


def test_small_sides_that_change_all_the_time_are_asked_first(stage: Stage) -> None:
    before = key_checks(stage.proxy)
    with remembering(stage) as session:
        for number in range(5):
            with stage.direct() as direct:
                run(direct, f"INSERT INTO late VALUES ('d{13 + number}', 'wanted')")
            assert seen(session, STATEMENT) == stage.directly(STATEMENT)
    assert counted(stage, before) == {"changed": 3}


def test_keys_are_checked_by_each_worker(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    with fault_stage(spark, tmp_path_factory.mktemp("workers"), *REMEMBERS, *TWO_WORKERS) as stage:
        with stage.direct() as direct:
            run(direct, UNDO)
        for slot in range(2):
            with session_on(stage.proxy, slot, database=DATABASE) as session:
                assert seen(session, STATEMENT) == stage.directly(STATEMENT)
                with stage.direct() as direct:
                    run(direct, WRITE.replace("d20", f"d2{slot}"))
                assert seen(session, STATEMENT) == stage.directly(STATEMENT)
        assert key_checks(stage.proxy) == {"changed": 2}
