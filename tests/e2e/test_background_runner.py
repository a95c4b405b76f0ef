"""What runs beside a client on the real server: in its session, out of its way, and not longer than it."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen

import pytest

from demo.thrift_server import ThriftServer
from proxy.backends.pool import BackendPool, Lease
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember
from proxy.frontend.background_runner import BackgroundRunner, RunnerSettings
from proxy.operations.query import Query, QueryFailed, QueryResult, Rows, ask_driver
from proxy.upstream.client import BackendClient
from proxy.wire.hs2.calls import SessionHandle

CREDENTIALS = b"\0demo\0demo"
# Longer than anything here takes, also on a busy machine.
PATIENCE_S = 60.0
# What nobody cancels runs until here, so that it is seen.
DEADLINE_S = 2 * PATIENCE_S
# Sleeps in a task for five minutes, unless it is cancelled.
SLEEPS = "SELECT reflect('java.lang.Thread', 'sleep', 300000L + id) AS sleeper FROM range(1)"


class Work:
    """Queries beside a client, and what they were answered."""

    def __init__(self, *statements: str) -> None:
        self.statements = statements
        self.answers: list[QueryResult] = []

    async def run(self) -> None:
        for sql in self.statements:
            query = Query(sql, rows_max=100, bytes_max=100_000, deadline_s=DEADLINE_S)
            self.answers.append(await ask_driver(query))


@pytest.fixture
async def client(spark: ThriftServer) -> AsyncIterator[BackendClient]:
    async with BackendClient.connect(spark.endpoint.host, spark.endpoint.port, "demo", "demo") as opened:
        yield opened


def lease_of(host: str, port: int) -> Lease:
    """As a client's connection to that backend has it."""
    lease = BackendPool([PoolMember(Address(host, port))], time.monotonic).lease("demo")
    assert lease is not None
    return lease


@pytest.fixture
def here(spark: ThriftServer) -> Lease:
    return lease_of(spark.endpoint.host, spark.endpoint.port)


@pytest.fixture
async def beside() -> AsyncIterator[BackgroundRunner]:
    with ThreadPoolExecutor(2) as pool:
        opened = BackgroundRunner(RunnerSettings("a shadow run", at_once_max=1), pool)
        yield opened
        await opened.close()


async def ask(client: BackendClient, sql: str) -> QueryResult:
    work = Work(sql)
    await client.drive(work.run)
    return work.answers[0]


async def until_idle(beside: BackgroundRunner) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while beside.count:  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.05)


async def until_tasks_run(spark: ThriftServer, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while await asyncio.to_thread(tasks_running, spark) != count:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.1)


def tasks_running(spark: ThriftServer) -> int:
    with urlopen(f"{spark.ui_url}/api/v1/applications") as answer:
        application = json.load(answer)[0]["id"]
    with urlopen(f"{spark.ui_url}/api/v1/applications/{application}/executors") as answer:
        return sum(executor["activeTasks"] for executor in json.load(answer))


async def test_it_sees_what_the_clients_session_sees(
    client: BackendClient, beside: BackgroundRunner, here: Lease
) -> None:
    await ask(client, "CREATE TEMPORARY VIEW mine AS SELECT 42 AS answer")
    await ask(client, "SET spark.sql.session.timeZone=Asia/Tokyo")
    work = Work("SELECT answer FROM mine", "SELECT current_timezone()")
    assert beside.start(client.session, CREDENTIALS, work.run, here)
    await until_idle(beside)
    assert [answer.rows for answer in work.answers if isinstance(answer, Rows)] == [((42,),), (("Asia/Tokyo",),)]


async def test_the_clients_own_statements_do_not_wait_for_it(
    spark: ThriftServer, client: BackendClient, beside: BackgroundRunner, here: Lease
) -> None:
    work = Work(SLEEPS)
    assert beside.start(client.session, CREDENTIALS, work.run, here)
    await until_tasks_run(spark, 1)
    for number in range(3):
        answer = await ask(client, f"SELECT {number} AS one")
        assert isinstance(answer, Rows)
    # It sleeps on: none of the three has waited for its end.
    assert beside.count == 1
    assert not work.answers


async def test_it_ends_on_the_server_with_the_clients_session(
    spark: ThriftServer,
    client: BackendClient,
    beside: BackgroundRunner,
    here: Lease,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    assert beside.start(client.session, CREDENTIALS, Work(SLEEPS).run, here)
    await until_tasks_run(spark, 1)
    # The session itself stays open here, so it is not the server that ends what runs in it.
    beside.sessions_closed([client.session])
    await until_idle(beside)
    await until_tasks_run(spark, 0)
    assert not caplog.messages


async def test_a_client_that_closes_its_session_ends_it_without_waiting(
    spark: ThriftServer, beside: BackgroundRunner, here: Lease
) -> None:
    work = Work(SLEEPS)
    async with BackendClient.connect(spark.endpoint.host, spark.endpoint.port, "demo", "demo") as leaving:
        assert beside.start(leaving.session, CREDENTIALS, work.run, here)
        await until_tasks_run(spark, 1)
    # The session has been closed, whether or not anybody has told `beside`.
    await until_tasks_run(spark, 0)
    await until_idle(beside)
    assert all(isinstance(answer, QueryFailed) for answer in work.answers)


async def test_there_is_no_more_of_it_at_once_than_allowed(
    client: BackendClient, beside: BackgroundRunner, here: Lease
) -> None:
    first, second = Work("SELECT 1 AS one"), Work("SELECT 2 AS two")
    assert beside.start(client.session, CREDENTIALS, first.run, here)
    assert not beside.start(client.session, CREDENTIALS, second.run, here)
    await until_idle(beside)
    assert (len(first.answers), len(second.answers)) == (1, 0)
    assert beside.start(client.session, CREDENTIALS, second.run, here)
    await until_idle(beside)
    assert len(second.answers) == 1


async def test_a_backend_that_is_gone_is_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    with ThreadPoolExecutor(1) as pool:
        beside, here = BackgroundRunner(RunnerSettings("a shadow run"), pool), lease_of(host, port)
        assert beside.start(SessionHandle(b"handle"), CREDENTIALS, Work("SELECT 1 AS one").run, here)
        await until_idle(beside)
    server.close()
    assert "was not begun" in caplog.text
    assert "demo" not in caplog.text
