"""Where checks of remembered keys may run."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.relay_dialogue import SESSION

from proxy.backends.pool import BackendPool, PoolSettings
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember
from proxy.frontend.background_runner import BackgroundRunner, RunnerSettings
from proxy.frontend.key_checks import KeyChecks
from proxy.operations.key_check import CheckVerdict, KeyCheck
from proxy.operations.query import Query, QueryResult


def iter_nothing() -> Generator[Query, QueryResult, CheckVerdict]:
    yield from ()
    return CheckVerdict.HELD


def test_those_who_wait_for_a_check_go_on_though_its_count_fails() -> None:
    def failing(_: CheckVerdict) -> None:
        raise RuntimeError("no room to count")

    told: list[str] = []
    check = KeyCheck(iter_nothing(), 0.0, 5.0, on_settled=failing)
    check.call_when_settled(lambda: told.append("settled"))
    with pytest.raises(RuntimeError, match="no room"):
        check.settle(CheckVerdict.HELD)
    check.settle(CheckVerdict.CHANGED)
    assert (told, check.verdict) == (["settled"], CheckVerdict.HELD)


@pytest.mark.asyncio
async def test_a_full_backend_is_not_sent_every_statement_twice() -> None:
    """Each start there ends in NOT_ASKED: the statement that was sent is cancelled and sent again."""
    at = Address("spark", 1)
    backends = BackendPool([PoolMember(at)], lambda: 0.0, PoolSettings(connections_max=1))
    client = backends.lease(None)
    assert client is not None
    with ThreadPoolExecutor(1) as pool:
        checks = KeyChecks(BackgroundRunner(RunnerSettings("a check"), pool), lambda: 0.0)
        check = KeyCheck(iter_nothing(), 0.0, 5.0)
        checks.start(SESSION, b"a login", check, client)
        assert check.verdict is CheckVerdict.NOT_ASKED
        assert not checks.has_room_at(at)
