"""A small side that changes after its keys were read and before the statement reads it again."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from fault_stage import DATABASE, JOIN, KEY_QUERY, NARROWED, Seen, Stage, fault_stage, make_tables, seen
from support.fault_acts import First
from support.fault_proxy import Fault

from demo.hive import connect, run
from demo.thrift_server import ThriftServer

# A table whose files Spark lists for each statement anew: of others it would not see the change either.
LATE = (
    "CREATE TABLE late (ds STRING, name STRING) STORED AS TEXTFILE",
    "INSERT INTO late VALUES ('d10', 'wanted'), ('d11', 'wanted'), ('d12', '')",
)
STATEMENT = JOIN.replace("dim d", "late d")
WRITE = "INSERT INTO late VALUES ('d20', 'wanted')"
UNDO = "INSERT OVERWRITE late VALUES ('d10', 'wanted'), ('d11', 'wanted'), ('d12', '')"

# The last call of the key query, before the fence is looked at; and the statement itself, after it.
WHILE_KEYS_ARE_READ = ("CloseOperation", KEY_QUERY)
BEFORE_THE_STATEMENT = ("ExecuteStatement", NARROWED)


@pytest.fixture(scope="module")
def stage(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    make_tables(spark)
    with fault_stage(spark, tmp_path_factory.mktemp("keys"), "--set", "rewrite.quarantine_s=0.001") as stage:
        with stage.direct() as session:
            for sql in LATE:
                run(session, sql)
        yield stage


@pytest.fixture
def before(stage: Stage) -> Seen:
    with stage.direct() as session:
        run(session, UNDO)
        return seen(session, STATEMENT)


def through_proxy(stage: Stage) -> None:
    with closing(connect(stage.proxy.endpoint, database=DATABASE)) as session:
        run(session, WRITE)


def behind_its_back(stage: Stage) -> None:
    with stage.direct() as session:
        run(session, WRITE)


def answer_with_a_write(stage: Stage, moment: tuple[str, str], write: Callable[[Stage], None]) -> Seen:
    """What the statement answers if the write comes at the moment."""
    name, pattern = moment
    fault = Fault(First(lambda: write(stage)), name, pattern, times=1)
    with stage.proxied() as session, stage.middle.faulty(fault):
        found = seen(session, STATEMENT)
    assert fault.done
    return found


def test_a_session_sees_a_write_through_the_proxy_while_its_keys_are_read(stage: Stage, before: Seen) -> None:
    found = answer_with_a_write(stage, WHILE_KEYS_ARE_READ, through_proxy)
    assert found == stage.directly(STATEMENT)
    assert found != before


def test_a_session_is_narrowed_by_what_another_one_copies_meanwhile(stage: Stage, before: Seen) -> None:
    def copy() -> None:
        with closing(connect(stage.proxy.endpoint, database=DATABASE)) as session:
            run(session, "CREATE OR REPLACE TEMPORARY VIEW copied AS SELECT * FROM late")
            run(session, "CREATE TABLE copy USING parquet AS SELECT * FROM late")
            run(session, "INSERT OVERWRITE copy SELECT * FROM late")

    stage.middle.calls.clear()
    fault = Fault(First(copy), *WHILE_KEYS_ARE_READ, times=1)
    with stage.proxied() as session, stage.middle.faulty(fault):
        assert seen(session, STATEMENT) == before
    assert fault.done
    assert stage.middle.executed(NARROWED)


def test_keys_are_not_asked_for_while_the_small_side_is_being_written(stage: Stage, before: Seen) -> None:
    with stage.proxied() as reading:
        answers: list[Seen] = []
        stage.middle.calls.clear()
        # The write has left the proxy, and the server does not have it yet.
        read = Fault(
            First(lambda: answers.append(seen(reading, STATEMENT))), "ExecuteStatement", "^INSERT", times=1
        )
        with stage.middle.faulty(read):
            through_proxy(stage)
        assert answers == [before]
        assert not stage.middle.executed(KEY_QUERY)
        assert seen(reading, STATEMENT) == stage.directly(STATEMENT)
        assert stage.middle.executed(KEY_QUERY)


def test_a_session_sees_a_write_through_the_proxy_that_overtakes_its_statement(stage: Stage, before: Seen) -> None:
    found = answer_with_a_write(stage, BEFORE_THE_STATEMENT, through_proxy)
    assert found == stage.directly(STATEMENT)
    assert found != before


def test_a_session_sees_the_rows_as_of_its_key_query_where_a_write_goes_past_the_proxy(
    stage: Stage, before: Seen
) -> None:
    assert answer_with_a_write(stage, BEFORE_THE_STATEMENT, behind_its_back) == before
