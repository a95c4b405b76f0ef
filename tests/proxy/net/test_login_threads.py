"""Threads of logins: password checks that hang leave room for the others, and their number has a bound."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event
from typing import Any
from weakref import ref

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


class Token:
    """An object that a step holds and returns."""


@pytest.mark.parametrize("in_thread", [step_in_thread, password_check_in_thread])
async def test_a_step_that_nobody_waits_for_any_more_keeps_no_token(in_thread: Any) -> None:
    token = Token()
    with hanging() as check:
        threads = LOGIN_STEPS_MAX if in_thread is step_in_thread else PASSWORD_CHECKS_MAX
        hung = [asyncio.create_task(in_thread(check, 60)) for _ in range(threads)]
        await asyncio.sleep(0)
        waiting = asyncio.create_task(in_thread(partial(isinstance, token, Token), 60))
        await asyncio.sleep(0)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        del waiting
        await asyncio.sleep(0)
        held = ref(token)
        del token
        gc.collect()
        assert held() is None
    await asyncio.gather(*hung)


async def test_a_check_that_nobody_waits_for_any_more_gives_its_place_back() -> None:
    with hanging() as check:
        checks = [asyncio.create_task(password_check_in_thread(check, 0.05)) for _ in range(CHECKS_MAX)]
        for ended in await asyncio.gather(*checks, return_exceptions=True):
            assert isinstance(ended, KerberosError)
    assert await password_check_in_thread(lambda: "anna", 60) == "anna"
