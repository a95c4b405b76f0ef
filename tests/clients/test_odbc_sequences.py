"""What ODBC drivers for Hive and Spark send, call by call, is answered as by the server.

The drivers are not free to fetch. Their guides say what each option makes them send: native queries, properties
set by SET statements after the session has opened, types asked of the server, the columns of a statement found by
running it with LIMIT 0 before it is run, asynchronous execution with polling, blocks of 10,000 rows.
"""

from collections.abc import Callable
from contextlib import suppress

import pytest
from dialogue import Dialogue, Struct, dialogue
from support.metrics_of_proxy import rewritten_count
from TCLIService.ttypes import TFetchOrientation, TGetInfoType, TProtocolVersion
from thrift.transport.TTransport import TTransportException

from demo.hive import Endpoint
from demo.proxy_process import ProxyProcess
from demo.thrift_server import ThriftServer

pytestmark = pytest.mark.usefixtures("small_star")

# What the newest drivers ask for, and what older ones do.
V8 = TProtocolVersion.HIVE_CLI_SERVICE_PROTOCOL_V8
V6 = TProtocolVersion.HIVE_CLI_SERVICE_PROTOCOL_V6

# What Spark has an answer for. Whatever else is asked of it by GetInfo ends the connection.
ANSWERED = {TGetInfoType.CLI_SERVER_NAME, TGetInfoType.CLI_DBMS_NAME, TGetInfoType.CLI_DBMS_VER}

# As tools write it that let a user click a star schema together.
STAR_JOIN = """SELECT `v`.`ds` AS `ds`, SUM(`v`.`amount`) AS `sum_amount_ok`
FROM `small_star`.`visits` `v` INNER JOIN `small_star`.`days` `d` ON (`v`.`ds` = `d`.`ds`)
WHERE (`d`.`weekday` IN ('Saturday', 'Sunday'))
GROUP BY `v`.`ds`"""


def _run(talk: Dialogue, session: Struct, sql: str) -> None:
    operation = talk.execute(session, sql)
    talk.finish(operation)
    talk.read(operation)


def asks_what_the_server_is(talk: Dialogue) -> None:
    session = talk.open_session(V8, {"use:database": "default"})
    for info in sorted(ANSWERED):
        talk.call("GetInfo", sessionHandle=session, infoType=info)
    talk.call("CloseSession", sessionHandle=session)


def browses_the_catalog(talk: Dialogue) -> None:
    session = talk.open_session(V8)
    sales = {"schemaName": "small_star", "tableName": "vis%"}
    primary: dict[str, object] = {"schemaName": "small_star", "tableName": "visits"}
    foreign = {"parentSchemaName": "small_star", "parentTableName": "days", "foreignSchemaName": "small_star"}
    calls: list[tuple[str, dict[str, object]]] = [
        ("GetTypeInfo", {}),
        ("GetCatalogs", {}),
        ("GetSchemas", {"schemaName": "%"}),
        ("GetSchemas", {"catalogName": "", "schemaName": "small_st_r"}),
        ("GetTableTypes", {}),
        ("GetTables", {"schemaName": "%", "tableName": "%", "tableTypes": ["TABLE", "VIEW"]}),
        ("GetTables", {**sales, "tableTypes": ["TABLE"]}),
        ("GetTables", {**sales, "catalogName": "", "tableTypes": []}),
        ("GetColumns", {**sales, "columnName": "%"}),
        ("GetColumns", {"schemaName": "SMALL_STAR", "tableName": "days", "columnName": "w%"}),
        ("GetFunctions", {"functionName": "date\\_%"}),
        ("GetPrimaryKeys", primary),
        ("GetCrossReference", {**foreign, "foreignTableName": "visits"}),
    ]
    for name, fields in calls:
        operation = talk.call(name, sessionHandle=session, **fields).operationHandle
        if operation is not None:
            talk.finish(operation)
            talk.read(operation)
    talk.call("CloseSession", sessionHandle=session)


def sets_properties_by_statements(talk: Dialogue) -> None:
    session = talk.open_session(V8)
    for setting in (
        "spark.sql.session.timeZone=Asia/Tokyo",
        "spark.sql.ansi.enabled=false",
        "use.it=${hiveconf:x}",
    ):
        _run(talk, session, f"SET {setting}")
    _run(talk, session, "SELECT current_timezone(), CAST('x' AS INT), TIMESTAMP'2024-01-01 00:00:00Z'")
    talk.call("CloseSession", sessionHandle=session)


def finds_the_columns_before_it_runs_a_statement(talk: Dialogue) -> None:
    session = talk.open_session(V8)
    for prepared in (f"SELECT * FROM ({STAR_JOIN}) T LIMIT 0", f"SELECT * FROM ({STAR_JOIN}) T WHERE 1=0"):
        operation = talk.execute(session, prepared)
        talk.finish(operation)
        talk.call("GetResultSetMetadata", operationHandle=operation)
        talk.close(operation)
    _run(talk, session, f"SELECT * FROM ({STAR_JOIN}) T ORDER BY ds")
    _run(talk, session, f"{STAR_JOIN} ORDER BY `ds` LIMIT 1")
    talk.call("CloseSession", sessionHandle=session)


