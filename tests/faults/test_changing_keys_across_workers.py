"""A small side that is written through one worker while another one reads its keys."""

from collections.abc import Callable, Iterator

import pytest
from fault_stage import DATABASE, KEY_QUERY, NARROWED, Seen, Stage, fault_stage, make_tables, seen
from support.fault_acts import First
from support.fault_proxy import Fault
from support.worker_processes import TWO_WORKERS, session_on
from test_changing_keys import LATE, STATEMENT, UNDO, WHILE_KEYS_ARE_READ, WRITE

from demo.hive import run
from demo.thrift_server import ThriftServer


@pytest.fixture(scope="module")
def stage(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    make_tables(spark)
    with fault_stage(spark, tmp_path_factory.mktemp("workers"), *TWO_WORKERS) as stage:
        with stage.direct() as session:
            for sql in LATE:
                run(session, sql.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
            run(session, UNDO)
        yield stage


def test_a_write_through_another_worker_while_keys_are_read_is_seen(stage: Stage) -> None:
    before = stage.directly(STATEMENT)
    with (
        session_on(stage.proxy, 0, database=DATABASE) as reading,
        session_on(stage.proxy, 1, database=DATABASE) as writing,
    ):
        write: Callable[[], object] = lambda: run(writing, WRITE)  # noqa: E731 - a name for what happens within
        fault = Fault(First(write), *WHILE_KEYS_ARE_READ, times=1)
        with stage.middle.faulty(fault):
            found = seen(reading, STATEMENT)
        assert fault.done
        assert found == stage.directly(STATEMENT)
        assert found != before


def test_while_another_worker_writes_a_small_side_its_keys_are_not_asked_for(stage: Stage) -> None:
    before, answers = stage.directly(STATEMENT), list[Seen]()
    with (
        session_on(stage.proxy, 0, database=DATABASE) as reading,
        session_on(stage.proxy, 1, database=DATABASE) as writing,
    ):
        stage.middle.calls.clear()
        read = Fault(
            First(lambda: answers.append(seen(reading, STATEMENT))), "ExecuteStatement", "^INSERT", times=1
        )
        with stage.middle.faulty(read):
            run(writing, WRITE)
        assert answers == [before]
        assert not stage.middle.executed(KEY_QUERY)


def test_what_another_worker_reads_for_a_copy_is_no_write_of_it(stage: Stage) -> None:
    with (
        session_on(stage.proxy, 0, database=DATABASE) as reading,
        session_on(stage.proxy, 1, database=DATABASE) as writing,
    ):
        run(writing, "CREATE TABLE IF NOT EXISTS copy_of_another (ds STRING, name STRING) USING parquet")
        stage.middle.calls.clear()
        read = Fault(First(lambda: seen(reading, STATEMENT)), "ExecuteStatement", "^INSERT", times=1)
        with stage.middle.faulty(read):
            run(writing, "INSERT INTO copy_of_another SELECT * FROM late")
        assert read.done
        assert stage.middle.executed(NARROWED)
