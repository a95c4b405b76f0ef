"""How backends are asked whether they work, and where they are."""

import asyncio
import logging
import time
from dataclasses import replace

import pytest
from support.backend_farm import Clock, Mood, StandIn, several
from support.remembering_servers import HttpServer
from support.scripted_session import HOST, PATIENCE_S, eventually

from proxy.backends.dns import DnsNames
from proxy.backends.health_checks import HealthCheckRounds, HealthProbe, ProbeSettings
from proxy.backends.maintenance import Maintenance
from proxy.backends.pool import BackendPool, PoolSettings
from proxy.config.address import Address
from proxy.config.backend_list import BackendEntry, PoolMember
from proxy.config.endpoints import Transport, UpstreamSection
from proxy.upstream.errors import OwnLoginError

HEALTH_USER = ProbeSettings("health", "secret word", timeout_s=PATIENCE_S, query_timeout_s=PATIENCE_S)
HURRIED = ProbeSettings("health", "secret word", timeout_s=1.0)
NAMED = BackendEntry(Address("spark.internal", 10_000), is_looked_up=True)


def asked(backends: BackendPool, settings: ProbeSettings = HEALTH_USER) -> HealthCheckRounds:
    return HealthCheckRounds(backends, HealthProbe(settings).check_login, lambda backend: backend.login_health)


async def server_in(mood: Mood) -> StandIn:
    server = StandIn()
    server.mood = mood
    await server.listen()
    return server


@pytest.mark.parametrize(
    ("mood", "settings", "answer"),
    [
        (Mood.WORKS, HEALTH_USER, None),
        (Mood.WORKS, ProbeSettings(), None),
        (Mood.HANGS, ProbeSettings(), None),
        (Mood.FROZEN, ProbeSettings(timeout_s=0.2), "no answer within 0.2 s"),
        (Mood.CLOSES, ProbeSettings(), "closes connections as it accepts them"),
        (Mood.HANGS, ProbeSettings("health", "secret word", timeout_s=0.1), "no answer"),
        (Mood.CLOSES, HEALTH_USER, "closed the connection during the login"),
        (Mood.REFUSES_LOGINS, HEALTH_USER, "refused the login of the health user: wrong password"),
    ],
)
async def test_a_login_tells_whether_a_backend_works(
    mood: Mood, settings: ProbeSettings, answer: str | None
) -> None:
    server = await server_in(mood)
    said = await HealthProbe(settings).check_login(server.member.address)
    assert (said is None) if answer is None else (said is not None and answer in said)
    assert "secret" not in repr(settings)
    await server.die()
    patient = replace(settings, timeout_s=PATIENCE_S)
    said = await HealthProbe(patient).check_login(server.member.address)
    assert said is not None
    assert "Connection refused" in said


async def test_a_failed_login_of_our_own_counts_against_no_backend() -> None:
    async def without_a_key(_address: Address) -> str | None:
        raise OwnLoginError("the keytab cannot be read")

    backends = BackendPool([PoolMember(Address("spark-a", 10_000))], time.monotonic)
    rounds = HealthCheckRounds(backends, without_a_key, lambda backend: backend.login_health)
    for _ in range(10):
        await rounds.probe_all()
    assert backends.is_any_healthy


async def test_a_query_that_is_not_answered_is_found_by_the_thorough_probe() -> None:
    # The stand-in answers ExecuteStatement without an operation, as no server that works does.
    server = await server_in(Mood.WORKS)
    said = await HealthProbe(HEALTH_USER).check_query(server.member.address)
    assert said == "select 1: the server gave the query no operation handle"
    assert server.calls == ["OpenSession", "ExecuteStatement", "CloseSession"]
    await server.die()


async def test_a_login_opens_no_session() -> None:
    server = await server_in(Mood.WORKS)
    assert await HealthProbe(HEALTH_USER).check_login(server.member.address) is None
    await eventually(lambda: not server.peers)
    assert server.calls == []
    await server.die()


async def test_probes_take_a_backend_out_and_bring_it_back(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "proxy.backends")
    async with several(2, PoolSettings(login_together_max=0)) as on:
        rounds = asked(on.backends)
        await rounds.probe_all()
        await on.servers[0].die()
        for _ in range(2):
            await rounds.probe_all()
        assert on.backends.views()[0].healthy
        await rounds.probe_all()
        assert [view.probes for view in on.backends.views()] == ["down", "up"]
        for _ in range(3):
            await on.log_in()
        assert on.backends.views()[0].failures == 3, "no client has tried it"
        await on.servers[0].listen()
        for _ in range(2):
            await rounds.probe_all()
        await on.log_in()
        assert on.servers[0].connections == 1
        assert on.loads == [1, 3], "probes have given their room back"
    down, up = [message for message in caplog.messages if "health checks" in message or "down" in message]
    assert "counts as down: cannot reach the backend" in down
    assert "passes health checks again" in up
    assert "secret" not in caplog.text


