"""A small side that changes after its keys were read and before the statement reads it again."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from fault_stage import DATABASE, JOIN, KEY_QUERY, NARROWED, Seen, Stage, fault_stage, make_tables, seen
from support.fault_acts import First
from support.fault_proxy import Fault

from demo.hive import connect, run
from demo.thrift_server import ThriftServer
from rewriter.predicates.strict_check import KEYS_CHANGED

ROWS = "VALUES ('d10', 'wanted'), ('d11', 'wanted'), ('d12', '')"
# A table whose files Spark lists for each scan anew: of other tables no session sees what another one writes.
LATE = ("CREATE TABLE late (ds STRING, name STRING) STORED AS TEXTFILE", f"INSERT INTO late {ROWS}")
STATEMENT = JOIN.replace("dim d", "late d")
WRITE = "INSERT INTO late VALUES ('d20', 'wanted')"
UNDO = f"INSERT OVERWRITE late {ROWS}"
# No strict check reads such a table. All sessions see at once that a view has another text.
LATE_VIEW = "CREATE OR REPLACE VIEW late_view AS SELECT * FROM late_rows"
STRICT_STATEMENT = JOIN.replace("dim d", "late_view d")
STRICT_WRITE = f"{LATE_VIEW} UNION ALL SELECT 'd20', 'wanted'"

STRICT = "SET starpruner.consistency=strict"

# The last call of the key query, before the fence is looked at; and the statement itself, after it.
WHILE_KEYS_ARE_READ = ("CloseOperation", KEY_QUERY)
BEFORE_THE_STATEMENT = ("ExecuteStatement", NARROWED)


@pytest.fixture(scope="module")
def stage(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    make_tables(spark)
    with fault_stage(spark, tmp_path_factory.mktemp("keys"), "--set", "rewrite.quarantine_s=0.001") as stage:
        with stage.direct() as session:
            for sql in (*LATE, f"CREATE TABLE late_rows USING parquet AS SELECT * FROM {ROWS} AS r(ds, name)"):
                run(session, sql)
        yield stage


@pytest.fixture
def before(stage: Stage) -> Seen:
    with stage.direct() as session:
        run(session, UNDO)
        return seen(session, STATEMENT)


@pytest.fixture
def before_strict(stage: Stage) -> Seen:
    with stage.direct() as session:
        run(session, LATE_VIEW)
        return seen(session, STRICT_STATEMENT)


Writer = Callable[[Stage, str], None]


def through_proxy(stage: Stage, sql: str = WRITE) -> None:
    with closing(connect(stage.proxy.endpoint, database=DATABASE)) as session:
        run(session, sql)


def behind_its_back(stage: Stage, sql: str = WRITE) -> None:
    with stage.direct() as session:
        run(session, sql)


def answer_with_a_write(stage: Stage, moment: tuple[str, str], write: Callable[[], None], *setting: str) -> Seen:
    """What the statement answers if the write comes at the moment."""
    fault = Fault(First(write), *moment, times=1)
    with stage.proxied() as session:
        for sql in setting:
            run(session, sql)
        with stage.middle.faulty(fault):
            found = seen(session, STRICT_STATEMENT if setting else STATEMENT)
    assert fault.done
    return found


@pytest.mark.parametrize("write", [through_proxy, behind_its_back])
@pytest.mark.parametrize("moment", [WHILE_KEYS_ARE_READ, BEFORE_THE_STATEMENT])
def test_a_strict_session_sees_every_write_before_its_statement(
    stage: Stage, before_strict: Seen, moment: tuple[str, str], write: Writer
) -> None:
    found = answer_with_a_write(stage, moment, lambda: write(stage, STRICT_WRITE), STRICT)
    assert found == stage.directly(STRICT_STATEMENT)
    assert found != before_strict


@pytest.mark.parametrize("verb", ["INTO", "OVERWRITE"])
@pytest.mark.parametrize("write", [through_proxy, behind_its_back])
@pytest.mark.parametrize("moment", [WHILE_KEYS_ARE_READ, BEFORE_THE_STATEMENT])
def test_a_strict_insert_has_the_rows_of_every_write_before_it_once(
    stage: Stage, before_strict: Seen, moment: tuple[str, str], write: Writer, verb: str
) -> None:
    with stage.direct() as session:
        run(session, "DROP TABLE IF EXISTS loaded")
        run(session, "CREATE TABLE loaded (ds STRING, v INT) USING parquet")
    fault = Fault(First(lambda: write(stage, STRICT_WRITE)), *moment, times=1)
    with stage.proxied() as session:
        run(session, STRICT)
        stage.middle.calls.clear()
        with stage.middle.faulty(fault):
            run(session, f"INSERT {verb} loaded {STRICT_STATEMENT}")
    assert fault.done
    # The fence holds back keys of before a write that the proxy has seen; the check finds any other.
    is_held_back = moment is WHILE_KEYS_ARE_READ and write is through_proxy
    assert len(stage.middle.executed(f"loaded .*{NARROWED}")) == (0 if is_held_back else 1)
    assert len(stage.middle.executed("loaded .*FROM fact f")) == 1
    rows = stage.directly("SELECT ds, v FROM loaded")
    assert rows == stage.directly(STRICT_STATEMENT)
    assert rows != before_strict


@pytest.mark.usefixtures("before_strict")
def test_a_strict_insert_that_fails_by_data_with_the_words_of_a_check_is_not_run_again(stage: Stage) -> None:
    with stage.direct() as session:
        run(session, "CREATE TABLE mistaken (v INT) USING parquet")
    words = f"CAST(concat('{KEYS_CHANGED}', f.v) AS INT)"
    with stage.proxied() as session:
        run(session, STRICT)
        stage.middle.calls.clear()
        kind, told = seen(session, f"INSERT INTO mistaken {STRICT_STATEMENT.replace('f.ds, f.v', words)}")
    assert kind == "error"
    assert KEYS_CHANGED in str(told)
    assert len(stage.middle.executed("INTO mistaken .*raise_error")) == 1
    assert not stage.middle.executed("INTO mistaken .*FROM fact f")


def test_a_session_sees_a_write_through_the_proxy_while_its_keys_are_read(stage: Stage, before: Seen) -> None:
    found = answer_with_a_write(stage, WHILE_KEYS_ARE_READ, lambda: through_proxy(stage))
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
    found = answer_with_a_write(stage, BEFORE_THE_STATEMENT, lambda: through_proxy(stage))
    assert found == stage.directly(STATEMENT)
    assert found != before


def test_a_session_sees_the_rows_as_of_its_key_query_where_a_write_goes_past_the_proxy(
    stage: Stage, before: Seen
) -> None:
    found = answer_with_a_write(stage, BEFORE_THE_STATEMENT, lambda: behind_its_back(stage))
    assert found == before
