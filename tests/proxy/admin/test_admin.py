"""What the admin port says of the backends, and what can be done to them there."""

import asyncio
import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from support.admin_pages import idle_application

from proxy.admin.explain_endpoint import ExplainRequest
from proxy.backends.circuit_breaker import FAILURES_MAX
from proxy.backends.pool import BackendPool
from proxy.backends.readiness import Readiness
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember
from proxy.config.config import Config
from proxy.config.serving import AdminSection, ProxySection
from proxy.session.metrics import Metrics
from proxy.upstream.errors import BackendError

A, B = PoolMember(Address("127.0.0.1", 10_000)), PoolMember(Address("::1", 10_000), weight=2)

Client = TestClient[Any, Any]


class Stop:
    def __init__(self) -> None:
        self.is_set = False

    def __call__(self) -> bool:
        return self.is_set


@pytest.fixture
def backends() -> BackendPool:
    return BackendPool([A, B], time.monotonic)


@pytest.fixture
def stopping() -> Stop:
    return Stop()


@pytest.fixture
async def admin(backends: BackendPool, stopping: Stop) -> AsyncIterator[Client]:
    config, metrics = Config(admin=AdminSection(open=True)), Metrics()
    metrics.watch_backends(backends.views)

    async def exposition() -> bytes:
        return metrics.exposition()

    app = idle_application(config, backends, exposition, readiness=Readiness(backends, stopping))
    async with TestClient(TestServer(app)) as client:
        yield client


async def nothing() -> bytes:
    return b""


def take_down(backends: BackendPool) -> None:
    for backend in backends.configured:
        for _ in range(FAILURES_MAX):
            backend.breaker.record_failure()
        backend.record_failure("connection refused")


async def test_the_backends_are_shown_with_load_state_and_last_failures(
    admin: Client, backends: BackendPool
) -> None:
    lease = backends.lease("ann")
    assert lease is not None
    backends.configured[1].record_failure("Connection refused")
    answer = await admin.get("/backends")
    first, second = (await answer.json())["backends"]
    assert (first["name"], second["name"]) == ("127.0.0.1:10000", "[::1]:10000")
    assert first["connections"] + second["connections"] == 1
    state = first["healthy"], first["draining"], first["breaker"], first["probes"]
    assert state == (True, False, "closed", "up")
    assert (second["weight"], second["connections_max"], second["failures"]) == (2, 480, 1)
    assert [one["reason"] for one in second["last_failures"]] == ["Connection refused"]
    assert "ann" not in await answer.text()


@pytest.mark.parametrize("name", ["127.0.0.1:10000", "[::1]:10000"])
async def test_a_backend_is_drained_and_undrained(admin: Client, backends: BackendPool, name: str) -> None:
    answer = await admin.post(f"/backends/{name}/drain")
    assert {one["name"]: one["draining"] for one in (await answer.json())["backends"]}[name] is True
    for _ in range(6):
        lease = backends.lease(None)
        assert lease is not None
        assert lease.member.name != name
    answer = await admin.post(f"/backends/{name}/undrain")
    assert not any(one["draining"] for one in (await answer.json())["backends"])


async def test_what_is_not_there_and_what_may_not_be_are_refused_with_a_sentence(
    admin: Client, backends: BackendPool
) -> None:
    answer = await admin.post("/backends/nobody:1/drain")
    assert answer.status == HTTPStatus.NOT_FOUND
    assert (await answer.json())["error"] == "There is no backend nobody:1; GET /backends names them."
    answer = await admin.post(f"/backends/{A.name}/drain", headers={"Origin": "https://elsewhere.example"})
    assert answer.status == HTTPStatus.FORBIDDEN
    assert (await admin.get(f"/backends/{A.name}/drain")).status == HTTPStatus.METHOD_NOT_ALLOWED
    assert not any(view.draining for view in backends.views())
    own_page = {"Origin": f"http://{admin.host}:{admin.port}"}
    assert (await admin.post(f"/backends/{A.name}/drain", headers=own_page)).status == HTTPStatus.OK


