"""A backend that dies and comes back: the pages, the metric, /readyz and the choice go by the same."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from support.backend_farm import Clock, Mood, Several, StandIn, several
from support.scripted_session import PATIENCE_S

from demo.hive import Endpoint
from demo.proxy_process import ProxyProcess, proxy_process
from proxy.backends.circuit_breaker import OPEN_S, OPEN_S_MAX
from proxy.backends.health_checks import HealthCheckRounds, HealthProbe, ProbeSettings
from proxy.backends.readiness import Readiness
from proxy.session.metrics import Metrics

HURRIED = HealthProbe(ProbeSettings(timeout_s=0.2))
# Probes every 0.1 s, so that what takes a minute and more in production takes seconds.
OFTEN = ("--set", "health.interval_s=0.1", "--set", "health.timeout_s=1")


class Told:
    """What everybody is told of a single backend without a health user, and probes when the test says so."""

    def __init__(self, on: Several, clock: Clock) -> None:
        self.on = on
        self.clock = clock
        self.metrics = Metrics()
        self.metrics.watch_backends(on.backends.views)
        self.rounds = HealthCheckRounds(on.backends, HURRIED.check_login, lambda backend: backend.login_health)

    def is_healthy(self) -> bool:
        (view,) = self.on.backends.views()
        ready = Readiness(self.on.backends).why_not_ready() is None
        name = f'starpruner_backend_healthy{{backend="{view.name}"}} '
        (line,) = [line for line in self.metrics.exposition().decode().splitlines() if line.startswith(name)]
        assert ready is view.healthy is (float(line.removeprefix(name)) == 1.0)
        return view.healthy

    async def probe(self, times: int = 1) -> None:
        for _ in range(times):
            await self.rounds.probe_all()

    async def clients_fail(self, times: int = 3) -> None:
        for _ in range(times):
            await self.on.refusal()


@asynccontextmanager
async def told() -> AsyncIterator[Told]:
    clock = Clock()
    async with several(1, clock=clock) as on:
        yield Told(on, clock)


async def test_connections_that_failed_count_until_one_works_however_long_nobody_connects() -> None:
    async with told() as seen:
        assert seen.is_healthy()
        await seen.on.servers[0].die()
        await seen.clients_fail()
        assert not seen.is_healthy()
        for _ in range(20):
            seen.clock.now += 30
            assert not seen.is_healthy()
        await seen.on.servers[0].listen()
        await seen.on.log_in()
        assert seen.is_healthy()


async def test_a_probe_finds_what_died_without_clients_and_brings_it_back_in_two() -> None:
    async with told() as seen:
        await seen.probe()
        await seen.on.servers[0].die()
        await seen.probe(2)
        assert seen.is_healthy(), "one slow answer, or two, take nothing down"
        await seen.probe()
        assert not seen.is_healthy()
        assert "Connection refused" in str(Readiness(seen.on.backends).why_not_ready())
        # Clients meanwhile try all the same, and are left out for longer and longer.
        for _ in range(6):
            seen.clock.now += OPEN_S_MAX
            await seen.clients_fail()
        assert not seen.is_healthy()
        await seen.on.servers[0].listen()
        await seen.probe()
        assert not seen.is_healthy()
        await seen.probe()
        assert seen.is_healthy(), "at once, not when the circuit breaker would try again"


async def test_a_probe_is_the_trial_where_no_client_comes() -> None:
    """A balancer that goes by /readyz sends nobody, and what failed for clients alone would fail for ever."""
    async with told() as seen:
        await seen.probe()
        seen.on.servers[0].mood = Mood.HANGS_UP
        await seen.clients_fail()
        await seen.probe()
        assert not seen.is_healthy()
        seen.clock.now += OPEN_S
        assert not seen.is_healthy()
        await seen.probe()
        assert seen.is_healthy()
        await seen.clients_fail(1)
        assert not seen.is_healthy()


@pytest.mark.parametrize("mood", [Mood.FROZEN, Mood.CLOSES])
async def test_a_server_that_accepts_and_is_stopped_or_has_no_thread_left_is_found_without_a_login(
    mood: Mood,
) -> None:
    async with told() as seen:
        await seen.probe()
        seen.on.servers[0].mood = mood
        await seen.probe(3)
        assert not seen.is_healthy()
        seen.on.servers[0].mood = Mood.WORKS
        await seen.probe(2)
        assert seen.is_healthy()
        await seen.on.servers[0].die()


# --- the real process


def answer(proxy: ProxyProcess, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"{proxy.admin_url}{path}", timeout=PATIENCE_S) as found:
            return found.status, found.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def states(proxy: ProxyProcess) -> set[bool]:
    """What /readyz, /metrics and /backends say."""
    metrics = answer(proxy, "/metrics")[1].splitlines()
    (healthy,) = [line for line in metrics if line.startswith("starpruner_backend_healthy{")]
    (backend,) = json.loads(answer(proxy, "/backends")[1])["backends"]
    return {answer(proxy, "/readyz")[0] == HTTPStatus.OK, healthy.endswith(" 1.0"), backend["healthy"]}


async def until(proxy: ProxyProcess, *, healthy: bool) -> None:
    deadline = time.monotonic() + PATIENCE_S
    # Each of several workers answers for itself, so all of them have to agree.
    while [await asyncio.to_thread(states, proxy) for _ in range(4)] != 4 * [{healthy}]:
        assert time.monotonic() < deadline, proxy.child.log_tail()


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_proxy_warns_where_nothing_answers_and_follows_its_backend(workers: int, tmp_path: Path) -> None:
    server = StandIn()
    await server.listen()
    await server.die()
    where = Endpoint(server.member.address.host, server.member.address.port)
    starts = proxy_process(where, tmp_path, options=(*OFTEN, "--set", f"proxy.workers={workers}"))
    proxy = await asyncio.to_thread(starts.__enter__)
    try:
        warning = f"the backend {where} counts as down: Connection refused"
        assert proxy.child.log.read_text().count(warning) == workers
        assert answer(proxy, "/readyz") == (
            HTTPStatus.SERVICE_UNAVAILABLE,
            f'{{"error":"No backend is healthy: {where}: probe: Connection refused."}}',
        )
        for _ in range(2):
            await until(proxy, healthy=False)
            await server.listen()
            await until(proxy, healthy=True)
            await server.die()
        await until(proxy, healthy=False)
    finally:
        await asyncio.to_thread(starts.__exit__, None, None, None)
