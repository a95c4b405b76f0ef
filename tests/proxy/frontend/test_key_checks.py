"""Where checks of remembered keys may run."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from support.relay_dialogue import SESSION

from proxy.backends.pool import BackendPool, PoolSettings
from proxy.config.address import Address
from proxy.config.backend_list import PoolMember
from proxy.frontend.background_runner import BackgroundRunner, RunnerSettings
from proxy.frontend.key_checks import ASKING_FIRST_S, KeyChecks
from proxy.kerberos.delegation import ClientTickets, DelegatedCredentials
from proxy.kerberos.principals import parse_principal
from proxy.operations.key_check import CheckVerdict, KeyCheck


async def nothing_asked() -> CheckVerdict:
    return CheckVerdict.HELD


def test_those_who_wait_for_a_check_go_on_though_its_count_fails() -> None:
    def failing(_: CheckVerdict) -> None:
        raise RuntimeError("no room to count")

    told: list[str] = []
    check = KeyCheck(nothing_asked, 0.0, 5.0, on_settled=failing)
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
        check = KeyCheck(nothing_asked, 0.0, 5.0)
        checks.start(SESSION, b"a login", check, client)
        assert check.verdict is CheckVerdict.NOT_ASKED
        assert not checks.has_room_at(at)


def test_a_refused_login_by_tickets_counts_for_their_client_alone() -> None:
    """A connection outlives its tickets, and those of one client say nothing of others."""
    at, acting = Address("spark", 1), parse_principal("starpruner@REALM")
    annas, bobs = (
        DelegatedCredentials.with_tickets(user, ClientTickets(parse_principal(f"{user}@REALM"), acting, None))
        for user in ("anna", "bob")
    )
    now = [0.0]
    with ThreadPoolExecutor(1) as pool:
        checks = KeyChecks(BackgroundRunner(RunnerSettings("a check"), pool), lambda: now[0])
        checks.ask_first_at(at, annas)
        assert not checks.has_room_at(at, annas)
        assert checks.has_room_at(at, bobs)
        assert checks.has_room_at(at)
        now[0] = ASKING_FIRST_S
        assert checks.has_room_at(at, annas)
