"""A small side that is written through one worker while another one reads its keys."""

from collections.abc import Callable, Iterator

import pytest
from acts import First
from fault_stage import DATABASE, Stage, fault_stage, make_tables, seen
from middle import Fault
from test_changing_keys import LATE, STATEMENT, UNDO, WHILE_KEYS_ARE_READ, WRITE
from workers import TWO_WORKERS, session_on

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