def reads_blocks_and_starts_over(talk: Dialogue) -> None:
    session = talk.open_session(V6)
    operation = talk.execute(session, "SELECT id, concat('row ', id) AS label FROM range(25)", run_async=False)
    talk.fetch(operation, 10)
    talk.fetch(operation, 10)
    talk.fetch(operation, 10, TFetchOrientation.FETCH_FIRST)
    talk.fetch(operation, 3, TFetchOrientation.FETCH_PRIOR)
    talk.fetch(operation, 3, TFetchOrientation.FETCH_LAST)
    talk.fetch(operation, 100)
    talk.fetch(operation, 100)
    talk.fetch(operation, 0)
    talk.close(operation)
    talk.call("CloseSession", sessionHandle=session)


def starts_a_star_join_over(talk: Dialogue) -> None:
    session = talk.open_session(V8)
    operation = talk.execute(session, f"{STAR_JOIN} ORDER BY `ds`")
    talk.finish(operation)
    talk.fetch(operation, 2)
    talk.fetch(operation, 2, TFetchOrientation.FETCH_FIRST)
    talk.fetch(operation, 100)
    talk.close(operation)
    talk.call("CloseSession", sessionHandle=session)


def closes_out_of_order(talk: Dialogue) -> None:
    session = talk.open_session(V8)
    first = talk.execute(session, "SELECT id FROM range(3)")
    second = talk.execute(session, "SELECT id FROM range(4)")
    talk.finish(second)
    talk.finish(first)
    talk.close(first)
    talk.fetch(second)
    talk.fetch(first)
    talk.call("GetResultSetMetadata", operationHandle=first)
    talk.finish(first)
    talk.close(first)
    talk.fetch(second)
    talk.call("CloseSession", sessionHandle=session)
    talk.finish(second)
    talk.execute(session, "SELECT 1")


def cancels_what_has_finished(talk: Dialogue) -> None:
    session = talk.open_session(V8)
    operation = talk.execute(session, "SELECT id FROM range(3)")
    talk.finish(operation)
    talk.finish(operation)
    talk.call("CancelOperation", operationHandle=operation)
    talk.finish(operation)
    talk.fetch(operation)
    talk.close(operation)
    _run(talk, session, "SELECT 'used again' AS it")
    talk.call("CloseSession", sessionHandle=session)


def cancels_what_runs(talk: Dialogue) -> None:
    session = talk.open_session(V8)
    sleeping = talk.execute(
        session, "SELECT id, reflect('java.lang.Thread', 'sleep', 1000L) FROM range(0, 60, 1, 1)"
    )
    talk.call("CancelOperation", operationHandle=sleeping)
    talk.finish(sleeping)
    talk.close(sleeping)
    _run(talk, session, "SELECT 'used again' AS it")
    talk.call("CloseSession", sessionHandle=session)


def makes_mistakes(talk: Dialogue) -> None:
    session = talk.open_session(V8)
    for sql in (
        "SELEC 1",
        "SELECT * FROM no_such_table",
        "SELECT {fn NOW()}",
        "SELECT raise_error('planned')",
        "",
    ):
        for run_async in (True, False):
            operation = talk.execute(session, sql, run_async=run_async)
            if operation is not None:
                talk.finish(operation)
                talk.fetch(operation)
                talk.close(operation)
    talk.call("GetDelegationToken", sessionHandle=session, owner="tester", renewer="tester")
    talk.call("CloseSession", sessionHandle=session)
    talk.call("CloseSession", sessionHandle=session)


SEQUENCES = (
    asks_what_the_server_is,
    browses_the_catalog,
    sets_properties_by_statements,
    finds_the_columns_before_it_runs_a_statement,
    reads_blocks_and_starts_over,
    starts_a_star_join_over,
    closes_out_of_order,
    cancels_what_has_finished,
    cancels_what_runs,
    makes_mistakes,
)


@pytest.mark.parametrize("sequence", SEQUENCES, ids=lambda sequence: sequence.__name__)
def test_a_driver_is_answered_call_by_call_as_by_the_server(
    spark: ThriftServer, proxy: ProxyProcess, sequence: Callable[[Dialogue], None]
) -> None:
    with dialogue(proxy.endpoint) as proxied:
        sequence(proxied)
    with dialogue(spark.endpoint) as direct:
        sequence(direct)
    assert len(direct.answers) > 1
    for through_proxy, by_server in zip(proxied.answers, direct.answers, strict=True):
        assert through_proxy == by_server


def _answered(endpoint: Endpoint) -> set[int]:
    """The kinds of GetInfo after which a connection still works."""
    answered = set()
    for info in TGetInfoType._VALUES_TO_NAMES:  # noqa: SLF001 - Thrift lists an enum nowhere else
        with dialogue(endpoint) as talk:
            session = talk.open_session(V8)
            with suppress(TTransportException):
                talk.call("GetInfo", sessionHandle=session, infoType=info)
                answered.add(info)
    return answered


def test_what_the_server_ends_the_connection_for_ends_it_through_the_proxy(
    spark: ThriftServer, proxy: ProxyProcess
) -> None:
    assert _answered(proxy.endpoint) == _answered(spark.endpoint) == ANSWERED


def test_the_statements_of_a_driver_are_narrowed(proxy: ProxyProcess) -> None:
    before = rewritten_count(proxy)
    with dialogue(proxy.endpoint) as talk:
        finds_the_columns_before_it_runs_a_statement(talk)
    assert rewritten_count(proxy) >= before + 2
