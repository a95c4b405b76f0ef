"""Threads for steps of Kerberos logins, which wait for files and KDCs: the event loop must not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Final, TypeVar

from proxy.kerberos.errors import KerberosError

Result = TypeVar("Result")

# Steps at once. Most take a millisecond; one that waits for a KDC that is down takes seconds, and the library has
# no way to end it.
LOGIN_STEPS_MAX: Final = 16


async def step_in_thread(step: Callable[[], Result], within_s: float) -> Result:
    """Run a step of a login in a thread. Raises KerberosError if it takes longer, or fails."""
    try:
        async with asyncio.timeout(within_s):
            return await asyncio.get_running_loop().run_in_executor(_threads(), step)
    except TimeoutError:
        raise KerberosError(f"a step of the login took longer than {within_s:g} s; a KDC may be down") from None


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(LOGIN_STEPS_MAX, thread_name_prefix="login")