async def test_over_http_probes_log_in_too() -> None:
    server = HttpServer()
    await server.listen()
    name, upstream = server.member.name, UpstreamSection(Transport.HTTP)
    assert (
        await HealthProbe(ProbeSettings("health", "secret"), upstream).check_login(server.member.address) is None
    )
    asking = HealthProbe(ProbeSettings("health", "wrong"), upstream)
    refused = f"the backend {name} refused the login of"
    assert await asking.check_login(server.member.address) == f"{refused} the health user"
    assert await asking.check_query(server.member.address) == f"{refused} user 'health'"
    await server.die()


async def test_a_probe_counts_as_a_connection_and_is_left_out_where_there_is_no_room() -> None:
    server = await server_in(Mood.HANGS)
    backends = BackendPool([server.member], Clock(), PoolSettings(connections_max=1))
    first = asyncio.create_task(asked(backends, HURRIED).probe_all())
    await eventually(lambda: backends.views()[0].connections == 1)
    assert backends.lease("user") is None
    await asked(backends).probe_all()
    assert backends.views()[0].failures == 0
    await first
    assert (backends.views()[0].connections, backends.views()[0].failures) == (0, 1)
    await server.die()


# --- names


class NameService:
    """Says what the test says."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[str, ...] | Exception] = {}
        self.asked = 0

    async def __call__(self, host: str) -> tuple[str, ...]:
        self.asked += 1
        answer = self.answers[host]
        if isinstance(answer, Exception):
            raise answer
        return answer


def named(backends: BackendPool) -> set[str]:
    return {backend.member.name for backend in backends.configured}


async def test_a_name_stands_for_all_its_addresses_and_is_asked_again() -> None:
    service, backends = NameService(), BackendPool((), time.monotonic)
    names = DnsNames(backends, (NAMED, BackendEntry(Address("fixed", 1))), service)
    service.answers["spark.internal"] = ("10.0.0.1", "10.0.0.2", "::3")
    await names.refresh()
    assert named(backends) == {"10.0.0.1:10000", "10.0.0.2:10000", "[::3]:10000", "fixed:1"}
    assert {backend.member.address.name for backend in backends.configured} == {"spark.internal", "fixed"}
    service.answers["spark.internal"] = ("10.0.0.2", "10.0.0.4")
    await names.refresh_if_looked_up()
    assert named(backends) == {"10.0.0.2:10000", "10.0.0.4:10000", "fixed:1"}


@pytest.mark.parametrize("failure", [OSError(-2, "Name or service not known"), UnicodeError("label too long")])
async def test_a_name_service_that_fails_takes_no_backend_away(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    service, backends = NameService(), BackendPool((), time.monotonic)
    names = DnsNames(backends, (NAMED,), service)
    service.answers["spark.internal"] = failure
    await names.refresh()
    assert named(backends) == set()
    assert backends.search().reason == "its name has no address that is known"
    service.answers["spark.internal"] = ("10.0.0.1",)
    await names.refresh()
    service.answers["spark.internal"] = failure
    await names.refresh()
    assert named(backends) == {"10.0.0.1:10000"}
    assert "spark.internal cannot be looked up, its last 1 addresses stay" in caplog.text


async def test_nobody_is_asked_where_there_are_no_names() -> None:
    service, backends = NameService(), BackendPool((), time.monotonic)
    names = DnsNames(backends, (BackendEntry(Address("fixed", 1)),), service)
    await names.refresh()
    await names.refresh_if_looked_up()
    assert (service.asked, named(backends)) == (0, {"fixed:1"})


async def test_a_lookup_that_a_new_configuration_overtakes_changes_nothing() -> None:
    goes_on = asyncio.Event()

    async def slow(_: str) -> tuple[str, ...]:
        await goes_on.wait()
        return ("10.0.0.1",)

    backends = BackendPool((), time.monotonic)
    names = DnsNames(backends, (NAMED,), slow)
    asked_first = asyncio.create_task(names.refresh())
    await asyncio.sleep(0)
    await names.configure((BackendEntry(Address("new", 1)),))
    goes_on.set()
    await asked_first
    assert named(backends) == {"new:1"}


async def test_localhost_is_looked_up_as_this_machine_does() -> None:
    backends = BackendPool((), time.monotonic)
    await DnsNames(backends, (BackendEntry(Address("localhost", 1), is_looked_up=True),)).refresh()
    assert named(backends) & {"127.0.0.1:1", "[::1]:1"}


async def test_maintenance_runs_its_tasks_until_it_is_closed_and_takes_a_new_configuration() -> None:
    done = []

    async def task() -> None:
        done.append(1)

    backends = BackendPool([PoolMember(Address(HOST, 1))], time.monotonic)

    async def first() -> None:
        assert not done
        done.append(0)

    maintenance = Maintenance(DnsNames(backends, ()), ((task, 0.01),), first)
    await maintenance.start()
    assert done == [0]
    await eventually(lambda: len(done) >= 3)
    maintenance.reload((BackendEntry(Address(HOST, 2)),))
    await eventually(lambda: named(backends) == {f"{HOST}:2"})
    await maintenance.close()
    count = len(done)
    await asyncio.sleep(0.05)
    assert len(done) == count