async def test_the_proxy_is_ready_unless_no_backend_is_healthy_or_it_stops_and_alive_all_the_while(
    admin: Client, backends: BackendPool, stopping: Stop
) -> None:
    assert (await admin.get("/readyz")).status == HTTPStatus.OK
    backends.drain(A.name, on=True)
    assert (await admin.get("/readyz")).status == HTTPStatus.OK
    take_down(backends)
    answer = await admin.get("/readyz")
    assert answer.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert (await answer.json())["error"] == "No backend is healthy: [::1]:10000: connection refused."
    backends.drain("[::1]:10000", on=True)
    answer = await admin.get("/readyz")
    assert (await answer.json())["error"] == (
        "No backend takes sessions: it is being drained and takes no new sessions."
    )
    backends.drain("[::1]:10000", on=False)
    for backend in backends.configured:
        backend.breaker.record_success()
    assert (await admin.get("/readyz")).status == HTTPStatus.OK
    stopping.is_set = True
    answer = await admin.get("/readyz")
    assert (answer.status, (await answer.json())["error"]) == (503, "The proxy is stopping.")
    assert (await admin.get("/healthz")).status == HTTPStatus.OK


async def test_metrics_tell_of_the_backends_that_there_are_now(admin: Client, backends: BackendPool) -> None:
    lease = backends.lease(None)
    assert lease is not None
    text = await (await admin.get("/metrics")).text()
    assert f'starpruner_backend_connections{{backend="{lease.member.name}"}} 1.0' in text
    assert 'starpruner_backend_healthy{backend="[::1]:10000"} 1.0' in text
    backends.configured[0].record_failure("gone")
    backends.drain(A.name, on=True)
    lease.release()
    backends.configure([A])
    text = await (await admin.get("/metrics")).text()
    assert f'starpruner_backend_failures_total{{backend="{A.name}"}} 1.0' in text
    assert f'starpruner_backend_draining{{backend="{A.name}"}} 1.0' in text
    assert "[::1]" not in text


async def test_one_of_several_workers_drains_no_backend(backends: BackendPool) -> None:
    config = Config(proxy=ProxySection(workers=2))

    app = idle_application(config, backends, nothing)
    async with TestClient(TestServer(app)) as client:
        answer = await client.post("/backends/127.0.0.1:10000/drain")
        assert answer.status == HTTPStatus.CONFLICT
        assert "send SIGHUP" in (await answer.json())["error"]
    assert not any(view.draining for view in backends.views())


async def test_an_explanation_takes_its_turn_among_the_key_queries_of_the_process(
    backends: BackendPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[object] = []

    async def ask(*_: object, slots: asyncio.Semaphore, **__: object) -> None:
        taken.append(slots)
        raise BackendError("it is down")

    monkeypatch.setattr("proxy.admin.app.explain_as_user", ask)
    slots = asyncio.Semaphore(1)
    config = Config(admin=AdminSection(open=True))
    app = idle_application(config, backends, nothing, slots=slots)
    async with TestClient(TestServer(app)) as client:
        answer = await client.post("/explain", json={"sql": "SELECT 1"})
        assert answer.status == HTTPStatus.BAD_GATEWAY
    assert taken == [slots]


async def test_an_explanation_that_fails_by_our_doing_puts_no_statement_into_the_log(
    admin: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask(_: Config, request: ExplainRequest, *__: object, **___: object) -> None:
        raise RuntimeError(request.sql)

    monkeypatch.setattr("proxy.admin.app.explain_as_user", ask)
    answer = await admin.post("/explain", json={"sql": "SELECT 'private'"})
    assert answer.status == HTTPStatus.INTERNAL_SERVER_ERROR
    assert "Starpruner has failed" in (await answer.json())["error"]
    assert "RuntimeError" in caplog.text
    assert "private" not in caplog.text
