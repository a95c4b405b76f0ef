"""Threads of logins: password checks that hang leave room for the others, and their number has a bound."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event

import pytest

from proxy.kerberos.errors import KerberosError, LoginsBusyError
from proxy.net.login_threads import (
    LOGIN_STEPS_MAX,
    PASSWORD_CHECKS_MAX,
    PASSWORD_CHECKS_WAITING_MAX,
    password_check_in_thread,
    step_in_thread,
)

CHECKS_MAX = PASSWORD_CHECKS_MAX + PASSWORD_CHECKS_WAITING_MAX


@contextmanager
def hanging() -> Iterator[Callable[[], bool]]:
    """A check that waits for the KDC until the end of the block."""
    answered = Event()
    try:
        yield answered.wait
    finally:
        answered.set()


async def test_password_checks_that_hang_keep_no_other_login_waiting() -> None:
    with hanging() as check:
        checks = [asyncio.create_task(password_check_in_thread(check, 60)) for _ in range(LOGIN_STEPS_MAX * 2)]
        await asyncio.sleep(0)
        assert await step_in_thread(lambda: "a ticket", 10) == "a ticket"
    assert all(await asyncio.gather(*checks))


async def test_too_many_password_checks_are_refused_until_some_have_ended() -> None:
    with hanging() as check:
        checks = [asyncio.create_task(password_check_in_thread(check, 60)) for _ in range(CHECKS_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(LoginsBusyError, match="try again later"):
            await password_check_in_thread(check, 60)
    await asyncio.gather(*checks)
    assert await password_check_in_thread(lambda: "anna", 60) == "anna"


async def test_a_check_that_nobody_waits_for_any_more_gives_its_place_back() -> None:
    with hanging() as check:
        checks = [asyncio.create_task(password_check_in_thread(check, 0.05)) for _ in range(CHECKS_MAX)]
        for ended in await asyncio.gather(*checks, return_exceptions=True):
            assert isinstance(ended, KerberosError)
    assert await password_check_in_thread(lambda: "anna", 60) == "anna"
