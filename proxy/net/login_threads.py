"""Threads for steps of Kerberos logins, which wait for files and KDCs: the event loop must not.

Password checks have threads of their own: anybody can ask for them, and each waits for the KDC. Tickets of clients
and logins at backends go on beside them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from threading import BoundedSemaphore
from typing import Final, TypeVar

from proxy.kerberos.errors import KerberosError, LoginsBusyError

Result = TypeVar("Result")

# Steps at once. Most take a millisecond; one that waits for a KDC that is down takes seconds, and the library has
# no way to end it.
LOGIN_STEPS_MAX: Final = 16
PASSWORD_CHECKS_MAX: Final = 4
# Checks that wait for these threads. A check takes milliseconds: with more, the KDC is down or somebody guesses.
PASSWORD_CHECKS_WAITING_MAX: Final = 32

_places: Final = BoundedSemaphore(PASSWORD_CHECKS_MAX + PASSWORD_CHECKS_WAITING_MAX)


def step_within_s(login_s: float) -> float:
    """Return the time for one step of a login: a part, so that its sentence comes before the login's end."""
    return login_s / 3


async def step_in_thread(step: Callable[[], Result], within_s: float) -> Result:
    """Run a step of a login in a thread. Raises KerberosError if it takes longer, or fails."""
    return await _awaited(_submitted(_threads(), step), within_s)


async def password_check_in_thread(check: Callable[[], Result], within_s: float) -> Result:
    """Run a password check in a thread. Raises KerberosError as above; LoginsBusyError with too many under way."""
    if not _places.acquire(blocking=False):
        raise LoginsBusyError("too many passwords are being checked; try again later")
    future = _submitted(_password_threads(), check)
    # The library's call holds its thread to the end, also where nobody waits for it any more.
    future.add_done_callback(lambda _: _places.release())
    return await _awaited(future, within_s)


def _submitted(threads: ThreadPoolExecutor, step: Callable[[], Result]) -> Future[Result]:
    """Queue a step. Once nobody waits for it, its token or password is dropped; its place in the queue stays.

    Otherwise, while all threads wait for a KDC, each client that comes and goes would leave a token of 64 KB.
    """
    steps = [step]

    def run() -> Result:
        return steps[0]()

    future = threads.submit(run)
    future.add_done_callback(lambda _: steps.clear())
    return future


async def _awaited(future: Future[Result], within_s: float) -> Result:
    try:
        async with asyncio.timeout(within_s):
            return await asyncio.wrap_future(future)
    except TimeoutError:
        raise KerberosError(f"a step of the login took longer than {within_s:g} s; a KDC may be down") from None


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(LOGIN_STEPS_MAX, thread_name_prefix="login")


@cache
def _password_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(PASSWORD_CHECKS_MAX, thread_name_prefix="password")
