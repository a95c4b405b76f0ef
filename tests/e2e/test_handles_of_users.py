"""One user's session and operations, named by another user: refused as if they did not exist, call by call."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from pyhive import hive
from support.beeline_clients import breakable_session
from support.worker_processes import TWO_WORKERS, session_on
from TCLIService import ttypes
from thrift.Thrift import TException

from demo.hive import Endpoint
from demo.proxy_process import ProxyProcess, proxy_process
from demo.thrift_server import ThriftServer

# Every request of TCLIService whose first field is a handle, by the name of its call, and what else it has to say.
REQUESTS = {
    name.removeprefix("T").removesuffix("Req"): cls
    for name, cls in vars(ttypes).items()
    if name.endswith("Req") and cls.thrift_spec[1][2] in ("sessionHandle", "operationHandle")
}
REQUIRED: dict[str, dict[str, Any]] = {
    "GetInfo": {"infoType": 17},
    "ExecuteStatement": {"statement": "SELECT 1"},
    "GetFunctions": {"functionName": "%"},
    "GetDelegationToken": {"owner": "alice", "renewer": "alice"},
    "CancelDelegationToken": {"delegationToken": "x"},
    "RenewDelegationToken": {"delegationToken": "x"},
    "FetchResults": {"orientation": 0, "maxRows": 10},
}
# What ends the operation or the session that it names, in this order.
ENDING = ["CancelOperation", "CloseOperation", "CloseSession"]
SUCCESS = ttypes.TStatusCode.SUCCESS_STATUS
Answer = tuple[Any, ...]
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def call(connection: hive.Connection, name: str, handle: object) -> Answer:
    """What a call about the handle is answered, without what differs from one handle to the next."""
    request = REQUESTS[name](**REQUIRED.get(name, {}))
    setattr(request, REQUESTS[name].thrift_spec[1][2], handle)
    try:
        answer = getattr(connection.client, name)(request)
    except (TException, EOFError) as error:
        return (type(error).__name__, getattr(error, "type", None))
    status = answer.status
    return (status.statusCode, status.sqlState, UUID.sub("a handle", status.errorMessage or ""))


def handle_of(name: str, session: Any, operation: Any) -> Any:
    return session if REQUESTS[name].thrift_spec[1][2] == "sessionHandle" else operation


@contextmanager
def operation_of(connection: hive.Connection) -> Iterator[Any]:
    cursor = connection.cursor()
    cursor.execute("SELECT id FROM range(3)")
    yield cursor._operationHandle  # noqa: SLF001 - as a tool that hands it on
    with suppress(hive.Error):
        # Somebody may have closed it.
        cursor.close()


def made_up(handle: Any) -> Any:
    """A handle of the same kind that was never given out."""
    identifier = ttypes.THandleIdentifier(b"a" * 16, b"b" * 16)
    if isinstance(handle, ttypes.TSessionHandle):
        return ttypes.TSessionHandle(identifier)
    return ttypes.TOperationHandle(identifier, handle.operationType, handle.hasResultSet, None)


def answers(connection: hive.Connection, session: Any, operation: Any) -> dict[str, Answer]:
    """What a connection is answered, call by call; those that end something come last."""
    ordered = sorted(REQUESTS, key=lambda name: (name in ENDING, ENDING.index(name) if name in ENDING else 0))
    return {name: call(connection, name, handle_of(name, session, operation)) for name in ordered}


@pytest.fixture(scope="module")
def workers(spark: ThriftServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    with proxy_process(spark.endpoint, tmp_path_factory.mktemp("workers"), options=TWO_WORKERS) as process:
        yield process


def test_another_users_handles_are_refused_as_if_they_did_not_exist(
    spark: ThriftServer, proxy: ProxyProcess
) -> None:
    with (
        breakable_session(proxy.endpoint, "alice") as alice,
        operation_of(alice) as operation,
        breakable_session(proxy.endpoint, "bob") as bob,
    ):
        expect_refusals(spark, alice, bob, operation)


def test_they_are_refused_too_where_another_worker_has_given_them_out(
    spark: ThriftServer, workers: ProxyProcess
) -> None:
    with (
        session_on(workers, 0, user="alice") as alice,
        operation_of(alice) as operation,
        session_on(workers, 1, user="bob") as bob,
    ):
        expect_refusals(spark, alice, bob, operation)


def test_ones_own_handles_work_from_another_connection_as_they_do_directly(
    spark: ThriftServer, proxy: ProxyProcess, workers: ProxyProcess
) -> None:
    def again(endpoint: Endpoint) -> dict[str, Answer]:
        with (
            breakable_session(endpoint, "alice") as alice,
            operation_of(alice) as operation,
            breakable_session(endpoint, "alice") as other,
        ):
            return answers(other, alice.sessionHandle, operation)

    def on_another_worker() -> dict[str, Answer]:
        with (
            session_on(workers, 1, user="alice") as alice,
            operation_of(alice) as operation,
            session_on(workers, 0, user="alice") as other,
        ):
            return answers(other, alice.sessionHandle, operation)

    directly = again(spark.endpoint)
    assert again(proxy.endpoint) == directly
    assert on_another_worker() == directly
    assert directly["CloseSession"][0] == directly["FetchResults"][0] == SUCCESS


def expect_refusals(spark: ThriftServer, alice: hive.Connection, bob: hive.Connection, operation: Any) -> None:
    session = alice.sessionHandle
    refused = answers(bob, session, operation)
    with breakable_session(spark.endpoint, "bob") as direct:
        assert refused == answers(direct, made_up(session), made_up(operation))
    # The server says its own name to anybody.
    assert {name for name, answer in refused.items() if answer[0] == SUCCESS} == {"GetInfo"}
    # And nothing was done: both work on for whom they belong to.
    assert call(alice, "GetCatalogs", session)[0] == SUCCESS
    assert call(alice, "FetchResults", operation)[0] == SUCCESS
