"""GET /readyz without health checks: a probe of its own, used for five seconds."""

import time

from proxy.backends.pool import BackendPool
from proxy.backends.readiness import Readiness
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember

A = PoolMember(Address("127.0.0.1", 10000))
B = PoolMember(Address("127.0.0.1", 10001))


class Probes:
    def __init__(self) -> None:
        self.now = 0.0
        self.asked: list[int] = []
        self.failures: dict[int, str] = {}

    async def __call__(self, address: Address) -> str | None:
        self.asked.append(address.port)
        return self.failures.get(address.port)

    def readiness(self, backends: BackendPool) -> Readiness:
        return Readiness(backends, probe=self, clock=lambda: self.now)


async def test_a_backend_that_went_away_shows_within_five_seconds_and_so_does_its_return() -> None:
    probes = Probes()
    readiness = probes.readiness(BackendPool([A], time.monotonic))
    assert await readiness.why_not_ready() is None
    probes.failures[10000] = "Connection refused"
    probes.now = 4.9
    assert await readiness.why_not_ready() is None
    probes.now = 5.0
    assert await readiness.why_not_ready() == "No backend answers: 127.0.0.1:10000: Connection refused."
    probes.failures.clear()
    probes.now = 10.0
    assert await readiness.why_not_ready() is None
    assert len(probes.asked) == 3


async def test_one_backend_that_answers_is_enough_and_one_that_is_drained_is_not_asked() -> None:
    probes, backends = Probes(), BackendPool([A, B], time.monotonic)
    probes.failures[10000] = "Connection refused"
    readiness = probes.readiness(backends)
    assert await readiness.why_not_ready() is None
    backends.drain(B.name, on=True)
    probes.now = 5.0
    assert await readiness.why_not_ready() is not None
    assert probes.asked == [10000, 10001, 10000]
