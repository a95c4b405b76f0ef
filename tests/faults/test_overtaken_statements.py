"""A rewritten statement that is overtaken on its way: what its text was made for changes before Spark reads it.

A change that the client makes while its statement runs may come before it or behind it, as it may without us. So
the answer is that of before the change or of after it. As the change is made before the server has the statement,
it is always that of after it here.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest
from fault_stage import DATABASE, DAYS, JOIN, NARROWED, Seen, Stage, fault_stage, make_tables, seen
from pyhive import hive
from support.fault_acts import First
from support.fault_proxy import Fault
from TCLIService.ttypes import TOperationState

from demo.hive import connect, run
from demo.thrift_server import ThriftServer

OTHER = "overtaken"
FEW = f"SELECT concat('d', id + 10) AS ds, if(id < 12, 'wanted', '') AS name FROM range({DAYS})"
# None of the days is among the wanted ones of the other.
OTHERS = FEW.replace("<", ">=")

# Spark lists the files of text for each statement anew: of Parquet each session keeps what it listed first.
TABLES = (
    f"CREATE DATABASE {OTHER}",
    f"CREATE TABLE {OTHER}.fact USING parquet PARTITIONED BY (ds) AS SELECT * FROM fact",
    f"CREATE TABLE {OTHER}.dim USING parquet AS {OTHERS}",
    f"CREATE TABLE few STORED AS TEXTFILE AS {FEW}",
    f"CREATE TABLE others STORED AS TEXTFILE AS {OTHERS}",
    f"CREATE TABLE written STORED AS TEXTFILE AS {FEW}",
    f"CREATE TABLE dropped STORED AS TEXTFILE AS {FEW}",
    "CREATE VIEW chosen AS SELECT * FROM few",
)
DROPPED = (
    "DROP VIEW IF EXISTS chosen",
    *(f"DROP TABLE IF EXISTS {name}" for name in ("few", "others", "written")),
)

# By what is changed: the small side of the statement, and the statements that change it.
OF_A_SESSION = {
    "a temporary view": ("shown", ["CREATE OR REPLACE TEMPORARY VIEW shown AS SELECT * FROM others"]),
    "the database": ("dim", [f"USE {OTHER}"]),
}
OF_ALL = {
    "a view": ("chosen", ["ALTER VIEW chosen AS SELECT * FROM others"]),
    "a table's rows": ("written", ["INSERT OVERWRITE written SELECT * FROM others"]),
    "a table": ("dropped", ["DROP TABLE dropped", f"CREATE TABLE dropped STORED AS TEXTFILE AS {OTHERS}"]),
}
AS_MADE = (
    "ALTER VIEW chosen AS SELECT * FROM few",
    f"INSERT OVERWRITE written {FEW}",
    "DROP TABLE IF EXISTS dropped",
    f"CREATE TABLE dropped STORED AS TEXTFILE AS {FEW}",
)


@pytest.fixture(scope="module")
def stage(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    make_tables(spark)
    with fault_stage(spark, tmp_path_factory.mktemp("overtaken")) as stage:
        yield stage


@pytest.fixture(scope="module", autouse=True)
def tables(stage: Stage) -> None:
    with stage.direct() as session:
        for sql in (f"DROP DATABASE IF EXISTS {OTHER} CASCADE", *DROPPED, "DROP TABLE IF EXISTS dropped", *TABLES):
            run(session, sql)


@pytest.fixture
def as_made(stage: Stage) -> None:
    """The small sides that sessions change for one another, as they were."""
    with stage.direct() as session:
        for sql in AS_MADE:
            run(session, sql)


@contextmanager
def second_connection(stage: Stage, session: hive.Connection) -> Iterator[hive.Connection]:
    """Another connection of the same user, on the same session."""
    with closing(connect(stage.proxy.endpoint, database=DATABASE, user="demo")) as connection:
        own, connection._sessionHandle = connection._sessionHandle, session._sessionHandle  # noqa: SLF001
        try:
            yield connection
        finally:
            connection._sessionHandle = own  # noqa: SLF001


def in_background(session: hive.Connection, sql: str) -> Seen:
    """The rows, or the error, of a client that polls until the statement ends."""
    with closing(session.cursor()) as cursor:
        cursor.execute(sql, async_=True)
        while (state := cursor.poll()).operationState in (
            TOperationState.PENDING_STATE,
            TOperationState.INITIALIZED_STATE,
            TOperationState.RUNNING_STATE,
        ):
            pass
        if state.operationState != TOperationState.FINISHED_STATE:
            return "error", (state.sqlState, state.errorMessage)
        return "rows", (cursor.description, Counter(map(repr, cursor.fetchall())))


Ask = Callable[[hive.Connection, str], Seen]
BOTH_WAYS = pytest.mark.parametrize("ask", [seen, in_background])


def prepare(session: hive.Connection) -> None:
    run(session, f"USE {DATABASE}")
    run(session, "CREATE OR REPLACE TEMPORARY VIEW shown AS SELECT * FROM few")


def change(session: hive.Connection, statements: list[str]) -> None:
    for sql in statements:
        run(session, sql)


def of(small_side: str) -> str:
    return JOIN.replace("dim d", f"{small_side} d")


def asked_before_a_change(
    stage: Stage, session: hive.Connection, ask: Ask, small_side: str, happens: Callable[[], None]
) -> Seen:
    """The client's answer where `happens` is done after the rewritten text was released."""
    fault = Fault(First(happens), "ExecuteStatement", NARROWED, times=1)
    with stage.middle.faulty(fault):
        found = ask(session, of(small_side))
    assert fault.done
    return found


@BOTH_WAYS
@pytest.mark.parametrize("what", list(OF_A_SESSION))
def test_a_session_that_changes_while_its_statement_is_on_its_way_has_the_answer_of_after_it(
    stage: Stage, what: str, ask: Ask
) -> None:
    small_side, statements = OF_A_SESSION[what]
    with stage.direct() as session:
        prepare(session)
        before = seen(session, of(small_side))
        change(session, statements)
        after = seen(session, of(small_side))
    assert (before[0], after[0]) == ("rows", "rows")
    assert before != after
    with stage.proxied() as session, second_connection(stage, session) as other:
        prepare(session)
        found = asked_before_a_change(stage, session, ask, small_side, lambda: change(other, statements))
    assert found == after


@pytest.mark.usefixtures("as_made")
@BOTH_WAYS
@pytest.mark.parametrize("what", list(OF_ALL))
def test_a_statement_whose_small_side_another_session_changes_has_the_answer_of_after_it(
    stage: Stage, what: str, ask: Ask
) -> None:
    small_side, statements = OF_ALL[what]
    before = stage.directly(of(small_side))
    with stage.proxied() as session, stage.proxied() as other:
        found = asked_before_a_change(stage, session, ask, small_side, lambda: change(other, statements))
    assert found == stage.directly(of(small_side))
    assert found != before
